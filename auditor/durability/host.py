"""A host as the model sees it, plain fields, each of which is known, or None; and the events that strike it.

Names join the parts, so that one drive below two legs is one drive, and pools may lie on each other. What a default says is
what a healthy host has; where nobody looked, the field is None. None of the classes knows where a value comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

from auditor.durability.answers import Party

EventName = Literal["process", "restart", "crash", "power", "power+log", "power+drive", "drive", "log", "below"]
EVENTS: tuple[EventName, ...] = get_args(EventName)
Question = Literal["commits", "consistency", "pool"]
QUESTIONS: tuple[Question, ...] = get_args(Question)
Class = Literal["data", "log"]


@dataclass(frozen=True)
class Event:
    """stops: the kernel ends, and the pool is imported again. memory: what this host's memory holds is gone. takes: one
    physical drive of this class goes, with all that lies on it at any depth; device: which one. everything: the pools go with
    all that is on them."""

    name: EventName | Literal["gone"]
    process: bool = False
    stops: bool = False
    memory: bool = False
    power: bool = False
    below: bool = False
    everything: bool = False
    takes: Class | Literal[""] = ""
    device: str = ""

    @cached_property
    def harm(self) -> Event:
        """The same without its name and its drive."""
        return replace(self, name="process", takes="", device="")

    def empties(self, place: Place | None, virtual: bool | None) -> bool | None:
        """Is a volatile cache at this place gone? The power cut of a virtual machine leaves the hypervisor and its devices."""
        if place is None:
            return None if self.memory else False
        if place == "host":
            return self.memory
        if self.below or not self.power:
            return self.below
        return False if place == "hypervisor" else None if virtual is None else not virtual


_CUT = Event("power", process=True, stops=True, memory=True, power=True)
ALL: dict[EventName, Event] = {
    "process": Event("process", process=True),
    "restart": Event("restart", process=True, stops=True),
    "crash": Event("crash", process=True, stops=True, memory=True),
    "power": _CUT,
    "power+log": replace(_CUT, name="power+log", takes="log"),
    "power+drive": replace(_CUT, name="power+drive", takes="data"),
    "drive": Event("drive", takes="data"),
    "log": Event("log", takes="log"),
    "below": replace(_CUT, name="below", below=True),
}
# the pools with all that is on them: only another host has anything left, and no element of the path changes that
GONE = Event("gone", everything=True)
# milder, more severe: what survives the more severe one survives the milder one
ORDER: tuple[tuple[EventName, EventName], ...] = (
    ("process", "crash"),
    ("restart", "crash"),
    ("crash", "power"),
    ("power", "power+log"),
    ("power", "power+drive"),
    ("power", "below"),
    ("drive", "power+drive"),
    ("log", "power+log"),
)


State = Literal["ONLINE", "DEGRADED", "OFFLINE", "FAULTED", "FORCED", "REMOVED", "UNAVAIL"]
Cache = Literal["none", "volatile", "protected"]
Place = Literal["host", "device", "hypervisor"]
Sync = Literal["standard", "always", "disabled"]
Asks = Literal["before", "later", "never"]
Key = Literal["available", "absent", "behind itself"]
WORKING = ("ONLINE", "DEGRADED")
_NAMES = ("name", "pool", "dataset", "on", "drives", "layers")  # fields that name a part


@dataclass(frozen=True)
class Store:
    """A physical drive (name: WWN or serial number), or a layer above it: a RAID controller, a virtual disk, a network target,
    a device mapper target, the queue of a loop device.

    ZFS acknowledges although a flush failed: zio_flush() is called with ZIO_FLAG_DONT_PROPAGATE (zil.c zil_lwb_write_done(),
    the same in 2.1.11, 2.3.9 and 2.4.4).
    """

    name: str
    party: Party = "drive"
    place: Place | None = "device"  # where its cache is: memory of this host, of the device, or of the hypervisor
    cache: Cache | None = "protected"
    passes: bool | None = True  # a flush reaches it, and goes on to what is below: queue/write_cache, dm targets
    completes: bool | None = True  # no flush of it has failed
    counted: bool | None = True  # None: what is configured passes flushes, and nobody has counted or followed them
    honours: bool | None = True  # what it says of its cache and of flushes: documented or proven, None: not verified
    tried: bool | None = True  # False: a power cut took what it had flushed; None: records of cuts could not be read
    # RAID below it outlives a drive of its own; None: that is not visible from here (a LUN)
    redundant: bool | None = False
    # it shares no physical drive with another store; None: of a virtual disk or a LUN nobody knows
    alone: bool | None = True


@dataclass(frozen=True)
class Leg:
    """One child of a vdev: it lies on drives, or on a dataset of this host (a file, a zvol, a loop device over either).

    state: as in zpool status; FORCED: faulted by `zpool offline -f`, which zpool status calls an external device fault. Such a
    fault stays across imports, that of ZED does not (vdev.c vdev_alloc()).
    """

    name: str
    drives: tuple[str, ...] = ()
    needed: int | None = None  # so many of the drives (an md mirror: 1); None: all of them
    layers: tuple[str, ...] = ()  # stores between ZFS and the drives, the uppermost first
    on: str = ""  # the dataset below; layers are above it
    state: State | None = "ONLINE"
    in_sync: bool | None = True  # resilvered: it has what is older than its last absence (its DTL is empty)
    clean: bool | None = True  # no error since the last scrub that ended without one
    opens: bool | None = True  # the next import can open it: key, driver, path
    answers: bool | None = None  # a FAULTED one: does the device work again?


@dataclass(frozen=True)
class Vdev:
    """needed: legs that must survive: 1 of a mirror, children less parity of a raidz or draid."""

    name: str
    legs: tuple[Leg, ...]
    needed: int = 1

    @property
    def tolerates(self) -> int:
        return len(self.legs) - self.needed


@dataclass(frozen=True)
class Pool:
    """Log blocks go to the first class that has room: log, from 2.4 on special, then normal (zio.c zio_alloc_zil() of 2.4.4; of
    2.1.11 without special)."""

    name: str
    normal: tuple[Vdev, ...]
    special: tuple[Vdev, ...] = ()
    dedup: tuple[Vdev, ...] = ()
    log: tuple[Vdev, ...] = ()
    special_logs: bool | None = True  # the release puts log blocks on special vdevs
    log_room: bool | None = True  # False: the class is full; None: it can fill
    special_room: bool | None = True
    zil_flush: bool | None = True  # zil_nocacheflush=0 and zfs_nocacheflush=0 (zil.c zil_lwb_add_block())
    txg_flush: bool | None = True  # zfs_nocacheflush=0 (vdev_disk.c, vdev_file.c)
    imports: bool | None = True  # the next boot imports it as it is: no force, features known, cache file or scan
    works: bool = False  # it is known to take writes now, whatever was seen of its legs

    @cached_property
    def data(self) -> tuple[Vdev, ...]:
        """The vdevs that the pool cannot do without."""
        return self.normal + self.special + self.dedup

    def with_vdevs(self, of: Callable[[Vdev], Vdev]) -> Pool:
        """The same with other vdevs in place of its own."""
        normal, special, dedup, log = (
            tuple(map(of, vdevs)) for vdevs in (self.normal, self.special, self.dedup, self.log)
        )
        return replace(self, normal=normal, special=special, dedup=dedup, log=log)


@dataclass(frozen=True)
class Dataset:
    name: str
    pool: str
    sync: Sync | None = "standard"
    volume: bool = False  # a zvol: nobody else's files are in its log
    # logbias=throughput, Direct I/O, large writes without a log device: the log has pointers
    indirect: bool | None = False
    # Direct I/O: the block that the log points to is not flushed (zfs_vnops.c zfs_get_data())
    direct: bool | None = False
    replays: bool | None = True  # zil_replay_disable=0 at the next import: it is read at the mount (zfs_vfsops.c)
    sound: bool | None = True  # False: a known defect loses what was logged; None: a report of one, without a mechanism
    key: Key | None = "available"  # of an encrypted one; behind itself: nowhere but on what it unlocks
    claimed: bool = False  # it has a log from before the import, which no mount has replayed yet (zil.c zil_claim())
    unmounts: bool | None = None  # an orderly stop waits for its txg: it unmounts, or the zvol's last user closes it


@dataclass(frozen=True)
class Use:
    """How a program comes to a dataset, for its log or for its pages.

    asks: before: it asks for durability before it relies on it (the log: before it acknowledges; pages: before it discards the
    log); later: it asks, and does not wait; never: fsync=off, O_DIRECT_NO_FSYNC.
    reaches: what it relies on has come to zfs_write() or zvol_write(), where sync=always holds it: it does not wait in the page
    cache of a guest, of the zvol's block device or of an NFS client, nor in a memory map.
    """

    dataset: str
    asks: Asks | None = "before"
    passes: bool | None = True  # the request reaches ZFS: no libeatmydata, NFS async, cache=unsafe, nobarrier
    reaches: bool | None = True
    remote: bool | None = False  # the program runs on, with what it remembers, when this host crashes: a client of NFS


@dataclass(frozen=True)
class Program:
    """A database: its log, and its pages where they are not the log. assumed: a dataset on which no database is known; what
    writes to it may call fsync, or not.

    guard: full_page_writes, doublewrite, or an engine that writes no page in place.
    """

    name: str
    log: Use
    pages: tuple[Use, ...] = ()
    assumed: bool = False
    leaves: bool | None = True  # it has called write(2) before it acknowledges
    closes: bool | None = True  # an orderly stop of it ends with a flush; None: it depends on the application
    recovers: bool | None = True  # it recovers from an unclean stop: its redo log is on
    guard: bool | None = True
    page_in_block: bool | None = True  # each page lies within one block of its file
    splits: bool | None = False  # the intent log may write a page in two parts
    elsewhere: bool | None = False  # it waits for other hosts before it acknowledges
    standby: bool | None = False  # a standby does, which takes over where this host is gone, and not where it returns

    @property
    def uses(self) -> tuple[Use, ...]:
        return self.log, *self.pages


@dataclass(frozen=True)
class Host:
    """virtual: a virtual machine; its power cut stops the machine, while the hypervisor lives on."""

    pools: Mapping[str, Pool]
    datasets: Mapping[str, Dataset]
    programs: Mapping[str, Program]
    stores: Mapping[str, Store] = field(default_factory=dict)
    virtual: bool | None = False

    def store(self, name: str) -> Store:
        """One of which nobody knows anything, where nothing is known of it."""
        return self.stores.get(name) or Store(
            name, place=None, cache=None, passes=None, completes=None, honours=None, alone=None
        )

    def knows(self, program: Program) -> bool:
        """Are all of its datasets and their pools here?"""
        return all(
            use.dataset in self.datasets and self.datasets[use.dataset].pool in self.pools for use in program.uses
        )

    def pools_of(self, program: Program) -> list[Pool]:
        names = dict.fromkeys(self.datasets[use.dataset].pool for use in program.uses if use.dataset in self.datasets)
        return [self.pools[name] for name in names if name in self.pools]

    def pools_below(self, program: Program) -> list[Pool]:
        """They, and all pools below them."""
        found: dict[str, Pool] = {}
        todo = self.pools_of(program)
        while todo:
            pool = todo.pop(0)
            if pool.name not in found:
                found[pool.name] = pool
                todo += self._next(pool)
        return list(found.values())

    def path_of(self, program: Program) -> Host:
        """What the program depends on, and nothing else."""
        pools = {each.name: each for each in self.pools_below(program)}
        legs = [leg for pool in pools.values() for vdev in pool.data + pool.log for leg in vdev.legs]
        names = dict.fromkeys((*(use.dataset for use in program.uses), *(leg.on for leg in legs)))
        datasets = {name: self.datasets[name] for name in names if name in self.datasets}
        below = dict.fromkeys(name for leg in legs for name in (*leg.layers, *leg.drives))
        stores = {name: self.stores[name] for name in below if name in self.stores}
        return replace(self, pools=pools, datasets=datasets, programs={program.name: program}, stores=stores)

    def __hash__(self) -> int:
        parts = (self.pools, self.datasets, self.programs, self.stores)
        return hash((*(tuple(each.values()) for each in parts), self.virtual))

    def numbered(self) -> tuple[Host, Mapping[str, str]]:
        """With numbers for the names, and the name of each number: hosts that differ in names alone become one."""
        numbers: dict[str, str] = {"": ""}

        def number(value: str | tuple[str, ...]) -> object:
            one = isinstance(value, str)
            return numbers.setdefault(value, f"#{len(numbers)}") if one else tuple(map(number, value))  # type: ignore[arg-type]

        def without(part: Any) -> Any:
            if isinstance(part, Mapping):
                return {number(name): without(each) for name, each in part.items()}
            if isinstance(part, tuple):
                return tuple(map(without, part))
            if not is_dataclass(part) or isinstance(part, type):
                return part
            named = ((each.name, getattr(part, each.name)) for each in fields(part))
            return replace(part, **{name: number(value) if name in _NAMES else without(value) for name, value in named})

        host: Host = without(self)
        return host, {number: name for name, number in numbers.items()}

    def _next(self, pool: Pool) -> list[Pool]:
        on = dict.fromkeys(leg.on for vdev in pool.data + pool.log for leg in vdev.legs)
        names = dict.fromkeys(self.datasets[name].pool for name in on if name in self.datasets)
        return [self.pools[name] for name in names if name in self.pools]

    @cached_property
    def circles(self) -> frozenset[str]:
        """Pools that lie on themselves."""
        below = {name: [each.name for each in self._next(pool)] for name, pool in self.pools.items()}
        found = set[str]()
        for name in below:
            reached, todo = set[str](), below[name][:]
            while todo:
                if (one := todo.pop()) not in reached:
                    reached.add(one)
                    todo += below[one]
            if name in reached:
                found.add(name)
        return frozenset(found)
