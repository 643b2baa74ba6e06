"""What a host gives to clients: exports of NFS and SMB."""

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
    Spec,
    Subject,
    Unknown,
    is_true,
)
from auditor.model.derivation import catch_missing, derivation, need
from auditor.sources.mounts import inside, plain


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
    setting = need(setting)
    return Known(True, setting.evidence) if by_property else otherwise


def _false(table: Judged) -> Judged:
    """Not in the table, where it is known."""
    return table._replace(value=False) if isinstance(table, Known) else table


def _last(options: list[str], *words: str) -> str:
    """Which of them counts: the last one; the first word is the default."""
    return next((each for each in reversed(options) if each in words), words[0])


def _async(exports: Judged) -> Iterator[Share]:
    """The exports with async that can be written to."""
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
    """The datasets that the shares reach."""
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
