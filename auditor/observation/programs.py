"""What each database does before it acknowledges, from its settings."""

from __future__ import annotations

from auditor.databases import ENGINES
from auditor.databases.engine import Promise
from auditor.durability.host import Dataset, Leg, Pool, Program, Store, Use, Vdev
from auditor.facts import Subject, Unknown, words_of
from auditor.observation.reading import Reading, opposite


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


class Databases:
    """programs: one of each database. elsewhere: pools, datasets and stores for what they keep on other file systems."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.pools: dict[str, Pool] = {}
        self.datasets: dict[str, Dataset] = {}
        self.stores: dict[str, Store] = {}

    def program(self, database: Subject) -> Program:
        reading = self._reading
        engine, settings = ENGINES.get(reading.word(database, "engine") or ""), Settings(reading, database)
        found = Promise(None, None, None)
        if engine:
            found = engine.promise(settings, reading.none(database, "asynchronous_roles"))
        passes = opposite(reading.flag(database, "eatmydata"))
        if reading.word(database, "process") == "self":
            passes = True  # it does not run: nothing is loaded into it
        log, pages = self._places(database)
        uses = [Use(each, found.log, passes) for each in log]
        in_place = engine is not None and bool(engine.in_place)
        return Program(
            database.name,
            uses[0],
            (*uses[1:], *(Use(each, found.pages, passes) for each in pages)),
            leaves=found.leaves,
            recovers=found.recovers,
            guard=settings.flag("torn_page_guard") if in_place else True,
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
