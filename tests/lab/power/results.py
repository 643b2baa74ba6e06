"""tests/lab/powercut.json and, of pages.toml, torn.json: one row a setting and power cut. Only numbers are here; what they
mean is report.py's."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS, TORN, EVENTS = (
    Path(__file__).resolve().parents[1] / f"{name}.json" for name in ("powercut", "torn", "events")
)


def read(path: Path | None = None) -> list[dict[str, Any]]:
    """All rows, none when there is no file yet."""
    path = path or RESULTS
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return rows


def write(rows: Sequence[dict[str, Any]], path: Path | None = None) -> None:
    """Add rows, one a line; the file is complete at every moment."""
    path = path or RESULTS
    lines = ",\n".join(json.dumps(row) for row in (*read(path), *rows))
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    part.replace(path)


def lost(acknowledged: int, have: Iterable[Sequence[int]]) -> int:
    """Commits 0 to acknowledged - 1 that are in none of the ranges (first, last)."""
    there = sum(max(0, min(last + 1, acknowledged) - first) for first, last in have)
    return acknowledged - there
