"""Formats for other programs: CI, code scanning, stores, monitors and mails.

JUnit XML: a failed rule is a failure, an unknown one an error, a waived one is skipped. Apache Ant's schema (as Windy Road
wrote it down) and that of Jenkins' xUnit plugin both accept it: no name of all suites, no time zone, system-out last.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from auditor.codec import plain
from auditor.judge.event import EVENTS, Severity
from auditor.report.formats import Format
from auditor.report.report_reader import CELLS, STANDINGS, Finding, ReportDocument, brief, causes, worst
from auditor.text import shortened, utc

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


# SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format), as specified and as GitHub reads it.
#
# zaudit judges no file. The location of a finding is the page of its host, ``hosts/HOST``, or the file that it was
# named after (``--name hosts/db1.tar.gz``), line 1; subjects are logical locations. As specified, unknown is ``open``
# with level ``none`` (3.27.9), and waived has its suppression (3.35). GitHub's code scanning reads neither: there
# unknown has the level of its failure and begins with "Unknown: "; what is waived is left out. (docs.github.com, SARIF
# support for code scanning)


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS: dict[Severity, str] = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
PROBLEMS = {"error": "error", "warning": "warning", "note": "recommendation"}
TEXT = 1000  # characters; GitHub cuts at 1024


def sarif(report: ReportDocument, findings: Iterable[Finding], outcome: Callable[[Finding], dict[str, Any]]) -> str:
    found = list(findings)
    rules = {each.rule: each for each in found} | {each.rule: each for each in found if each.was == "fail"}
    places = {rule: place for place, rule in enumerate(rules)}
    driver = {"name": "zaudit", "version": report.zaudit, "rules": [_rule(each) for each in rules.values()]}
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


# One JSON object a line, for a store of many hosts: the report, then each finding, all with the host and the time. A
# host without findings has its first line, too. The schema is ``jsonl_schema.json``; keys may be added, and readers
# ignore unknown ones.


LINES = "zaudit-lines/1"
KEYS = (
    *("id", "rule", "outcome", "was", "severity", "harm", "event", "known", "place"),
    *("title", "says", "subjects", "total", "fix"),
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


# For monitors and mails: the state of a host in a line, its figures, and the worst findings.
#
# Nagios, Icinga: a line with figures, more lines, and one of four exit codes (nagios-plugins.org, Development
# Guidelines; old NRPE takes 4 KiB). Checkmk: a local check, one line with ``\n`` for line ends, whatever the exit code
# (docs.checkmk.com, Local checks). node-problem-detector: one line of at most 80 characters; 0 fine, 1 a problem, else
# unknown (pkg/custompluginmonitor/types: Status, max_output_length). A summary: one line a host, for a mail.


OK, WARNING, CRITICAL, UNKNOWN = range(4)
WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
LINE, NAMED, ROWS = 800, 3, 20


def state(report: ReportDocument) -> int:
    """The worst of what counts. A grave rule that could not be decided is not hidden by a mild one that failed, and nothing
    that is undecided is OK, nor a host of which so many rules were left out that nobody can tell. What is below the threshold
    of the report (--fail-on) does not count, as for its exit code."""
    grave, mild = (
        {each.outcome for each in report.counting if (each.severity in ("critical", "high")) is wanted}
        for wanted in (True, False)
    )
    for outcomes, failure in ((grave, CRITICAL), (mild, WARNING)):
        if "fail" in outcomes:
            return failure
        if "unknown" in outcomes:
            return UNKNOWN
    return UNKNOWN if report.cannot_tell else OK


def line(report: ReportDocument) -> str:
    """The answer, and the worst of what counts; of what does not count how much there is."""
    named = shortened(map(shortly, causes(worst(report.counting))), NAMED)
    known = len(report.known)
    beside = len(report.findings) - len(report.counting) - known
    below = [f"{beside} below {report.threshold}"] if beside else []
    below += [f"{known} known"] if known else []
    waived = [f"{len(report.waived)} waived"] if report.waived else []
    parts = ", ".join([*named, *below, *waived])
    said = f"{report.headline.lower()}: {parts}" if parts else report.headline.lower()
    return f"ZAUDIT {WORDS[state(report)]} - {brief(one_line(said), LINE)}"


def worst_rows(report: ReportDocument) -> list[str]:
    rows = (
        one_line(f"{each.standing.upper()} {each.severity} {each.rule} {brief(each.where, 120)}: {each.title}")
        for each in worst(report.all)
    )
    return shortened(rows, ROWS)


def figures(report: ReportDocument) -> dict[str, int]:
    """Failures by severity, what is unknown, what somebody answers for, and how many rules were asked."""
    counts = report.counts
    failures = {severity: counts["fail", severity] for severity in ("critical", "high", "medium", "low")}
    return {
        **failures,
        "undecided": len(report.undecided),
        "known": len(report.known),
        "waived": len(report.waived),
        "rules": report.coverage["rules"],
    }


def one_line(text: str) -> str:
    """Without what separates texts from figures, and parts of a perf string."""
    return "".join(" " if char in "|\\\r\n" else char for char in text.replace(";", ","))


def shortly(cause: Sequence[Finding]) -> str:
    """sync-disabled tank (critical); of what is unknown for one reason the most severe, how many more, and why."""
    worst, others = cause[0], len(cause) - 1
    if worst.outcome == "fail":
        return f"{worst.rule} {brief(worst.place, 80)} ({worst.severity})"
    more = f" and {others} more" if others else ""
    why = f": {brief(worst.says[0], 120)}" if others and worst.says else ""
    return f"unknown: {worst.rule} {brief(worst.place, 80)}{more} (may be {worst.severity}){why}"


# -- Nagios ----------------------------------------------------------------------------------------------------------------

NAGIOS_MOST = 3500


def nagios(report: ReportDocument) -> str:
    numbers = " ".join(f"{name}={value};;;0" for name, value in figures(report).items())
    text, length = [f"{line(report)} | {numbers}"], 0
    for row in worst_rows(report):
        if (length := length + len(row.encode()) + 1) > NAGIOS_MOST - len(text[0].encode()):
            break
        text.append(row)
    return "\n".join(text) + "\n"


# -- Checkmk ---------------------------------------------------------------------------------------------------------------

CHECKMK_SERVICE = '"zaudit"'


def checkmk(report: ReportDocument) -> str:
    numbers = "|".join(f"zaudit_{name}={value}" for name, value in figures(report).items())
    text = r"\n".join([line(report), *worst_rows(report)])
    return f"{state(report)} {CHECKMK_SERVICE} {numbers} {text}\n"


# -- node-problem-detector -------------------------------------------------------------------------------------------------

NPD_LINE = 80
FINE, PROBLEM, NOT_KNOWN = range(3)


def npd(report: ReportDocument) -> str:
    """The worst of what counts, and how much more there is."""
    counting = causes(worst(report.counting))
    if not counting:
        return f"{brief(one_line(report.headline.lower()), NPD_LINE)}\n"
    more = f" (+{len(counting) - 1})" if counting[1:] else ""
    return f"{brief(one_line(shortly(counting[0])), NPD_LINE - len(more))}{more}\n"


def npd_status(report: ReportDocument) -> int:
    return {OK: FINE, UNKNOWN: NOT_KNOWN}.get(state(report), PROBLEM)


# -- a line a host ---------------------------------------------------------------------------------------------------------


def summary(report: ReportDocument) -> str:
    """The line. What is unknown is named as such, also where nothing was found."""
    fresh = [each for each in report.findings if not each.known]
    failed = sum(each.outcome == "fail" for each in fresh)
    counted = (
        (failed, "new" if report.nightly else "failed"),
        (len(fresh) - failed, "unknown"),
        (len(report.findings) - len(fresh), "known"),
        (len(report.waived), "waived"),
        (len(report.left_out), "left out"),
    )
    counts = ", ".join(f"{count} {word}" for count, word in counted if count)
    named = shortened(map(shortly, causes(worst(fresh))), NAMED)
    nothing = "nothing new" if report.nightly else "nothing found"
    ahead = report.headline.lower() if report.cannot_tell else "" if fresh else nothing
    said = "; ".join(filter(None, [ahead, counts, ", ".join(named)]))
    return f"{report.host}: {said}   (exit code {report.exit_code})\n"


# For the textfile collector of node_exporter: one family of metrics for each question that an alert asks.
#
# The file is served until it is written again: an alert looks at the time of the last run first. The number of series
# is bounded: at most FINDINGS findings one by one, the most severe first. No label has a serial number. (prometheus.io,
# exposition formats, 0.0.4; node_exporter refuses timestamps)


FINDINGS, WAIVERS, LABEL = 200, 50, 200
Series = Iterable[tuple[Mapping[str, str], float]]
HELP = {
    "last_run_timestamp_seconds": "When the host was looked at, seconds since the epoch.",
    "info": "Who judged by which rules, and the answer to a power cut.",
    "exit_code": "0, or 10 (unknown), 11 (low) to 14 (critical).",
    "rules": "Rules by what came of them; those with a failure are the rest of all.",
    "left_out": "Rules left out or made less severe by choice.",
    "findings": "Findings by outcome and severity; what a baseline knows is a separate outcome.",
    "event_datasets": "Datasets by what an event would cost them.",
    "finding": "One for each finding, the most severe ones.",
    "finding_left_out": "Findings that are counted and not told one by one.",
    "known_bug": "One for each known bug of the release, of all that a finding counts.",
    "waiver_expires_timestamp_seconds": "When the last day of a waiver is over, seconds since the epoch.",
    "last_run_success": "1: a report was made; 0: zaudit ended without one.",
    "last_attempt_timestamp_seconds": "When zaudit ended without a report.",
}


def prometheus(report: ReportDocument) -> str:
    return "".join(_families(report))


def prometheus_failed(text: str, now: float) -> str:
    """When there is no report: what the last run came to replaces what an older one said."""
    return _success(0) + _family("last_attempt_timestamp_seconds", [({}, now)])


def _families(report: ReportDocument) -> Iterator[str]:
    names = {"version": report.zaudit, "rules": report.rules, "openzfs": report.openzfs, "standing": report.standing}
    words = {each: each for each in ("passed", "undecided", "not_applicable")} | {"all": "rules"}
    rules = [({"outcome": outcome}, report.coverage[key]) for outcome, key in words.items()]
    counts = [({"outcome": outcome, "severity": severity}, n) for (outcome, severity), n in report.counts.items()]
    shown = list(_each(report))
    yield _family("last_run_timestamp_seconds", [({}, report.taken)])
    yield _success(1)
    yield _family("info", [(names, 1)])
    yield _family("exit_code", [({}, report.exit_code)])
    yield _family("rules", rules)
    yield _family("left_out", [({}, len(report.left_out))])
    yield _family("findings", counts)
    yield _family("event_datasets", _events(report))
    yield _family("finding", shown[:FINDINGS])
    yield _family("finding_left_out", [({}, len(shown[FINDINGS:]))])
    yield _family("known_bug", _bugs(report))
    yield _family("waiver_expires_timestamp_seconds", _waivers(report)[:WAIVERS])


def _success(value: int) -> str:
    return _family("last_run_success", [({}, value)])


def _events(report: ReportDocument) -> Series:
    """Every outcome of each event that can happen to this host, zeros too; databases that were not seen are one."""
    counts = Counter[tuple[str, str]]()
    for names, cells in report.events:
        for event, (outcome, _) in cells.items():
            counts[event, outcome] += max(len(names), 1)
    events = [event for event in EVENTS if any(event in cells for _, cells in report.events)]
    return [({"event": event, "outcome": outcome}, counts[event, outcome]) for event in events for outcome in CELLS]


def _each(report: ReportDocument) -> Series:
    seen = set()
    for each in worst(report.all):
        labels = {
            "rule": each.rule,
            "outcome": each.standing,
            "severity": each.severity,
            "harm": each.harm,
            "event": each.event,
            "place": brief(each.place, LABEL),
        }
        if (key := tuple(labels.values())) not in seen:
            seen.add(key)
            yield labels, 1


def _bugs(report: ReportDocument) -> Series:
    """Each by its own name: a bug that joins changes no other series."""
    found = dict.fromkeys((bug, each.standing, severity) for each in report.all for bug, severity in each.bugs)
    return [({"bug": bug, "outcome": outcome, "severity": severity}, 1) for bug, outcome, severity in found][:FINDINGS]


def _waivers(report: ReportDocument) -> list[tuple[dict[str, str], float]]:
    """For each rule and owner the first that runs out, the earliest first."""
    ends: dict[tuple[str, str], float] = {}
    for each in report.waived:
        assert each.waiver
        key = each.rule, brief(each.waiver.owner, LABEL)
        end = datetime.combine(date.fromisoformat(each.waiver.expires), time.max, UTC).timestamp()
        ends[key] = min(ends.get(key, math.inf), end)
    return [
        ({"rule": rule, "owner": owner}, end) for (rule, owner), end in sorted(ends.items(), key=lambda each: each[1])
    ]


def _family(name: str, series: Series) -> str:
    text = "".join(f"zaudit_{name}{_labels(labels)} {int(value)}\n" for labels, value in series)
    return f"# HELP zaudit_{name} {HELP[name]}\n# TYPE zaudit_{name} gauge\n{text}" if text else ""


def _labels(labels: Mapping[str, str]) -> str:
    said = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{said}}}" if said else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


FORMATS = {
    "junit": Format(text=junit),
    "sarif": Format(text=render_whole),
    "sarif-github": Format(text=render_github),
    "jsonl": Format(text=jsonl),
    "nagios": Format(nagios, failed=lambda why, _: f"ZAUDIT UNKNOWN - {brief(one_line(why), LINE)}\n", status=state),
    "checkmk": Format(
        checkmk, failed=lambda why, _: f"{UNKNOWN} {CHECKMK_SERVICE} - ZAUDIT UNKNOWN - {brief(one_line(why), LINE)}\n"
    ),
    "npd": Format(npd, failed=lambda why, _: f"{brief(one_line(why), NPD_LINE)}\n", status=npd_status),
    "summary": Format(text=summary),
    "prometheus": Format(text=prometheus, failed=prometheus_failed, mode=0o644),  # node_exporter has a user of its own
}
