"""JUnit XML, for CI: a failed rule is a failure, an undecided one an error, a waived one is skipped; only what passed, passes.

Written so that both schemas that are about accept it: Apache Ant's as it was written down by Windy Road, and that of Jenkins'
xUnit plugin (no name of all suites; properties, system-out and system-err; no time zone).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from auditor.codec import plain
from auditor.judge.event import Severity
from auditor.report.formats import Format
from auditor.report.report_reader import STANDINGS, Finding, ReportDocument, brief, worst
from auditor.text import utc

NAME = 300


def junit(report: ReportDocument) -> str:
    cases = [_case(each) for each in report.all]
    if report.cannot_tell:
        cases.append(
            f'<testcase classname="zaudit" name="what a power cut costs" time="0"><error type="undecided" '
            f"message={quoteattr(report.headline)}/></testcase>"
        )
    if passed := report.coverage["passed"]:
        cases.append(f'<testcase classname="zaudit" name="{passed} rules passed" time="0"/>')
    count = {standing: sum(each.standing == standing for each in report.all) for standing in STANDINGS}
    count["unknown"] += report.cannot_tell
    skipped = count["waived"] + count["known"]
    taken = utc(report.taken, "%Y-%m-%dT%H:%M:%S")
    host = quoteattr(brief(report.host, NAME) or "unknown")
    head = (
        f'<testsuite name="zaudit" id="0" package="zaudit" hostname={host} timestamp="{taken}" time="0" '
        f'tests="{len(cases)}" failures="{count["fail"]}" errors="{count["unknown"]}" skipped="{skipped}">'
    )
    body = "\n".join(
        ("<properties/>", *cases, f"<system-out>{escape(_coverage(report))}</system-out>", "<system-err/>")
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{head}\n{body}\n</testsuite>\n</testsuites>\n'


def _case(each: Finding) -> str:
    head = f'<testcase classname="zaudit.{each.severity}" name={quoteattr(brief(f"{each.rule} {each.place}", NAME))} time="0">'
    return f"{head}{_outcome(each)}</testcase>"


def _outcome(each: Finding) -> str:
    more = [f"More: {each.more}"] if each.more else []
    fixes = (*(f"Fix: {command}" for command in each.fix.steps), each.fix.text)
    said = [each.impact, *each.says, *fixes] if each.was == "fail" else [*each.says, f"If it fails: {each.impact}"]
    text = escape("\n".join([*said, *more]))
    match each.standing:
        case "fail":
            return f"<failure message={quoteattr(each.title)} type={quoteattr(each.severity)}>{text}</failure>"
        case "unknown":
            return f'<error message={quoteattr(each.title)} type="undecided">{text}</error>'
        case _:
            return "<skipped/>"  # Ant's schema has no room for words


def _coverage(report: ReportDocument) -> str:
    waived = [f"waived until {each.waiver.expires} by {each.waiver.owner}: {each.rule} {each.place} ({each.was}, "
              f"{each.severity}): {each.waiver.reason}" for each in report.waived if each.waiver]  # fmt: skip
    waived += [f"known since {each.known}: {each.rule} {each.place} ({each.outcome}, {each.severity})"
               for each in report.findings if each.known]  # fmt: skip
    out = [f"left out by {by}: {rule} ({severity})" for rule, severity, by in report.left_out]
    covered = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in report.coverage.items())
    return "\n".join([report.headline, covered, *waived, *out])


# SARIF (OASIS, Static Analysis Results Interchange Format 2.1.0), as it is specified and as GitHub reads it.
#
# What zaudit judges is no file. The location of each finding is the page of its host, ``hosts/HOST``, or the file that it
# was named after (``--name hosts/db1.tar.gz``), line 1; which subjects they are is said as logical
# locations. As specified, what is unknown is ``open`` with level ``none`` (3.27.9: "insufficient
# information"), and what is waived is there with its suppression (3.35). GitHub's code scanning reads neither kinds nor
# suppressions: there what is unknown has the level that its failure would have, and begins with "Unknown: "; what is
# waived is left out. (docs.github.com, SARIF support for code scanning)


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS: dict[Severity, str] = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
PROBLEMS = {"error": "error", "warning": "warning", "note": "recommendation"}
TEXT = 1000  # characters; GitHub cuts at 1024


def sarif(report: ReportDocument, findings: Iterable[Finding], outcome: Callable[[Finding], dict[str, Any]]) -> str:
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
    return sarif(report, report.all, _whole_outcome)


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
    return sarif(report, worst(report.findings)[:RESULTS], _github_outcome)


def _github_outcome(each: Finding) -> dict[str, Any]:
    # the hash is what GitHub tells alerts apart by, and nothing else of an own name
    return {"level": LEVELS[each.severity], "partialFingerprints": {"primaryLocationLineHash": f"{each.id}:1"}}


# One JSON object a line, for a store of many hosts: first the report, then each finding, all with the host and the time.
#
# The first line is there when nothing was found, too, so that a host that found nothing is not one that was never asked. Its
# schema is ``jsonl_schema.json`` next to this file; keys may be added, and readers ignore those that they do not know.


LINES = "zaudit-lines/1"
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


def jsonl(report: ReportDocument) -> str:
    """The lines, the worst findings first as in the report."""
    return "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows(report))


def rows(report: ReportDocument) -> list[dict[str, Any]]:
    taken = utc(report.taken, "%Y-%m-%dT%H:%M:%S+00:00")
    common = {"schema": LINES, "host": report.host, "taken": taken, "zaudit": report.zaudit, "rules": report.rules}
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


FORMATS = {
    "junit": Format(text=junit),
    "sarif": Format(text=render_whole),
    "sarif-github": Format(text=render_github),
    "jsonl": Format(text=jsonl),
}
