"""One JSON object a line, for a store of many hosts: first the report, then each finding, all with the host and the time.

The first line is there when nothing was found, too, so that a host that found nothing is not one that was never asked. Its
schema is ``jsonl_schema.json`` beside this file; keys may be added, and readers ignore those that they do not know.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from auditor.report.formats._told import Finding, Told

MEDIA = "application/x-ndjson"
SCHEMA = "zaudit-lines/1"


def render(told: Told) -> str:
    """The lines, the worst findings first as in the report."""
    return "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows(told))


def rows(told: Told) -> list[dict[str, Any]]:
    """What the lines say."""
    taken = datetime.fromtimestamp(told.taken, UTC).isoformat(timespec="seconds")
    common = {"schema": SCHEMA, "host": told.host, "taken": taken, "zaudit": told.zaudit, "rules": told.rules}
    found = ({**common, "kind": "finding", **_finding(each)} for each in told.all)
    return [{**common, "kind": "report", **_report(told)}, *found]


def _report(told: Told) -> dict[str, Any]:
    return {
        "openzfs": told.openzfs,
        "targets": list(told.targets),
        "standing": told.standing,
        "threshold": told.threshold,
        "exit_code": told.exit_code,
        "coverage": dict(told.coverage),
        "left_out": [rule for rule, _, _ in told.left_out],
        "events": [
            {"datasets": list(names), "outcomes": {event: outcome for event, (outcome, _) in cells.items()}}
            for names, cells in told.events
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
