"""ended.toml: well-known bugs of lines of releases that have ended. Its head says what its words mean."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from auditor import data
from auditor.data import TableError

FILE = "ended.toml"
KEYS = frozenset({"bug", "since", "mended", "source"})
Release = tuple[int, ...]  # three numbers, or four as in 0.6.5.2
_NUMBERS = re.compile(r"\d{1,9}(?:\.\d{1,9}){2,3}")


class Bug(NamedTuple):
    """One entry: releases from ``since`` on have it, those from ``mended`` on do not."""

    bug: str
    since: Release
    mended: Release
    source: str


def release(text: str) -> Release | None:
    """The numbers that the text of a version begins with: (0, 6, 5, 2) of "0.6.5.2-1"."""
    found = _NUMBERS.match(text)
    return tuple(map(int, found[0].split("."))) if found else None


def bugs_of(this: Release) -> tuple[Bug, ...]:
    """Those that a release has."""
    return tuple(each for each in load() if each.since <= this < each.mended)


@cache
def load() -> tuple[Bug, ...]:
    """All entries, in their order."""
    return parse(data.text(FILE))


def parse(text: str) -> tuple[Bug, ...]:
    """The entries of a table in this form. Raises TableError for anything misspelt, missing or of the wrong type."""
    found = []
    for where, entry in data.entries(FILE, text, "ended", KEYS):
        if any(not isinstance(each, str) or not each.strip() for each in entry.values()):
            raise TableError(f"{where}: all values are texts")
        since, mended = release(entry["since"]), release(entry["mended"])
        if since is None or mended is None or since >= mended:
            raise TableError(f"{where}: since and mended are releases, the first before the other")
        found.append(Bug(entry["bug"], since, mended, entry["source"]))
    return tuple(found)
