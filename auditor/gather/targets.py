"""From what a user names to datasets: a pool, a dataset, a zvol, a mounted path or that of a block device."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from auditor.facts import Facts, Subject, Unknown
from auditor.gather import overlay
from auditor.host.live import Host
from auditor.host.request import Run
from auditor.sources import mounts
from auditor.sources.block_tree import Place
from auditor.text import harmless, near

ZVOL = "/dev/zvol/"


Held = Callable[[mounts.Mount | str], Place]  # what holds a mount, or the block device of a path


class TargetError(Exception):
    """There is nothing to audit by that name; the text says what is there instead."""


def resolve(host: Host, target: str, pools: Sequence[str] | None, held: Held, facts: Facts) -> tuple[Subject, ...]:
    """The dataset that a target means; of another file system or block device the zvols, or the dataset of the file, that it
    lies on. pools: those that are imported, or None when nobody could list them. facts: of the host.

    Raises TargetError when there is surely no such thing; what merely could not be looked up passes, and its facts
    will be unknown.
    """
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
    text = host.read(overlay.MOUNTS).text.get(overlay.OWN)
    if text is None:
        raise TargetError(f"{harmless(path)}: /proc/self/mountinfo cannot be read; name the dataset itself")
    try:
        table = mounts.mounts(text)
        mount = mounts.mount_of(table, real)
    except ValueError as error:
        raise TargetError(f"{harmless(path)}: /proc/self/mountinfo: {error}; name the dataset itself") from None
    if mount is None:
        raise TargetError(f"{harmless(path)}: no mount holds it; name the dataset itself")
    if mount.fstype == mounts.OVERLAY and overlay.among_hosts(facts):
        try:
            mount = overlay.below(mount, table, host)
        except overlay.NotFollowed as why:
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
    """Where the question what fsync means there is decided; empty where nothing more can be said.

    (man 5 nfs, soft; man 8 mount, overlay; Linux Documentation/filesystems/overlayfs.rst)
    """
    if mount.fstype in ("nfs", "nfs4"):
        soft = "; mounted soft, so a server that is slow to answer costs writes" if "soft" in mount.options else ""
        return f": run zaudit on the server, where its commits become durable or not{soft}"
    if mount.fstype in ("cifs", "smb3", "9p", "virtiofs", "ceph", "glusterfs", "fuse.glusterfs"):
        return ": run zaudit on the host that holds its files"
    if mount.fstype == mounts.OVERLAY:
        upper = harmless(overlay.upper(mount))
        lies = f": a layer of a container, whose files lie in {upper}" if upper else ": a layer of a container"
        return f"{lies}; run zaudit as root on the host below, in its mount namespace"
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
    """Whether a dataset is the root or below it."""
    return dataset.name == root.name or dataset.name.startswith(root.name + "/")
