"""Which datasets are given to clients in a way that answers before data is on stable storage (NFS async, SMB without
strict sync), and which are exported now.

An export belongs to the dataset with the longest mount point that holds its path; with crossmnt or nohide also to those
mounted below. A property that says so counts even while the share is not active: it will be.
"""

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
    Unknown,
    flag,
    is_true,
    rows_of,
    word_of,
)

SUBJECT = "host"  # each path is compared with all mount points
FACTS = {
    "dataset.nfs_async": flag("an NFS export of it answers before data is on stable storage"),
    "dataset.smb_flush_ignored": flag("an SMB share of it ignores the flushes of its clients"),
    "dataset.nfs_exported_now": flag("its mount point is in the table of exports in force, or below one with crossmnt"),
}


class Share(NamedTuple):
    """One folder that is shared without care. below: file systems mounted inside of it are shared too."""

    path: str
    below: bool
    text: str
    command: str


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """All facts of every file system."""
    datasets = [each for each in facts.subjects("dataset") if word_of(facts.get(each, "type")) != "volume"]
    exports, shares = facts.get(HOST, "nfs_exports"), facts.get(HOST, "smb_shares_without_sync")
    everywhere = facts.get(HOST, "smb_global_without_sync")
    lazy = everywhere if is_true(everywhere) else None
    async_exports = _hit(datasets, _async(exports), facts)
    in_force = facts.get(HOST, "nfs_exports_in_force")
    exported = _at(datasets, in_force, facts) if isinstance(in_force, Known) else {}
    lazy_shares = _hit(datasets, _lazy(shares), facts)
    for dataset in datasets:
        sharenfs, sharesmb = facts.get(dataset, "sharenfs"), facts.get(dataset, "sharesmb")
        careless = "async" in _words(sharenfs) and not _reads_only(word_of(sharenfs))
        yield Fact(dataset, "nfs_async", _judged(async_exports.get(dataset), careless, sharenfs, exports))
        yield Fact(dataset, "nfs_exported_now", exported.get(dataset) or _unless(in_force))
        shared = word_of(sharesmb) not in ("", "off")
        own = lazy if shared and lazy else None
        unsure = everywhere if shared and isinstance(everywhere, Unknown) else shares
        hit = lazy_shares.get(dataset) or own
        yield Fact(dataset, "smb_flush_ignored", _judged(hit, False, sharesmb, unsure))


def _judged(hit: Known | None, by_property: bool, setting: Judged, table: Judged) -> Judged:
    """A share that was found, or a property that says so, decides; without one both must be known."""
    if hit:
        return Known(True, hit.evidence)
    if isinstance(setting, Unknown) or by_property:
        return setting if isinstance(setting, Unknown) else Known(True, setting.evidence)
    return table if isinstance(table, Unknown) else _no(table)


def _no(table: Known) -> Known:
    """The same object for all datasets that share the reason."""
    if table.evidence not in _NO:
        _NO.clear()
        _NO[table.evidence] = Known(False, table.evidence)
    return _NO[table.evidence]


_NO: dict[tuple[Evidence, ...], Known] = {}


def _words(setting: Judged) -> list[str]:
    return re.split(r"[,:;()\s]+", word_of(setting))


def _unless(table: Judged) -> Judged:
    """Not in the table, where it is known."""
    return _no(table) if isinstance(table, Known) else table


def _exports(exports: Judged) -> Iterator[tuple[Share, list[str]]]:
    """Each with its options."""
    for path, client in rows_of(exports, NfsExport):
        options = client.partition("(")[2].removesuffix(")").split(",")
        below = "crossmnt" in options or "nohide" in options
        yield Share(_plain(path), below, f"{path} {client}", "exportfs -v"), options


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
            found[dataset] = _seen(hit)
    return found


def _reads_only(sharenfs: str) -> bool:
    """Whether the property lets all its clients read and none of them write: ro without rw, each with clients or without.
    (OpenZFS lib/libshare/os/linux/nfs.c foreach_nfs_host_cb: a line of exports for each client of each ro and rw)"""
    keys = {each.partition("=")[0] for each in sharenfs.split(",")}
    return "ro" in keys and "rw" not in keys and not re.search(r"[;()\s]", sharenfs)


def _lazy(shares: Judged) -> Iterator[Share]:
    for name, path in rows_of(shares, SmbShare):
        yield Share(path, True, f"[{name}] {path}: strict sync = no", "testparm -sv")


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
        holders = [point for point in mounted if point.startswith("/") and _inside(share.path, point)]
        if holders:
            found.setdefault(mounted[max(holders, key=len)], _seen(share))
        if share.below:
            for point, dataset in mounted.items():
                if _inside(point, share.path):
                    found.setdefault(dataset, _seen(share))
    return found


def _seen(share: Share) -> Known:
    return Known(True, (Evidence(share.text, share.command),))


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _plain(path: str) -> str:
    """A path of /etc/exports without its octal escapes."""
    return re.sub(r"\\([0-3][0-7]{2})", lambda found: chr(int(found[1], 8)), path)
