"""Which pools are imported: ``zpool list`` says it, and the kernel, which has a folder below /proc/spl/kstat/zfs for each."""

from __future__ import annotations

from auditor.facts import HOST, Fact, Facts, Known, Subject, unknown
from auditor.text import harmless


def imported(facts: Facts) -> list[str] | None:
    """All that either names, or None when neither could say.

    Where they differ, which pools are imported is unknown, and so is what zpool list did not say of one; the pool itself is
    looked at like any other.
    """
    listed, kernel = facts.get(HOST, "imported_pools"), facts.get(HOST, "kstat_pools")
    names = [pool.name for pool in facts.linked(HOST, "imported_pools")]
    if not (isinstance(kernel, Known) and isinstance(kernel.value, tuple)):
        return names if isinstance(listed, Known) else None
    unlisted = [str(name) for name in kernel.value if name not in names]
    strange = [name for name in names if name not in kernel.value]
    if isinstance(listed, Known) and (unlisted or strange):
        sides = (("zpool list", "/proc/spl/kstat/zfs", strange), ("/proc/spl/kstat/zfs", "zpool list", unlisted))
        parts = [
            f"{one} names {', '.join(map(harmless, each))}, {other} does not" for one, other, each in sides if each
        ]
        why = unknown("; ".join(parts))
        facts.replace(Fact(HOST, "imported_pools", why))
        for name in unlisted:
            facts.put(Fact(Subject("pool", name), "list_health", why))
    return [*names, *unlisted]
