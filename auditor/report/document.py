"""A page before anybody decides how it looks: what the features build, and ``terminal`` and ``html`` write.

Texts are as they were found. Whoever writes them makes them harmless, so no feature can forget it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from auditor.report.html import Element

Tone = Literal["good", "bad", "open"]
Cost = Literal["safe", "needs restart", "rebuilds the pool", "destroys data"]  # of a fix
Look = (
    Tone
    | Literal["", "strong", "dim", "command", "repeat"]  # repeat: a command that shows the same again
    | Literal["critical", "high", "medium", "low", "undecided", "waived", "known", "passed"]
    | Literal["lost", "unknown", "word", "kept"]
    | Cost
)


@dataclass(frozen=True, slots=True)
class Run:
    """Text in one look. link: where a browser goes from it."""

    text: str
    look: Look = ""
    link: str = ""


Line = str | Run | tuple[str | Run, ...]


def runs(line: Line) -> tuple[Run, ...]:
    """The runs of a line, the empty ones left out."""
    parts = line if isinstance(line, tuple) else (line,)
    whole = (each if isinstance(each, Run) else Run(each) for each in parts)
    return tuple(each for each in whole if each.text)


def plain(line: Line) -> str:
    return "".join(each.text for each in runs(line))


def command(text: str) -> Run:
    return Run(text, "command")


class Say(NamedTuple):
    """A paragraph."""

    line: Line
    look: Look = ""


class Entry(NamedTuple):
    """A word in the margin, and what it says."""

    word: Run
    line: Line


class Entries(NamedTuple):
    """Words in the margin, each with what it says. at: the column of what they say; right: the words end there."""

    rows: tuple[Entry, ...]
    at: int = 10
    right: bool = False


def labelled(rows: Iterable[tuple[Run | str, Line]], at: int = 10, *, right: bool = False) -> Entries:
    """Of pairs; a word without a look is dim."""
    return Entries(
        tuple(Entry(word if isinstance(word, Run) else Run(word, "dim"), line) for word, line in rows if plain(line)),
        at,
        right,
    )


class Finding(NamedTuple):
    """What was found: CRITICAL  sync-disabled  tank, a sentence, and rows as of Entries."""

    word: Run
    name: str
    where: Line
    says: str
    rows: tuple[Entry, ...]
    tone: Tone | Literal["dim"] = "bad"


class Column(NamedTuple):
    """number: ends at the right; aside: below the first column where there is little room; most: its width."""

    head: str = ""
    number: bool = False
    aside: bool = False
    most: int | None = None


class Table(NamedTuple):
    """Rows of cells."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Line, ...], ...]


def table(columns: Sequence[Column | str], rows: Iterable[Sequence[Line]]) -> Table:
    heads = tuple(each if isinstance(each, Column) else Column(each) for each in columns)
    return Table(heads, tuple(tuple(row) for row in rows))


class Events(NamedTuple):
    """(where, (what happens, what that costs) ...) ...: the costs of all groups stand below each other."""

    groups: tuple[tuple[str, tuple[tuple[str, Line], ...]], ...]


class Item(NamedTuple):
    """A line of a tree, and what is below it."""

    line: Line
    below: tuple[Item, ...] = ()


class Tree(NamedTuple):
    """Lines with lines below them."""

    items: tuple[Item, ...]


class Link(NamedTuple):
    """A link of a chain. side: it lies side by side with its neighbours of this kind; figures: (what, number)."""

    name: str
    tone: Tone
    sign: str
    word: str
    text: str
    figures: tuple[tuple[str, int], ...] = ()
    side: bool = False


class Chain(NamedTuple):
    """What an fsync passes, from the application down."""

    links: tuple[Link, ...]


class Code(NamedTuple):
    """A file, or a command whose words may stand in lines of their own."""

    lines: tuple[str, ...]
    title: str = ""
    continued: bool = False


class Drawing(NamedTuple):
    """Lines of a picture, and how to read it."""

    lines: tuple[str, ...]
    says: str = ""


class Picture(NamedTuple):
    """Drawn by whoever knows its room. lines: by a width; drawn: for a page, with what is below it; None: nothing."""

    lines: Callable[[int], Drawing | None]
    drawn: Callable[[], Element | None]


class Box(NamedTuple):
    """A line of a checklist. sign, letter: in its box, on a page and a terminal; list: its title, if needed."""

    answer: str
    tone: Tone | Literal["dim"]
    sign: str
    letter: str
    text: str
    list: str
    why: tuple[str, ...]


class Boxes(NamedTuple):
    """Lines of a checklist. cut: on a terminal each reason is one line, as far as there is room."""

    boxes: tuple[Box, ...]
    cut: bool = False


class Details(NamedTuple):
    """What a page opens when it is asked to, and a terminal shows at once."""

    summary: Line
    blocks: tuple[Block, ...]


class Verdict(NamedTuple):
    """The answer, and what belongs to it."""

    tone: Tone
    word: str
    blocks: tuple[Block, ...] = ()


class Section(NamedTuple):
    """Blocks below a title, if they have one; nothing without blocks."""

    title: str
    blocks: tuple[Block, ...]


Block = Say | Entries | Finding | Table | Events | Tree | Chain | Code | Picture | Boxes | Details | Verdict | Section


def section(title: str, blocks: Iterable[Block]) -> Section:
    return Section(title, tuple(blocks))


class Document(NamedTuple):
    """A page. title: of the window; facts: of what, by whom and when; signed: with room for a name, a date and a signature."""

    title: str
    facts: tuple[Line, ...]
    blocks: tuple[Block, ...]
    footer: str = ""
    signed: bool = False
