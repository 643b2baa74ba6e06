"""Which file system is /boot, where the boot loader reads kernels from the pool by itself.

It takes the property and the mount: a copy of another host's /boot has the same property and is not mounted there, and what
mount(8) mounts says no more than legacy.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.mounts_of_zfs import mounted_at
from auditor.facts import HOST, Fact, Facts, Judged, Subject, Unknown, flag, known

SUBJECT = "host"  # the table is read once for all
FACTS = {"dataset.at_boot": flag("it is mounted at /boot")}
NEEDS = ("dataset.mountpoint", "host.mount_table")
BOOT, LEGACY = "/boot", "legacy"
_ELSEWHERE = known(value=False, text="mountpoint is neither /boot nor legacy", command="zfs get mountpoint {subject}")


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Of all datasets."""
    table = facts.get(HOST, "mount_table")
    mounted = mounted_at(facts, BOOT)
    for dataset in facts.subjects("dataset"):
        yield Fact(dataset, "at_boot", _at_boot(facts.get(dataset, "mountpoint"), dataset.name in mounted, table))


def _at_boot(mountpoint: Judged, mounted: bool, table: Judged) -> Judged:
    if isinstance(mountpoint, Unknown) or mountpoint.value not in (BOOT, LEGACY):
        return mountpoint if isinstance(mountpoint, Unknown) else _ELSEWHERE
    if isinstance(table, Unknown):
        return table
    return known(mounted, f"{'' if mounted else 'not '}mounted at {BOOT}", f"findmnt {BOOT}")
