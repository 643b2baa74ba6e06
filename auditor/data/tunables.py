"""tunables.toml: defaults of module parameters by release, and what a change means. The file's head says how to read it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from auditor import data
from auditor.data import TableError

FILE = "tunables.toml"
CHANGED = ("low", "medium", "own", "meant")
KEYS = frozenset({"default", "changed", "means"})

Release = tuple[int, ...]


class Tunable(NamedTuple):
    """One parameter. steps: (from this release on, default), oldest first; "" is gone. changed: one of CHANGED."""

    name: str
    steps: tuple[tuple[Release, str], ...]
    changed: str
    means: str

    def default(self, release: Release) -> str:
        """The default of a release; "" where it has no such parameter."""
        return next((value for since, value in reversed(self.steps) if since <= release), "")


@cache
def load() -> dict[str, Tunable]:
    """All, by name. Raises TableError."""
    return parse(data.table(FILE))


def parse(document: data.Document) -> dict[str, Tunable]:
    """The entries of a table in this form. Raises TableError for anything misspelt, missing or of the wrong type."""
    return {name: _tunable(name, table) for name, table in document.items()}


def _tunable(name: str, table: object) -> Tunable:
    if not isinstance(table, dict) or KEYS ^ set(table) or not all(isinstance(each, str) for each in table.values()):
        raise TableError(f"{FILE}: {name} needs {', '.join(sorted(KEYS))}, as text, and nothing else")
    if table["changed"] not in CHANGED:
        raise TableError(f"{FILE}: {name}: changed is one of {', '.join(CHANGED)}")
    steps = tuple(_steps(name, table["default"]))
    if not steps or list(steps) != sorted(steps):
        raise TableError(f"{FILE}: {name}: default is RELEASE=VALUE, oldest release first")
    return Tunable(name, steps, table["changed"], table["means"])


def _steps(name: str, text: str) -> Iterator[tuple[Release, str]]:
    for step in text.split():
        since, mark, value = step.partition("=")
        numbers = since.split(".")
        if not mark or not value or len(numbers) != 3 or not all(number.isdigit() for number in numbers):
            raise TableError(f"{FILE}: {name}: {step!r} is not RELEASE=VALUE")
        yield tuple(map(int, numbers)), "" if value == "-" else value
