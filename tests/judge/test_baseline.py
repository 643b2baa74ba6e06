"""What is known does not count, what is graver does; what was not seen is not fixed, and what is gone is not known any more."""

from __future__ import annotations

from typing import Any

import pytest

from auditor import audit, data
from auditor.facts import HOST, Fact, Facts, Reason, Subject, Unknown, known
from auditor.judge import baseline
from auditor.judge.baseline import Baseline, BaselineError
from auditor.judge.event import SEVERITIES
from auditor.judge.verdict import Verdict
from auditor.report.model import Report
from tests import shared

RULES = {rule.id: rule for rule in shared.rules()}
CHOSEN = [RULES[id] for id in ("sync-disabled", "pool-nearly-full")]
POOLS = ("tank", "fast")


def host(
    sync: dict[str, Any], pools: tuple[str, ...] = POOLS, day: float = 0, full: dict[str, Any] | None = None
) -> audit.Look:
    """A host with these datasets. sync: name -> (value, where it is set), or why it is not known."""
    facts = Facts(1.7e9 + day * 86400)
    facts.put(Fact(HOST, "hostname", known("db1", "")))
    facts.put(Fact(HOST, "pools", known(tuple(Subject("pool", name) for name in pools), "")))
    for name in pools:
        pool = Subject("pool", name)
        inside = tuple(Subject("dataset", each) for each in sync if each.partition("/")[0] == name)
        facts.put(Fact(pool, "datasets", known(inside, "")))
        facts.put(Fact(pool, "capacity_percent", known((full or {}).get(name, 10), "seen")))
        for dataset in inside:
            said = sync[dataset.name]
            value = (
                Unknown((Reason(said, lost="timed out" in said),))
                if isinstance(said, str)
                else known(said[0], "sync", "", origin=said[1])
            )
            facts.put(Fact(dataset, "sync", value))
            for fact, other in (("pool", pool), ("readonly", "off"), ("type", "filesystem"), ("role", "undeclared")):
                facts.put(Fact(dataset, fact, known(other, "")))
    return audit.Look(facts, ())


BAD: dict[str, Any] = {"tank": ("disabled", ""), "tank/db": ("disabled", "tank"), "fast": ("standard", "")}
TANK: baseline.Key = ("sync-disabled", "dataset", "tank")
GOOD: dict[str, Any] = dict.fromkeys(BAD, ("standard", ""))
BLIND: dict[str, Any] = dict.fromkeys(BAD, "zfs get: timed out")
MUTE: dict[str, Any] = dict.fromkeys(BAD, "zfs get: does not tell")  # and will not tomorrow


def judged(look: audit.Look, of: Baseline | None) -> Report:
    return audit.judge(look, CHOSEN, POOLS, "low", known=of)


def accepted(look: audit.Look, *, of: Baseline | None = None) -> Baseline:
    report = judged(look, of or baseline.empty(look.facts, ()))
    assert report.night
    return baseline.updated(report.night, report.verdicts, look.facts, accept=True)


def said(report: Report) -> list[tuple[str, bool, str, bool]]:
    return [(each.rule.id, each.failed, each.place, bool(each.known)) for each in report.findings]


def test_what_is_known_does_not_count_and_stays_in_the_report() -> None:
    of = accepted(host(BAD))
    assert [(each.rule, str(each.subject), each.outcome) for each in of.entries.values()] == [
        ("sync-disabled", "tank", "fail")
    ]
    report = judged(host(BAD, day=1), of)
    assert said(report) == [("sync-disabled", True, "tank", True)]
    assert (report.exit_code, report.standing, report.counts) == (0, "lost", (("known", 1),))
    (new,) = judged(host(BAD), None).findings
    assert report.findings[0].id == new.id, "it is the same finding, known or not"


def test_what_inherits_it_is_no_news_and_what_is_set_elsewhere_is() -> None:
    of = accepted(host(BAD))
    assert judged(host(BAD | {"tank/new": ("disabled", "tank")}), of).exit_code == 0
    report = judged(host(BAD | {"fast": ("disabled", "")}), of)
    assert said(report) == [("sync-disabled", True, "fast", False), ("sync-disabled", True, "tank", True)]
    assert report.exit_code == 14
    assert len({each.id for each in report.findings}) == 2


def test_a_graver_one_counts_and_a_milder_one_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    of = accepted(host(BAD))
    key = next(iter(of.entries))
    milder = of._replace(entries={key: of.entries[key]._replace(severity="high", cells=None)})
    assert judged(host(BAD), milder).exit_code == 14
    look = host(BAD, day=2)
    report = judged(look, milder)
    assert report.night
    new = baseline.updated(report.night, report.verdicts, look.facts).entries[key]
    assert (new.severity, new.last > new.first) == ("high", True), "an update accepts nothing"


def test_a_known_failure_that_is_not_seen_is_undecided_and_no_news_when_it_is_seen_again() -> None:
    of = accepted(host(BAD))
    blind = host(BLIND, day=1)
    report = judged(blind, of)
    assert report.exit_code == 14, "what is undecided counts as what it may be"
    assert all(not each.failed and not each.known for each in report.findings)
    assert [each.subject.name for each in report.verdicts if each.rule.id == "sync-disabled"] == list(BLIND)
    assert report.night
    assert [each.rule for each in report.night.unseen] == ["sync-disabled"]
    later = baseline.updated(report.night, report.verdicts, blind.facts)
    assert later.entries == of.entries, "it was last seen then"
    assert judged(host(BAD, day=2), later).exit_code == 0


def test_a_pool_that_is_not_audited_hides_nothing() -> None:
    of = accepted(host(BAD))
    without = host({"fast": ("standard", "")}, pools=("fast",), day=1)
    report = judged(without, of)
    assert [(each.rule.id, each.failed) for each in report.findings] == [("sync-disabled", False)]
    assert "its pool was not audited" in report.findings[0].reasons[0].text
    assert report.exit_code == 14
    assert report.night
    assert baseline.updated(report.night, report.verdicts, without.facts).entries == of.entries


def test_a_dataset_that_is_gone_is_gone_whatever_other_pools_are_audited() -> None:
    of = accepted(host({"tank": ("standard", ""), "tank/db": ("disabled", ""), "fast": ("standard", "")}))
    report = judged(host({"tank": ("standard", "")}, pools=("tank",), day=1), of)
    assert report.night
    assert [each.subject.name for each in report.night.gone] == ["tank/db"]
    assert report.findings == ()


def test_what_is_gone_is_gone_although_its_rule_fails_elsewhere() -> None:
    of = accepted(host({"tank": ("standard", ""), "tank/db": ("disabled", "")}, pools=("tank",)))
    report = judged(host({"tank": ("disabled", "")}, pools=("tank",), day=1), of)
    assert report.night
    assert ([str(each.subject) for each in report.night.gone], report.exit_code) == (["tank/db"], 14)


def test_what_passes_is_gone_although_its_rule_is_undecided_elsewhere() -> None:
    of = accepted(host({"tank": ("standard", ""), "tank/db": ("disabled", ""), "fast": ("standard", "")}))
    report = judged(host({"tank": ("standard", ""), "tank/db": ("standard", ""), "fast": "timed out"}, day=1), of)
    assert report.night
    assert [str(each.subject) for each in report.night.gone] == ["tank/db"]


@pytest.mark.parametrize(
    ("subject", "fates"),
    [
        (Subject("dataset", "tank/db"), {"tank": "gone", "fast": "unseen"}),
        (Subject("pool", "tank"), {"tank": "gone", "fast": "unseen"}),
        (Subject("leaf", "sda", "tank"), {"tank": "gone", "fast": "unseen"}),
        (Subject("disk", "sda"), {"tank": "unseen", "fast": "unseen"}),  # of either pool, or of both
    ],
)
def test_what_is_not_there_is_gone_only_where_its_pool_was_looked_at(subject: Subject, fates: dict[str, str]) -> None:
    rule = CHOSEN[0]
    entry = baseline.Entry(rule.id, subject, "S1", "fail", "critical", (), 1, "2023-11-14", "2023-11-14")
    of = baseline.empty(host(GOOD).facts, ())._replace(entries={entry.key: entry})
    for pools, fate in ({(pool,): fate for pool, fate in fates.items()} | {POOLS: "gone"}).items():
        _, night = baseline.apply(of, host({}, pools=pools).facts, (), [rule])
        assert {name: getattr(night, name) for name in ("unseen", "gone")} == {"unseen": (), "gone": ()} | {
            fate: (entry,)
        }


def test_a_drive_stays_known_however_many_nights_its_pool_is_not_audited() -> None:
    rule, disk = CHOSEN[0], Subject("disk", "sda")
    entry = baseline.Entry(rule.id, disk, "S1", "fail", "critical", (), 1, "2023-11-14", "2023-11-14")
    of = baseline.empty(host(GOOD).facts, ())._replace(entries={entry.key: entry})
    without = host({}, pools=("fast",)).facts
    for _ in range(3):
        found, night = baseline.apply(of, without, (), [rule])
        assert ([each.outcome for each in found], night.unseen, night.gone) == (["unknown"], (entry,), ())
        of = baseline.updated(night, found, without)
    _, night = baseline.apply(of, host({}).facts, (), [rule])
    assert night.gone == (entry,), "all pools are back, and it is not there"
    assert baseline.updated(night, (), without).pools == ("fast",)


def test_what_was_accepted_as_undecided_is_gone_with_its_pool() -> None:
    of = accepted(host(MUTE))
    report = judged(host({"fast": ("standard", "")}, pools=("fast",), day=1), of)
    assert report.night
    assert (report.night.unseen, len(report.night.gone)) == ((), len(of.entries))
    assert report.exit_code == 0


@pytest.mark.parametrize(
    ("sync", "outcome"),
    [
        ({"tank": "zfs get: does not tell", "tank/db": ("disabled", "tank")}, "fail"),
        ({"tank/db": ("disabled", "tank"), "tank": "zfs get: does not tell"}, "fail"),
        ({"tank": "zfs get: does not tell"}, "unknown"),
    ],
)
def test_of_one_place_a_failure_is_known_and_not_what_is_undecided_there(sync: dict[str, Any], outcome: str) -> None:
    of = accepted(host(sync, pools=("tank",)))
    assert of.entries[TANK].outcome == outcome


@pytest.mark.parametrize("order", [1, -1])
def test_of_one_place_the_gravest_is_known(order: int) -> None:
    rule, facts = CHOSEN[0], host(BAD).facts
    found = [
        Verdict(rule, Subject("dataset", f"tank/{severity}"), "fail", severity, origin="tank")
        for severity in SEVERITIES[1:3][::order]
    ]
    _, night = baseline.apply(baseline.empty(facts, ()), facts, found, [rule])
    (entry,) = baseline.updated(night, found, facts, accept=True).entries.values()
    assert (entry.subject.name, entry.severity) == ("tank", "high")


def test_an_update_accepts_nothing_that_fails_now() -> None:
    of, look = accepted(host(MUTE)), host(BAD, day=30)
    report = judged(look, of)
    assert report.night
    later = baseline.updated(report.night, report.verdicts, look.facts)
    assert later.entries[TANK] == of.entries[TANK], "as it was, not as it is"
    fresh = judged(look, baseline.empty(look.facts, ()))
    assert fresh.night
    assert baseline.updated(fresh.night, fresh.verdicts, look.facts).entries == {}


def test_what_is_accepted_again_is_known_since_the_first_day() -> None:
    again = accepted(host(BAD, day=30), of=accepted(host(BAD)))
    assert [(each.first, each.last) for each in again.entries.values()] == [("2023-11-14", "2023-12-14")]


def test_a_host_without_a_name_has_one_for_its_baseline() -> None:
    assert baseline.host(Facts()) == "unknown"


def test_what_is_gone_is_forgotten_and_would_be_new() -> None:
    of = accepted(host(BAD))
    for look in (host(GOOD, day=1), host({"fast": ("standard", ""), "tank": ("standard", "")}, day=1)):
        report = judged(look, of)
        assert report.exit_code == 0
        assert report.night
        assert [each.rule for each in report.night.gone] == ["sync-disabled"]
        later = baseline.updated(report.night, report.verdicts, look.facts)
        assert later.entries == {}
        assert judged(host(BAD, day=2), later).exit_code == 14


def test_what_is_unknown_is_known_where_it_stays_so() -> None:
    assert accepted(host(BLIND)).entries == {}, "there may be an answer tomorrow"
    of = accepted(host(MUTE))
    assert {each.outcome for each in of.entries.values()} == {"unknown"}
    assert judged(host(MUTE), of).exit_code == 0
    assert judged(host(BLIND), of).exit_code == 14, "an answer was lost, whatever it would have been"
    assert judged(host(BAD), of).exit_code == 14, "it fails now"


def test_accepting_on_a_blind_night_keeps_what_was_known() -> None:
    of = accepted(host(BAD))
    later = accepted(host(BLIND, day=1), of=of)
    assert later.entries[TANK] == of.entries[TANK]


def test_the_first_day_stays_and_the_last_one_moves() -> None:
    of = accepted(host(BAD))
    look = host(BAD, day=30)
    report = judged(look, of)
    assert report.night
    new = next(iter(baseline.updated(report.night, report.verdicts, look.facts).entries.values()))
    assert (new.first, new.last) == ("2023-11-14", "2023-12-14")


def test_a_rule_that_did_not_run_keeps_what_is_known_of_it() -> None:
    of = accepted(host(BAD))
    look = host(BAD, day=1)
    report = audit.judge(look, [RULES["pool-nearly-full"]], POOLS, "low", known=of)
    assert report.night
    assert [each.rule for each in report.night.kept] == ["sync-disabled"]
    assert baseline.updated(report.night, report.verdicts, look.facts).entries == of.entries


def test_what_a_retired_rule_knew_covers_nothing_and_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its successor nor any other rule is quieter by it."""
    of = accepted(look := host(BAD))
    old = {("sync-off", *key[1:]): entry._replace(rule="sync-off") for key, entry in of.entries.items()}
    monkeypatch.setattr(data, "retired", lambda: {"sync-off": "sync-off is retired: use rule sync-disabled"})
    report = judged(look, of._replace(entries=old))
    assert report.night
    assert any(failed for _, failed, _, _ in said(report))
    assert not any(known for _, _, _, known in said(report))
    assert baseline.updated(report.night, report.verdicts, look.facts).entries == {}


def test_a_baseline_reads_back() -> None:
    of = accepted(host(BAD | MUTE | {"tank": ("disabled", "")}))
    text = baseline.text(of)
    assert baseline.parse(text.encode(), "b") == of
    assert text.count("\n") == len(of.entries) + 2
    name = "tank/\udce9 \ud83d\n"
    entry = next(iter(of.entries.values()))._replace(subject=Subject("dataset", name), identity=name, number=2)
    strange = of._replace(entries={entry.key: entry})
    assert baseline.parse(baseline.text(strange).encode("ascii"), "b") == strange
    empty = baseline.empty(host(BAD).facts, ("tank",))
    assert baseline.parse(baseline.text(empty).encode(), "b") == empty


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('"zaudit-baseline/2"', '"zaudit-baseline/3"'),
        ('"power commits lost"', '"power commits kept"'),
        ('"power commits lost"', '"power commits"'),
        ('"identity": "tank"', '"identity": 7'),
        ('"cells": [', '"count": 0, "cells": ['),
        ('"fail"', '"pass"'),
        ('"critical"', '"none"'),
        ('"2023-11-14"', '"yesterday"'),
        ('"dataset"', '"disc"'),
        ('"rule"', '"role"'),
        ('"sync-disabled"', "7"),
        ("[\n", "{\n"),
        ("{", "["),
        ('"host"', '"guest"'),
        ('"tank"', '["tank"]'),
    ],
)
def test_what_is_not_understood_silences_nothing(was: str, now: str) -> None:
    text = baseline.text(accepted(host(BAD)))
    assert was in text
    with pytest.raises(BaselineError, match=r"^b: "):
        baseline.parse(text.replace(was, now).encode(), "b")
    with pytest.raises(BaselineError, match=r"^b: not a baseline of zaudit: baseline: host is missing$"):
        baseline.parse(text.replace('"host"', '"guest"').encode(), "b")
    with pytest.raises(BaselineError, match=r"^b: not a baseline of zaudit: its schema is neither zaudit-"):
        baseline.parse(b"{}", "b")
    with pytest.raises(BaselineError, match=r"^b: not a baseline of zaudit: its schema is neither zaudit-"):
        baseline.parse(b"[]", "b")
    with pytest.raises(BaselineError):
        baseline.parse(b"[" * 100_000, "b")
    with pytest.raises(BaselineError):
        baseline.parse(b"\xff", "b")


@pytest.mark.parametrize(
    ("name", "targets", "said"),
    [
        ("db2", (), "another host: db1, not db2 .where the host was renamed: zaudit baseline accept --was db1.$"),
        ("db1", ("tank", "fast"), "other targets: all pools, not tank fast$"),
    ],
)
def test_a_baseline_of_something_else_is_refused(name: str, targets: tuple[str, ...], said: str) -> None:
    of = accepted(host(BAD))
    baseline.must_fit(of, "db1", (), "b")
    with pytest.raises(BaselineError, match=f"baseline of {said}"):
        baseline.must_fit(of, name, targets, "b")
