"""From an observation to one diagnosis: its figures, its causes, and the answer in one sentence. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from auditor.diagnose import causes, database_counters, diagnosis, observation
from auditor.diagnose import commits as diagnose_commits
from auditor.diagnose.causes import CauseContext
from auditor.diagnose.commits import FEW, Histograms, Thread, Trace, datasets_of, disagree, of_kernel, silent, traced
from auditor.diagnose.observation import KERNEL, Counters, Leg, Observation, Process, service
from auditor.facts import HOST, Facts, Subject, is_true
from auditor.text import duration, quoted
from auditor.verify import trial
from auditor.verify.chain import Failure, logged_of
from auditor.verify.result import Histogram
from auditor.verify.trial import UNLOGGED, Reading

# One sentence of what was found, and which outcome it is. Pure.


def answer(
    seen: Observation, found: diagnosis.Diagnosis, shares: diagnosis.Shares, lost: int, alone: bool, unlogged: str
) -> tuple[diagnosis.Outcome, str, tuple[str, ...]]:
    """The outcome, one sentence, and the reasons for it, or what else was not seen. lost: how many causes say that syncs
    are not durable. alone: one thread commits. unlogged: why the kernel's log was not seen."""
    reasons, standing = found.reasons, found.causes[lost:]
    if lost:
        return "NOT DURABLE", found.causes[0].text, reasons
    commits = found.commits if found.traced is None else found.traced
    if commits is None:
        return "INCONCLUSIVE", "whether anybody commits could not be seen", reasons
    seconds = seen.after.at - seen.before.at
    rate = f"{commits / seconds:,.0f} commits/s"
    unseen = (*([f"how long a commit takes was not seen: {seen.untraced}"] if seen.untraced else []),)
    unseen += (f"whether a device failed was not seen: {unlogged}",) if unlogged else ()
    if standing and (standing[0].decisive or not reasons):
        text = standing[0].text
        if shares.shares and not shares.why_not:
            took = _sentence(found, shares, alone)
            text = f"{took}: {text}" if standing[0].id == "slow-log-leg" else f"{text}; {took}"
        return "CAUSE", text, (*reasons, *unseen)
    if reasons:
        return "INCONCLUSIVE", f"{rate}; where their time goes could not be told: {reasons[0]}", reasons
    if commits < FEW and not found.txgs:  # an imported pool has one that is open
        text = f"{commits} commits in {seconds:.0f} s, and whether one hangs was not seen"
        return "INCONCLUSIVE", text, (f"no transaction group of {seen.pool} was seen (zfs_txg_history)",)
    if commits < FEW:
        return "NOBODY COMMITS", f"{commits} commits in {seconds:.0f} s: no program waits for one here", reasons
    if not seen.traced:
        text = f"{rate}; nothing that is counted stands out, and how long one takes was not seen"
        return "INCONCLUSIVE", text, unseen
    sentence = _sentence(found, shares, alone)
    if unlogged:
        return "INCONCLUSIVE", f"{sentence}; nothing that was seen stands out", unseen
    return "NOTHING STANDS OUT", sentence, reasons


def _sentence(found: diagnosis.Diagnosis, shares: diagnosis.Shares, alone: bool) -> str:
    """postgres (walwriter) waits 24 ms of each 27 ms commit for the flush of nvme3n1."""
    most, who = diagnosis.longest(shares), _most(found.committers)
    if most is None or found.mean_ns is None:
        return f"{who}: {sum(each.commits for each in found.committers)} commits"
    legs = [leg for leg in found.devices if leg.log and leg.block_ns is not None]
    slowest = max(legs, key=lambda leg: leg.block_ns or 0, default=None)
    of, to = (f" of {slowest.device}", f" to {slowest.device}") if slowest else ("", "")
    what = {
        "queue": "its log block to be filled and issued" if alone else "its turn, behind earlier log blocks",
        "data write": "its data to be written, before the log block that points to it",
        "log write": f"the log block to be written{to}",
        "flush": f"the flush{of}",
        "log write and flush": f"the write and flush{of}",
        "pipeline": "threads of OpenZFS to pass its log block on",
        "wake-up": "a CPU",
    }[most.what]
    verb = "wait" if " threads" in who else "waits"
    return f"{who} {verb} {duration(most.ns)} of each {duration(found.mean_ns)} commit for {what}"


def _most(committers: Sequence[diagnosis.Committer]) -> str:
    """Who spends most time in commits: a thread, or those of one name and place with half of it; else how many."""
    alike: dict[tuple[str, str, str], list[diagnosis.Committer]] = {}
    for each in committers:
        alike.setdefault((label(each), each.within, each.dataset), []).append(each)
    (name, *_), most = max(alike.items(), key=lambda each: sum(one.part for one in each[1]))
    if sum(each.part for each in most) < 0.5:
        return f"{len(committers)} threads"
    of_kernel = all(each.role == KERNEL for each in most)
    return name if len(most) == 1 or of_kernel else f"{len(most)} threads of {name}"


def label(committer: diagnosis.Committer) -> str:
    """postgres (walwriter); a zvol by its name, whose commits a thread of the kernel makes."""
    kind = service(committer.name, committer.role)
    if kind == "zvol":
        return f"a zvol ({committer.dataset})" if committer.dataset else "a zvol"
    if kind == "nfsd":
        return "the NFS server"
    return f"{committer.name} ({committer.role})" if committer.role else committer.name


# From an observation to one answer: durability first, then what stands out, then where the time goes.


def diagnose(seen: Observation, facts: Facts) -> diagnosis.Diagnosis:
    """Everything that follows from an observation. facts: of the audit of the pool. Raises ValueError for a bad kstat."""
    counted = observation.counted(seen, facts)
    pool = Subject("pool", seen.pool)
    trace = traced(seen.traced, seen.before.at) if seen.traced else Trace()
    where = datasets_of(trace.threads, counted, facts, of_kernel(seen, trace.threads))
    others = diagnose_commits.mixed(counted, pool, facts)
    kind = facts.get(pool, "zil_class").word() if others else log_class(counted, facts, pool)
    parts = _parts(trace, counted, kind, seen)
    found = diagnosis.shares(parts) if parts else diagnosis.Shares((), 0.0, "")
    alone = diagnose_commits.crowd(trace.threads) == 1
    woken = diagnosis.woken(parts, found, alone) if parts else (0.0, 0.0)
    failed, unlogged = tuple[Failure, ...](), ""
    try:
        failed, unlogged = logged_of(seen.logged, trial.disks(pool, facts), facts)
    except ValueError as error:
        unlogged = str(error)
    theirs = database_counters.compare_database(seen, facts, trace)
    busy = trace.commits * (trace.mean_ns or 0.0) / 1e9 / counted.seconds
    standing = causes.causes(
        CauseContext(
            counted, facts, pool, kind, diagnose_commits.crowd(trace.threads), busy, woken, failed, bool(others)
        )
    )
    standing = (*standing, *causes.of_database(theirs))
    lost = (*_not_durable(counted, facts, trace, where), *causes.flushes(failed, facts), *causes.not_durable(theirs))
    told, mine = diagnose_commits.attribute_to_process(seen, trace, facts, where)
    committers = _committers(trace.threads, where, seen, mine)
    late = max(seen.after.at - seen.traced.ticks[-1].at, 0.0) if seen.traced and seen.traced.ticks else 0.0
    differs = theirs.differs if theirs and not lost else ""
    reasons = (*counted.fell, *trace.faults, others, *disagree(counted, trace, lost, late), differs, found.why_not)
    result = diagnosis.Diagnosis(
        target=seen.target,
        pool=seen.pool,
        taken=seen.before.at,
        seconds=round(counted.seconds, 3),
        outcome="INCONCLUSIVE",
        answer="",
        reasons=tuple(each for each in reasons if each),
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
        devices=tuple(
            diagnosis.Device(
                *(leg.device, leg.leaf, leg.top, leg.kind, leg.kind == kind, leg.writes, leg.flushes),
                *(leg.write_ns, leg.flush_ns, leg.block_ns, round(leg.busy, 4)),
            )
            for leg in counted.legs
        ),
        causes=(*lost, *standing),
        commands=_commands(seen, counted),
        database=theirs.view if theirs else None,
        own=told,
        held=counted.held,
    )
    outcome, sentence, reasons = answer(seen, result, found, len(lost), alone, unlogged)
    return result._replace(outcome=outcome, answer=sentence, reasons=reasons)


# -- where the time goes ------------------------------------------------------------------------------------------


def log_class(counted: Counters, facts: Facts, pool: Subject) -> str:
    """The class of vdevs on which most log blocks landed; without counts that on which they can."""
    chosen, zil = facts.get(pool, "zil_class").word(), counted.zil
    if zil.slog is None or zil.normal is None or not zil.blocks:
        return chosen
    if zil.slog >= zil.normal:
        return "log"
    return "special" if chosen == "special" else "normal"


def _parts(trace: Trace, counted: Counters, kind: str, seen: Observation) -> diagnosis.Parts | None:
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
    return diagnosis.Parts(trace.mean_ns, trace.queue_ns, write, flush, both, pipeline, wake, data)


def _means(legs: Sequence[Leg]) -> tuple[float | None, float | None, float | None]:
    """Nanoseconds of a write, a flush, and both together: of each vdev its slowest leg, weighted by its writes."""
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


def _committers(
    threads: Sequence[Thread], where: dict[int, str], seen: Observation, own: Collection[Thread]
) -> tuple[diagnosis.Committer, ...]:
    known, nobody = {each.pid: each for each in seen.processes}, Process(0, "", "", "", None)
    whole = sum(each.us for each in threads) or 1
    found = [
        diagnosis.Committer(
            pid=each.pid,
            name=each.name,
            role=process.role,
            within=process.within,
            dataset=where.get(each.zil, ""),
            commits=each.commits,
            mean_ns=each.us * 1000 / each.commits if each.commits else 0.0,
            part=each.us / whole,
            own=each in own,
            service=service(each.name, process.role),
        )
        for each in threads
        for process in (known.get(each.pid, nobody),)
    ]
    return tuple(sorted(found, key=lambda each: (-each.part, -each.commits, each.pid)))


def _datasets(counted: Counters, facts: Facts) -> tuple[diagnosis.DatasetCommits, ...]:
    found = [
        diagnosis.DatasetCommits(each.name, each.commits, facts.get(Subject("dataset", each.name), "sync").word())
        for each in counted.datasets
        if each.commits or each.writes
    ]
    return tuple(sorted(found, key=lambda each: (-(each.commits or 0), each.dataset)))


# -- durability first ---------------------------------------------------------------------------------------------


def _not_durable(counted: Counters, facts: Facts, trace: Trace, where: dict[int, str]) -> tuple[diagnosis.Cause, ...]:
    """Datasets whose syncs return without writing. O_DSYNC comes as far as zil_commit(), which returns at once; fsync does
    not: zfs_fsync() of module/zfs/zfs_vnops.c looks at the property first, so no trace of it is no sign."""
    found = []
    for name in silent(counted, facts):
        evidence = [diagnosis.Evidence(f"{name}: sync=disabled", f"zfs get sync {quoted(name)}")]
        own = [each for each in trace.threads if where.get(each.zil) == name]
        commits = sum(each.commits for each in own)
        if commits:
            mean = duration(sum(each.us for each in own) * 1000 / commits)
            text = f"{name}: {commits} syncs returned after {mean} each, without writing anything"
            evidence.append(diagnosis.Evidence("none of them is counted by the ZIL", ""))
        else:
            text = f"{name} is written to, and a sync there returns without writing anything"
        fix = f"zfs set sync=standard {quoted(name)}"
        found.append(diagnosis.Cause("sync-disabled", text, tuple(evidence), fix, "sync-disabled", True))
    return tuple(found)


def _commands(seen: Observation, counted: Counters) -> tuple[str, ...]:
    devices = " ".join(quoted(f"/sys/block/{leg.device}/stat") for leg in counted.legs)
    return (
        f"zaudit diagnose {seen.named.pid if seen.named else quoted(seen.target)}",
        f"cat {quoted(f'/proc/spl/kstat/zfs/{seen.pool}')}/objset-0x*",
        *([f"cat {devices}"] if devices else []),
        f"cat {quoted(trial.txgs_path(seen.pool))} {trial.DMU_TX}",
    )


# One second of a load: a line of ``--watch``.


class Moment(NamedTuple):
    reading: Reading
    looked: Histograms


class Scope(NamedTuple):
    """What is watched. dataset: to which it is narrowed, empty for a pool or a process."""

    pool: str
    dataset: str
    facts: Facts


def second(
    first: Moment, before: Moment, after: Moment, wanted: Scope, threads: Collection[int] | None
) -> diagnosis.Second:
    """From one moment to the next. first: at the beginning. threads: of a process. None: unknown."""
    taken = max(after.reading.at - before.reading.at, 0.0)
    try:
        counted = _counted(before, after, wanted)
    except ValueError:
        return diagnosis.Second(at=after.reading.at, seconds=taken)
    since = before.looked.threads or before is first  # else a look is missing, and this one holds more than a second
    looked = after.looked if since else Histograms()
    traced, latency = _traced(before.looked, looked), _latency(before.looked, looked)
    commits = sum(each.commits for each in traced) if traced is not None else counted.zil.commits
    own, own_mean = _own(first, after, counted, traced, wanted, threads)
    kind = log_class(counted, wanted.facts, Subject("pool", wanted.pool))
    legs = [leg for leg in counted.legs if leg.kind == kind and leg.writes]
    slowest = max(legs, key=lambda leg: leg.block_ns or 0.0, default=None)
    states, dirty, synced = _groups(after.reading.text.get(trial.txgs_path(wanted.pool), ""))
    return diagnosis.Second(
        at=after.reading.at,
        seconds=taken,
        commits=commits,
        mean_ns=_mean(traced),
        p99_ns=latency.judged(0.99) if latency else None,
        most_ns=latency.counts[-1][0] if latency and latency.counts else None,
        own=own,
        own_mean_ns=own_mean,
        device=slowest.device if slowest else "",
        write_ns=(slowest.block_ns if slowest.write_ns is None else slowest.write_ns) if slowest else None,
        flush_ns=slowest.flush_ns if slowest else None,
        held=counted.held,
        dirty=dirty,
        states=states,
        sync_s=synced,
    )


def _counted(before: Moment, after: Moment, wanted: Scope) -> Counters:
    seen = Observation("", wanted.pool, before.reading, after.reading, None, "", (), None, UNLOGGED)
    return observation.counted(seen, wanted.facts)


# -- traced -------------------------------------------------------------------------------------------------------


def _traced(before: Histograms, after: Histograms) -> tuple[Thread, ...] | None:
    """What each thread did meanwhile; None without a trace, and where it cannot be told."""
    if not after.threads or not diagnose_commits.complete(after.threads):
        return None
    earlier, later = diagnose_commits.by_thread(before.threads), diagnose_commits.by_thread(after.threads)
    if earlier.unread or later.unread:
        return None
    past = {(each.pid, each.name, each.zil): each for each in earlier.rows}
    found = []
    for each in later.rows:
        was = past.get((each.pid, each.name, each.zil))
        commits, us = (each.commits - was.commits, each.us - was.us) if was else (each.commits, each.us)
        if commits < 0 or us < 0:
            return None
        if commits:
            found.append(each._replace(commits=commits, us=us))
    return tuple(found)


def _latency(before: Histograms, after: Histograms) -> Histogram | None:
    if not after.latencies or not diagnose_commits.complete(after.latencies):
        return None
    try:
        return diagnose_commits.latencies(after.latencies).minus(diagnose_commits.latencies(before.latencies))
    except ValueError:
        return None


def _mean(threads: Sequence[Thread] | None) -> float | None:
    commits = sum(each.commits for each in threads or ())
    return sum(each.us for each in threads or ()) * 1000 / commits if commits else None


def _own(
    first: Moment,
    after: Moment,
    counted: Counters,
    traced: tuple[Thread, ...] | None,
    wanted: Scope,
    threads: Collection[int] | None,
) -> tuple[int | None, float | None]:
    """Commits of the process, or to the dataset, and their mean. The counts since the beginning show the ZIL of a
    dataset."""
    if threads is not None:
        if not is_true(
            wanted.facts.get(HOST, "all_processes")
        ):  # the kernel numbers them otherwise than this container
            return None, None
        mine = [each for each in traced or () if each.pid in threads]
        return (sum(each.commits for each in mine) if traced is not None else None), _mean(mine)
    if not wanted.dataset:
        return None, None
    counts = [each.commits for each in counted.datasets if _within(each.name, wanted.dataset)]
    told = [each for each in counts if each is not None]
    mean = None
    if traced:
        everything = diagnose_commits.by_thread(after.looked.threads).rows
        zils = datasets_of(everything, _counted(first, after, wanted), wanted.facts)
        mean = _mean([each for each in traced if _within(zils.get(each.zil, ""), wanted.dataset)])
    return (sum(told) if told else None), mean


def _within(name: str, dataset: str) -> bool:
    return name == dataset or name.startswith(f"{dataset}/")


def _groups(text: str) -> tuple[str, int | None, float | None]:
    """The states of those that are not committed, oldest first; the dirty bytes of the newest with a figure; and how long
    the last one took to sync. (OpenZFS module/zfs/spa_stats.c)"""
    states, dirty, synced = "", None, None
    for line in text.splitlines()[-100:]:
        cells = line.split()
        if len(cells) != 12 or not all(map(trial.COUNT.fullmatch, (cells[0], cells[3], cells[11]))):
            continue
        if cells[2] == "C":
            dirty, synced = int(cells[3]), int(cells[11]) / 1e9
        elif cells[2] in "BOQWS":
            states += cells[2]
            dirty = int(cells[3]) or dirty
    return states, dirty, synced
