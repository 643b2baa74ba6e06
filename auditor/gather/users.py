"""What on this host uses its datasets and volumes: swap, virtual machines, targets of LIO, SCST, tgt and NVMe over Fabrics,
volumes of Kubernetes, containers, LVM and multipath.

A layer that drops flushes loses what those above it believe stable: a guest with cache=unsafe, a target that hides its
cache or skips flushes. Such a write waits in memory (page cache or ARC). A guest counts only for what it has open for
writing: any process named like QEMU can claim any disk."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from auditor.facts import AGAIN, HOST, Evidence, Fact, Facts, Judged, Known, R, Spec, Subject, Unknown, known, unknown
from auditor.gather import layers
from auditor.gather.layers import Paths
from auditor.gather.witnesses import HERE
from auditor.sources import block_tree, guests, mounts
from auditor.sources.block_tree import Holders, Place
from auditor.sources.guests import ClosedGuest, Guest, GuestDisk, GuestFile, GuestSetting, GuestStarter
from auditor.sources.shares import TargetUnit
from auditor.text import argument, harmless

SEVERAL = "several"
WHO = ("proxmox", "libvirt", "qemu", "lio", "scst", "tgt", SEVERAL)
PROVIDES = {
    "host.swap_volumes": Spec.words("DEVICE on DATASET of each swap space that lies on a volume, of every pool"),
    "dataset.mapped": Spec.words(
        "NAME (lvm) or (multipath) of each device-mapper device of this host that lies in the volume"
    ),
    "dataset.used_by": Spec.words("the guests, backstores of targets, and volumes of pods that use it"),
    "dataset.opened_by": Spec.words(
        "those of them that use the volume itself, and not files on what the host has mounted of it"
    ),
    "dataset.flushes_dropped": Spec.words("the guests and backstores on it whose flushes are dropped, and how"),
    "dataset.flushes_dropped_by": Spec.word("who has to pass them on; empty where none is dropped", *WHO, ""),
    "dataset.flushes_dropped_at_start": Spec.words("the guests on it that are set to drop flushes when they start"),
    "dataset.flushes_dropped_at_start_by": Spec.word(
        "in whose settings that is to be changed; empty where there is none", *WHO, ""
    ),
}
NAME = 60  # characters
# of names that a guest gives to what it may have open under another one (a disk whose name is a link): of each guest, of all
LOOKUPS, ALL_LOOKUPS = 16, 20_000
# kubelet, CSI and local volumes: pkg/volume/csi csi_mounter.go, csi_block.go (volumes and block devices that are given to a
# pod), pkg/volume/local; of a block device the node is mounted, from devtmpfs
POD = re.compile(r".*/pods/([0-9a-f-]{36})/volumes/kubernetes\.io~(?:csi/([^/]+)/mount|local-volume/([^/]+))")
POD_BLOCK = re.compile(r".*/plugins/kubernetes\.io/csi/volumeDevices/publish/([^/]+)/([0-9a-f-]{36})")
# how Proxmox VE names the datasets of its containers, and where LXD and Incus mount theirs
SUBVOL = re.compile(r"(?:.*/)?subvol-(\d+)-disk-\d+")
CONTAINER = re.compile(r".*/(?:lxd|incus)/storage-pools/[^/]+/containers/([^/]+)")
KEEPS, DROPS, UNSURE = "keeps", "drops", "unsure"
NEVER = Known(False, ())
PAST_THE_CACHE = ("SCST-", "tgt-aio")  # which write past the page cache: with sync=always each write is stable
NOT_ALL = "not all of its disks are understood"
NOWHERE = "it is not there, or could not be reached"
WRITES = "w"  # of what a guest has open


def users(facts: Facts, holders: Holders, paths: Paths) -> Iterator[Fact]:
    yield Fact(HOST, "swap_volumes", swap(facts.get(HOST, "swaps"), holders))
    found = _Users(facts, holders, paths)
    found.guests()
    found.targets()
    found.pods()
    found.containers()
    at_start = found.at_start()
    mapped = mapped_in_volumes(holders)
    unmapped = known((), "no LVM and no multipath of this host lies in it", "dmsetup ls --tree")
    none = known((), "nothing that was seen uses it")
    unset = known((), "no guest that uses it is set so")
    for dataset in list(facts.subjects("dataset")):
        name = dataset.name
        by, unseen = found.by[name], found.unseen
        users_of_it = Known(tuple(some([*dict.fromkeys(by.values())])), (*[*by][:NAMED],)) if by else none
        yield Fact(dataset, "used_by", unseen[0] if unseen and not by else users_of_it)
        itself = {seen: called for seen, called in by.items() if seen not in found.in_files[name]}
        open_by = Known(tuple(some([*dict.fromkeys(itself.values())])), (*[*itself][:NAMED],)) if itself else none
        yield Fact(dataset, "opened_by", unseen[0] if unseen and not itself else open_by)
        if isinstance(mapped, Unknown):
            yield Fact(dataset, "mapped", mapped)
        else:
            inside = mapped.get(name, ())
            yield Fact(
                dataset, "mapped", known((*inside,), ", ".join(inside), "dmsetup ls --tree") if inside else unmapped
            )
        doubt = [*found.doubts[name], *unseen]
        yield from _dropped(dataset, "flushes_dropped", found.dropped[name] or (doubt[0] if doubt else none))
        set_so = at_start if isinstance(at_start, Unknown) else at_start.get(name)
        yield from _dropped(dataset, "flushes_dropped_at_start", set_so or found.may_hold.get(name) or unset)


def _called(what: str, name: str) -> str:
    """Short enough for a table; names are chosen by others."""
    return harmless(f"{what} {name if len(name) <= NAME else name[:NAME] + '...'}")


def _in_turns(disks: Iterable[GuestDisk], held: Mapping[str, object]) -> list[tuple[int, GuestDisk]]:
    """(its place among the disks of its guest, a disk): first disks first, so that a guest with many delays no other."""
    counted, found = Counter[str](), list[tuple[int, GuestDisk]]()
    for disk in disks:
        if disk.process in held:
            found.append((counted[disk.process], disk))
            counted[disk.process] += 1
    return sorted(found)


def _guest(number: str, names: Mapping[str, str]) -> str:
    return f"guest {names.get(number, number)} (process {number})"


def _dropped(dataset: Subject, fact: str, found: Mapping[Evidence, str] | Judged) -> Iterator[Fact]:
    """found: what was seen, and whose it is; or why there is none, or it is not known."""
    if isinstance(found, Known | Unknown):
        yield Fact(dataset, fact, found)
        yield Fact(dataset, f"{fact}_by", found if isinstance(found, Unknown) else found._replace(value=""))
        return
    seen, whose = (*[*found][:NAMED], *more(len(found))), {*found.values()}
    yield Fact(dataset, fact, Known(tuple(each.text for each in seen), seen))
    yield Fact(dataset, f"{fact}_by", Known(whose.pop() if len(whose) == 1 else SEVERAL, seen))


class _Users:
    """By dataset. unseen: why not all of a kind are known."""

    def __init__(self, facts: Facts, holders: Holders, paths: Paths) -> None:
        self.facts, self.holders, self.paths = facts, holders, paths
        self.numbers = Numbers(holders, paths)
        self.by: dict[str, dict[Evidence, str]] = defaultdict(dict)
        self.in_files: dict[str, set[Evidence]] = defaultdict(set)  # of these, who has only files that lie there
        self.dropped: dict[str, dict[Evidence, str]] = defaultdict(dict)
        self.doubts: dict[str, list[Unknown]] = defaultdict(list)
        self.unseen: list[Unknown] = []
        self.may_hold: dict[str, Unknown] = {}  # a volume group that is not active
        every = facts.get(HOST, "all_processes")
        if isinstance(every, Unknown):
            self.unseen.append(every)
        elif every.value is not True:  # the guests and targets of the host are not in the /proc and /sys of a container
            self.unseen.append(unknown(f"{every.evidence[0].text}: guests and targets of the host are not seen", HERE))

    def guests(self) -> None:
        if not self._rows("guests", Guest):
            return
        opened, names = self._rows("guest_files", GuestFile), dict(self._rows("open_guests", Guest))
        if closed := self.facts.get(HOST, "closed_guests").rows(ClosedGuest):
            more = f", and {len(closed) - 1:,} more of them" if len(closed) > 1 else ""
            self.unseen.append(unknown(harmless(f"a guest, or what calls itself one: {closed[0].reason}{more}")))
        self._disks(self._rows("guest_disks", GuestDisk), names, opened)

    def _disks(self, disks: Sequence[GuestDisk], names: Mapping[str, str], opened: Sequence[GuestFile]) -> None:
        held, starters = self._held(names, opened), dict(self._rows("guest_starters", GuestStarter))
        every = {number: {*chain(*things.values())} for number, things in held.items()}
        called = {(each.process, each.path): each for each in opened}  # by the name that it has for the guest
        named: dict[str, set[str]] = defaultdict(set)  # what its disks are, by guest
        lookups, nodes = 0, self.holders.nodes
        for at, (number, how, path) in _in_turns(disks, held):
            guest = _guest(number, names)
            one, what, place = called.get((number, path)), "", Place(how=NOWHERE)
            if path and one is None:
                real = path if path.startswith("/dev/") else ""
                if not real and at < LOOKUPS and lookups < ALL_LOOKUPS:
                    lookups += 1
                    real = self.paths.of(path)
                one, what, place = (
                    called.get((number, real)),
                    f"/dev/{nodes[real][0]}" if real in nodes else real,
                    self._at(real),
                )
            if one:
                what, place = one.what, self.numbers.place(one.where)
            named[number].add(what)
            if how == UNSURE or not (place.datasets or place.off):
                text = f"{guest}: its disk {path}: {place.how}" if path else f"{guest}: {NOT_ALL}"
                self._doubt(every[number], text)
            elif how == DROPS:
                text = f"{guest}: its disk {path} has cache=unsafe or no-flush=on"
                for each in every[number] & {*place.datasets}:
                    self.dropped[each][Evidence(harmless(text), f"tr '\\0' '\\n' </proc/{number}/cmdline")] = (
                        starters.get(number, "qemu")
                    )
        for other in opened:
            if (datasets := held.get(other.process, {}).get(other.what)) and other.what not in named[other.process]:
                named[other.process].add(other.what)
                text = f"{_guest(other.process, names)}: its command line does not name {other.path}, which it has open"
                self._doubt(datasets, f"{text}: it may drop its flushes (info block in its monitor says it)")

    def _held(self, names: Mapping[str, str], opened: Iterable[GuestFile]) -> Mapping[str, Mapping[str, Sequence[str]]]:
        """By guest and what it writes to: datasets."""
        held: dict[str, dict[str, Sequence[str]]] = defaultdict(dict)
        places, lost = dict[str, Place](), set[tuple[str, str]]()
        for one in opened:
            place = places.get(one.where) or places.setdefault(one.where, self.numbers.place(one.where))
            if one.how != WRITES:  # which any user may of what he can read
                continue
            for each in place.datasets:
                held[one.process][one.what] = place.datasets
                if names.get(one.process) != guests.NOT_READ:
                    seen = Evidence(harmless(_guest(one.process, names)), f"ls -l /proc/{one.process}/fd")
                    self.by[each][seen] = _called("guest", names.get(one.process, one.process))
                    if not one.where.startswith("/dev/"):
                        self.in_files[each].add(seen)
            if place.datasets and self.numbers.volatile(one.where):
                text = f"{_guest(one.process, names)} has {one.path} open on an overlay that is mounted volatile"
                self._doubt(place.datasets, f"{text}: every fsync there is left out")
            if place.datasets or place.off or (one.process, one.where) in lost:
                continue
            lost.add((one.process, one.where))
            text = f"{_guest(one.process, names)} has {one.path} open: {place.how}"
            _, disk = self.holders.nodes.get(one.where, ("", ""))
            if self.holders.inventory.get(Subject("disk", disk), "transport").or_none() == "zvol":
                volumes = [each for each in self.facts.subjects("dataset") if layers.is_volume(each, self.facts)]
                self._doubt((each.name for each in volumes), text)
            elif len(lost) <= NAMED:
                self.unseen.append(unknown(harmless(text)))
        return held

    def _doubt(self, datasets: Iterable[str], text: str) -> None:
        why = unknown(harmless(text))
        for each in datasets:
            if len(self.doubts[each]) < NAMED:
                self.doubts[each].append(why)

    def targets(self) -> None:
        tgt = self.facts.get(HOST, "tgt_daemons")
        if isinstance(tgt, Unknown) and {each.remedy for each in tgt.reasons} != {AGAIN}:  # an older zaudit did not ask
            self.unseen.append(tgt)
        self._targets("block_targets")
        if isinstance(
            self.facts.get(HOST, "nvme_targets"), Known
        ):  # they pass flushes on: who was not asked decides nothing
            self._targets("nvme_targets")
        if tgt.words():
            self._targets("tgt_targets")

    def _targets(self, fact: str) -> None:
        targets = self.facts.get(HOST, fact)
        said = targets.evidence if isinstance(targets, Known) else ()
        for (name, how, path), seen in zip(self._rows(fact, TargetUnit), said, strict=False):
            place = self._place(path)
            for each in place.datasets:
                self.by[each][Evidence(harmless(seen.text), seen.command)] = _called(
                    "target", name.replace("-", " ", 1)
                )
                if how == DROPS:
                    direct = name.startswith(PAST_THE_CACHE) and not place.how  # each write is stable before it returns
                    sync = self.facts.get(Subject("dataset", each), "sync") if direct else NEVER
                    if isinstance(sync, Unknown):
                        self.doubts[each].append(sync)
                    elif sync.value != "always":
                        self.dropped[each][seen] = name.partition("-")[0].lower()
                if how == UNSURE:
                    self.doubts[each].append(
                        unknown(harmless(f"{seen.text}: whether it passes flushes on is not known"))
                    )
            if not place.datasets and not place.off and how != KEEPS:
                self.unseen.append(unknown(harmless(f"{name} on {path}: {place.how}")))

    def pods(self) -> None:
        """By the mounts that the kubelet has made."""
        for mount in () if isinstance(self.holders.table, Unknown) else self.holders.table:
            if found := POD.fullmatch(mount.mount_point):
                pod, name, place = found[1], found[2] or found[3], self.holders.mount(mount)
            elif (found := POD_BLOCK.fullmatch(mount.mount_point)) and mount.fstype == "devtmpfs":
                pod, name, place = found[2], found[1], self.holders.device(f"/dev{mount.root}")
            else:
                continue
            for each in place.datasets:
                seen = Evidence(harmless(f"volume {name} of pod {pod}"), f"findmnt {argument(mount.mount_point)}")
                self.by[each][seen] = _called("pod volume", name)

    def containers(self) -> None:
        """By the names of their datasets, or where these are mounted."""
        for dataset in self.facts.subjects("dataset"):
            point = self.facts.get(dataset, "mountpoint")
            if found := SUBVOL.fullmatch(dataset.name):
                how, command = "the name of the dataset", f"pct config {found[1]}"
            elif isinstance(point, Known) and (found := CONTAINER.fullmatch(str(point.value))):
                how, command = "its mount point", f"zfs get mountpoint {argument(dataset.name)}"
            else:
                continue
            seen = Evidence(harmless(f"container {found[1]}, by {how}"), command)
            self.by[dataset.name][seen] = _called("container", found[1])

    def at_start(self) -> Mapping[str, Mapping[Evidence, str]] | Unknown:
        """By dataset; unknown where a disk cannot be followed, or guests are not seen from a container."""
        every, disks = self.facts.get(HOST, "all_processes"), self.facts.get(HOST, "guests_set_to_drop")
        if unseen := [each for each in (every, disks) if isinstance(each, Unknown)]:
            return unseen[0]
        if isinstance(every, Known) and every.value is not True:
            return unknown(f"{every.evidence[0].text}: guests of the host are not seen", HERE)
        found: dict[str, dict[Evidence, str]] = defaultdict(dict)
        lines = disks.evidence if isinstance(disks, Known) else ()
        for (who, _, where), seen in zip(disks.rows(GuestSetting), lines, strict=False):
            if where.startswith(guests.LVM):
                place = self._group(where.removeprefix(guests.LVM))
            else:
                place = self._place(where) if where.startswith("/") else Place((where,))
            if not place.datasets and not place.off:
                return unknown(harmless(f"{seen.text}: {place.how}"))
            for each in place.datasets:
                found[each][Evidence(harmless(seen.text), seen.command)] = who
        return found

    def _group(self, name: str) -> Place:
        """Of a volume group of LVM: what all of it that is active lies on. (man 8 lvm: VG-LV, with hyphens doubled)"""
        inventory, begins = self.holders.inventory, re.compile(re.escape(name.replace("-", "--")) + r"-(?!-)")
        disks = dict[str, None]()
        for disk in inventory.subjects("disk"):
            dm_name = inventory.get(disk, "dm_name")
            if isinstance(dm_name, Known) and begins.match(str(dm_name.value)):
                way = block_tree.down(f"/dev/{disk.name}", inventory, self.holders.nodes)
                if isinstance(way, Unknown):
                    return Place(how=way.reasons[0].text)
                disks |= dict.fromkeys(way.disks)
        if disks:
            return self.holders.disks(disks)
        if not layers.are_devices_read(inventory):
            return Place(how="/sys/class/block was not read")
        why = unknown(
            harmless(
                f"nothing of the volume group {name} is active, on which a guest is set to cache=unsafe: it may lie here"
            )
        )
        for disk in inventory.subjects("disk"):
            if disk.name.startswith("loop") and layers.unused(inventory.get(disk, "size_bytes")):
                continue
            place = self.holders.disk(disk.name)
            if not place.datasets and not place.off:
                return place
            self.may_hold |= dict.fromkeys(place.datasets, why)
        return Place(off=True)

    def _rows(self, name: str, row: type[R]) -> tuple[R, ...]:
        found = self.facts.get(HOST, name)
        if isinstance(found, Unknown):
            self.unseen.append(found)
        return found.rows(row)

    def _place(self, path: str) -> Place:
        """Of a name, which may be that of a link."""
        return self._at(path if path.startswith("/dev/") else self.paths.of(path))

    def _at(self, path: str) -> Place:
        """Of a path without links; empty: of one that could not be looked up."""
        if path.startswith("/dev/"):
            return self.holders.device(path)
        return self.holders.path(path) if path else Place(how=NOWHERE)


# -- swap, LVM and multipath ------------------------------------------------------------------------------------------

NAMED = 50  # guests and the like of one dataset: whoever has files on it can start thousands
MAPPERS = {"LVM": "lvm", "mpath": "multipath"}  # by how the UUID of a device-mapper device begins


def some(names: Sequence[str]) -> Sequence[str]:
    return [*names[:NAMED], *(each.text for each in more(len(names)))]


def more(count: int) -> Sequence[Evidence]:
    return [Evidence(f"{count - NAMED:,} more")] if count > NAMED else []


def mapped_in_volumes(holders: Holders) -> Mapping[str, Sequence[str]] | Unknown:
    """By dataset; unknown where a device does not lead to its disks. (man 8 dmsetup: how the UUID begins)"""
    inventory = holders.inventory
    found: dict[str, list[str]] = defaultdict(list)
    if not layers.are_devices_read(inventory):
        return unknown("/sys/class/block was not read: what lies in volumes is not known")
    for disk in inventory.subjects("disk"):
        transport, uuid, name = (inventory.get(disk, each) for each in ("transport", "dm_uuid", "dm_name"))
        if not isinstance(transport, Known) or transport.value != "dm":
            continue
        if isinstance(uuid, Unknown):
            if isinstance(name, Known):  # it has none: neither LVM nor multipath made it
                continue
            return uuid
        if not (kind := MAPPERS.get(str(uuid.value).partition("-")[0])):
            continue
        way = block_tree.down(f"/dev/{disk.name}", inventory, holders.nodes)
        if isinstance(way, Unknown):
            return way
        named = str(name.value) if isinstance(name, Known) else disk.name
        for volume in {each for below in way.disks for each in holders.disk(below).datasets}:
            found[volume].append(harmless(f"{named} ({kind})"))
    return {each: some(names) for each, names in found.items()}


def swap(swaps: Judged, holders: Holders) -> Judged:
    """Of the devices; what a file lies on is no dataset, as OpenZFS refuses to swap to its files."""
    if isinstance(swaps, Unknown):
        return swaps
    found: list[Evidence] = []
    for path in swaps.words():
        if not path.startswith("/dev/"):
            continue
        place = holders.device(path)
        if place.datasets:
            found.append(Evidence(harmless(f"{path} on {', '.join(place.datasets)}"), "swapon --show"))
        elif not place.off:
            return unknown(harmless(f"{path}, which the host swaps to: {place.how}"))
    return Known(tuple(each.text for each in found), (*found,) or swaps.evidence)


# -- what a guest has open --------------------------------------------------------------------------------------------


class Numbers:
    """The devices and file systems of this host, by their numbers."""

    def __init__(self, holders: Holders, paths: Paths) -> None:
        self._holders, self._paths = holders, paths

    def place(self, where: str) -> Place:
        """Of what a guest has open, by the number of its device; of a file, what the file system of that number lies on."""
        if where.startswith("/dev/"):
            return self._holders.device(where)
        number, _, node = where.partition(",")
        if isinstance(self._holders.table, Unknown):
            return Place(how=self._holders.table.reasons[0].text)
        if number == guests.BTRFS:
            here = [self._holders.mount(each) for each in self._holders.table if each.fstype == number]
            return next(
                (each for each in here if not each.off), Place(off=bool(here), how=f"{number} is not mounted here")
            )
        mount = self._numbered(number)
        if mount is None and node == guests.NAMELESS:
            return Place(how="memory", off=True)
        if mount is None:  # in mounts of its own
            return self._holders.device(f"/dev/{node}") if node else Place(how=f"device {number} is not mounted here")
        if mount.fstype != mounts.OVERLAY:
            return self._holders.mount(mount)
        real = self._paths.of(layers.upper(mount))
        return self._holders.path(real) if real else Place(how=f"the upper layer of {mount.mount_point} was not found")

    def _numbered(self, number: str) -> mounts.Mount | None:
        table = () if isinstance(self._holders.table, Unknown) else self._holders.table
        return next((each for each in table if each.major_minor == number), None)

    def volatile(self, where: str) -> bool:
        mount = self._numbered(where)
        return mount is not None and mounts.volatile(mount)
