"""A document for a terminal, in any width, and in the ASCII that LC_ALL=C gets."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TypedDict, Unpack

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text

from auditor.report import document as doc
from auditor.text import harmless

MARGIN = 10
LEAST = 16  # columns that are worth writing in
# what an ASCII terminal gets instead (LC_ALL=C); one character for each that a picture is made of
ASCII = str.maketrans(
    {"·": "|", "—": "-", "–": "-", "…": "...", "’": "'", "“": '"', "”": '"', "→": "->", "≥": ">=", "≤": "<=", "×": "x"}
    | dict(zip("µ░▒▓█▂│─└┤●○┊", "u.:*#_|-+|*o|", strict=True))
)


LOOKS: dict[doc.Look, str] = {
    "strong": "bold",
    "dim": "dim",
    "command": "bold",
    "repeat": "dim",
    **dict.fromkeys(("good", "passed", "kept", "safe"), "green"),
    **dict.fromkeys(("bad", "lost", "destroys data", "high"), "bold red"),
    **dict.fromkeys(("open", "unknown", "undecided"), "bold magenta"),
    **dict.fromkeys(("word", "needs restart"), "yellow"),
    "rebuilds the pool": "red",
    "critical": "bold white on red",
    "medium": "bold yellow",
    "low": "cyan",
    "waived": "bold blue",
    "known": "blue",
}
TONES = {"good": "bold green", "bad": "bold red", "open": "bold yellow", "dim": "dim"}
INDENT = 2  # of what has a title above
EVENTS_AT = 44  # column of what an event costs, where no combination of events is longer
EVENTS_LEAST = 30  # columns at least for that; below the event where there are fewer
BESIDE = 72  # columns, from which on words have room next to the numbers of a table


class Screen(TypedDict, total=False):
    """width: columns, 100 of a pipe; color: with ANSI styles; ascii_only: no other characters."""

    width: int
    color: bool
    ascii_only: bool


def write(document: doc.Document, **screen: Unpack[Screen]) -> str:
    width = max(screen.get("width", 100), 40)
    color, ascii_only = screen.get("color", False), screen.get("ascii_only", False)
    facts = (Text.assemble(" · " if i else "", _text(fact), style="dim") for i, fact in enumerate(document.facts))
    return printed((Whole(facts), *_blocks(document.blocks, width)), width=width, color=color, ascii_only=ascii_only)


def fragment(blocks: Iterable[doc.Block], *, width: int, ascii_only: bool = False) -> str:
    """Blocks alone, without a page around them."""
    return printed(_blocks(blocks, width), width=width, color=False, ascii_only=ascii_only)


def printed(parts: Iterable[RenderableType], *, width: int, color: bool, ascii_only: bool) -> str:
    """Text that ends with a newline. width: columns, 40 at least; color: with ANSI styles."""
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=max(width, 40),
        height=25,  # of no matter here, and with both rich reads neither COLUMNS nor LINES, which may be no numbers
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
    console.print(Group(*parts))
    text = "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
    return text.translate(ASCII).encode("ascii", "backslashreplace").decode() if ascii_only else text


class Hanging:
    """Words, and text beside them that goes on below its own beginning; below the words where there is no room beside."""

    def __init__(self, words: Text, text: Text, at: int, least: int = LEAST) -> None:
        """at: column of the text, unless the words are longer. least: columns beside them that are worth writing in."""
        self._words = words
        self._text = text
        self._at = max(at, words.cell_len)
        self._least = least

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """One line after the other, none of which is wrapped again."""
        beside = options.max_width - self._at >= self._least
        column = self._at if beside else MARGIN
        lines = _wrapped(self._text, console, options.max_width - column)
        words = [self._words.copy()] if beside else self._above(console, options.max_width)
        if beside:
            words[0].pad_right(column - words[0].cell_len)
            words[0].append_text(lines.pop(0))
        lines = [*words, *(Text(" " * column).append_text(line) for line in lines)]
        if console.color_system is None:  # without a style nothing is left of a line but its text
            yield Segment("".join(f"{line.plain}\n" for line in lines))
            return
        for line in lines:
            styled = Text().append_text(line) if line.style else line  # render() leaves out the style of the whole
            yield from styled.render(console, end="\n")

    def _above(self, console: Console, width: int) -> list[Text]:
        """The words on lines of their own: what goes on keeps their indentation, and two columns more."""
        if self._words.cell_len <= width:
            return [self._words]
        bare = self._words.plain.lstrip(" ")
        indent = len(self._words) - len(bare)
        first, *more = _wrapped(self._words[indent:], console, width - indent - INDENT)
        return [
            Text(" " * indent).append_text(first),
            *(Text(" " * (indent + INDENT)).append_text(each) for each in more),
        ]


def _wrapped(text: Text, console: Console, width: int) -> list[Text]:
    """In lines. Most are short: to have rich wrap them takes the greater part of a long report."""
    if text.cell_len <= width and not {"\n", "\t"} & {*text.plain}:
        return [text]
    return list(text.wrap(console, max(width, 1), overflow="fold"))


class Whole:
    """Parts in sequence, broken only between them; blanks and the dot before a part are left out where a line begins."""

    def __init__(self, parts: Iterable[Text]) -> None:
        self._parts = parts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line = Text()
        for part in self._parts:
            if line and line.cell_len + part.cell_len > options.max_width:
                yield line
                line = Text()
                part = part[len(part) - len(part.plain.lstrip(" ·")) :]
            line.append_text(part)
        yield line


def _text(line: doc.Line, style: str = "") -> Text:
    return Text.assemble(*((harmless(each.text), LOOKS.get(each.look, "")) for each in doc.runs(line)), style=style)


def _blocks(blocks: Iterable[doc.Block], width: int, indent: int = 0) -> Iterator[RenderableType]:
    for block in blocks:
        yield from _block(block, width, indent)


def _block(block: doc.Block, width: int, indent: int) -> Iterator[RenderableType]:
    """indent: of what is below a title. A finding and a picture have none: they need the room."""
    within = partial(_within, indent=indent)
    match block:
        case doc.Say():
            yield within(_text(block.line, LOOKS.get(block.look, "")))
        case doc.Entries():
            yield from map(within, _entries(block))
        case doc.Finding():
            yield Text()
            yield from _finding(block)
        case doc.Table():
            if block.rows:
                yield within(_grid(block, width >= BESIDE))
        case doc.Events():
            yield from _events(block)
        case doc.Tree():
            yield from map(within, _tree(block.items, 0))
        case doc.Chain():
            yield within(_chain(block))
        case doc.Code():
            yield from map(within, _code(block))
        case doc.Picture():
            if drawing := block.lines(width):
                yield from (Text(line, no_wrap=True, overflow="crop") for line in drawing.lines)
                yield within(Text(drawing.says, "dim"), indent=MARGIN)
        case doc.Boxes():
            yield from map(within, _boxes(block))
        case doc.Details():
            yield within(_text(block.summary, "bold"))
            yield from _blocks(block.blocks, width, indent)
        case doc.Verdict():
            yield Text(harmless(block.word), TONES[block.tone])
            yield from _blocks(block.blocks, width)
        case doc.Section():
            yield from _section(block, width)


def _within(part: RenderableType, indent: int) -> RenderableType:
    return Padding(part, (0, 0, 0, indent)) if indent else part


def _section(block: doc.Section, width: int) -> Iterator[RenderableType]:
    inside = list(_blocks(block.blocks, width, INDENT if block.title else 0))
    if not inside:
        return
    if block.title or not isinstance(block.blocks[0], doc.Finding):
        yield Text()
    if block.title:
        yield Text(harmless(block.title), "bold")
    yield from inside


def _entries(block: doc.Entries) -> Iterator[RenderableType]:
    for row in block.rows:
        word = _text(row.word)
        if block.right:
            word.pad_left(block.at - INDENT - word.cell_len)
        elif word.cell_len < block.at:
            word.pad_right(block.at - word.cell_len)
        else:
            word.append(" ")
        yield Hanging(word, _text(row.line), block.at)


def _finding(block: doc.Finding) -> Iterator[RenderableType]:
    word = _text(block.word).append(" ")
    word.pad_right(MARGIN - word.cell_len)
    name = f"{harmless(block.name)}  " if block.name else ""
    yield Hanging(word.append(name, "bold"), _text(block.where), 0)
    if block.says:
        yield _within(Text(harmless(block.says)), MARGIN)
    for row in block.rows:
        yield Hanging(Text(" " * MARGIN).append_text(_text(row.word)), _text(row.line), 2 * MARGIN)


def _grid(block: doc.Table, beside: bool) -> Grid:
    """beside: there is room for the columns of words; else they stand below the first, after their heads."""
    shown = [i for i, each in enumerate(block.columns) if beside or not each.aside]
    grid = Grid.grid(padding=(0, 2, 0, 0))
    for column in (block.columns[i] for i in shown):
        if column.number:
            grid.add_column(justify="right", no_wrap=True)
        else:
            grid.add_column(overflow="fold", max_width=column.most, min_width=None if column.most else LEAST // 2)
    if any(each.head for each in block.columns):
        grid.add_row(*(Text(harmless(block.columns[i].head), "dim") for i in shown))
    for row in block.rows:
        cells = [_text(row[i]) for i in shown]
        for i, column in enumerate(block.columns):
            if i not in shown and column.head and doc.runs(row[i]):
                cells[0].append(f"\n{column.head} ").append_text(_text(row[i]))
        grid.add_row(*cells)
    return grid


def _events(block: doc.Events) -> Iterator[RenderableType]:
    at = max((EVENTS_AT, *(len(what) + INDENT for _, rows in block.groups for what, _ in rows))) + 2
    for where, rows in block.groups:
        yield Text(harmless(where), "bold")
        for what, cost in rows:
            yield Hanging(Text(f"  {harmless(what)}"), _text(cost), at, EVENTS_LEAST)


def _tree(items: Sequence[doc.Item], depth: int) -> Iterator[RenderableType]:
    for item in items:
        yield Hanging(Text("  " * depth), _text(item.line), 2 * depth)
        yield from _tree(item.below, depth + 1)


def _chain(block: doc.Chain) -> Grid:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(max_width=16, overflow="fold")
    grid.add_column(width=11, no_wrap=True)
    grid.add_column(overflow="fold")
    for link in block.links:
        says = Text(harmless(link.text))
        if link.figures:
            figures = " · ".join(f"{harmless(what)} {number:,}" for what, number in link.figures)
            says.append(f"\n{figures}", "dim")
        grid.add_row(Text(harmless(link.name), "bold"), Text(link.word, LOOKS[link.tone]), says)
    return grid


def _code(block: doc.Code) -> Iterator[RenderableType]:
    if block.title:
        yield Text(harmless(block.title), "dim")
    for line in (" ".join(block.lines),) if block.continued else block.lines:
        yield Hanging(Text("  "), Text(harmless(line)), 2)


def _boxes(block: doc.Boxes) -> Iterator[RenderableType]:
    for box in block.boxes:
        yield Hanging(Text(f"[{box.letter}] ", TONES[box.tone]), Text(f"{harmless(box.text)}."), 4)
        for why in box.why:
            text = Text(harmless(why), "dim", no_wrap=True, overflow="ellipsis")
            yield _within(text, 4) if block.cut else Hanging(Text("    "), Text(text.plain, "dim"), 4)
