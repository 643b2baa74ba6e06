"""What stands out, the gravest first: each found by what was counted, or by comparing what should be alike. Pure.

Nothing here is called slow by itself, for nobody knows what the drive promises: a leg is slow beside the other legs of its
vdev, a transaction group beside zfs_txg_timeout. A healthy pool gives no cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import NamedTuple

from auditor.collect import kstat
from auditor.diagnose import failing
from auditor.diagnose.counters import FALLBACKS, THROTTLES, Counted, Leg
from auditor.diagnose.model import Cause, Evidence
from auditor.facts import HOST, Facts, Known, Subject, word_of
from auditor.text import quoted
from auditor.units import duration
from auditor.verify import witnesses
from auditor.verify.failures import Failure

FEW = 20  # writes, commits or delays below which nothing is concluded
SLOWER, SLOWER_NS = 2.5, 2e6  # a leg stands out when it takes so many times as long as the others, and so much longer
PAST = 0.05  # share of the log blocks that may go past the SLOG
FOREIGN = 1.5  # writes on a log device for each log block
FULL = 90  # per cent; from there on allocation looks for the best fit (metaslab_df_free_pct and others)
PRESSED, STARVED = 0.10, 0.50  # share of the time that something waited for memory, for a CPU
WOKEN = 0.25  # share of a commit that is waiting for a CPU
ALWAYS = 0.9  # commits for each write
COMMITTERS, ALONE = 5, 1.1  # threads that commit, and commits for each log block
ALWAYS_ONE = 0.7  # threads that are in a commit at any moment, on the average
FORCED_S = 1.0


class Seen(NamedTuple):
    """What causes are found in. kind: the class of vdevs where log blocks land, or empty. committers: threads that commit to
    the busiest ZIL, None without a trace; waiting: how many are in a commit at any moment, on the average; woken: share of a
    commit that is waiting for a CPU. failed: what the kernel logged of the pool's disks meanwhile."""

    counted: Counted
    facts: Facts
    pool: Subject
    kind: str
    committers: int | None
    waiting: float
    woken: float
    failed: tuple[Failure, ...]


def causes(seen: Seen) -> tuple[Cause, ...]:
    """All that stand out."""
    finders: tuple[Callable[[Seen], Iterator[Cause]], ...] = (
        _suspended, _failing, _unfinished, _fallbacks, _always, _slow_log_leg, _shared, _past_the_slog, _slow_data_leg,
        _throttled, _alone, _scanning, _long_groups, _forced_groups, _starved, _memory, _full, _on_special,
    )  # fmt: skip
    return tuple(cause for finder in finders for cause in finder(seen))


def slower_leg(legs: tuple[Leg, ...]) -> tuple[Leg, float] | None:
    """The leg that takes much longer than the median of the others of its vdev, and how many times as long."""
    timed = [(leg, leg.block_ns) for leg in legs if leg.block_ns is not None and leg.writes >= FEW]
    if len(timed) < 2:
        return None
    worst, most = max(timed, key=lambda each: each[1])
    others = median(ns for leg, ns in timed if leg is not worst)
    if others <= 0 or most < SLOWER * others or most - others < SLOWER_NS:
        return None
    return worst, most / others


def _legs(seen: Seen, *, log: bool) -> dict[str, tuple[Leg, ...]]:
    """Top-level vdev -> its legs, of the class of the log blocks, or of the others."""
    tops: dict[str, tuple[Leg, ...]] = {}
    for leg in seen.counted.legs:
        if (leg.kind == seen.kind) is log:
            tops[leg.top] = (*tops.get(leg.top, ()), leg)
    return tops


def _stat(device: str) -> str:
    return f"cat {quoted(f'/sys/block/{device}/stat')}"


def _status(seen: Seen) -> str:
    return f"zpool status {quoted(seen.pool.name)}"


def _kstat(seen: Seen, row: str) -> str:
    return f"grep -w {row} {quoted(f'{kstat.ROOT}/{seen.pool.name}')}/objset-0x*"


# -- the pool does not work as it should ----------------------------------------------------------------------------


def _suspended(seen: Seen) -> Iterator[Cause]:
    if " state: SUSPENDED" in seen.counted.status:
        evidence = (Evidence("the pool is suspended", _status(seen)),)
        text = f"{seen.pool.name} is suspended: no commit ends until its devices are back"
        fix = f"Bring its devices back, then zpool clear {quoted(seen.pool.name)}"
        yield Cause("suspended", text, evidence, fix, "pool-suspended", True)


def _failing(seen: Seen) -> Iterator[Cause]:
    yield from failing.hung(seen.counted.legs, seen.counted.seconds)
    yield from failing.failing(seen.failed, seen.facts)


def _fallbacks(seen: Seen) -> Iterator[Cause]:
    for row, count in seen.counted.zil.fallbacks.items():
        text = f"{count:,} commits waited for a whole transaction group: {FALLBACKS[row]}"
        evidence = (Evidence(f"{row} grew by {count}", _kstat(seen, row)),)
        yield Cause(
            "fallback", text, evidence, "Find what makes them wait; zpool status and dmesg show errors.", "", True
        )


def _always(seen: Seen) -> Iterator[Cause]:
    for each in seen.counted.datasets:
        sync = seen.facts.get(Subject("dataset", each.name), "sync")
        if not (isinstance(sync, Known) and sync.value == "always" and each.writes and each.commits):
            continue
        if each.writes >= FEW and each.commits >= ALWAYS * each.writes:
            text = f"sync=always makes each write to {each.name} a commit: {each.commits:,} for {each.writes:,} writes"
            evidence = (Evidence(f"{each.name}: sync=always", f"zfs get sync {quoted(each.name)}"),)
            fix = f"zfs set sync=standard {quoted(each.name)}, where the database syncs by itself"
            yield Cause("sync-always", text, evidence, fix, "sync-always", True)


# -- log devices ----------------------------------------------------------------------------------------------------


def _slow_log_leg(seen: Seen) -> Iterator[Cause]:
    for top, legs in _legs(seen, log=True).items():
        if found := slower_leg(legs):
            yield _slow(seen, "slow-log-leg", f"{seen.kind} {top}", *found, "each commit waits for the slowest leg")


def _slow_data_leg(seen: Seen) -> Iterator[Cause]:
    """It holds groups and writers up. While a scan runs the legs do not do the same, and are not compared."""
    for top, legs in _legs(seen, log=False).items():
        if (found := slower_leg(legs)) and not any(_in_progress(seen)):
            yield _slow(seen, "slow-data-leg", top, *found, "transaction groups wait for the slowest leg")


def _slow(seen: Seen, id: str, where: str, leg: Leg, times: float, why: str) -> Cause:
    took = duration(leg.block_ns or 0)
    text = f"{leg.device} is the slower leg of {where}, {times:.1f} times as slow ({took} for a write and its flush): {why}"
    evidence = (Evidence(f"{leg.device}: {leg.writes} writes, {leg.flushes or 0} flushes", _stat(leg.device)),)
    fix = (
        f"Replace {leg.device}, its cable or its controller; until then, with one copy less: "
        f"zpool offline {quoted(seen.pool.name)} {quoted(leg.leaf)}"
    )
    return Cause(id, text, evidence, fix, "", False)


def _shared(seen: Seen) -> Iterator[Cause]:
    """A log vdev of its own gets log blocks and labels, nothing else."""
    blocks = seen.counted.zil.slog
    if seen.kind != "log" or blocks is None:
        return
    tops = _legs(seen, log=True)
    for leg in (leg for legs in tops.values() for leg in legs):
        others = leg.writes - blocks
        if others > max((FOREIGN - 1) * blocks, 100):
            beside = word_of(seen.facts.get(Subject("leaf", leg.leaf, seen.pool.name), "disk_neighbours"))
            who = f" ({beside})" if beside else ""
            text = f"{leg.device} does not serve the log alone{who}: {leg.writes:,} writes for at most {blocks:,} log blocks"
            evidence = (Evidence(f"{leg.device}: busy {leg.busy:.0%} of the time", _stat(leg.device)),)
            yield Cause(
                "log-device-shared", text, evidence, "Give the log a device of its own.", "slog-shared-with-data", False
            )


def _past_the_slog(seen: Seen) -> Iterator[Cause]:
    zil, total = seen.counted.zil, seen.counted.zil.blocks
    if not any(leg.kind == "log" for leg in seen.counted.legs) or not total or total < FEW or zil.normal is None:
        return
    past, pointers = zil.normal / total, (zil.indirect or 0) / (zil.commits or total)
    if max(past, pointers) <= PAST:
        return
    what = f"{past:.0%} of the log blocks" if past >= pointers else f"the data of {min(pointers, 1):.0%} of the commits"
    evidence = (
        Evidence(f"{zil.normal} of {total} log blocks", _kstat(seen, "zil_itx_metaslab_normal_count")),
        Evidence(f"{zil.indirect or 0} records whose data is elsewhere", _kstat(seen, "zil_itx_indirect_count")),
    )
    text = f"{what} bypassed the SLOG and went to the data vdevs"
    yield Cause("past-the-slog", text, evidence, *_back_to_the_slog(seen, past >= pointers), False)


def _back_to_the_slog(seen: Seen, blocks: bool) -> tuple[str, str]:
    """(fix, rule). A log block goes elsewhere only where the log class has no room for it (zio_alloc_zil() of zio.c);
    data only with logbias=throughput, and from 2.3 on with Direct I/O (zfs_log_write(), zil_write_state())."""
    if blocks:
        return f"A larger SLOG, or a working one: zpool list -v {quoted(seen.pool.name)}", "slog-too-small"
    names = [each.name for each in seen.counted.datasets if each.commits]
    biased = [name for name in names if word_of(seen.facts.get(Subject("dataset", name), "logbias")) == "throughput"]
    if biased:
        return f"zfs set logbias=latency {' '.join(map(quoted, biased))}", "logbias-throughput-log"
    which = " ".join(map(quoted, names))
    return f"Direct I/O goes past a SLOG, as logbias=throughput does: zfs get logbias,direct {which}".rstrip(), (
        "direct-io-bypasses-slog"
    )


def _alone(seen: Seen) -> Iterator[Cause]:
    zil, blocks = seen.counted.zil, seen.counted.zil.blocks
    if seen.committers is None or seen.committers < COMMITTERS or not blocks or not zil.commits or zil.commits < FEW:
        return
    # those who seldom commit at the same time have nothing to share; commits of several blocks each are no sign
    if seen.waiting >= ALWAYS_ONE and 1 / ALONE < zil.commits / blocks < ALONE:
        counts = f"{zil.commits:,} commits, {blocks:,} blocks"
        text = f"{seen.committers} threads commit one after the other, and no two share a log block: {counts}"
        evidence = (Evidence("commits for each log block", _kstat(seen, "zil_commit_count")),)
        yield Cause(
            "no-batching", text, evidence, "Let the database batch its commits (commit_delay or the like).", "", False
        )


def _on_special(seen: Seen) -> Iterator[Cause]:
    if seen.kind == "special":
        text = "log blocks land on the special vdevs, which serve metadata, too"
        evidence = (Evidence("no log vdev, and special vdevs", _status(seen)),)
        yield Cause(
            "zil-on-special", text, evidence, "Add a log vdev where that matters.", "special-acts-as-log", False
        )


# -- the pool and its host ------------------------------------------------------------------------------------------


def _throttled(seen: Seen) -> Iterator[Cause]:
    """The counters are those of all pools: of several it is not known whose writers they were. (module/zfs/dmu_tx.c)"""
    others = any(pool != seen.pool for pool in seen.facts.linked(HOST, "pools"))
    for row, count in seen.counted.throttles.items():
        if count >= FEW:
            whose = f"writers of {seen.pool.name} or of another pool" if others else "writers"
            text = f"{whose} were held back {count:,} times: {THROTTLES[row]}"
            evidence = (Evidence(f"{row} grew by {count}", f"grep -w {row} {witnesses.DMU_TX}"),)
            fix = "Write less at once, or add data vdevs or faster ones; a larger limit only makes stalls rarer and longer."
            yield Cause("throttle", text, evidence, fix, "txg-dirty-throttle", not others)


def _scanning(seen: Seen) -> Iterator[Cause]:
    pause = f"zpool scrub -p {quoted(seen.pool.name)} pauses it"
    for what in _in_progress(seen):
        evidence = (Evidence(f"{what} in progress", _status(seen)),)
        text = f"a {what} reads and writes alongside the commits"
        fix = pause if what == "scrub" else "Let it finish: redundancy first."
        yield Cause(what, text, evidence, fix, "resilver-or-scrub-running", False)


def _in_progress(seen: Seen) -> Iterator[str]:
    yield from (what for what in ("scrub", "resilver") if f"{what} in progress" in seen.counted.status)


def _timeout_s(seen: Seen) -> int:
    found = seen.facts.get(HOST, "zfs_txg_timeout")
    return found.value if isinstance(found, Known) and isinstance(found.value, int) else 0


def _txgs(seen: Seen) -> str:
    return f"cat {quoted(witnesses.txgs_path(seen.pool.name))}"


def _syncing(seen: Seen) -> tuple[float, bool]:
    """For how long a group was or has been synced, the longest; and whether nothing was written for one that is not done."""
    longest = max((txg.sync_s for txg in seen.counted.txgs), default=0.0)
    if seen.counted.syncing is None:
        return longest, False
    written = sum(leg.writes for legs in _legs(seen, log=False).values() for leg in legs)
    return max(longest, seen.counted.syncing[1]), not written


def _long_groups(seen: Seen) -> Iterator[Cause]:
    timeout, (longest, still) = _timeout_s(seen), _syncing(seen)
    if timeout and longest > timeout and not still:
        text = f"a transaction group took {longest:.1f} s to sync, above zfs_txg_timeout ({timeout} s): writes outrun the vdevs"
        evidence = (Evidence(f"stime {longest:.1f} s", _txgs(seen)),)
        fix = "Write less at once, or add data vdevs or faster ones."
        yield Cause("long-txgs", text, evidence, fix, "txg-sync-slow", False)


def _unfinished(seen: Seen) -> Iterator[Cause]:
    timeout, (longest, still) = _timeout_s(seen), _syncing(seen)
    if seen.counted.syncing and still and longest > max(timeout, failing.LONG_S):
        number = seen.counted.syncing[0]
        text = f"transaction group {number} has been syncing for {longest:.0f} s, and nothing is written: a device may hang"
        evidence = (Evidence(f"transaction group {number} in state S", _txgs(seen)),)
        yield Cause("txg-hangs", text, evidence, "dmesg and zpool events show what waits.", "txg-hangs", True)


def _forced_groups(seen: Seen) -> Iterator[Cause]:
    ended = [txg.open_s for txg in seen.counted.txgs if txg.sync_s > 0]
    if _timeout_s(seen) > FORCED_S and len(ended) > seen.counted.seconds and median(ended) < FORCED_S:
        text = (
            f"{len(ended)} transaction groups in {seen.counted.seconds:.0f} s: snapshots, destroys, zpool sync or dirty data "
            "close them early"
        )
        evidence = (Evidence(f"open for {median(ended):.2f} s (median)", _txgs(seen)),)
        yield Cause("forced-txgs", text, evidence, f"zpool history -i {quoted(seen.pool.name)} shows which.", "", False)


def _starved(seen: Seen) -> Iterator[Cause]:
    pressed = seen.counted.pressure.get("cpu", 0.0)
    if pressed >= STARVED and seen.woken >= WOKEN:
        text = f"{seen.woken:.0%} of the time of a commit is spent waiting for a CPU"
        evidence = (Evidence(f"something waited for a CPU {pressed:.0%} of the time", "cat /proc/pressure/cpu"),)
        yield Cause("cpu", text, evidence, "Free CPUs, or raise the limit of the container.", "", False)


def _memory(seen: Seen) -> Iterator[Cause]:
    pressed = seen.counted.pressure.get("memory", 0.0)
    if pressed >= PRESSED:
        text = f"something waited for memory {pressed:.0%} of the time"
        evidence = (Evidence(text, "cat /proc/pressure/memory"),)
        yield Cause("memory", text, evidence, "Free memory; zfs_arc_max bounds the ARC.", "", False)


def _full(seen: Seen) -> Iterator[Cause]:
    found = seen.facts.get(seen.pool, "capacity_percent")
    if isinstance(found, Known) and isinstance(found.value, int) and found.value >= FULL:
        text = f"{seen.pool.name} is {found.value}% full: finding room for a block takes longer"
        evidence = (Evidence(f"capacity {found.value}%", f"zpool list {quoted(seen.pool.name)}"),)
        yield Cause("full", text, evidence, "Free or add space.", "pool-nearly-full", False)
