"""One JSON object a line, for a store of many hosts: first the report, then each finding, all with the host and the time.

The first line is there when nothing was found, too, so that a host that found nothing is not one that was never asked. Its
schema is ``jsonl_schema.json`` next to this file; keys may be added, and readers ignore those that they do not know.
"""

from __future__ import annotations

import json
from typing import Any

from auditor.codec import plain
from auditor.report.formats import Format
from auditor.report.report_reader import Finding, ReportDocument
from auditor.text import utc

SCHEMA = "zaudit-lines/1"
KEYS = (
    *(
        "id",
        "rule",
        "outcome",
        "was",
        "severity",
        "harm",
        "event",
        "known",
        "place",
        "title",
        "says",
        "subjects",
        "total",
    ),
    "fix",
)
PERHAPS = ("bugs", "page", "url", "waiver")


def render(report: ReportDocument) -> str:
    """The lines, the worst findings first as in the report."""
    return "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows(report))


def rows(report: ReportDocument) -> list[dict[str, Any]]:
    taken = utc(report.taken, "%Y-%m-%dT%H:%M:%S+00:00")
    common = {"schema": SCHEMA, "host": report.host, "taken": taken, "zaudit": report.zaudit, "rules": report.rules}
    found = ({**common, "kind": "finding", **_finding(each)} for each in report.all)
    return [{**common, "kind": "report", **_report(report)}, *found]


def _report(report: ReportDocument) -> dict[str, Any]:
    return {
        "openzfs": report.openzfs,
        "targets": list(report.targets),
        "standing": report.standing,
        "threshold": report.threshold,
        "exit_code": report.exit_code,
        "coverage": dict(report.coverage),
        "left_out": [rule for rule, _, _ in report.left_out],
        "events": [
            {"datasets": list(names), "outcomes": {event: outcome for event, (outcome, _) in cells.items()}}
            for names, cells in report.events
        ],
    }


def _finding(each: Finding) -> dict[str, Any]:
    """What is empty in most is left out."""
    found = plain(each)
    found["fix"] = {key: value for key, value in found["fix"].items() if value or key != "needs"}
    return {key: found[key] for key in KEYS} | {key: found[key] for key in PERHAPS if found[key]}


FORMATS = {"jsonl": Format(text=render)}
