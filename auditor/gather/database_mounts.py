"""The mounts that a database's process sees, held against those that ``zfs get`` names: a line that is lost from the one
would put the files below it on another dataset. In a container, whose root is another one, nothing is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.collect import database_links, database_paths, mounts
from auditor.facts import Fact, Facts, Known, Subject, unknown

LAYERS = ("overlay", "aufs", "fuse-overlayfs")


def compare(facts: Facts) -> None:
    """All databases: where a folder is below the mount point of a dataset that is mounted and not in the table."""
    points = {
        dataset.name: point
        for dataset in facts.subjects("dataset")
        if _value(facts, dataset, "mounted") is True
        and isinstance(point := _value(facts, dataset, "mountpoint"), str)
        and point.startswith("/")
    }
    for database in list(facts.subjects("database")):
        lines, places, symlinks = (_words(facts, database, name) for name in ("mountinfo", "directories", "symlinks"))
        table = mounts.mounts("".join(f"{line}\n" for line in lines))
        if not table or _another_root(table, points):
            continue
        there = {each.source for each in table if each.fstype == "zfs"}
        paths = [place.partition(":")[2] for place in places]
        paths += [link.rpartition(database_links.ARROW)[2] for link in symlinks]
        lost = [
            name for name, point in points.items() if name not in there and any(_below(path, point) for path in paths)
        ]
        if lost:
            why = unknown(
                f"{database.name}: zfs get says that {lost[0]} is mounted, the process's table of mounts lacks it"
            )
            for name in database_paths.PROVIDES:
                facts.replace(Fact(database, name.partition(".")[2], why))


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


def _words(facts: Facts, subject: Subject, name: str) -> tuple[str, ...]:
    found = facts.get(subject, name)
    return tuple(map(str, found.value)) if isinstance(found, Known) and isinstance(found.value, tuple) else ()


def _value(facts: Facts, subject: Subject, name: str) -> object:
    found = facts.get(subject, name)
    return found.value if isinstance(found, Known) else None
