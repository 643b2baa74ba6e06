"""builds.toml: which commits of later releases the builds of distributions carry. Its head says what its words mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from auditor import data
from auditor.data import TableError

FILE = "builds.toml"
TEXTS = ("name", "source", "newer")
KEYS = frozenset({*TEXTS, "fixes", "builds"})


class Build(NamedTuple):
    """One build. newer: how to get a newer one; carries: subjects of commits; fixes: names of advisories."""

    name: str
    source: str
    newer: str
    fixes: frozenset[str]
    carries: tuple[str, ...]


def fact(bug: str) -> str:
    """The fact of the host that says whether its build has a bug, by the name of the advisory."""
    return f"build_has_{bug.replace('-', '_')}"


@cache
def load() -> dict[str, Build]:
    """Version -> build."""
    return parse(data.table(FILE))


def parse(document: data.Document) -> dict[str, Build]:
    """The builds of a table in this form. Raises TableError for anything misspelt, missing, of the wrong type or twice."""
    found: dict[str, Build] = {}
    for series, table in document.items():
        for version, build in _series(f"{FILE}: [{series}]", table):
            if version in found:
                raise TableError(f"{FILE}: [{series}]: {version} is there twice")
            found[version] = build
    return found


def _series(where: str, table: object) -> Iterator[tuple[str, Build]]:
    if not isinstance(table, Mapping) or set(table) != KEYS or not isinstance(builds := table["builds"], list):
        raise TableError(f"{where}: it has {', '.join(sorted(KEYS))}, and nothing else")
    if not all(isinstance(table[key], str) and table[key].strip() for key in TEXTS):
        raise TableError(f"{where}: {', '.join(TEXTS)} are texts")
    fixes = frozenset(_texts(where, table["fixes"]))
    release = ""
    carries: tuple[str, ...] = ()
    for build in builds:
        if not isinstance(build, list) or len(build) != 2 or not isinstance(build[0], str):
            raise TableError(f"{where}: a build is [version, commits]")
        version, new = build
        if (number := version.partition("-")[0]) != release:
            release, carries = number, ()
        carries = (*carries, *_texts(f"{where}: {version}", new))
        yield version, Build(table["name"], table["source"], table["newer"], fixes, carries)


def _texts(where: str, found: Any) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(each, str) and each.strip() for each in found):
        raise TableError(f"{where}: not a list of texts")
    return tuple(found)
