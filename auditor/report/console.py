"""What the reports for a terminal have in common: the console, the ASCII that LC_ALL=C gets, and the look of a finding."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

MARGIN = 10
LEAST = 16  # columns that are worth writing in
# what an ASCII terminal gets instead (LC_ALL=C); one character for each that a picture is made of
ASCII = str.maketrans(
    {"·": "|", "—": "-", "–": "-", "…": "...", "’": "'", "“": '"', "”": '"', "→": "->", "≥": ">=", "≤": "<=", "×": "x"}
    | dict(zip("µ░▒▓█▂│─└┤●○┊", "u.:*#_|-+|*o|", strict=True))
)


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
        lines = self._lines(console, max(options.max_width - column, 1))
        first = self._words.copy()
        if beside:
            first.pad_right(column - first.cell_len)
            first.append_text(lines.pop(0))
        if console.color_system is None:  # without a style nothing is left of a line but its text
            yield Segment("".join((first.plain, "\n", *(f"{' ' * column}{line.plain}\n" for line in lines))))
            return
        for line in (first, *(Text(" " * column).append_text(line) for line in lines)):
            styled = Text().append_text(line) if line.style else line  # render() leaves out the style of the whole
            yield from styled.render(console, end="\n")

    def _lines(self, console: Console, width: int) -> list[Text]:
        """The text in lines. Most are short: to have rich wrap them takes the greater part of a long report."""
        if self._text.cell_len <= width and not {"\n", "\t"} & {*self._text.plain}:
            return [self._text]
        return list(self._text.wrap(console, width, overflow="fold"))


class Whole:
    """Parts one after the other, none of which is divided over two lines where it fits one; the blanks and the dot that join
    a part to the one before, at its beginning, are left out where a line begins."""

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


def head(word: str, style: str, name: str, where: Text) -> Hanging:
    """The first line of a finding: CRITICAL  sync-disabled  tank."""
    words = Text.assemble((word, style), " " * (MARGIN - len(word)), (name, "bold"), "  ")
    return Hanging(words, where, 0)


def body(rows: Iterable[tuple[str, Text]]) -> Group:
    """What stands below it: a word in the margin and what it says."""
    return Group(*(Hanging(Text.assemble(" " * MARGIN, (label, "dim")), text, 2 * MARGIN) for label, text in rows))


def says(sentence: str) -> Padding:
    """A sentence below the first line."""
    return Padding(Text(sentence), (0, 0, 0, MARGIN))
