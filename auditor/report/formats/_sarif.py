"""What both editions of SARIF have in common (OASIS, Static Analysis Results Interchange Format 2.1.0).

What zaudit judges is no file. The location of each finding is the page of its host, ``hosts/HOST``, or the file that it
was named after (``--name hosts/db1.tar.gz``), line 1; which subjects they are is said as logical locations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from auditor.judge.event import Severity
from auditor.report.formats._told import Finding, Told, brief

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS: dict[Severity, str] = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
PROBLEMS = {"error": "error", "warning": "warning", "note": "recommendation"}
TEXT = 1000  # characters; GitHub cuts at 1024


def document(told: Told, findings: Iterable[Finding], outcome: Callable[[Finding], dict[str, Any]]) -> str:
    """One run with these findings; outcome: what an edition says of one."""
    found = list(findings)
    rules = {each.rule: each for each in found} | {each.rule: each for each in found if each.was == "fail"}
    places = {rule: place for place, rule in enumerate(rules)}
    driver = {
        "name": "zaudit",
        "version": told.zaudit,
        "rules": [_rule(each) for each in rules.values()],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"zaudit/{told.host}/"},
        "invocations": [
            {
                "executionSuccessful": True,
                "exitCode": told.exit_code,
                "endTimeUtc": datetime.fromtimestamp(told.taken, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "toolExecutionNotifications": [
                    {"level": "warning", "message": {"text": told.headline}} for _ in range(told.cannot_tell)
                ],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(each, told, places[each.rule]) | outcome(each) | _state(each, told.nightly) for each in found
        ],
        "properties": {
            "zaudit/standing": told.standing,
            "zaudit/threshold": told.threshold,
            "zaudit/coverage": dict(told.coverage),
            "zaudit/left_out": [rule for rule, _, _ in told.left_out],
        },
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _state(each: Finding, nightly: bool) -> dict[str, str]:
    """Against a baseline (3.27.24)."""
    return {"baselineState": "unchanged" if each.known else "new"} if nightly else {}


def message(each: Finding) -> str:
    """What was found or could not be told, in one text."""
    return brief(f"{each.title} ({brief(each.place, 100)}). {' '.join(each.says)}".strip(), TEXT)


def _rule(each: Finding) -> dict[str, Any]:
    """name is left out: the schema wants it to differ from the id, and there is no other."""
    level = LEVELS[each.severity]
    return {
        "id": each.rule,
        "shortDescription": {"text": brief(each.title, TEXT)},
        "fullDescription": {"text": brief(each.impact, TEXT)},
        "help": {
            "text": brief(f"{each.fix} ({each.cost})", TEXT - 200) + (f" More: {each.more}." if each.more else "")
        },
        "defaultConfiguration": {"level": level},
        "properties": {"tags": ["durability", each.harm], "precision": "high", "problem.severity": PROBLEMS[level]},
    }


def _uri(host: str) -> str:
    """A name that is a path below the repository is that file."""
    parts = host.split("/")
    return quote(host) if len(parts) > 1 and not {"", ".", ".."} & set(parts) else f"hosts/{quote(host, safe='')}"


def _result(each: Finding, told: Told, place: int) -> dict[str, Any]:
    page = {
        "artifactLocation": {"uri": _uri(told.host)},
        "region": {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1},
    }
    logical = [
        {"fullyQualifiedName": "/".join(filter(None, (told.host, pool, name))), "name": name, "kind": "resource"}
        for _, pool, name in each.subjects
    ]
    return {
        "ruleId": each.rule,
        "ruleIndex": place,
        "message": {"text": message(each)},
        "locations": [{"physicalLocation": page, "logicalLocations": logical}],
        "partialFingerprints": {"zauditFinding/v1": each.id},
        "properties": {"zaudit/severity": each.severity, "zaudit/outcome": each.outcome, "zaudit/event": each.event},
    }
