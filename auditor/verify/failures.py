"""What failed while a run was followed: flushes, reads and writes that the kernel logged, errors that OpenZFS counted.

A flush that fails is counted as one that completed (block/blk-flush.c flush_end_io), OpenZFS ignores its error
(ZIO_FLAG_DONT_PROPAGATE in zio_flush() of module/zfs/zio.c) and counts and reports it nowhere (zfs_ereport_is_valid() of
module/zfs/zfs_fm.c: only reads and writes are), so fsync returns after it as after any other. The block layer alone says so,
in the kernel's log. A write that fails is counted as a write as well; fsync does not return by it, but what the counters mean
is not known any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from auditor.derive import kernel_log as derived
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, known
from auditor.sources import kernel_log, zpool_status
from auditor.sources.pool_tree import Row
from auditor.text import harmless
from auditor.verify import witnesses
from auditor.verify.model import KERNEL_LOG, Link
from auditor.verify.result import Run
from auditor.verify.trial import Logged, Ran

FLUSHES = "flushes that failed"
KINDS = {
    derived.FLUSHES: FLUSHES,
    derived.FAILED_IO: "reads or writes that failed",
    derived.RESETS: "resets of its controller or repeated flushes",
}
WRITTEN = {"ONLINE", "DEGRADED"}  # states of a vdev that is written to (vdev_is_dead() of module/zfs/vdev.c)
COUNTS = ("read", "write", "checksum")


def of_kernel(runs: Sequence[Ran], run: Run, facts: Facts) -> Link:
    """The last link: whether the kernel logged that something failed on a device of the pool while fio ran, in any of its
    runs. run: that of the log."""
    logged, disks = _together(runs), [device.disk for device in run.devices]
    try:
        counted = _counted(logged, disks, facts)
    except ValueError as error:
        return Link(KERNEL_LOG, "unseen", str(error))
    volatile = {device.disk for device in run.devices if device.volatile}
    failed = list(_failed(counted))
    if lost := [each.text for each in failed if each.disk in volatile and each.kind == FLUSHES]:
        return Link(KERNEL_LOG, "contradicts", f"flushes failed, yet fsync returned success: {'; '.join(lost)}")
    doubts = [*(each.text for each in failed), *_doubts(counted)]
    if not doubts and logged.missing:
        doubts = [logged.missing]
    if not doubts and sum(" error, dev " in line for line in logged.lines) >= derived.LINES_KEPT:
        doubts = ["so many errors of other devices were logged that the kernel may have left out those of the pool's"]
    if doubts:
        return Link(KERNEL_LOG, "unseen", "; ".join(doubts))
    return Link(KERNEL_LOG, "accounts", "no failed flush, read or write of a device of the pool was logged meanwhile")


def _together(runs: Sequence[Ran]) -> Logged:
    """What was logged in all of them."""
    missing = dict.fromkeys(ran.logged.missing for ran in runs if ran.logged.missing)
    return Logged(tuple(line for ran in runs for line in ran.logged.lines), "; ".join(missing))


class Failure(NamedTuple):
    """Something that the kernel logged of a disk. kind: one of KINDS."""

    disk: str
    kind: str
    text: str


def logged_of(logged: Logged, disks: Sequence[str], facts: Facts) -> tuple[tuple[Failure, ...], str]:
    """What failed on these disks, and where nothing did, why it may all the same. Raises ValueError where the lines cannot be
    understood."""
    counted = _counted(logged, disks, facts)
    failed = tuple(_failed(counted))
    return failed, "" if failed else "; ".join((*_doubts(counted), *filter(None, [logged.missing])))


def _counted(logged: Logged, disks: Sequence[str], facts: Facts) -> dict[tuple[str, str], Judged]:
    """How often the lines name each disk, by kind. Raises ValueError where they cannot be understood."""
    found = Facts(facts.now)
    found.put_all(facts)
    for disk in disks:
        found.add(Subject("disk", disk))
    try:
        for fact in kernel_log.counted(logged.lines):
            found.replace(fact)
    except ValueError as error:
        raise ValueError(f"the kernel's log could not be understood: {harmless(str(error))}") from None
    found.replace(Fact(HOST, "kernel_log_whole", known(True, "")))  # what is missing is said in its place
    times = {(disk.name, KINDS[source]): each for disk, source, each in derived.of_disks(tuple(KINDS), found)}
    return {key: times[key] for key in product(disks, KINDS.values())}


def _failed(counted: Mapping[tuple[str, str], Judged]) -> Iterator[Failure]:
    """Each kind of failure that was logged of each of them."""
    for (disk, kind), judged in counted.items():
        match judged:
            case Known(int(times), evidence) if times:
                lines = "; ".join(dict.fromkeys(harmless(each.text) for each in evidence))
                yield Failure(disk, kind, f"{harmless(disk)}: at least {times} {kind} ({lines})")


def _doubts(counted: Mapping[tuple[str, str], Judged]) -> Iterator[str]:
    """Why it is not known whether what was logged is of one of them."""
    reasons = [each.text for judged in counted.values() if isinstance(judged, Unknown) for each in judged.reasons]
    yield from dict.fromkeys(map(harmless, reasons))


def of_pool(runs: Sequence[Ran], pool: Subject) -> Iterator[str]:
    """What zpool status says after the runs and did not say before them, of the pool's vdevs; or why that is not known."""
    before, after = _states(runs, pool)
    if not (before and after):
        yield "zpool status did not say before and after the runs what had failed on the pool's devices"
        return
    if before.keys() != after.keys():
        yield "devices of the pool were added, replaced or removed meanwhile"
        return
    for name, row in after.items():
        old, vdev = before[name], harmless(name)
        if row.state != old.state:
            yield f"{vdev} was {old.state or 'of no state'} before the runs and {row.state or 'of none'} after them"
        for what in COUNTS:
            earlier, later = old.counts.get(what, -1), row.counts.get(what, -1)
            if earlier != later:
                yield f"{what} errors of {vdev}: {earlier} before the runs, {later} after them (zpool status)"


def away(runs: Sequence[Ran], pool: Subject) -> dict[str, str]:
    """The vdevs that OpenZFS did not write to before the runs or after them, by zpool status, with a sentence: the other legs
    answer for what they did not get."""
    before, after = _states(runs, pool)
    return {
        name: f"it was {harmless(before[name].state)} before the runs and {harmless(row.state)} after them"
        for name, row in after.items()
        if name in before and not {before[name].state, row.state} <= WRITTEN
    }


def _states(runs: Sequence[Ran], pool: Subject) -> tuple[dict[str, Row], dict[str, Row]]:
    """The vdevs before the runs and after them."""
    key = f"{witnesses.STATUS}{pool.name}"
    return _rows(runs[0].before.text.get(key, ""), pool), _rows(runs[-1].after.text.get(key, ""), pool)


def _rows(text: str, pool: Subject) -> dict[str, Row]:
    """All vdevs of the pool by name; empty where there is no answer that can be read."""
    try:
        found = [each for each in zpool_status.pools(text) if each.name == pool.name]
    except ValueError:
        return {}
    if len(found) != 1 or not found[0].complete:
        return {}
    return {row.name: row for _, top in found[0].tops for row in _all(top)}


def _all(row: Row) -> Iterator[Row]:
    yield row
    for child in row.children:
        yield from _all(child)
