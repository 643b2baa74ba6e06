"""A page about durability.toml, for the site: ``python -m tests.durability_page FOLDER`` writes docs/durability.md below it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from auditor.data import durability
from auditor.data.durability import COSTS, QUESTIONS, Cost, Table

PAGE = "docs/durability.md"
INTRODUCTION = """\
# What each setting and device costs

A commit that the database has acknowledged is safe while one copy of it survives and can be recovered. This page takes a host
on which every commit survives every event below, breaks one element of it, and says what that costs. It is made of
`auditor/data/durability.toml`, which zaudit's own model is tested against.

The host has its WAL and data on one dataset, a guard against torn pages, a mirror of two log devices and a mirror of two data
drives, and is no virtual machine. It exists twice: with drives that have documented power-loss protection, and with drives
that have volatile write caches and honour flushes.

Three questions: are acknowledged **commits** lost; is **consistency** lost, so that the database cannot recover from the files
that it finds; is the **pool** lost, or not importable as it is? *Lost* means that there is a moment of the event at which it is
lost. *Relies on* means: no loss as long as the named party does its part, which was not verified. An answer holds for all
worse events, too. What is not named is no loss.
"""


def markdown(table: Table) -> str:
    """The page."""
    return "\n".join(_lines(table)) + "\n"


def _lines(table: Table) -> Iterator[str]:
    yield INTRODUCTION
    yield from ("## Events", "", "| event | what it destroys | worse events |", "| --- | --- | --- |")
    for event in table.events.values():
        worse = ", ".join(each.title.lower() for each in table.events.values() if each.id in event.worse)
        yield f"| {event.title} | {event.destroys} | {worse} |"
    yield from ("", "## The two worlds", "")
    for world in table.worlds.values():
        yield f"- **{table.titles[world.worlds[0]]}.** {world.why}" + (
            f" Every commit, and the pool, relies on {world.relies_on} at a power cut, whatever else a table says."
            if world.relies_on
            else ""
        )
    for step, question in table.steps.items():
        rows = [row for row in table.rows if row.elements[0].partition(".")[0] == step]
        yield from ("", f"## {question}", "")
        yield from ("| broken | commits | consistency | pool |", "| --- | --- | --- | --- |")
        for row in rows:
            yield " | ".join((f"| {_title(table, row)}", *(cost(table, row, each) for each in QUESTIONS))) + " |"
        for row in rows:
            yield from ("", f"**{_title(table, row)}.** {row.why}", "")
            yield from ([f"Relies on {row.relies_on}.", ""] if row.relies_on else [])
            yield from ([f"*Not yet tried in the lab:* {row.open}.", ""] if row.open else [])
            yield f"Sources: {'; '.join(row.sources)}."
    yield from ("", "## Severity", "", "| severity | answer | events | why |", "| --- | --- | --- | --- |")
    for severity in dict.fromkeys(table.severities.values()):
        keys = [key for key, each in table.severities.items() if each == severity]
        answers = ", ".join(dict.fromkeys(answer for _, _, answer in keys))
        events = ", ".join(dict.fromkeys(table.events[event].title.lower() for _, event, _ in keys))
        yield f"| {severity.severity} | {answers} | {events} | {severity.why} |"


def _title(table: Table, row: Cost) -> str:
    where = "" if len(row.worlds) == len(table.worlds) else f" ({table.titles[row.worlds[0]].lower()})"
    return " together with ".join(table.titles[each] for each in row.elements) + where


def cost(table: Table, row: Cost, question: str) -> str:
    """At which events, the mildest ones, in words."""
    found = []
    for answer in COSTS:
        events = [each for each in table.events.values() if row.cells[question, each.id] == answer]
        mildest = [each for each in events if not any(each.id in milder.worse for milder in events)]
        if mildest:
            found.append(f"**{answer}**: {', '.join(each.title.lower() for each in mildest)}")
    return "; ".join(found) or "no loss"


if __name__ == "__main__":
    page = Path(sys.argv[1]) / PAGE
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(markdown(durability.load()))
