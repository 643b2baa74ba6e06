"""Does a flush get from OpenZFS to the disk? By what is configured, and by what the kernel counted since boot.

Configured: ``zfs_nocacheflush`` stops all flushes, and the kernel drops them where ``queue/write_cache`` says "write
through" (kernel: Documentation/block/writeback_cache_control.rst). Counted: OpenZFS sends at least one flush to every
leaf that it wrote to in a transaction group (vdev_config_sync() in module/zfs/vdev_label.c). A leaf with thousands of
writes and next to no flushes has lost them on the way, whatever the settings say now. OpenZFS 2.3 and later can remember
that a device needs no flush (``vdev_nowritecache`` in module/os/linux/zfs/vdev_disk.c): after a flush that was refused as
unsupported, and on kernels before 6.11 also when the queue said "write through" at vdev open. On 6.12 setting the queue
back was measured to bring the flushes back; what was written meanwhile had not been flushed.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import about, every
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Subject, Unknown, flag, unknown

SUBJECT = "leaf"
FACTS = {
    "flush_path_intact": flag("nothing that is configured keeps a flush from reaching its disks"),
    "flushes_reach_disk": flag("its disks have counted the flushes that OpenZFS must have sent since boot"),
}
NEEDS = (
    "leaf.disks",
    "leaf.allocation_class",
    "disk.volatile_cache",
    "disk.sysfs_write_cache",
    "disk.writes",
    "disk.flushes",
    "disk.sysfs_path",
    "host.zfs_nocacheflush",
    "pool.txg_history_written",
    "pool.data_vdevs",
)
# Measured on 2.3.9 and 2.4.4: a data leaf gets two flushes for each transaction group that writes to it (30 groups, 60
# flushes); with flushing off, none but those of whoever partitioned the disk (6 for 2,227 writes and 32 groups).
# A quarter of one flush a group is far below the one and far above the other.
ENOUGH_WRITES = 1000
ENOUGH_TXGS = 20
GROUPS_PER_FLUSH = 4
MANY_FLUSHES = 20
WRITES_PER_FLUSH = 100
MULTIPATH_HEADS = "/devices/virtual/nvme-subsystem/"


def derive(leaf: Subject, facts: Facts) -> Iterator[Fact]:
    """Both facts; unknown where a disk, its cache or its counters could not be seen."""
    disks = facts.get(leaf, "disks")
    if isinstance(disks, Unknown):
        yield from (Fact(leaf, name, disks) for name in FACTS)
        return
    behind = facts.linked(leaf, "disks")
    yield Fact(leaf, "flush_path_intact", _intact(behind, facts))
    yield Fact(leaf, "flushes_reach_disk", _counted(leaf, behind, facts))


def _intact(disks: tuple[Subject, ...], facts: Facts) -> Judged:
    """False where one thing breaks the path, whatever else is unknown; True only where all of it was seen."""
    parts: list[Judged] = [facts.get(HOST, "zfs_nocacheflush")]
    match parts[0]:
        case Known(int(value), seen) if value != 0:
            return Known(False, seen)
    for disk in disks:
        cache, kernel = facts.get(disk, "volatile_cache"), facts.get(disk, "sysfs_write_cache")
        match cache, kernel:
            case Known(True), Known("write through"):
                return Known(False, about(disk, cache) + about(disk, kernel))
            case Known(False), _:
                parts.append(Known(True, about(disk, cache)))  # nothing to flush
            case _, Known("write back"):
                parts.append(Known(True, about(disk, kernel)))
            case _, _:
                parts += [each for each in (cache, kernel) if isinstance(each, Unknown)]
    found = every(parts)
    return (
        found if isinstance(found, Unknown) else Known(True, tuple(piece for each in found for piece in each.evidence))
    )


def _counted(leaf: Subject, disks: tuple[Subject, ...], facts: Facts) -> Judged:
    results = [_disk(leaf, disk, facts) for disk in disks]
    for result in results:
        if isinstance(result, Known) and result.value is False:
            return result
    found = every(results)
    return (
        found if isinstance(found, Unknown) else Known(True, tuple(piece for each in found for piece in each.evidence))
    )


def _disk(leaf: Subject, disk: Subject, facts: Facts) -> Judged:
    cache = facts.get(disk, "volatile_cache")
    if isinstance(cache, Known) and cache.value is False:
        return Known(True, about(disk, cache))
    match facts.get(disk, "sysfs_path"):
        case Known(str(path)) if path.startswith(MULTIPATH_HEADS):
            # nvme_mpath_start_request() counts writes at the head, blk_account_io_flush() flushes at the hidden path
            return unknown(f"{disk.name}: the kernel counts the flushes of an NVMe multipath disk elsewhere")
    counters = every((facts.get(disk, "writes"), facts.get(disk, "flushes")))
    if isinstance(counters, Unknown):
        return counters
    writes, flushes = (int(each.value) for each in counters if isinstance(each.value, int))
    text = f"{disk.name}: {flushes:,} flushes for {writes:,} writes since boot"
    seen = Evidence(text, f"cat /sys/block/{disk.name}/stat   # fields 16 and 5")
    pool = Subject("pool", leaf.within)
    synced = facts.get(pool, "txg_history_written")
    if isinstance(synced, Unknown):
        return synced
    txgs = synced.value if isinstance(synced.value, int) else 0
    evidence = (seen, *synced.evidence, *(about(disk, cache) if isinstance(cache, Known) else ()))
    if flushes >= MANY_FLUSHES and writes <= flushes * WRITES_PER_FLUSH:
        return Known(True, evidence)
    if writes < ENOUGH_WRITES or txgs < ENOUGH_TXGS:
        return unknown(f"{text}, {txgs} transaction groups with data: too few to tell whether flushes get through")
    if flushes * GROUPS_PER_FLUSH <= txgs * _share(leaf, pool, facts):
        if isinstance(cache, Unknown):
            return cache  # no volatile cache, no flushes: that would be in order
        return Known(False, evidence)
    if flushes < txgs:
        return unknown(
            f"{text} and {txgs} transaction groups with data: fewer flushes than expected, not few enough to tell"
        )
    return Known(True, evidence)


def _share(leaf: Subject, pool: Subject, facts: Facts) -> float:
    """In how many transaction groups a leaf takes part at least: the pool's own metadata goes to three vdevs each time."""
    match facts.get(leaf, "allocation_class"):
        case Known("normal"):
            return min(1.0, 3 / max(len(facts.linked(pool, "data_vdevs")), 1))
    return 1.0
