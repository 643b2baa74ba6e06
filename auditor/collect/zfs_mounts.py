"""Which file systems of ZFS are mounted, and whether they can be written to: as the first process of the host sees it.

The commands of ZFS overlay what a dataset is set to with the options of the mount that they find in their own mount
namespace, and call the source "temporary" (get_numeric_property() in lib/libzfs/libzfs_dataset.c). A sandbox or container
whose mounts are read-only so turns readonly into "on" for itself alone. What stands after the dash of a line is of the
file system, and so the same in every namespace: ro there means that nobody writes. (man 5 proc_pid_mountinfo, man 7
mount_namespaces)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.collect.mounts import Table, mount_of, mounts
from auditor.facts import HOST, Fact, Facts, Subject, flag, known, words
from auditor.host.request import Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {
    "own_mount_namespace": flag("zaudit runs in another mount namespace than the first process, and sees other mounts"),
    "zfs_mounts": words(
        "DATASET=ro or rw of each file system of ZFS that is mounted: as the file system is, not the mount"
    ),
    "mount_table": words("the lines of the table of mounts of the host"),
    "hidden_mounts": words("DATASET at PATH below SOURCE: mounted file systems of ZFS that no path leads to"),
}
TABLES = ("/proc/1/mountinfo", "/proc/self/mountinfo")
NAMESPACES = ("/proc/1/ns/mnt", "/proc/self/ns/mnt")


def request(host: Subject, facts: Facts) -> Read:
    return Read((*TABLES, *NAMESPACES))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Either table is enough: both name what is mounted. Raises ValueError for what is no table of mounts."""
    first, own = (reply.links.get(path, "") for path in NAMESPACES)
    if all(re.fullmatch(r"mnt:\[\d+\]", each) for each in (first, own)):
        text = f"{NAMESPACES[1]} is {own}, {NAMESPACES[0]} {first}"
        yield Fact(HOST, "own_mount_namespace", known(first != own, text, f"readlink {' '.join(NAMESPACES)}"))
    tables = [path for path in TABLES if path in reply.text]
    if not tables:
        return
    for path in tables:
        if not mounts(reply.text[path]).at.get("/"):
            raise ValueError(f"{path} is no whole table: nothing is mounted at /")
    path = tables[0]
    if path == TABLES[0] or not first or first == own:
        lines = tuple(reply.text[path].split("\n")[:-1])
        yield Fact(HOST, "mount_table", known(lines, f"{len(lines)} mounts", f"cat {path}"))
        table = mounts(reply.text[path])
        if (hidden := _hidden(table)) is not None:
            text = "; ".join(hidden) or "a path leads to each"
            yield Fact(HOST, "hidden_mounts", known(hidden, text, "findmnt -t zfs"))
    found: dict[str, str] = {}
    for path in tables:
        for mount in mounts(reply.text[path]):
            if mount.fstype == "zfs" and "@" not in mount.source:
                now = "ro" if "ro" in mount.shared else "rw"
                found[mount.source] = "rw" if "rw" in (now, found.get(mount.source)) else now
    text = f"{len(found)} file systems of ZFS are mounted"
    pairs = tuple(f"{name}={how}" for name, how in sorted(found.items()))
    yield Fact(HOST, "zfs_mounts", known(pairs, text, f"grep ' - zfs ' {' '.join(tables)}"))


def _hidden(table: Table) -> tuple[str, ...] | None:
    """A later mount over a folder above hides it; what is mounted elsewhere, too, may be seen there. None where more mounts are
    on the way than zaudit follows: whoever owns a folder can stack them with FUSE."""
    places: dict[str, str] = {}
    seen: set[str] = set()
    for mount in table:
        if mount.fstype == "zfs" and "@" not in mount.source:
            if (here := mount_of(table, mount.mount_point)) is None:
                return None
            if here.source == mount.source:
                seen.add(mount.source)
            else:
                what = here.source if here.fstype == "zfs" else here.fstype
                places.setdefault(mount.source, f"{mount.mount_point} below {what}, mounted at {here.mount_point}")
    return tuple(f"{source} at {places[source]}" for source in sorted(places.keys() - seen))
