"""The layers of this host above and below its pools, and from what a user names down to datasets.

Below: a leaf may be a zvol, or a file, or a loop device on one; then it keeps what the dataset below it keeps, and no more.
For a file a flush is an fsync, for a zvol a commit of its log. (OpenZFS module/zfs/vdev_file.c vdev_file_io_start,
module/os/linux/zfs/zvol_os.c; Linux drivers/block/loop.c lo_req_flush)

Above: another file system on a zvol, or on a loop device whose file lies on a dataset, sends its flushes through devices
that each may drop them, unless its mount sends none. (Linux Documentation/admin-guide/ext4.rst barrier;
Documentation/filesystems/f2fs.rst fsync_mode; man 5 btrfs, nobarrier; block/blk-core.c submit_bio_noacct)"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from auditor.databases import paths
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, known, unknown
from auditor.host.live import Host
from auditor.host.request import Read, Run
from auditor.sources import block_tree, mounts
from auditor.sources.block_tree import Holders, Place
from auditor.sources.mounts import Mount, mount_of
from auditor.text import harmless, near

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
    "dataset.brought": Spec.word("why it is audited without being named"),
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
    """Paths that were named to the kernel, without their symbolic links. After one answer too late the host is asked no
    more: each may take as long, on a file system that hangs."""

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
    """What holds a mount, from the facts of an earlier look at this host."""
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
# On which file system the writes to an overlay end: the one of its upper layer, as in a container.
#
# The kernel names that folder as it was spelt when the overlay was mounted, in that mount namespace. So it is followed only
# where the overlay is in the table of mounts of the first process, where only root mounts; in the table of a container the
# same file system has the same device number. On a layer mounted "volatile" each fsync is skipped. (Linux
# Documentation/filesystems/overlayfs.rst, fs/overlayfs/params.c ovl_show_options; man 5 proc_pid_mountinfo; man 7
# mount_namespaces)

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


# From what a user names to datasets: a pool, a dataset, a zvol, a mounted path or that of a block device.

ZVOL = "/dev/zvol/"


Held = Callable[[mounts.Mount | str], Place]  # what holds a mount, or the block device of a path


class TargetError(Exception):
    """There is nothing to audit by that name; the text says what is there instead."""


def resolve(host: Host, target: str, pools: Sequence[str] | None, held: Held, facts: Facts) -> tuple[Subject, ...]:
    """The dataset that a target means; of another file system or block device the zvols, or the dataset of the file, below
    it. pools: imported ones, or None when not listed. Raises TargetError when there is surely no such thing."""
    names = _of_path(host, target, held, facts) if target.startswith("/") else (target.rstrip("/"),)
    for name in names:
        for mark, what in (("@", "snapshot"), ("#", "bookmark")):
            if mark in name:
                raise TargetError(
                    f"{harmless(target)} is a {what}; name its dataset {harmless(name.partition(mark)[0])}"
                )
        pool = name.partition("/")[0]
        if pools is not None and pool not in pools:
            raise TargetError(missing(pool, pools))
    return tuple(Subject("dataset", name) for name in names)


def _of_path(host: Host, path: str, held: Held, facts: Facts) -> tuple[str, ...]:
    if path.startswith(ZVOL):
        # udev's zvol_id spells a space in a dataset's name as "+" (OpenZFS udev/zvol_id.c)
        return (path.removeprefix(ZVOL).rstrip("/").replace("+", " "),)
    try:
        real = host.realpath(path)
    except FileNotFoundError:
        raise TargetError(f"{harmless(path)}: no such file or folder") from None
    except OSError as error:
        raise TargetError(f"{harmless(path)}: {error.strerror or error}") from None
    text = host.read(OWN_MOUNTS).text.get(OWN)
    if text is None:
        raise TargetError(f"{harmless(path)}: /proc/self/mountinfo cannot be read; name the dataset itself")
    try:
        table = mounts.mounts(text)
        mount = mounts.mount_of(table, real)
    except ValueError as error:
        raise TargetError(f"{harmless(path)}: /proc/self/mountinfo: {error}; name the dataset itself") from None
    if mount is None:
        raise TargetError(f"{harmless(path)}: no mount holds it; name the dataset itself")
    if mount.fstype == mounts.OVERLAY and among_hosts(facts):
        try:
            mount = overlay_below(mount, table, host)
        except NotFollowed as why:
            raise TargetError(f"{harmless(path)} is not on ZFS: it is on an overlay, and {why}") from None
    place = held(real) if real.startswith("/dev/") else Place()
    place = place if place.datasets else held(mount)
    if place.datasets:
        return place.datasets
    on = f"it is on {mount.fstype} ({harmless(mount.source)}, mounted at {harmless(mount.mount_point)})"
    if not place.off:
        raise TargetError(
            f"{harmless(path)}: {on}, and what that lies on is not clear: {place.how}; name the dataset itself"
        )
    raise TargetError(f"{harmless(path)} is not on ZFS: {on}{_instead(mount)}")


def _instead(mount: mounts.Mount) -> str:
    """Where the question what fsync means there is decided, or empty. (man 5 nfs, soft; man 8 mount, overlay; Linux
    Documentation/filesystems/overlayfs.rst)"""
    if mount.fstype in ("nfs", "nfs4"):
        soft = "; mounted soft, so a server that is slow to answer costs writes" if "soft" in mount.options else ""
        return f": run zaudit on the server, where its commits become durable or not{soft}"
    if mount.fstype in ("cifs", "smb3", "9p", "virtiofs", "ceph", "glusterfs", "fuse.glusterfs"):
        return ": run zaudit on the host that holds its files"
    if mount.fstype == mounts.OVERLAY:
        above = harmless(upper(mount))
        lies = f": a layer of a container, whose files lie in {above}" if above else ": a layer of a container"
        return f"{lies}; run zaudit as root on the outer host, in its mount namespace"
    if mount.fstype in ("tmpfs", "ramfs"):
        return ": memory, which every restart empties"
    return ""


def must_exist(host: Host, root: Subject, failure: Unknown | None) -> None:
    """Raises TargetError with the near matches when ``zfs list`` said that there is no such dataset."""
    if failure and any("does not exist" in reason.text for reason in failure.reasons):
        pool = root.name.partition("/")[0]
        listed = host.run(Run(("zfs", "list", "-H", "-o", "name", "-t", "filesystem,volume", "-r", pool)))
        raise TargetError(missing(root.name, listed.stdout.decode("utf-8", "replace").splitlines()))


def missing(name: str, there: Sequence[str]) -> str:
    """That there is no such pool or dataset, and which of those that are there are near it."""
    what = "pool" if "/" not in name else "dataset"
    if others := near(name, there):
        return f"no {what} {harmless(name)}{others}"
    if what == "pool" and there:
        return f"no pool {harmless(name)} is imported; there are: {', '.join(map(harmless, there))}"
    return f"no {what} {harmless(name)}" + ("" if there else "; no pool is imported" if what == "pool" else "")


def pool_of(subject: Subject) -> Subject:
    """The pool that a dataset, vdev, leaf or pool belongs to."""
    return Subject("pool", subject.within or subject.name.partition("/")[0])


def covers(root: Subject, dataset: Subject) -> bool:
    return dataset.name == root.name or dataset.name.startswith(root.name + "/")


# -- what a target brings along ---------------------------------------------------------------------------------------
# A database is as safe as everything that it uses: each dataset with its files is audited too, and so on for the databases
# on that. A pool is as safe as the datasets of this host that hold its leaves.

MOST = 64  # datasets that one database brings; for each some commands are run, and a process of anybody may have many links
SELF = "self"  # in place of a process: a database that the user named by its folder
# of a dataset, which goes into commands: the first letter is that of a pool (man 8 zpool-create)
_NAME = re.compile(r"[A-Za-z][^@#]*", re.DOTALL)


def expand(facts: Facts, roots: Collection[Subject]) -> dict[Subject, str]:
    """The datasets that were not named, and why each is audited. roots: the named ones, each with all below it. Where a
    database would bring more than MOST, the places of its files become unknown."""
    found: dict[Subject, str] = {}
    while True:
        before = len(found)
        for each, why in [*_by_databases(facts, roots, found), *_by_leaves(facts, roots, found)]:
            found.setdefault(each, why)
        if len(found) == before:
            return found


def _by_databases(
    facts: Facts, roots: Collection[Subject], found: Collection[Subject]
) -> Iterator[tuple[Subject, str]]:
    """What databases use that keep something on what is audited."""
    names = {root.name for root in roots}
    for database in facts.subjects("database"):
        if _concerns(database, facts, names, found):
            used = [each for each in facts.linked(database, "datasets") if not _below(each, names)]
            if len(used) > MOST:
                text = f"{database.name} keeps files on {len(used):,} datasets that were not named, more than are looked at"
                for name in paths.PROVIDES:
                    facts.replace(
                        Fact(database, name.partition(".")[2], unknown(text, "zaudit check of the whole pools"))
                    )
                continue
            for dataset in used:
                if dataset not in found and _NAME.fullmatch(dataset.name):
                    log, data = (dataset in facts.linked(database, name) for name in ("log_datasets", "data_datasets"))
                    what = "its log and its data" if log and data else "its log" if log else "data"
                    yield dataset, f"{database.name} keeps {what} there"


def _by_leaves(facts: Facts, roots: Collection[Subject], found: Collection[Subject]) -> Iterator[tuple[Subject, str]]:
    """What the leaves of the pools lie on: zvols, and files."""
    names = {root.name for root in roots}
    for name in dict.fromkeys(each.name.partition("/")[0] for each in (*roots, *found)):
        for leaf in facts.linked(Subject("pool", name), "leaves"):
            for dataset in facts.linked(leaf, "lies_on"):
                if not _below(dataset, names) and _NAME.fullmatch(dataset.name):
                    yield dataset, f"{leaf.name} of pool {name} lies on it"


def _concerns(database: Subject, facts: Facts, names: Collection[str], found: Collection[Subject]) -> bool:
    process = facts.get(database, "process")
    if isinstance(process, Known) and process.value == SELF:
        return True
    return any(_below(each, names) or each in found for each in facts.linked(database, "datasets"))


def _below(dataset: Subject, names: Collection[str]) -> bool:
    parts = dataset.name.split("/")
    return any("/".join(parts[:end]) in names for end in range(1, len(parts) + 1))
