"""From what was seen to one answer: durability first, then what stands out, then where the time goes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from auditor.diagnose import causes, counters, shares
from auditor.diagnose.answer import answer
from auditor.diagnose.causes import Seen
from auditor.diagnose.commits import FEW, Trace, crowd, datasets_of, disagree, silent, traced
from auditor.diagnose.counters import Counted, Leg
from auditor.diagnose.histograms import Thread
from auditor.diagnose.model import Cause, Committed, Committer, Device, Diagnosis, Evidence
from auditor.diagnose.observation import Observation
from auditor.diagnose.own import own
from auditor.diagnose.waiting import stacked
from auditor.facts import Facts, Subject, word_of
from auditor.text import quoted
from auditor.units import duration
from auditor.verify import witnesses


def diagnose(seen: Observation, facts: Facts) -> Diagnosis:
    """Everything that follows from an observation. facts: of the audit of the same pool. Raises ValueError where a kstat is
    not understood."""
    counted = counters.counted(seen, facts)
    pool = Subject("pool", seen.pool)
    trace = traced(seen.traced, seen.before.at) if seen.traced else Trace()
    where = datasets_of(trace.threads, counted, facts)
    kind = log_class(counted, facts, pool)
    parts = _parts(trace, counted, kind, seen)
    found = shares.shares(parts) if parts else shares.Shares((), 0.0, "")
    woken = (parts.wake or 0.0) / parts.commit if parts and parts.commit else 0.0
    standing = causes.causes(Seen(counted, facts, pool, kind, crowd(trace.threads), woken))
    lost = _not_durable(counted, facts, trace, where)
    stacks = stacked(seen, counted, facts)
    told, mine = own(seen, trace, facts, where, stacks)
    committers = _committers(trace.threads, where, seen, mine)
    reasons = (*counted.fell, *trace.faults, *disagree(counted, trace, lost), found.why_not)
    outcome, sentence, reasons = answer(
        seen,
        counted,
        trace,
        found,
        (*lost, *standing),
        committers,
        tuple(each for each in reasons if each),
        kind,
        stacks,
    )
    return Diagnosis(
        target=seen.target,
        pool=seen.pool,
        taken=seen.before.at,
        seconds=round(counted.seconds, 3),
        outcome=outcome,
        answer=sentence,
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
        own=told,
        stacked=stacks,
    )


# -- where the time goes ------------------------------------------------------------------------------------------


def log_class(counted: Counted, facts: Facts, pool: Subject) -> str:
    """The class of vdevs on which most log blocks landed; without counts that on which they can."""
    chosen, zil = word_of(facts.get(pool, "zil_class")), counted.zil
    if zil.slog is None or zil.normal is None or not zil.blocks:
        return chosen
    if zil.slog >= zil.normal:
        return "log"
    return "special" if chosen == "special" else "normal"


def _parts(trace: Trace, counted: Counted, kind: str, seen: Observation) -> shares.Parts | None:
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


def _committers(
    threads: Sequence[Thread], where: dict[int, str], seen: Observation, own: Collection[Thread]
) -> tuple[Committer, ...]:
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
            own=each in own,
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


# -- durability first ---------------------------------------------------------------------------------------------


def _not_durable(counted: Counted, facts: Facts, trace: Trace, where: dict[int, str]) -> tuple[Cause, ...]:
    """Datasets whose syncs return without having written anything. O_DSYNC comes as far as zil_commit(), which returns at once;
    fsync does not: zfs_fsync() of module/zfs/zfs_vnops.c looks at the property first, so that no trace of it is no sign."""
    found = []
    for name in silent(counted, facts):
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


def _commands(seen: Observation, counted: Counted) -> tuple[str, ...]:
    """What shows the same again."""
    devices = " ".join(quoted(f"/sys/block/{leg.device}/stat") for leg in counted.legs)
    return (
        f"zaudit diagnose {seen.named.pid if seen.named else quoted(seen.target)}",
        f"cat {quoted(f'/proc/spl/kstat/zfs/{seen.pool}')}/objset-0x*",
        *([f"cat {devices}"] if devices else []),
        f"cat {quoted(witnesses.txgs_path(seen.pool))} {witnesses.DMU_TX}",
    )
