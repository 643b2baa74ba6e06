"""What the reports for a terminal have in common: the console, the ASCII that LC_ALL=C gets, and the look of a finding."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

MARGIN = 10
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


def head(word: str, style: str, name: str, where: Text) -> Table:
    """The first line of a finding: CRITICAL  sync-disabled  tank."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=MARGIN - 2, no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(Text(word, style), Text(name, "bold"), where)
    return table


def body(rows: Iterable[tuple[str, RenderableType]]) -> Padding:
    """What stands below it: a word in the margin and what it says."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=8, no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for label, content in rows:
        table.add_row(label, content)
    return Padding(table, (0, 0, 0, MARGIN))


def says(sentence: str) -> Padding:
    """A sentence below the first line."""
    return Padding(Text(sentence), (0, 0, 0, MARGIN))
