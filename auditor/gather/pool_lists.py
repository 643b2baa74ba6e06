"""Which pools are imported: ``zpool list`` says it, and the kernel, which has a folder below /proc/spl/kstat/zfs for each and
names in its tables of mounts those that have a file system mounted."""

from __future__ import annotations

from auditor.facts import HOST, Fact, Facts, Known, Subject, unknown
from auditor.text import harmless

KSTATS, MOUNTS = "/proc/spl/kstat/zfs", "/proc/1/mountinfo"


def imported(facts: Facts) -> list[str] | None:
    """All that any of them names, or None when none could say.

    Where they differ, which pools are imported is unknown, and so is what zpool list did not say of one; the pool itself is
    looked at like any other.
    """
    listed, kernel = facts.get(HOST, "imported_pools"), _names(facts, "kstat_pools")
    names = [pool.name for pool in facts.linked(HOST, "imported_pools")]
    mounted = sorted({name.rpartition("=")[0].partition("/")[0] for name in _names(facts, "zfs_mounts") or ()})
    if kernel is None and not (mounted and isinstance(listed, Known)):
        return names if isinstance(listed, Known) else None
    unlisted = [name for name in kernel or () if name not in names]
    only_mounted = [name for name in mounted if name not in (*names, *unlisted)]
    strange = [name for name in names if name not in kernel] if kernel is not None else []
    if isinstance(listed, Known) and (unlisted or strange or only_mounted):
        sides = (
            ("zpool list", KSTATS, strange),
            (KSTATS, "zpool list", unlisted),
            (MOUNTS, "zpool list", only_mounted),
        )
        parts = [
            f"{one} names {', '.join(map(harmless, each))}, {other} does not" for one, other, each in sides if each
        ]
        why = unknown("; ".join(parts))
        facts.replace(Fact(HOST, "imported_pools", why))
        for name in (*unlisted, *only_mounted):
            facts.put(Fact(Subject("pool", name), "list_health", why))
    return [*names, *unlisted, *only_mounted]


def _names(facts: Facts, name: str) -> list[str] | None:
    found = facts.get(HOST, name)
    return list(map(str, found.value)) if isinstance(found, Known) and isinstance(found.value, tuple) else None
