"""How verdicts are counted: coverage by rule, the exit code by the worst, and the words of a failure for its own subject."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import pytest

from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Reason, Spec, Subject, unknown
from auditor.judge import verdict
from auditor.judge.event import SEVERITIES, Severity
from auditor.judge.expression import compile_expression
from auditor.judge.finding import Finding, coverage, exit_code, findings
from auditor.judge.policy import Waiver
from auditor.judge.rule import PLACES, Place, Rule, Template
from auditor.judge.rule_file import load
from auditor.judge.verdict import Verdict
from auditor.registry import registry
from tests import shared
from tests.whole.test_rules import MINIMAL

RULES = [load(name, name, MINIMAL.encode(), registry()) for name in ("a", "b", "c", "d", "e")]
TANK, FAST = Subject("pool", "tank"), Subject("pool", "fast")
ANN = Waiver("a", "pool", "1", "ann", "x", date(2027, 1, 1), 1)


def said(rule: Rule, outcome: Any, *remedies: str, subject: Subject = TANK, **more: Any) -> Verdict:
    reasons = tuple(Reason(f"not seen {at}", remedy) for at, remedy in enumerate(remedies))
    return Verdict(rule, subject, outcome, more.pop("severity", "low"), reasons=reasons, **more)


def test_coverage_counts_rules_and_not_verdicts() -> None:
    a, b, c, d, e = RULES
    counted = coverage(
        RULES,
        [
            *(said(a, "pass"), said(a, "unknown", "run as root", ""), said(a, "unknown", "run as root", "apt")),
            *(said(b, "waived", "run as root", "aa", was="unknown"), said(b, "fail")),
            *(said(c, "pass"), said(c, "pass"), said(c, "not applicable")),
            *(said(d, "pass"), said(d, "waived", "apt", was="fail")),
            said(e, "not applicable"),
        ],
    )
    assert (counted.rules, counted.undecided, counted.decided) == (5, 2, 3)
    assert (counted.passed, counted.not_applicable) == (1, 1)
    assert counted.remedies == (("run as root", 2), ("aa", 1), ("apt", 1)), "most first, then by name"


@pytest.mark.parametrize(("severity", "code"), list(zip(SEVERITIES, (11, 12, 13, 14), strict=True)))
def test_each_severity_has_its_exit_code(severity: Severity, code: int) -> None:
    assert exit_code([(severity, True)], "low") == exit_code([("low", False), (severity, True)], "low") == code
    assert exit_code([(severity, True)], "low", failed_only=True) == code
    assert exit_code([(severity, False)], "low", failed_only=True) == 10


def test_what_is_one_finding_and_in_which_order() -> None:
    a, b, *_ = RULES
    ordered = findings(
        [
            said(b, "unknown", severity="high"),
            said(b, "fail", severity="high"),
            said(a, "fail", severity="high", subject=FAST),
            said(a, "fail", severity="high", known="2026-01-02"),
            said(a, "fail", severity="high", known="2026-01-01"),
            said(a, "fail", severity="high"),
            said(a, "fail", severity="critical"),
            said(a, "waived", was="fail", severity="critical", waiver=ANN),
            said(a, "pass"),
            said(a, "not applicable"),
        ],
        Facts(),
    )
    assert [(each.rule.id, each.failed, each.severity, each.place, each.known, each.lesser) for each in ordered] == [
        ("a", True, "critical", "tank", "", False),
        ("a", True, "critical", "tank", "", False),
        ("a", True, "high", "fast", "", False),
        ("a", True, "high", "tank", "", True),
        ("a", True, "high", "tank", "2026-01-01", True),
        ("b", True, "high", "tank", "", False),
        ("b", False, "high", "tank", "", False),
    ]
    assert [each.waiver for each in ordered[:2]] == [None, ANN]
    assert len(ordered[4].verdicts) == 2
    assert len({each.id for each in ordered}) == len(ordered)
    assert all(len(each.id) == 16 for each in ordered)
    milder = Finding(b, True, "low", "tank", ())
    assert milder.id == ordered[5].id, "the severity is not in it"


@pytest.mark.parametrize(
    ("subject", "origin", "outcome", "place"),
    [
        (HOST, "", "fail", "host"),
        (TANK, "", "fail", "tank"),
        (Subject("leaf", "sda", "tank"), "", "fail", "tank"),
        (Subject("disk", "sda"), "", "fail", "disks"),
        (Subject("dataset", "tank/a/b"), "", "fail", "tank"),
        (Subject("dataset", "tank/a/b"), "tank/a", "fail", "tank/a"),
        (Subject("database", "postgres 7"), "", "unknown", "postgres 7"),
    ],
)
def test_where_a_finding_stands(subject: Subject, origin: str, outcome: str, place: str) -> None:
    (found,) = findings([said(RULES[0], outcome, subject=subject, origin=origin)], Facts())
    assert found.place == place
    (own,) = findings([said(RULES[0]._replace(origin="sync"), outcome, subject=subject, origin=origin)], Facts())
    assert own.place == (origin or subject.name if outcome == "fail" else place)


LEAF, DATASET = Subject("leaf", "sda", "tank"), Subject("dataset", "tank/a b")
FACTS: dict[tuple[Any, str], Spec] = {
    ("leaf", "errors"): Spec.number(""),
    ("leaf", "ok"): Spec.flag(""),
    ("leaf", "wide"): Spec.flag(""),
    ("leaf", "share"): Spec.real(""),
    ("leaf", "whole"): Spec.real(""),
    ("leaf", "release"): Spec.words(""),
    ("leaf", "disks"): Spec.links("disk", ""),
    ("leaf", "gone"): Spec.number(""),
}


@pytest.mark.parametrize(
    ("source", "text", "command"),
    [
        ("leaf.errors", "3", "3"),
        ("leaf.ok", "on", "on"),
        ("leaf.wide", "off", "off"),
        ("leaf.share", "2.2", "2.2"),
        ("leaf.whole", "2", "2"),
        ("leaf.release", "2, a b", "2 'a b'"),
        ("leaf.disks", "sda, sd b", "sda 'sd b'"),
        ("leaf", "sda", "sda"),
        ("leaf.gone", "(unknown)", "UNKNOWN"),
    ],
)
def test_a_value_in_a_sentence_and_in_a_command(source: str, text: str, command: str) -> None:
    facts = Facts()
    seen: dict[str, Any] = {
        "errors": 3, "ok": True, "wide": False, "share": 2.24, "whole": 2.0, "release": (2, "a b"),
        "disks": (Subject("disk", "sda"), Subject("disk", "sd b")),
    }  # fmt: skip
    facts.put_all(Fact(LEAF, name, Known(value, ())) for name, value in seen.items())
    facts.put(Fact(LEAF, "gone", unknown("not seen")))
    template = Template("", ("<", compile_expression(source, "leaf", FACTS), ">"))
    assert verdict.fill(template, LEAF, "", facts, shell=False) == f"<{text}>"
    assert verdict.fill(template, LEAF, "", facts, shell=True) == f"<{command}>"


@pytest.mark.parametrize(
    ("subject", "origin", "words"),
    [
        (DATASET, "", ("tank/a b", "tank/a b", "tank")),
        (DATASET, "tank", ("tank", "tank/a b", "tank")),
        (LEAF, "", ("sda", "sda", "tank")),
        (TANK, "", ("tank", "tank", "tank")),
    ],
)
def test_places_in_a_command(subject: Subject, origin: str, words: tuple[str, ...]) -> None:
    filled = [verdict.fill(Template("", (Place(word),)), subject, origin, Facts(), shell=False) for word in PLACES]
    assert filled == list(words)


FIXES = """fix = { text = "Delete something.", cost = "safe", cases = [
  { when = "pool.health == 'ONLINE'", text = "Wait.", command = "zpool list {subject}", cost = "needs restart" },
] }
"""


def test_of_a_fix_the_case_counts_that_is_known_to_hold() -> None:
    """Findings of several cases say what the rule says for all."""
    text = re.sub(r"fix = .*\n", FIXES, MINIMAL)
    rule = load("a-rule", "a-rule.toml", text.encode(), registry())
    pools = [Subject("pool", name) for name in ("a", "b", "c")]
    facts = Facts()
    facts.put(Fact(HOST, "pools", Known(tuple(pools), ())))
    states: list[Judged] = [Known("ONLINE", ()), Known("DEGRADED", ()), unknown("not seen")]
    for pool, health in zip(pools, states, strict=True):
        facts.put(Fact(pool, "capacity_percent", Known(81, (Evidence("81 %"),))))
        facts.put(Fact(pool, "health", health))
    found = [*verdict.judge([rule], facts)]
    assert [each.fix.text for each in found] == ["Wait.", "Delete something.", "Delete something."]
    assert [each.command for each in found] == ["zpool list a", "", ""]
    (one,) = findings(found[:1], Facts())
    assert (one.fix.cost, one.fix.text) == ("needs restart", "Wait.")
    both = one._replace(verdicts=tuple(found))
    assert both.fix.text == "Delete something."


@pytest.mark.parametrize(
    ("sharenfs", "command"), [("off", "exportfs -v"), ("rw,async", "zfs get -r sharenfs tank"), (None, "exportfs -v")]
)
def test_async_is_looked_for_where_it_is_written(sharenfs: str | None, command: str) -> None:
    (rule,) = [each for each in shared.rules() if each.id == "nfs-export-async"]
    facts = Facts()
    facts.put(Fact(HOST, "pools", Known((TANK,), ())))
    facts.put(Fact(TANK, "datasets", Known((DATASET,), ())))
    facts.put(Fact(DATASET, "nfs_async", Known(True, (Evidence("seen"),))))
    for name, value in {"type": "filesystem", "readonly": "off", "sync": "standard"}.items():
        facts.put(Fact(DATASET, name, Known(value, (Evidence("seen"),))))
    facts.put(Fact(DATASET, "sharenfs", Known(sharenfs, ()) if sharenfs else unknown("not seen")))
    (found,) = verdict.judge([rule], facts)
    assert (found.outcome, found.command) == ("fail", command)


CASE = """
[[cases]]
when = "pool.health == 'ONLINE'"
"""
GRAVE, COUNTS = 'severity = "critical"\n', 'severity = "medium"\n'


@pytest.mark.parametrize(
    ("failure", "case", "least", "severity"),
    [
        (GRAVE, COUNTS, "medium", "critical"),
        (COUNTS, GRAVE, "medium", "critical"),
        (GRAVE, GRAVE, "critical", "critical"),
        (COUNTS, 'severity = "high"\n', "medium", "high"),
        (COUNTS, 'severity = "low"\n', "low", "medium"),
    ],
)
def test_a_case_that_may_hold_counts(failure: str, case: str, least: str, severity: str) -> None:
    """Whether the rule fails or is unknown: an answer that is lost never lowers the severity."""
    text = MINIMAL.replace('severity = "low"\n', failure) + CASE + case
    rule = load("a-rule", "a-rule.toml", text.encode(), registry())
    facts = Facts()
    facts.put(Fact(TANK, "health", unknown("not seen")))
    for outcome, capacity in (("unknown", unknown("not seen")), ("fail", Known(81, (Evidence("81 %"),)))):
        facts.replace(Fact(TANK, "capacity_percent", capacity))
        judged = verdict.judge_one(rule, TANK, facts)
        assert (judged.outcome, judged.least, judged.severity) == (outcome, least, severity)
        (finding,) = findings([judged], Facts())
        assert (finding.least, finding.severity) == (least, severity)
    facts.replace(Fact(TANK, "health", Known("ONLINE", ())))
    judged = verdict.judge_one(rule, TANK, facts)
    assert judged.severity == judged.least == rule.severities[0]
    facts.replace(Fact(TANK, "health", Known("DEGRADED", ())))
    judged = verdict.judge_one(rule, TANK, facts)
    assert judged.severity == judged.least == rule.severity
