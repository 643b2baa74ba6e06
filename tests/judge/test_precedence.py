"""What has to come before a fix: the model tries each alone, on recorded hosts and on the same with faults supposed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from auditor import audit
from auditor.judge import precedence
from auditor.judge.event_table import EventTable
from auditor.judge.finding import RANK, Finding
from auditor.judge.precedence import is_worse, sets
from auditor.judge.supposition import SuppositionError, parse
from auditor.recording.recording import ReplayHost
from auditor.report import phrases
from auditor.report.model import Report
from tests.shared import audited, each_host, host

POSTGRES, DEGRADED = "2.3-db-postgres-healthy", "2.1-degraded-mirror"
OFF = "modprobe.d zil_replay_disable=1"


def look(name: str, supposed: Sequence[str] = ()) -> audit.Look:
    past = host(name)
    seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    return audit.suppose(seen, [parse(each) for each in supposed])


def judged(seen: audit.Look) -> Report:
    return audit.judge(seen, audited(), [each.name for each in seen.roots], "low")


def of_rule(report: Report, rule: str) -> dict[str, Finding]:
    return {each.place: each for each in report.findings if each.failed and each.rule.id == rule}


@pytest.mark.parametrize(
    ("supposed", "rule", "needs"),
    [
        (["postgres fsync=off"], "pg-fsync-off", ""),
        (["postgres fsync=off", "postgres full_page_writes=off"], "pg-fsync-off", "After full_page_writes = on"),
        (["tank sync=disabled"], "sync-disabled", ""),
        ([OFF], "boot-option-loses-commits", ""),
        ([OFF, "postgres full_page_writes=off"], "boot-option-loses-commits", "After full_page_writes = on"),
        (
            [OFF, "tank/pg/wal sync=disabled"],
            "boot-option-loses-commits",
            "After zfs set sync=standard tank/pg/wal",
        ),
    ],
)
def test_what_comes_first(supposed: Sequence[str], rule: str, needs: str) -> None:
    (found,) = of_rule(judged(look(POSTGRES, supposed)), rule).values()
    assert found.fix.needs == needs


def test_what_goes_together() -> None:
    """With sync=standard on one of them alone the log or the data of the database is behind the other after a crash."""
    report = judged(look(POSTGRES, ["tank/pg sync=disabled", "tank/pg/wal sync=disabled"]))
    needs = {place: found.fix.needs for place, found in of_rule(report, "sync-disabled").items()}
    assert needs == {
        "tank/pg": "Together with zfs set sync=standard tank/pg/wal",
        "tank/pg/wal": "Together with zfs set sync=standard tank/pg",
    }


def test_what_the_rule_says_stays() -> None:
    """Whether the unknown database has a guard against torn pages is asked as well."""
    places = of_rule(judged(look("2.3-odd-names")), "sync-disabled")
    guard = "if neither full_page_writes nor innodb_doublewrite is off"
    assert places["my pool/data set"].fix.needs == f"After zfs set sync=standard 'my pool/x:y.z-1', and {guard}"


@pytest.mark.parametrize("name", each_host())
def test_no_fix_is_shown_that_alone_makes_something_worse(name: str) -> None:
    seen = look(name)
    before = EventTable(seen.facts).answers()
    tried = 0
    for found in judged(seen).findings:
        if found.failed and RANK[found.severity] > RANK["low"] and (changes := sets(found, seen.facts)):
            try:
                after = EventTable(audit.suppose(seen, changes).facts).answers()
            except SuppositionError:  # of what was not seen nothing can be supposed
                continue
            tried += 1
            assert found.fix.needs or not is_worse(before, after), found.rule.id
    assert tried or not any(each.fix.sets for each in judged(seen).findings if each.failed and each.severity != "low")


def test_a_setting_that_ends_a_loss_comes_before_a_leg_that_may_cost_one() -> None:
    """A degraded pool loses something at the next failure; sync=disabled at each crash."""
    report = judged(look(DEGRADED, ["tank sync=disabled"]))
    assert report.lead is not None
    step = phrases.first(report)
    assert step is not None
    assert (report.lead.rule.id, step[1].rule.id) == ("pool-degraded", "sync-disabled")
    assert step[1].ends > 0
    without = phrases.first(judged(look(DEGRADED)))
    assert without is not None
    assert without[1].rule.id == "pool-degraded"


@pytest.mark.parametrize("name", each_host())
def test_the_model_asks_for_all_that_it_needs(name: str) -> None:
    """What is derived when it is asked for gives the same answers."""
    seen = look(name)
    assert EventTable(audit.for_model(seen.facts, ())).answers() == EventTable(seen.facts).answers()


@pytest.mark.parametrize(("most", "needs"), [(0, ""), (1_000_000, "After full_page_writes = on")])
def test_a_large_host_is_tried_less_often(most: int, needs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedence, "SUBJECTS", most)
    report = judged(look(POSTGRES, ["postgres fsync=off", "postgres full_page_writes=off"]))
    assert of_rule(report, "pg-fsync-off").popitem()[1].fix.needs == needs


def test_what_is_worse_and_has_no_remedy_is_not_called_safe() -> None:
    seen = look(POSTGRES, ["postgres fsync=off", "postgres full_page_writes=off"])
    found = of_rule(judged(seen), "pg-fsync-off").popitem()[1]
    alone = found._replace(verdicts=tuple(each._replace(case=None) for each in found.verdicts))
    table = EventTable(seen.facts)
    (shown,) = precedence.ordered([alone], table, seen.facts, lambda changes: audit.for_model(seen.facts, changes))
    assert shown.fix.needs == precedence.UNSOLVED
