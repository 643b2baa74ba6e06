"""How a dataset is mounted and shared, and who loads its key: mount points, fstab, boot environments, exports, keys and their
units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, is_true, known, unknown
from auditor.model.derivation import Missing, about_each, catch_missing, derivation, every, evidence, gaps
from auditor.model.next_boot import reached, root_datasets, root_source
from auditor.sources.mounts import FstabNeed, inside, plain
from auditor.sources.shares import NfsExport, SmbShare

_COMMAND = "zfs get mountpoint {subject}"
_KINDS = {
    "/": known("root", "mountpoint=/", _COMMAND),
    "legacy": known("legacy", "mountpoint=legacy", _COMMAND),
    "none": known("none", "mountpoint=none", _COMMAND),
}
_PATH = known("path", "mountpoint is a path", _COMMAND)


@derivation(
    "dataset",
    mounts_at=Spec.word(
        "what mountpoint says: a path, / (root), legacy (mounted by mount(8) and fstab) or none",
        "path",
        "root",
        "legacy",
        "none",
    ),
)
def mounts_at(dataset: Subject, facts: Facts) -> Judged:
    """Rules ask for the kind of mount point, and 10,000 datasets share four answers where each has a path of its own.
    (man 7 zfsprops, mountpoint)"""
    return _KINDS.get(str(facts.need(dataset, "mountpoint").value), _PATH)


# whose folders they are: what is mounted there is mounted by them, when a container or pod starts
_NAMES = ("docker", "containers", "containerd", "kubelet", "rancher", "lxc", "lxd", "incus", "machines")
MANAGERS = (*(f"/var/lib/{each}/" for each in _NAMES), "/var/snap/", "/run/")
VOLUMES = ("/var/lib/docker/volumes/", "/var/lib/containers/storage/volumes/", "/var/lib/kubelet/pods/")


@derivation(
    "host",
    **{
        "dataset.mount_differs": Spec.word("how it is mounted otherwise than the next boot mounts it, or empty"),
        "dataset.mount_hazard": Spec.word(
            "of which kind that is", "none", "by hand", "elsewhere", "twice", "container"
        ),
        "dataset.database_below": Spec.word(
            "a database that was seen to run in the folder of its mount point, or empty"
        ),
    },
)
def mount_differs(host: Subject, facts: Facts) -> Iterator[Fact]:
    """How the next boot mounts a file system otherwise than it is mounted now, by the mounts of the host's first process.
    ``zfs mount -a`` mounts those with canmount=on, fstab those with mountpoint=legacy. The rest was mounted by hand, by a
    program, or before a change (zfs set -u).

    Of two with one mount point the last covers the other. A manager of containers makes the folder of a volume and starts
    without the mount. (man 7 zfsprops, canmount, mountpoint; man 8 zfs-set -u)"""
    subjects = tuple(facts.subjects("dataset"))
    claims: dict[str, list[str]] = {}
    for dataset in subjects:
        match facts.get(dataset, "mountpoint"), facts.get(dataset, "canmount"):
            case Known(str() as path), Known("on") if path.startswith("/"):
                claims.setdefault(path, []).append(dataset.name)
    below = _databases_below(subjects, claims, facts)
    for dataset in subjects:
        here = "" if isinstance(below, Unknown) else below.get(dataset.name, "")
        name = known(here, here or "no database was seen to run there")
        yield Fact(dataset, "database_below", below if isinstance(below, Unknown) else name)
    table, by_fstab = facts.values(HOST, "mount_table", "fstab_zfs")
    at: dict[str, list[str]] = {}
    for row in (line.split(" ") for line in table.words()):
        if "-" in row[6:] and row[row.index("-", 6) + 1 :][:1] == ["zfs"]:
            at.setdefault(plain(row[row.index("-", 6) + 2]), []).append(plain(row[4]))
    fine = tuple(known(value, "as the next boot mounts it", "findmnt -t zfs") for value in ("", "none"))
    for dataset in subjects:
        point, canmount = facts.get(dataset, "mountpoint"), facts.get(dataset, "canmount")
        found: tuple[Judged, ...] = fine
        if unseen := gaps((point, canmount)):
            found = (Unknown.join(unseen), Unknown.join(unseen))
        else:
            set_to = point.word(), canmount.word()
            text, hazard = _differs(dataset.name, *set_to, at, claims, by_fstab.words())
            if text:
                found = known(text, text, "findmnt -t zfs"), known(hazard, text, "findmnt -t zfs")
        yield Fact(dataset, "mount_differs", found[0])
        yield Fact(dataset, "mount_hazard", found[1])


@catch_missing
def _databases_below(subjects: tuple[Subject, ...], claims: Mapping[str, list[str]], facts: Facts) -> Mapping[str, str]:
    """Dataset -> a database in the folder of its mount point: the nearest one, so that all of both have to be known."""
    databases = facts.need_linked(HOST, "database_processes")
    homes = every(facts.get(each, "data_directory") for each in databases)
    if databases:
        filesystems = [each for each in subjects if facts.get(each, "type").word() != "volume"]
        every(facts.get(each, name) for each in filesystems for name in ("mountpoint", "canmount"))
    below = dict[str, str]()
    for database, home in zip(databases, homes, strict=True):
        folder = home.word()
        while folder and folder not in claims:
            folder = folder.rpartition("/")[0]
        below |= dict.fromkeys(claims.get(folder, ()), database.name)
    return below


def _differs(
    name: str,
    point: str,
    canmount: str,
    at: Mapping[str, list[str]],
    claims: Mapping[str, list[str]],
    by_fstab: tuple[str, ...],
) -> tuple[str, str]:
    here = at.get(name, [])
    others = [each for each in claims.get(point, ()) if each != name]
    managed = bool(here) and all(each.startswith(MANAGERS) for each in here)
    if not here:
        return "", "none"
    if point == "none" or (point == "legacy" and not managed and not {*here} & {*by_fstab, "/"}):
        return f"mountpoint={point}, mounted at {here[0]} by hand or by a program", "by hand"
    by_others = {*here} & {*by_fstab} or (managed and not point.startswith(VOLUMES))  # fstab: with zfsutil
    if point.startswith("/") and canmount != "on" and point != "/" and not by_others:
        return f"canmount={canmount}, mounted at {here[0]}", "by hand"
    if others and canmount == "on":
        return f"{others[0]} has the same mountpoint={point}", "twice"
    if point.startswith("/") and point not in here:
        return f"mountpoint={point}, mounted at {here[0]}", "elsewhere"
    if point.startswith(VOLUMES):
        return f"mountpoint={point} is in the folder of a manager of containers, which starts without it", "container"
    return "", "none"


@derivation("host", snapshots_mounted=Spec.flag("a snapshot is mounted"))
def snapshots_mounted(host: Subject, facts: Facts) -> Judged:
    """Whether a snapshot is mounted: somebody looks into it, below .zfs/snapshot or mounted by hand. OpenZFS takes
    those away that nobody has used for five minutes. (man 4 zfs, zfs_expire_snapshot)"""
    table = facts.need(HOST, "mount_table")
    ends = (str(line).partition(" - zfs ")[2].partition(" ")[0] for line in table.words())
    first = next((source for source in ends if "@" in source), "")
    text = f"{first} is mounted" if first else "no snapshot is mounted"
    return known(bool(first), text, "grep ' zfs .*@' /proc/1/mountinfo")


_NAME = re.compile(r"(?:[^/]+/ROOT|boot-pool|bpool)(?:/.*)?", re.DOTALL)
_YES = known(True, "a boot environment, or a part of one", "zfs list {subject}")
_NO = known(False, "no boot environment")


@derivation(
    "dataset",
    of_the_system=Spec.flag("its name is that of (a part of) a boot environment, and no database was seen on it"),
)
def of_the_system(dataset: Subject, facts: Facts) -> Judged:
    """Datasets on which installers put the system, by their names: what is usual there would be a fault where a database
    lies.

    Boot environments are POOL/ROOT/NAME and below; of boot-pool and bpool it is all. A database that was seen there counts
    more. (OpenZFS documentation, Getting Started, Debian, Root on ZFS; truenas/scale-build truenas_install/fhs.py;
    truenas/middleware boot.pool_name; ubuntu's zsys-setup)"""
    if not _NAME.fullmatch(dataset.name):
        return _NO
    databases = facts.linked(HOST, "databases")
    every((facts.get(HOST, "databases"), *(facts.get(each, "datasets") for each in databases)))
    here = [each for each in databases if dataset in facts.linked(each, "datasets")]
    text = f"a boot environment by its name, and {here[0]} lies on it" if here else ""
    return known(False, text) if here else _YES


COMMAND = "cat /etc/fstab"


@derivation(
    "host",
    **{"dataset.fstab_too_early": Spec.words("mount points of fstab that need it mounted, and do not wait for that")},
)
def fstab_too_early(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Which mounts of fstab come before the file system of ZFS that they need. systemd orders mounts by path and does not
    know those of ``zfs mount -a``, unless zfs-mount-generator has a list of the pool. The initramfs mounts the root file
    system, and what is below it by name, before all. (man 5 systemd.mount, man 8 zfs-mount-generator; OpenZFS
    etc/systemd/system/zfs-mount.service.in)"""
    needs, systemd, *_ = facts.values(HOST, "fstab_needs", "systemd", "generated_pools", "mount_table")
    if not systemd.value:
        raise Missing(unknown(f"{systemd.evidence[0].text}: in which order it mounts is not looked at"))
    places = _places(facts) if needs.value else {}
    early: dict[str, dict[str, None]] = {}
    for point, path in needs.rows(FstabNeed):
        if dataset := _nearest(path, places):
            early.setdefault(dataset, {})[point] = None
    none = Known((), needs.evidence)
    for subject in facts.subjects("dataset"):
        points = tuple(early.get(subject.name, ()))
        seen = (Evidence(f"/etc/fstab mounts {point}, and waits for nothing of ZFS", COMMAND) for point in points)
        yield Fact(subject, "fstab_too_early", Known(points, tuple(seen)) if points else none)


def _places(facts: Facts) -> Mapping[str, str]:
    """Mount point, escaped as in fstab -> dataset of those that ``zfs mount -a`` mounts; of several with the same, the last."""
    roots = root_datasets(facts)
    listed = facts.get(HOST, "generated_pools").words()
    found = {}
    for dataset in facts.subjects("dataset"):
        match facts.get(dataset, "mountpoint"), facts.get(dataset, "canmount"):
            case Known(str() as point), Known("on") if point.startswith("/"):
                early = any(f"{dataset.name}/".startswith(f"{root}/") for root in roots)
                if not early and dataset.name.partition("/")[0] not in listed:
                    found[point.replace(" ", "\\040")] = dataset.name
    return found


def _nearest(path: str, places: Mapping[str, str]) -> str:
    """The dataset that is mounted at this path or at the nearest folder above it, but /; empty: none."""
    above = path.rstrip("/")
    while above and above not in places:
        above = above.rpartition("/")[0]
    return places.get(above, "")


@derivation(
    "dataset",
    key_loaded_at_boot=Spec.flag("something that is enabled loads its key when the host starts; of encryption roots"),
)
def key_loaded_at_boot(dataset: Subject, facts: Facts) -> Judged:
    """Whether something loads the key of an encryption root when the host starts.

    zfs-mount.service loads none. The initramfs loads that of the root file system, zfs-mount-generator makes a unit for
    each key of the pools in /etc/zfs/zfs-list.cache. A site's own unit (zfs...key...) is not read: then it is unknown, as
    it is of datasets without a key of their own. (OpenZFS etc/systemd/system-generators/zfs-mount-generator.c,
    etc/systemd/system/zfs-mount.service.in, contrib/initramfs/scripts/zfs)"""
    cipher, location = facts.values(dataset, "encryption", "keylocation")
    if cipher.value == "off" or location.value == "none":
        return unknown(f"{dataset.name} has no separate key")
    root = root_source(facts)
    if root and f"{root.value}/".startswith(f"{dataset.name}/"):
        return Known(True, root.evidence)
    lists = facts.get(HOST, "generated_pools")
    if isinstance(lists, Known) and dataset.name.partition("/")[0] in lists.words():
        return Known(True, lists.evidence)
    units = reached(facts).need()
    if loading := [unit for unit in units.words() if "key" in unit]:
        return unknown(f"{loading[0]} is enabled, and of which datasets it loads the key is not looked at")
    return Known(False, (*units.evidence, *lists.need().evidence))


@derivation(
    "dataset", key_inside=Spec.flag("the file of its key lies on a dataset that cannot be mounted without this key")
)
def key_inside(dataset: Subject, facts: Facts) -> Judged:
    """Whether the file of a dataset's key lies where only that key leads: then it cannot be loaded after a restart.

    The key belongs to the nearest dataset upwards with a keylocation. False where the way from the file to the next key
    ends: not on ZFS, not encrypted, or a key that is typed. (man 7 zfsprops, encryptionroot, keylocation; man 8
    zfs-load-key)"""
    return _leads_to(dataset, dataset, facts, set())


@catch_missing
def _leads_to(root: Subject, wanted: Subject, facts: Facts, passed: set[Subject]) -> Judged:
    """Whether the file of the root's key cannot be reached without the key that is wanted."""
    passed.add(root)
    on = facts.need(root, "key_lies_on")
    unsure: Unknown | None = None
    for holder in facts.linked(root, "key_lies_on"):
        next_root = _root_of(holder, root, facts)
        if isinstance(next_root, Unknown):
            unsure = next_root
        elif next_root == wanted:
            return Known(True, (*on.evidence, *about_each([(holder, facts.get(holder, "encryption"))])))
        elif next_root and next_root not in passed:
            found = _leads_to(next_root, wanted, facts, passed)
            if isinstance(found, Unknown):
                unsure = found
            elif found.value is True:
                return Known(True, (*on.evidence, *found.evidence))
    return unsure or _no(on.evidence)


@lru_cache(maxsize=256)
def _no(evidence: tuple[Evidence, ...]) -> Known:
    return Known(False, evidence)


@catch_missing
def _root_of(holder: Subject, from_: Subject, facts: Facts) -> Subject | Unknown | None:
    """The encryption root of a dataset; None where it needs no key, or where it is in another pool that was not looked at."""
    if holder.name.partition("/")[0] != from_.name.partition("/")[0] and not facts.of(holder):
        return None
    parts = holder.name.split("/")
    for end in range(len(parts), 0, -1):
        above = Subject("dataset", "/".join(parts[:end]))
        if facts.need(above, "encryption").value == "off":
            if above == holder:
                return None
            break
        if facts.need(above, "keylocation").value != "none":
            return above
    return unknown(f"{holder.name} is encrypted; which dataset has its key is not clear")


@derivation(
    "dataset",
    key_unit=Spec.word("its unit, where it is bound: none, started, not started", "none", "started", "not started"),
)
def key_unit(dataset: Subject, facts: Facts) -> Judged:
    """Whether systemd knows that its key is loaded, where mounts are bound to the unit that loads it.

    Where it does not, systemd unmounts what is bound to it: what is mounted by hand at once, what was mounted before the mount
    was made a unit with the next daemon-reload, and what is in use as soon as it is not. (seen in guests of the lab, OpenZFS
    2.1.11 and 2.4.4; openzfs/zfs issues 11248, 12418) By the name of the dataset, whether it is an encryption root or not."""
    bound = facts.need(HOST, "keys_bound")
    if dataset.name not in bound.words():
        return Known("none", bound.evidence)
    active = facts.need(HOST, "key_units_active")
    return Known("started" if dataset.name in active.words() else "not started", evidence(bound, active))


# What a host gives to clients: exports of NFS and SMB.


class Share(NamedTuple):
    """One folder that is shared without care. below: file systems mounted inside of it are shared too."""

    path: str
    below: bool
    text: str
    command: str


@derivation(
    "host",
    **{
        "dataset.nfs_async": Spec.flag("an NFS export of it answers before data is on stable storage"),
        "dataset.smb_flush_ignored": Spec.flag("an SMB share of it ignores the flushes of its clients"),
    },
)
def exports(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Which datasets are given to clients in a way that answers before data is on stable storage (NFS async, SMB without strict
    sync).

    An export belongs to the dataset with the longest mount point that holds its path; with crossmnt or nohide also to those
    mounted below. A property that says so counts even while the share is not active: it will be."""
    datasets = [each for each in facts.subjects("dataset") if facts.get(each, "type").word() != "volume"]
    given, shares = facts.get(HOST, "nfs_exports"), facts.get(HOST, "smb_shares_without_sync")
    everywhere = facts.get(HOST, "smb_global_without_sync")
    lazy = everywhere if is_true(everywhere) else None
    async_exports = _hit(datasets, _async(given), facts)
    careless_shares = (
        Share(path, True, f"[{name}] {path}: strict sync = no", "testparm -sv") for name, path in shares.rows(SmbShare)
    )
    lazy_shares = _hit(datasets, careless_shares, facts)
    given, shares = _false(given), _false(shares)  # the same for all datasets
    for dataset in datasets:
        sharenfs, sharesmb = facts.get(dataset, "sharenfs"), facts.get(dataset, "sharesmb")
        careless = "async" in re.split(r"[,:;()\s]+", sharenfs.word()) and not _reads_only(sharenfs.word())
        yield Fact(dataset, "nfs_async", _decide(async_exports.get(dataset), careless, sharenfs, given))
        shared = sharesmb.word() not in ("", "off")
        own = lazy if shared and lazy else None
        unsure = everywhere if shared and isinstance(everywhere, Unknown) else shares
        hit = lazy_shares.get(dataset) or own
        yield Fact(dataset, "smb_flush_ignored", _decide(hit, False, sharesmb, unsure))


@catch_missing
def _decide(hit: Known | None, by_property: bool, setting: Judged, otherwise: Judged) -> Judged:
    """A share that was found, or a property that says so, decides; without one both must be known."""
    if hit:
        return hit
    setting = setting.need()
    return Known(True, setting.evidence) if by_property else otherwise


def _false(table: Judged) -> Judged:
    return table._replace(value=False) if isinstance(table, Known) else table


def _last(options: list[str], *words: str) -> str:
    return next((each for each in reversed(options) if each in words), words[0])


def _async(exports: Judged) -> Iterator[Share]:
    for path, client in exports.rows(NfsExport):
        options = client.partition("(")[2].removesuffix(")").split(",")
        if _last(options, "sync", "async") == "async" and _last(options, "rw", "ro") == "rw":
            yield Share(plain(path), "crossmnt" in options or "nohide" in options, f"{path} {client}", "exportfs -v")


def _reads_only(sharenfs: str) -> bool:
    """Whether the property lets all its clients read and none of them write: ro without rw, each with clients or without.
    (OpenZFS lib/libshare/os/linux/nfs.c foreach_nfs_host_cb: a line of exports for each client of each ro and rw)"""
    keys = {each.partition("=")[0] for each in sharenfs.split(",")}
    return "ro" in keys and "rw" not in keys and not re.search(r"[;()\s]", sharenfs)


def _hit(datasets: list[Subject], shares: Iterable[Share], facts: Facts) -> dict[Subject, Known]:
    found: dict[Subject, Known] = {}
    wanted = list(shares)
    mounted = {facts.get(each, "mountpoint").word(): each for each in datasets} if wanted else {}
    for share in wanted:
        holders = [point for point in mounted if point.startswith("/") and inside(share.path, point)]
        if holders:
            found.setdefault(mounted[max(holders, key=len)], _shared(share))
        if share.below:
            for point, dataset in mounted.items():
                if inside(point, share.path):
                    found.setdefault(dataset, _shared(share))
    return found


def _shared(share: Share) -> Known:
    return Known(True, (Evidence(share.text, share.command),))
