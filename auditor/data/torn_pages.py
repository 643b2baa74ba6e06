"""torn_pages.toml: which pages came apart in the intent log, tried on each line of OpenZFS. Its head explains its words."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

from auditor import data
from auditor.data import TableError, releases

FILE = "torn_pages.toml"
KIB = 1024
LARGEST = 128 * KIB  # record
# with what it was made
CONDITIONS = {"zil_maxblocksize": 131072, "zfs_immediate_write_sz": 32768}
KEYS = frozenset({"page", "recordsizes", "logbias", "write", "slog", "apart", "alone", "first"})
CONFIRMED = frozenset({"page", "logbias", "write", "slog", "length", "points", "torn", "torn_at", "harm"})
LINE = frozenset({"first", "last", "tried", "lengths", "digest", "rows", "confirmed"})

Way = Literal["fsync", "always"]


class Setting(NamedTuple):
    """page: bytes; write: how a page is committed: by a later fsync, or always, with its write (sync=always, O_DSYNC)."""

    page: int
    logbias: str
    write: Way
    slog: bool


class Table(NamedTuple):
    """Of the releases first to last. apart: setting -> record in bytes -> at how many of so many lengths of the writes next to
    it a page came apart."""

    first: releases.Release
    last: releases.Release
    tried: str
    lengths: int
    apart: Mapping[Setting, Mapping[int, int]]

    def lengths_apart(self, setting: Setting, blocks: Iterable[int]) -> list[int] | None:
        """Of the records from the last that is no larger than these blocks to the first that is no smaller; None outside of
        the table. Blocks that are smaller than a page say nothing."""
        records = self.apart.get(setting, {})
        inside = [each for each in blocks if each >= setting.page]
        if not records or not inside or min(inside) < min(records) or max(inside) > max(records):
            return None
        least = max(each for each in records if each <= min(inside))
        most = min(each for each in records if each >= max(inside))
        return [apart for record, apart in records.items() if least <= record <= most]


def find(version: tuple[object, ...]) -> Table | None:
    return next(
        (each for each in load().values() if each.first <= version[:3] <= each.last and len(version) == 3), None
    )


@cache
def load() -> dict[str, Table]:
    """By line. Raises TableError."""
    return parse(data.text(FILE))


def parse(text: str) -> dict[str, Table]:
    """Raises TableError for anything misspelt, missing, of the wrong type, twice, or changed by hand."""
    try:
        lines = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{FILE}: {error}") from None
    return {line: _table(line, each) for line, each in lines.items()}


def digest(rows: Sequence[Mapping[str, Any]]) -> str:
    return hashlib.sha256(repr([sorted(each.items()) for each in rows]).encode()).hexdigest()[:16]


def _table(line: str, document: Mapping[str, Any]) -> Table:
    where = f"{FILE}: [{line}]"
    if set(document) != LINE:
        raise TableError(f"{where}: it has {', '.join(sorted(LINE))}, and nothing else")
    rows, confirmed = document["rows"], document["confirmed"]
    if any(set(each) != KEYS for each in rows) or any(set(each) != CONFIRMED for each in confirmed):
        raise TableError(
            f"{where}: a row has {', '.join(sorted(KEYS))}; of crash points {', '.join(sorted(CONFIRMED))}"
        )
    if document["digest"] != digest([*rows, *confirmed]):
        raise TableError(f"{where}: its digest is of other rows")
    first, last = releases.of(document["first"]), releases.of(document["last"])
    if first is None or last is None:
        raise TableError(f"{where}: first and last are releases")
    apart: dict[Setting, dict[int, int]] = {}
    for each in rows:
        records = apart.setdefault(Setting(each["page"] * KIB, each["logbias"], each["write"], each["slog"]), {})
        for record in each["recordsizes"]:
            if records.setdefault(record * KIB, each["apart"]) != each["apart"]:
                raise TableError(f"{where}: page {each['page']}, recordsize {record} is there twice")
    return Table(first, last, document["tried"], document["lengths"], apart)
