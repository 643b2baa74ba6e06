"""torn_pages.toml: which pages came apart in the intent log, tried on each line of OpenZFS. Its head explains its words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

from auditor import data
from auditor.data import releases

FILE = "torn_pages.toml"
KIB = 1024
LARGEST = 128 * KIB  # record
# with what it was made
CONDITIONS = {"zil_maxblocksize": 131072, "zfs_immediate_write_sz": 32768}

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
    """By line."""
    return parse(data.table(FILE))


def parse(lines: data.Document) -> dict[str, Table]:
    """The tables of a document in this form."""
    return {line: _table(each) for line, each in lines.items()}


def digest(rows: Sequence[Mapping[str, Any]]) -> str:
    """Of the rows and those that are confirmed: no hand changes them."""
    import hashlib

    return hashlib.sha256(repr([sorted(each.items()) for each in rows]).encode()).hexdigest()[:16]


def _table(line: data.Document) -> Table:
    apart: dict[Setting, dict[int, int]] = {}
    for each in line["rows"]:
        records = apart.setdefault(Setting(each["page"] * KIB, each["logbias"], each["write"], each["slog"]), {})
        records |= {record * KIB: each["apart"] for record in each["recordsizes"]}
    first, last = (releases.of(line[key]) or () for key in ("first", "last"))
    return Table(first, last, line["tried"], line["lengths"], apart)
