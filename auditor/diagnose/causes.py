"""Where the time goes and why: what the figures, the log, the pool, its devices and the database show. ``playbook.toml``
has the words and fixes of each cause. Pure.

Nothing is slow by itself, since no one knows what the drive promises: a leg is slow next to the other legs of its vdev, a
transaction group next to zfs_txg_timeout. A healthy pool gives no cause."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

from auditor import data
from auditor.diagnose import database_counters
from auditor.diagnose.commits import FEW
from auditor.diagnose.database_counters import CounterSnapshot, DatabaseFindings, number
from auditor.diagnose.diagnosis import Cause, Evidence
from auditor.diagnose.observation import FILE as COUNTERS
from auditor.diagnose.observation import Counters, Leg
from auditor.facts import HOST, Facts, Known, Subject, is_true
from auditor.text import duration, quoted, size
from auditor.verify.chain import FLUSHES, Failure

FILE = "playbook.toml"
FEW_FLUSHES = 20  # writes, commits or delays below which nothing is concluded
SLOWER, SLOWER_NS = 2.5, 2e6  # a leg stands out when it takes so many times as long as the others, and so much longer


class CauseContext(NamedTuple):
    """kind: the class of vdevs where log blocks land, or empty. committers: threads that commit to the busiest ZIL, None
    without a trace. waiting: how many are in a commit at a mean moment. woken: the least and the most of a commit, 0 to 1,
    that waits for a CPU. failed: what the kernel logged of the pool's disks. mixed: the ZIL may have counted other pools
    too."""

    counted: Counters
    facts: Facts
    pool: Subject
    kind: str
    committers: int | None
    waiting: float
    woken: tuple[float, float]
    failed: tuple[Failure, ...]
    mixed: bool = False


class _Texts(string.Formatter):
    """``{name!q}``: as a word of a shell."""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return quoted(str(value)) if conversion == "q" else super().convert_field(value, conversion)


def cause(id: str, **values: object) -> Cause:
    entry, texts = data.table(FILE)[id], _Texts()

    def filled(text: str) -> str:
        return texts.vformat(text, (), values)

    evidence = (
        Evidence(filled(each["text"]), growing(filled(each["grows"])) if "grows" in each else filled(each["command"]))
        for each in entry["seen"]
    )
    fix, decisive = filled(entry["fix"]), entry.get("decisive", False)
    return Cause(id, filled(entry["text"]), tuple(evidence), fix, entry.get("rule", ""), decisive)


def growing(command: str) -> str:
    """The command that shows how counters grow, which run since boot, import or mount. One with a name in $'...' stays as
    it is: watch hands it to sh, which need not know that form."""
    return command if "$'" in command else f"watch -d {quoted(command)}"


# Devices that fail, or do not answer, while commits wait. Only the kernel's log shows a failed flush
# (auditor/verify/chain.py). A device that does not answer has I/O outstanding and completes none: field 9 of
# /sys/block/X/stat. (Linux Documentation/admin-guide/iostats.rst)

LONG_S = 5.0  # without a single completion, where I/O is outstanding all the time


def flushes(failed: Sequence[Failure], facts: Facts) -> Iterator[Cause]:
    """Failed flushes of disks of which it is not known that they keep what they acknowledged."""
    for each in failed:
        if each.kind == FLUSHES and not _keeps(each, facts):
            yield cause("flush-failed", text=each.text, device=each.disk)


def _keeps(failure: Failure, facts: Facts) -> bool:
    return is_true(facts.get(Subject("disk", failure.disk), "keeps_acknowledged"))


def failing(seen: CauseContext) -> Iterator[Cause]:
    """Devices with work that completed nothing; and what else but failed flushes the kernel logged of a disk of the
    pool."""
    for leg in seen.counted.legs:
        if leg.stuck and seen.counted.seconds >= LONG_S:
            many = "one I/O" if leg.stuck == 1 else f"{leg.stuck} I/Os"
            yield cause("device-hung", device=leg.device, seconds=seen.counted.seconds, many=many)
    for each in seen.failed:
        if each.kind != FLUSHES or _keeps(each, seen.facts):
            yield cause("device-fails", text=each.text, device=each.disk)


# Causes on the devices that the ZIL writes to.

PAST = 0.05  # share of the log blocks that may go past the SLOG
FOREIGN = 1.5  # writes on a log device for each log block
COMMITTERS, ALONE = 5, 1.1  # threads that commit, and commits for each log block
ALWAYS_ONE = 0.7  # threads that are in a commit at any moment, on the average


def legs_of(seen: CauseContext, *, log: bool) -> dict[str, tuple[Leg, ...]]:
    """Top-level vdev -> its legs, of the class of the log blocks, or of the others."""
    tops: dict[str, tuple[Leg, ...]] = {}
    for leg in seen.counted.legs:
        if (leg.kind == seen.kind) is log:
            tops[leg.top] = (*tops.get(leg.top, ()), leg)
    return tops


def slow_log_leg(seen: CauseContext) -> Iterator[Cause]:
    for top, legs in legs_of(seen, log=True).items():
        yield from _slower(seen, "slow-log-leg", f"{seen.kind} {top}", legs)


def slow_data_leg(seen: CauseContext) -> Iterator[Cause]:
    """It holds up groups and writers. During a scan the legs do different work, and are not compared."""
    for top, legs in legs_of(seen, log=False).items():
        if not any(in_progress(seen)):
            yield from _slower(seen, "slow-data-leg", top, legs)


def _slower(seen: CauseContext, id: str, where: str, legs: tuple[Leg, ...]) -> Iterator[Cause]:
    """The leg that takes much longer than the median of the others of its vdev."""
    timed = [(leg, leg.block_ns) for leg in legs if leg.block_ns is not None and leg.writes >= FEW_FLUSHES]
    if len(timed) < 2:
        return
    worst, most = max(timed, key=lambda each: each[1])
    others = median(ns for leg, ns in timed if leg is not worst)
    if others > 0 and most >= SLOWER * others and most - others >= SLOWER_NS:
        yield cause(
            id, device=worst.device, leaf=worst.leaf, pool=seen.pool.name, where=where, times=most / others,
            took=duration(most), writes=worst.writes, flushes=worst.flushes or 0,
        )  # fmt: skip


def shared(seen: CauseContext) -> Iterator[Cause]:
    """A separate log vdev gets log blocks and labels, nothing else."""
    blocks = seen.counted.zil.slog
    for leg in seen.counted.legs:
        if (
            leg.kind == seen.kind == "log"
            and blocks is not None
            and leg.writes - blocks > max((FOREIGN - 1) * blocks, 100)
        ):
            beside = seen.facts.get(Subject("leaf", leg.leaf, seen.pool.name), "disk_neighbours").word()
            who = f" ({beside})" if beside else ""
            yield cause(
                "log-device-shared", device=leg.device, who=who, writes=leg.writes, blocks=blocks, busy=leg.busy
            )


def past_the_slog(seen: CauseContext) -> Iterator[Cause]:
    """A log block goes elsewhere only where the log class has no room (zio_alloc_zil() of zio.c); data only with
    logbias=throughput, and from 2.3 on with Direct I/O (zfs_log_write(), zil_write_state())."""
    zil, total = seen.counted.zil, seen.counted.zil.blocks or 0
    if not any(leg.kind == "log" for leg in seen.counted.legs) or total < FEW_FLUSHES or zil.normal is None:
        return
    past, pointers = zil.normal / total, (zil.indirect or 0) / (zil.commits or total)
    if max(past, pointers) <= PAST:
        return
    what = f"{past:.0%} of the log blocks" if past >= pointers else f"the data of {min(pointers, 1):.0%} of the commits"
    found = cause(
        "past-the-slog", what=what, normal=zil.normal, total=total, indirect=zil.indirect or 0, pool=seen.pool.name
    )
    names = [each.name for each in seen.counted.datasets if each.commits]
    biased = [name for name in names if seen.facts.get(Subject("dataset", name), "logbias").word() == "throughput"]
    if past >= pointers:
        yield found
    elif biased:
        fix = f"zfs set logbias=latency {' '.join(map(quoted, biased))}"
        yield found._replace(fix=fix, rule="logbias-throughput-log")
    else:
        fix = "Direct I/O goes past a SLOG, as logbias=throughput does: zfs get logbias,direct "
        yield found._replace(fix=(fix + " ".join(map(quoted, names))).rstrip(), rule="direct-io-bypasses-slog")


def alone(seen: CauseContext) -> Iterator[Cause]:
    """Threads that seldom commit at the same time have nothing to share. Commits of several blocks each are no sign."""
    commits, blocks = seen.counted.zil.commits or 0, seen.counted.zil.blocks
    if (seen.committers or 0) < COMMITTERS or not blocks or commits < FEW_FLUSHES:
        return
    if seen.waiting >= ALWAYS_ONE and 1 / ALONE < commits / blocks < ALONE:
        yield cause("no-batching", committers=seen.committers, commits=commits, blocks=blocks, pool=seen.pool.name)


def on_special(seen: CauseContext) -> Iterator[Cause]:
    if seen.kind == "special":
        yield cause("zil-on-special", pool=seen.pool.name)


# Causes in a pool and on its host.

FULL = 90  # per cent; from there on allocation looks for the best fit (metaslab_df_free_pct and others)
PRESSED, STARVED = 0.10, 0.50  # share of the time that something waited for memory, for a CPU
WOKEN = 0.25  # share of a commit that is waiting for a CPU
ALWAYS = 0.9  # commits for each write
FORCED_S = 1.0


def suspended(seen: CauseContext) -> Iterator[Cause]:
    if " state: SUSPENDED" in seen.counted.status:
        yield cause("suspended", pool=seen.pool.name)


def fallbacks(seen: CauseContext) -> Iterator[Cause]:
    for row, count in seen.counted.zil.fallbacks.items():
        yield cause("fallback", count=count, why=data.table(COUNTERS)["fallbacks"][row], row=row, pool=seen.pool.name)


def always(seen: CauseContext) -> Iterator[Cause]:
    """Where commits are not counted by dataset (OpenZFS 2.1), all of them are those of the one that is written to."""
    written = [each for each in seen.counted.datasets if each.writes]
    for each in written:
        commits = seen.counted.zil.commits if each.commits is None and written == [each] else each.commits
        writes, sync = each.writes or 0, seen.facts.get(Subject("dataset", each.name), "sync").word()
        if sync == "always" and commits and writes >= FEW_FLUSHES and commits >= ALWAYS * writes:
            yield cause("sync-always", dataset=each.name, commits=commits, writes=writes)


def throttled(seen: CauseContext) -> Iterator[Cause]:
    """The counters are those of all pools: of several it is not known whose writers they were. (module/zfs/dmu_tx.c)"""
    others = seen.facts.linked(HOST, "imported_pools") != (seen.pool,)
    whose = f"writers of {seen.pool.name} or of another pool" if others else "writers"
    for row, count in seen.counted.throttles.items():
        if count >= FEW_FLUSHES:
            found = cause("throttle", whose=whose, count=count, why=data.table(COUNTERS)["held"][row], row=row)
            yield found._replace(decisive=not others)


def in_progress(seen: CauseContext) -> Iterator[str]:
    """scrub, resilver."""
    yield from (what for what in ("scrub", "resilver") if f"{what} in progress" in seen.counted.status)


def scanning(seen: CauseContext) -> Iterator[Cause]:
    for what in in_progress(seen):
        yield cause(what, pool=seen.pool.name)


def _timeout_s(seen: CauseContext) -> int:
    found = seen.facts.get(HOST, "zfs_txg_timeout").or_none()
    return found if isinstance(found, int) else 0


def _syncing(seen: CauseContext) -> tuple[float, bool]:
    """The longest sync of a group, done or not; and whether an unfinished one wrote nothing."""
    longest = max((txg.sync_s for txg in seen.counted.txgs), default=0.0)
    if seen.counted.syncing is None:
        return longest, False
    written = sum(leg.writes for legs in legs_of(seen, log=False).values() for leg in legs)
    return max(longest, seen.counted.syncing[1]), not written


def long_groups(seen: CauseContext) -> Iterator[Cause]:
    timeout, (longest, still) = _timeout_s(seen), _syncing(seen)
    if timeout and longest > timeout and not still:
        yield cause("long-txgs", longest=longest, timeout=timeout, pool=seen.pool.name)


def unfinished(seen: CauseContext) -> Iterator[Cause]:
    longest, still = _syncing(seen)
    if seen.counted.syncing and still and longest > max(_timeout_s(seen), LONG_S):
        yield cause("txg-hangs", number=seen.counted.syncing[0], longest=longest, pool=seen.pool.name)


def forced_groups(seen: CauseContext) -> Iterator[Cause]:
    ended, seconds = [txg.open_s for txg in seen.counted.txgs if txg.sync_s > 0], seen.counted.seconds
    if _timeout_s(seen) > FORCED_S and len(ended) > seconds and median(ended) < FORCED_S:
        yield cause("forced-txgs", count=len(ended), seconds=seconds, open_s=median(ended), pool=seen.pool.name)


def starved(seen: CauseContext) -> Iterator[Cause]:
    pressed, (least, most) = seen.counted.pressure.get("cpu", 0.0), seen.woken
    if pressed >= STARVED and most >= WOKEN:
        between = f"{least:.0%} to " if round(least, 2) < round(most, 2) else ""
        yield cause("cpu", share=f"{between}{most:.0%}", pressed=pressed)


def memory(seen: CauseContext) -> Iterator[Cause]:
    if (pressed := seen.counted.pressure.get("memory", 0.0)) >= PRESSED:
        yield cause("memory", pressed=pressed)


def full(seen: CauseContext) -> Iterator[Cause]:
    found = seen.facts.get(seen.pool, "capacity_percent")
    if isinstance(found, Known) and isinstance(found.value, int) and found.value >= FULL:
        yield cause("full", pool=seen.pool.name, percent=found.value)


# what stands out, the most severe first: each found by what was counted, or by comparing what should be alike
FINDERS: tuple[Callable[[CauseContext], Iterator[Cause]], ...] = (
    suspended, failing, unfinished, fallbacks, always, slow_log_leg, shared,
    past_the_slog, slow_data_leg, throttled, alone, scanning, long_groups, forced_groups,
    starved, memory, full, on_special,
)  # fmt: skip
OF_THE_ZIL = (fallbacks, always, past_the_slog, alone)  # rest on what the ZIL counted


def causes(seen: CauseContext) -> tuple[Cause, ...]:
    return tuple(cause for finder in FINDERS if not (seen.mixed and finder in OF_THE_ZIL) for cause in finder(seen))


# What stands out in the database's own view, where its counters are certain.

MOSTLY = 0.5  # of the backends at work
BEHIND = 5.0  # that wait for one lock at a mean moment
TWO = 2
WAITS = {
    "standby": ("ipc syncrep",),
    "row-locks": ("lock transactionid", "lock tuple"),
    "commits-in-turn": ("lwlock walwrite", "lwlock walinsert"),
}


def not_durable(seen: DatabaseFindings | None) -> Iterator[Cause]:
    if seen and seen.said and seen.here and seen.said.settings.get("fsync") == "off":
        yield cause("database-fsync-off", engine=seen.view.engine)


def of_database(seen: DatabaseFindings | None) -> tuple[Cause, ...]:
    """All that stand out, the most severe first; none of a server elsewhere, whatever it does."""
    if seen is None or seen.said is None or not seen.here:
        return ()
    said, engine = seen.said, seen.view.engine
    found = [*_checkpoints(said, engine), *_waiting(said, engine, seen.view.commands[-1])]
    if (waits := said.grown("status", "Innodb_log_waits")) is not None and waits >= FEW:
        found.append(cause("log-buffer", engine=engine, waits=waits, command=seen.view.commands[0]))
    return tuple(found)


def _checkpoints(said: CounterSnapshot, engine: str) -> Iterator[Cause]:
    """Requested ones may be a CHECKPOINT of a user; with so much WAL that all but the first had to be, they are not."""
    counts, each = database_counters.checkpoints(said), database_counters.trigger(said)
    wal = said.grown("wal", "inserted")
    if counts is None or each is None or wal is None:
        return
    requested, by_time, table = counts
    if requested < TWO or requested <= by_time or wal < (requested - 1) * each:
        return
    words = ("max_wal_size", "checkpoint_timeout", "checkpoint_completion_target")
    most, timeout, target = (number(said.settings.get(name)) or 0.0 for name in words)
    pages = said.settings.get("full_page_writes") == "on"
    yield cause(
        "checkpoint-storm", engine=engine, requested=requested, by_time=by_time, seconds=said.seconds, timeout=timeout,
        most=size(most * (1 << 20)), wal=size(wal), each=size(each), table=table,
        whole=", and pages whole again after each of them" if pages else "",
        enough=size(wal / said.seconds * timeout * (1 + target)),
    )  # fmt: skip


def _waiting(said: CounterSnapshot, engine: str, command: str) -> Iterator[Cause]:
    """A kind of wait of most backends at work. command: that shows it."""
    for id, events in WAITS.items():
        together = sum(each for words, (each, _) in said.waits.items() if words.lower() in events)
        if together < FEW or together < MOSTLY * said.active or not said.moments or not said.sees:
            continue
        mean, active = together / said.moments, said.active / said.moments
        if mean >= (BEHIND if id == "commits-in-turn" else TWO):
            yield cause(id, engine=engine, mean=mean, active=active, moments=said.moments, command=command)
