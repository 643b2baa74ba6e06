"""tests/lab/powercut.json.gz and, of pages.toml, torn.json.gz: one row a setting and power cut. Only numbers are here; what
they mean is report.py's."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .. import rows as table

RESULTS, TORN, EVENTS = (
    Path(__file__).resolve().parents[1] / name for name in ("powercut.json.gz", "torn.json.gz", "events.json.gz")
)


def read(path: Path | None = None) -> list[dict[str, Any]]:
    """All rows, none when there is no file yet."""
    return table.read(path or RESULTS)


def write(rows: Sequence[dict[str, Any]], path: Path | None = None) -> None:
    """Add rows. Of what zaudit said of a setting on a line the newest alone stays: no cut changes it."""
    answers = set[tuple[str, str]]()
    found: list[dict[str, Any]] = []
    for row in reversed((*read(path), *rows)):
        key = (row["line"], row["setting"])
        found.append({**row, "zaudit": None} if key in answers else row)
        if row["zaudit"]:
            answers.add(key)
    table.write(reversed(found), path or RESULTS)


def lost(acknowledged: int, have: Iterable[Sequence[int]]) -> int:
    """Commits 0 to acknowledged - 1 that are in none of the ranges (first, last)."""
    there = sum(max(0, min(last + 1, acknowledged) - first) for first, last in have)
    return acknowledged - there
