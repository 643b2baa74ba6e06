"""Where the time goes and why: what the figures, the log, the pool, its devices and the database show. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from auditor.diagnose import database_counters
from auditor.diagnose.commits import FEW
from auditor.diagnose.database_counters import CounterSnapshot, DatabaseFindings, number
from auditor.diagnose.diagnosis import Cause, Evidence
from auditor.diagnose.observation import FALLBACKS, THROTTLES, Counters, Leg
from auditor.facts import HOST, Facts, Known, Subject, word_of
from auditor.sources import kstat
from auditor.text import duration, quoted, size
from auditor.verify import trial
from auditor.verify.chain import FLUSHES, Failure

# What causes are found in, and what their finders share. Pure.

FEW_FLUSHES = 20  # writes, commits or delays below which nothing is concluded
SLOWER, SLOWER_NS = 2.5, 2e6  # a leg stands out when it takes so many times as long as the others, and so much longer


class CauseContext(NamedTuple):
    """What causes are found in. kind: the class of vdevs where log blocks land, or empty. committers: threads that commit to
    the busiest ZIL, None without a trace; waiting: how many are in a commit at any moment, on the average; woken: the least
    and the most of a commit, 0 to 1, that is waiting for a CPU. failed: what the kernel logged of the pool's disks
    meanwhile. mixed: what the ZIL counted may be of other pools, too."""

    counted: Counters
    facts: Facts
    pool: Subject
    kind: str
    committers: int | None
    waiting: float
    woken: tuple[float, float]
    failed: tuple[Failure, ...]
    mixed: bool = False


def slower_leg(legs: tuple[Leg, ...]) -> tuple[Leg, float] | None:
    """The leg that takes much longer than the median of the others of its vdev, and how many times as long."""
    timed = [(leg, leg.block_ns) for leg in legs if leg.block_ns is not None and leg.writes >= FEW_FLUSHES]
    if len(timed) < 2:
        return None
    worst, most = max(timed, key=lambda each: each[1])
    others = median(ns for leg, ns in timed if leg is not worst)
    if others <= 0 or most < SLOWER * others or most - others < SLOWER_NS:
        return None
    return worst, most / others


def legs_of(seen: CauseContext, *, log: bool) -> dict[str, tuple[Leg, ...]]:
    """Top-level vdev -> its legs, of the class of the log blocks, or of the others."""
    tops: dict[str, tuple[Leg, ...]] = {}
    for leg in seen.counted.legs:
        if (leg.kind == seen.kind) is log:
            tops[leg.top] = (*tops.get(leg.top, ()), leg)
    return tops


def growing(command: str) -> str:
    """The command that shows how counters grow which another one shows: they run since boot, import or mount. One with
    a name in $'...' stays as it is: watch hands it to sh, which need not know that form, and would end the word elsewhere."""
    return command if "$'" in command else f"watch -d {quoted(command)}"


def stat(device: str) -> str:
    """The command that shows the counters of a device."""
    return growing(f"cat {quoted(f'/sys/block/{device}/stat')}")


def status(seen: CauseContext) -> str:
    """The command that shows the state of the pool."""
    return f"zpool status {quoted(seen.pool.name)}"


def kstat_rows(seen: CauseContext, row: str) -> str:
    """The command that shows a row of the kstats of all datasets of the pool."""
    return growing(f"grep -w {row} {quoted(f'{kstat.ROOT}/{seen.pool.name}')}/objset-0x*")


def in_progress(seen: CauseContext) -> Iterator[str]:
    """scrub, resilver."""
    yield from (what for what in ("scrub", "resilver") if f"{what} in progress" in seen.counted.status)


# Devices that fail, or that do not answer, while commits wait for them. Pure.
#
# A flush that fails is counted as one that completed, and fsync returns after it as after any other (auditor/verify/chain.py
# has the places): the kernel's log alone tells. A device that does not answer has I/O outstanding and completes none: field 9
# of /sys/block/X/stat. (Linux Documentation/admin-guide/iostats.rst)

LOG = "dmesg --level err,warn"
LONG_S = 5.0  # without a single completion, where I/O is outstanding all the time


def flushes(failed: Sequence[Failure], facts: Facts) -> Iterator[Cause]:
    """Failed flushes of disks of which it is not known that they keep what they acknowledged."""
    for each in failed:
        if each.kind == FLUSHES and not _keeps(each, facts):
            text = f"{each.text}: fsync returned success, and what was written may be lost when the power goes"
            yield Cause(
                "flush-failed", text, (Evidence(each.text, LOG),), _replace(each.disk), "flush-failed-logged", True
            )


def faulty(failed: Sequence[Failure], facts: Facts) -> Iterator[Cause]:
    """Everything else that the kernel logged of a disk of the pool."""
    for each in failed:
        if each.kind != FLUSHES or _keeps(each, facts):
            yield Cause(
                "device-fails", each.text, (Evidence(each.text, LOG),), _replace(each.disk), "drive-path-faults", True
            )


def hung(legs: Sequence[Leg], seconds: float) -> Iterator[Cause]:
    """Devices that completed nothing although they had something to do all the time."""
    for leg in legs:
        if leg.stuck and seconds >= LONG_S:
            many = "one I/O" if leg.stuck == 1 else f"{leg.stuck} I/Os"
            text = f"{leg.device} completed nothing in {seconds:.0f} s, with {many} outstanding: commits wait for it"
            evidence = (Evidence(f"{leg.device}: {many} in flight", f"cat {quoted(f'/sys/block/{leg.device}/stat')}"),)
            yield Cause("device-hung", text, evidence, _replace(leg.device), "", True)


def _keeps(failure: Failure, facts: Facts) -> bool:
    found = facts.get(Subject("disk", failure.disk), "keeps_acknowledged")
    return isinstance(found, Known) and found.value is True


def _replace(device: str) -> str:
    return f"Look at {device}, its cable, path and controller first (smartctl -x, nvme list); replace what fails."


# Causes on the devices that the ZIL writes to. Pure.

PAST = 0.05  # share of the log blocks that may go past the SLOG
FOREIGN = 1.5  # writes on a log device for each log block
COMMITTERS, ALONE = 5, 1.1  # threads that commit, and commits for each log block
ALWAYS_ONE = 0.7  # threads that are in a commit at any moment, on the average


def slow_log_leg(seen: CauseContext) -> Iterator[Cause]:
    for top, legs in legs_of(seen, log=True).items():
        if found := slower_leg(legs):
            yield _slow(seen, "slow-log-leg", f"{seen.kind} {top}", *found, "each commit waits for the slowest leg")


def slow_data_leg(seen: CauseContext) -> Iterator[Cause]:
    """It holds groups and writers up. While a scan runs the legs do not do the same, and are not compared."""
    for top, legs in legs_of(seen, log=False).items():
        if (found := slower_leg(legs)) and not any(in_progress(seen)):
            yield _slow(seen, "slow-data-leg", top, *found, "transaction groups wait for the slowest leg")


def _slow(seen: CauseContext, id: str, where: str, leg: Leg, times: float, why: str) -> Cause:
    took = duration(leg.block_ns or 0)
    text = f"{leg.device} is the slower leg of {where}, {times:.1f} times as slow ({took} for a write and its flush): {why}"
    evidence = (Evidence(f"{leg.device}: {leg.writes} writes, {leg.flushes or 0} flushes", stat(leg.device)),)
    fix = (
        f"Replace {leg.device}, its cable or its controller; until then, with one copy less: "
        f"zpool offline {quoted(seen.pool.name)} {quoted(leg.leaf)}"
    )
    return Cause(id, text, evidence, fix, "", False)


def shared(seen: CauseContext) -> Iterator[Cause]:
    """A log vdev of its own gets log blocks and labels, nothing else."""
    blocks = seen.counted.zil.slog
    if seen.kind != "log" or blocks is None:
        return
    tops = legs_of(seen, log=True)
    for leg in (leg for legs in tops.values() for leg in legs):
        others = leg.writes - blocks
        if others > max((FOREIGN - 1) * blocks, 100):
            beside = word_of(seen.facts.get(Subject("leaf", leg.leaf, seen.pool.name), "disk_neighbours"))
            who = f" ({beside})" if beside else ""
            text = f"{leg.device} does not serve the log alone{who}: {leg.writes:,} writes for at most {blocks:,} log blocks"
            evidence = (Evidence(f"{leg.device}: busy {leg.busy:.0%} of the time", stat(leg.device)),)
            yield Cause(
                "log-device-shared", text, evidence, "Give the log a separate device.", "slog-shared-with-data", False
            )


def past_the_slog(seen: CauseContext) -> Iterator[Cause]:
    zil, total = seen.counted.zil, seen.counted.zil.blocks
    if (
        not any(leg.kind == "log" for leg in seen.counted.legs)
        or not total
        or total < FEW_FLUSHES
        or zil.normal is None
    ):
        return
    past, pointers = zil.normal / total, (zil.indirect or 0) / (zil.commits or total)
    if max(past, pointers) <= PAST:
        return
    what = f"{past:.0%} of the log blocks" if past >= pointers else f"the data of {min(pointers, 1):.0%} of the commits"
    evidence = (
        Evidence(f"{zil.normal} of {total} log blocks", kstat_rows(seen, "zil_itx_metaslab_normal_count")),
        Evidence(f"{zil.indirect or 0} records whose data is elsewhere", kstat_rows(seen, "zil_itx_indirect_count")),
    )
    text = f"{what} bypassed the SLOG and went to the data vdevs"
    yield Cause("past-the-slog", text, evidence, *_back_to_the_slog(seen, past >= pointers), False)


def _back_to_the_slog(seen: CauseContext, blocks: bool) -> tuple[str, str]:
    """(fix, rule). A log block goes elsewhere only where the log class has no room for it (zio_alloc_zil() of zio.c);
    data only with logbias=throughput, and from 2.3 on with Direct I/O (zfs_log_write(), zil_write_state())."""
    if blocks:
        return f"A larger SLOG, or a working one: zpool list -v {quoted(seen.pool.name)}", "slog-unused"
    names = [each.name for each in seen.counted.datasets if each.commits]
    biased = [name for name in names if word_of(seen.facts.get(Subject("dataset", name), "logbias")) == "throughput"]
    if biased:
        return f"zfs set logbias=latency {' '.join(map(quoted, biased))}", "logbias-throughput-log"
    which = " ".join(map(quoted, names))
    return f"Direct I/O goes past a SLOG, as logbias=throughput does: zfs get logbias,direct {which}".rstrip(), (
        "direct-io-bypasses-slog"
    )


def alone(seen: CauseContext) -> Iterator[Cause]:
    zil, blocks = seen.counted.zil, seen.counted.zil.blocks
    if (
        seen.committers is None
        or seen.committers < COMMITTERS
        or not blocks
        or not zil.commits
        or zil.commits < FEW_FLUSHES
    ):
        return
    # those who seldom commit at the same time have nothing to share; commits of several blocks each are no sign
    if seen.waiting >= ALWAYS_ONE and 1 / ALONE < zil.commits / blocks < ALONE:
        counts = f"{zil.commits:,} commits, {blocks:,} blocks"
        text = f"{seen.committers} threads commit one after the other, and no two share a log block: {counts}"
        evidence = (Evidence("commits for each log block", kstat_rows(seen, "zil_commit_count")),)
        yield Cause(
            "no-batching", text, evidence, "Let the database batch its commits (commit_delay or the like).", "", False
        )


def on_special(seen: CauseContext) -> Iterator[Cause]:
    if seen.kind == "special":
        text = "log blocks land on the special vdevs, which serve metadata, too"
        evidence = (Evidence("no log vdev, and special vdevs", status(seen)),)
        yield Cause(
            "zil-on-special", text, evidence, "Add a log vdev where that matters.", "special-acts-as-log", False
        )


# Causes in a pool and on its host. Pure.

FULL = 90  # per cent; from there on allocation looks for the best fit (metaslab_df_free_pct and others)
PRESSED, STARVED = 0.10, 0.50  # share of the time that something waited for memory, for a CPU
WOKEN = 0.25  # share of a commit that is waiting for a CPU
ALWAYS = 0.9  # commits for each write
FORCED_S = 1.0


# -- the pool does not work as it should ----------------------------------------------------------------------------


def suspended(seen: CauseContext) -> Iterator[Cause]:
    if " state: SUSPENDED" in seen.counted.status:
        evidence = (Evidence("the pool is suspended", status(seen)),)
        text = f"{seen.pool.name} is suspended: no commit ends until its devices are back"
        fix = f"Bring its devices back, then zpool clear {quoted(seen.pool.name)}"
        yield Cause("suspended", text, evidence, fix, "pool-suspended", True)


def failing(seen: CauseContext) -> Iterator[Cause]:
    yield from hung(seen.counted.legs, seen.counted.seconds)
    yield from faulty(seen.failed, seen.facts)


def fallbacks(seen: CauseContext) -> Iterator[Cause]:
    for row, count in seen.counted.zil.fallbacks.items():
        text = f"{count:,} commits waited for a whole transaction group: {FALLBACKS[row]}"
        evidence = (Evidence(f"{row} grew by {count}", kstat_rows(seen, row)),)
        yield Cause(
            "fallback", text, evidence, "Find what makes them wait; zpool status and dmesg show errors.", "", True
        )


def always(seen: CauseContext) -> Iterator[Cause]:
    """Where commits are not counted by dataset (OpenZFS 2.1), all of them are those of the one that is written to."""
    written = [each for each in seen.counted.datasets if each.writes]
    for each in written:
        commits = seen.counted.zil.commits if each.commits is None and written == [each] else each.commits
        if word_of(seen.facts.get(Subject("dataset", each.name), "sync")) != "always" or not each.writes or not commits:
            continue
        if each.writes >= FEW_FLUSHES and commits >= ALWAYS * each.writes:
            text = f"sync=always makes each write to {each.name} a commit: {commits:,} for {each.writes:,} writes"
            evidence = (Evidence(f"{each.name}: sync=always", f"zfs get sync {quoted(each.name)}"),)
            fix = f"zfs set sync=standard {quoted(each.name)}, where the database syncs by itself"
            yield Cause("sync-always", text, evidence, fix, "sync-always", True)


# -- the pool and its host ------------------------------------------------------------------------------------------


def throttled(seen: CauseContext) -> Iterator[Cause]:
    """The counters are those of all pools: of several it is not known whose writers they were. (module/zfs/dmu_tx.c)"""
    others = seen.facts.linked(HOST, "imported_pools") != (seen.pool,)
    for row, count in seen.counted.throttles.items():
        if count >= FEW_FLUSHES:
            whose = f"writers of {seen.pool.name} or of another pool" if others else "writers"
            text = f"{whose} were held back {count:,} times: {THROTTLES[row]}"
            evidence = (Evidence(f"{row} grew by {count}", growing(f"grep -w {row} {trial.DMU_TX}")),)
            fix = "Write less at once, or add data vdevs or faster ones; a larger limit only makes stalls rarer and longer."
            yield Cause("throttle", text, evidence, fix, "txg-dirty-throttle", not others)


def scanning(seen: CauseContext) -> Iterator[Cause]:
    pause = f"zpool scrub -p {quoted(seen.pool.name)} pauses it"
    for what in in_progress(seen):
        evidence = (Evidence(f"{what} in progress", status(seen)),)
        text = f"a {what} reads and writes alongside the commits"
        fix = pause if what == "scrub" else "Let it finish: redundancy first."
        yield Cause(what, text, evidence, fix, "resilver-or-scrub-running", False)


def _timeout_s(seen: CauseContext) -> int:
    found = seen.facts.get(HOST, "zfs_txg_timeout")
    return found.value if isinstance(found, Known) and isinstance(found.value, int) else 0


def _txgs(seen: CauseContext) -> str:
    return f"cat {quoted(trial.txgs_path(seen.pool.name))}"


def _syncing(seen: CauseContext) -> tuple[float, bool]:
    """For how long a group was or has been synced, the longest; and whether nothing was written for one that is not done."""
    longest = max((txg.sync_s for txg in seen.counted.txgs), default=0.0)
    if seen.counted.syncing is None:
        return longest, False
    written = sum(leg.writes for legs in legs_of(seen, log=False).values() for leg in legs)
    return max(longest, seen.counted.syncing[1]), not written


def long_groups(seen: CauseContext) -> Iterator[Cause]:
    timeout, (longest, still) = _timeout_s(seen), _syncing(seen)
    if timeout and longest > timeout and not still:
        text = f"a transaction group took {longest:.1f} s to sync, above zfs_txg_timeout ({timeout} s): writes outrun the vdevs"
        evidence = (Evidence(f"stime {longest:.1f} s", _txgs(seen)),)
        fix = "Write less at once, or add data vdevs or faster ones."
        yield Cause("long-txgs", text, evidence, fix, "txg-sync-slow", False)


def unfinished(seen: CauseContext) -> Iterator[Cause]:
    timeout, (longest, still) = _timeout_s(seen), _syncing(seen)
    if seen.counted.syncing and still and longest > max(timeout, LONG_S):
        number = seen.counted.syncing[0]
        text = f"transaction group {number} has been syncing for {longest:.0f} s, and nothing is written: a device may hang"
        evidence = (Evidence(f"transaction group {number} in state S", _txgs(seen)),)
        yield Cause("txg-hangs", text, evidence, "dmesg and zpool events show what waits.", "txg-hangs", True)


def forced_groups(seen: CauseContext) -> Iterator[Cause]:
    ended = [txg.open_s for txg in seen.counted.txgs if txg.sync_s > 0]
    if _timeout_s(seen) > FORCED_S and len(ended) > seen.counted.seconds and median(ended) < FORCED_S:
        text = (
            f"{len(ended)} transaction groups in {seen.counted.seconds:.0f} s: snapshots, destroys, zpool sync or dirty data "
            "close them early"
        )
        evidence = (Evidence(f"open for {median(ended):.2f} s (median)", _txgs(seen)),)
        yield Cause("forced-txgs", text, evidence, f"zpool history -i {quoted(seen.pool.name)} shows which.", "", False)


def starved(seen: CauseContext) -> Iterator[Cause]:
    pressed = seen.counted.pressure.get("cpu", 0.0)
    least, most = seen.woken
    if pressed >= STARVED and most >= WOKEN:
        between = f"{least:.0%} to " if round(least, 2) < round(most, 2) else ""
        text = f"{between}{most:.0%} of the time of a commit is spent waiting for a CPU"
        evidence = (Evidence(f"something waited for a CPU {pressed:.0%} of the time", "cat /proc/pressure/cpu"),)
        yield Cause("cpu", text, evidence, "Free CPUs, or raise the limit of the container.", "", False)


def memory(seen: CauseContext) -> Iterator[Cause]:
    pressed = seen.counted.pressure.get("memory", 0.0)
    if pressed >= PRESSED:
        text = f"something waited for memory {pressed:.0%} of the time"
        evidence = (Evidence(text, "cat /proc/pressure/memory"),)
        yield Cause("memory", text, evidence, "Free memory; zfs_arc_max bounds the ARC.", "", False)


def full(seen: CauseContext) -> Iterator[Cause]:
    found = seen.facts.get(seen.pool, "capacity_percent")
    if isinstance(found, Known) and isinstance(found.value, int) and found.value >= FULL:
        text = f"{seen.pool.name} is {found.value}% full: finding room for a block takes longer"
        evidence = (Evidence(f"capacity {found.value}%", f"zpool list {quoted(seen.pool.name)}"),)
        yield Cause("full", text, evidence, "Free or add space.", "pool-nearly-full", False)


# What stands out, the gravest first: each found by what was counted, or by comparing what should be alike. Pure.
#
# Nothing here is called slow by itself, for nobody knows what the drive promises: a leg is slow beside the other legs of its
# vdev, a transaction group beside zfs_txg_timeout. A healthy pool gives no cause.

FINDERS: tuple[Callable[[CauseContext], Iterator[Cause]], ...] = (
    suspended, failing, unfinished, fallbacks, always, slow_log_leg, shared,
    past_the_slog, slow_data_leg, throttled, alone, scanning, long_groups, forced_groups,
    starved, memory, full, on_special,
)  # fmt: skip
OF_THE_ZIL = (fallbacks, always, past_the_slog, alone)  # rest on what the ZIL counted


def causes(seen: CauseContext) -> tuple[Cause, ...]:
    """All that stand out."""
    return tuple(cause for finder in FINDERS if not (seen.mixed and finder in OF_THE_ZIL) for cause in finder(seen))


# What stands out in the database's own view: each only where its counters say so with certainty. Pure.

MOSTLY = 0.5  # of the backends at work
BEHIND = 5.0  # that wait for one lock at a mean moment
TWO = 2
REPLICA = "ipc syncrep"
TURNS = ("lwlock walwrite", "lwlock walinsert")
ROWS = ("lock transactionid", "lock tuple")


def not_durable(seen: DatabaseFindings | None) -> Iterator[Cause]:
    """A server that syncs nothing."""
    if seen and seen.said and seen.here and seen.said.settings.get("fsync") == "off":
        evidence = (Evidence("the server says fsync = off", "psql -c 'SHOW fsync'"),)
        text = f"{seen.view.engine} runs with fsync = off: its commits wait for nothing to be written"
        fix = (
            "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf(); no -F on its command line. Then sync the file systems "
            "once (sync): what was written before is not flushed by it."
        )
        yield Cause("database-fsync-off", text, evidence, fix, "pg-fsync-off", True)


def of_database(seen: DatabaseFindings | None) -> tuple[Cause, ...]:
    """All that stand out, the gravest first; none of a server elsewhere, whatever it does."""
    if seen is None or seen.said is None or not seen.here:
        return ()
    said, title = seen.said, seen.view.engine
    return (*_checkpoints(said, title), *_waiting(said, title), *_log_buffer(said, title))


def _checkpoints(said: CounterSnapshot, title: str) -> Iterator[Cause]:
    """Requested ones may be somebody's CHECKPOINT; of so much WAL that each but the first had to be, they are not."""
    counts, each, wal = (
        database_counters.checkpoints(said),
        database_counters.trigger(said),
        said.grown("wal", "inserted"),
    )
    if counts is None or each is None or wal is None:
        return
    requested, by_time = counts
    if requested < TWO or requested <= by_time or wal < (requested - 1) * each:
        return
    words = ("max_wal_size", "checkpoint_timeout", "checkpoint_completion_target")
    most, timeout, target = (number(said.settings.get(name)) or 0.0 for name in words)
    whole, table = said.settings.get("full_page_writes") == "on", database_counters.requested(said)[0]
    now = size(most * (1 << 20))
    text = (
        f"{title} made {requested} checkpoints in {said.seconds:.0f} s because its WAL reached max_wal_size ({now}): "
        f"{size(wal)} of it were written{', and pages whole again after each of them' if whole else ''}"
    )
    evidence = (
        Evidence(f"{requested} requested, {by_time} by time", f"psql -xc 'TABLE {table}'"),
        Evidence(f"{size(each)} of WAL cause the next one", "psql -c 'SHOW max_wal_size'"),
    )
    enough = size(wal / said.seconds * timeout * (1 + target))
    fix = f"Raise max_wal_size: at this load {enough} last for checkpoint_timeout ({timeout:.0f} s)."
    yield Cause("checkpoint-storm", text, evidence, fix, "", False)


def _waiting(said: CounterSnapshot, title: str) -> Iterator[Cause]:
    """One kind of wait in which most backends at work were seen."""
    for id, events, text, fix in (
        (
            "standby", (REPLICA,), "wait for a synchronous standby, not for a disk here",
            "Look at the standby and the way to it; pg_stat_replication shows flush_lag.",
        ),
        (
            "row-locks", ROWS, "wait for a row that another transaction holds until its commit is on disk: such commits "
            "go one after another, however many could share a sync",
            "Change fewer hot rows, or change them last in a transaction.",
        ),
        (
            "commits-in-turn", TURNS, "wait for the lock that one holds while it waits for the disk: commits go behind one "
            "another", "A faster log device shortens each turn; commit_delay lets more share one.",
        ),
    ):  # fmt: skip
        together = sum(each for words, (each, _) in said.waits.items() if words.lower() in events)
        if together < FEW or together < MOSTLY * said.active or not said.moments or not said.sees:
            continue
        mean, active = together / said.moments, said.active / said.moments
        if mean < (BEHIND if events == TURNS else TWO):
            continue
        seen = f"{mean:.1f} of {active:.1f} backends at work, in {said.moments} looks"
        yield Cause(
            id,
            f"{mean:.0f} of {active:.0f} backends of {title} {text}",
            (Evidence(seen, database_counters.ACTIVITY),),
            fix,
            "",
            False,
        )


def _log_buffer(said: CounterSnapshot, title: str) -> Iterator[Cause]:
    waits = said.grown("status", "Innodb_log_waits")
    if waits is not None and waits >= FEW:
        text = f"{title} waited {waits:.0f} times for room in its log buffer (innodb_log_buffer_size)"
        evidence = (Evidence(f"Innodb_log_waits grew by {waits:.0f}", database_counters.STATUS),)
        yield Cause("log-buffer", text, evidence, "Raise innodb_log_buffer_size.", "", False)
