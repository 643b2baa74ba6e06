"""Compares several witnesses of one thing before anything is concluded from it.

Each of COMPARERS knows one such thing, and yields the facts that replace what is not believed. Where witnesses differ, what
depends on it becomes Unknown with both sides named; a single witness is believed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from auditor.databases import paths
from auditor.databases.configuration import Tree, folders
from auditor.databases.paths import FolderDevice, SymbolicLink
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Kind, Known, Subject, Unknown, unknown
from auditor.host.request import Files
from auditor.sources import block_tree, mounts, nvme, smartctl, zpool_history, zpool_status
from auditor.sources.pool_tree import LeafRow, display_name
from auditor.text import few, harmless

Comparer = Callable[[Facts], Iterator[Fact]]
UNSEEN: dict[Kind, tuple[str, ...]] = {
    kind: tuple(
        name.partition(".")[2]
        for name in (*zpool_status.status.facts, *block_tree.PROVIDES)
        if name.startswith(f"{kind}.")
    )
    for kind in ("vdev", "leaf")
}


def compare(facts: Facts, *comparers: Comparer) -> None:
    """All of it, or by these comparers; replaces in the store what is not believed any more."""
    for each in comparers or COMPARERS:
        for fact in each(facts):
            facts.replace(fact)


# -- the vdevs of a pool ----------------------------------------------------------------------------------------------
# ``zdb -C``, ``zpool get all-vdevs`` and ``zpool status -P`` name the same leaves as ``zpool status``. A leaf that it lacks
# becomes unknown, and its rules with it. What it says of the make-up of that top-level vdev is not believed. The same for a
# leaf that is elsewhere, of another class, or that only ``zpool status`` names. A command
# without an answer is no witness.

TREES = ("zdb_tree", "get_tree", "path_tree")
BESIDE = {"cache": "cache_leaves", "spare": "spare_leaves"}  # not below a top-level vdev
MADE_OF = ("type", "legs", "parity", "leaves")  # of a top-level vdev: what it can lose depends on these
SHOWN = 4  # names in a reason


class Difference(NamedTuple):
    """What one witness reports otherwise. missing: from ``zpool status``. elsewhere: (leaf, the top-level vdev of the
    witness). reclassed: leaves of another class. extra: leaves that the witness does not name. beside: links of cache
    devices and spares that lack one."""

    missing: list[LeafRow]
    elsewhere: list[tuple[Subject, str]]
    reclassed: list[Subject]
    extra: list[Subject]
    beside: list[str]


def compare_vdevs(facts: Facts) -> Iterator[Fact]:
    for pool in facts.linked(HOST, "pools"):
        status = facts.get(pool, "vdevs")
        for name in TREES:
            told = facts.get(pool, name)
            if isinstance(status, Known) and isinstance(told, Known) and isinstance(told.value, tuple):
                rows = [LeafRow.of_line(str(line)) for line in told.value]
                found = _difference(facts, pool, rows)
                if any(found):
                    yield from _disbelieved(facts, pool, found, _reason(status, told, pool, rows, found, facts))


def _difference(facts: Facts, pool: Subject, rows: list[LeafRow]) -> Difference:
    leaves = facts.linked(pool, "leaves")
    found = Difference([], [], [], [], [])
    called, named = _Leaves(leaves, facts), set[Subject]()
    beside = {link: _Leaves(facts.linked(pool, link), facts) for link in BESIDE.values()}
    for row in rows:
        if link := BESIDE.get(row.allocation):
            if beside[link].find(row) is None and link not in found.beside:
                found.beside.append(link)
            continue
        leaf = called.find(row)
        if leaf is None:
            found.missing.append(row)
            continue
        named.add(leaf)
        if not _below(leaf, row, facts):
            found.elsewhere.append((leaf, row.top))
        elif _other_class(facts.get(leaf, "allocation_class"), row.allocation):
            found.reclassed.append(leaf)
    found.extra.extend(leaf for leaf in leaves if leaf not in named)
    return found


class _Leaves:
    """Leaves by all that they can be called; a pool may have thousands."""

    def __init__(self, leaves: Iterable[Subject], facts: Facts) -> None:
        self._by_name = {leaf.name: leaf for leaf in leaves}
        self._guid = {leaf: str(found.value) for leaf in leaves if isinstance(found := facts.get(leaf, "guid"), Known)}
        self._path = {leaf: str(found.value) for leaf in leaves if isinstance(found := facts.get(leaf, "path"), Known)}
        self._by_guid = {guid: leaf for leaf, guid in self._guid.items()}
        self._by_path = {path: leaf for leaf, path in self._path.items()}

    def find(self, row: LeafRow) -> Subject | None:
        """The leaf that a row means: by its GUID where both have one, else by its name or path."""
        if row.guid and (found := self._by_guid.get(row.guid) or self._by_name.get(row.guid)):
            return found
        found = self._by_name.get(row.name) or self._by_path.get(row.path)
        if found is None and row.path:  # as zpool status may call the leaf with this path, where its own is not known
            names = (display_name(row.path, False), display_name(row.path, True), row.path.rpartition("/")[2])
            found = next((leaf for name in names if (leaf := self._by_name.get(name))), None)
            found = None if found in self._path else found
        return None if found is None or (row.guid and found in self._guid) else found


def _below(leaf: Subject, row: LeafRow, facts: Facts) -> bool:
    """Whether it stands below the same top-level vdev; a leaf that is one itself is called as each calls its leaves."""
    match facts.get(leaf, "vdev"):
        case Known(Subject(name=top)):
            return top == row.top or (row.top == row.name and top == leaf.name)
    return True  # a spare that stands in two places


def _other_class(ours: Judged, theirs: str) -> bool:
    if not isinstance(ours, Known) or not theirs:
        return False
    return ours.value == "log" if theirs == "not log" else ours.value != theirs


def _reason(status: Known, told: Known, pool: Subject, rows: list[LeafRow], found: Difference, facts: Facts) -> Unknown:
    """Both sides, and which leaves make the difference."""
    ours, theirs = (side.evidence[0].command or "another command" for side in (status, told))
    count = len(facts.linked(pool, "leaves"))
    parts = [f"{ours} lists {count} leaves, {theirs} {sum(row.allocation not in BESIDE for row in rows)}"]
    missing = [
        f"{row.name} (GUID {row.guid})" if row.guid and row.guid != row.name else row.name for row in found.missing
    ]
    for names, what in (
        (missing, "missing from the first"),
        ([leaf.name for leaf in found.extra], "missing from the second"),
        ([f"{leaf.name} (below {top})" for leaf, top in found.elsewhere], "elsewhere in the second"),
        ([leaf.name for leaf in found.reclassed], "of another class in the second"),
        ([link.replace("_leaves", " devices") for link in found.beside], "not all in the first"),
    ):
        if names:
            parts.append(f"{few(names, SHOWN)}: {what}")
    return unknown("; ".join(parts))


def _disbelieved(facts: Facts, pool: Subject, found: Difference, why: Unknown) -> Iterator[Fact]:
    tops, wrong = dict.fromkeys(facts.linked(pool, "vdevs")), set[Subject]()
    leaves = dict.fromkeys(facts.linked(pool, "leaves"))
    strays = [Subject("leaf", row.name, pool.name) for row in found.missing]
    named = [
        Subject("vdev", top, pool.name) for top in (*(r.top for r in found.missing), *(t for _, t in found.elsewhere))
    ]
    for subject in (*strays, *(vdev for vdev in named if vdev not in tops)):
        unseen = (Fact(subject, name, why) for name in UNSEEN[subject.kind])
        for fact in (Fact(subject, "pool", Known(pool, (Evidence(f"in pool {pool.name}"),))), *unseen):
            if not isinstance(facts.of(subject).get(fact.name), Known):
                yield fact
    moved = [leaf for leaf, _ in found.elsewhere]
    for leaf in (*moved, *found.extra, *found.reclassed):
        wrong |= set(facts.linked(leaf, "vdev"))
        yield Fact(leaf, "allocation_class", why)
    for leaf in (*moved, *found.extra):
        yield Fact(leaf, "vdev", why)
    for vdev in tops:
        inside = facts.linked(vdev, "leaves")
        if vdev in named or (vdev in wrong and not set(inside) & set(found.reclassed)):
            yield from (Fact(vdev, name, why) for name in MADE_OF)
        # its class stands as long as one of its leaves does
        if vdev in wrong and not any(isinstance(facts.get(leaf, "allocation_class"), Known) for leaf in inside):
            yield Fact(vdev, "allocation_class", why)
    seen = (Evidence(why.reasons[0].text),)
    yield Fact(pool, "vdevs", Known(tuple(dict.fromkeys((*tops, *named))), seen))
    yield Fact(pool, "leaves", Known(tuple(dict.fromkeys((*leaves, *strays))), seen))
    yield from (Fact(pool, link, why) for link in found.beside)


# -- which disk it is -------------------------------------------------------------------------------------------------
# Whether the witnesses of a disk describe the same one: by model and serial number.
#
# An answer for another disk looks as good as any. Witnesses spell the same thing differently (the kernel cuts the model of
# a SATA drive after 16 characters, udev writes blanks as ``_``, smartctl puts the vendor first), so two names are the same
# where one is part of the other. Behind a USB bridge, a RAID controller, a hypervisor or a network each may rightly name
# another layer: only disks on NVMe, SATA or SAS are compared.

BLOCKS = "physical_block_bytes"  # what it says depends on what the disk is: one that is virtual says 512 of anything
BUSES = frozenset({"nvme", "sata", "sas"})
_WWN = re.compile(r"(?:0x)?[0-9a-f]{16}(?:[0-9a-f]{16})?")


class Witness(NamedTuple):
    """Who says it, its facts for model and serial number, and what is not believed of one that speaks of another disk."""

    name: str
    model: str
    serial: str
    believed: tuple[str, ...]


WITNESSES = (
    Witness("nvme id-ctrl", "nvme_model", "nvme_serial", tuple(nvme.id_ctrl.facts)),
    Witness("nvme list", "nvme_list_model", "nvme_list_serial", tuple(nvme.devices.facts)),
    Witness("smartctl -x", "smart_model", "smart_serial", tuple(smartctl.health.facts)),
    Witness(
        "the kernel (/sys/block)", "sysfs_model", "sysfs_serial", ("sysfs_model", "sysfs_serial", "sysfs_firmware")
    ),
    Witness("udev", "udev_model", "udev_serial", ("udev_model", "udev_serial", "udev_firmware", "udev_wwn")),
)


def compare_disks(facts: Facts) -> Iterator[Fact]:
    """All disks. Of two that differ neither is believed, nor what anybody else says of which disk it is."""
    for disk in list(facts.subjects("disk")):
        transport = facts.get(disk, "transport")
        if not (isinstance(transport, Known) and transport.value in BUSES):
            continue
        for one, other, what in _contradictions(disk, facts):
            why = unknown(f"{disk.name}: {what}: they describe different disks")
            for witness in WITNESSES:
                names = witness.believed if witness in (one, other) else (witness.model, witness.serial)
                for name in (*names, BLOCKS):
                    if isinstance(facts.get(disk, name), Known):
                        yield Fact(disk, name, why)


def _contradictions(disk: Subject, facts: Facts) -> Iterator[tuple[Witness, Witness, str]]:
    said = {
        (witness.name, part): _text(facts, disk, name)
        for witness in WITNESSES
        for part, name in (("model", witness.model), ("serial number", witness.serial))
    }
    for one, other in combinations(WITNESSES, 2):
        for part in ("serial number", "model"):
            ours, theirs = said[one.name, part], said[other.name, part]
            first, second = (re.sub(r"[^a-z0-9]", "", each.lower()) for each in (ours, theirs))
            if first and second and first not in second and second not in first:
                text = f"{one.name} says {part} {harmless(ours)}, {other.name} {harmless(theirs)}"
                yield one, other, text
                break


def _text(facts: Facts, disk: Subject, name: str) -> str:
    """Empty where it says nothing; a world-wide name, which udev takes where a SCSI disk has no serial number, is none."""
    found = facts.get(disk, name)
    text = str(found.value) if isinstance(found, Known) else ""
    return "" if _WWN.fullmatch(text) else text


# -- how datasets are mounted -----------------------------------------------------------------------------------------
# A property with the source "temporary" has the value of the command's mount; others may differ (``sources/mounts.py``).

TEMPORARY = "(temporary)"  # how the evidence of such a property ends
HERE = "run in the mount namespace of the host, as root"
BY_MOUNT = ("atime", "relatime")  # each mount has its own; exec, setuid, devices, xattr and nbmand are not read


def check_mount_namespace(facts: Facts) -> None:
    """own_mount_namespace becomes unknown where process 1 may be that of a container: its mounts are then no witness."""
    every, apart = facts.get(HOST, "all_processes"), facts.get(HOST, "own_mount_namespace")
    if isinstance(apart, Known) and apart.value is False and every.or_none() is not True:
        hole = (
            every
            if isinstance(every, Unknown)
            else unknown(f"{every.evidence[0].text}: process 1 is of a container", HERE)
        )
        facts.replace(Fact(HOST, "own_mount_namespace", hole))


def compare_mounted(facts: Facts) -> Iterator[Fact]:
    """All datasets: readonly as the file system is, not as a mount is; the rest only where zaudit sees the host's mounts."""
    states = _states(facts)
    apart = facts.get(HOST, "own_mount_namespace")
    same, other = (isinstance(apart, Known) and apart.value is answer for answer in (False, True))
    for dataset in facts.subjects("dataset"):
        seen = states.get(dataset.name)
        yield from _readonly(dataset, seen, facts)
        for name in () if same else BY_MOUNT:
            if _temporary(facts.get(dataset, name)):
                yield _not_seen(dataset, name, facts)
        if other and facts.get(dataset, "mounted").or_none() is False:
            yield Fact(dataset, "mounted", Known(True, seen.evidence)) if seen else _not_seen(dataset, "mounted", facts)


def _states(facts: Facts) -> dict[str, Known]:
    """Dataset -> "ro" or "rw", of the file systems that are mounted."""
    table = facts.get(HOST, "zfs_mounts")
    if not isinstance(table, Known):
        return {}
    command = table.evidence[0].command
    return {
        name: Known(state, (Evidence(f"its file system is mounted {state}", command),)) for name, state in table.pairs()
    }


def _readonly(dataset: Subject, seen: Known | None, facts: Facts) -> Iterator[Fact]:
    """readonly=on holds where the file system itself is ro; where it is rw somebody can write to it."""
    said = facts.get(dataset, "readonly")
    if isinstance(said, Known) and said.value == "on":
        if seen and seen.value == "rw":
            yield Fact(dataset, "readonly", Known("off", (*said.evidence, *seen.evidence)))
        elif seen is None and _temporary(said):
            yield _not_seen(dataset, "readonly", facts)


def _not_seen(dataset: Subject, name: str, facts: Facts) -> Fact:
    said = facts.get(dataset, name)
    assert isinstance(said, Known)
    text = f"{said.evidence[0].text}: so it is mounted where zaudit runs; how others have it mounted was not seen"
    return Fact(dataset, name, unknown(text, HERE))


def _temporary(found: Judged) -> bool:
    return isinstance(found, Known) and found.evidence[0].text.endswith(TEMPORARY)


# -- zpool events -----------------------------------------------------------------------------------------------------
# Whether ``zpool events`` has all events: compared with the list of all pools and the state of the pool.


def compare_events(facts: Facts) -> Iterator[Fact]:
    """All pools. The newest and the oldest events may be in one list alone: it was read at another moment. One that is in
    one list alone, between two of the other, was lost. What only -v has is not believed: it prints texts of users as they
    are (the value of a property that a user may set, man 8 zfs-allow), so its lines may be forged."""
    everything = facts.get(HOST, "events").words()
    for pool in facts.linked(HOST, "pools"):
        seen = facts.get(pool, "events").words()
        lost = _second_look(pool, seen, everything) if seen and everything else None
        if why := lost or _suspended(pool, facts):
            yield from (Fact(pool, name, why) for name in zpool_history.events.facts)


def _second_look(pool: Subject, seen: Sequence[str], everything: Sequence[str]) -> Unknown | None:
    numbers = {int(each.partition(" ")[0]) for each in everything}
    if gap := next((each + 1 for each in sorted(numbers)[:-1] if each + 1 not in numbers), 0):
        return unknown(f"zpool events -v lacks event {gap} of the kernel, which is neither the oldest nor the newest")
    rows = (each.split(" ", 4) for each in everything)
    again = [f"{day} {time} {name}" for _, day, time, name, of in rows if of in ("", pool.name)]
    only_seen, only_again = (Counter(one) - Counter(other) for one, other in ((seen, again), (again, seen)))
    one, other = f"zpool events {pool.name}", "zpool events -v"
    for lost, there, here, lacks in ((only_again, other, seen, one), (only_seen, one, again, other)):
        if inside := [each for each in lost if here and _time(min(here)) < _time(each) < _time(max(here))]:
            return unknown(f"{there} has {min(inside)}, {lacks} lacks it")
    grave = [each for each in only_again if each.rpartition(" ")[2] in zpool_history.CLASSES.values()]
    text = f"{other} ends with {max(grave, key=_time)}, which {one} does not have" if grave else ""
    return unknown(text, "run zaudit again") if text else None


def _suspended(pool: Subject, facts: Facts) -> Unknown | None:
    """A pool that is suspended was suspended by an event: else the list lost its end, or somebody cleared it."""
    states = [(facts.get(pool, "suspended"), True), (facts.get(pool, "kstat_state"), "SUSPENDED")]
    saying = next((found for found, stuck in states if isinstance(found, Known) and found.value == stuck), None)
    events = facts.get(pool, "events_io_failure")
    if saying and isinstance(events, Known) and events.value == 0:
        return unknown(f"{saying.evidence[0].text}, and zpool events has no io_failure: it does not reach to now")
    return None


def _time(event: str) -> str:
    """``2026-11-21 10:00:02.000000001``, by which events are put in order."""
    return event.rpartition(" ")[0]


# -- zpool history ----------------------------------------------------------------------------------------------------
# A command that ``zpool history`` has only with, or only without ``-i`` was lost, or given just now.

_COMMAND = re.compile(zpool_history.COMMANDS)


def compare_commands(facts: Facts) -> Iterator[Fact]:
    for pool in facts.linked(HOST, "pools"):
        first, second = (_lines(pool, name, facts) for name in ("history", "history_again"))
        if first is not None and second is not None and first != second:
            only = min(((first - second) + (second - first)).elements())
            text = f"of zpool history and zpool history -i only one has {harmless(only)[:80]}"
            yield from (Fact(pool, name, unknown(text, "run zaudit again")) for name in zpool_history.history.facts)


def _lines(pool: Subject, name: str, facts: Facts) -> Counter[str] | None:
    """How often each command stands there; a line that only names one is none."""
    found = facts.get(pool, name)
    if not isinstance(found, Known) or not isinstance(found.value, tuple):
        return None
    return Counter(line for line in map(str, found.value) if _COMMAND.search(line))


# -- which pools are imported -----------------------------------------------------------------------------------------
# ``zpool list`` says it, and the kernel: a folder below /proc/spl/kstat/zfs for each, and the tables of mounts.

KSTATS, MOUNTS = "/proc/spl/kstat/zfs", "/proc/1/mountinfo"


def pool_names(facts: Facts) -> list[str] | None:
    """All that any of them names, or None when none could say. Where they differ, which pools are imported is unknown, and
    so is what zpool list did not say of one; the pool itself is audited like any other."""
    listed, kernel = facts.get(HOST, "imported_pools"), _names(facts, "kstat_pools")
    names = [pool.name for pool in facts.linked(HOST, "imported_pools")]
    mounted = sorted({name.rpartition("=")[0].partition("/")[0] for name in _names(facts, "zfs_mounts") or ()})
    if kernel is None and not (mounted and isinstance(listed, Known)):
        return names if isinstance(listed, Known) else None
    unlisted = [name for name in kernel or () if name not in names]
    only_mounted = [name for name in mounted if name not in (*names, *unlisted)]
    strange = [name for name in names if name not in kernel] if kernel is not None else []
    if isinstance(listed, Known) and (unlisted or strange or only_mounted):
        sides = (
            ("zpool list", KSTATS, strange),
            (KSTATS, "zpool list", unlisted),
            (MOUNTS, "zpool list", only_mounted),
        )
        parts = [
            f"{one} names {', '.join(map(harmless, each))}, {other} does not" for one, other, each in sides if each
        ]
        why = unknown("; ".join(parts))
        facts.replace(Fact(HOST, "imported_pools", why))
        for name in (*unlisted, *only_mounted):
            facts.put(Fact(Subject("pool", name), "list_health", why))
    return [*names, *unlisted, *only_mounted]


def _names(facts: Facts, name: str) -> list[str] | None:
    found = facts.get(HOST, name)
    return list(map(str, found.value)) if isinstance(found, Known) and isinstance(found.value, tuple) else None


# -- the mounts of databases ------------------------------------------------------------------------------------------
# The mounts of a database's process, against those of ``zfs get`` and the devices of its folders: a lost line would put its
# files on another file system. In a container, whose root is another one, only the devices are compared.

VOLUMES = (
    "btrfs",
)  # each of its subvolumes has a device of its own, which no table of mounts names (man 2 stat, st_dev)
LAYERS = ("overlay", "aufs", "fuse-overlayfs")


def compare_mounts_of_databases(facts: Facts) -> Iterator[Fact]:
    points = {
        dataset.name: point
        for dataset in facts.subjects("dataset")
        if facts.get(dataset, "mounted").or_none() is True
        and isinstance(point := facts.get(dataset, "mountpoint").or_none(), str)
        and point.startswith("/")
    }
    for database in facts.subjects("database"):
        table = paths.table_of(facts.get(database, "mountinfo").words())
        if table and (why := _device_lost(database, table, facts) or _dataset_lost(database, table, points, facts)):
            doubt = unknown(f"{database.name}: {why}")
            yield from (Fact(database, name.partition(".")[2], doubt) for name in paths.PROVIDES)


def _device_lost(database: Subject, table: Sequence[mounts.Mount], facts: Facts) -> str:
    """Which folder of its files is not on the mount that its table says, or an empty string."""
    links = dict(
        each for name in ("symlinks", "more_symlinks") for each in facts.get(database, name).rows(SymbolicLink)
    )
    tree = Tree(Files({}, links), "")
    seen = (facts.get(database, name) for name in ("devices", "more_devices"))
    for path, device in (each for devices in seen for each in devices.rows(FolderDevice)):
        try:
            mount = mounts.mount_of(table, tree.real(path))
        except ValueError:  # too many links, which is said where its files are followed
            continue
        if mount and mount.fstype not in VOLUMES and mount.major_minor != device:
            return (
                f"its table of mounts puts {harmless(path)} on {harmless(mount.source)} ({mount.major_minor}), "
                f"the folder itself is on device {harmless(device)}"
            )
    return ""


def _dataset_lost(database: Subject, table: Sequence[mounts.Mount], points: Mapping[str, str], facts: Facts) -> str:
    """Which dataset that is mounted over one of its folders the table lacks, or an empty string."""
    if _another_root(table, points):
        return ""
    there = {each.source for each in table if each.fstype == "zfs"}
    files = [path for _, path in folders(facts.get(database, "directories").words())]
    files += [each.target for each in facts.get(database, "symlinks").rows(SymbolicLink)]
    for name, point in points.items():
        if name not in there and any(mounts.inside(path, point) for path in files):
            return f"zfs get says that {harmless(name)} is mounted, the process's table of mounts lacks it"
    return ""


def _another_root(table: Sequence[mounts.Mount], points: Mapping[str, str]) -> bool:
    """Whether its root is not that of the host: a layer, a dataset that the host mounts elsewhere (a container of LXC), or
    any file system but the dataset at the root of the host."""
    root = mounts.mount_of(table, "/")
    if root is None:
        return False
    if any(each.mount_point == "/" and each.fstype in LAYERS for each in table):
        return True
    at_root = {name for name, point in points.items() if point == "/"}
    return points.get(root.source, "/") != "/" or (bool(at_root) and root.source not in at_root)


COMPARERS: tuple[Comparer, ...] = (
    compare_vdevs,
    compare_disks,
    compare_mounted,
    compare_mounts_of_databases,
    compare_events,
    compare_commands,
)
