"""SARIF (OASIS, Static Analysis Results Interchange Format 2.1.0), as it is specified and as GitHub reads it.

What zaudit judges is no file. The location of each finding is the page of its host, ``hosts/HOST``, or the file that it
was named after (``--name hosts/db1.tar.gz``), line 1; which subjects they are is said as logical
locations. As specified, what is unknown is ``open`` with level ``none`` (3.27.9: "insufficient
information"), and what is waived is there with its suppression (3.35). GitHub's code scanning reads neither kinds nor
suppressions: there what is unknown has the level that its failure would have, and begins with "Unknown: "; what is
waived is left out. (docs.github.com, SARIF support for code scanning)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

from auditor.judge.event import Severity
from auditor.report.formats import Format
from auditor.report.report_reader import Finding, ReportDocument, brief, worst
from auditor.text import utc

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS: dict[Severity, str] = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
PROBLEMS = {"error": "error", "warning": "warning", "note": "recommendation"}
TEXT = 1000  # characters; GitHub cuts at 1024


def document(report: ReportDocument, findings: Iterable[Finding], outcome: Callable[[Finding], dict[str, Any]]) -> str:
    """One run with these findings; outcome: what an edition says of one."""
    found = list(findings)
    rules = {each.rule: each for each in found} | {each.rule: each for each in found if each.was == "fail"}
    places = {rule: place for place, rule in enumerate(rules)}
    driver = {
        "name": "zaudit",
        "version": report.zaudit,
        "rules": [_rule(each) for each in rules.values()],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"zaudit/{report.host}/"},
        "invocations": [
            {
                "executionSuccessful": True,
                "exitCode": report.exit_code,
                "endTimeUtc": utc(report.taken, "%Y-%m-%dT%H:%M:%SZ"),
                "toolExecutionNotifications": [
                    {"level": "warning", "message": {"text": report.headline}} for _ in range(report.cannot_tell)
                ],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(each, report, places[each.rule]) | outcome(each) | _state(each, report.nightly) for each in found
        ],
        "properties": {
            "zaudit/standing": report.standing,
            "zaudit/threshold": report.threshold,
            "zaudit/coverage": dict(report.coverage),
            "zaudit/left_out": [rule for rule, _, _ in report.left_out],
        },
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _state(each: Finding, nightly: bool) -> dict[str, str]:
    """Against a baseline (3.27.24)."""
    return {"baselineState": "unchanged" if each.known else "new"} if nightly else {}


def message(each: Finding) -> str:
    """What was found or could not be report, in one text."""
    return brief(f"{each.title} ({brief(each.place, 100)}). {' '.join(each.says)}".strip(), TEXT)


def _rule(each: Finding) -> dict[str, Any]:
    """name is left out: the schema wants it to differ from the id, and there is no other."""
    level = LEVELS[each.severity]
    return {
        "id": each.rule,
        "shortDescription": {"text": brief(each.title, TEXT)},
        "fullDescription": {"text": brief(each.impact, TEXT)},
        "help": {
            "text": brief(f"{each.fix.text} ({each.fix.cost})", TEXT - 200)
            + (f" More: {each.more}." if each.more else "")
        },
        **({"helpUri": each.url} if each.url else {}),
        "defaultConfiguration": {"level": level},
        "properties": {"tags": ["durability", each.harm], "precision": "high", "problem.severity": PROBLEMS[level]},
    }


def _uri(host: str) -> str:
    """A name that is a path below the repository is that file."""
    parts = host.split("/")
    return quote(host) if len(parts) > 1 and not {"", ".", ".."} & set(parts) else f"hosts/{quote(host, safe='')}"


def _result(each: Finding, report: ReportDocument, place: int) -> dict[str, Any]:
    page = {
        "artifactLocation": {"uri": _uri(report.host)},
        "region": {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1},
    }
    logical = [
        {"fullyQualifiedName": "/".join(filter(None, (report.host, pool, name))), "name": name, "kind": "resource"}
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


# -- as specified ----------------------------------------------------------------------------------------------------------


def render_whole(report: ReportDocument) -> str:
    return document(report, report.all, _whole_outcome)


def _whole_outcome(each: Finding) -> dict[str, Any]:
    unknown = each.was == "unknown"
    said: dict[str, Any] = {
        "kind": "open" if unknown else "fail",
        "level": "none" if unknown else LEVELS[each.severity],
    }
    if each.waiver:
        why = f"{each.waiver.reason} ({each.waiver.owner}, until {each.waiver.expires})"
        said["suppressions"] = [{"kind": "external", "status": "accepted", "justification": why}]
    return said


# -- for GitHub ------------------------------------------------------------------------------------------------------------

RESULTS = 5000  # more it does not take up


def render_github(report: ReportDocument) -> str:
    """One run; of too many results the worst."""
    return document(report, worst(report.findings)[:RESULTS], _github_outcome)


def _github_outcome(each: Finding) -> dict[str, Any]:
    # the hash is what GitHub tells alerts apart by, and nothing else of an own name
    return {"level": LEVELS[each.severity], "partialFingerprints": {"primaryLocationLineHash": f"{each.id}:1"}}


FORMATS = {"sarif": Format(text=render_whole), "sarif-github": Format(text=render_github)}
