"""The report itself: the page for a person at a terminal, the one for a browser with the pool as a tree, and the report for
programs, from which all others can be made again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import TYPE_CHECKING, Literal

from auditor.judge.event import EVENTS, MEANS
from auditor.report import audit_page, html, phrases, report_json, terminal
from auditor.report import document as doc
from auditor.report.audit_page import TONES
from auditor.report.formats import Format
from auditor.report.phrases import used
from auditor.report.report_reader import Finding, ReportDocument, brief, worst
from auditor.text import few, utc

if TYPE_CHECKING:
    from auditor.report.model import Report


def _json(report: Report, verbose: int, _: object) -> str:
    return report_json.render(report, passed=verbose > 1)


# The page of a report that was kept: what its data say, as a document for a terminal and a browser.
#
# It judges nothing again and knows what the JSON has: no drives, no evidence by command.


LOOKS: dict[str, doc.Look] = {"lost": "lost", "unknown": "unknown", "word": "word", "kept": "kept"}  # of cells
SAYS, COMMANDS = 4, 4  # sentences and commands of a finding
NAMES = 4  # datasets that fare alike


def document(report: ReportDocument) -> doc.Document:
    """The answer, the table, what failed, what is unknown, known or waived."""
    groups = {
        "What failed": report.failed,
        "What is unknown": report.undecided,
        "Known to the baseline": report.known,
        "Waived": worst(report.waived),
    }
    facts: tuple[doc.Line, ...] = (f"zaudit {report.zaudit}", f"{', '.join(report.targets) or 'all pools'} on {report.host}",
                               f"OpenZFS {report.openzfs}", utc(report.taken))  # fmt: skip
    blocks = (
        doc.Verdict(TONES.get(report.standing, "open"), report.headline),
        *_events(report),
        *(doc.section(title, map(_finding, found)) for title, found in groups.items() if found),
        *_left_out(report),
        doc.Say(
            f"{report.coverage['decided']} of {report.coverage['rules']} rules decided, exit code {report.exit_code}.",
            "dim",
        ),
        doc.Say(("Next: ", doc.command(report.next))),
    )
    return doc.Document(f"zaudit: {report.host}", facts, blocks)


def _events(report: ReportDocument) -> Iterator[doc.Block]:
    """Events that end alike in a line."""
    groups = []
    for names, cells in report.events:
        due = [event for event in EVENTS if event in cells]
        rows: list[tuple[str, doc.Line]] = []
        for (outcome, text), alike in groupby(due, cells.__getitem__):
            rows.append((phrases.happening(tuple(alike), due), doc.Run(text, LOOKS.get(outcome, ""))))
        groups.append((few(names, NAMES) or "databases of this host", tuple(rows)))
    if groups:
        yield doc.Events(tuple(groups))


def _finding(each: Finding) -> doc.Finding:
    unknown, aside = each.outcome == "unknown", bool(each.known or each.waiver)
    word = doc.Run("UNKNOWN", "undecided") if unknown else doc.Run(each.severity.upper(), each.severity)
    who = (f"{each.waiver.owner} until {each.waiver.expires}: {each.waiver.reason}",) if each.waiver else ()
    rows = chain(
        _rows("Risk", (each.impact,)),
        _rows("Because", each.says[1 : 1 + SAYS]),
        _rows("Fix", (each.fix.text,) if each.outcome == "fail" and not aside else ()),
        _rows("", map(doc.command, each.fix.commands[:COMMANDS] if not aside else ())),
        _rows("More", ((doc.command(each.more), ": ", doc.Run(each.url, "", each.url)),) if each.url else ()),
        _rows("Waived", who),
        _rows("Known", (f"since {each.known}",) if each.known else ()),
    )
    tone: doc.Tone | Literal["dim"] = "dim" if aside else "open" if unknown else "bad"
    where = brief(each.where, 300)
    says = f"{'Unknown: ' * (unknown and not each.title.startswith('Unknown'))}{each.title}"
    return doc.Finding(
        word, each.rule, where, f"{says}{': ' * bool(each.says)}{each.says[0] if each.says else ''}", tuple(rows), tone
    )


def _rows(label: str, lines: Iterable[doc.Line]) -> Iterator[doc.Entry]:
    return (doc.Entry(doc.Run("" if i else label, "dim"), line) for i, line in enumerate(lines) if line)


def _left_out(report: ReportDocument) -> Iterator[doc.Block]:
    for rule, severity, by in report.left_out:
        yield doc.Say(f"{rule} ({severity}) was left out by {by}.", "dim")


# Markdown for a ticket: the answer, what each event costs, what failed with its fix, what could not be report.
#
# What comes from hosts stands in code spans or with every mark escaped, so that no name of a dataset becomes a link, an
# image, a mention of somebody or a heading. (spec.commonmark.org 6.1 Code spans, 2.4 Backslash escapes; GitHub Flavored
# Markdown, tables)


GROUPS, FAILURES, OPEN = 5, 50, 50


def markdown(report: ReportDocument) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: ReportDocument) -> Iterator[str]:
    yield f"## {text(report.headline.capitalize())}\n"
    yield f"{code(report.host)}, OpenZFS {code(report.openzfs)}, seen {utc(report.taken)} by zaudit {code(report.zaudit)};"
    covered = report.coverage
    yield f"{covered['decided']} of {covered['rules']} rules decided, exit code {report.exit_code}.\n"
    yield from _markdown_events(report)
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


def _markdown_events(report: ReportDocument) -> Iterator[str]:
    for names, cells in report.events[:GROUPS]:
        shown = few([code(each) + used(report.users.get(each, ()), code) for each in names], NAMES)
        yield f"{shown or 'databases of this host'}:\n\n| when | then |\n|---|---|"
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


FORMATS = {
    "terminal": Format(
        page=lambda report, verbose, look: audit_page.write_text(report, verbose=verbose, **look),
        text=lambda kept: terminal.write(document(kept)),
    ),
    "html": Format(
        page=lambda report, verbose, _: audit_page.write_html(report, verbose=verbose),
        text=lambda kept: html.write(document(kept)),
    ),
    "json": Format(
        page=_json,
        text=lambda report: json.dumps(report.document, indent=1, ensure_ascii=True) + "\n",  # as it was, key by key
    ),
    "markdown": Format(text=markdown),
}
