"""The chain of custody: does each witness account for every sync of the one above it?

Never tested for equality: several commits may share a log block and a flush (group commit), fio counts one sync less than
writes, sync=always commits more often than fio syncs. So each link has a floor: at least SHARE of the syncs above it, and
for flushes that share of syncs divided by how many can be under way at once, since one flush acknowledges at most so many.
(Measured on OpenZFS 2.1, 2.3 and 2.4; OpenZFS module/zfs/zil.c)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data.platforms import ANY, filled
from auditor.facts import HOST, Facts, Known, Subject, word_of
from auditor.text import harmless
from auditor.verify import failures, flushes, witnesses
from auditor.verify.model import FOREIGN_LOAD, Chain, Link
from auditor.verify.profile import Section
from auditor.verify.result import LIMITED, Job, Run, Zil
from auditor.verify.trial import UNSEEN, Trial

SHARE = flushes.SHARE
FOREIGN = 0.02  # of all commits: more than that from others, and nothing can be told apart
ENGINES = ("psync", "sync", "pvsync", "pvsync2", "vsync")  # of fio, that make a call for each write and each sync
FEW = 20  # commits of others that never matter


def follow(trial: Trial, runs: tuple[Run, ...], section: Section, facts: Facts) -> Chain:
    """The chain of the log run. section: of the profile that stands for the log."""
    pool = Subject("pool", trial.dataset.partition("/")[0])
    log = next((run for run in runs if run.purpose == "log"), None)
    calls = next((run for run in runs if run.purpose == "calls"), None)
    links = [_dataset(trial), _calls(calls, trial, section, word_of(facts.get(HOST, "platform"), ANY))]
    if log is None or not log.jobs:
        why = "; ".join(log.faults) if log else f"the run of the log did not take place{_last(trial)}"
        links.append(Link("fio", "unseen", why))
        return _chain(links, ())
    links.append(_fio(log, section))
    links.append(_zil(log, trial, facts))
    links += flushes.links(log, section, pool, facts, failures.away(trial.runs, pool))
    links.append(failures.of_kernel(trial.runs, log, facts))
    others = (*foreign(log, trial, facts), *unwatched(log), *failures.of_pool(trial.runs, pool))
    others = (*others, *(f"fio: {fault}" for fault in log.faults if fault != LIMITED))
    if trial.scan == UNSEEN:
        others = (*others, "zpool status did not say whether a scrub or resilver ran meanwhile")
    elif trial.scan:
        others = (*others, f"a {trial.scan} ran meanwhile: its reads, writes and flushes cannot be told apart")
    return _chain(links, others)


def _last(trial: Trial) -> str:
    """Why nothing was run after the last run, where zaudit saw to that."""
    return next((f" ({ran.name}: {ran.fault})" for ran in trial.runs[-1:] if ran.fault), "")


def _chain(links: list[Link], others: tuple[str, ...]) -> Chain:
    """A link that contradicts decides: too few are too few, whoever else added to the counters."""
    reasons = (*_reasons(links), *others)
    if any(link.status == "contradicts" for link in links):
        return Chain("CONTRADICTED", tuple(links), reasons)
    return Chain("INCONCLUSIVE" if reasons else "TRACED", tuple(links), reasons)


def _reasons(links: list[Link]) -> tuple[str, ...]:
    return tuple(f"{link.name}: {link.text}" for link in links if link.status == "unseen")


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
        return Link(
            "fio",
            "unseen",
            f"the job {job.name} never asked for stable storage: there is no promise to follow",
            figures,
        )
    expected = job.writes // section.every
    if job.syncs < 0.99 * expected - job_slack(section):
        return Link(
            "fio", "unseen", f"fio counted {job.syncs} syncs for {job.writes} writes, {expected} were expected", figures
        )
    return Link("fio", "accounts", f"{job.writes} writes, {job.syncs} syncs ({section.sync}) returned", figures)


def job_slack(section: Section) -> int:
    """Syncs that fio leaves out: the last one of each job."""
    return section.jobs + 1


def _zil(run: Run, trial: Trial, facts: Facts) -> Link:
    job, zil = run.log, run.zil
    if zil is None:
        return Link("ZIL", "unseen", f"no kstat of {harmless(trial.dataset)} could be read before and after the run")
    figures = tuple((name, count) for name, count in _zil_figures(zil) if count is not None)
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


def _zil_figures(zil: Zil) -> Iterator[tuple[str, int | None]]:
    yield "commits", zil.commits
    yield "log blocks on the SLOG", zil.slog_blocks
    yield "log blocks on other vdevs", zil.normal_blocks
    yield "writes as pointers (data on the data vdevs)", zil.indirect or None
    yield "commits that failed and waited for the TXG", zil.errors or None
    yield "commits that found no space", zil.stalls or None


# -- others on the pool -------------------------------------------------------------------------------------------


def unwatched(run: Run) -> Iterator[str]:
    """What could not be seen of others before the run."""
    if run.zil is not None and run.idle_commits is None:
        yield "how many commits there are while nothing of zaudit runs could not be seen"
    for device in run.devices:
        if device.zil and device.disk not in run.idle_writes:
            yield f"what others write to {harmless(device.disk)} could not be seen"


def foreign(run: Run, trial: Trial, facts: Facts) -> Iterator[str]:
    """What others did meanwhile, as far as it keeps the counts from being told apart."""
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
    for text in flushes.foreign_flushes(run, _idle_flushes(run, trial, pool, facts), facts, pool).values():
        yield f"{FOREIGN_LOAD}: {text}"
    for device in run.devices:
        writes = run.idle_writes.get(device.disk, 0)
        rate = writes / run.idle_s if run.idle_s > 0 else 0.0
        if device.zil and device.allocation_class == "log" and rate * run.seconds > max(0.05 * device.writes, FEW):
            yield f"{FOREIGN_LOAD}: {writes} writes to {harmless(device.disk)} in {run.idle_s:.0f} s before the run"


def _idle_flushes(run: Run, trial: Trial, pool: Subject, facts: Facts) -> dict[str, int]:
    """Flushes of each disk in the idle time before a run. Where they are not counted, the writes: a flush is one of them."""
    ran = next((each for each in trial.runs if each.name == run.name), None)
    devices = witnesses.devices(ran.idle, ran.before, pool, facts) if ran else ()
    counted = {each.disk: each.flushes for each in devices if each.flushes is not None}
    return {**run.idle_writes, **counted}


def _most_commits(job: Job, trial: Trial, facts: Facts) -> float:
    """Commits that the run can have caused: with sync=always each write is one, and each sync another."""
    sync = facts.get(Subject("dataset", trial.target), "sync")
    always = isinstance(sync, Known) and sync.value == "always"
    return (1 + FOREIGN) * (job.syncs + (job.writes if always and job.sync not in ("dsync", "sync") else 0))
