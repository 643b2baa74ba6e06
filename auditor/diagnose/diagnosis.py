"""From what was seen to one answer: durability first, then what stands out, then where the time goes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from auditor.diagnose import causes, counters, database, database_causes, failing, shares
from auditor.diagnose.answer import Basis, answer
from auditor.diagnose.calls import Called, called
from auditor.diagnose.commits import FEW, Trace, crowd, datasets_of, disagree, mixed, of_kernel, silent, traced
from auditor.diagnose.counters import Counted, Leg
from auditor.diagnose.histograms import Thread
from auditor.diagnose.model import Cause, Committed, Committer, Device, Diagnosis, Evidence
from auditor.diagnose.observation import KERNEL, Observation, service
from auditor.diagnose.own import own
from auditor.diagnose.seen import Seen
from auditor.diagnose.waiting import stacked
from auditor.facts import Facts, Subject, word_of
from auditor.text import quoted
from auditor.units import duration
from auditor.verify import witnesses
from auditor.verify.failures import Failure, logged_of


def diagnose(seen: Observation, facts: Facts) -> Diagnosis:
    """Everything that follows from an observation. facts: of the audit of the same pool. Raises ValueError where a kstat is
    not understood."""
    counted = counters.counted(seen, facts)
    pool = Subject("pool", seen.pool)
    trace = traced(seen.traced, seen.before.at) if seen.traced else Trace()
    where = datasets_of(trace.threads, counted, facts, of_kernel(seen, trace.threads))
    others = mixed(counted, pool, facts)
    kind = word_of(facts.get(pool, "zil_class")) if others else log_class(counted, facts, pool)
    parts = _parts(trace, counted, kind, seen)
    found = shares.shares(parts) if parts else shares.Shares((), 0.0, "")
    alone = crowd(trace.threads) == 1
    woken = shares.woken(parts, found, alone) if parts else (0.0, 0.0)
    failed, unlogged = _failed(seen, facts)
    theirs = database.seen(seen, facts, trace)
    busy = trace.commits * (trace.mean_ns or 0.0) / 1e9 / counted.seconds
    standing = causes.causes(Seen(counted, facts, pool, kind, crowd(trace.threads), busy, woken, failed, bool(others)))
    standing = (*standing, *database_causes.causes(theirs))
    lost = (
        *_not_durable(counted, facts, trace, where),
        *failing.flushes(failed, facts),
        *database_causes.not_durable(theirs),
    )
    stacks = stacked(seen, counted, facts)
    told, mine = own(seen, trace, facts, where, stacks)
    how = called(seen.traced, trace.threads, disabled=bool(silent(counted, facts, idle=True)))
    committers = _committers(trace.threads, where, seen, mine, how)
    late = max(seen.after.at - seen.traced.ticks[-1].at, 0.0) if seen.traced and seen.traced.ticks else 0.0
    differs = theirs.differs if theirs and not lost else ""
    reasons = (*counted.fell, *trace.faults, others, *disagree(counted, trace, lost, late), differs, found.why_not)
    outcome, sentence, reasons = answer(
        Basis(
            seen=seen,
            counted=counted,
            trace=trace,
            found=found,
            lost=lost,
            standing=standing,
            committers=committers,
            alone=alone,
            reasons=tuple(each for each in reasons if each),
            kind=kind,
            unlogged=unlogged,
            stacks=stacks,
        )
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
        database=theirs.view if theirs else None,
        own=told,
        stacked=stacks,
        held=counted.held,
        calls=how.whole,
        uncalled=how.why_not,
    )


def _failed(seen: Observation, facts: Facts) -> tuple[tuple[Failure, ...], str]:
    """What the kernel logged of the pool's disks meanwhile, and where nothing was, why it may all the same."""
    try:
        return logged_of(seen.logged, witnesses.disks(Subject("pool", seen.pool), facts), facts)
    except ValueError as error:
        return (), str(error)


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
    """The parts of a mean commit; None without a trace, or with too few of them."""
    if trace.mean_ns is None or trace.commits < FEW or trace.faults:
        return None
    # a thread of the kernel waits for a CPU on other I/O, too
    waited = [each.waited for each in seen.processes if each.waited is not None and each.role != KERNEL]
    wake = min(max(sum(waited), 0) / trace.commits, trace.mean_ns) if waited else None
    blocks, indirect = counted.zil.blocks, counted.zil.indirect
    pipeline = max(seen.pipeline, 0) / blocks if seen.pipeline is not None and blocks else None
    write, flush, both = _means([leg for leg in counted.legs if leg.kind == kind])
    # a record may point to its data, which is written to the data vdevs before its log block is (WR_INDIRECT in zil.c)
    before, _, before_both = _means([leg for leg in counted.legs if leg.kind == "normal"])
    ahead = before if before is not None else before_both
    data = ahead * min(indirect / trace.commits, 1.0) if indirect and ahead is not None else None
    return shares.Parts(trace.mean_ns, trace.queue_ns, write, flush, both, pipeline, wake, data)


def _means(legs: Sequence[Leg]) -> tuple[float | None, float | None, float | None]:
    """Nanoseconds of a write, of a flush, and of both where they are counted together: of each vdev that of the slowest leg,
    and each vdev as often as it was written to."""
    tops: dict[str, list[Leg]] = {}
    for leg in legs:
        if leg.writes:
            tops.setdefault(leg.top, []).append(leg)
    weights = [max(leg.writes for leg in each) for each in tops.values()]
    # a device that counts its write and flush together stands for its vdev where it is the slowest, and for nothing elsewhere
    slowest = [max(each, key=lambda leg: leg.block_ns or 0.0) for each in tops.values()]
    judged = [
        [worst] if worst.both_ns is not None else [leg for leg in each if leg.both_ns is None]
        for worst, each in zip(slowest, tops.values(), strict=True)
    ]

    def mean(field: str) -> float | None:
        longest = [max((getattr(leg, field) or 0.0) for leg in each) for each in judged]
        if not any(getattr(leg, field) is not None for each in judged for leg in each):
            return None
        return sum(ns * weight for ns, weight in zip(longest, weights, strict=True)) / sum(weights)

    return mean("write_ns"), mean("flush_ns"), mean("both_ns")


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
    threads: Sequence[Thread], where: dict[int, str], seen: Observation, own: Collection[Thread], how: Called
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
            service=service(each.name, known[each.pid].role) if each.pid in known else "",
            calls=how.rows.get(each),
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
