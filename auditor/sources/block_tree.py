"""Which block device lies on which: from leaves down to disks, and from devices up to what holds them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, unknown
from auditor.sources import mounts
from auditor.sources.block_devices import DeviceName
from auditor.text import argument, harmless

PROVIDES = {
    "leaf.disks": Spec.links("disk", "the physical disks that hold it", nonempty=True),
    "leaf.device_present": Spec.flag("the block device that its path means is there"),
    "leaf.node": Spec.word("kernel name of the block device that OpenZFS opened (nvme0n1p1, dm-0)"),
    "leaf.layers": Spec.words(
        "what lies between OpenZFS and the disks, outermost first: partition, crypt, lvm, multipath, md, loop, ..."
    ),
    "leaf.nodes": Spec.words("kernel names of all that lies above the disks, partitions too, outermost first"),
    "leaf.stack_write_cache": Spec.words(
        "NAME=CACHE of each device-mapper, md or bcache device among them: its queue/write_cache"
    ),
    "leaf.dm_targets": Spec.words("what the device-mapper devices among these are made of: linear, crypt, thin, ..."),
    "leaf.crypt_raises_blocks": Spec.flag(
        "dm-crypt below it has larger blocks than what it lies on (LUKS2 with 4096-byte sectors)"
    ),
    "leaf.redundant_below": Spec.flag("md or device-mapper RAID below it keeps it whole when one of its disks dies"),
}
BEHIND = ("disks", "layers", "nodes", "stack_write_cache", "dm_targets", "crypt_raises_blocks", "redundant_below")
STACKED = ("dm", "md", "bcache")
_WAS = "was "  # before the path that a missing device had
DEPTH = 16  # deeper than any sane stack; ends a loop of loops
_DM = {"CRYPT": "crypt", "LVM": "lvm", "mpath": "multipath", "part1": "partition", "DMRAID": "dmraid"}
Nodes = dict[str, tuple[str, str]]  # path under /dev -> (kernel name of the node, of the whole block device)
_REDUNDANT_MD = frozenset({"raid1", "raid4", "raid5", "raid6", "raid10"})
_REDUNDANT_DM = re.compile(r"mirror|raid-raid(?:1|4|5|6|10)(?:_\w+)?")


class Way(NamedTuple):
    """From a block device to its disks.

    disks: kernel names at the bottom. layers: what was passed. nodes: by kernel name, partitions too. targets: dm_targets
    of each device-mapper device. caches: sysfs_write_cache of each stacked device.
    crypt: of each dm-crypt device, whether its blocks are larger than those below. redundant: any one of the disks may die.
    """

    disks: tuple[str, ...]
    layers: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    targets: tuple[Judged, ...] = ()
    caches: tuple[Judged, ...] = ()
    crypt: tuple[Judged, ...] = ()
    redundant: bool | Unknown = False


def links(facts: Facts, inventory: Facts) -> Iterator[Fact]:
    there = nodes(facts, inventory)
    for leaf in list(facts.subjects("leaf")):
        match facts.get(leaf, "type"), facts.get(leaf, "path"):
            case Known("file"), Known(str(path)):
                why = unknown(f"{path} is a file; the disk below its file system is not followed")
            case Known("dspare"), _:
                why = unknown(f"{leaf.name} is spread over the disks of its vdev")
            case _, Known(str(path)) if path in there:
                yield from _leaf(leaf, path, inventory, there)
                continue
            case _, Known(str(path)):
                yield Fact(leaf, "device_present", _absent(path, facts, inventory))
                why = unknown(f"{path}: no block device has this name now")
            case _, missing:
                assert isinstance(missing, Unknown)
                why = _gone(leaf, facts) or missing
        yield from (Fact(leaf, name, why) for name in ("device_present", "node", *BEHIND))


def down(path: str, inventory: Facts, nodes: Nodes) -> Way | Unknown:
    """From a block device down to the disks, loop devices or zvols at the bottom."""
    if path not in nodes:
        return unknown(f"{path}: no block device has this name now")
    return _down(nodes[path][1], (), inventory, nodes)


def _gone(leaf: Subject, facts: Facts) -> Unknown | None:
    """A missing device stands under its GUID, with the path that it had: "was /dev/disk/by-id/...-part1"."""
    match facts.get(leaf, "note"):
        case Known(str(note), (seen, *_)) if note.startswith(_WAS):
            was = note.split("  ")[0]
            return unknown(f"{seen.command}: {leaf.name} has no device; it {was}, where another one may be now")
    return None


def nodes(facts: Facts, inventory: Facts) -> Nodes:
    """Path under /dev -> (kernel name of the node, of the whole block device). What the link says goes before udev."""
    disk_of: dict[str, str] = {}
    found: dict[str, tuple[str, str]] = {}
    for disk in inventory.subjects("disk"):
        disk_of[disk.name] = disk.name
        for source in ("partitions", "udev_partitions"):
            disk_of.update(dict.fromkeys(inventory.get(disk, source).words(), disk.name))
        for path, node in inventory.get(disk, "device_names").rows(DeviceName):
            found[path] = (node, disk.name)
    for path, node in facts.get(HOST, "dev_links").rows(DeviceName):
        if node in disk_of:
            found[path] = (node, disk_of[node])
    return found | {f"/dev/{node}": (node, disk) for node, disk in disk_of.items()}


def _absent(path: str, facts: Facts, inventory: Facts) -> Judged:
    """False only where the folder of the path was seen and the path was not in it."""
    folder = path.rpartition("/")[0] + "/"
    if folder == "/dev/":
        seen = any(True for _ in inventory.subjects("disk"))
    else:
        seen = any(each.path.startswith(folder) for each in facts.get(HOST, "dev_links").rows(DeviceName))
    if not seen:
        return unknown(f"{folder} could not be read")
    return Known(False, (Evidence(f"no {path}", f"ls -l {argument(path)}"),))


def _leaf(leaf: Subject, path: str, inventory: Facts, nodes: Nodes) -> Iterator[Fact]:
    node, disk = nodes[path]
    named = (Evidence(f"{path} is {node}", f"readlink -f {argument(path)}"),)
    yield Fact(leaf, "device_present", Known(True, named))
    yield Fact(leaf, "node", Known(node, named))
    way = _down(disk, ("partition",) if node != disk else (), inventory, nodes)
    if isinstance(way, Unknown):
        yield from (Fact(leaf, name, way) for name in BEHIND)
        return
    between = way.layers[1:] if node != disk else way.layers
    text = node if node in way.disks else " on ".join((node, *between, " and ".join(way.disks)))
    seen = (Evidence(text, f"lsblk -s /dev/{node}"),)
    yield Fact(leaf, "disks", Known(tuple(Subject("disk", name) for name in way.disks), seen))
    yield Fact(leaf, "layers", Known(way.layers, seen))
    own = (node,) if node not in (disk, *way.nodes) else ()
    yield Fact(leaf, "nodes", Known((*own, *way.nodes), seen))
    yield Fact(leaf, "stack_write_cache", _together(way.caches, seen))
    yield Fact(leaf, "dm_targets", _together(way.targets, seen))
    yield Fact(leaf, "crypt_raises_blocks", _any(way.crypt, seen))
    redundant = way.redundant
    yield Fact(leaf, "redundant_below", redundant if isinstance(redundant, Unknown) else Known(redundant, seen))


def _together(parts: tuple[Judged, ...], seen: tuple[Evidence, ...]) -> Judged:
    if unknowns := [each for each in parts if isinstance(each, Unknown)]:
        return Unknown.join(unknowns)
    found = [each for each in parts if isinstance(each, Known)]
    names = tuple(dict.fromkeys(name for each in found for name in each.words()))
    return Known(names, tuple(piece for each in found for piece in each.evidence) or seen)


def _any(parts: tuple[Judged, ...], seen: tuple[Evidence, ...]) -> Judged:
    """Whether one of these is true, with the evidence of all that say the same."""
    known = [each for each in parts if isinstance(each, Known)]
    if any(each.value is True for each in known):
        return Known(True, tuple(piece for each in known if each.value is True for piece in each.evidence))
    if unknowns := [each for each in parts if isinstance(each, Unknown)]:
        return Unknown.join(unknowns)
    return Known(False, tuple(piece for each in known for piece in each.evidence) or seen)


def _down(disk: str, layers: tuple[str, ...], inventory: Facts, nodes: Nodes, depth: int = 0) -> Way | Unknown:
    subject = Subject("disk", disk)
    transport, slaves = inventory.get(subject, "transport"), inventory.get(subject, "slaves")
    stacked = isinstance(transport, Known) and transport.value in STACKED
    if isinstance(slaves, Known) and not slaves.value and not stacked:
        return Way((disk,), layers)
    if isinstance(slaves, Unknown):
        if stacked and "slaves" not in inventory.of(subject):
            return unknown(f"/sys/class/block/{disk}/slaves: does not say what {disk} is made of")
        return slaves if stacked or isinstance(transport, Unknown) else Way((disk,), layers)
    assert isinstance(slaves.value, tuple)
    if not slaves.value or depth > DEPTH:
        return unknown(f"/sys/class/block/{disk}/slaves: does not lead to a disk")
    layers += (_layer(subject, str(transport.value) if isinstance(transport, Known) else "stacked", inventory),)
    ways, parts, under = [], [], []
    for name in map(str, slaves.value):
        _, below = nodes.get(f"/dev/{name}", (name, name))
        under.append(Subject("disk", below))
        parts += [name] if name != below else []
        ways.append(_down(below, layers, inventory, nodes, depth + 1))
    unknowns = [way for way in ways if isinstance(way, Unknown)]
    if unknowns:
        return Unknown.join(unknowns)
    found = [way for way in ways if isinstance(way, Way)]
    targets = (inventory.get(subject, "dm_targets"),) if disk.startswith("dm-") else ()
    crypt = (_raises_blocks(subject, under, inventory),) if layers[-1] == "crypt" else ()
    return Way(
        tuple(sorted({name for way in found for name in way.disks})),
        tuple(dict.fromkeys(layer for way in found for layer in way.layers)),
        tuple(dict.fromkeys((disk, *parts, *(name for way in found for name in way.nodes)))),
        (*targets, *(each for way in found for each in way.targets)),
        (cache(subject, inventory), *(each for way in found for each in way.caches)),
        (*crypt, *(each for way in found for each in way.crypt)),
        _redundant(subject, found, inventory),
    )


def cache(disk: Subject, inventory: Facts) -> Judged:
    path = f"/sys/class/block/{disk.name}/queue/write_cache"
    match inventory.get(disk, "sysfs_write_cache"):
        case Known(str(word)):
            return Known((f"{disk.name}={word}",), (Evidence(f"{disk.name}: {word}", f"cat {argument(path)}"),))
    return unknown(f"{path}: was not seen")


def _raises_blocks(disk: Subject, under: list[Subject], inventory: Facts) -> Judged:
    """dm-crypt gives the larger of its own sectors and the blocks below: larger ones than those are its own. (Linux
    drivers/md/dm-crypt.c crypt_io_hints; LUKS1 knows sectors of 512 bytes only)"""
    own = inventory.get(disk, "logical_block_bytes")
    if not isinstance(own, Known) or not isinstance(own.value, int):
        return own
    size, path = own.value, "/sys/block/{}/queue/logical_block_size"
    text = f"{disk.name}: blocks of {size} bytes"
    seen = (Evidence(text, f"cat {argument(path.format(disk.name))}"),)
    if size == 512:
        return Known(False, seen)
    for each in under:
        below = inventory.get(each, "logical_block_bytes")
        if isinstance(below, Known) and isinstance(below.value, int) and below.value < size:
            lower = Evidence(f"{each.name}: blocks of {below.value} bytes", f"cat {argument(path.format(each.name))}")
            return Known(True, (*seen, lower))
    match inventory.get(disk, "dm_uuid"):
        case Known(str(uuid), why) if uuid.startswith("CRYPT-LUKS1-"):
            return Known(False, why)
    return unknown(
        f"{text}, and so has what it lies on: cryptsetup status says how large the sectors of its encryption are"
    )


def _redundant(disk: Subject, legs: list[Way], inventory: Facts) -> bool | Unknown:
    """By its own RAID, whole and over several disks, or because all that it is made of is redundant itself."""
    below = [leg.redundant for leg in legs]
    own = _own_redundancy(disk, legs, inventory)
    if own is True or all(each is True for each in below):
        return True
    if isinstance(own, Unknown):
        return own
    return False if False in below else Unknown.join([each for each in below if isinstance(each, Unknown)])


def _own_redundancy(disk: Subject, legs: list[Way], inventory: Facts) -> bool | Unknown:
    """md by its level, device mapper by its targets; two legs on one disk die together."""
    disks = [name for leg in legs for name in leg.disks]
    level, lacks, targets = (inventory.get(disk, name) for name in ("md_level", "md_degraded", "dm_targets"))
    match inventory.get(disk, "transport"):
        case Known("md"):
            if isinstance(level, Unknown):
                return level
            if level.value not in _REDUNDANT_MD or len(disks) < 2 or len(set(disks)) < len(disks):
                return False
            return lacks if isinstance(lacks, Unknown) else lacks.value == 0
        case Known("dm"):
            names = targets.words()
            if isinstance(targets, Unknown):
                return targets
            return bool(names) and all(_REDUNDANT_DM.fullmatch(each) for each in names) and len(set(disks)) > 1
    return False


def _layer(disk: Subject, transport: str, inventory: Facts) -> str:
    """crypt, lvm, multipath, raid1, ...: dm says it in the prefix of its UUID, md in its level, bcache in its mode."""
    if transport == "dm":
        return _DM.get(inventory.get(disk, "dm_uuid").word().partition("-")[0], "dm")
    if transport == "md" and (level := inventory.get(disk, "md_level").word()):
        return f"md-{level}"
    if transport == "bcache":
        match inventory.get(disk, "bcache_mode"), inventory.get(disk, "bcache_state"):
            case _, Known("no cache"):
                return "bcache-none"
            case (Known(str(mode)), Known("clean")) | (Known("writeback" as mode), _):
                return (
                    f"bcache-{mode}"  # what was written back stays in the cache for a while after the mode has changed
                )
    return transport


ZVOL = "/dev/zvol/"
# file systems over several devices, of which a mount names one; any other has the number of its block device, and one that has
# none (tmpfs, overlay) lies on none, whatever its mount calls its source: in mounts of his own any user calls it as he likes
# (Linux fs/super.c get_tree_bdev, get_anon_bdev; man 7 user_namespaces)
SEVERAL = frozenset({"btrfs", "bcachefs"})
ELSEWHERE = ("logdev=", "rtdev=")  # of XFS (man 5 xfs)
HOLDERS_DEPTH = 6  # file systems on each other; ends a loop of loops


class Place(NamedTuple):
    """datasets: that hold it. how: through what, or why it is not known, or the other file system. off: not on ZFS.

    Neither datasets nor off: not known.
    """

    datasets: tuple[str, ...] = ()
    how: str = ""
    off: bool = False


class Holders:
    """Of one host. table: the mounts as its first process has them."""

    def __init__(self, facts: Facts, inventory: Facts) -> None:
        self.inventory = inventory
        self.nodes = nodes(facts, inventory)
        seen = facts.get(HOST, "mount_table")
        lines = "".join(f"{line}\n" for line in seen.words())
        self.table = seen if isinstance(seen, Unknown) else mounts.mounts(lines)
        kinds = ((inventory.get(disk, "transport"), disk.name) for disk in inventory.subjects("disk"))
        self._layered = any(kind.or_none() == "zvol" or self.loop_file(name) for kind, name in kinds)

    def path(self, path: str, depth: int = 0) -> Place:
        """Of an absolute path without symbolic links, as the first process of the host sees it."""
        if isinstance(self.table, Unknown):
            return Place(how=self.table.reasons[0].text)
        return self.mount(mounts.mount_of(self.table, path), depth)

    def mount(self, mount: mounts.Mount | None, depth: int = 0) -> Place:
        """A dataset; or what is below another file system on zvols and loop devices."""
        if mount is None:
            return Place(how="no mount holds it")
        if mount.fstype == "zfs":
            return Place((mount.source,))
        if mount.fstype == "fuse" or mount.fstype.startswith("fuse."):  # any user may name its source as he likes
            return Place(how=mount.fstype, off=True)
        if mount.major_minor.startswith("0:") and mount.fstype not in SEVERAL:
            return Place(how=mount.fstype, off=True)
        named_so = mount.source.startswith(("/dev/zd", ZVOL, "/dev/loop"))
        if not mount.source.startswith("/dev/") or not (named_so or self._layered):
            return Place(how=mount.fstype, off=True)
        way = down(mount.source, self.inventory, self.nodes)
        if isinstance(way, Unknown):
            return Place(how=f"on {mount.fstype}; {way.reasons[0].text}")
        if mount.fstype in SEVERAL or any(each.startswith(ELSEWHERE) for each in mount.shared):
            return Place(how=f"{mount.fstype} may lie on more devices than {mount.source}, which its mount names")
        found = self.disks(way.disks, depth)
        if found.datasets:
            return found._replace(how=f" ({mount.fstype} on {', '.join(way.disks)})")
        return Place(how=mount.fstype, off=True) if found.off else Place(how=f"on {mount.fstype}; {found.how}")

    def device(self, path: str, depth: int = 0) -> Place:
        """Of the block device that a path under /dev means."""
        way = down(path, self.inventory, self.nodes)
        return Place(how=way.reasons[0].text) if isinstance(way, Unknown) else self.disks(way.disks, depth)

    def disks(self, names: Iterable[str], depth: int = 0) -> Place:
        """Of block devices together: known where all are, and on ZFS or off it as a whole."""
        parts = [(name, self.disk(name, depth)) for name in names]
        for _, part in parts:
            if not part.datasets and not part.off:
                return part
        if off := [name for name, part in parts if part.off]:
            if len(off) < len(parts):
                return Place(how=f"a part of it lies on {', '.join(off)}, which is not on ZFS")
            return Place(how=", ".join(dict.fromkeys(part.how for _, part in parts if part.how)), off=True)
        return Place(tuple(dict.fromkeys(each for _, part in parts for each in part.datasets)))

    def disk(self, name: str, depth: int = 0) -> Place:
        """Of a block device with nothing below it: a zvol, a loop device, or what is no part of ZFS."""
        disk = Subject("disk", name)
        match self.inventory.get(disk, "transport"):
            case Known("zvol"):
                volume = self.volume(name)
                return Place((volume,)) if volume else Place(how=f"udev does not say which volume {name} is")
            case Known("loop"):
                return self._loop(disk, depth)
            case Unknown() as why if "slaves" not in self.inventory.of(disk):
                return Place(how=why.reasons[0].text)
        return Place(off=True)

    def volume(self, name: str) -> str:
        """The dataset of a zvol by its kernel name; empty where its links do not say it. udev spells a space as "+"."""
        links = self.inventory.get(Subject("disk", name), "devlinks").words()
        named = {link.removeprefix(ZVOL).replace("+", " ") for link in links if link.startswith(ZVOL)}
        return named.pop() if len(named) == 1 else ""

    def loop_file(self, name: str) -> str:
        """The path of the file behind a loop device; empty where it is not known."""
        file = self.inventory.get(Subject("disk", name), "loop_backing_file").word()
        return file if file.startswith("/") else ""

    def _loop(self, disk: Subject, depth: int) -> Place:
        path = self.loop_file(disk.name)
        if not path:
            return Place(how=f"/sys/block/{disk.name}/loop/backing_file: does not name a file")
        if path.endswith(" (deleted)"):
            return Place(how=f"the file of {disk.name}: {harmless(path)}")
        if depth >= HOLDERS_DEPTH:
            return Place(how=f"more than {HOLDERS_DEPTH} devices on each other")
        if not path.startswith("/dev/"):
            return self.path(path, depth + 1)
        return self.device(path, depth + 1)
