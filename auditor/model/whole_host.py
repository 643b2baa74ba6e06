"""A host of the model from the facts of an audit: what is in force now, and what the next boot puts in force."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from auditor import data
from auditor.data import releases
from auditor.databases import ENGINES
from auditor.databases.engine import Promise
from auditor.durability.host import Dataset, Host, Key, Leg, Pool, Program, Store, Sync, Use, Vdev
from auditor.facts import HOST, Facts, Kind, Known, Subject, Unknown
from auditor.model.stores import Pools, Reading, both, opposite, virtual_machine, zero

SYNCS: Mapping[str, Sync] = {"standard": "standard", "always": "always", "disabled": "disabled"}


class Observation(NamedTuple):
    """programs: by dataset (or pool, where its datasets could not be listed), those whose commits lie there; one program
    stands for all datasets that are alike. about: by name of a store, the disks and leaves that it is made from."""

    host: Host
    programs: Mapping[str, tuple[str, ...]]
    about: Mapping[str, tuple[Subject, ...]]


class Storage:
    """What the next boot has in common with now: of the same facts it is read once."""

    def __init__(self, facts: Facts) -> None:
        self.pools, self.kinds = Pools(facts), Kinds(facts)


def read(reading: Reading, storage: Storage | None = None) -> Observation:
    facts = reading.facts
    storage = storage or Storage(facts)
    pools = {each.name: storage.pools.pool(each, reading) for each in facts.linked(HOST, "pools")}
    databases = Databases(reading)
    datasets = Datasets(reading, pools, storage.kinds)
    programs = {each.name: databases.program(each) for each in reading.links(HOST, "databases") or ()}
    for name, program in programs.items():  # what the site has declared to be rebuilt from elsewhere is kept there
        if {reading.word(Subject("dataset", use.dataset), "role") for use in program.uses} == {"rebuildable"}:
            programs[name] = replace(program, elsewhere=True)
    found: dict[str, dict[str, None]] = {}
    for program in programs.values():
        for use in program.uses:
            found.setdefault(use.dataset, {})[program.name] = None
            datasets.keep(use.dataset)
    for database in reading.links(HOST, "databases") or ():
        datasets.doubt(database, programs[database.name])
    for pool in facts.linked(HOST, "pools"):
        listed = reading.links(pool, "datasets")
        for name in (pool.name,) if listed is None else (each.name for each in listed):
            if name not in found:
                program = datasets.assume(name)
                programs.setdefault(program.name, program)
                found[name] = {program.name: None}
    for each in pools.values():
        for vdev in each.data + each.log:
            for leg in vdev.legs:
                if leg.on:
                    datasets.keep(leg.on)
    for name in list(datasets.found):
        owner = name.partition("/")[0]
        if owner not in pools and facts.of(Subject("pool", owner)):
            pools[owner] = storage.pools.pool(Subject("pool", owner), reading)
    stores = storage.pools.stores
    host = Host(
        {**pools, **databases.pools},
        {**datasets.found, **databases.datasets},
        programs,
        {**stores.found, **databases.stores},
        virtual_machine(reading),
    )
    about = {name: tuple(each) for name, each in stores.about.items()}
    return Observation(host, {name: tuple(each) for name, each in found.items()}, about)


class Kinds:
    """Datasets by what the model reads of them, now or for the next boot: of thousands that are alike one is read."""

    READ = (
        *("sync", "readonly", "type", "logbias", "direct", "role", "encryption", "keylocation", "key_inside"),
        "log_claimed",
        "commits_directly",
        *("flushes_dropped", "flushes_dropped_at_start", "carries", "flushes_lost", "nfs_async", "smb_flush_ignored"),
    )

    def __init__(self, facts: Facts) -> None:
        self._facts, self._reading = facts, Reading(facts)
        self._found: dict[str, tuple[object, ...]] = {}

    def of(self, name: str) -> tuple[object, ...]:
        if name not in self._found:
            dataset = Subject("dataset", name)
            own = self._facts.of(dataset)
            read = [own[each].or_none() if each in own else None for each in self.READ]
            self._found[name] = name.partition("/")[0], encryption_root(dataset, self._reading), *read
        return self._found[name]


class Datasets:
    """found: those that a program uses, one of each kind."""

    def __init__(self, reading: Reading, pools: Mapping[str, Pool], kinds: Kinds) -> None:
        self._reading, self._pools, self._kinds = reading, pools, kinds
        self._assumed: dict[tuple[object, ...], Program] = {}
        self._alike: dict[tuple[Dataset, Use, str | None], str] = {}
        self._roots: dict[str, Key | None] = {}
        self._broken = {bug: _has(bug, reading) for bug in ("zvol-flush-lost", "zvol-blk-mq-sync")}
        expected, known = (reading.flag(HOST, f"database_{each}") for each in ("expected", "seen"))
        unseen = reading.links(HOST, "databases") is None
        # a database that was named, and is none that was found
        self._leaves = None if unseen or (expected and not known) else True
        self.found: dict[str, Dataset] = {}

    def keep(self, name: str) -> None:
        if name not in self.found and self._reading.facts.of(Subject("dataset", name)):
            self.found[name] = self._dataset(name)

    def doubt(self, database: Subject, program: Program) -> None:
        """Pages of InnoDB were lost with pointers in the log, and nobody has found how (openzfs/zfs#18996)."""
        if self._reading.word(database, "engine") in ("mysql", "mariadb"):
            for name in {use.dataset for use in program.uses} & self.found.keys():
                each = self.found[name]
                if self._reading.word(Subject("dataset", name), "logbias") == "throughput" and each.sync != "disabled":
                    self.found[name] = replace(each, sound=None)

    def assume(self, name: str) -> Program:
        """What writes to a dataset on which no database is known: the same for all that are alike."""
        kind = self._kinds.of(name)
        if kind not in self._assumed:
            self._assumed[kind] = self._program(name)
        return self._assumed[kind]

    def _program(self, name: str) -> Program:
        """Facts that differ may say the same to the model."""
        dataset, use = self._dataset(name), self._use(name)
        kind = replace(dataset, name=""), replace(use, dataset=""), self._reading.word(Subject("dataset", name), "role")
        first = self._alike.setdefault(kind, name)
        if first == name:
            self.found[name] = dataset
        rebuilt = self._reading.word(Subject("dataset", name), "role") == "rebuildable"
        return Program(
            f"what writes to {first}", replace(use, dataset=first), assumed=True, leaves=self._leaves, elsewhere=rebuilt
        )

    def _dataset(self, name: str) -> Dataset:
        reading, subject = self._reading, Subject("dataset", name)
        sync = SYNCS.get(reading.word(subject, "sync") or "")
        if reading.word(subject, "readonly") == "on":
            sync = "standard"  # nothing but zfs receive writes to it, which waits for its transaction group
        pool = name.partition("/")[0]
        return Dataset(
            name,
            pool,
            sync,
            volume=reading.word(subject, "type") == "volume",
            direct=self._direct(subject),
            indirect=self._indirect(subject, self._pools.get(pool)),
            replays=zero(reading.number(HOST, "zil_replay_disable_boot")),
            sound=self._sound(subject, sync),
            key=self._key(subject),
            claimed=reading.flag(subject, "log_claimed") is True,
        )

    def _indirect(self, dataset: Subject, pool: Pool | None) -> bool | None:
        """Pointers in the log: of logbias=throughput, of Direct I/O (from 2.3 on), of large writes without a log device
        (zfs_log.c zfs_log_write())."""
        reading = self._reading
        bias, line = reading.word(dataset, "logbias"), reading.line()
        if bias == "throughput":
            return True
        if bias is None or pool is None or not pool.log or line is None:
            return None
        direct = self._direct(dataset)
        return None if direct else direct

    def _direct(self, dataset: Subject) -> bool | None:
        """Where programs ask for it, the counters of pool and dataset show it."""
        reading, line = self._reading, self._reading.line()
        asked = reading.word(dataset, "direct")
        if asked == "disabled" or reading.number(HOST, "zfs_dio_enabled") == 0 or (line and line < (2, 3)):
            return False
        if reading.word(dataset, "type") == "volume":
            return False
        if asked == "always":
            return True
        return reading.flag(dataset, "commits_directly") if asked else None

    def _sound(self, dataset: Subject, sync: Sync | None) -> bool | None:
        """Releases that drop the flushes of volumes; with sync=always no flush is needed."""
        kind = self._reading.word(dataset, "type")
        if kind == "filesystem" or sync == "always":
            return True
        queue = self._reading.number(HOST, "zvol_use_blk_mq")
        blk_mq = both(self._broken["zvol-blk-mq-sync"], None if queue is None else queue != 0)
        broken = [self._broken["zvol-flush-lost"], blk_mq]
        if kind is None:
            return None if any(each is not False for each in broken) else True
        return False if True in broken else None if None in broken else True

    def _key(self, dataset: Subject) -> Key | None:
        root = encryption_root(dataset, self._reading)
        if root is None:
            return None if self._reading.word(dataset, "encryption") is None else "available"
        if root.name not in self._roots:
            self._roots[root.name] = self._key_of(root)
        return self._roots[root.name]

    def _key_of(self, root: Subject) -> Key | None:
        location, inside = self._reading.word(root, "keylocation"), self._reading.flag(root, "key_inside")
        if inside:
            return "behind itself"
        if location is None or location == "none":
            return None
        if not location.startswith("file://"):
            return "absent"  # somebody types it, or a server has it
        return None if inside is None else "available"

    def _use(self, name: str) -> Use:
        """What is above it: a file system or guest on a volume, an NFS or SMB client."""
        reading, dataset = self._reading, Subject("dataset", name)
        volume = reading.word(dataset, "type") != "filesystem"
        if reading.word(dataset, "readonly") == "on":
            return Use(name, "before")
        dropped = "flushes_dropped_at_start" if reading.next_boot else "flushes_dropped"
        arrives = [reading.none(dataset, dropped)]
        carries = reading.none(dataset, "carries")
        if volume or carries is not True:
            arrives.append(reading.none(dataset, "flushes_lost"))
        if not volume:
            arrives.append(opposite(reading.flag(dataset, "nfs_async")))
            arrives.append(opposite(reading.flag(dataset, "smb_flush_ignored")))
        # the page cache of whoever drops flushes on a volume is above it; what he writes to a file arrives there
        reaches = reading.none(dataset, "flushes_dropped") if volume else True
        return Use(name, None, _all(arrives), reaches=reaches)


def encryption_root(dataset: Subject, reading: Reading) -> Subject | None:
    """The nearest one upwards that has a keylocation; None of one that is not encrypted, as far as it is known."""
    if reading.word(dataset, "encryption") in ("off", None):
        return None
    while reading.word(dataset, "keylocation") == "none" and "/" in dataset.name:
        dataset = Subject("dataset", dataset.name.rpartition("/")[0])
    return dataset


def _all(values: Iterable[bool | None]) -> bool | None:
    found: bool | None = True
    for value in values:
        found = both(found, value)
    return found


def _has(bug: str, reading: Reading) -> bool | None:
    """Has the loaded module this bug of advisories.toml?"""
    release = reading.facts.get(HOST, "release")
    if not (isinstance(release, Known) and isinstance(release.value, tuple)):
        return None
    ranges = releases.ranges(data.table("advisories.toml")[bug]["affected"])
    if not any(releases.within(each, release.value) for each in ranges):
        return False
    return reading.flag(HOST, releases.build_fact(bug))


# What each database does before it acknowledges, from its settings.


class Settings:
    """Of one database: those in force, or those of its files, which its next start reads; they are unknown where the server
    says what is in force, and nobody read them."""

    def __init__(self, reading: Reading, database: Subject) -> None:
        self._reading, self._database = reading, database
        said = reading.facts.get(database, "configured")
        self._unread = reading.next_boot and isinstance(said, Unknown) and reading.flag(database, "live") is True
        self._files = dict[str, str]()
        if reading.next_boot:
            self._files = {name: value for name, _, value in (each.partition(" = ") for each in said.words())}

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
            standby=found.standby,
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


CALLED: tuple[Kind, ...] = ("pool", "dataset", "database")
INSIDE: tuple[Kind, ...] = ("vdev", "leaf")


def subjects(facts: Facts, observation: Observation, name: str) -> Iterator[Subject]:
    yield from observation.about.get(name, ())
    words = name.split(" ")  # a name of a pool may have blanks
    parts = ((" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words)))
    inside = (Subject(kind, part, pool) for pool, part in parts for kind in INSIDE)
    for subject in (*(Subject(kind, name) for kind in CALLED), *inside):
        if facts.of(subject):
            yield subject
    for database in facts.linked(HOST, "databases"):
        places = facts.linked(database, "datasets")
        if name == database.name:
            yield from places
        elif name == f"the files of {database.name}" or any(each.name == name for each in places):
            yield database
