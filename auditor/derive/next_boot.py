"""Whether a pool comes back by itself when the host starts: imported, and its file systems mounted.

The initramfs imports the pool of the root file system. Of the others those of the cache file are imported by
zfs-import-cache.service; where that file is empty or missing, whatever is found by zfs-import-scan.service; and one by a unit
of its own, as Proxmox VE, NixOS and the guides for a boot pool have it. zfs-mount.service mounts, or the generator of mounts.
What else a site has written to do so is not seen. (OpenZFS etc/systemd/system/zfs-import-cache.service.in,
zfs-import-scan.service.in: ConditionFileNotEmpty; zfs-mount.service.in)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.mounts_of_zfs import mounted_at
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, flag, join, unknown, words_of
from auditor.text import unit_escaped

SUBJECT = "pool"
FACTS = {
    "imported_at_boot": flag("something that is enabled imports it when the host starts"),
    "scanned_at_boot": flag("all pools that are found on any device are imported when the host starts, and so is it"),
    "mounted_at_boot": flag("something that is enabled mounts its file systems when the host starts"),
}
NEEDS = (
    *("host.systemd", "host.zfs_units_wanted", "host.zfs_units_masked", "host.cached_pools", "host.generated_pools"),
    "host.mount_table",
)
CACHE, SCAN, MOUNT = "zfs-import-cache.service", "zfs-import-scan.service", "zfs-mount.service"


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """All, where the host starts with systemd."""
    units = reached(facts)
    yield Fact(pool, "scanned_at_boot", _scanned(units, facts))
    yield Fact(pool, "imported_at_boot", _root(pool, facts) or _imported(pool, units, facts))
    yield Fact(pool, "mounted_at_boot", _mounted(pool, units, facts))


def reached(facts: Facts) -> Judged:
    """The units for ZFS that are started at boot: wanted by one that is none of them, or by one of these; and not masked."""
    needed = [facts.get(HOST, name) for name in ("systemd", "zfs_units_wanted", "zfs_units_masked")]
    if unseen := [each for each in needed if isinstance(each, Unknown)]:
        return join(unseen)
    systemd, wanted, masked = (each for each in needed if isinstance(each, Known))
    if not systemd.value:
        return unknown(f"{systemd.evidence[0].text}: what it starts is not looked at")
    pairs = [each.partition(" ")[::2] for each in words_of(wanted)]
    found: set[str] = set()
    while (
        new := {unit for by, unit in pairs if not by.startswith("zfs") or by in found} - found - set(words_of(masked))
    ):
        found |= new
    return Known(tuple(sorted(found)), (*wanted.evidence, *masked.evidence))


def root_source(facts: Facts) -> Known | None:
    """The dataset of the root file system, where it is one of ZFS."""
    table = facts.get(HOST, "mount_table")
    found = mounted_at(facts, "/")
    return Known(found[0], table.evidence) if found and isinstance(table, Known) else None


def _root(pool: Subject, facts: Facts) -> Known | None:
    """That the root file system lies on it."""
    found = root_source(facts)
    return Known(True, found.evidence) if found and str(found.value).partition("/")[0] == pool.name else None


def _scanned(units: Judged, facts: Facts) -> Judged:
    """The scan is for hosts without a cache file, and takes whatever it finds."""
    cached = facts.get(HOST, "cached_pools")
    if isinstance(units, Unknown) or (isinstance(units, Known) and SCAN not in words_of(units)):
        return units if isinstance(units, Unknown) else Known(False, units.evidence)
    return cached if isinstance(cached, Unknown) else Known(not cached.value, (*units.evidence, *cached.evidence))


def _imported(pool: Subject, units: Judged, facts: Facts) -> Judged:
    cached = facts.get(HOST, "cached_pools")
    if isinstance(units, Unknown):
        return units
    started = words_of(units)
    name = unit_escaped(pool.name)
    if {f"zfs-import@{name}.service", f"zfs-import-{name}.service"} & {*started}:
        return Known(True, units.evidence)
    if isinstance(cached, Unknown):
        return cached
    pools = words_of(cached)
    comes = (CACHE in started and pool.name in pools) or (SCAN in started and not pools)
    return Known(comes, (*units.evidence, *cached.evidence))


def _mounted(pool: Subject, units: Judged, facts: Facts) -> Judged:
    lists = facts.get(HOST, "generated_pools")
    if isinstance(lists, Known) and pool.name in words_of(lists):
        return Known(True, lists.evidence)
    if isinstance(units, Unknown):
        return units
    if MOUNT in words_of(units):
        return Known(True, units.evidence)
    return lists if isinstance(lists, Unknown) else Known(False, (*units.evidence, *lists.evidence))
