"""Cases that showed a mistake, which the tests replay: ``found.jsonl``, one on each line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.target import Case

FILE = Path(__file__).with_suffix(".jsonl")


class Kept(NamedTuple):
    """One case. sign: what it showed when it was found."""

    target: str
    sign: str
    case: Case


def keep(kept: Kept, file: Path = FILE) -> None:
    """Adds it; the same case once."""
    found = {*_lines(file), json.dumps(kept, sort_keys=True)}
    file.write_text("".join(f"{each}\n" for each in sorted(found)))


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def all_kept(file: Path = FILE) -> list[Kept]:
    """Every case, by target."""
    return [Kept(*json.loads(line)) for line in _lines(file)]
