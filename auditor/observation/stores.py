"""Drives, and what lies between them and OpenZFS, from facts.

A drive is one physical device: its partitions, namespaces and paths are one store, by serial number, NVMe subsystem and
world-wide name (:mod:`auditor.model.disk`).
"""

from __future__ import annotations

from auditor.durability.answers import Party
from auditor.durability.host import Cache, Place, Store
from auditor.facts import HOST, Subject
from auditor.model.disk import HYPERVISOR, NETWORK, names
from auditor.observation.reading import Reading, opposite

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
        """Does the kernel send flushes to it?"""
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
        """Layers between OpenZFS and the disks of a leaf: OpenZFS itself, which may have learned that a device needs no flush,
        and device-mapper, md, bcache and the like, as one."""
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
        """A file, loop device or zvol: the queue, and what is below where that is no dataset. Its file system keeps what it
        gets in memory of this host until it is flushed; a dataset does, too, but has its own place."""
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
        self._add(Store(under, "layer", cache="volatile", honours=None, redundant=None), *about)
        return (name,), (under,)


def virtual_machine(reading: Reading) -> bool | None:
    found = reading.word(HOST, "virtualization")
    if found is None:
        return None
    return None if reading.flag(HOST, "container") else found != "none"
