"""From what was seen to one answer: durability first, then what stands out, then where the time goes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from auditor.diagnose import causes, counters, histograms, shares
from auditor.diagnose.causes import Seen
from auditor.diagnose.counters import Counted, Leg
from auditor.diagnose.histograms import Thread
from auditor.diagnose.model import Cause, Committed, Committer, Device, Diagnosis, Evidence, Outcome
from auditor.diagnose.observation import KERNEL, Observation, Traced
from auditor.facts import Facts, Subject, word_of
from auditor.text import quoted
from auditor.units import duration
from auditor.verify import witnesses
from auditor.verify.histogram import Histogram
from auditor.verify.result import Slice

FEW = 20  # commits, below which no mean is told as that of a load
AT_ONCE_NS = 50_000  # a commit that waits for any device takes longer than that
TOLD = 5  # commits by which two counts may differ that are not read at the same moment, and this share of them:
TOLERANCE = 0.05


class _Trace(NamedTuple):
    """What the histograms come to. faults: why they are not believed. whole: every commit that was traced is among those of
    the threads."""

    threads: tuple[Thread, ...] = ()
    latency: Histogram = Histogram()
    timeline: tuple[Slice, ...] = ()
    queue_ns: float | None = None
    faults: tuple[str, ...] = ()
    whole: bool = False

    @property
    def commits(self) -> int:
        return sum(each.commits for each in self.threads)

    @property
    def mean_ns(self) -> float | None:
        return sum(each.us for each in self.threads) * 1000 / self.commits if self.commits else None


def diagnose(seen: Observation, facts: Facts) -> Diagnosis:
    """Everything that follows from an observation. facts: of the audit of the same pool. Raises ValueError where a kstat is
    not understood."""
    counted = counters.counted(seen, facts)
    pool = Subject("pool", seen.pool)
    trace = _trace(seen.traced, seen.before.at) if seen.traced else _Trace()
    where = _datasets_of(trace.threads, counted, facts)
    kind = _kind(counted, facts, pool)
    parts = _parts(trace, counted, kind, seen)
    found = shares.shares(parts) if parts else shares.Shares((), 0.0, "")
    woken = (parts.wake or 0.0) / parts.commit if parts and parts.commit else 0.0
    standing = causes.causes(Seen(counted, facts, pool, kind, _crowd(trace.threads), woken))
    lost = _not_durable(counted, facts, trace, where)
    committers = _committers(trace.threads, where, seen)
    reasons = (*counted.fell, *trace.faults, *_disagree(counted, trace, lost), found.why_not)
    outcome, answer, reasons = _answer(
        seen, counted, trace, found, (*lost, *standing), committers, tuple(each for each in reasons if each), kind
    )
    return Diagnosis(
        target=seen.target,
        pool=seen.pool,
        taken=seen.before.at,
        seconds=round(counted.seconds, 3),
        outcome=outcome,
        answer=answer,
        reasons=reasons,
        commits=counted.zil.commits,
        blocks=counted.zil.blocks,
        traced=trace.commits if trace.whole else None,
        mean_ns=trace.mean_ns,
        latency=trace.latency,
        timeline=trace.timeline,
        txgs=counted.txgs,
        shares=found.shares,
        overlap=found.overlap,
        committers=committers,
        datasets=_datasets(counted, facts),
        devices=tuple(_device(leg, kind) for leg in counted.legs),
        causes=(*lost, *standing),
        commands=_commands(seen, counted),
    )


# -- the trace ----------------------------------------------------------------------------------------------------


def _trace(traced: Traced, began: float) -> _Trace:
    faults = []
    if traced.missed is None:
        faults.append("the kernel did not say whether it traced every commit")
    elif traced.missed:
        faults.append(f"the kernel did not trace {traced.missed} calls")
    if not histograms.whole(traced.commits) or not all(histograms.whole(tick.commits) for tick in traced.ticks):
        faults.append("a histogram of the kernel had no room for all that came")
    threads, queued = histograms.threads(traced.commits), histograms.threads(traced.queue)
    if unread := threads.unread + queued.unread:
        faults.append(f"{unread} entries of the kernel's histograms of threads could not be read")
    latency, timeline = Histogram(), tuple[Slice, ...]()
    try:
        latency = histograms.latencies(traced.ticks[-1].commits) if traced.ticks else latency
        timeline = histograms.slices(began, traced.ticks)
    except ValueError as error:
        faults.append(str(error))
    commits, writers = (sum(each.commits for each in found.rows) for found in (threads, queued))
    # who finds its records in somebody else's block never waits for a turn of its own
    queue = sum(each.us for each in queued.rows) * 1000 / commits if commits and writers >= 0.5 * commits else None
    whole = histograms.whole(traced.commits) and not threads.unread
    return _Trace(threads.rows, latency, timeline, queue, tuple(faults), whole)


def _crowd(threads: Sequence[Thread]) -> int | None:
    """Threads that commit to the busiest ZIL."""
    crowds: dict[int, int] = {}
    for each in threads:
        if each.commits >= FEW:
            crowds[each.zil] = crowds.get(each.zil, 0) + 1
    return max(crowds.values(), default=None)


def _close(one: int, other: int) -> bool:
    return abs(one - other) <= max(TOLD, TOLERANCE * max(one, other))


def _datasets_of(threads: Sequence[Thread], counted: Counted, facts: Facts) -> dict[int, str]:
    """ZIL -> the one dataset whose count of commits is like that of the ZIL. One that no count fits is that of the dataset
    with sync=disabled, where there is only one that is written to: its commits are not counted."""
    sums: dict[int, int] = {}
    for each in threads:
        sums[each.zil] = sums.get(each.zil, 0) + each.commits
    sums.pop(0, None)
    found: dict[int, str] = {}
    fits = {
        zil: [each.name for each in counted.datasets if each.commits and _close(each.commits, commits)]
        for zil, commits in sums.items()
    }
    for zil, names in fits.items():
        if len(names) == 1 and sum(names[0] in others for others in fits.values()) == 1:
            found[zil] = names[0]
    silent = _silent(counted, facts)
    left = [zil for zil, names in fits.items() if not names]
    if len(silent) == 1 and len(left) == 1:
        found[left[0]] = silent[0]
    return found


def _silent(counted: Counted, facts: Facts) -> list[str]:
    """Datasets with sync=disabled that were written to."""
    return [
        each.name
        for each in counted.datasets
        if each.writes and word_of(facts.get(Subject("dataset", each.name), "sync")) == "disabled"
    ]


# -- where the time goes ------------------------------------------------------------------------------------------


def _kind(counted: Counted, facts: Facts, pool: Subject) -> str:
    """The class of vdevs on which most log blocks landed; without counts that on which they can."""
    chosen, zil = word_of(facts.get(pool, "zil_class")), counted.zil
    if zil.slog is None or zil.normal is None or not zil.blocks:
        return chosen
    if zil.slog >= zil.normal:
        return "log"
    return "special" if chosen == "special" else "normal"


def _parts(trace: _Trace, counted: Counted, kind: str, seen: Observation) -> shares.Parts | None:
    """The parts of a mean commit; None without a trace, or with too few of them. The slowest leg of a vdev counts, and where
    there are several vdevs each as often as it was written to."""
    if trace.mean_ns is None or trace.commits < FEW or trace.faults:
        return None
    tops: dict[str, list[Leg]] = {}
    for leg in counted.legs:
        if leg.kind == kind and leg.writes:
            tops.setdefault(leg.top, []).append(leg)
    weights = [max(leg.writes for leg in legs) for legs in tops.values()]

    def mean(field: str) -> float | None:
        slowest = [max((getattr(leg, field) or 0.0) for leg in legs) for legs in tops.values()]
        told = [getattr(leg, field) for legs in tops.values() for leg in legs]
        if not any(each is not None for each in told):
            return None
        return sum(ns * weight for ns, weight in zip(slowest, weights, strict=True)) / sum(weights)

    waited = [each.waited for each in seen.processes if each.waited is not None]
    wake = min(sum(waited) / trace.commits, trace.mean_ns) if waited else None
    blocks = counted.zil.blocks
    pipeline = seen.pipeline / blocks if seen.pipeline is not None and blocks else None
    found = (mean("write_ns"), mean("flush_ns"), mean("both_ns"))
    return shares.Parts(trace.mean_ns, trace.queue_ns, *found, pipeline, wake)


def _device(leg: Leg, kind: str) -> Device:
    return Device(
        device=leg.device,
        leaf=leg.leaf,
        top=leg.top,
        kind=leg.kind,
        log=leg.kind == kind,
        writes=leg.writes,
        flushes=leg.flushes,
        write_ns=leg.write_ns,
        flush_ns=leg.flush_ns,
        block_ns=leg.block_ns,
        busy=round(leg.busy, 4),
    )


# -- who ----------------------------------------------------------------------------------------------------------


def _committers(threads: Sequence[Thread], where: dict[int, str], seen: Observation) -> tuple[Committer, ...]:
    known = {each.pid: each for each in seen.processes}
    whole = sum(each.us for each in threads) or 1
    found = [
        Committer(
            pid=each.pid,
            name=each.name,
            role=known[each.pid].role if each.pid in known else "",
            within=known[each.pid].within if each.pid in known else "",
            dataset=where.get(each.zil, ""),
            commits=each.commits,
            mean_ns=each.us * 1000 / each.commits if each.commits else 0.0,
            part=each.us / whole,
        )
        for each in threads
    ]
    return tuple(sorted(found, key=lambda each: (-each.part, -each.commits, each.pid)))


def _datasets(counted: Counted, facts: Facts) -> tuple[Committed, ...]:
    found = [
        Committed(each.name, each.commits, word_of(facts.get(Subject("dataset", each.name), "sync")))
        for each in counted.datasets
        if each.commits or each.writes
    ]
    return tuple(sorted(found, key=lambda each: (-(each.commits or 0), each.dataset)))


def label(committer: Committer) -> str:
    """postgres (walwriter); a zvol by its name, whose commits a thread of the kernel makes."""
    if committer.role == KERNEL and committer.name.startswith("zvol"):
        return f"a zvol ({committer.dataset})" if committer.dataset else "a zvol"
    if committer.role == KERNEL and committer.name == "nfsd":
        return "the NFS server"
    return f"{committer.name} ({committer.role})" if committer.role else committer.name


# -- durability first ---------------------------------------------------------------------------------------------


def _not_durable(counted: Counted, facts: Facts, trace: _Trace, where: dict[int, str]) -> tuple[Cause, ...]:
    """Datasets whose syncs return without having written anything. O_DSYNC comes as far as zil_commit(), which returns at once;
    fsync does not: zfs_fsync() of module/zfs/zfs_vnops.c looks at the property first, so that no trace of it is no sign."""
    found = []
    for name in _silent(counted, facts):
        evidence = [Evidence(f"{name}: sync=disabled", f"zfs get sync {quoted(name)}")]
        own = [each for each in trace.threads if where.get(each.zil) == name]
        commits = sum(each.commits for each in own)
        if commits:
            mean = duration(sum(each.us for each in own) * 1000 / commits)
            text = f"{name}: {commits} syncs returned after {mean} each, without writing anything"
            evidence.append(Evidence("none of them is counted by the ZIL", ""))
        else:
            text = f"{name} is written to, and a sync there returns without writing anything"
        fix = f"zfs set sync=standard {quoted(name)}"
        found.append(Cause("sync-disabled", text, tuple(evidence), fix, "sync-disabled", True))
    return tuple(found)


# -- the answer ---------------------------------------------------------------------------------------------------


def _disagree(counted: Counted, trace: _Trace, lost: Sequence[Cause]) -> tuple[str, ...]:
    """Where the ZIL counted something else than the trace. Syncs that do nothing are not counted by it."""
    commits = counted.zil.commits
    if not trace.threads or not trace.whole or commits is None or lost or _close(commits, trace.commits):
        return ()
    return (
        f"the kernel traced {trace.commits} commits, those of other pools among them, and the ZIL counted {commits}",
    )


def _answer(
    seen: Observation,
    counted: Counted,
    trace: _Trace,
    found: shares.Shares,
    standing: Sequence[Cause],
    committers: Sequence[Committer],
    reasons: tuple[str, ...],
    kind: str,
) -> tuple[Outcome, str, tuple[str, ...]]:
    if standing and standing[0].id == "sync-disabled":
        return "NOT DURABLE", standing[0].text, reasons
    commits = trace.commits if trace.whole else counted.zil.commits
    if commits is None:
        return "INCONCLUSIVE", "whether anybody commits could not be seen", reasons
    rate = f"{commits / counted.seconds:,.0f} commits/s"
    if standing and (standing[0].decisive or not reasons):
        text = standing[0].text
        if standing[0].id == "slow-log-leg" and found.shares:
            text = f"{_sentence(counted, trace, found, committers, kind)}: {text}"
        return "CAUSE", text, (*reasons, *_unseen(seen))
    if commits < FEW and not reasons:
        return "NOBODY COMMITS", f"{commits} commits in {counted.seconds:.0f} s: nobody waits for one here", reasons
    if reasons:
        return "INCONCLUSIVE", f"{rate}; where their time goes could not be told: {reasons[0]}", reasons
    if not seen.traced:
        text = f"{rate}; nothing that is counted stands out, and how long one takes was not seen"
        return "INCONCLUSIVE", text, _unseen(seen)
    return "NOTHING STANDS OUT", _sentence(counted, trace, found, committers, kind), reasons


def _unseen(seen: Observation) -> tuple[str, ...]:
    return (f"how long a commit takes was not seen: {seen.untraced}",) if seen.untraced else ()


def _sentence(counted: Counted, trace: _Trace, found: shares.Shares, committers: Sequence[Committer], kind: str) -> str:
    """postgres (walwriter) waits 24 ms of each 27 ms commit for the flush of nvme3n1."""
    most = shares.longest(found)
    first = committers[0]
    who = label(first) if first.part >= 0.5 or len(committers) == 1 else f"{len(committers)} threads"
    if most is None or trace.mean_ns is None:
        return f"{who}: {trace.commits} commits"
    legs = [leg for leg in counted.legs if leg.kind == kind and leg.block_ns is not None]
    slowest = max(legs, key=lambda leg: leg.block_ns or 0, default=None)
    device = f" of {slowest.device}" if slowest else ""
    what = {
        "queue": "its turn, behind earlier log blocks",
        "log write": f"the log block to be written{device.replace(' of ', ' to ')}",
        "flush": f"the flush{device}",
        "log write and flush": f"the write and flush{device}",
        "pipeline": "threads of OpenZFS to pass its log block on",
        "wake-up": "a CPU",
    }[most.what]
    verb = "wait" if who.endswith("threads") else "waits"
    return f"{who} {verb} {duration(most.ns)} of each {duration(trace.mean_ns)} commit for {what}"


def _commands(seen: Observation, counted: Counted) -> tuple[str, ...]:
    """What shows the same again."""
    devices = " ".join(quoted(f"/sys/block/{leg.device}/stat") for leg in counted.legs)
    return (
        f"zaudit diagnose {quoted(seen.target)}",
        f"cat {quoted(f'/proc/spl/kstat/zfs/{seen.pool}')}/objset-0x*",
        *([f"cat {devices}"] if devices else []),
        f"cat {quoted(witnesses.txgs_path(seen.pool))} {witnesses.DMU_TX}",
    )
