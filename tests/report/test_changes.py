"""``zaudit diff``: what is new, worse, gone and only unseen, and the exit code of a ratchet."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from auditor.report import changes
from auditor.report import report_json as json_report
from tests.fake import CommandLine
from tests.golden import OLDER, report_of

HEALTHY, BAD = OLDER / "2.3-healthy-mirrored-slog", OLDER / "2.3-sync-disabled-inherited"
NOBODY = OLDER / "2.3-healthy-mirrored-slog-nobody"


def subject(kind: str = "dataset", name: str = "tank", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "name": name, "evidence": [{"text": "seen"}], **more}


def report(*findings: tuple[str, str, str, dict[str, Any]], **head: Any) -> dict[str, Any]:
    found = [
        {"rule": rule, "outcome": outcome, "severity": severity, "title": f"About {rule}", "subjects": [each]}
        for rule, outcome, severity, each in findings
    ]
    same = {"schema": json_report.SCHEMA, "host": "db1", "targets": ["tank"], "openzfs": "2.3.9", "zaudit": "0.1.0"}
    return {**same, "findings": found, **head}


A = ("rule-a", "fail", "high", subject())
UNSEEN = ("rule-a", "unknown", "high", subject())


@pytest.mark.parametrize(
    ("old", "new", "change", "code"),
    [
        (report(), report(A), "new", 13),
        (report(), report(UNSEEN), "new", 13),
        (report(A), report(), "gone", 0),
        (report(UNSEEN), report(A), "worse", 13),
        (report(A), report(UNSEEN), "not seen", 13),
        (report(A), report(left_out=[{"rule": "rule-a", "severity": "high", "by": "--skip"}]), "not judged", 13),
        (report(A), report(("rule-a", "fail", "critical", subject())), "worse", 14),
        (report(A), report(("rule-a", "fail", "low", subject())), "better", 0),
        (report(A), report(("rule-a", "fail", "high", subject(evidence=[{"text": "else"}]))), "changed", 0),
        # the leaf failed; now the leaves of the pool could not be listed
        (
            report(("rule-a", "fail", "high", subject("leaf", "x", pool="tank"))),
            report(("rule-a", "unknown", "high", subject("pool", "tank"))),
            "not seen",
            13,
        ),
    ],
)
def test_changes(old: dict[str, Any], new: dict[str, Any], change: str, code: int) -> None:
    found = changes.compare(old, new)
    assert change in [each.change for each in found.differences]
    assert found.exit_code("low") == code
    assert found.exit_code("critical") == (14 if code == 14 else 0)


def known(*findings: tuple[str, str, str, dict[str, Any]]) -> dict[str, Any]:
    """A report in which a baseline knows these."""
    found = report(*findings, baseline={"made": "2026-01-01", "known": 1})
    return {**found, "findings": [{**each, "known": {"since": "2026-01-01"}} for each in found["findings"]]}


LATER = {"baseline": {"made": "2026-01-01", "known": 0}}  # a report with a baseline that knows none of them


@pytest.mark.parametrize(
    ("old", "new", "change", "code"),
    [
        (report(), known(A), "new", 0),
        (report(UNSEEN), known(A), "worse", 0),
        # the baseline knows it as undecided: that covers no failure that is out of sight
        (report(A), known(UNSEEN), "not seen", 13),
        # it was not told while it was known, and does count from now on
        (known(A), report(A, **LATER), "new", 13),
        (known(A), report(("rule-a", "fail", "medium", subject()), **LATER), "new", 12),
        (known(A), report(A), None, 0),
    ],
)
def test_what_a_baseline_knows(old: dict[str, Any], new: dict[str, Any], change: str | None, code: int) -> None:
    found = changes.compare(old, new)
    assert [each.change for each in found.differences] == ([change] if change else [])
    assert found.exit_code("low") == code


def test_what_cannot_be_told_counts_as_what_it_may_be_unless_failures_alone_are_asked_for() -> None:
    found = changes.compare(report(A), report(UNSEEN))
    assert (found.exit_code("low"), found.exit_code("low", failed_only=True)) == (13, 10)


def test_the_worst_stands_first_and_what_did_not_change_is_counted() -> None:
    low, critical = ("rule-b", "fail", "low", subject()), ("rule-c", "fail", "critical", subject())
    found = changes.compare(report(A, ("rule-d", "fail", "high", subject())), report(A, low, critical))
    assert [(each.change, each.shown.rule) for each in found.differences] == [
        ("new", "rule-c"),
        ("new", "rule-b"),
        ("gone", "rule-d"),
    ]
    assert found.same == 1
    assert found.notes == ()


def test_what_makes_two_reports_hard_to_compare_is_said() -> None:
    notes = changes.compare(report(), report(host="db2", targets=["tank/db"], zaudit="0.2.0")).notes
    assert [note.partition(":")[0] for note in notes] == [
        "different hosts",
        "different targets",
        "judged by zaudit 0.1.0, then by zaudit 0.2.0",
    ]


def test_recordings_and_reports_mixed(zaudit: CommandLine, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text(json_report.render(report_of(HEALTHY)))
    assert zaudit("diff", HEALTHY, kept).code == 0
    assert "0 new or worse, 0 other changes" in zaudit("diff", kept, kept).out
    done = zaudit("diff", kept, BAD)
    assert done.code == 14
    assert "NEW       sync-disabled  dataset tank   critical, failed" in done.out
    assert zaudit("diff", BAD, kept).code == 0
    back = json.loads(zaudit("diff", BAD, HEALTHY, "--format", "json").out)
    assert back["schema"] == "zaudit-diff/1"
    assert {(each["change"], each["rule"]) for each in back["changes"]} == {("gone", "sync-disabled")}
    assert back["exit_code"] == 0


def test_less_rights_mend_nothing(zaudit: CommandLine) -> None:
    """The same host as root and as nobody: nothing that failed is gone."""
    done = json.loads(zaudit("diff", HEALTHY, NOBODY, "--format", "json").out)
    assert "gone" not in {each["change"] for each in done["changes"]}
    failed = json.loads(zaudit("diff", HEALTHY, NOBODY, "--format", "json", "--failed-only").out)
    assert failed["exit_code"] in (0, 10)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "other"}', '{"schema": "zaudit-report/1"}'])
def test_what_is_no_report_is_a_usage_error(zaudit: CommandLine, tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    done = zaudit("diff", path, HEALTHY)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    assert zaudit("diff", tmp_path / "none", HEALTHY).code == 2


def test_a_malformed_finding_is_refused() -> None:
    good = report(A)
    for key in ("rule", "outcome", "severity", "title", "subjects"):
        bad = copy.deepcopy(good)
        del bad["findings"][0][key]
        with pytest.raises(changes.CompareError):
            changes.compare(good, bad)
    bad = copy.deepcopy(good)
    bad["findings"][0]["severity"] = "urgent"
    with pytest.raises(changes.CompareError, match="urgent"):
        changes.compare(good, bad)


def test_why_the_exit_code_is_not_0_stands_beside_it(zaudit: CommandLine) -> None:
    """What the newer recording does not tell may be worse than what the older one told."""
    done = zaudit("diff", OLDER / "2.3-sync-disabled-local", HEALTHY)
    last = done.out.splitlines()[-1]
    assert done.code == 14
    assert re.fullmatch(r"0 new or worse, \d+ unknown in NEW, .* \(exit code 14\)", last), last
    assert "-\n" not in done.out, "names of rules are not parted"
