"""Drives, what lies between them and OpenZFS, and the pools on them, from facts.

A drive is one physical device: its partitions, namespaces and paths are one store, by serial number, NVMe subsystem and
world-wide name (:mod:`auditor.model.disk`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple, get_args

from auditor.durability.answers import Party
from auditor.durability.host import WORKING, Cache, Leg, Place, Pool, State, Store, Vdev
from auditor.facts import DATA, HOST, Facts, Known, Subject
from auditor.model.disk import HYPERVISOR, NETWORK, names
from auditor.model.vdev import resilver_unmarked

PASSING = frozenset({"partition"})  # no device of its own: the kernel moves the sectors
RAM_FILES, RAM_DISKS = ("tmpfs", "ramfs"), ("ram", "zram")
DECLARED = 3  # of plp_grade


class Stores:
    """found: by name, those of all legs that were asked for. about: the disks and leaves whose facts each is made from."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._virtual = virtual_machine(reading)
        self._first: dict[str, str] = {}  # a name of a drive -> the kernel name of the first disk that has it
        self.found: dict[str, Store] = {}
        self.about: dict[str, dict[Subject, None]] = {}

    def disk(self, disk: Subject) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The layers above the drives of a disk, and the drives."""
        name = self._drive(disk)
        self.about.setdefault(name, {})[disk] = None
        if name in self.found:
            return self._layers_of(name), (name,)
        if self._reading.flag(disk, "raid_volume"):
            self._volume(disk, name)
        elif self._reading.word(disk, "transport") == "usb":
            self._add(Store(f"the USB bridge of {name}", "controller", honours=None), disk)
            self._add(self._physical(disk, name), disk)
        else:
            self._add(self._store(disk, name), disk)
        return self._layers_of(name), (name,)

    def _layers_of(self, name: str) -> tuple[str, ...]:
        above = (f"the USB bridge of {name}", f"the RAID controller of {name}")
        return tuple(each for each in above if each in self.found)

    def _add(self, store: Store, *about: Subject) -> None:
        self.found[store.name] = store
        self.about.setdefault(store.name, {}).update(dict.fromkeys(about))

    def _drive(self, disk: Subject) -> str:
        """One name for all disks that are surely one drive."""
        called = names((disk,), self._reading.facts).sure
        known = next((self._first[each] for each in sorted(called) if each in self._first), disk.name)
        for each in called:
            self._first.setdefault(each, known)
        return known

    # -- kinds of disks ---------------------------------------------------------------------------------------------

    def _store(self, disk: Subject, name: str) -> Store:
        reading = self._reading
        transport, virtual = reading.word(disk, "transport"), reading.flag(disk, "virtual")
        if transport in RAM_DISKS:
            return Store(name, "layer", "host", "volatile", passes=False, redundant=True)  # no drive that could die
        if transport in NETWORK:
            return self._shown(disk, name, "target")
        if reading.word(disk, "drive_class") == "ephemeral":
            return Store(name, "hypervisor", "hypervisor", "volatile", passes=False, honours=None)
        if (virtual is not False and self._virtual is not False) or transport in HYPERVISOR:  # it may be emulated
            return self._shown(disk, name, "hypervisor")
        return self._physical(disk, name)

    def _shown(self, disk: Subject, name: str, party: Party) -> Store:
        """What is below is not visible: its redundancy, and whether what it says of its cache is so."""
        through = self._reading.word(disk, "virtio_cache_type") == "write through"
        volatile = self._reading.flag(disk, "volatile_cache")
        cache: Cache | None = "none" if through else None if volatile is None else "volatile" if volatile else "none"
        place: Place = "hypervisor" if party == "hypervisor" else "device"
        tried = self._tried(disk)
        honours = False if tried is False else None
        return Store(
            name, party, place, cache, self._flushed(disk), honours=honours, tried=tried, redundant=None, alone=None
        )

    def _physical(self, disk: Subject, name: str) -> Store:
        """honours: a document says that what it acknowledged outlives the power. What it only reports is relied on, and
        so is what has kept all in some power cuts; one that lost what it had flushed does not."""
        reading = self._reading
        volatile, grade = reading.flag(disk, "volatile_cache"), reading.number(disk, "plp_grade")
        documented = reading.word(disk, "drive_class") == "plp-full" and (grade or 0) >= DECLARED
        failed = reading.flag(disk, "plp_failed")
        cache: Cache | None = None if volatile is None else "volatile" if volatile else "none"
        honours: bool | None = None
        tried = self._tried(disk)
        if tried is False:
            honours = False
        elif documented and not failed:
            cache, honours = "protected", True
        elif failed and volatile is False:
            honours = False  # it says that it needs no flush, for capacitors that are dead
        errors = reading.number(disk, "logged_flush_errors")
        return Store(
            name,
            "drive",
            "device",
            cache,
            passes=self._flushed(disk),
            completes=None if errors is None else errors == 0,
            honours=honours,
            tried=tried,
            alone=None if names((disk,), reading.facts).nameless else True,
        )

    def _tried(self, disk: Subject) -> bool | None:
        """False: a power cut has shown that it loses what it flushed."""
        return opposite(self._reading.flag(disk, "lost_flushed"))

    def _flushed(self, disk: Subject) -> bool | None:
        found = self._reading.word(disk, "sysfs_write_cache")
        return None if found is None else found == "write back"

    def _volume(self, disk: Subject, name: str) -> None:
        """A controller, and all drives behind it as one: the kernel may end a flush itself, so that the drives get none
        (megaraid_sas: fw_sync_cache_support)."""
        reading = self._reading
        policy, protected = reading.word(disk, "raid_write_policy"), reading.flag(disk, "raid_cache_protected")
        cache: Cache | None = None
        if policy == "write through":
            cache = "none"
        elif protected:
            cache = "protected"
        elif policy == "write back" and protected is False:
            cache = "volatile"
        self._add(Store(f"the RAID controller of {name}", "controller", cache=cache, passes=False, honours=None), disk)
        behind = reading.word(disk, "raid_drive_cache")
        kept: dict[str | None, Cache] = {"off": "none", "on": "volatile", "on, protected": "protected"}
        level = reading.word(disk, "raid_level")
        self._add(Store(name, "drive", cache=kept.get(behind), redundant=None if level is None else level != "0"), disk)

    # -- what lies between ------------------------------------------------------------------------------------------

    def above(self, leaf: Subject) -> tuple[str, ...]:
        """Layers between OpenZFS and the disks of a leaf: OpenZFS itself, which may remember that a device needs no flush,
        then all of device-mapper, md, bcache as one."""
        reading = self._reading
        layers = reading.words(leaf, "layers")
        arrive, uncounted = reading.flag(leaf, "flushes_reach_disk"), reading.flag(leaf, "flushes_not_counted")
        flushes = Store(
            f"flushes of {leaf}",
            "layer",
            "device",
            "none",
            passes=True if arrive is None and uncounted else arrive,
            counted=True if arrive else None if uncounted else True,
        )
        self._add(flushes, leaf)
        if layers is not None and set(layers) <= PASSING:
            return (flushes.name,)
        caches = reading.words(leaf, "stack_write_cache")
        passes = None if caches is None else not any(each.endswith("=write through") for each in caches)
        rearranges = reading.flag(leaf, "stack_rearranges")
        stack = (reading.word(leaf, "stack") or "what is").split(", ")
        name = f"{' '.join(each for each in stack if each not in PASSING)} below {leaf}"
        cache: Cache = "volatile" if reading.flag(leaf, "stack_caches") else "none"
        self._add(Store(name, "layer", cache=cache, passes=passes, honours=True if rearranges is False else None), leaf)
        return flushes.name, name

    def memory(
        self, leaf: Subject, disk: Subject | None, below: str | None, on: str
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """A file, loop device or zvol: its queue, and what is below it where that is no dataset. Host memory keeps what it
        gets until it is flushed."""
        name, passes = (disk.name, self._flushed(disk)) if disk else (leaf.name, True)
        about = (disk, leaf) if disk else (leaf,)
        if on:
            self._add(Store(name, "layer", "host", "none", passes=passes), *about)
            return (name,), ()
        if below in RAM_FILES:
            self._add(Store(name, "layer", "host", "volatile", passes=False), *about)
            return (name,), ()
        under = f"the {below or 'file system'} below {name}"
        self._add(Store(name, "layer", "host", "volatile", passes=passes), *about)
        place: Place = "hypervisor" if self._virtual else "device"  # the disk below it is the hypervisor's
        self._add(Store(under, "layer", place, "volatile", honours=None, redundant=None), *about)
        return (name,), (under,)


def virtual_machine(reading: Reading) -> bool | None:
    found = reading.word(HOST, "virtualization")
    if found is None:
        return None
    return None if reading.flag(HOST, "container") else found != "none"


# Facts as fields of the model read them: a value, or None where it is not known.


class Reading(NamedTuple):
    """next_boot: read what the next boot puts in force, where that is a fact of its own."""

    facts: Facts
    next_boot: bool = False

    def flag(self, subject: Subject, name: str) -> bool | None:
        found = self.facts.get(subject, name).or_none()
        return found if isinstance(found, bool) else None

    def word(self, subject: Subject, name: str) -> str | None:
        found = self.facts.get(subject, name).or_none()
        return found if isinstance(found, str) else None

    def number(self, subject: Subject, name: str) -> int | None:
        found = self.facts.get(subject, name).or_none()
        return found if isinstance(found, int) else None

    def words(self, subject: Subject, name: str) -> tuple[str, ...] | None:
        found = self.facts.get(subject, name)
        return found.words() if isinstance(found, Known) else None

    def links(self, subject: Subject, name: str) -> tuple[Subject, ...] | None:
        found = self.facts.get(subject, name)
        return self.facts.linked(subject, name) if isinstance(found, Known) else None

    def none(self, subject: Subject, name: str) -> bool | None:
        found = self.words(subject, name)
        return None if found is None else not found

    def parameter(self, name: str) -> int | None:
        return self.number(HOST, f"{name}_boot" if self.next_boot else name)

    def line(self) -> tuple[int, int] | None:
        """The release line of the loaded module: (2, 4)."""
        match self.facts.get(HOST, "zfs_version"):
            case Known((int(major), int(minor), *_)):
                return major, minor
        return None


def opposite(value: bool | None) -> bool | None:
    return None if value is None else not value


def both(first: bool | None, second: bool | None) -> bool | None:
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def zero(value: int | None) -> bool | None:
    return None if value is None else value == 0


# Pools, vdevs and legs, from facts.


PARITY = {"raidz1": 1, "raidz2": 2, "raidz3": 3}
BLOCK_IN_MEMORY = ("loop", "zvol")
ERRORS = ("read_errors", "write_errors", "checksum_errors")
SPECIAL_LOGS = (2, 4)  # zio_alloc_zil() asks the special class from here on


class Pools:
    """Of one host. stores: what its legs lie on. The next boot changes nothing of them but module parameters."""

    def __init__(self, facts: Facts) -> None:
        self._reading = Reading(facts)
        self.stores = Stores(self._reading)
        self._found: dict[Subject, Pool] = {}

    def pool(self, pool: Subject, reading: Reading) -> Pool:
        """reading: of now, or of the next boot."""
        if pool not in self._found:
            self._found[pool] = self._pool(pool)
        zil, zfs = (zero(reading.parameter(f"{each}_nocacheflush")) for each in ("zil", "zfs"))
        return replace(self._found[pool], zil_flush=both(zil, zfs), txg_flush=zfs)

    def _pool(self, pool: Subject) -> Pool:
        reading = self._reading
        classes: dict[str, list[Vdev]] = {"normal": [], "special": [], "dedup": [], "log": []}
        unmarked = resilver_unmarked(pool, reading.facts)
        for each in reading.links(pool, "vdevs") or ():
            which = reading.word(each, "allocation_class")
            vdev = self._vdev(each)
            classes.get(which or "normal", classes["normal"]).append(_resilvering(vdev) if unmarked else vdev)
        if not classes["normal"]:  # they could not be listed
            classes["normal"] = [Vdev(str(pool), (Leg(str(pool), (f"the devices of {pool}",), state=None),))]
        if reading.links(pool, "vdevs") is None:
            unseen = f"the log of {pool}"
            classes["log"] = [Vdev(unseen, (Leg(unseen, (f"the log devices of {pool}",), state=None),))]
        if any(vdev.tolerates for each in DATA for vdev in classes[each]):
            self._each_may_die(vdev for each in classes.values() for vdev in each)
        line = reading.line()
        normal, special, dedup, log = map(tuple, classes.values())
        return Pool(
            pool.name,
            normal,
            special,
            dedup,
            log,
            special_logs=None if line is None else line >= SPECIAL_LOGS,
            log_room=self._room(pool),
            special_room=None,
            imports=opposite(reading.flag(pool, "hostid_mismatch")),
            works=reading.word(pool, "state") in WORKING and reading.flag(pool, "suspended") is False,
        )

    def _each_may_die(self, vdevs: Iterable[Vdev]) -> None:
        """Who builds a mirror or raidz of virtual disks or LUNs says that each of them can go; a pool on one of them relies on
        what is below."""
        found = self.stores.found
        for name in (drive for vdev in vdevs for leg in vdev.legs for drive in leg.drives):
            if name in found and found[name].party in ("hypervisor", "target"):
                found[name] = replace(found[name], redundant=False)

    def _room(self, pool: Subject) -> bool | None:
        """Of a log that holds all that may be logged before OpenZFS slows its writers down (zfs_wrlog_data_max); it is
        never known to be full."""
        size, most = self._reading.number(pool, "log_bytes"), self._reading.number(HOST, "zfs_wrlog_data_max")
        return True if size is not None and most is not None and size > most else None

    def _vdev(self, vdev: Subject) -> Vdev:
        reading = self._reading
        leaves = reading.links(vdev, "leaves")
        kind = reading.word(vdev, "type")
        name = str(vdev)
        if not leaves:
            return Vdev(name, (Leg(name, (f"the devices of {vdev}",), state=None),))
        legs = tuple(self._leg(leaf) for leaf in leaves)
        if kind in PARITY or kind == "draid":
            columns = _columns(legs, reading.number(vdev, "width") or len(legs))
            parity = PARITY.get(kind or "", reading.number(vdev, "parity") or 0)
            return Vdev(name, columns, len(columns) - parity)
        return Vdev(name, legs, 1)

    def _leg(self, leaf: Subject) -> Leg:
        reading = self._reading
        counts = [reading.number(leaf, each) for each in ERRORS]
        clean = False if any(counts) else None if None in counts else True
        leg = Leg(
            str(leaf),
            state=self._state(leaf),
            in_sync=opposite(reading.flag(leaf, "resilvering")),
            clean=clean,
            opens=self._outlives_restart(leaf),
        )
        kind = reading.word(leaf, "type")
        if kind == "dspare":
            return leg  # spread over the other drives of its vdev
        disks = reading.links(leaf, "disks")
        behind = disks[0] if disks and reading.word(disks[0], "transport") in BLOCK_IN_MEMORY else None
        if kind == "file" or behind:
            return self._in_memory(leaf, behind, leg)
        if not disks:
            name = f"the drives of {leaf}"
            self.stores.about[name] = {leaf: None}
            return replace(leg, drives=(name,))
        found = [self.stores.disk(disk) for disk in disks]
        layers = dict.fromkeys(each for above, _ in found for each in above)
        drives = tuple(dict.fromkeys(each for _, below in found for each in below))
        redundant = len(drives) > 1 and reading.flag(leaf, "redundant_below")
        needed = len(drives) - 1 if redundant else None
        return replace(leg, drives=drives, layers=(*self.stores.above(leaf), *layers), needed=needed)

    def _outlives_restart(self, leaf: Subject) -> bool | None:
        """False in memory of this host with no place to be written back to: no restart leaves anything of it. Of one that is
        missing its state decides."""
        reading = self._reading
        if self._state(leaf) not in (None, *WORKING):
            return True
        kind, below = reading.word(leaf, "type"), reading.word(leaf, "below")
        disks = reading.links(leaf, "disks")
        made = [reading.word(disk, "transport") for disk in disks or ()]
        if below in RAM_FILES or any(each in RAM_DISKS for each in made):
            return False
        if kind == "dspare":
            return True
        if kind == "file" or any(each in BLOCK_IN_MEMORY for each in made):
            return True if below or reading.links(leaf, "lies_on") else None
        return True if made and all(made) else None

    def _in_memory(self, leaf: Subject, disk: Subject | None, leg: Leg) -> Leg:
        """A file, a loop device or a zvol: on a dataset of this host, or on another file system."""
        reading = self._reading
        datasets = reading.links(leaf, "lies_on")
        on = datasets[0].name if datasets else ""
        if datasets is None:
            return replace(leg, on=f"what holds {leaf}")
        layers, drives = self.stores.memory(leaf, disk, reading.word(leaf, "below"), on)
        through = set(reading.words(leaf, "layers") or ()) <= {"partition", *BLOCK_IN_MEMORY}
        if disk and (not through or reading.flag(leaf, "flushes_reach_disk") is False):
            layers = (*self.stores.above(leaf), *layers)
        return replace(leg, layers=layers, drives=drives, on=on)

    def _state(self, leaf: Subject) -> State | None:
        """A device that is gone, though OpenZFS has not noticed, is gone: the next import cannot open it."""
        found = self._reading.word(leaf, "state")
        if found == "FAULTED" and "external device fault" in (self._reading.word(leaf, "note") or ""):
            return "FORCED"
        if self._reading.flag(leaf, "device_present") is False and found in ("ONLINE", "DEGRADED"):
            return "UNAVAIL"
        return next((state for state in get_args(State) if state == found), None)


def _resilvering(vdev: Vdev) -> Vdev:
    """A resilver runs, and no leaf says that it is the one: as many as the vdev can lose may lack data."""
    legs = (leg if at < vdev.needed else replace(leg, in_sync=None) for at, leg in enumerate(vdev.legs))
    return replace(vdev, legs=tuple(legs))


def _columns(legs: tuple[Leg, ...], width: int) -> tuple[Leg, ...]:
    """A disk and what replaces it, or the spare in its place, are one column: where there are more leaves than columns, the
    worst ones are those that another stands in for."""
    if len(legs) <= width:
        return legs
    worst_first = sorted(legs, key=lambda leg: (leg.state in WORKING, leg.in_sync is not False, bool(leg.clean)))
    spare = set(worst_first[: len(legs) - width])
    return tuple(leg for leg in legs if leg not in spare)
