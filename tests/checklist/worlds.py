"""A target of which everything was seen and is as it should be, and the same with one thing at fault or out of sight."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Literal

from auditor.checklist import checklist_page, lists, responses
from auditor.checklist.lists import Audited, Checklist, Evidence, Runs
from auditor.checklist.responses import Verified
from auditor.diagnose.conclusion import diagnose
from auditor.diagnose.diagnosis import Diagnosis
from auditor.diagnose.observation import Process
from auditor.facts import HOST, Fact, Facts, Kind, Reason, Subject, known
from auditor.judge.finding import Coverage
from auditor.judge.policy import Waiver
from auditor.judge.rule import Rule
from auditor.judge.verdict import Verdict, Verdicts
from auditor.report.model import Report
from auditor.verify.result import Slice, Verification, together
from auditor.verify.trial import KernelLines
from tests.diagnose import worlds as diagnosed
from tests.shared import rules
from tests.verify import samples

MADE = samples.BEGAN + 86400 * 21
TARGET, POOL, DATABASE = (
    Subject("dataset", "tank/db/wal"),
    Subject("pool", "tank"),
    Subject("database", "postgres 364"),
)
VDEV, LEAF, DISK = Subject("vdev", "mirror-1", "tank"), Subject("leaf", "nvme2n1p1", "tank"), Subject("disk", "nvme2n1")
SUBJECTS: Mapping[Kind, Subject] = {
    each.kind: each
    for each in (HOST, POOL, VDEV, LEAF, DISK, TARGET, DATABASE, Subject("run", "log"), Subject("waiver", "1"))
}
Outcome = Literal["pass", "fail", "unknown", "not applicable", "none"]


@cache
def by_id() -> dict[str, Rule]:
    return {each.id: each for each in rules()}


def named() -> tuple[str, ...]:
    """Every rule that a line names."""
    lines = [line for each in lists.load() for line in each.lines]
    return tuple(dict.fromkeys(id for line in lines for id in (*line.rules, *line.against)))


def facts(*, log: bool = True, without: tuple[str, ...] = ()) -> Facts:
    """A pool with a mirrored log device, and PostgreSQL on it. log: False, without one; without: facts that nobody knows."""
    found = Facts(samples.BEGAN + 86400 * 20)
    given = [
        Fact(HOST, "hostname", known("db1", "db1")),
        Fact(HOST, "pools", known((POOL,), "")),
        Fact(HOST, "databases", known((DATABASE,), "")),
        Fact(HOST, "zfs_version_text", known("2.3.9", "")),
        Fact(DATABASE, "engine", known("postgres", "")),
        Fact(DATABASE, "datasets", known((TARGET,), "")),
        Fact(DATABASE, "live", known(True, "the server itself was asked")),
        Fact(POOL, "log_vdevs", known((VDEV,) if log else (), "")),
        Fact(POOL, "log_leaves", known((LEAF,) if log else (), "")),
        Fact(POOL, "zil_class", known("log" if log else "normal", "the pool has a SLOG", "zpool status tank")),
        Fact(LEAF, "disks", known((DISK,), "")),
        *(Fact(TARGET, name, known(value, f"{name}={value}", f"zfs get {name} {{subject}}")) for name, value in
          (("sync", "standard"), ("logbias", "latency"), ("compression", "lz4"))),
    ]  # fmt: skip
    found.put_all(each for each in given if each.name not in without)
    return found


def verdict(id: str, outcome: Outcome, subject: Subject | None = None) -> Verdict:
    rule = by_id()[id]
    at = subject or SUBJECTS[rule.subject]
    reasons = (Reason("not seen", ""),) if outcome == "unknown" else ()
    assert outcome != "none"
    seen = known(True, f"seen of {id}", f"look {id}").evidence if outcome == "pass" else ()
    message = f"{at} fails {id}" if outcome == "fail" else ""
    return Verdict(rule, at, outcome, rule.gravest, message, "", "", seen, reasons)


def report(outcomes: Mapping[str, Outcome] = {}, *more: Verdict) -> Report:
    """Every rule that a line names passes, but for these."""
    given = {id: outcomes.get(id, "pass") for id in named()}
    verdicts = [verdict(id, outcome) for id, outcome in given.items() if outcome != "none"]
    return Report(
        facts=Facts(),
        zaudit="0.0", hostname="db1", release="2.3.9", taken=samples.BEGAN, targets=(TARGET.name,), findings=(), waived=(),
        verdicts=Verdicts((), (*verdicts, *more)), coverage=Coverage(205, 3, 150, 52, ()), threshold="low", standing="kept",
        exit_code=0,
    )  # fmt: skip


@cache
def verification() -> Verification:
    """Ten minutes of the log and of the data, followed whole; of the log in intervals of 100 s, which are soon added up."""
    log = samples.run(seconds=600, median_ms=4.0)
    parts = [log.timeline[at : at + 100] for at in range(0, 600, 100)]
    longer = tuple(Slice(each[0].at_s, each[-1].to_s, together(one.syncs for one in each)) for each in parts)
    runs = (log._replace(timeline=longer), samples.run("data", "data", seed=2, seconds=5))
    return samples.traced(runs)._replace(length="long")


@cache
def diagnosis(logged: str = "") -> Diagnosis:
    """Two sessions of PostgreSQL, and nothing stands out. logged: by the kernel meanwhile."""
    rows = {(100, "postgres", 1): (1000, 1000 * 5300), (101, "postgres", 1): (1000, 1000 * 5300)}
    who = tuple(Process(pid, "postgres", "", "", 100_000_000) for pid in (100, 101))
    files = diagnosed.load(commits={"tank/db": 2000})
    lines = KernelLines((logged,) if logged else (), "")
    return diagnose(diagnosed.observation(files, diagnosed.traced(rows), who, logged=lines), diagnosed.facts())


def seen(
    found: Report | None = None,
    *,
    known_: Facts | None = None,
    measured: Verification | None = None,
    watched: Diagnosis | None = None,
    stale: tuple[tuple[str, tuple[str, ...]], ...] = (),
) -> responses.Looks:
    """An audit, and the verification and the diagnosis that are given."""
    said = found or report()
    verdicts = lists.by_rule(said)
    return responses.Looks(
        Audited(TARGET, known_ or facts(), said, by_id(), verdicts),
        Runs(said, verdicts) if measured else None,
        Verified(measured, {"postgres": "postgres"}) if measured else None,
        watched,
        stale,
    )


def whole(found: Report | None = None) -> responses.Looks:
    """Everything was seen."""
    return seen(found, measured=verification(), watched=diagnosis())


def slow() -> responses.Looks:
    """One leg of the log is slow, the log device is on no protected drive, for which somebody answers, and the data was not
    measured."""
    waiver = Waiver(
        "no-power-loss-protection", "host", "db1", "dba@example.org", "drives are ordered", date(2027, 6, 30), 3
    )
    waived = verdict("no-power-loss-protection", "fail")._replace(outcome="waived", was="fail", waiver=waiver)
    measured = verification()._replace(runs=verification().runs[:1])
    found = report({"no-power-loss-protection": "none", "atime-on": "fail"}, waived)
    return seen(found, measured=measured, watched=diagnosed.canonical())


def listed(of: responses.Looks) -> Checklist:
    """The answers."""
    told = of.audit.report.coverage
    evidence = [Evidence("check", MADE - 60, f"{told.decided} of {told.rules} rules decided")]
    stale = dict(of.stale)
    if of.verified:
        text = checklist_page.of_verification(of.verified.found)
        evidence.append(Evidence("verify", samples.BEGAN, text, stale.get("verify", ())))
    if of.diagnosed:
        text = checklist_page.of_diagnosis(of.diagnosed)
        evidence.append(Evidence("diagnose", MADE - 5 * 3600, text, stale.get("diagnose", ())))
    return responses.checklist(lists.load(), of, tuple(evidence), MADE)
