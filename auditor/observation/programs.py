"""What each database does before it acknowledges, from its settings."""

from __future__ import annotations

from typing import NamedTuple

from auditor.durability.host import Asks, Dataset, Leg, Pool, Program, Store, Use, Vdev
from auditor.facts import Subject, Unknown, words_of
from auditor.observation.reading import Reading, opposite

NO_SYNC_OF_PAGES = ("O_DIRECT_NO_FSYNC", "NOSYNC", "LITTLESYNC")
IN_PLACE = ("postgres", "mysql", "mariadb")  # engines that overwrite a page where it lies


class Engine(NamedTuple):
    """What the settings of an engine come to."""

    leaves: bool | None = True
    log: Asks | None = "before"
    pages: Asks | None = "before"
    elsewhere: bool | None = False
    recovers: bool = True


class Settings:
    """Of one database: those in force, or those of its files, which its next start reads; they are unknown where the server
    says what is in force, and nobody read them."""

    def __init__(self, reading: Reading, database: Subject) -> None:
        self._reading, self._database = reading, database
        said = reading.facts.get(database, "configured")
        self._unread = reading.next_boot and isinstance(said, Unknown) and reading.flag(database, "live") is True
        self._files = dict[str, str]()
        if reading.next_boot:
            self._files = {name: value for name, _, value in (each.partition(" = ") for each in words_of(said))}

    def flag(self, name: str) -> bool | None:
        if name in self._files:
            return self._files[name] == "on"
        return None if self._unread else self._reading.flag(self._database, name)

    def word(self, name: str) -> str | None:
        if name in self._files:
            return self._files[name]
        return None if self._unread else self._reading.word(self._database, name)

    def number(self, name: str) -> int | None:
        if self._files.get(name, "").isdigit():
            return int(self._files[name])
        return None if self._unread else self._reading.number(self._database, name)


def engine(name: str | None, settings: Settings, roles: bool | None) -> Engine:
    """roles: does no role or database of PostgreSQL commit asynchronously? Where nobody asked the server, those of its files
    count."""
    match name:
        case "postgres":
            commit = settings.word("synchronous_commit")
            left = None if commit is None else commit != "off" and roles is not False
            fsync = _asks(settings.flag("fsync"), otherwise="never")
            return Engine(left, "later" if fsync == "before" and left is False else fsync, fsync)
        case "mysql" | "mariadb":
            return _innodb(settings)
        case "mongodb":
            return _mongodb(settings)
        case "redis":
            return _redis(settings)
        case "etcd":
            fsync = _asks(opposite(settings.flag("no_fsync")), otherwise="never")
            return Engine(True, fsync, fsync)
    return Engine(None, None, None)


def _asks(value: bool | None, otherwise: Asks) -> Asks | None:
    return None if value is None else "before" if value else otherwise


def _innodb(settings: Settings) -> Engine:
    """With sync_binlog other than 1 recovery rolls back what the binary log lacks; 3 of innodb_flush_log_at_trx_commit is as
    good as 1 (MariaDB)."""
    at_commit, binlog = settings.number("flush_log_at_commit"), settings.number("sync_binlog")
    method, doublewrite = settings.word("flush_method"), settings.word("doublewrite")
    redo = settings.flag("redo_log")
    log: Asks | None = "before"
    if method == "NOSYNC":
        log = "never"
    elif at_commit in (0, 2) or (binlog is not None and binlog != 1):
        log = "later"
    elif at_commit is None or binlog is None or method is None:
        log = None
    pages: Asks | None = None if method is None else "never" if method in NO_SYNC_OF_PAGES else "before"
    if doublewrite == "FAST":
        pages = "never"
    left = False if at_commit == 0 else None if at_commit is None else True
    return Engine(left, log, pages, recovers=redo is not False)


def _mongodb(settings: Settings) -> Engine:
    """A member of a replica set relies on the others: with arbiters the default is w:1, which waits for no journal."""
    journal, alone = settings.flag("journal"), settings.flag("standalone")
    if journal is False:
        return Engine(False, "never", "before", elsewhere=opposite(alone))
    if alone is False:
        return Engine(False, "later", "before", elsewhere=True)
    known = journal is not None and alone is not None
    return Engine(False if known else None, "later" if known else None, "before", elsewhere=opposite(alone))


def _redis(settings: Settings) -> Engine:
    """everysec holds a write back for two seconds while a sync runs (aof.c flushAppendOnlyFile())."""
    append, sync = settings.flag("appendonly"), settings.word("appendfsync")
    if append is False:
        return Engine(False, "never")
    if append is None or sync is None:
        return Engine(None, None)
    return {"always": Engine(), "no": Engine(True, "never")}.get(sync, Engine(False, "later"))


class Databases:
    """programs: one of each database. elsewhere: pools, datasets and stores for what they keep on other file systems."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.pools: dict[str, Pool] = {}
        self.datasets: dict[str, Dataset] = {}
        self.stores: dict[str, Store] = {}

    def program(self, database: Subject) -> Program:
        reading = self._reading
        name = reading.word(database, "engine")
        found = engine(name, Settings(reading, database), reading.none(database, "asynchronous_roles"))
        passes = opposite(reading.flag(database, "eatmydata"))
        if reading.word(database, "process") == "self":
            passes = True  # it does not run: nothing is loaded into it
        log, pages = self._places(database)
        uses = [Use(each, found.log, passes) for each in log]
        in_place = name in IN_PLACE
        return Program(
            database.name,
            uses[0],
            (*uses[1:], *(Use(each, found.pages, passes) for each in pages)),
            leaves=found.leaves,
            recovers=found.recovers,
            guard=Settings(reading, database).flag("torn_page_guard") if in_place else True,
            page_in_block=self._within_block(database) if in_place else True,
            splits=reading.flag(database, "log_splits_page") if in_place else False,
            elsewhere=found.elsewhere,
        )

    def _within_block(self, database: Subject) -> bool | None:
        """In files that it has, and in those that it will make."""
        reading = self._reading
        page, within = reading.number(database, "page_bytes"), reading.flag(database, "page_within_block")
        sizes = [reading.number(each, "recordsize") for each in reading.links(database, "data_datasets") or ()]
        if not sizes or page is None or None in sizes:
            return False if within is False else None
        return within if all(size is not None and size >= page for size in sizes) else False

    def _places(self, database: Subject) -> tuple[list[str], list[str]]:
        """Names of datasets of its log, and of its pages; what is not on ZFS has names of its own."""
        reading = self._reading
        every = reading.links(database, "datasets")
        log, data = (reading.links(database, each) for each in ("log_datasets", "data_datasets"))
        off = reading.words(database, "off_zfs")
        if every is None or off is None:
            unknown = f"the files of {database.name}"
            return [unknown], [unknown]
        other = [self._other(each, each in (reading.words(database, "forgotten") or ())) for each in off]
        here = [each.name for each in every]
        logs = [each.name for each in log or ()] or other or here
        pages = [each.name for each in data or ()] or (other if log else here)
        return logs or [f"the files of {database.name}"], list(dict.fromkeys((*pages, *here, *other)))

    def _other(self, what: str, forgotten: bool) -> str:
        """A file system that is not ZFS keeps what it is asked to, as far as anybody knows; one in memory keeps nothing."""
        queue = Store(what, "layer", "host", "volatile", passes=not forgotten)
        under = Store(f"what is below {what}", "layer", cache="volatile", honours=None, redundant=None)
        drives = () if forgotten else (under.name,)
        leg = Leg(what, drives, layers=(queue.name,))
        self.stores |= {queue.name: queue, under.name: under}
        self.pools[what] = Pool(what, (Vdev(what, (leg,)),))
        self.datasets[what] = Dataset(what, what)
        return what
