"""What a host gives to clients: exports of NFS and SMB, and block devices that are targets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    NfsExport,
    SmbShare,
    Subject,
    TargetUnit,
    Unknown,
    flag,
    is_true,
    join,
    rows_of,
    unknown,
    word_of,
    words,
    words_of,
)
from auditor.model.derivation import catch_missing, derivation, every, evidence, gaps, need, values
from auditor.sources.mounts import inside, plain
from auditor.sources.shares import UNOFFERED
from auditor.text import harmless


class Share(NamedTuple):
    """One folder that is shared without care. below: file systems mounted inside of it are shared too."""

    path: str
    below: bool
    text: str
    command: str


@derivation(
    "host",
    **{
        "dataset.nfs_async": flag("an NFS export of it answers before data is on stable storage"),
        "dataset.smb_flush_ignored": flag("an SMB share of it ignores the flushes of its clients"),
        "dataset.nfs_exported_now": flag(
            "its mount point is in the table of exports in force, or below one with crossmnt"
        ),
    },
)
def exports(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Which datasets are given to clients in a way that answers before data is on stable storage (NFS async, SMB without strict
    sync), and which are exported now.

    An export belongs to the dataset with the longest mount point that holds its path; with crossmnt or nohide also to those
    mounted below. A property that says so counts even while the share is not active: it will be."""
    for each in facts.subjects("dataset"):
        if word_of(kind := facts.get(each, "type")) == "volume":
            yield Fact(each, "nfs_exported_now", _false(kind))
    datasets = [each for each in facts.subjects("dataset") if word_of(facts.get(each, "type")) != "volume"]
    given, shares = facts.get(HOST, "nfs_exports"), facts.get(HOST, "smb_shares_without_sync")
    everywhere = facts.get(HOST, "smb_global_without_sync")
    lazy = everywhere if is_true(everywhere) else None
    async_exports = _hit(datasets, _async(given), facts)
    in_force = facts.get(HOST, "nfs_exports_in_force")
    exported = _at(datasets, in_force, facts) if isinstance(in_force, Known) else {}
    careless_shares = (
        Share(path, True, f"[{name}] {path}: strict sync = no", "testparm -sv")
        for name, path in rows_of(shares, SmbShare)
    )
    lazy_shares = _hit(datasets, careless_shares, facts)
    given, in_force, shares = (_false(table) for table in (given, in_force, shares))  # the same for all datasets
    for dataset in datasets:
        sharenfs, sharesmb = facts.get(dataset, "sharenfs"), facts.get(dataset, "sharesmb")
        careless = "async" in re.split(r"[,:;()\s]+", word_of(sharenfs)) and not _reads_only(word_of(sharenfs))
        yield Fact(dataset, "nfs_async", _decide(async_exports.get(dataset), careless, sharenfs, given))
        yield Fact(dataset, "nfs_exported_now", exported.get(dataset) or in_force)
        shared = word_of(sharesmb) not in ("", "off")
        own = lazy if shared and lazy else None
        unsure = everywhere if shared and isinstance(everywhere, Unknown) else shares
        hit = lazy_shares.get(dataset) or own
        yield Fact(dataset, "smb_flush_ignored", _decide(hit, False, sharesmb, unsure))


@catch_missing
def _decide(hit: Known | None, by_property: bool, setting: Judged, otherwise: Judged) -> Judged:
    """A share that was found, or a property that says so, decides; without one both must be known."""
    if hit:
        return hit
    setting = need(setting)
    return Known(True, setting.evidence) if by_property else otherwise


def _false(table: Judged) -> Judged:
    """Not in the table, where it is known."""
    return table._replace(value=False) if isinstance(table, Known) else table


def _exports(exports: Judged) -> Iterator[tuple[Share, list[str]]]:
    """Each with its options."""
    for path, client in rows_of(exports, NfsExport):
        options = client.partition("(")[2].removesuffix(")").split(",")
        below = "crossmnt" in options or "nohide" in options
        yield Share(plain(path), below, f"{path} {client}", "exportfs -v"), options


def _last(options: list[str], *words: str) -> str:
    """Which of them counts: the last one; the first word is the default."""
    return next((each for each in reversed(options) if each in words), words[0])


def _async(exports: Judged) -> Iterator[Share]:
    """The exports with async that can be written to."""
    for share, options in _exports(exports):
        if _last(options, "sync", "async") == "async" and _last(options, "rw", "ro") == "rw":
            yield share


def _at(datasets: list[Subject], exports: Judged, facts: Facts) -> dict[Subject, Known]:
    """The datasets that clients reach: at the path of an export, or below one that shows them what is mounted there."""
    at: dict[str, Share] = {}
    for share, _ in _exports(exports):
        if share.below or share.path not in at:
            at[share.path] = share
    found: dict[Subject, Known] = {}
    for dataset in datasets:
        point = word_of(facts.get(dataset, "mountpoint"))
        above = (at.get(each) for each in _folders(point))
        if hit := next((each for each in above if each and (each.below or each.path == point)), None):
            found[dataset] = _shared(hit)
    return found


def _reads_only(sharenfs: str) -> bool:
    """Whether the property lets all its clients read and none of them write: ro without rw, each with clients or without.
    (OpenZFS lib/libshare/os/linux/nfs.c foreach_nfs_host_cb: a line of exports for each client of each ro and rw)"""
    keys = {each.partition("=")[0] for each in sharenfs.split(",")}
    return "ro" in keys and "rw" not in keys and not re.search(r"[;()\s]", sharenfs)


def _folders(path: str) -> Iterator[str]:
    """A path, and the folders that it lies in."""
    while path.startswith("/"):
        yield path
        path = path.rpartition("/")[0] or "/" * (path != "/")


def _hit(datasets: list[Subject], shares: Iterable[Share], facts: Facts) -> dict[Subject, Known]:
    """The datasets that the shares reach."""
    found: dict[Subject, Known] = {}
    wanted = list(shares)
    mounted = {word_of(facts.get(each, "mountpoint")): each for each in datasets} if wanted else {}
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


# -- targets -------------------------------------------------------------------------------------------------------

# a file -> the units that make targets of it
FILES = {
    "lio_saved": ("target.service", "targetcli.service", "iscsi-target.service"),
    "lio_saved_by_debian": ("rtslib-fb-targetctl.service",),
    "nvme_saved": ("nvmet.service",),
}
NVME, LIO = "NVMe-", "LIO-"
OFF = ("disabled", "masked", "masked-runtime")
_VOLUME = re.compile(r"/dev/(?:zvol/.+|zd\d+(?:p\d+)?)")
_ELSEWHERE = ("disk", "mapper", "md")  # folders below /dev that are no pool's


class Target(NamedTuple):
    """One volume that is offered now."""

    name: str
    path: str

    def files(self) -> list[str]:
        """The facts of the files that may have it."""
        return [fact for fact in FILES if (fact == "nvme_saved") == self.name.startswith(NVME)]


class Unit(NamedTuple):
    """state: as systemd has it, "enabled" of one that is started when the host is. wanted: another one starts it."""

    name: str
    state: str
    wanted: bool


@derivation(
    "host",
    volume_targets=words("NAME PATH of each backstore of LIO, and namespace of NVMe over Fabrics, that is a volume"),
    targets_not_kept=words("those of them that nothing creates again when the host starts"),
)
def volume_targets(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Whether what this host offers to initiators is offered again after its next start: the kernel keeps nothing of its
    targets, a unit makes them anew of a file. Judged for volumes of ZFS that LIO or NVMe over Fabrics offers, whoever audits
    them."""
    asked = values(facts, HOST, "block_targets", "nvme_targets")
    pools = {pool.name for pool in facts.linked(HOST, "imported_pools")}
    rows = [row for each in asked for row in rows_of(each, TargetUnit)]
    if any(_may_be_a_volume(path) for _, _, path in rows):
        need(facts.get(HOST, "imported_pools"))
    # up to OpenZFS 2.1 udev makes a link /dev/POOL/VOLUME, too (udev/rules.d/60-zvol.rules.in at zfs-2.1.15)
    volumes = {
        path for *_, path in rows if _VOLUME.fullmatch(path) or path.removeprefix("/dev/").split("/")[0] in pools
    }
    targets = [Target(name, path) for name, _, path in rows if name.startswith((LIO, NVME)) and path in volumes]
    offered = tuple(f"{each.name} {each.path}" for each in targets)
    yield Fact(HOST, "volume_targets", Known(offered, evidence(*asked)))
    enabled, cluster = facts.get(HOST, "target_units"), facts.get(HOST, "cluster_makes_targets")
    if is_true(cluster):
        enabled = unknown("pacemaker makes targets by itself", "pcs resource")
    enabled, _ = every((enabled, cluster))
    lines = (line.split(" ") for line in words_of(enabled))
    units = {name: Unit(name, state, more == "wanted") for name, state, more in lines}
    yield Fact(HOST, "targets_not_kept", _not_kept(targets, units, enabled.evidence, facts))


def _may_be_a_volume(path: str) -> bool:
    """By a name that only pools tell from others."""
    parts = path.split("/")
    return len(parts) > 3 and parts[1] == "dev" and parts[2] not in ("zvol", *_ELSEWHERE)


@catch_missing
def _not_kept(targets: list[Target], units: dict[str, Unit], seen: tuple[Evidence, ...], facts: Facts) -> Judged:
    lost, unseen, pieces = list[str](), list[Unknown](), dict.fromkeys(seen)
    for target in targets:
        files = {fact: facts.get(HOST, fact) for fact in target.files()}
        pieces |= dict.fromkeys(evidence(*files.values()))
        having = [fact for fact, saved in files.items() if target.path in words_of(saved)]
        makers = [units[name] for fact in having for name in FILES[fact] if name in units]
        if any(each.state == "enabled" for each in makers):
            continue
        if unread := gaps(files.values()):
            unseen += unread
        elif not having and any(f"{UNOFFERED}{target.path}" in words_of(saved) for saved in files.values()):
            text = f"{target.name} is saved and given to no initiator; whether it is now is not looked at"
            unseen.append(unknown(harmless(text)))
        elif not having:
            lost.append(harmless(f"{target.name} ({target.path}) is in no file"))
        elif strange := [each for each in makers if each.state not in OFF or each.wanted]:
            unseen.append(unknown(f"{strange[0].name} is {strange[0].state}: whether something starts it is not seen"))
        elif not makers:
            unseen.append(unknown(f"{target.name} is saved, and no unit that is known here makes targets of that file"))
        else:
            lost.append(harmless(f"{target.name} ({target.path}): {makers[0].name} is {makers[0].state}"))
    return join(unseen) if unseen and not lost else Known(tuple(lost), (*pieces,))
