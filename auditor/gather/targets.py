"""From what a user names to datasets: a pool, a dataset, a zvol, a mounted path or that of a block device."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from auditor.databases import paths
from auditor.facts import Fact, Facts, Known, Spec, Subject, Unknown, unknown
from auditor.gather import layers
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

    Raises TargetError when there is surely no such thing; what merely could not be looked up passes, and its facts will be
    unknown."""
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
    text = host.read(layers.OWN_MOUNTS).text.get(layers.OWN)
    if text is None:
        raise TargetError(f"{harmless(path)}: /proc/self/mountinfo cannot be read; name the dataset itself")
    try:
        table = mounts.mounts(text)
        mount = mounts.mount_of(table, real)
    except ValueError as error:
        raise TargetError(f"{harmless(path)}: /proc/self/mountinfo: {error}; name the dataset itself") from None
    if mount is None:
        raise TargetError(f"{harmless(path)}: no mount holds it; name the dataset itself")
    if mount.fstype == mounts.OVERLAY and layers.among_hosts(facts):
        try:
            mount = layers.overlay_below(mount, table, host)
        except layers.NotFollowed as why:
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

    (man 5 nfs, soft; man 8 mount, overlay; Linux Documentation/filesystems/overlayfs.rst)"""
    if mount.fstype in ("nfs", "nfs4"):
        soft = "; mounted soft, so a server that is slow to answer costs writes" if "soft" in mount.options else ""
        return f": run zaudit on the server, where its commits become durable or not{soft}"
    if mount.fstype in ("cifs", "smb3", "9p", "virtiofs", "ceph", "glusterfs", "fuse.glusterfs"):
        return ": run zaudit on the host that holds its files"
    if mount.fstype == mounts.OVERLAY:
        upper = harmless(layers.upper(mount))
        lies = f": a layer of a container, whose files lie in {upper}" if upper else ": a layer of a container"
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
# What a target brings along: a database that keeps something on what is audited is as safe as everything that it uses, so
# each dataset on which it keeps files is audited too, whatever was named; and so on, for the databases that keep files on
# that. And a pool is as safe as the datasets of this host that hold its leaves.

PROVIDES = {"dataset.brought": Spec.word("why it is audited without being named")}
MOST = 64  # datasets that one database brings; for each some commands are run, and a process of anybody may have many links
SELF = "self"  # in place of a process: a database that the user named by its folder
# of a dataset, which goes into commands: the first letter is that of a pool (man 8 zpool-create)
_NAME = re.compile(r"[A-Za-z][^@#]*", re.DOTALL)


def expand(facts: Facts, roots: Collection[Subject]) -> dict[Subject, str]:
    """The datasets that were not named, and why each is audited. roots: those that were, each with all below it. Where a
    database keeps its files is unknown afterwards, where it would bring more than MOST."""
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
