"""Results of the lab: JSON with the names of the columns on the first line and one row on each other."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def read(path: Path) -> list[Row]:
    """All rows, none when there is no file yet. What a row has no value for is None."""
    head, *body = json.loads(path.read_text(encoding="utf-8")) if path.exists() else ((),)
    return [dict(zip(head, each, strict=True)) for each in body]


def write(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """All rows; the file is complete at every moment."""
    every = list(rows)
    head = list(dict.fromkeys(name for each in every for name in each))
    lines = (json.dumps(each, separators=(",", ":")) for each in (head, *([row.get(n) for n in head] for row in every)))
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    part.replace(path)
