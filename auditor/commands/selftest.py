"""``zaudit selftest``: that nothing passes by what was not seen, shown on this installation."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from auditor.commands._options import folders, formats
from auditor.screen import say
from auditor.streams import progress

if TYPE_CHECKING:
    from auditor.selftest import Row

EXIT_FAILED = 1


@click.command(short_help="Show that no rule passes on what was not seen.")
@formats
@folders
def selftest(format_: str, folders: tuple[Path, ...]) -> NoReturn:
    """Judge every rule on a recorded host whose answers are missing, refused, late, empty, garbled, cut off or of an unknown
    release. All at once: every rule must be unknown. One at a time, or two of the main ones refused, or with a line or a key
    lost: no verdict may get better. Then on its own examples with facts hidden. Touches nothing of this host.

    Exit code: 0 when no rule passed where it must not, 1 when one did.
    """
    from auditor import rulebook
    from auditor import selftest as law

    rules = rulebook.load(folders)
    rows = law.run(rules, progress())
    if format_ == "json":
        say(json.dumps([_document(row) for row in rows], indent=1))
    else:
        say("\n".join(_table(rows, sum(rule.of_verify for rule in rules))))
    sys.exit(0 if law.passed(rows) else EXIT_FAILED)


def _document(row: Row) -> dict[str, Any]:
    cells = {name: {"cases": cell.cases, "wrong": list(cell.wrong)} for name, cell in row.cells.items()}
    return {"rule": row.rule, "healthy": row.healthy, "faults": cells}


def _table(rows: Sequence[Row], of_verify: int) -> Iterator[str]:
    """One line a rule: in how many cases it was judged and did not pass, and what went wrong. of_verify: rules on its runs."""
    names = list(rows[0].cells)
    ids = max(len(row.rule) for row in rows) + 2
    yield f"{'':<{ids}}" + "  ".join(names)
    for row in rows:
        cells = (f"{'PASSED' if row.cells[name].wrong else row.cells[name].cases:<{len(name)}}" for name in names)
        yield (f"{row.rule:<{ids}}" + "  ".join(cells)).rstrip()
    wrong = [(row.rule, name, text) for row in rows for name, cell in row.cells.items() for text in cell.wrong]
    yield ""
    yield from (f"WRONG  {rule}, {name}: {text}" for rule, name, text in wrong)
    cases = sum(cell.cases for row in rows for cell in row.cells.values())
    counts = f"{len(rows) - of_verify} rules of check, {of_verify} of verify, {cases} cases"
    yield f"{counts}: " + (f"{len(wrong)} passed that must not" if wrong else "none passed")


COMMAND = selftest
