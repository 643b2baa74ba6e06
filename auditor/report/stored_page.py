"""The page of a report that was kept: what its data say, as a document for a terminal and a browser.

It judges nothing again and knows what the JSON has: no drives, no evidence by command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import Literal

from auditor.judge.event import EVENTS
from auditor.report import event_words
from auditor.report.audit_page import TONES
from auditor.report.document import (
    Block,
    Document,
    Entry,
    Events,
    Line,
    Look,
    Run,
    Say,
    Tone,
    Verdict,
    command,
    section,
)
from auditor.report.document import Finding as Shown
from auditor.report.report_reader import Finding, ReportDocument, brief, worst
from auditor.text import utc

LOOKS: dict[str, Look] = {"lost": "lost", "unknown": "unknown", "word": "word", "kept": "kept"}  # of cells
SAYS, COMMANDS = 4, 4  # sentences and commands of a finding
NAMES = 4  # datasets that fare alike


def document(report: ReportDocument) -> Document:
    """The answer, the table, what failed, what is unknown, known or waived."""
    groups = {
        "What failed": report.failed,
        "What is unknown": report.undecided,
        "Known to the baseline": report.known,
        "Waived": worst(report.waived),
    }
    facts: tuple[Line, ...] = (f"zaudit {report.zaudit}", f"{', '.join(report.targets) or 'all pools'} on {report.host}",
                               f"OpenZFS {report.openzfs}", utc(report.taken))  # fmt: skip
    blocks = (
        Verdict(TONES.get(report.standing, "open"), report.headline),
        *_events(report),
        *(section(title, map(_finding, found)) for title, found in groups.items() if found),
        *_left_out(report),
        Say(
            f"{report.coverage['decided']} of {report.coverage['rules']} rules decided, exit code {report.exit_code}.",
            "dim",
        ),
        Say(("Next: ", command(report.next))),
    )
    return Document(f"zaudit: {report.host}", facts, blocks)


def _events(report: ReportDocument) -> Iterator[Block]:
    """Events that end alike in a line."""
    groups = []
    for names, cells in report.events:
        shown = ", ".join(names[:NAMES]) or "databases of this host"
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        due = [event for event in EVENTS if event in cells]
        rows: list[tuple[str, Line]] = []
        for (outcome, text), alike in groupby(due, cells.__getitem__):
            rows.append((event_words.happening(tuple(alike)), Run(text, LOOKS.get(outcome, ""))))
        groups.append((f"{shown}{more}", tuple(rows)))
    if groups:
        yield Events(tuple(groups))


def _finding(each: Finding) -> Shown:
    unknown, aside = each.outcome == "unknown", bool(each.known or each.waiver)
    word = Run("UNKNOWN", "undecided") if unknown else Run(each.severity.upper(), each.severity)
    who = (f"{each.waiver.owner} until {each.waiver.expires}: {each.waiver.reason}",) if each.waiver else ()
    rows = chain(
        _rows("Risk", (each.impact,)),
        _rows("Because", each.says[1 : 1 + SAYS]),
        _rows("Fix", (each.fix.text,) if each.outcome == "fail" and not aside else ()),
        _rows("", map(command, each.fix.commands[:COMMANDS] if not aside else ())),
        _rows("More", (Run(each.more, "command", each.url),) if each.url else ()),
        _rows("Waived", who),
        _rows("Known", (f"since {each.known}",) if each.known else ()),
    )
    tone: Tone | Literal["dim"] = "dim" if aside else "open" if unknown else "bad"
    where = brief(each.where, 300)
    says = f"{'Unknown: ' * (unknown and not each.title.startswith('Unknown'))}{each.title}"
    return Shown(
        word, each.rule, where, f"{says}{': ' * bool(each.says)}{each.says[0] if each.says else ''}", tuple(rows), tone
    )


def _rows(label: str, lines: Iterable[Line]) -> Iterator[Entry]:
    return (Entry(Run("" if i else label, "dim"), line) for i, line in enumerate(lines) if line)


def _left_out(report: ReportDocument) -> Iterator[Block]:
    for rule, severity, by in report.left_out:
        yield Say(f"{rule} ({severity}) was left out by {by}.", "dim")
