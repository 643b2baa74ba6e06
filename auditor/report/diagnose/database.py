"""The database's view of a diagnosis: what its reports on a terminal and on a page say alike, and how each shows it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from auditor.diagnose.view import Row, View
from auditor.report.diagnose import words
from auditor.report.page import escaped, paragraph
from auditor.report.verify.terminal import title
from auditor.text import harmless

TITLE = "The database's view"
INDENT = (0, 0, 0, 2)


def _counts(view: View) -> Iterator[tuple[str, str, str, str]]:
    """(what, how many, mean, why one of them is missing), the kernel's row behind the one that it stands beside."""
    for number, row in enumerate(view.rows):
        yield _cells(row, row.what)
        if number == 0 and view.kernel:
            yield _cells(view.kernel, f"{view.kernel.what} (kernel)")


def _cells(row: Row, what: str) -> tuple[str, str, str, str]:
    return what, "?" if row.counted is None else f"{row.counted:,}", words.took(row.mean_ns), row.why


def _waits(view: View) -> list[tuple[str, str, str]]:
    return [(each.what, f"{each.mean:.1f}", f"{each.most:,}") for each in view.waits]


def _active(view: View) -> str:
    return f"{view.active:.1f} backends at work, which waited for"


def terminal(view: View | None) -> Iterator[RenderableType]:
    """Nothing without a view."""
    if view is None:
        return
    yield from title(f"{TITLE}{f' ({harmless(view.server)})' if view.server else ''}")
    if view.first:
        yield Padding(Text(f"{harmless(view.first)}."), INDENT)
    if view.rows:
        table = _grid(("", "counted", "mean", ""))
        for what, *cells in _counts(view):
            table.add_row(Text(harmless(what)), *cells[:2], Text(harmless(cells[2]), "dim"))
        yield Padding(table, INDENT)
    if view.waits:
        table = _grid((_active(view), "mean", "most", ""))
        for what, mean, most in _waits(view):
            table.add_row(Text(harmless(what)), mean, most, "")
        yield Padding(table, INDENT)
    if view.settings:
        yield Padding(Text(harmless(", ".join(view.settings)), "dim"), INDENT)
    yield from (Padding(Text(f"Not seen: {harmless(each)}.", "magenta"), INDENT) for each in view.unseen)


def _grid(head: tuple[str, str, str, str]) -> Table:
    """Words, two numbers, words."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", min_width=8)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(*(Text(each, "dim") for each in head))
    return table


def page(view: View | None) -> Iterator[str]:
    """Nothing without a view."""
    if view is None:
        return
    yield paragraph(f"{view.first}." if view.first else "")
    if view.rows:
        yield _table(("", "counted", "mean", ""), list(_counts(view)))
    if view.waits:
        yield _table((_active(view), "mean", "most"), _waits(view))
    yield paragraph(", ".join(view.settings), "dim small")
    yield from (paragraph(f"Not seen: {each}.") for each in view.unseen)
    yield from (f"<pre>{escaped(each)}</pre>" for each in view.commands)


def _table(head: tuple[str, ...], rows: list[tuple[str, str, str, str]] | list[tuple[str, str, str]]) -> str:
    names = "".join(f"<th>{escaped(each)}</th>" for each in head)
    cells = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="table" tabindex="0"><table><tr>{names}</tr>{cells}</table></div>'
