"""One JSON object a line, for a store of many hosts: first the report, then each finding, all with the host and the time.

The first line is there when nothing was found, too, so that a host that found nothing is not one that was never asked. Its
schema is ``jsonl_schema.json`` beside this file; keys may be added, and readers ignore those that they do not know.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from auditor.report.formats import Format
from auditor.report.report_reader import Finding, ReportDocument

SCHEMA = "zaudit-lines/1"


def render(report: ReportDocument) -> str:
    """The lines, the worst findings first as in the report."""
    return "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows(report))


def rows(report: ReportDocument) -> list[dict[str, Any]]:
    taken = datetime.fromtimestamp(report.taken, UTC).isoformat(timespec="seconds")
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
    waiver = {"waiver": each.waiver._asdict()} if each.waiver else {}
    page = {"page": each.page} if each.page else {}
    return {
        "id": each.id,
        "rule": each.rule,
        "outcome": each.outcome,
        "was": each.was,
        "severity": each.severity,
        "harm": each.harm,
        "event": each.event,
        "known": each.known,
        "place": each.place,
        "title": each.title,
        "says": list(each.says),
        "subjects": [{"kind": kind, "pool": pool, "name": name} for kind, pool, name in each.subjects],
        "total": each.total,
        "fix": {"commands": list(each.commands), "text": each.fix, "cost": each.cost}
        | ({"needs": each.needs} if each.needs else {}),
        **({"bugs": [{"id": id, "severity": severity} for id, severity in each.bugs]} if each.bugs else {}),
        **page,
        **waiver,
    }


FORMATS = {"jsonl": Format(text=render)}
