"""The mounts that a database's process sees, compared with those that ``zfs get`` names and the devices of its
folders: a line that is lost from its table would put the files below it on another file system. In a container,
whose root is another one, only the devices are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.collect import database_paths
from auditor.collect._database_files import Tree, folders
from auditor.facts import Fact, Facts, FolderDevice, Subject, SymbolicLink, rows_of, unknown, value_of, words_of
from auditor.host.request import Files
from auditor.sources import mounts
from auditor.text import harmless

VOLUMES = (
    "btrfs",
)  # each of its subvolumes has a device of its own, which no table of mounts names (man 2 stat, st_dev)
LAYERS = ("overlay", "aufs", "fuse-overlayfs")


def compare(facts: Facts) -> None:
    """All databases."""
    points = {
        dataset.name: point
        for dataset in facts.subjects("dataset")
        if value_of(facts.get(dataset, "mounted")) is True
        and isinstance(point := value_of(facts.get(dataset, "mountpoint")), str)
        and point.startswith("/")
    }
    for database in list(facts.subjects("database")):
        table = mounts.mounts("".join(f"{line}\n" for line in words_of(facts.get(database, "mountinfo"))))
        if table and (why := _device_lost(database, table, facts) or _dataset_lost(database, table, points, facts)):
            for name in database_paths.PROVIDES:
                facts.replace(Fact(database, name.partition(".")[2], unknown(f"{database.name}: {why}")))


def _device_lost(database: Subject, table: Sequence[mounts.Mount], facts: Facts) -> str:
    """Which folder of its files is not on the mount that its table says, or an empty string."""
    links = dict(
        each for name in ("symlinks", "more_symlinks") for each in rows_of(facts.get(database, name), SymbolicLink)
    )
    tree = Tree(Files({}, links), "")
    seen = (facts.get(database, name) for name in ("devices", "more_devices"))
    for path, device in (each for devices in seen for each in rows_of(devices, FolderDevice)):
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
    paths = [path for _, path in folders(words_of(facts.get(database, "directories")))]
    paths += [each.target for each in rows_of(facts.get(database, "symlinks"), SymbolicLink)]
    for name, point in points.items():
        if name not in there and any(_below(path, point) for path in paths):
            return f"zfs get says that {harmless(name)} is mounted, the process's table of mounts lacks it"
    return ""


def _another_root(table: Sequence[mounts.Mount], points: Mapping[str, str]) -> bool:
    """Whether its root is not that of the host: a layer, a dataset that the host has mounted elsewhere (a container of LXC),
    or any file system but the dataset that is at the root of the host."""
    root = mounts.mount_of(table, "/")
    if root is None:
        return False
    if any(each.mount_point == "/" and each.fstype in LAYERS for each in table):
        return True
    at_root = {name for name, point in points.items() if point == "/"}
    return points.get(root.source, "/") != "/" or (bool(at_root) and root.source not in at_root)


def _below(path: str, point: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")
