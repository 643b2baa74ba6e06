"""Whether a pool comes back by itself when the host starts: imported, and its file systems mounted.

The initramfs imports the pool of the root file system. Of the others those of the cache file are imported by
zfs-import-cache.service; where that file is empty or missing, whatever is found by zfs-import-scan.service; and one by a unit
of its own, as Proxmox VE, NixOS and the guides for a boot pool have it. zfs-mount.service mounts, or the generator of mounts.
What else a site has written to do so is not seen. (OpenZFS etc/systemd/system/zfs-import-cache.service.in,
zfs-import-scan.service.in: ConditionFileNotEmpty; zfs-mount.service.in)

Since 0.7.4 zfs-mount.service comes after zfs-import.target, and no longer after the units that import: where nothing starts
that target, it does not wait for them, and finds no pool yet. Hosts whose links are of before, or made by hand, have it so.
(OpenZFS commits 1c4f5e7d92, 5c2552c564: systemd zfs-import.target and documentation; systemd.unit.5 After=)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.derive.combine import every, evidence
from auditor.derive.mounts_of_zfs import mounted_at
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, flag, join, unknown, words_of
from auditor.text import unit_escaped

SUBJECT = "pool"
FACTS = {
    "imported_at_boot": flag("something that is enabled imports it when the host starts"),
    "scanned_at_boot": flag("all pools that are found on any device are imported when the host starts, and so is it"),
    "mounted_at_boot": flag("something that is enabled mounts its file systems when the host starts"),
}
CACHE, SCAN, MOUNT = "zfs-import-cache.service", "zfs-import-scan.service", "zfs-mount.service"
TARGET, TARGET_SINCE = "zfs-import.target", (0, 7, 4)
# of OpenZFS and its packages; none of these starts the target by what stands in it
PLAIN = re.compile(
    r"zfs(?:\.target|-(?:import-cache|import-scan|mount|share|zed|load-module|volume-wait)\.service|-volumes\.target"
    r"|-(?:scrub|trim)[^/]*)"
)


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
        return _after_import(pool, units, facts)
    return lists if isinstance(lists, Unknown) else Known(False, (*units.evidence, *lists.evidence))


def _after_import(pool: Subject, units: Known, facts: Facts) -> Judged:
    """That zfs-mount.service waits for the import of the pool; true also of one that nothing is seen to import."""
    requires = facts.get(HOST, "fstab_requires")
    masked = words_of(facts.get(HOST, "zfs_units_masked"))
    started = {*words_of(units), *(each for each in words_of(requires) if each not in masked)}
    root, imported = _root(pool, facts), _imported(pool, units, facts)
    if TARGET in started or root or not {CACHE, SCAN} & started:
        return Known(True, (root or units).evidence)
    if isinstance(imported, Unknown) or not imported.value:
        return imported if isinstance(imported, Unknown) else Known(True, units.evidence)
    version = facts.get(HOST, "zfs_userland_version")
    if isinstance(version, Known) and _numbers(version) < TARGET_SINCE:
        return Known(True, (*units.evidence, *version.evidence))
    others = [facts.get(HOST, name) for name in ("mount_table", "zfs_units_changed", "generated_pools")]
    found = every([units, version, requires, *others])
    if isinstance(found, Unknown):
        return found
    if doubt := _doubt(units, facts):
        return unknown(f"no link starts {TARGET}, but {doubt}")
    return Known(False, evidence(units, *found[1:]))


def _doubt(units: Known, facts: Facts) -> str:
    """What may start the target, or import the pool before it."""
    own, lists = (words_of(facts.get(HOST, name)) for name in ("zfs_units_changed", "generated_pools"))
    if others := [each for each in words_of(units) if not PLAIN.fullmatch(each)]:
        return f"what {others[0]} does is not looked at"
    if own:
        return f"what {own[0]} says in /etc/systemd/system is not looked at"
    if lists:  # each mount that it makes wants the target, but of what the initramfs has imported
        return f"zfs-mount-generator may start it, for {lists[0]}"
    return "the initramfs may import all pools, as the root file system is on OpenZFS" if root_source(facts) else ""


def _numbers(version: Known) -> tuple[int, ...]:
    return tuple(each for each in version.value if isinstance(each, int)) if isinstance(version.value, tuple) else ()
