"""On which file system the writes to an overlay end: the one that holds its upper layer, as in a container.

The kernel names the folder of the upper layer as it was spelt when the overlay was mounted, in that mount namespace. So it is
followed only where the overlay is in the table of mounts of the first process, where nobody but root mounts; in the table of a
container the same file system has the same device number. A layer that is mounted "volatile" is no place for what must last:
each fsync on it is skipped. (Linux Documentation/filesystems/overlayfs.rst, fs/overlayfs/params.c ovl_show_options; man 5
proc_pid_mountinfo; man 7 mount_namespaces)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.facts import HOST, Facts, Known
from auditor.host.live import Host
from auditor.host.request import Read
from auditor.sources import mounts
from auditor.sources.mounts import Mount
from auditor.text import harmless

OWN = "/proc/self/mountinfo"
MOUNTS = Read((OWN,))
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


def below(mount: Mount, table: Sequence[Mount], host: Host) -> Mount:
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


def of_databases(tables: Iterable[Sequence[Mount]], facts: Facts, host: Host) -> dict[str, Mount | str]:
    """Device number of each overlay that is in one of these tables -> the mount below it, or why that is not known."""
    numbers = dict.fromkeys(each.major_minor for table in tables for each in table if each.fstype == mounts.OVERLAY)
    if not numbers:
        return {}
    text = host.read(MOUNTS).text.get(OWN) if among_hosts(facts) else None
    try:
        own = mounts.mounts(text or "")
    except ValueError:
        own = mounts.mounts("")
    there = {each.major_minor: each for each in own if each.fstype == mounts.OVERLAY}
    found: dict[str, Mount | str] = {}
    for number in numbers:
        try:
            found[number] = (
                below(there[number], own, host) if number in there else "it is not among the mounts of the host"
            )
        except NotFollowed as why:
            found[number] = str(why)
    return found
