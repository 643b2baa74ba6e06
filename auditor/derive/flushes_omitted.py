"""Which databases on a dataset leave out flushes of what they have written: then sync=always is what keeps their commits.

With sync=always each write is in the log before write(2) returns, and these servers write before they acknowledge. It does not
help where a server acknowledges what it has not written (synchronous_commit off, innodb_flush_log_at_trx_commit 0).

(OpenZFS module/zfs/zfs_vnops.c zfs_write: zil_commit with ZFS_SYNC_ALWAYS, 2.1.11, 2.3.9, 2.4.4)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.databases import ENGINES
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Subject, Unknown, Value, join, known, words

SUBJECT = "host"  # each database is looked up once
FACTS = {"dataset.flushes_omitted": words("DATABASE: SETTING of the databases on it that leave out flushes")}
OF_ALL: dict[str, tuple[Value, ...]] = {"eatmydata": (True,)}
BINARY_LOG = "sync_binlog"  # any value but 1
NEEDS = (
    *("host.databases", "database.datasets", "database.engine", "database.process", "database.eatmydata"),
    *(f"database.{name}" for engine in ENGINES.values() for name in engine.omitting),
    f"database.{BINARY_LOG}",
)


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Unknown where a database, its place or its settings were not seen and none that was seen leaves them out."""
    databases = facts.get(host, "databases")
    unseen = [databases] if isinstance(databases, Unknown) else []
    omitted: dict[Subject, list[Evidence]] = {}
    unsure: dict[Subject, list[Unknown]] = {}
    for database in facts.linked(HOST, "databases"):
        places = facts.get(database, "datasets")
        if isinstance(places, Unknown):
            unseen.append(places)
        found, holes = _omitted(database, facts)
        for dataset in facts.linked(database, "datasets"):
            omitted.setdefault(dataset, []).extend(found)
            unsure.setdefault(dataset, []).extend(holes)
    nothing = known((), "no database that leaves out flushes was seen on it")
    for dataset in facts.subjects("dataset"):
        here: Judged = nothing
        if seen := omitted.get(dataset):
            here = Known(tuple(each.text for each in seen), tuple(seen))
        elif doubts := (*unseen, *unsure.get(dataset, ())):
            here = join(doubts)
        yield Fact(dataset, "flushes_omitted", here)


def _omitted(database: Subject, facts: Facts) -> tuple[list[Evidence], list[Unknown]]:
    """The settings with which it leaves out flushes, and those that were not seen."""
    engine = facts.get(database, "engine")
    if isinstance(engine, Unknown):
        return [], [engine]
    settings = {**ENGINES[str(engine.value)].omitting, **(OF_ALL if database.name.split()[-1].isdigit() else {})}
    found, holes = list[Evidence](), list[Unknown]()
    for name in (*settings, *((BINARY_LOG,) if BINARY_LOG in ENGINES[str(engine.value)].compared else ())):
        value = facts.get(database, name)
        if isinstance(value, Unknown):
            holes.append(value)
        elif value.value != 1 if name == BINARY_LOG else value.value in settings[name]:
            found += [each._replace(text=f"{database.name}: {each.text}") for each in value.evidence[:1]]
    return found, holes
