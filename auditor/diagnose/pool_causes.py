"""Causes in a pool and on its host. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from auditor.diagnose import failing as devices
from auditor.diagnose.counters import FALLBACKS, THROTTLES
from auditor.diagnose.model import Cause, Evidence
from auditor.diagnose.seen import FEW, Seen, growing, in_progress, kstat_rows, legs_of, status
from auditor.facts import HOST, Known, Subject, word_of
from auditor.text import quoted
from auditor.verify import witnesses

FULL = 90  # per cent; from there on allocation looks for the best fit (metaslab_df_free_pct and others)
PRESSED, STARVED = 0.10, 0.50  # share of the time that something waited for memory, for a CPU
WOKEN = 0.25  # share of a commit that is waiting for a CPU
ALWAYS = 0.9  # commits for each write
FORCED_S = 1.0


# -- the pool does not work as it should ----------------------------------------------------------------------------


def suspended(seen: Seen) -> Iterator[Cause]:
    if " state: SUSPENDED" in seen.counted.status:
        evidence = (Evidence("the pool is suspended", status(seen)),)
        text = f"{seen.pool.name} is suspended: no commit ends until its devices are back"
        fix = f"Bring its devices back, then zpool clear {quoted(seen.pool.name)}"
        yield Cause("suspended", text, evidence, fix, "pool-suspended", True)


def failing(seen: Seen) -> Iterator[Cause]:
    yield from devices.hung(seen.counted.legs, seen.counted.seconds)
    yield from devices.failing(seen.failed, seen.facts)


def fallbacks(seen: Seen) -> Iterator[Cause]:
    for row, count in seen.counted.zil.fallbacks.items():
        text = f"{count:,} commits waited for a whole transaction group: {FALLBACKS[row]}"
        evidence = (Evidence(f"{row} grew by {count}", kstat_rows(seen, row)),)
        yield Cause(
            "fallback", text, evidence, "Find what makes them wait; zpool status and dmesg show errors.", "", True
        )


def always(seen: Seen) -> Iterator[Cause]:
    """Where commits are not counted by dataset (OpenZFS 2.1), all of them are those of the one that is written to."""
    written = [each for each in seen.counted.datasets if each.writes]
    for each in written:
        commits = seen.counted.zil.commits if each.commits is None and written == [each] else each.commits
        if word_of(seen.facts.get(Subject("dataset", each.name), "sync")) != "always" or not each.writes or not commits:
            continue
        if each.writes >= FEW and commits >= ALWAYS * each.writes:
            text = f"sync=always makes each write to {each.name} a commit: {commits:,} for {each.writes:,} writes"
            evidence = (Evidence(f"{each.name}: sync=always", f"zfs get sync {quoted(each.name)}"),)
            fix = f"zfs set sync=standard {quoted(each.name)}, where the database syncs by itself"
            yield Cause("sync-always", text, evidence, fix, "sync-always", True)


# -- the pool and its host ------------------------------------------------------------------------------------------


def throttled(seen: Seen) -> Iterator[Cause]:
    """The counters are those of all pools: of several it is not known whose writers they were. (module/zfs/dmu_tx.c)"""
    others = seen.facts.linked(HOST, "imported_pools") != (seen.pool,)
    for row, count in seen.counted.throttles.items():
        if count >= FEW:
            whose = f"writers of {seen.pool.name} or of another pool" if others else "writers"
            text = f"{whose} were held back {count:,} times: {THROTTLES[row]}"
            evidence = (Evidence(f"{row} grew by {count}", growing(f"grep -w {row} {witnesses.DMU_TX}")),)
            fix = "Write less at once, or add data vdevs or faster ones; a larger limit only makes stalls rarer and longer."
            yield Cause("throttle", text, evidence, fix, "txg-dirty-throttle", not others)


def scanning(seen: Seen) -> Iterator[Cause]:
    pause = f"zpool scrub -p {quoted(seen.pool.name)} pauses it"
    for what in in_progress(seen):
        evidence = (Evidence(f"{what} in progress", status(seen)),)
        text = f"a {what} reads and writes alongside the commits"
        fix = pause if what == "scrub" else "Let it finish: redundancy first."
        yield Cause(what, text, evidence, fix, "resilver-or-scrub-running", False)


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
    written = sum(leg.writes for legs in legs_of(seen, log=False).values() for leg in legs)
    return max(longest, seen.counted.syncing[1]), not written


def long_groups(seen: Seen) -> Iterator[Cause]:
    timeout, (longest, still) = _timeout_s(seen), _syncing(seen)
    if timeout and longest > timeout and not still:
        text = f"a transaction group took {longest:.1f} s to sync, above zfs_txg_timeout ({timeout} s): writes outrun the vdevs"
        evidence = (Evidence(f"stime {longest:.1f} s", _txgs(seen)),)
        fix = "Write less at once, or add data vdevs or faster ones."
        yield Cause("long-txgs", text, evidence, fix, "txg-sync-slow", False)


def unfinished(seen: Seen) -> Iterator[Cause]:
    timeout, (longest, still) = _timeout_s(seen), _syncing(seen)
    if seen.counted.syncing and still and longest > max(timeout, devices.LONG_S):
        number = seen.counted.syncing[0]
        text = f"transaction group {number} has been syncing for {longest:.0f} s, and nothing is written: a device may hang"
        evidence = (Evidence(f"transaction group {number} in state S", _txgs(seen)),)
        yield Cause("txg-hangs", text, evidence, "dmesg and zpool events show what waits.", "txg-hangs", True)


def forced_groups(seen: Seen) -> Iterator[Cause]:
    ended = [txg.open_s for txg in seen.counted.txgs if txg.sync_s > 0]
    if _timeout_s(seen) > FORCED_S and len(ended) > seen.counted.seconds and median(ended) < FORCED_S:
        text = (
            f"{len(ended)} transaction groups in {seen.counted.seconds:.0f} s: snapshots, destroys, zpool sync or dirty data "
            "close them early"
        )
        evidence = (Evidence(f"open for {median(ended):.2f} s (median)", _txgs(seen)),)
        yield Cause("forced-txgs", text, evidence, f"zpool history -i {quoted(seen.pool.name)} shows which.", "", False)


def starved(seen: Seen) -> Iterator[Cause]:
    pressed = seen.counted.pressure.get("cpu", 0.0)
    least, most = seen.woken
    if pressed >= STARVED and most >= WOKEN:
        between = f"{least:.0%} to " if round(least, 2) < round(most, 2) else ""
        text = f"{between}{most:.0%} of the time of a commit is spent waiting for a CPU"
        evidence = (Evidence(f"something waited for a CPU {pressed:.0%} of the time", "cat /proc/pressure/cpu"),)
        yield Cause("cpu", text, evidence, "Free CPUs, or raise the limit of the container.", "", False)


def memory(seen: Seen) -> Iterator[Cause]:
    pressed = seen.counted.pressure.get("memory", 0.0)
    if pressed >= PRESSED:
        text = f"something waited for memory {pressed:.0%} of the time"
        evidence = (Evidence(text, "cat /proc/pressure/memory"),)
        yield Cause("memory", text, evidence, "Free memory; zfs_arc_max bounds the ARC.", "", False)


def full(seen: Seen) -> Iterator[Cause]:
    found = seen.facts.get(seen.pool, "capacity_percent")
    if isinstance(found, Known) and isinstance(found.value, int) and found.value >= FULL:
        text = f"{seen.pool.name} is {found.value}% full: finding room for a block takes longer"
        evidence = (Evidence(f"capacity {found.value}%", f"zpool list {quoted(seen.pool.name)}"),)
        yield Cause("full", text, evidence, "Free or add space.", "pool-nearly-full", False)
