"""The chain of custody: does each witness account for every sync of the one above it, and did anything fail meanwhile?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from auditor.data.platforms import ANY, filled
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, known
from auditor.model.fault_log import FAILED_IO, LINES_KEPT, RESETS, of_disks
from auditor.model.fault_log import FLUSHES as FAILED_FLUSHES
from auditor.sources import kernel_log, zpool_status
from auditor.sources.pool_tree import Row
from auditor.text import harmless
from auditor.verify import device_flushes
from auditor.verify import trial as verify_trial
from auditor.verify.profile import Section
from auditor.verify.result import FOREIGN_LOAD, KERNEL_LOG, LIMITED, Chain, Job, Link, Run
from auditor.verify.trial import UNSEEN, FioRun, KernelLines, Trial

# What failed during a run: flushes, reads and writes that the kernel logged, errors that OpenZFS counted.
#
# The block layer counts a failed flush as completed (block/blk-flush.c flush_end_io). OpenZFS ignores its error
# (ZIO_FLAG_DONT_PROPAGATE in zio_flush() of module/zfs/zio.c) and neither counts nor reports it (zfs_ereport_is_valid() of
# module/zfs/zfs_fm.c: only reads and writes). So fsync returns after it as after any other; only the kernel's log shows it.
# A failed write counts as a write too, and leaves the counters without meaning.

FLUSHES = "flushes that failed"
KINDS = {
    FAILED_FLUSHES: FLUSHES,
    FAILED_IO: "reads or writes that failed",
    RESETS: "resets of its controller or repeated flushes",
}
WRITTEN = {"ONLINE", "DEGRADED"}  # states of a vdev that is written to (vdev_is_dead() of module/zfs/vdev.c)
COUNTS = ("read", "write", "checksum")


def of_kernel(runs: Sequence[FioRun], run: Run, facts: Facts) -> Link:
    """The last link: did the kernel log a failure on a device of the pool during any run of fio? run: that of the log."""
    missing = dict.fromkeys(ran.logged.missing for ran in runs if ran.logged.missing)
    logged = KernelLines(tuple(line for ran in runs for line in ran.logged.lines), "; ".join(missing))
    disks = [device.disk for device in run.devices]
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
    if not doubts and sum(" error, dev " in line for line in logged.lines) >= LINES_KEPT:
        doubts = ["so many errors of other devices were logged that the kernel may have left out those of the pool's"]
    if doubts:
        return Link(KERNEL_LOG, "unseen", "; ".join(doubts))
    return Link(KERNEL_LOG, "accounts", "no failed flush, read or write of a device of the pool was logged meanwhile")


class Failure(NamedTuple):
    """Something that the kernel logged of a disk. kind: one of KINDS."""

    disk: str
    kind: str
    text: str


def logged_of(logged: KernelLines, disks: Sequence[str], facts: Facts) -> tuple[tuple[Failure, ...], str]:
    """What failed on these disks; else why something may have. Raises ValueError for lines that are not understood."""
    counted = _counted(logged, disks, facts)
    failed = tuple(_failed(counted))
    return failed, "" if failed else "; ".join((*_doubts(counted), *filter(None, [logged.missing])))


def _counted(logged: KernelLines, disks: Sequence[str], facts: Facts) -> dict[tuple[str, str], Judged]:
    """How often the lines name each disk, by kind. Raises ValueError where they cannot be understood."""
    found = Facts(facts.now)
    found.put_all(facts)
    for disk in disks:
        found.add(Subject("disk", disk))
    try:
        for fact in kernel_log.counts(logged.lines):
            found.replace(fact)
    except ValueError as error:
        raise ValueError(f"the kernel's log could not be understood: {harmless(str(error))}") from None
    found.replace(Fact(HOST, "kernel_log_whole", known(True, "")))  # what is missing is said in its place
    times = {(disk.name, KINDS[source]): each for disk, source, each in of_disks(tuple(KINDS), found)}
    return {key: times[key] for key in product(disks, KINDS.values())}


def _failed(counted: Mapping[tuple[str, str], Judged]) -> Iterator[Failure]:
    for (disk, kind), judged in counted.items():
        match judged:
            case Known(int(times), evidence) if times:
                lines = "; ".join(dict.fromkeys(harmless(each.text) for each in evidence))
                yield Failure(disk, kind, f"{harmless(disk)}: at least {times} {kind} ({lines})")


def _doubts(counted: Mapping[tuple[str, str], Judged]) -> Iterator[str]:
    """Why it is not known whether what was logged is of one of them."""
    reasons = [each.text for judged in counted.values() if isinstance(judged, Unknown) for each in judged.reasons]
    yield from dict.fromkeys(map(harmless, reasons))


def of_pool(runs: Sequence[FioRun], pool: Subject) -> Iterator[str]:
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


def away(runs: Sequence[FioRun], pool: Subject) -> dict[str, str]:
    """Vdevs that were not written to before or after the runs, with a sentence: the other legs answer for them."""
    before, after = _states(runs, pool)
    return {
        name: f"it was {harmless(before[name].state)} before the runs and {harmless(row.state)} after them"
        for name, row in after.items()
        if name in before and not {before[name].state, row.state} <= WRITTEN
    }


def _states(runs: Sequence[FioRun], pool: Subject) -> tuple[dict[str, Row], dict[str, Row]]:
    def rows(text: str) -> dict[str, Row]:
        """All vdevs of the pool by name; empty where there is no answer that can be read."""
        try:
            found = [each for each in zpool_status.pools(text) if each.name == pool.name]
        except ValueError:
            return {}
        left = [top for _, top in found[0].tops] if len(found) == 1 and found[0].complete else []
        named: dict[str, Row] = {}
        while left:
            row, *left = left
            named[row.name] = row
            left = [*row.children, *left]
        return named

    key = f"{verify_trial.STATUS}{pool.name}"
    return rows(runs[0].before.text.get(key, "")), rows(runs[-1].after.text.get(key, ""))


# The chain of custody: does each witness account for every sync of the one above it?
#
# Never by equality: several commits may share a log block and a flush (group commit), fio counts one sync less than writes,
# sync=always commits more often than fio syncs. So each link has a floor: at least SHARE of the syncs above it; for flushes
# that share divided by how many syncs can be under way at once. (Measured on OpenZFS 2.1, 2.3 and 2.4; OpenZFS
# module/zfs/zil.c)

SHARE = device_flushes.SHARE
FOREIGN = 0.02  # of all commits: more than that from others, and nothing can be distinguished
ENGINES = ("psync", "sync", "pvsync", "pvsync2", "vsync")  # of fio, that make a call for each write and each sync
FEW = 20  # commits of others that never matter


def follow(trial: Trial, runs: tuple[Run, ...], section: Section, facts: Facts) -> Chain:
    """The chain of the log run. section: of the profile that stands for the log."""
    pool = Subject("pool", trial.dataset.partition("/")[0])
    log = next((run for run in runs if run.purpose == "log"), None)
    calls = next((run for run in runs if run.purpose == "calls"), None)
    links = [_dataset(trial), _calls(calls, trial, section, facts.get(HOST, "platform").word(ANY))]
    if log is None or not log.jobs:
        # zaudit may have seen to it that nothing was run after the last run
        last = next((f" ({ran.name}: {ran.fault})" for ran in trial.runs[-1:] if ran.fault), "")
        why = "; ".join(log.faults) if log else f"the run of the log did not take place{last}"
        return _judged([*links, Link("fio", "unseen", why)])
    links.append(_fio(log, section))
    links.append(_zil(log, trial, facts))
    links += device_flushes.links(log, section, pool, facts, away(trial.runs, pool))
    links.append(of_kernel(trial.runs, log, facts))
    others = [*foreign(log, trial, facts), *unwatched(log), *of_pool(trial.runs, pool)]
    others += [f"fio: {fault}" for fault in log.faults if fault != LIMITED]
    if trial.scan == UNSEEN:
        others.append("zpool status did not say whether a scrub or resilver ran meanwhile")
    elif trial.scan:
        others.append(f"a {trial.scan} ran meanwhile: its reads, writes and flushes cannot be distinguished")
    return _judged(links, others)


def _judged(links: Sequence[Link], others: Sequence[str] = ()) -> Chain:
    """A link that contradicts decides: too few are too few, whoever else added to the counters."""
    reasons = (*(f"{link.name}: {link.text}" for link in links if link.status == "unseen"), *others)
    contradicted = any(link.status == "contradicts" for link in links)
    return Chain("CONTRADICTED" if contradicted else "INCONCLUSIVE" if reasons else "TRACED", tuple(links), reasons)


def _dataset(trial: Trial) -> Link:
    if not trial.landed:
        return Link("dataset", "unseen", "on which file system the files were written is not known")
    if trial.landed != trial.dataset:
        text = (
            f"files made in {harmless(trial.place)} lie on {harmless(trial.landed)}, not on {harmless(trial.dataset)}"
        )
        return Link("dataset", "contradicts", text)
    return Link("dataset", "accounts", f"the files lie on {harmless(trial.dataset)}")


def _calls(run: Run | None, trial: Trial, section: Section, platform: str) -> Link:
    """A short pass of its own: strace slows down what it watches. platform: in whose words it is said what is missing."""
    name = "system calls"
    if run is None and not any(ran.purpose == "log" for ran in trial.runs):
        return Link(name, "unseen", "the run under strace did not take place")
    if run is None:
        missing = filled("strace is not installed ({package:strace})", platform)
        return Link(name, "unseen", f"{missing}: the system calls were not traced")
    if run.syscalls is None or not run.jobs:
        return Link(name, "unseen", "; ".join(run.faults) or "strace saw nothing")
    seen, job = run.syscalls, run.log
    engine = section.options.get("ioengine", "psync")
    if engine not in (ENGINES if section.sync in ("dsync", "sync") else (*ENGINES, "libaio")):
        return Link(name, "unseen", f"ioengine={engine} asks the kernel in a way that strace does not show")
    if section.sync in ("dsync", "sync"):
        flag = "O_DSYNC" if section.sync == "dsync" else "O_SYNC"
        asked = any(flag in flags for flags in seen.opened)
        kernel, what = (seen.writes if asked else 0), f"writes under {flag}"
    else:
        kernel, what = (seen.fdatasyncs if section.sync == "fdatasync" else seen.fsyncs), section.sync
    figures = (("syncs that fio counted", job.syncs), (f"{what} that the kernel saw", kernel))
    if job.syncs == 0:
        return Link(name, "unseen", "fio made no sync while strace watched it", figures)
    if kernel >= SHARE * job.syncs:
        return Link(name, "accounts", f"the kernel saw {kernel} {what} for {job.syncs} syncs by fio", figures)
    text = f"fio issued {job.syncs} {what}, the kernel saw {kernel}"
    if trial.preload:
        text += f": {harmless(trial.preload)} is preloaded into every program and drops them"
    return Link(name, "contradicts", text, figures)


def _fio(run: Run, section: Section) -> Link:
    job = run.log
    figures = (("writes", job.writes), ("syncs", job.syncs))
    if section.sync == "none" or not job.syncs:
        text = f"the job {job.name} never asked for stable storage: there is no promise to follow"
        return Link("fio", "unseen", text, figures)
    expected = job.writes // section.every
    if job.syncs < 0.99 * expected - section.jobs - 1:  # fio leaves out the last one of each job
        text = f"fio counted {job.syncs} syncs for {job.writes} writes, {expected} were expected"
        return Link("fio", "unseen", text, figures)
    return Link("fio", "accounts", f"{job.writes} writes, {job.syncs} syncs ({section.sync}) returned", figures)


def _zil(run: Run, trial: Trial, facts: Facts) -> Link:
    job, zil = run.log, run.zil
    if zil is None:
        return Link("ZIL", "unseen", f"no kstat of {harmless(trial.dataset)} could be read before and after the run")
    counted: tuple[tuple[str, int | None], ...] = (
        ("commits", zil.commits),
        ("log blocks on the SLOG", zil.slog_blocks),
        ("log blocks on other vdevs", zil.normal_blocks),
        ("writes as pointers (data on the data vdevs)", zil.indirect or None),
        ("commits that failed and waited for the TXG", zil.errors or None),
        ("commits that found no space", zil.stalls or None),
    )
    figures = tuple((name, count) for name, count in counted if count is not None)
    apart = "" if run.others is not None else " (all pools together: this release does not count datasets apart)"
    if zil.commits >= SHARE * job.syncs:
        return Link("ZIL", "accounts", f"{zil.commits} commits for {job.syncs} syncs{apart}", figures)
    text = f"fio issued {job.syncs} {job.sync}, the ZIL saw {zil.commits}"
    sync = facts.get(Subject("dataset", trial.target), "sync")
    if isinstance(sync, Known) and sync.value == "disabled":
        text += f": sync=disabled on {harmless(trial.target)}"
    elif run.others and (most := max(run.others.items(), key=lambda item: item[1]))[1] >= SHARE * job.syncs:
        text += f": {harmless(most[0])} saw {most[1]}"
    return Link("ZIL", "contradicts", text, figures)


# -- others on the pool -------------------------------------------------------------------------------------------


def unwatched(run: Run) -> Iterator[str]:
    """What could not be seen of others before the run."""
    if run.zil is not None and run.idle_commits is None:
        yield "how many commits there are while nothing of zaudit runs could not be seen"
    for device in run.devices:
        if device.zil and device.disk not in run.idle_writes:
            yield f"what others write to {harmless(device.disk)} could not be seen"


def foreign(run: Run, trial: Trial, facts: Facts) -> Iterator[str]:
    """What others did meanwhile, as far as it keeps the counts from being distinguished."""
    job, zil = run.log, run.zil
    if zil is not None and run.others is not None and sum(run.others.values()) > max(FOREIGN * zil.commits, FEW):
        name, most = max(run.others.items(), key=lambda item: item[1])
        yield f"{FOREIGN_LOAD}: {sum(run.others.values())} commits of other datasets of the pool ({harmless(name)}: {most})"
    if zil is not None and zil.commits > _most_commits(job, trial, facts) + FEW:
        who = harmless(trial.dataset) if run.others is not None else "all pools"
        yield f"{FOREIGN_LOAD}: {zil.commits} commits of {who} for {job.syncs} syncs by fio"
    if (
        run.idle_commits
        and run.idle_s > 0
        and run.idle_commits / run.idle_s * run.seconds > max(FOREIGN * job.syncs, FEW)
    ):
        yield f"{FOREIGN_LOAD}: {run.idle_commits} commits in {run.idle_s:.0f} s before the run, while nothing of zaudit ran"
    pool = Subject("pool", trial.dataset.partition("/")[0])
    # flushes in the idle time before; where they are not counted, the writes: a flush is one of them
    ran = next((each for each in trial.runs if each.name == run.name), None)
    idle = verify_trial.devices(ran.idle, ran.before, pool, facts) if ran else ()
    flushes = {**run.idle_writes, **{each.disk: each.flushes for each in idle if each.flushes is not None}}
    for text in device_flushes.foreign_flushes(run, flushes, facts, pool).values():
        yield f"{FOREIGN_LOAD}: {text}"
    for device in run.devices:
        writes = run.idle_writes.get(device.disk, 0)
        rate = writes / run.idle_s if run.idle_s > 0 else 0.0
        if device.zil and device.allocation_class == "log" and rate * run.seconds > max(0.05 * device.writes, FEW):
            yield f"{FOREIGN_LOAD}: {writes} writes to {harmless(device.disk)} in {run.idle_s:.0f} s before the run"


def _most_commits(job: Job, trial: Trial, facts: Facts) -> float:
    """Commits that the run can have caused: with sync=always each write is one, and each sync another."""
    sync = facts.get(Subject("dataset", trial.target), "sync")
    always = isinstance(sync, Known) and sync.value == "always"
    return (1 + FOREIGN) * (job.syncs + (job.writes if always and job.sync not in ("dsync", "sync") else 0))
