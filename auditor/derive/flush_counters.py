"""Has the kernel counted the flushes that OpenZFS must have sent since boot?

OpenZFS sends at least one flush to every leaf that it wrote to in a transaction group (vdev_config_sync() in
module/zfs/vdev_label.c), and one to a log device after each block of commits (zil_lwb_write_done() in module/zfs/zil.c). A
leaf with thousands of writes and next to no flushes has lost them on the way, whatever the settings say now: OpenZFS 2.3 and
later can remember that a device needs no flush (``vdev_nowritecache`` in module/os/linux/zfs/vdev_disk.c), after a flush
that was refused as unsupported, and on kernels before 6.11 also when the queue said "write through" at vdev open. On 6.12
setting the queue back was measured to bring the flushes back; what was written meanwhile had not been flushed.

Counters since boot refute; they prove little. They say "yes" only where the flushes are as many as all writes since boot
need and nobody else flushes the disk.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import about, every, values
from auditor.facts import (
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    flag,
    join,
    number_of,
    unknown,
    value_of,
    words_of,
)

SUBJECT = "leaf"
FACTS = {"flushes_reach_disk": flag("its disks have counted the flushes that OpenZFS must have sent since boot")}
# Measured on 2.3.9 and 2.4.4: a data leaf gets two flushes for each transaction group that writes to it (30 groups, 60
# flushes); with flushing off, none but those of whoever partitioned the disk (6 for 2,227 writes and 32 groups).
# A quarter of one flush a group is far below the one and far above the other.
ENOUGH_WRITES = 1000
ENOUGH_TXGS = 20
GROUPS_PER_FLUSH = 4
# A leaf takes part in a group at least as often as the uberblock goes to its top-level vdev: that is written to three of them
# each time, and log vdevs are passed over (spa_sync_rewrite_vdev_config() in module/zfs/spa.c).
UBERBLOCKS = 3
MANY_FLUSHES = 20
WRITES_PER_FLUSH = 100
ENOUGH_LOG_BLOCKS = 1000
SECTOR = 512
OWN_LAYERS = frozenset({"partition", "crypt"})  # each holds one leaf
SILENT = ("cache", "spare")  # classes of leaves that are not flushed
MEASURE = "zaudit verify"  # follows flushes that it causes itself
MULTIPATH_HEADS = "/devices/virtual/nvme-subsystem/"


def derive(leaf: Subject, facts: Facts) -> Iterator[Fact]:
    """Unknown where a disk or its counters could not be seen, or count something else."""
    disks = facts.get(leaf, "disks")
    if isinstance(disks, Unknown):
        yield Fact(leaf, "flushes_reach_disk", disks)
        return
    results = [_disk(leaf, disk, facts) for disk in facts.linked(leaf, "disks")]
    yield Fact(leaf, "flushes_reach_disk", _all(results) if results else unknown(f"leaf {leaf}: no disks are known"))


def counted_elsewhere(leaf: Subject, disk: Subject, facts: Facts) -> str:
    """The files in which the kernel counts the flushes of a disk, as a pattern; empty where that is the file of the disk.

    NVMe multipath: the head has no request queue. nvme_mpath_start_request() counts its writes (Linux 6.3 and later; none
    before), and blk_account_io_flush() counts flushes at the hidden paths (drivers/nvme/host/multipath.c,
    block/blk-flush.c). dm-multipath gives clones to its paths, past their flush machinery: flushes are counted at the map
    (drivers/md/dm-rq.c), or at the paths with queue_mode bio.
    """
    match facts.get(disk, "sysfs_path"):
        case Known(str(path)) if path.startswith(MULTIPATH_HEADS):
            head, _, namespace = disk.name.rpartition("n")
            return f"/sys/block/{head}c*n{namespace}/stat"
    if "multipath" in words_of(facts.get(leaf, "layers")):
        nodes = words_of(facts.get(leaf, "nodes"))
        return f"/sys/block/{nodes[-1] if nodes else 'dm-N'}/stat"
    return ""


def _all(results: list[Judged]) -> Judged:
    """False where one disk lost its flushes, True only where each got them."""
    for each in results:
        if isinstance(each, Known) and each.value is False:
            return each
    found = every(results)
    return (
        found if isinstance(found, Unknown) else Known(True, tuple(piece for each in found for piece in each.evidence))
    )


def _disk(leaf: Subject, disk: Subject, facts: Facts) -> Judged:
    cache = facts.get(disk, "volatile_cache")
    if isinstance(cache, Known) and cache.value is False:
        return Known(True, about(disk, cache))
    if where := counted_elsewhere(leaf, disk, facts):
        return unknown(f"{disk.name}: the kernel counts its flushes in {where}", MEASURE)
    counters = values(facts, disk, "writes", "flushes")
    if isinstance(counters, Unknown):
        return counters
    writes, flushes = (int(each.value) for each in counters if isinstance(each.value, int))
    text = f"{disk.name}: {flushes:,} flushes for {writes:,} writes since boot"
    counted = Evidence(text, f"cat /sys/block/{disk.name}/stat   # fields 16 and 5")
    seen = (counted, *(about(disk, cache) if isinstance(cache, Known) else ()))
    if flushes >= MANY_FLUSHES and writes <= flushes * WRITES_PER_FLUSH:
        return _alone(leaf, disk, seen, facts)
    if writes < ENOUGH_WRITES:
        return unknown(f"{text}: too few to tell whether flushes get through", MEASURE)
    held = facts.get(leaf, "allocation_class")
    if isinstance(held, Unknown):
        return held
    found = (_log if held.value == "log" else _data)(leaf, disk, flushes, text, seen, facts)
    # no volatile cache, no flushes: that would be in order
    return cache if isinstance(cache, Unknown) and isinstance(found, Known) and found.value is False else found


def _data(leaf: Subject, disk: Subject, flushes: int, text: str, seen: tuple[Evidence, ...], facts: Facts) -> Judged:
    """By the transaction groups: those that the kernel lists, and as many as all that was written needed."""
    pool = Subject("pool", leaf.within)
    known = values(facts, pool, "txg_history_written")
    if isinstance(known, Unknown):
        return known
    if isinstance(vdevs := facts.get(pool, "vdevs_but_logs"), Unknown):
        return vdevs
    groups = number_of(known[0])
    if groups < ENOUGH_TXGS:
        return unknown(
            f"{text}, {groups} transaction groups with data: too few to tell whether flushes get through", MEASURE
        )
    evidence = seen + known[0].evidence
    if flushes * GROUPS_PER_FLUSH <= groups * min(1.0, UBERBLOCKS / max(number_of(vdevs), 1)):
        return Known(False, evidence)
    if flushes < groups:
        return unknown(
            f"{text} and {groups} transaction groups with data: fewer flushes than expected, not few enough to tell",
            MEASURE,
        )
    sizes = every((facts.get(disk, "write_sectors"), facts.get(pool, "txg_written_bytes_max")))
    if isinstance(sizes, Unknown):
        return sizes
    written, largest = number_of(sizes[0]) * SECTOR, number_of(sizes[1])
    if written > flushes * largest:
        return unknown(
            f"{text}: {written:,} bytes, and no transaction group that is still listed wrote more than {largest:,}, so the"
            " flushes stopped at some time, or the groups were larger once",
            MEASURE,
        )
    return _alone(leaf, disk, (*evidence, *sizes[1].evidence), facts)


def _log(leaf: Subject, disk: Subject, flushes: int, text: str, seen: tuple[Evidence, ...], facts: Facts) -> Judged:
    """By the log blocks: a log that nothing was committed to is not flushed, whatever else is written to its disk."""
    known = every((facts.get(Subject("pool", leaf.within), "log_blocks_each"), _others(leaf, disk, facts, ("log",))))
    if isinstance(known, Unknown):
        return known
    blocks, others = known
    if names := ", ".join(words_of(others)):
        return unknown(f"{text}; it also holds {names}, whose writes cannot be told from those of the log", MEASURE)
    if number_of(blocks) < ENOUGH_LOG_BLOCKS or flushes >= MANY_FLUSHES:
        return unknown(
            f"{text}, {number_of(blocks):,} log blocks: these do not tell whether flushes get through", MEASURE
        )
    return Known(False, seen + blocks.evidence)


def _alone(leaf: Subject, disk: Subject, seen: tuple[Evidence, ...], facts: Facts) -> Judged:
    """Known(True) where nobody else flushes the disk; else unknown: their flushes would hide those that are lost."""
    others = _others(leaf, disk, facts, SILENT)
    if names := ", ".join(words_of(others)):
        return unknown(f"{disk.name} also holds {names}, and the kernel counts all flushes of a disk together", MEASURE)
    return others if isinstance(others, Unknown) else Known(True, seen)


def _others(leaf: Subject, disk: Subject, facts: Facts, but: tuple[str, ...]) -> Judged:
    """What else is on the disk, but for leaves of these classes, and may be written to."""
    known = values(facts, leaf, "layers")
    parts = facts.get(disk, "partitions")
    if isinstance(known, Unknown) or isinstance(parts, Unknown):
        return join([each for each in (known, parts) if isinstance(each, Unknown)])
    if stacked := [each for each in words_of(known[0]) if each not in OWN_LAYERS]:
        return Known(tuple(f"what else {each} keeps there" for each in stacked), known[0].evidence)
    if isinstance(on := facts.get(disk, "used_by"), Unknown):
        return on
    here = [each for each in facts.linked(disk, "used_by") if isinstance(facts.get(each, "vdev"), Known)]
    named = {name for each in here for name in words_of(facts.get(each, "nodes"))}
    left = [name for name in words_of(parts) if name not in named]
    quiet = facts.get(disk, "udev_quiet_partitions")
    if left and isinstance(quiet, Unknown):
        return quiet
    found = [name for name in left if name not in words_of(quiet)]
    found += [each.name for each in here if each != leaf and value_of(facts.get(each, "allocation_class")) not in but]
    return Known(tuple(found), parts.evidence)
