"""From what a trial saw to numbers: one :class:`Run` for each run of fio. What cannot be read becomes a sentence, not a 0."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Facts, Subject
from auditor.verify import fio_output, strace_output, witnesses
from auditor.verify.fio_output import FioError
from auditor.verify.profile import Profile
from auditor.verify.result import LIMITED, Job, Run, Slice, Syscalls
from auditor.verify.trial import Ran, Trial

FILES = ("zaudit.", "/dev/zd")  # also a zvol, which strace names by its node


def runs(trial: Trial, profile: Profile, facts: Facts) -> Iterator[Run]:
    """Every run but the one that only warms up, and those of a sweep."""
    for ran in trial.runs:
        if ran.purpose not in ("warm", "sweep"):
            yield run(ran, trial, profile, facts)


def run(ran: Ran, trial: Trial, profile: Profile, facts: Facts) -> Run:
    """One run of fio with its witnesses."""
    faults = []
    pool = Subject("pool", trial.dataset.partition("/")[0])
    syncs = {section.name: section.sync for section in profile.sections}
    jobs: tuple[Job, ...] = ()
    timeline: tuple[Slice, ...] = ()
    if ran.fault or (ran.exit != 0 and not ran.limited):
        said = " ".join(ran.stderr.split())[:300] or " ".join(ran.stdout.split())[:300] or "no word of why"
        faults.append(ran.fault or f"fio ended with exit code {ran.exit}: {said}")
    if ran.limited:
        faults.append(LIMITED)
    try:
        if ran.fault and not ran.stdout:
            raise FioError("none of its output is believed")
        if not ran.sections:
            raise FioError("no section of the profile was run")
        found = fio_output.documents(ran.stdout)
        jobs = fio_output.jobs(found[-1], syncs, ran.sections[0])
        jobs = tuple(
            job._replace(seconds=min(job.seconds, ran.ended - ran.began)) for job in jobs
        )  # of a group: the sum
        timeline = tuple(fio_output.timeline(found, syncs, ran.began, ran.sections[0]))
    except FioError as error:
        faults.append(f"fio: {error}")
    zil, others, counters = None, None, {}
    try:
        zil, others = witnesses.zil(ran.before, ran.after, trial.dataset)
        earlier, later = (witnesses.table(each, witnesses.DMU_TX) for each in (ran.before, ran.after))
        counters = witnesses.grown(earlier, later)
    except ValueError as error:
        faults.append(str(error))
    idle = {device.disk: device.writes for device in witnesses.devices(ran.idle, ran.before, pool, facts)}
    return Run(
        name=ran.name,
        purpose=ran.purpose,
        argv=ran.argv,
        began=ran.began,
        seconds=round(ran.ended - ran.began, 3),
        jobs=jobs,
        timeline=timeline,
        zil=zil,
        others=others,
        idle_s=round(ran.before.at - ran.idle.at, 3),
        idle_commits=_idle_commits(ran),
        idle_writes=idle,
        devices=tuple(witnesses.devices(ran.before, ran.after, pool, facts)),
        txgs=witnesses.txgs(ran.txgs, ran.after.at - ran.after.up, ran.began, ran.ended),
        counters=counters,
        heat=witnesses.heat(ran.before, ran.after),
        syscalls=_syscalls(ran, faults),
        faults=tuple(faults),
    )


def _idle_commits(ran: Ran) -> int | None:
    try:
        return witnesses.commits(ran.idle, ran.before)
    except ValueError:
        return None


def _syscalls(ran: Ran, faults: list[str]) -> Syscalls | None:
    if ran.strace is None:
        return None
    try:
        return strace_output.parse(ran.strace, FILES)
    except ValueError as error:
        faults.append(str(error))
        return None
