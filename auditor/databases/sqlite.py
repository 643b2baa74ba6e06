"""SQLite: a library, so there is no server to be found, and no name tells such a file. But a process that has one open in WAL
mode, or is within a transaction, holds the lock of all readers on it, whose bytes no other program locks. ``/proc/locks``
names a device and an inode: nothing is read that anybody could have chosen. A file in rollback mode that waits for its next
transaction has no lock, and is not seen.

(SQLite src/os.h PENDING_BYTE, SHARED_FIRST, SHARED_SIZE; SQLite manual, File Locking, WAL; man 5 proc_locks)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from auditor.databases import engine as base
from auditor.databases.engine import Engine, Found, InForce, Launch, Line, Promise
from auditor.facts import HOST, Evidence, Fact, Known, Spec, Subject, Value
from auditor.host.request import Files, Read
from auditor.sources.mounts import TABLES, mounts
from auditor.sources.source import source

if TYPE_CHECKING:
    from auditor.databases.configuration import Tree


class SQLite(Engine):
    name = "sqlite"
    place = 4
    title = "SQLite"
    page_bytes = 4096  # SQLite manual: PRAGMA page_size, since 3.12.0
    processes = ()
    settings = ()
    files = ()
    taken_over = ""
    units = ""
    in_place = ()
    compared = ()
    omitting: Mapping[str, tuple[Value, ...]] = {}
    new_on_empty = ""
    profile = "sqlite"

    def arguments(self, given: Sequence[str]) -> list[Line]:
        return [base.DOUBT for _ in given]

    def wanted(self, launch: Launch) -> list[str]:
        return []

    def read(self, launch: Launch, tree: Tree) -> Found:
        yield from ()

    def promise(self, settings: InForce, synchronous: bool | None) -> Promise:
        return Promise(None, None, None)


ENGINE = SQLite()

LOCKS_FACTS = {"sqlite_files": Spec.words("DATASET=COUNT of the files on it that have the locks of SQLite")}
LOCKS = "/proc/locks"
FIRST, LAST = 0x40000000, 0x400001FF  # PENDING_BYTE, and the end of the range that is shared
# "1: POSIX  ADVISORY  READ 965 fe:00:10144152 1073741826 1073742335"
_LINE = re.compile(r"\d+: POSIX +ADVISORY +(?:READ|WRITE) +(-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) (\d+) (\d+)")


@source("sqlite_locks", "host", ask=Read((LOCKS, *TABLES)), facts=LOCKS_FACTS)
def sqlite_locks(reply: Files, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where it was cut off, or no table of mounts says which device is which dataset."""
    text = reply.text.get(LOCKS)
    tables = [reply.text[path] for path in TABLES if path in reply.text]
    if text is None:
        raise ValueError(f"{LOCKS}: {reply.errors.get(LOCKS, 'was not read')}")
    if (text and not text.endswith("\n")) or not tables:
        raise ValueError(f"{LOCKS} is cut off" if tables else f"{TABLES[0]}: was not read")
    datasets = {
        each.major_minor: each.source
        for table in tables
        for each in mounts(table)
        if each.fstype == "zfs" and "@" not in each.source
    }
    held: dict[str, set[str]] = {}
    holders: dict[str, set[int]] = {}
    for found in map(_LINE.fullmatch, text.splitlines()):
        if found and FIRST <= int(found[5]) <= FIRST + 2 and int(found[6]) == LAST:
            device = f"{int(found[2], 16)}:{int(found[3], 16)}"
            if name := datasets.get(device):
                held.setdefault(name, set()).add(found[4])
                holders.setdefault(name, set()).add(int(found[1]))
    seen = tuple(
        Evidence(
            f"{len(held[name])} open files of {name} have the locks of SQLite, of process {min(holders[name])}",
            "lslocks",
        )
        for name in sorted(held)
    )
    value = tuple(f"{name}={len(held[name])}" for name in sorted(held))
    yield Fact(
        HOST, "sqlite_files", Known(value, seen or (Evidence("no file on ZFS has the locks of SQLite", "lslocks"),))
    )
