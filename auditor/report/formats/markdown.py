"""Markdown for a ticket: the answer, what each event costs, what failed with its fix, what could not be report.

What comes from hosts stands in code spans or with every mark escaped, so that no name of a dataset becomes a link, an image, a
mention of somebody or a heading. (spec.commonmark.org 6.1 Code spans, 2.4 Backslash escapes; GitHub Flavored Markdown, tables)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.judge.event import EVENTS, MEANS
from auditor.report.event_words import used
from auditor.report.formats import Format
from auditor.report.report_reader import Finding, ReportDocument, brief
from auditor.text import utc

GROUPS, FAILURES, OPEN = 5, 50, 50


def render(report: ReportDocument) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: ReportDocument) -> Iterator[str]:
    yield f"## {text(report.headline.capitalize())}\n"
    yield f"{code(report.host)}, OpenZFS {code(report.openzfs)}, seen {utc(report.taken)} by zaudit {code(report.zaudit)};"
    covered = report.coverage
    yield f"{covered['decided']} of {covered['rules']} rules decided, exit code {report.exit_code}.\n"
    yield from _events(report)
    failed, undecided = report.failed, report.undecided
    for each in failed[:FAILURES]:
        yield from _failure(each)
    yield from _more(failed, FAILURES)
    if undecided:
        yield "### Could not be told\n"
        yield from map(_open, undecided[:OPEN])
        yield ""
        yield from _more(undecided, OPEN)
    if known := report.known:
        yield "### Known to the baseline\n"
        yield from (f"- {code(each.rule)} ({each.outcome}, {each.severity}) at {code(brief(each.place, 120))}, since "
                    f"{text(each.known)}" for each in known[:OPEN])  # fmt: skip
        yield ""
        yield from _more(known, OPEN)
    if report.waived or report.left_out:
        yield "### Waived or left out\n"
        yield from map(_waived, report.waived[:OPEN])
        yield from (
            f"- {code(rule)} ({severity}): left out by {code(by)}" for rule, severity, by in report.left_out[:OPEN]
        )
        yield ""
        yield from _more(report.waived, OPEN)
    yield f"Next: {code(report.next)}"


def _events(report: ReportDocument) -> Iterator[str]:
    for names, cells in report.events[:GROUPS]:
        users = report.users
        shown = (
            ", ".join(code(each) + used(users.get(each, ()), code) for each in names[:4]) or "databases of this host"
        )
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        yield f"{shown}{more}:\n\n| when | then |\n|---|---|"
        yield from (f"| {MEANS[event]} | {text(cells[event][1])} |" for event in EVENTS if event in cells)
        yield ""
    yield from _more(report.events, GROUPS, "groups of datasets")


def _failure(each: Finding) -> Iterator[str]:
    yield f"### {each.severity.upper()}: {text(each.title)}\n"
    yield f"{code(each.rule)} at {code(brief(each.where, 300))}\n"
    yield from (f"- {text(brief(said, 400))}" for said in each.says[:4])
    yield f"- Risk: {text(each.impact)}"
    needs = f"{text(each.fix.needs)}: " if each.fix.needs else ""
    yield from (
        f"- Fix: {'' if i else needs}{code(brief(command, 400))}" for i, command in enumerate(each.fix.commands[:4])
    )
    yield f"- Fix ({text(each.fix.cost)}): {text(each.fix.text)}"
    yield f"- More: {code(each.more)}\n" if each.more else ""


def _open(each: Finding) -> str:
    why = "; ".join(each.says[:2])
    return f"- {code(each.rule)} at {code(brief(each.where, 120))}, would be {each.severity}: {text(brief(why, 400))}"


def _waived(each: Finding) -> str:
    assert each.waiver
    who = f"until {text(each.waiver.expires)} by {code(each.waiver.owner)}: {text(each.waiver.reason)}"
    return f"- {code(each.rule)} ({each.was}, {each.severity}) at {code(brief(each.place, 120))}: waived {who}"


def _more(of: tuple[object, ...], shown: int, what: str = "findings") -> Iterator[str]:
    if len(of) > shown:
        yield f"And {len(of) - shown} more {what}.\n"


def code(words: str) -> str:
    """A code span, whatever stands in it: the fence is longer than any run of backticks in the text."""
    fence = "`" * (max((len(run) for run in re.findall("`+", words)), default=0) + 1)
    room = " " if words.startswith(("`", " ")) or words.endswith(("`", " ")) or not words else ""
    return f"{fence}{room}{words}{room}{fence}"


def text(words: str) -> str:
    """Words in which no mark means anything. An @ or a # would be somebody or something on GitHub and GitLab."""
    escaped = re.sub(r"([\\`*_\[\]<>|~&])", r"\\\1", words)
    return re.sub(r"@|#(?=\d)|://|(?<=www)\.", lambda found: f"`{found[0]}`", escaped)


FORMATS = {"markdown": Format(text=render)}
