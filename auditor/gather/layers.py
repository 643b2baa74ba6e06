"""The layers of this host above and below its pools.

Below: a leaf may be a zvol, or a file, or a loop device on one; then it keeps what the dataset below it keeps, and no more.
For a file a flush is an fsync, for a zvol a commit of its log. (OpenZFS module/zfs/vdev_file.c vdev_file_io_start,
module/os/linux/zfs/zvol_os.c; Linux drivers/block/loop.c lo_req_flush)

Above: another file system on a zvol, or on a loop device whose file lies on a dataset, sends its flushes through devices of
which each may end them, unless it was mounted so that it sends none. (Linux Documentation/admin-guide/ext4.rst barrier;
Documentation/filesystems/f2fs.rst fsync_mode; man 5 btrfs, nobarrier; block/blk-core.c submit_bio_noacct)"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, known, unknown
from auditor.host.live import Host
from auditor.host.request import Read
from auditor.sources import block_tree, mounts
from auditor.sources.block_tree import Holders, Place
from auditor.sources.mounts import Mount, mount_of
from auditor.text import harmless

PROVIDES = {
    "leaf.lies_on": Spec.links(
        "dataset", "the datasets of this host that hold it: its zvol, or its file; none below a drive"
    ),
    "leaf.below": Spec.word("what holds it where it is no drive: datasets, or the file system of its file; else empty"),
    "disk.lies_on": Spec.links(
        "dataset", "the dataset of a zvol, or that of the file of a loop device; none of a drive"
    ),
    "dataset.carries": Spec.words("FILE SYSTEM at MOUNT POINT of each other file system that lies on it"),
    "dataset.flushes_lost": Spec.words(
        "what above it keeps flushes from it: how a file system is mounted, a block device"
    ),
    "dataset.key_lies_on": Spec.links(
        "dataset", "what holds the file of its key; none where that is no file, or not on ZFS"
    ),
}
NO_FLUSHES = frozenset({"nobarrier", "barrier=0", "fsync_mode=nobarrier"})
FLUSHING = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "vfat", "exfat"}
)  # unless mounted so that they do not
FILE = "file://"
MOUNTS = "cat /proc/1/mountinfo"
KEY_FILES = 256  # that are looked for


class Paths:
    """Paths that were named to the kernel, without their symbolic links. A host that has not answered for one of them is not
    asked for more: each may take as long, on a file system that hangs."""

    def __init__(self, real: Callable[[str], str]) -> None:
        self._real = real
        self._hangs = False

    def of(self, path: str) -> str:
        """Empty where it is not there, could not be reached, or others than root may have moved it."""
        try:
            return "" if self._hangs else self._real(path)
        except OSError as error:
            self._hangs = error.errno == 0  # no answer in time
            return ""


# -- below ------------------------------------------------------------------------------------------------------------


def below(facts: Facts, holders: Holders, paths: Paths) -> Iterator[Fact]:
    for disk in list(facts.subjects("disk")):
        yield Fact(disk, "lies_on", _datasets(holders.disk(disk.name), disk.name))
    for leaf in list(facts.subjects("leaf")):
        match facts.get(leaf, "type"), facts.get(leaf, "path"), facts.get(leaf, "disks"):
            case Known("file"), Known(str(path)), _:
                yield from _of(leaf, _of_file(path, holders, paths), path)
            case Known("file"), Unknown() as why, _:
                yield from (Fact(leaf, name, why) for name in ("lies_on", "below"))
            case _, _, Known() as disks:
                names = [disk.name for disk in facts.linked(leaf, "disks")]
                place = holders.disks(names)
                yield from _of(leaf, place, disks.evidence[0].text)
            case _, _, Unknown() as why:
                yield from (Fact(leaf, name, why) for name in ("lies_on", "below"))


def _of(leaf: Subject, place: Place, what: str) -> Iterator[Fact]:
    found = _datasets(place, what)
    yield Fact(leaf, "lies_on", found)
    text = ", ".join(place.datasets) or place.how
    yield Fact(leaf, "below", found if isinstance(found, Unknown) else Known(text, found.evidence))


def _of_file(path: str, holders: Holders, paths: Paths) -> Place:
    found = paths.of(path)
    return (
        holders.path(found)
        if found
        else Place(how="it is not there, could not be reached, or others than root may have moved it")
    )


def _datasets(place: Place, what: str) -> Judged:
    if not place.datasets and not place.off:
        return unknown(f"{harmless(what)}: {place.how}")
    text = (
        f"{what} lies on {', '.join(place.datasets) or place.how or 'no dataset'}{place.how if place.datasets else ''}"
    )
    return known(tuple(Subject("dataset", each) for each in place.datasets), harmless(text))


# -- above ------------------------------------------------------------------------------------------------------------


def above(facts: Facts, holders: Holders) -> Iterator[Fact]:
    """dataset.carries and dataset.flushes_lost of all datasets."""
    found = _Above(holders)
    if not isinstance(holders.table, Unknown):
        for mount in holders.table:
            if mount.fstype != "zfs" and "ro" not in mount.shared:
                found.mount(mount)
    found.volumes()
    nothing = known((), "nothing that lies on it is mounted", MOUNTS)
    none = known((), "nothing that was seen above it", MOUNTS)  # one object for thousands of datasets
    blind = (
        None
        if are_devices_read(holders.inventory)
        else unknown("/sys/class/block was not read: loop devices are not known")
    )
    for dataset in list(facts.subjects("dataset")):
        carries, unsure = found.carries.get(dataset.name), found.unsure.get(dataset.name)
        lost = found.lost.get(dataset.name)
        volume = is_volume(dataset, facts)
        unseen = holders.table if isinstance(holders.table, Unknown) and (found.loops or volume) else None
        here = known(tuple(carries), ", ".join(carries), MOUNTS) if carries else nothing
        yield Fact(dataset, "carries", unseen or blind or here)
        if lost:
            found_lost: Judged = Known(tuple(each.text for each in lost), tuple(lost))
        elif unsure:
            found_lost = unknown("; ".join(dict.fromkeys(unsure)))
        elif volume and found.nameless:
            found_lost = unknown(f"udev does not say which volume {found.nameless[0]} is")
        else:
            found_lost = unseen or blind or none
        yield Fact(dataset, "flushes_lost", found_lost)


def are_devices_read(inventory: Facts) -> bool:
    """Whether it is known what each block device lies on (/sys/class/block)."""
    return any("slaves" in inventory.of(disk) for disk in inventory.subjects("disk"))


def held_before(facts: Facts, what: Mount | str) -> Place:
    """What holds a mount, from what was made of it in an earlier look at this host."""
    if isinstance(what, str):
        return Place(how="block devices are not looked up again")
    if what.fstype == "zfs":
        return Place((what.source,))
    said = _title(what)
    found = [each.name for each in facts.subjects("dataset") if said in facts.get(each, "carries").words()]
    return Place(tuple(found), off=not found)


def _title(mount: Mount) -> str:
    return harmless(f"{mount.fstype} at {mount.mount_point}")


def unused(size: Judged) -> bool:
    """Of a loop device: one without a file has no size."""
    return isinstance(size, Known) and size.value == 0


class _Above:
    """By dataset: what lies on it, what keeps flushes from it, and what may."""

    def __init__(self, holders: Holders) -> None:
        self.holders = holders
        self.carries: dict[str, list[str]] = {}
        self.lost: dict[str, dict[Evidence, None]] = {}
        self.unsure: dict[str, list[str]] = {}
        disks = holders.inventory.subjects("disk")
        self.loops = any(
            disk.name.startswith("loop") and not unused(holders.inventory.get(disk, "size_bytes")) for disk in disks
        )
        self.nameless: list[str] = []

    def volumes(self) -> None:
        for disk in self.holders.inventory.subjects("disk"):
            match self.holders.inventory.get(disk, "transport"):
                case Known("zvol"):
                    if name := self.holders.volume(disk.name):
                        self._device(disk.name, (name,))
                    else:
                        self.nameless.append(disk.name)

    def mount(self, mount: Mount) -> None:
        place = self.holders.mount(mount)
        for name in place.datasets or self._in_part(mount, place):
            self.carries.setdefault(name, []).append(_title(mount))
        if place.datasets:
            self._way(mount, place.datasets)
        else:
            self._doubt(self._in_part(mount, place), f"{_title(mount)}: {place.how}")

    def _in_part(self, mount: Mount, place: Place) -> tuple[str, ...]:
        """The datasets below one that also lies on something else, or that cannot be followed to its end."""
        way = block_tree.down(mount.source, self.holders.inventory, self.holders.nodes)
        if place.off or isinstance(way, Unknown):
            return ()
        return tuple(dict.fromkeys(name for disk in way.disks for name in self.holders.disk(disk).datasets))

    def _way(self, mount: Mount, datasets: tuple[str, ...]) -> None:
        """Each step from a file system down to its datasets."""
        what = _title(mount)
        if off := sorted(NO_FLUSHES & set(mount.options)):
            self._lose(datasets, f"{what} is mounted {', '.join(off)}", MOUNTS)
        elif mount.fstype not in FLUSHING:
            self._doubt(datasets, f"whether {what} sends flushes is not known to this zaudit")
        self._device(mount.source, datasets)

    def _device(self, path: str, datasets: tuple[str, ...]) -> None:
        way = block_tree.down(
            path if path.startswith("/") else f"/dev/{path}", self.holders.inventory, self.holders.nodes
        )
        if isinstance(way, Unknown):
            self._doubt(datasets, way.reasons[0].text)
            return
        bottom = [block_tree.cache(Subject("disk", name), self.holders.inventory) for name in way.disks]
        for each in (*way.caches, *bottom):
            if isinstance(each, Unknown):
                self._doubt(datasets, each.reasons[0].text)
            elif through := [name for name, state in each.pairs() if state == "write through"]:
                self._lose(datasets, f"{through[0]} says write through", each.evidence[0].command)
        for name in way.disks:
            file = self.holders.loop_file(name)
            if file.startswith("/dev/"):
                self._device(file, datasets)
            elif file and not isinstance(self.holders.table, Unknown):
                under = mount_of(self.holders.table, file)
                if under and under.fstype != "zfs":
                    self._way(under, datasets)

    def _lose(self, datasets: tuple[str, ...], text: str, command: str) -> None:
        for name in datasets:
            self.lost.setdefault(name, {})[Evidence(harmless(text), command)] = None

    def _doubt(self, datasets: tuple[str, ...], text: str) -> None:
        for name in datasets:
            self.unsure.setdefault(name, []).append(harmless(text))


def is_volume(dataset: Subject, facts: Facts) -> bool:
    """Whether it is none that can be told to be a file system."""
    kind = facts.get(dataset, "type")
    return not (isinstance(kind, Known) and kind.value == "filesystem")


# -- keys -------------------------------------------------------------------------------------------------------------


def keys(facts: Facts, holders: Holders, paths: Paths) -> Iterator[Fact]:
    """dataset.key_lies_on of all datasets. Only where the file is is looked at, never the file."""
    found: dict[str, Judged] = {}
    for dataset in list(facts.subjects("dataset")):
        location = facts.get(dataset, "keylocation")
        if isinstance(location, Unknown):
            yield Fact(dataset, "key_lies_on", location)
            continue
        url = str(location.value)
        if url not in found:
            many = unknown(f"more than {KEY_FILES} key files: the others were not looked for")
            found[url] = _key(url, location, holders, paths) if len(found) < KEY_FILES else many
        yield Fact(dataset, "key_lies_on", found[url])


def _key(url: str, location: Known, holders: Holders, paths: Paths) -> Judged:
    if not url.startswith(FILE):
        return Known((), location.evidence)
    path = url.removeprefix(FILE)
    return _datasets(_of_file(path, holders, paths), path)


# -- overlays ---------------------------------------------------------------------------------------------------------
# On which file system the writes to an overlay end: the one that holds its upper layer, as in a container.
#
# The kernel names the folder of the upper layer as it was spelt when the overlay was mounted, in that mount namespace. So it
# is followed only where the overlay is in the table of mounts of the first process, where nobody but root mounts; in the
# table of a container the same file system has the same device number. A layer that is mounted "volatile" is no place for
# what must last: each fsync on it is skipped. (Linux Documentation/filesystems/overlayfs.rst, fs/overlayfs/params.c
# ovl_show_options; man 5 proc_pid_mountinfo; man 7 mount_namespaces)

OWN = "/proc/self/mountinfo"
OWN_MOUNTS = Read((OWN,))
LEFT_OUT = "it is mounted volatile: every fsync on it is left out"


class NotFollowed(Exception):
    """Why it is not known where the writes end."""


def among_hosts(facts: Facts) -> bool:
    """Whether the mounts that zaudit sees are those of the host."""
    apart = facts.get(HOST, "own_mount_namespace")
    return isinstance(apart, Known) and apart.value is False


def upper(mount: Mount) -> str:
    """The folder of the upper layer as the kernel names it; empty where there is none. Any text may stand there."""
    said = (each.removeprefix("upperdir=") for each in mount.shared if each.startswith("upperdir="))
    return mounts.plain(next(said, ""))


def overlay_below(mount: Mount, table: Sequence[Mount], host: Host) -> Mount:
    """The mount that holds the upper layer of an overlay of this table, which is that of the host. Raises NotFollowed."""
    folder = upper(mount)
    if mounts.volatile(mount):
        raise NotFollowed(LEFT_OUT)
    if not folder.startswith("/") or "\\" in folder:  # which a comma in its name has before it on some kernels alone
        raise NotFollowed(
            f"its upper layer {harmless(folder)} is no plain absolute path" if folder else "it has no upper layer"
        )
    try:
        real = host.steady(folder)
    except OSError:
        real = ""
    if not real:
        why = "no such folder, or others than root may have moved it"
        raise NotFollowed(f"its upper layer {harmless(folder)}: {why}")
    if (found := mounts.mount_of(table, real)) is None:
        raise NotFollowed(f"its upper layer {harmless(folder)}: no mount holds it")
    return found


def overlays_of_databases(tables: Iterable[Sequence[Mount]], facts: Facts, host: Host) -> dict[str, Mount | str]:
    """Device number of each overlay that is in one of these tables -> the mount below it, or why that is not known."""
    numbers = dict.fromkeys(each.major_minor for table in tables for each in table if each.fstype == mounts.OVERLAY)
    if not numbers:
        return {}
    text = host.read(OWN_MOUNTS).text.get(OWN) if among_hosts(facts) else None
    try:
        own = mounts.mounts(text or "")
    except ValueError:
        own = mounts.mounts("")
    there = {each.major_minor: each for each in own if each.fstype == mounts.OVERLAY}
    found: dict[str, Mount | str] = {}
    for number in numbers:
        try:
            found[number] = (
                overlay_below(there[number], own, host) if number in there else "it is not among the mounts of the host"
            )
        except NotFollowed as why:
            found[number] = str(why)
    return found
