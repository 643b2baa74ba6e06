"""A checklist for a person at a terminal: how many lines are what, then what is no, what would answer the open ones, and what
is yes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from auditor.checklist.model import Answer, Answered, Checklist, Said
from auditor.report.checklist import words
from auditor.report.console import Hanging, printed
from auditor.text import harmless

STYLES: dict[Answer, str] = {"no": "bold red", "open": "bold magenta", "accepted": "bold blue", "yes": "green"}
BOXES: dict[Answer, str] = {"no": "[!]", "open": "[ ]", "accepted": "[a]", "yes": "[x]", "does not apply": "[-]"}
AT = 6


def render(
    found: Checklist,
    *,
    zaudit: str = "",
    width: int = 100,
    color: bool = False,
    ascii_only: bool = False,
    verbose: bool = False,
) -> str:
    """The whole list as text that ends with a newline. verbose: everything that a line rests on."""
    parts = [
        *_start(found, zaudit),
        *_no(found, verbose),
        *_open(found, verbose),
        *_plain(found, "accepted", verbose),
        *_plain(found, "yes", verbose),
        *_inapplicable(found),
        Text(),
        Hanging(Text("Next: "), Text(f"{harmless(words.then(found))}   (exit code {found.exit_code})"), 6),
    ]
    return printed(parts, width=max(width, 40), color=color, ascii_only=ascii_only)


def _start(found: Checklist, zaudit: str) -> Iterator[RenderableType]:
    first = Text(f"{harmless(found.target)} on {harmless(found.hostname)}: ", "bold")
    yield first.append(words.counts(found), "default not bold")
    head = (f"zaudit {zaudit}".rstrip(), f"OpenZFS {harmless(found.release)}", f"drawn up {words.when(found.made)}")
    yield Text(" · ".join(head), "dim")
    for name, text in words.evidence(found):
        style = "magenta" if text == "none" else ""
        yield Hanging(Text(f"  {name:<16}", "dim"), Text(text, style), 18)


def _head(found: Checklist, answer: Answer) -> Iterator[RenderableType]:
    yield Text()
    yield Text(f"{words.HEADS[answer].upper()}  {len(found.of(answer))}", STYLES.get(answer, "dim bold"))


def _no(found: Checklist, verbose: bool) -> Iterator[RenderableType]:
    """By what is wrong."""
    groups = words.no_by(found)
    if groups:
        yield from _head(found, "no")
    for wrong, lines in groups:
        yield Hanging(Text("  "), Text(harmless(wrong.text), "bold"), 2)
        yield Hanging(Text("  Fix ", "dim"), Text(harmless(wrong.do)), AT)
        for line in lines:
            yield _line(line)
            yield from _said([each for each in words.shown(line, verbose) if each != wrong])


def _plain(found: Checklist, answer: Answer, verbose: bool) -> Iterator[RenderableType]:
    """The lines with an answer, list by list."""
    lines = found.of(answer)
    if not lines:
        return
    yield from _head(found, answer)
    for id, title in found.titles:
        own = [each for each in lines if each.list == id]
        if own:
            yield Text(f"  {title}", "dim")
        for line in own:
            yield _line(line)
            if answer == "yes" and not verbose:
                yield _cut(Text(harmless(words.rests_on(found, line)), "dim"))
            else:
                yield from _said(words.shown(line, verbose))


def _open(found: Checklist, verbose: bool) -> Iterator[RenderableType]:
    """By what would answer them."""
    groups = words.open_by(found)
    if groups:
        yield from _head(found, "open")
    for do, lines in groups:
        yield Text(f"  {harmless(do)}", "dim" if do == words.PERSON else "bold")
        for line in lines:
            yield _line(line)
            yield from _said(words.shown(line, verbose))


def _inapplicable(found: Checklist) -> Iterator[RenderableType]:
    if told := words.inapplicable(found):
        yield from _head(found, "does not apply")
    for title, count, why in told:
        yield Hanging(Text("  [-] ", "dim"), Text(f"{title}, {count} line{'s' * (count > 1)}: {why}.", "dim"), AT)


def _line(line: Answered) -> RenderableType:
    return Hanging(Text(f"  {BOXES[line.answer]} ", STYLES.get(line.answer, "dim")), Text(f"{line.text}."), AT)


def _said(said: Sequence[Said]) -> Iterator[RenderableType]:
    for each in said:
        yield Hanging(Text(" " * AT), Text(harmless(each.text), "dim"), AT)


def _cut(text: Text) -> RenderableType:
    """On one line, as far as there is room."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return Padding(text, (0, 0, 0, AT))
