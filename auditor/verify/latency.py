"""What a run says of latency, and when it says nothing: no verdict where too few samples lie beyond a percentile, where a
run was not honest, or while it is not certain that a sync means anything."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.units import duration
from auditor.verify.histogram import LEAST_BEYOND, Histogram, together
from auditor.verify.model import Judgement, Latency, Percentile, Slo
from auditor.verify.result import Device, Run

SHOWN = (0.5, 0.95, 0.99, 0.999)
WITH_OBJECTIVE = ("log", "binlog", "together")  # where a session waits for a commit
SLOW = 10  # times the median
MEANINGLESS = "a sync means nothing here: its time does not matter"
CPU_BUSY, MOST_OF_IT = 80.0, 0.6


def judge(run: Run, objectives: Sequence[Slo], why_not: str) -> Latency:
    """why_not: why nothing of this run is judged, or empty. Where a sync means nothing, neither do commits per second and what
    they wait for."""
    limits = {slo.q: slo.limit_ns for slo in objectives} if run.purpose in WITH_OBJECTIVE else {}
    latency = run.log.latency if run.jobs else Histogram()
    median = latency.percentile_ns(0.5)
    percentiles = tuple(_percentile(latency, q, limits.get(q), why_not) for q in sorted({*SHOWN, *limits}))
    if why_not == MEANINGLESS:
        return Latency(run.name, percentiles, None, None, "", "", why_not)
    return Latency(
        run=run.name,
        percentiles=percentiles,
        commits_per_s=round(1e9 / median, 1) if median else None,
        at_slo=_at_objective(run, limits),
        tail=_tail(run, median) if median else "",
        bottleneck=_bottleneck(run),
        why_not=why_not,
    )


def _percentile(latency: Histogram, q: float, limit: int | None, why_not: str) -> Percentile:
    ns, beyond = latency.judged(q), latency.beyond(q)
    judgement: Judgement = "not judged"
    why = why_not
    if ns is None:
        why = f"{beyond} samples beyond it, {LEAST_BEYOND} are needed"
    elif limit is None:
        why = why or "no objective"
    elif not why_not:
        judgement = "met" if ns <= limit else "missed"
    return Percentile(q, ns, beyond, limit, judgement, why)


def _at_objective(run: Run, limits: dict[float, int]) -> float | None:
    """Syncs per second over the intervals that kept every objective; None without objectives or such intervals."""
    if not limits:
        return None
    kept = [
        each
        for each in run.timeline
        if each.syncs.samples and all(each.syncs.share_above(limit) <= 1 - q + 1e-9 for q, limit in limits.items())
    ]
    seconds = sum(each.to_s - each.at_s for each in kept)
    return round(sum(each.syncs.samples for each in kept) / seconds, 1) if seconds > 0 else None


def _tail(run: Run, median: int) -> str:
    """Whether the slow syncs come when transaction groups are synced, by the intervals in which that happened."""
    if not run.txgs or len(run.timeline) < 10:
        return ""
    syncing = [(txg.at_s + txg.open_s, txg.at_s + txg.open_s + txg.sync_s) for txg in run.txgs if txg.sync_s > 0]
    during = [each for each in run.timeline if any(begin < each.to_s and end > each.at_s for begin, end in syncing)]
    slow_all = _slow(together(each.syncs for each in run.timeline), median)
    slow_during = _slow(together(each.syncs for each in during), median)
    time_during = sum(each.to_s - each.at_s for each in during) / max(run.timeline[-1].to_s, 1e-9)
    if slow_all < LEAST_BEYOND or time_during > 0.8:
        return ""
    share = slow_during / slow_all
    if share < 0.8:
        return ""
    return (
        f"{share:.0%} of the syncs slower than {duration(SLOW * median)} fell into the {time_during:.0%} of the time "
        "in which a transaction group was written: the tail is theirs"
    )


def _slow(latency: Histogram, median: int) -> int:
    return sum(count for ns, count in latency.counts if ns > SLOW * median)


def _bottleneck(run: Run) -> str:
    """Where the time of a sync goes, from the counters of the devices and of the throttle."""
    if not run.jobs or not run.log.syncs or not run.log.latency.counts:
        return ""
    job = run.log
    held = run.counters.get("dmu_tx_dirty_delay", 0) + run.counters.get("dmu_tx_dirty_over_max", 0)
    if held:
        return (
            f"the write throttle held back {held} transactions: dirty data comes in faster than the data vdevs take it"
        )
    if job.cpu_percent > CPU_BUSY:
        return f"the processor: the job kept one core busy for {job.cpu_percent:.0f} % of the time"
    mean = sum(ns * count for ns, count in job.latency.counts) / job.latency.samples
    slowest = max((each for each in run.devices if each.zil), key=_busy_ms, default=None)
    if slowest is None:
        return ""
    each = _busy_ms(slowest) * 1e6 / job.syncs
    flush = (slowest.flush_ms or 0) * 1e6 / job.syncs
    what = "log device" if slowest.allocation_class == "log" else f"{slowest.allocation_class} vdevs"
    takes = f"{slowest.disk} takes {duration(each)} of the {duration(mean)} of a sync"
    if each >= MOST_OF_IT * mean:
        return f"the {what}: {takes}, {duration(flush)} of it to flush"
    return f"not the {what}: {takes}; the rest is spent above it"


def _busy_ms(device: Device) -> int:
    return device.write_ms + (device.flush_ms or 0)
