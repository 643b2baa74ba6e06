"""Cases that showed a mistake, as files that the tests replay: ``found/TARGET-HASH.json``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.target import Case

FOLDER = Path(__file__).parent / "found"


class Kept(NamedTuple):
    """One file. sign: what it showed when it was found."""

    target: str
    sign: str
    case: Case


def keep(kept: Kept, folder: Path = FOLDER) -> Path:
    """Writes it; the same case goes by the same name."""
    text = json.dumps({"sign": kept.sign, "case": kept.case}, indent=1, sort_keys=True) + "\n"
    folder.mkdir(exist_ok=True)
    path = folder / f"{kept.target}-{hashlib.sha256(text.encode()).hexdigest()[:10]}.json"
    path.write_text(text)
    return path


def all_kept(folder: Path = FOLDER) -> Iterator[tuple[Path, Kept]]:
    """Every file, by name."""
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text())
        yield path, Kept(path.name.rpartition("-")[0], document["sign"], document["case"])
