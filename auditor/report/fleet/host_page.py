"""The page of one host, made of its rows: what each event costs it, what fails and what nobody could tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from auditor.report.event_words import NOUNS
from auditor.report.finding_words import need
from auditor.report.fleet import words
from auditor.report.fleet.counting import Host, Read
from auditor.report.fleet.parts import colour, failing, severity, table
from auditor.report.fleet.rows import Events, Found, Key, Seen, Told, events, told, whole
from auditor.report.page import escaped, page, paragraph, section

FINDINGS, SAYS, EVENTS = 300, 10, 50  # of a host; sentences of a finding; groups of datasets
SIZE = 1 << 20  # characters of the findings of a page: all pages are held until the last row has been read
UNSEEN = "databases that nobody could see"
TEXT = 2000  # characters of one sentence
LONGEST = 200  # of the name of a file; a file system takes 255
ENDS = {
    "kept": "no loss",
    "word": "no loss, relies on others (not verified)",
    "lost": "LOSES commits",
    "unknown": "not known",
}
SECTIONS = {"fail": "What fails", "unknown": "What could not be decided", "waived": "Waived, or known before"}


@dataclass(slots=True)
class _Page:
    events: list[Events] = field(default_factory=list)
    found: dict[str, list[str]] = field(default_factory=dict)
    count: int = 0
    size: int = 0

    def add(self, each: Found, row: Mapping[str, Any]) -> None:
        self.count += 1
        if self.count <= FINDINGS and self.size < SIZE:
            said = _finding(each, told(row))
            self.size += len(said)
            self.found.setdefault(each.outcome if each.counts else "waived", []).append(said)


def file_name(host: str) -> str:
    """Of the page of a host: no place of its choice, and one that every file system takes."""
    name = quote(host, safe="")
    return f"{name if len(name) <= LONGEST else sha256(host.encode()).hexdigest()}.html"


def pages(read: Read, hosts: Sequence[Host]) -> Iterator[tuple[str, str]]:
    """(name of the file, page) of each of these hosts. read: gives the lines of all. Raises BadRows."""
    found: dict[Key, _Page] = {host.seen.key: _Page() for host in hosts}
    for row, line in whole(read()):
        match row:
            case Seen() if row.key in found:
                found[row.key].events = events(line)[:EVENTS]
            case Found() if row.key in found:
                found[row.key].add(row, line)
    for host in hosts:
        yield file_name(host.seen.name), _page(host, found.pop(host.seen.key))


def _page(host: Host, content: _Page) -> str:
    title, seen = f"zaudit: {host.seen.name}", host.seen
    shown = sum(map(len, content.found.values()))
    more = f"and {content.count - shown:,} more findings, which are in the rows" if content.count > shown else ""
    parts = [
        f"<h1>{escaped(title)}</h1>",
        paragraph(f"OpenZFS {seen.openzfs}, seen {words.moment(seen.taken)} UTC, rules {seen.rules}", "dim small"),
        f'<div class="verdict {colour(seen.standing)}"><div class="word">{escaped(words.OF_ONE[seen.standing].upper())}</div>'
        f"{paragraph(words.counts(host))}</div>",
        section("What each event costs", [_events(content.events)]),
        *(section(title, content.found.get(outcome, ()), "long") for outcome, title in SECTIONS.items()),
        paragraph(more, "dim small"),
        section("All that was seen", [f"<pre>{escaped(words.replay(host))}</pre>"] if words.replay(host) else []),
    ]
    return page(title, (part for part in parts if part))


def _events(every: Sequence[Events]) -> str:
    rows = (
        (
            escaped(words.names(each.datasets) or UNSEEN),
            *(ENDS.get(each.outcomes.get(event, ""), "-") for event in NOUNS),
        )
        for each in every
    )
    return table(("datasets", *NOUNS.values()), rows)


def _finding(each: Found, told: Told) -> str:
    says = [*told.says[:SAYS], *([f"and {len(told.says) - SAYS:,} more"] if len(told.says) > SAYS else [])]
    listed = "".join(f"<li>{escaped(sentence[:TEXT])}</li>" for sentence in says)
    mends = "".join(f"<dt>{label}</dt><dd>{text}</dd>" for label, text in _mends(each, told))
    kind, word = failing(each.severity, each.outcome), severity(each.severity, each.outcome)
    head = f"{word} <b>{escaped(each.rule)}</b> {escaped(each.place[:TEXT])}{paragraph(each.title[:TEXT])}"
    return f'<div class="finding {kind}">{head}<ul>{listed}</ul><dl>{mends}</dl></div>'


def _mends(each: Found, told: Told) -> Iterator[tuple[str, str]]:
    """(label, HTML): how to mend it, or what would decide it."""
    if each.outcome == "unknown":
        if each.remedies:
            yield "Needs", "<br>".join(escaped(need(remedy[:TEXT])) for remedy in each.remedies[:SAYS])
        return
    commands = "<br>".join(f"<code>{escaped(command[:TEXT])}</code>" for command in told.commands[:SAYS])
    if said := "<br>".join(part for part in (commands, escaped(told.text[:TEXT])) if part):
        yield "Fix", said + (f" [{escaped(told.cost)}]" if told.cost else "")
