"""Which look at a host counts: the newest, as far as the hosts themselves may say so.

A recording says what its host is called and when it was taken. One that says that it was taken in a time that has not come
would be the newest for ever, so it counts only where there is no other, and is told. One that takes the name of another host
stands in its place: nobody can tell here which of them is that host, so it is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from auditor.fleet.rows import Absent, BadRows, HostLook, Row

NAMES = 6  # of a list, before the rest is counted
HOSTS = 1_000_000  # more is no fleet
AHEAD = 86400.0  # seconds that the clocks of two machines may differ
_DATE = r"\d{4}-?\d\d-?\d\d"
_DATED = re.compile(rf"[-_.@]{_DATE}")
_ARCHIVE = re.compile(r"\.(?:tar\.gz|tgz|zaudit)$")


@dataclass(slots=True)
class Looks:
    """newest: name -> the look that counts. absent: what is no look. total: how many looks there are. ahead: hosts with a look
    in the future. claimed: names that recordings of several places have, of which at least one is not called so, and of
    how many places none counts."""

    newest: dict[str, HostLook] = field(default_factory=dict)
    absent: list[Absent] = field(default_factory=list)
    total: int = 0
    ahead: set[str] = field(default_factory=set)
    claimed: dict[str, int] = field(default_factory=dict)


def looks(rows: Iterable[Row], now: float) -> Looks:
    """now: seconds since the epoch. Raises BadRows."""
    found = Looks()
    places: dict[str, set[str]] = {}
    for row in rows:
        if isinstance(row, Absent):
            found.absent.append(row)
        elif isinstance(row, HostLook):
            found.total += 1
            if ahead(row.taken, now):
                found.ahead.add(row.name)
            places.setdefault(row.name, set()).add(place(row.recording, row.name))
            if (other := found.newest.get(row.name)) is None or _rank(other, now) < _rank(row, now):
                found.newest[row.name] = row
        if len(found.newest) + len(found.absent) > HOSTS:
            raise BadRows(f"more than {HOSTS:,} hosts")
    found.claimed = {name: len(at) - 1 for name, at in places.items() if len(at) > 1}
    return found


def ahead(taken: float, now: float) -> bool:
    """Whether that time has not come."""
    return taken - now > AHEAD


def _rank(look: HostLook, now: float) -> tuple[bool, tuple[str, float, str]]:
    return not ahead(look.taken, now), look.key


def named(recording: str) -> Iterator[str]:
    """What a host may be called by where its recording lies: by a folder or the name of the file, with a date behind it or
    without (db1/2026-11-22.tar.gz, db1.tar.gz, db1-2026-11-22.tar.gz). The outermost comes first: who may write into db2/
    names the files there."""
    path = PurePosixPath(recording)
    for name in (*path.parent.parts, _ARCHIVE.sub("", path.name)):
        yield name
        yield _DATED.split(name, maxsplit=1)[0]


def place(recording: str, host: str) -> str:
    """Where a recording comes from that says that it is of this host: the same for all that are called so, else its path
    without dates. A name that is a place means no other."""
    if not recording or host in named(recording) or undated(recording).endswith(host):
        return ""
    return re.sub(_DATE, "", recording)


def undated(recording: str) -> str:
    """The path of a recording without dates and ending: the same for each recording of one host; of a file that is nothing
    but a date its folder."""
    path = PurePosixPath(recording)
    parts = (
        _DATED.sub("", re.sub(rf"^{_DATE}$", "", each)) for each in (*path.parent.parts, _ARCHIVE.sub("", path.name))
    )
    return "/".join(filter(None, parts)) or recording


def names(every: Iterable[str], most: int = NAMES) -> str:
    """The first few, and how many more there are."""
    known = sorted(every)
    return ", ".join(known[:most]) + (f" and {len(known) - most:,} more" if len(known) > most else "")
