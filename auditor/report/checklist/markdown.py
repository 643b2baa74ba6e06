"""A checklist for a ticket: task boxes, of which only a yes is ticked. What comes from hosts stands with every mark escaped."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.checklist.model import Answered, Checklist, Said
from auditor.report.checklist import words
from auditor.report.formats._told import brief
from auditor.report.formats.markdown import code, text
from auditor.text import harmless

LONGEST = 300


def render(found: Checklist, *, zaudit: str = "") -> str:
    """The text, which ends with a newline."""
    return "\n".join(_lines(found, zaudit)) + "\n"


def _lines(found: Checklist, zaudit: str) -> Iterator[str]:
    yield f"## Checklist of {_code(found.target)} on {_code(found.hostname)}: {words.counts(found)}\n"
    yield f"OpenZFS {_code(found.release)}, drawn up {words.when(found.made)} by {code(f'zaudit {zaudit}'.rstrip())}\n"
    yield from (f"- {name}: {_text(told)}" for name, told in words.evidence(found))
    if groups := words.no_by(found):
        yield "\n### No"
    for wrong, lines in groups:
        yield f"\n**{_text(wrong.text)}** Fix: {_do(wrong.do)}\n"
        for line in lines:
            yield from _line(line, [each for each in words.shown(line, False) if each != wrong])
    if opens := words.open_by(found):
        yield "\n### Open"
    for do, lines in opens:
        yield f"\n{_do(do)}:\n"
        for line in lines:
            yield from _line(line, words.shown(line, False))
    for answer in ("accepted", "yes"):
        if of := found.of(answer):
            yield f"\n### {words.HEADS[answer]}\n"
        for line in of:
            why = words.rests_on(found, line)
            yield f"- [{'x' if answer == 'yes' else ' '}] {_text(line.text)}: {_text(why)}"
    if told := words.inapplicable(found):
        yield f"\n### {words.HEADS['does not apply']}\n"
        yield from (f"- {title}, {count} lines: {_text(why)}" for title, count, why in told)
    yield f"\nNext: {_do(words.then(found))}"


def _line(line: Answered, said: tuple[Said, ...] | list[Said]) -> Iterator[str]:
    why = "; ".join(_text(each.text) for each in said)
    yield f"- [ ] {_text(line.text)}{f': {why}' if why else ''}"


def _do(do: str) -> str:
    return _code(do) if words.is_command(do) else _text(do)


def _text(told: str) -> str:
    return text(brief(harmless(told), LONGEST))


def _code(told: str) -> str:
    return code(brief(harmless(told), LONGEST))
