"""JUnit XML, for CI: a failed rule is a failure, an undecided one an error, a waived one is skipped; only what passed, passes.

Written so that both schemas that are about accept it: Apache Ant's as it was written down by Windy Road, and that of Jenkins'
xUnit plugin (no name of all suites; properties, system-out and system-err; no time zone).
"""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from auditor.report.formats import Format
from auditor.report.report_reader import STANDINGS, Finding, ReportDocument, brief
from auditor.text import utc

NAME = 300


def render(report: ReportDocument) -> str:
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


FORMATS = {"junit": Format(text=render)}
