"""Whether flushes that OpenZFS sends get to the disks of a leaf: by the layers between, by what is configured, and by the
kernel's counters."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data import releases
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Reason,
    Spec,
    Subject,
    Unknown,
    is_true,
    known,
    unknown,
)
from auditor.model.derivation import about, about_each, catch_missing, derivation, every, evidence, gaps, numbers

LAYERS = frozenset({"partition", "crypt", "multipath", "loop", "md-linear"})  # loop has a rule of its own
TARGETS = frozenset({"linear", "crypt", "multipath"})
TOLD_BY_TARGETS = frozenset({"lvm", "dm"})
CACHES = frozenset({"bcache", "bcache-writeback", "cache", "cache-writeback", "writecache"})


@derivation(
    "leaf",
    stack=Spec.word("the layers and device-mapper targets between OpenZFS and the disks, or empty"),
    stack_rearranges=Spec.flag("one of them does more than pass writes and flushes on"),
    stack_caches=Spec.flag("one of them may keep the only copy of what was flushed"),
)
def stack(leaf: Subject, facts: Facts) -> Iterator[Fact]:
    """Whether the layers between a leaf and its disks only pass writes and flushes on, or move or keep them.

    Layers come from sysfs; what a device-mapper device does is in its table, which only root may read: without it "dm" and
    "lvm" are unknown. A cache that writes through or around holds no write that its disk lacks; one of unknown mode counts
    as write-back."""
    layers, targets = facts.need(leaf, "layers"), facts.get(leaf, "dm_targets")
    named, made_of = layers.words(), targets.words()
    others = [each for each in (*named, *made_of) if each not in LAYERS | TARGETS | TOLD_BY_TARGETS]
    seen = layers.evidence + (targets.evidence if isinstance(targets, Known) else ())
    yield Fact(leaf, "stack", Known(", ".join(dict.fromkeys((*named, *made_of))), seen))
    for name, which in (("stack_rearranges", others), ("stack_caches", [each for each in others if each in CACHES])):
        if which:
            yield Fact(leaf, name, Known(True, seen))
        elif isinstance(targets, Unknown) and set(named) & TOLD_BY_TARGETS:
            yield Fact(leaf, name, targets)
        elif isinstance(targets, Known) and "dm" in named and not made_of:
            yield Fact(leaf, name, unknown(f"{leaf}: the table of a device-mapper device below it is empty"))
        else:
            yield Fact(leaf, name, Known(False, layers.evidence))


@derivation(
    "leaf",
    stack_drops_flushes=Spec.flag("a device between OpenZFS and a disk with a volatile cache completes flushes itself"),
)
def flush_path(leaf: Subject, facts: Facts) -> Judged:
    """Whether a device-mapper or md device above the disks keeps flushes from them.

    A device whose ``queue/write_cache`` says "write through" ends an empty flush itself
    (Documentation/block/writeback_cache_control.rst; submit_bio_noacct() in block/blk-core.c). Before Linux 6.11 a
    device-mapper device kept what the disks said when its table was loaded (dm_table_set_restrictions() in
    drivers/md/dm-table.c). Unknown where a disk or its cache could not be seen."""
    disks = facts.need_linked(leaf, "disks")
    caches = facts.need(leaf, "stack_write_cache")
    through = [name for name in caches.words() if name.endswith("=write through")]
    if not through:
        return Known(False, caches.evidence)
    volatile = [(disk, facts.get(disk, "volatile_cache")) for disk in disks]
    for disk, cache in volatile:
        if is_true(cache):
            return Known(True, caches.evidence + about(disk, cache))
    if not volatile:
        return unknown(f"leaf {leaf}: no disks are known")
    every(cache for _, cache in volatile)
    return Known(False, (*caches.evidence, *about_each(volatile)))


# -- flushes reach disk --------------------------------------------------------------------------------------------

# Measured on 2.3.9 and 2.4.4: a data leaf gets two flushes for each transaction group that writes to it (30 groups, 60
# flushes); with flushing off, none but those of whoever partitioned the disk (6 for 2,227 writes and 32 groups).
# A quarter of one flush a group is far below the one and far above the other.
ENOUGH_WRITES = 1000
ENOUGH_TXGS = 20
GROUPS_PER_FLUSH = 4
# A leaf takes part in a group at least as often as the uberblock goes to its top-level vdev: that is written to three of them
# each time, and log vdevs are skipped (spa_sync_rewrite_vdev_config() in module/zfs/spa.c).
UBERBLOCKS = 3
MANY_FLUSHES = 20
WRITES_PER_FLUSH = 100
ENOUGH_LOG_BLOCKS = 1000
SECTOR = 512
OWN_LAYERS = frozenset({"partition", "crypt"})  # each holds one leaf
SILENT = ("cache", "spare")  # classes of leaves that are not flushed
MEASURE = "zaudit verify"  # follows flushes that it causes itself
MULTIPATH_HEADS = "/devices/virtual/nvme-subsystem/"


@derivation(
    "leaf",
    flushes_reach_disk=Spec.flag("its disks have counted the flushes that OpenZFS must have sent since boot"),
    flushes_not_counted=Spec.flag("the counters decide nothing: too few writes, or others on the disk"),
)
def flushes_reach_disk(leaf: Subject, facts: Facts) -> Iterator[Fact]:
    """Has the kernel counted the flushes that OpenZFS must have sent since boot?

    OpenZFS sends each leaf at least one flush for a transaction group that wrote to it (vdev_config_sync() in
    module/zfs/vdev_label.c), and a log device one after each block of commits (zil_lwb_write_done() in module/zfs/zil.c). A
    leaf with thousands of writes and next to no flushes has lost them, whatever the settings say now: OpenZFS 2.3 and later
    may remember that a device needs no flush (``vdev_nowritecache`` in module/os/linux/zfs/vdev_disk.c), after an
    unsupported flush, and before Linux 6.11 where the queue said "write through" at vdev open. On 6.12 setting the queue
    back brought the flushes back (measured).

    Counters since boot refute more than they prove: "yes" only where the flushes suffice for all writes since boot and
    nothing else flushes the disk."""
    results = [_disk(leaf, disk, facts) for disk in facts.need_linked(leaf, "disks")]
    found = _all(results) if results else unknown(f"leaf {leaf}: no disks are known")
    yield Fact(leaf, "flushes_reach_disk", found)
    if isinstance(found, Known):
        yield Fact(leaf, "flushes_not_counted", Known(False, found.evidence))
    elif results and all(isinstance(each, Known | _Silent) for each in results):
        yield Fact(leaf, "flushes_not_counted", Known(True, tuple(Evidence(each.text) for each in found.reasons)))
    else:
        yield Fact(leaf, "flushes_not_counted", found)


class _Silent(Unknown):
    """Counters that were read, and speak neither for nor against it."""


def _silent(why: str) -> _Silent:
    return _Silent((Reason(why, MEASURE),))


def counted_elsewhere(leaf: Subject, disk: Subject, facts: Facts) -> str:
    """The files in which the kernel counts the flushes of a disk, as a pattern; empty: that of the disk.

    NVMe multipath: nvme_mpath_start_request() counts writes at the head (Linux 6.3 and later), blk_account_io_flush()
    flushes at the hidden paths (drivers/nvme/host/multipath.c, block/blk-flush.c). dm-multipath: at the map
    (drivers/md/dm-rq.c), or at the paths with queue_mode bio."""
    match facts.get(disk, "sysfs_path"):
        case Known(str(path)) if path.startswith(MULTIPATH_HEADS):
            head, _, namespace = disk.name.rpartition("n")
            return f"/sys/block/{head}c*n{namespace}/stat"
    if "multipath" in facts.get(leaf, "layers").words():
        nodes = facts.get(leaf, "nodes").words()
        return f"/sys/block/{nodes[-1] if nodes else 'dm-N'}/stat"
    return ""


@catch_missing
def _all(results: list[Judged]) -> Judged:
    """False where one disk lost its flushes, True only where each got them."""
    for each in results:
        if isinstance(each, Known) and each.value is False:
            return each
    return Known(True, evidence(*every(results)))


@catch_missing
def _disk(leaf: Subject, disk: Subject, facts: Facts) -> Judged:
    cache = facts.get(disk, "volatile_cache")
    if isinstance(cache, Known) and cache.value is False:
        return Known(True, about(disk, cache))
    if where := counted_elsewhere(leaf, disk, facts):
        return _silent(f"{disk.name}: the kernel counts its flushes in {where}")
    writes, flushes = map(Known.number, facts.values(disk, "writes", "flushes"))
    text = f"{disk.name}: {flushes:,} flushes for {writes:,} writes since boot"
    counted = Evidence(text, f"cat /sys/block/{disk.name}/stat   # fields 16 and 5")
    seen = (counted, *(about(disk, cache) if isinstance(cache, Known) else ()))
    if flushes >= MANY_FLUSHES and writes <= flushes * WRITES_PER_FLUSH:
        return _alone(leaf, disk, seen, facts)
    if writes < ENOUGH_WRITES:
        return _silent(f"{text}: too few to tell whether flushes get through")
    held = facts.need(leaf, "allocation_class")
    found = (_log if held.value == "log" else _data)(leaf, disk, flushes, text, seen, facts)
    # no volatile cache, no flushes: that would be in order
    return cache if isinstance(cache, Unknown) and isinstance(found, Known) and found.value is False else found


@catch_missing
def _data(leaf: Subject, disk: Subject, flushes: int, text: str, seen: tuple[Evidence, ...], facts: Facts) -> Judged:
    """By the transaction groups: those that the kernel lists, and as many as all that was written needed."""
    pool = Subject("pool", leaf.within)
    written, vdevs = facts.need(pool, "txg_history_written"), facts.need(pool, "vdevs_but_logs")
    groups = written.number()
    if groups < ENOUGH_TXGS:
        return _silent(f"{text}, {groups} transaction groups with data: too few to tell whether flushes get through")
    seen += written.evidence
    if flushes * GROUPS_PER_FLUSH <= groups * min(1.0, UBERBLOCKS / max(vdevs.number(), 1)):
        return Known(False, seen)
    if flushes < groups:
        why = f"{text} and {groups} transaction groups with data: fewer flushes than expected, not few enough to tell"
        return unknown(why, MEASURE)
    sectors, largest = every((facts.get(disk, "write_sectors"), facts.get(pool, "txg_written_bytes_max")))
    if (count := sectors.number() * SECTOR) > flushes * largest.number():
        return unknown(
            f"{text}: {count:,} bytes, and no listed transaction group wrote more than {largest.value:,}; the flushes stopped "
            "at some time, or the groups were once larger",
            MEASURE,
        )
    return _alone(leaf, disk, (*seen, *largest.evidence), facts)


@catch_missing
def _log(leaf: Subject, disk: Subject, flushes: int, text: str, seen: tuple[Evidence, ...], facts: Facts) -> Judged:
    """By the log blocks: a log that nothing was committed to is not flushed, whatever else is written to its disk."""
    pool = Subject("pool", leaf.within)
    blocks, others = every((facts.get(pool, "log_blocks_each"), _others(leaf, disk, facts, ("log",))))
    if names := ", ".join(others.words()):
        return _silent(f"{text}; it also holds {names}, whose writes cannot be told from those of the log")
    if blocks.number() < ENOUGH_LOG_BLOCKS or flushes >= MANY_FLUSHES:
        return _silent(f"{text}, {blocks.number():,} log blocks: these do not tell whether flushes get through")
    return Known(False, seen + blocks.evidence)


def _alone(leaf: Subject, disk: Subject, seen: tuple[Evidence, ...], facts: Facts) -> Judged:
    others = _others(leaf, disk, facts, SILENT)
    if names := ", ".join(others.words()):
        return _silent(f"{disk.name} also holds {names}, and the kernel counts all flushes of a disk together")
    return others if isinstance(others, Unknown) else Known(True, seen)


@catch_missing
def _others(leaf: Subject, disk: Subject, facts: Facts, but: tuple[str, ...]) -> Judged:
    """What else is on the disk, but for leaves of these classes, and may be written to."""
    layers, parts = every((facts.get(leaf, "layers"), facts.get(disk, "partitions")))
    if stacked := [each for each in layers.words() if each not in OWN_LAYERS]:
        return Known(tuple(f"what else {each} keeps there" for each in stacked), layers.evidence)
    facts.need(disk, "used_by")
    here = [each for each in facts.linked(disk, "used_by") if isinstance(facts.get(each, "vdev"), Known)]
    named = {name for each in here for name in facts.get(each, "nodes").words()}
    left = [name for name in parts.words() if name not in named]
    quiet = facts.get(disk, "udev_quiet_partitions")
    if left and isinstance(quiet, Unknown):
        return quiet
    found = [name for name in left if name not in quiet.words()]
    found += [each.name for each in here if each != leaf and facts.get(each, "allocation_class").or_none() not in but]
    return Known(tuple(found), parts.evidence)


COUNT = "zil_itx_metaslab_slog_count"
BY_DATASET = (2, 2)  # the release from which on each dataset has counters of its own


@derivation(
    "pool",
    vdevs_but_logs=Spec.number("top-level vdevs that are no log"),
    log_blocks_each=Spec.number("blocks that were surely written to each log vdev"),
)
def expected_writes(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """What OpenZFS must have written to the vdevs of a pool: what ``flushes_reach_disk`` asks for each leaf.

    Unknown where the vdevs are; the blocks also where the kernel counts those of several pools together."""
    classes = [facts.get(each, "allocation_class").or_none() for each in facts.need_linked(pool, "vdevs")]
    logs = classes.count("log")
    others = len(classes) - logs
    yield Fact(pool, "vdevs_but_logs", known(others, f"{others} top-level vdevs", "zpool status"))
    yield Fact(pool, "log_blocks_each", _log_blocks(pool, max(logs, 1), facts))


@catch_missing
def _log_blocks(pool: Subject, logs: int, facts: Facts) -> Judged:
    """By the datasets of the pool from 2.2 on; before, by the count of all pools, where there is no other."""
    counted = [facts.get(each, COUNT) for each in facts.linked(pool, "datasets")]
    own = [each for each in counted if isinstance(each, Known) and each.value]
    if own:
        return Known(sum(map(Known.number, own)) // logs, own[0].evidence)
    release = facts.need(HOST, "zfs_version")
    assert isinstance(release.value, tuple)
    counts_apart = numbers(release) >= BY_DATASET or releases.untold(release.value, BY_DATASET)
    if counts_apart and (unread := gaps(counted)):
        return unread[0]
    together, _ = facts.values(HOST, COUNT, "imported_pools")
    if facts.linked(HOST, "imported_pools") != (pool,):
        return unknown("/proc/spl/kstat/zfs/zil: counts the log blocks of all pools together")
    return Known(together.number() // logs, together.evidence)
