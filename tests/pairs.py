"""What hosts really answered, and what parsers must make of it: ``fixtures/commands/COLLECTOR.pairs``, a text archive with
``CASE.json`` (source, subject, facts) and ``CASE.out`` (what a command printed) or ``CASE.in.json`` (files).

``python -m tests.pairs COLLECTOR FILE...`` adds files to it, or puts them in the place of those of the same name.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from auditor.host.request import Files, Output
from auditor.recording import archive
from tests.shared import FIXTURES

COMMANDS = FIXTURES / "commands"
ENDING = ".pairs"


class Pair(NamedTuple):
    """One case of a collector. expected: what CASE.json says."""

    collector: str
    case: str
    expected: dict[str, Any]
    reply: Output | Files

    def __str__(self) -> str:
        return f"{self.collector}/{self.case}"


@cache
def members(collector: str) -> Mapping[str, str]:
    """Name -> text of all files of a collector; none where it has no pairs."""
    path = COMMANDS / f"{collector}{ENDING}"
    found = archive.read(path) if path.exists() else {}
    return {name: data.decode("utf-8", "surrogateescape") for name, data in found.items()}


@cache
def of(collector: str) -> tuple[Pair, ...]:
    """All cases of a collector."""
    return tuple(
        _pair(collector, name.removesuffix(".json"))
        for name in sorted(members(collector))
        if name.endswith(".json") and not name.endswith(".in.json")
    )


def everything() -> list[Pair]:
    """All cases of all collectors."""
    return [pair for path in sorted(COMMANDS.glob(f"*{ENDING}")) for pair in of(path.stem)]


def output(collector: str, case: str) -> str:
    """What a command printed."""
    return members(collector)[f"{case}.out"]


def _pair(collector: str, case: str) -> Pair:
    files = members(collector)
    expected = json.loads(files[f"{case}.json"])
    if f"{case}.in.json" in files:
        raw = json.loads(files[f"{case}.in.json"])
        keys = ("links", "errors", "devices", "changed")
        return Pair(collector, case, expected, Files(raw["text"], *(raw.get(key, {}) for key in keys)))
    said = Output(files[f"{case}.out"], expected["command"], expected.get("exit", 0), expected.get("stderr", ""))
    return Pair(collector, case, expected, said)


def add(collector: str, files: Iterable[Path]) -> None:
    """Write these files into the archive of a collector."""
    path = COMMANDS / f"{collector}{ENDING}"
    found = archive.read(path) if path.exists() else {}
    found |= {each.name: each.read_bytes() for each in files}
    with path.open("wb") as file:
        archive.write_text(sorted(found.items()), file)


if __name__ == "__main__":
    add(sys.argv[1], map(Path, sys.argv[2:]))
