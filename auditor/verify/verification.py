"""A verification on one screen: what a trial saw, made into numbers, a chain, findings and latencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from auditor import audit
from auditor.facts import Fact, Facts, Subject, unknown
from auditor.judge.finding import RANK, Finding
from auditor.judge.policy import LeftOut
from auditor.judge.rule import Rule, Severity
from auditor.report.model import Report
from auditor.verify import chain, latency, leaf_facts, profile, reading, run_facts, sweeping
from auditor.verify.compare import Comparison, compare
from auditor.verify.knee import Sweep
from auditor.verify.model import Chain, Latency, Verification
from auditor.verify.profile import Profile
from auditor.verify.result import Run
from auditor.verify.trial import Trial


class Found(NamedTuple):
    """What ``zaudit verify`` found. sweep, comparison: where they were asked for. unkept: why its recording could not be
    written, to be raised once the report is out."""

    verification: Verification
    report: Report
    sweep: Sweep | None = None
    comparison: Comparison | None = None
    unkept: Exception | None = None


def judge(
    seen: audit.Look,
    trial: Trial,
    rules: Sequence[Rule],
    names: Sequence[str],
    threshold: Severity,
    *,
    left_out: Sequence[LeftOut] = (),
    failed_only: bool = False,
) -> Found:
    """Everything that follows from a trial. Adds the facts of the runs to what was seen. left_out, failed_only: as in
    :func:`auditor.audit.judge`. Raises ProfileError."""
    asked, runs, followed = _read(seen.facts, trial)
    seen.facts.put_all(run_facts.facts_of(trial, runs, asked, followed, seen.facts))
    pool = Subject("pool", trial.dataset.partition("/")[0])
    for run in runs:
        if run.purpose == "log":
            for fact in leaf_facts.facts_of(run, followed, pool, seen.facts):
                seen.facts.replace(fact)
        if run.purpose != "calls":
            subject = Subject("run", run.name)
            seen.facts.replace(Fact(subject, "objectives_met", unknown(f"run {run.name}: its latency is not judged")))
    first = audit.judge(seen, rules, names, threshold)
    latencies = tuple(
        latency.judge(run, asked.slo, _why_not(run.name, followed, (*first.findings, *first.waived)))
        for run in _timed(runs)
    )
    for each in latencies:
        seen.facts.replace(run_facts.met(each))
    found = _verification(seen, trial, asked, runs, followed, latencies)
    report = audit.judge(seen, rules, names, threshold, left_out=left_out, failed_only=failed_only)
    return Found(found, report, sweeping.result(trial.runs), _with_and_without(seen, trial))


WITH = "with the SLOG (logbias=latency)"
WITHOUT = "past the SLOG, as far as OpenZFS allows (logbias=throughput: the data goes to the data vdevs, pointers to the SLOG)"


def _with_and_without(seen: audit.Look, trial: Trial) -> Comparison | None:
    """Of --ab slog. What stands against judging a latency does not stand against saying which of two is longer, as long as
    both were traced."""
    if trial.without is None:
        return None
    sides = [_unjudged(seen, each) for each in (trial, trial.without)]
    return compare(*sides)._replace(before=WITH, after=WITHOUT)


def _unjudged(seen: audit.Look, trial: Trial) -> Verification:
    asked, runs, followed = _read(seen.facts, trial)
    why_not = _why_not("", followed, ())
    latencies = tuple(latency.judge(run, (), why_not) for run in _timed(runs))
    return _verification(seen, trial, asked, runs, followed, latencies)._replace(dataset=trial.target)


def _read(facts: Facts, trial: Trial) -> tuple[Profile, tuple[Run, ...], Chain]:
    asked = profile.parse(trial.job_file, trial.profile, ours=trial.profile in profile.names())
    if trial.objectives:
        asked = asked._replace(slo=profile.objectives(trial.objectives))
    runs = tuple(reading.runs(trial, asked, facts))
    log = asked.of("log")
    assert log is not None  # parse() sees to that
    return asked, runs, chain.follow(trial, runs, log, facts)


def _timed(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.purpose != "calls" and run.jobs and run.log.sync != "none"]


def _verification(
    seen: audit.Look,
    trial: Trial,
    asked: Profile,
    runs: tuple[Run, ...],
    followed: Chain,
    latencies: tuple[Latency, ...],
) -> Verification:
    return Verification(
        target=trial.target,
        dataset=trial.dataset,
        place=trial.place,
        profile=trial.profile,
        length=trial.length,
        taken=seen.facts.now,
        chain=followed,
        runs=runs,
        latencies=latencies,
        proves=asked.proves,
        does_not=asked.does_not,
        fio=trial.fio,
        job_file=trial.job_file,
        size=trial.size,
    )


def _why_not(run: str, followed: Chain, findings: Sequence[Finding]) -> str:
    """Why the latency of a run is not judged, in one sentence; empty when it is."""
    if followed.outcome == "CONTRADICTED":
        return latency.MEANINGLESS
    if followed.outcome == "INCONCLUSIVE":
        return "it could not be seen whether a sync means anything"
    for finding in findings:
        harm, failed = finding.rule.harm, finding.failed
        if harm in ("commits", "corruption") and failed and RANK[finding.severity] >= RANK["high"]:
            return f"{finding.rule.id} stands: durability first"
        if harm == "measurement" and failed and any(verdict.subject.name == run for verdict in finding.verdicts):
            return f"{finding.rule.id}: this run says nothing of latency"
    return ""
