"""``zaudit diff --side-by-side``: a standby must be no worse than its primary, and what is not known may be worse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from auditor.report import sides, terminal
from auditor.report.changes import CompareError
from tests.fake import CommandLine
from tests.shared import HOSTS

GOOD, BAD = HOSTS / "2.4-healthy-physical-no-cache", HOSTS / "2.3-sync-disabled-local"
Document = dict[str, Any]


def page(found: sides.Sides, code: int) -> str:
    return terminal.fragment(sides.page(found, code), width=1000)


def report(host: str, *findings: tuple[str, str, str], **more: Any) -> Document:
    found = [
        {
            "rule": rule,
            "outcome": outcome,
            "severity": severity,
            "title": f"About {rule}",
            "impact": "Much.",
            "place": place,
        }
        for (rule, outcome, severity), place in zip(findings, ("tank", "pool2", "host"), strict=False)
    ]
    return {"schema": "zaudit-report/2", "host": host, "findings": found, **more}


FAIL, OPEN = ("a", "fail", "high"), ("a", "unknown", "high")


@pytest.mark.parametrize(
    ("primary", "standby", "certain", "code"),
    [
        ([], [], None, 0),
        ([], [FAIL], True, 13),
        ([], [OPEN], False, 13),
        ([FAIL], [], None, 0),
        ([FAIL], [FAIL], None, 0),
        ([FAIL], [OPEN], None, 0),  # it is no worse, whatever the answer is
        ([OPEN], [], None, 0),
        ([OPEN], [FAIL], False, 13),  # the primary may be as bad
        ([OPEN], [OPEN], False, 13),  # nobody can tell
        ([("a", "fail", "medium")], [FAIL], True, 13),
        ([("a", "unknown", "medium")], [FAIL], True, 13),
        ([FAIL], [("a", "fail", "medium")], None, 0),
        ([FAIL], [FAIL, ("a", "unknown", "critical")], False, 14),
    ],
)
def test_what_a_rule_says_of_both(primary: list[Any], standby: list[Any], certain: bool | None, code: int) -> None:
    found = sides.compare(report("db1", *primary), report("db2", *standby))
    assert [each.certain for each in found.differences] == ([] if certain is None else [certain])
    assert found.exit_code("low") == code
    assert found.exit_code("low", failed_only=True) == (0 if certain is None else code if certain else 10)


@pytest.mark.parametrize(("primary", "certain"), [("low", True), ("medium", False), ("high", None)])
def test_a_failure_counts_as_bad_as_it_may_be_and_is_certain_of_the_least(primary: str, certain: bool | None) -> None:
    standby = report("db2", FAIL)
    standby["findings"][0]["least"] = "medium"
    found = sides.compare(report("db1", ("a", "fail", primary)), standby)
    assert [each.certain for each in found.differences] == ([] if certain is None else [certain])
    standby["findings"][0]["least"] = "much"
    with pytest.raises(CompareError, match="severity"):
        sides.compare(report("db1"), standby)


def test_what_was_left_out_may_be_worse_and_what_is_waived_is_named() -> None:
    out = report("db2", left_out=[{"rule": "a", "severity": "critical", "by": "--skip"}], waived=[{"rule": "b"}])
    found = sides.compare(report("db1"), out)
    assert [(each.rule, each.certain) for each in found.differences] == [("a", False)]
    assert found.exit_code("low") == 14
    assert found.waived == ("b",)


def test_a_rule_that_is_no_text_is_told_as_one() -> None:
    """A report that was kept is as untrusted as any file."""
    found = sides.compare(report("db1", (5, "fail", "high")), report("db2"))  # type: ignore[arg-type]
    assert found.better == ("5",)
    assert "better in 1: 5 " in page(found, 0)


def column(**outcomes: str) -> Document:
    return {
        "datasets": ["x"],
        "events": {event: {"outcome": each, "text": f"{each}!"} for event, each in outcomes.items()},
    }


def test_events_are_those_of_the_dataset_that_fares_worst() -> None:
    primary = report("db1", events=[column(power="kept", crash="kept"), column(power="word", crash="kept")])
    standby = report("db2", events=[column(power="unknown", crash="kept", below="lost")])
    found = {row.event: row for row in sides.compare(primary, standby).events}
    assert {event: row.worse for event, row in found.items()} == {"power": True, "crash": False, "below": True}
    assert (found["power"].primary, found["power"].standby) == ("word!", "unknown!")
    back = {row.event: row.worse for row in sides.compare(standby, primary).events}
    assert not any(back.values())


@pytest.mark.parametrize(
    "wrong",
    [{"schema": "other/1"}, report("db2", ("a", "fail", "mild")), {"schema": "zaudit-report/2", "host": "x"},
     report("db2", events=[{"events": {"power": {"outcome": "fine", "text": ""}}}]), report("db2", events=3)],
)  # fmt: skip
def test_what_is_no_report(wrong: Document) -> None:
    with pytest.raises(CompareError):
        sides.compare(report("db1"), wrong)


def test_a_standby_that_ignores_fsync(zaudit: CommandLine) -> None:
    done = zaudit("diff", "--side-by-side", GOOD, BAD)
    assert done.code == 14
    assert "CRITICAL  sync-disabled" in done.out
    assert "the power fails: LOSES up to" in done.out
    assert "After a failover" in done.out
    document = json.loads(zaudit("diff", "--side-by-side", GOOD, BAD, "--format", "json").out)
    assert (document["schema"], document["exit_code"]) == ("zaudit-sides/1", 14)
    worse = {each["rule"]: each for each in document["worse"]}
    assert worse["sync-disabled"]["standby"]["state"] == "failed"
    assert worse["sync-disabled"]["primary"]["state"] == "as it should be"


def test_a_standby_that_is_better_or_the_same_is_no_finding(zaudit: CommandLine) -> None:
    done = zaudit("diff", "--side-by-side", BAD, GOOD)
    assert done.code == 0
    assert "sync-disabled" in done.out.rpartition("better in")[2]
    assert zaudit("diff", "--side-by-side", GOOD, GOOD).code == 0


def test_a_name_of_a_host_is_harmless() -> None:
    found = sides.compare(report("db1\x1b[2J"), report("db2\u202e", FAIL))
    assert "\x1b" not in page(found, 13)
    assert "\u202e" not in page(found, 13)


def test_two_hosts_of_one_name_are_told_apart_and_the_page_is_short() -> None:
    names = [(f"rule{number}", "unknown", "high") for number in range(sides.OPEN + 2)]
    both = [{**report("db", each)["findings"][0]} for each in names]
    found = sides.compare(
        report("db") | {"findings": both}, report("db", FAIL) | {"findings": [*both, *report("db", FAIL)["findings"]]}
    )
    text = page(found, 13)
    assert "db (primary), and db (standby) as its standby" in text
    assert "db (primary): as it should be" in text
    assert "db (standby): failed (tank)" in text
    assert "rule7 (high) and 2 more, which --format json names" in text
    assert f"{sides.OPEN + 2} of these are unknown on db (primary), too" in text
    assert "is worse in 1 rule, may be in 10" in text
