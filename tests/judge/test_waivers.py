"""What a waiver covers, and whether one that covers nothing is of no use, kind by kind and scope by scope."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, known
from auditor.judge import waivers
from auditor.judge.finding import Finding
from auditor.judge.policy import Waiver
from auditor.judge.policy_file import parse, sketch
from auditor.judge.rule import Rule
from auditor.judge.verdict import Verdict
from auditor.judge.waivers import Answers
from tests import shared

RULES = {rule.id: rule for rule in shared.rules()}
TANK, FAST, OLD = (Subject("pool", name) for name in ("tank", "fast", "old"))
DATABASE, AWAY = Subject("database", "postgres 7"), Subject("database", "mysql 8")
SUBJECTS: dict[str, Subject] = {
    **{str(each): each for each in (HOST, TANK, FAST, OLD, DATABASE, AWAY)},
    **{name: Subject("dataset", name) for name in ("tank/db", "tank/db/wal", "tank/dbs", "fast/db")},
    **{name: Subject("leaf", name, "tank") for name in ("leaf 1", "leaf 2", "no disks")},
    **{name: Subject("disk", name) for name in ("disk 1", "disk 2", "no leaf")},
    **{name: Subject("vdev", name, "tank") for name in ("mirror-0",)},
    **{name: Subject("run", name) for name in ("fio",)},
}


def host(**told: Any) -> Facts:
    """Two pools that are audited and an old one; a mirror on disk 1 and disk 2, of which one is in the other pool, too."""
    facts = Facts(1.7e9)
    facts.put_all(Fact(subject, "seen", known(True, "")) for subject in SUBJECTS.values())
    linked: dict[tuple[Subject, str], tuple[str, ...]] = {
        (HOST, "pools"): ("tank", "fast"),
        (HOST, "databases"): ("postgres 7", "mysql 8"),
        (TANK, "datasets"): ("tank/db", "tank/db/wal", "tank/dbs"),
        (DATABASE, "datasets"): ("tank/db", "tank/db/wal"),
        (SUBJECTS["leaf 1"], "disks"): ("disk 1",),
        (SUBJECTS["leaf 2"], "disks"): ("disk 1", "disk 2"),
        (SUBJECTS["disk 1"], "used_by"): ("leaf 1", "leaf 2"),
        (SUBJECTS["mirror-0"], "leaves"): ("leaf 1", "leaf 2"),
    }
    for (subject, name), targets in linked.items():
        facts.put(Fact(subject, name, known(tuple(SUBJECTS[each] for each in targets), "")))
    # a dataset of the pool's own name is there where the whole pool was looked at
    facts.put(Fact(FAST, "datasets", known((Subject("dataset", "fast"), SUBJECTS["fast/db"]), "")))
    scalars: dict[tuple[Subject, str], bool | str] = {
        (HOST, "hostname"): "db1",
        (HOST, "container"): False,
        (HOST, "virtualization"): "none",
        (TANK, "guid"): "1",
        (FAST, "list_guid"): "2",
        (SUBJECTS["disk 1"], "serial"): "S-1",
        (DATABASE, "engine"): "postgres",
        (DATABASE, "data_directory"): "/srv/pg",
        (SUBJECTS["disk 2"], "serial"): "S-2",
        **{(HOST, name): value for name, value in told.items()},
    }
    facts.put_all(Fact(subject, name, known(value, "")) for (subject, name), value in scalars.items())
    return facts


def waiver(scope: Any, name: str, rule: str = "a-rule") -> Waiver:
    return Waiver(rule, scope, name, "ann", "x", date(2027, 1, 1), 1)


@pytest.mark.parametrize(
    ("scope", "name", "covered"),
    [
        ("host", "db1", set(SUBJECTS)),  # with all that is on it
        ("host", "db*", set(SUBJECTS)),
        ("database", "postgres", {"postgres 7"}),
        ("database", "postgres /srv/pg", {"postgres 7"}),
        ("database", "postgres /srv/*", {"postgres 7"}),
        ("database", "postgres /srv", set()),
        ("database", "mysql", set()),  # nobody could tell what it is
        ("host", "db2", set()),
        ("class", "physical", set(SUBJECTS)),
        ("class", "virtual machine", set()),
        ("device", "S-1", {"disk 1", "leaf 1"}),
        ("device", "S-2", {"disk 2"}),
        ("pool", "1", {"tank", "tank/db", "tank/db/wal", "tank/dbs", "leaf 1", "leaf 2", "no disks", "disk 1", "mirror-0",
                       "postgres 7"}),
        ("pool", "2", {"fast", "fast/db"}),
        ("dataset", "tank", {"tank/db", "tank/db/wal", "tank/dbs", "postgres 7"}),
        ("dataset", "tank/db", {"tank/db", "tank/db/wal", "postgres 7"}),
        ("dataset", "tank/db/wal", {"tank/db/wal"}),
        ("dataset", "*/db", {"tank/db", "tank/db/wal", "fast/db", "postgres 7"}),
    ],
)  # fmt: skip
def test_what_a_waiver_covers(scope: str, name: str, covered: set[str]) -> None:
    places = waivers._Places(host())
    found = {each for each, subject in SUBJECTS.items() if places.covers(waiver(scope, name), subject)}
    assert found == covered


@pytest.mark.parametrize(
    ("scope", "name", "seen"),
    [
        ("host", "db1", True),
        ("host", "db2", True),  # a name that is not this one's is misspelt
        ("host", "db*", True),
        ("host", "web*", False),  # of a policy for many hosts
        ("class", "physical", True),
        ("class", "virtual machine", False),
        ("device", "S-1", True),
        ("device", "S-3", False),
        ("pool", "1", True),
        ("pool", "2", True),
        ("pool", "3", False),
        ("database", "postgres", True),
        ("database", "redis", False),
        ("dataset", "tank/db", True),
        ("dataset", "tank/gone", False),  # only a part of the pool was looked at
        ("dataset", "fast/gone", True),
        ("dataset", "old/gone", False),
    ],
)
def test_whether_what_a_waiver_is_about_was_looked_at(scope: str, name: str, seen: bool) -> None:
    places = waivers._Places(host())
    assert places.in_view(waiver(scope, name), True) is seen
    assert not places.in_view(waiver(scope, name), False), "its rule did not run"


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({"virtualization": "none"}, "physical"),
        ({"virtualization": "kvm"}, "virtual machine"),
        ({"virtualization": "none", "container": True}, ""),
        ({"virtualization": "kvm", "container": True}, ""),
        ({"virtualization": ""}, ""),
    ],
)
def test_a_container_is_of_no_class(told: dict[str, Any], name: str) -> None:
    assert waivers._class(host(**told)) == name


POLICY = """
[datasets."tank/db"]
role = "rebuildable"
reason = "two replicas"
[datasets."tank/db/wal"]
database = "postgres"
[datasets."fast"]
role = "log"
database = "mysql"
"""


@pytest.mark.parametrize(
    ("dataset", "role", "database", "line", "texts"),
    [
        ("tank/db", "rebuildable", "", 2, ("role of tank/db: rebuildable (two replicas)", "database of tank/db: undeclared")),
        ("tank/db/wal", "undeclared", "postgres", 5,
         ("role of tank/db/wal: undeclared", "database of tank/db/wal: postgres")),
        ("fast/db", "log", "mysql", 7, ("role of fast: log", "database of fast: mysql")),
        ("tank/dbs", "undeclared", "", 0, ("", "")),
    ],
)  # fmt: skip
def test_what_is_declared_of_a_dataset_is_a_fact_of_it(
    dataset: str, role: str, database: str, line: int, texts: tuple[str, str]
) -> None:
    told = {(each.subject.name, each.name): each.value for each in waivers.facts_of(parse(POLICY, "p"), host())}
    command = f"sed -n {line}p p" if line else ""
    for name, value, text in (("role", role, texts[0]), ("database", database, texts[1])):
        assert told[dataset, name] == Known(value, (Evidence(text, command),))


WAIVERS = """
[[waiver]]
rule = "pool-*"
pool = "1"
owner = "ann"
reason = "x"
expires = 2023-11-13
[[waiver]]
rule = "pool-nearly-full"
pool = "1"
owner = "bob"
reason = "y"
expires = 2023-11-14
[[waiver]]
rule = "pool-nearly-full"
pool = "2"
owner = "bob"
reason = "y"
expires = 2023-11-14
"""


def applied(*verdicts: Verdict) -> tuple[list[Verdict], dict[str, tuple[object, ...]]]:
    """What the waivers make of these, and of each waiver: expired, used, in_view, with the text of each."""
    policy, facts = parse(WAIVERS, "p"), host()
    facts.put_all(list(waivers.facts_of(policy, facts)))
    judged = waivers.apply(policy, facts, verdicts, Answers(policy, facts))
    told: dict[str, tuple[object, ...]] = {}
    for each in policy.waivers:
        seen = [facts.get(Subject("waiver", each.title), name) for name in ("expired", "used", "in_view")]
        assert all(isinstance(value, Known) for value in seen)
        told[each.title] = tuple((value.value, value.evidence[0].text) for value in seen if isinstance(value, Known))
    return [*judged], told


@pytest.mark.parametrize(
    ("outcomes", "made", "used", "in_view"),
    [
        (("fail", "fail"), ("waived", "waived"), ("found", "found"), (True, True)),
        (("pass", "fail"), ("pass", "waived"), ("nothing found", "found"), (True, True)),
        (("unknown", "pass"), ("waived", "pass"), ("found", "nothing found"), (True, True)),
        (("pass", "not applicable"), ("pass", "not applicable"), ("nothing found", "nothing found"), (True, True)),
        ((), (), ("nothing found", "nothing found"), (False, False)),  # the rule did not run
    ],
)
def test_what_a_waiver_makes_of_a_verdict(
    outcomes: tuple[Any, ...], made: tuple[str, ...], used: tuple[str, str], in_view: tuple[bool, bool]
) -> None:
    rule = RULES["pool-nearly-full"]
    judged, told = applied(
        *(Verdict(rule, pool, each, "low") for pool, each in zip((TANK, FAST), outcomes, strict=False))
    )
    assert tuple(each.outcome for each in judged) == made
    assert [each.was for each in judged] == [
        was if now == "waived" else "" for was, now in zip(outcomes, made, strict=True)
    ]
    assert {each.waiver.owner for each in judged if each.waiver} <= {"bob"}
    for name, found, seen in zip(("1", "2"), used, in_view, strict=True):
        title = f"pool-nearly-full of pool {name}"
        assert told[title] == (
            (False, "expires 2023-11-14, owner bob: y"),
            (found == "found", f"{title}: {found}"),
            (seen, "was judged" if seen else "was not judged"),
        )
    expired = told["pool-* of pool 1"]
    assert expired[0] == (True, "expires 2023-11-13, owner ann: x")


def test_of_what_was_undecided_a_waiver_of_nothing_is_not_told() -> None:
    """The third pool has no waiver; what the second waiver is about may be there."""
    _, told = applied(Verdict(RULES["pool-nearly-full"], OLD, "unknown", "low"))
    assert told["pool-nearly-full of pool 2"][2] == (False, "was not judged")


def sketched(*found: tuple[str, tuple[Subject, ...], bool]) -> list[str]:
    """The waivers and answers of a sketch for these findings: what each is of, and what stands above it."""
    findings = [
        Finding(rule := RULES[id], failed, "low", "", tuple(_unworded(rule, each) for each in subjects))
        for id, subjects, failed in found
    ]
    lines = sketch(host(), findings, ()).partition("# Answers:")[2].splitlines()[1:]
    assert [line for line in lines if line.startswith("# expires")] == ["# expires = 2024-02-12"] * lines.count("#")
    dull = ("# owner", "# reason", "# expires", "# rule")
    return [line.removeprefix("# ") for line in lines if line != "#" and not line.startswith(dull)]


def _unworded(rule: Rule, subject: Subject) -> Verdict:
    parties = rule.elements if rule.answer else ()
    return Verdict(rule, subject, "fail", "low", relies=parties)


@pytest.mark.parametrize(
    ("names", "scopes"),
    [
        (("tank/db", "tank/db/wal", "tank/dbs"), ('dataset = "tank/db"', 'dataset = "tank/dbs"')),
        (("postgres 7",), ('database = "postgres /srv/pg"',)),
        (("mysql 8",), ()),  # nobody knows where it keeps its files, and a number of a process does not last
        (("host",), ('host = "db1"',)),
        (("disk 1", "disk 2"), ('device = "S-1"', 'device = "S-2"')),
        (("no leaf",), ()),
        (("leaf 1", "mirror-0", "tank"), ('pool = "1"',)),
        (("fast",), ('pool = "2"',)),
        (("old",), ()),
        (("fio",), ()),
    ],
)
def test_a_sketch_offers_the_narrowest_waiver_that_names_it(names: tuple[str, ...], scopes: tuple[str, ...]) -> None:
    subjects = tuple(SUBJECTS[name] for name in names)
    for failed, mark in ((True, ""), (False, ", unknown")):
        lines = sketched(("atime-on", subjects, failed))
        head = f"low{mark}: {RULES['atime-on'].title}"
        assert lines == [line for scope in scopes for line in (head, "[[waiver]]", scope)]


def test_a_sketch_asks_once_for_each_drive_and_party() -> None:
    drive, party = RULES["no-power-loss-protection"], RULES["container-or-vm-blind"]
    leaves = (SUBJECTS["leaf 1"], SUBJECTS["mirror-0"], SUBJECTS["no disks"], TANK, SUBJECTS["disk 2"])
    assert sketched(
        (drive.id, leaves, True), ("no-power-loss-protection", leaves[:1], True), (party.id, (HOST,), True)
    ) == [
        *(f"low: {drive.title}", "[[answer]]", 'drive = "flushes honoured"', 'serial = "S-1"'),
        *(f"low: {drive.title}", "[[answer]]", 'drive = "flushes honoured"', 'serial = "S-2"'),
        *(f"low: {party.title}", "[[answer]]", 'hypervisor = "flushes honoured"'),
    ]
