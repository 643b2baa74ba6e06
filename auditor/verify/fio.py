"""What is run of fio, what fio and strace print, and the numbers of a run in it. What cannot be read becomes a sentence,
not a 0."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from auditor import EXIT_BROKE, Stop
from auditor.facts import HOST, Facts, Judged, Known, Subject, Unknown
from auditor.text import harmless, size
from auditor.verify import trial as verify_trial
from auditor.verify.comparison import INTERVALS, Sweep
from auditor.verify.comparison import Step as KneeStep
from auditor.verify.ledger import BOUND, Actor
from auditor.verify.profile import FILE_FORMAT, Profile, ProfileError, Section, size_bytes
from auditor.verify.result import LIMITED, Histogram, Job, Run, Slice, Syscalls, together
from auditor.verify.trial import FioRun, Trial

# What fio prints with ``--output-format=json+ --status-interval``: one cumulative JSON document each interval, the last one
# at the end. (fio stat.c, show_thread_status_json; json+ adds the buckets of each distribution)
#
# With fsync and fdatasync the durable time is ``sync.lat_ns``; ``sync.total_ios`` stays 0 with fdatasync. With sync=dsync
# and sync=sync the write itself is the sync: ``write.clat_ns``.

VERSION = re.compile(r"fio-(\d+)\.(\d+)")
OLDEST = (3, 20)  # sync=dsync as a word: fio HOWTO of that release
LATEST_MS = 1 << 43  # of a stamp: the year 2248; what is later is no time that fio prints


class FioError(Stop, ValueError):
    """fio did not print what it was asked for; the text says what it printed instead."""

    exit_code = EXIT_BROKE


def version(text: str) -> tuple[int, int]:
    """Of ``fio --version``. Raises FioError."""
    found = VERSION.search(text)
    if not found:
        raise FioError(f"fio --version printed {text.strip()[:60]!r}")
    return int(found[1]), int(found[2])


def documents(text: str) -> list[dict[str, Any]]:
    """All documents in order; fio prints warnings between them. Raises FioError for none, or one that is cut off."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while (start := _next_document(text, at)) >= 0:
        try:
            document, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            raise FioError(f"its JSON is cut off or damaged ({getattr(error, 'msg', error)})") from None
        found.append(document)
    if not found:
        raise FioError(f"it printed no JSON: {' '.join(text.split())[:200] or 'nothing'}")
    return found


def _next_document(text: str, at: int) -> int:
    if text.startswith("{", at):
        return at
    following = text.find("\n{", at)
    return following + 1 if following >= 0 else -1


def jobs_of(document: Mapping[str, Any], syncs: Mapping[str, str], first: str = "") -> tuple[Job, ...]:
    """The jobs of one document; those of one section (numjobs without group_reporting) are one. syncs: job name -> how it
    syncs (:attr:`Section.sync`). first: the job to put first. Raises FioError."""
    found: dict[str, Job] = {}
    try:
        for each in document["jobs"]:
            job = _job(each, syncs.get(str(each["jobname"]), "none"))
            found[job.name] = _added(found[job.name], job) if job.name in found else job
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise FioError(f"its JSON is not as expected: {type(error).__name__}: {error}") from None
    if not found:
        raise FioError("its JSON contains no job")
    return tuple(sorted(found.values(), key=lambda job: job.name != first))


def _added(one: Job, other: Job) -> Job:
    counts = ("writes", "write_bytes", "reads", "syncs", "short_writes")
    return one._replace(
        **{name: getattr(one, name) + getattr(other, name) for name in counts},
        seconds=max(one.seconds, other.seconds),
        error=one.error or other.error,
        latency=together((one.latency, other.latency)),
        cpu_percent=max(one.cpu_percent, other.cpu_percent),
    )


def _job(job: Mapping[str, Any], sync: str) -> Job:
    write, read, by_write = job["write"], job["read"], sync in ("dsync", "sync")
    block = write["clat_ns"] if by_write else job["sync"]["lat_ns"]
    bins = {} if sync == "none" else block.get("bins", {})
    return Job(
        name=str(job["jobname"]),
        sync=sync,
        writes=int(write["total_ios"]),
        write_bytes=int(write["io_bytes"]),
        reads=int(read["total_ios"]),
        syncs=int(write["total_ios"] if by_write else block.get("N", 0)),
        short_writes=int(write["short_ios"]),
        seconds=int(job["job_runtime"]) / 1000,
        error=int(job["error"]),
        latency=Histogram.of({int(ns): int(count) for ns, count in bins.items()}),
        cpu_percent=float(job["usr_cpu"]) + float(job["sys_cpu"]),
    )


def timeline_of(
    found: list[dict[str, Any]], syncs: Mapping[str, str], began: float, first: str = ""
) -> Iterator[Slice]:
    """What each interval added for the first job. began: seconds since the epoch. Raises FioError."""
    before, at = Histogram(), 0.0
    for document in found:
        log = jobs_of(document, syncs, first)[0]
        stamp = document.get("timestamp_ms", 0)
        if not isinstance(stamp, int) or not 0 <= stamp <= LATEST_MS:
            raise FioError(f"timestamp_ms is {str(stamp)[:40]!r}, not a time")
        to = stamp / 1000 - began
        try:
            added = log.latency.minus(before)
        except ValueError as error:
            raise FioError(f"a later state has fewer samples than an earlier one ({error})") from None
        if to > at:
            yield Slice(round(at, 3), round(to, 3), added)
            before, at = log.latency, to


# What strace saw of fio on the files of the run: ``strace -f -y -e trace=...``, one call a line. A call that another thread
# interrupts is in two pieces, ``<unfinished ...>`` and ``<... fsync resumed>``; the first names the file. (strace(1))

CALLS = (
    *("open", "openat", "write", "pwrite64", "pwritev", "pwritev2", "writev"),
    *("fsync", "fdatasync", "sync_file_range", "msync"),
)
LINE = re.compile(r"^(?:\[pid +(\d+)\] |(\d+) +)?(\w+)\((.*)$")
RESUMED = re.compile(r"^(?:\[pid +(\d+)\] |(\d+) +)?<\.\.\. \w+ resumed>(.*)$")
DESCRIPTOR = re.compile(r"^\d+<([^>]*)>")  # strace prints a > in a path as \76
AT = re.compile(r"^AT_FDCWD(?:<[^>]*>)?, ")  # the directory may hold quotation marks
PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
FLAGS = ("O_DSYNC", "O_SYNC", "O_DIRECT")
FAILED = re.compile(r"\) += -1 E[A-Z0-9]++ \([^()]*+\)$")


def parse(text: str, marks: Iterable[str]) -> Syscalls:
    """Counts of successful calls on files with one of the marks in their path. Raises ValueError for a trace without
    calls."""
    wanted = tuple(marks)
    counts = {"write": 0, "fsync": 0, "fdatasync": 0}
    opened: list[tuple[str, ...]] = []
    begun: dict[str, tuple[str, str]] = {}
    seen = False
    for line in text.splitlines():
        if found := RESUMED.match(line):
            call, rest = begun.pop(found[1] or found[2] or "", ("", ""))
            rest += found[3]
        elif found := LINE.match(line):
            seen = True
            call, rest = found[3], found[4]
            if "<unfinished ...>" in rest:  # how it ends stands on another line; some never do
                begun[found[1] or found[2] or ""] = call, rest
                continue
        else:
            continue
        if call in ("open", "openat"):
            path = PATH.match(AT.sub("", rest))
            if path and any(mark in path[1] for mark in wanted) and not FAILED.search(rest) and "O_RDONLY" not in rest:
                opened.append(tuple(flag for flag in FLAGS if re.search(rf"\b{flag}\b", rest)))
            continue
        descriptor = DESCRIPTOR.match(rest)
        if descriptor is None or not any(mark in descriptor[1] for mark in wanted) or FAILED.search(rest):
            continue
        kind = call if call in ("fsync", "fdatasync") else "write" if "write" in call else ""
        if kind:
            counts[kind] += 1
    if not seen:
        raise ValueError(f"strace traced no call: {' '.join(text.split())[:120] or 'it printed nothing'}")
    return Syscalls(counts["write"], counts["fsync"], counts["fdatasync"], tuple(opened))


# From a trial to numbers: one :class:`Run` for each run of fio. What cannot be read becomes a sentence, not a 0.

FILES = ("zaudit.", "/dev/zd")  # also a zvol, which strace names by its node


def runs(trial: Trial, profile: Profile, facts: Facts) -> Iterator[Run]:
    """Every run but the one that only warms up, and those of a sweep."""
    for ran in trial.runs:
        if ran.purpose not in ("warm", "sweep"):
            yield run(ran, trial, profile, facts)


def run(ran: FioRun, trial: Trial, profile: Profile, facts: Facts) -> Run:
    faults, syscalls = [], None
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
        found = documents(ran.stdout)
        lasted = ran.ended - ran.began  # fio says the sum of a group
        jobs = jobs_of(found[-1], syncs, ran.sections[0])
        jobs = tuple(job._replace(seconds=min(job.seconds, lasted)) for job in jobs)
        timeline = tuple(timeline_of(found, syncs, ran.began, ran.sections[0]))
    except FioError as error:
        faults.append(f"fio: {error}")
    zil, others, counters = None, None, {}
    try:
        zil, others = verify_trial.zil(ran.before, ran.after, trial.dataset)
        earlier, later = (verify_trial.table(each, verify_trial.DMU_TX) for each in (ran.before, ran.after))
        counters = verify_trial.grown(earlier, later)
    except ValueError as error:
        faults.append(str(error))
    if ran.strace is not None:
        try:
            syscalls = parse(ran.strace, FILES)
        except ValueError as error:
            faults.append(str(error))
    idle_commits = None
    with contextlib.suppress(ValueError):
        idle_commits = verify_trial.commits(ran.idle, ran.before)
    idle = {device.disk: device.writes for device in verify_trial.devices(ran.idle, ran.before, pool, facts)}
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
        idle_commits=idle_commits,
        idle_writes=idle,
        devices=verify_trial.devices(ran.before, ran.after, pool, facts),
        txgs=verify_trial.txgs(ran.txgs, ran.after.at - ran.after.up, ran.began, ran.ended),
        counters=counters,
        heat=verify_trial.heat(ran.before, ran.after),
        syscalls=syscalls,
        faults=tuple(faults),
    )


# What a verification will do: which runs of fio, for how long, how many bytes; before anything is made.

Length = Literal["quick", "standard", "long"]
SECONDS: dict[Length, int] = {"quick": 36, "standard": 120, "long": 600}
TXGS_LEAST = 6  # a run that saw fewer knows nothing of their rhythm
WARM_S, CALLS_S, IDLE_S = 2, 2, 3
QUICK = ("log",)
EVERYTHING = ("log", "binlog", "group", "fresh", "recycled", "variant", "data")
DIRTY_DEFAULT = 4 << 30  # zfs_dirty_data_max_max where nobody could read it (zfs.4)
SIZE_LEAST, SIZE_MOST = 256 << 20, 8 << 30
ENV = "env"  # so that a command line in a report is all that it takes to repeat the run
LIMIT = 10 << 30  # bytes that a verification may write unless it is told otherwise


class Step(NamedTuple):
    """One run of fio. limit: bytes after which zaudit ends it."""

    name: str
    purpose: str
    sections: tuple[str, ...]
    seconds: int
    limit: int


class Plan(NamedTuple):
    """kind: directory or zvol. size: what ${ZAUDIT_SIZE} stands for. bytes_on_disk: of all files together. most_bytes:
    written at most. sweep: bytes of each trial, 0 for none."""

    dataset: str
    kind: str
    profile: Profile
    length: Length
    size: int
    steps: tuple[Step, ...]
    bytes_on_disk: int
    most_bytes: int
    sweep: int = 0

    @property
    def seconds(self) -> int:
        return sum(step.seconds + IDLE_S for step in self.steps)


def make(dataset: Subject, facts: Facts, profile: Profile, length: Length, size: str, limit: int) -> Plan:
    """The plan for one dataset. size: of --size, or empty. Raises ProfileError."""
    kind = "zvol" if facts.get(dataset, "type").or_none() == "volume" else "directory"
    log = profile.of("log")
    assert log is not None  # parse() sees to that
    runtime = max(SECONDS[length], (TXGS_LEAST + 1) * _number(facts, "zfs_txg_timeout", 5))
    data = profile.of("data")
    # of each job together twice the dirty data that OpenZFS keeps, so that not all of it is overwritten before it is written
    twice = min(max(2 * _number(facts, "zfs_dirty_data_max", DIRTY_DEFAULT), SIZE_LEAST), SIZE_MOST)
    given = size_bytes(size) if size else twice // max(data.jobs if data else 1, 1) & ~0xFFFFF
    wanted = [profile.of(each) for each in (QUICK if length == "quick" or kind == "zvol" else EVERYTHING)]
    sections = [each for each in wanted if each]
    steps = [Step("warm", "warm", (log.name,), WARM_S, limit), Step("calls", "calls", (log.name,), CALLS_S, limit)]
    steps += [Step(each.name, each.purpose, (each.name,), runtime, limit) for each in sections]
    if data in sections and log is not data and data:
        _apart_at_once(*(each for each in profile.sections if each in (log, data)))  # as fio takes them up
        steps.append(Step("together", "together", (log.name, data.name), runtime, limit))
    if not log.writes:
        raise ProfileError(f"[{log.name}] writes nothing: there is no sync to follow")
    named = log.name == "log" and log.options.get("filename_format") == FILE_FORMAT
    one_file = named and log.jobs == 1 and log.options.get("nrfiles", "1") == "1"
    if kind == "zvol" and not one_file:  # the one file is a link to the scratch zvol
        raise ProfileError(
            f"[{log.name}] on a zvol: one job named log with one file, {FILE_FORMAT}; others are next to it"
        )
    return Plan(
        dataset=dataset.name,
        kind=kind,
        profile=profile,
        length=length,
        size=given,
        steps=tuple(steps),
        bytes_on_disk=sum(each.size(given) for each in {each.name: each for each in sections}.values()),
        most_bytes=limit,
    )


def _apart_at_once(first: Section, second: Section) -> None:
    """Raises ProfileError where fio would run the second after the first, or report both as one."""

    def on(section: Section, option: str) -> bool:
        return section.options.get(option, "0") != "0"

    if on(second, "stonewall"):
        raise ProfileError(f"[{second.name}] stonewall: it would run after [{first.name}], not together with it")
    if on(first, "group_reporting") and on(second, "group_reporting") and not on(second, "new_group"):
        text = f"[{second.name}] group_reporting: fio would report it and [{first.name}] as one; put new_group into it"
        raise ProfileError(text)


def _number(facts: Facts, parameter: str, otherwise: int) -> int:
    found = facts.get(HOST, parameter).or_none()
    return found if isinstance(found, int) and found > 0 else otherwise


def environment(plan: Plan, step: Step) -> dict[str, str]:
    """What fio's job file takes from its environment. The directory is where fio is started."""
    return {"ZAUDIT_DIRECTORY": ".", "ZAUDIT_RUNTIME": str(step.seconds), "ZAUDIT_SIZE": str(plan.size)}


def command(plan: Plan, step: Step, actor: Actor, preload: Sequence[str] = (), trace: str = "TRACE") -> tuple[str, ...]:
    """The command line of a step; it reads the job file from standard input. preload: NAME=value, behind setpriv: no
    program with root's rights loads it. trace: where strace writes. Threads and setpriv, so that nothing of fio outlives
    zaudit."""
    strace = ("strace", "-f", "-y", "-qq", "-e", "signal=none", "-e", f"trace={','.join(CALLS)}", "-o", trace)
    return (
        *actor.setpriv,
        *((*strace, *BOUND) if step.purpose == "calls" else ()),  # what strace traces would outlive it
        *(ENV, *(f"{name}={value}" for name, value in environment(plan, step).items()), *preload),
        *("fio", "--thread", "--output-format=json+", "--eta=never"),
        *(() if step.purpose in ("warm", "calls", "sweep") else ("--status-interval=1",)),
        *(f"--section={name}" for name in step.sections),
        "-",
    )


# Where a run would harm, or could say nothing: it is refused, with the words that override it where that can be right.

OVERRIDES = ("degraded", "scrub", "full", "space")
FULL_PERCENT, TIMES_THE_SIZE = 90, 2


class Refusal(NamedTuple):
    """override: the word for --despite, empty where nothing overrides it."""

    text: str
    override: str = ""


def refusals(plan: Plan, facts: Facts) -> Iterator[Refusal]:
    """All reasons against this plan. What cannot be seen is a reason too."""
    dataset = Subject("dataset", plan.dataset)
    pool = Subject("pool", plan.dataset.partition("/")[0])
    name = harmless(pool.name)
    if wrong := _wrong(facts.get(pool, "suspended"), False, "suspended"):
        yield Refusal(f"pool {name} {wrong}: no write would return")
    if plan.kind == "directory" and (wrong := _wrong(facts.get(dataset, "mounted"), True, "mounted", " not")):
        yield Refusal(f"{harmless(dataset.name)} {wrong}")
    for subject in (pool, dataset):
        if wrong := _wrong(facts.get(subject, "readonly"), "off", "read-only"):
            yield Refusal(f"{subject.kind} {harmless(subject.name)} {wrong}")
    state = facts.get(pool, "state")
    if isinstance(state, Unknown):
        yield Refusal(f"pool {name} is in an unknown state ({_why(state)})", "degraded")
    elif state.value != "ONLINE":
        yield Refusal(f"pool {name} is {state.value}", "degraded")
    scan = facts.get(pool, "scan_state")
    if not isinstance(scan, Known) or scan.value == "in progress":
        what = facts.get(pool, "scan_function")
        running = f"a {what.value} is running" if isinstance(what, Known) else "a scrub or resilver may be running"
        yield Refusal(f"pool {name}: {running}: its I/O cannot be told from that of the run", "scrub")
    capacity = _whole_number(facts.get(pool, "capacity_percent"), facts.get(pool, "list_capacity_percent"))
    if capacity is None or capacity > FULL_PERCENT:
        yield Refusal(f"pool {name} is {'of unknown fullness' if capacity is None else f'{capacity} % full'}", "full")
    space, needed = _whole_number(facts.get(dataset, "available")), TIMES_THE_SIZE * plan.bytes_on_disk
    if space is None or space < needed:
        have = "an unknown amount" if space is None else size(space)
        yield Refusal(f"{harmless(plan.dataset)} has {have} left, {size(needed)} are wanted (twice the files)", "space")


def _wrong(found: Judged, fine: bool | str, word: str, negation: str = "") -> str:
    """is suspended, may not be mounted (and why); empty where it is as it should be."""
    if isinstance(found, Unknown):
        return f"may{negation} be {word} ({_why(found)})"
    return "" if found.value == fine else f"is{negation} {word}"


def _why(found: Unknown) -> str:
    return "; ".join(reason.text for reason in found.reasons)


def _whole_number(*candidates: Judged) -> int | None:
    return next((each.value for each in candidates if isinstance(each, Known) and isinstance(each.value, int)), None)


# ``--sweep``: the same amount written with a sync never, at the end, and ever more often (``comparison`` judges it). fio's
# job_runtime holds the final sync (end_fsync) too. Each trial begins with a fresh file, and trials of all intervals take
# turns: a pool that slows down does so for all.

AMOUNT, BLOCK, TRIALS = 128 << 20, 16 << 10, 3
LEAST = 4 << 20
FILE, JOB_FILE = "zaudit.sweep", "zaudit.sweep.fio"
SWEEP_SECONDS = 120  # after which a trial is slow; zaudit ends it some time later


def sweep_intervals(amount: int) -> tuple[int | None, ...]:
    """Bytes between two syncs, of each step; intervals that the amount does not reach would be one at the end again."""
    return (None, 0, *(interval for interval in INTERVALS if interval < amount))


def sweep_job_file(amount: int) -> str:
    where = f"directory=${{ZAUDIT_DIRECTORY}}\nfilename_format={FILE}\n"
    head = f"[global]\n{where}ioengine=psync\nfallocate=none\nrw=write\n"
    jobs = ""
    for each in sweep_intervals(amount):
        jobs += f"\n[{_sweep_name(each)}]\n" + ("" if each is None else "end_fsync=1\n")
        jobs += f"fdatasync={each // BLOCK}\n" if each else ""
    return f"{head}bs={BLOCK}\nsize={amount}\n{jobs}"


def _sweep_name(interval: int | None) -> str:
    return "sweep-never" if interval is None else f"sweep-{interval}"


def sweep_steps(amount: int, limit: int) -> Iterator[Step]:
    """The runs of a sweep. Raises ProfileError for an amount of which nothing can be learnt."""
    if amount < LEAST or amount % BLOCK:
        raise ProfileError(
            f"a sweep of {size(amount)}: at least {size(LEAST)} are needed, in whole blocks of {size(BLOCK)}"
        )
    for _ in range(TRIALS):
        for each in sweep_intervals(amount):
            yield Step(_sweep_name(each), "sweep", (_sweep_name(each),), SWEEP_SECONDS, limit)


def sweep_of(runs: Iterable[FioRun]) -> Sweep | None:
    """What the runs of a sweep took, None for none. Raises FioError when one failed, or the amounts differ."""
    seconds: dict[str, list[float]] = {}
    amounts: set[int] = set()
    for ran in runs:
        if ran.purpose == "sweep" and not ran.limited:  # one that was ended early took no time that means anything
            if ran.exit != 0:
                raise FioError(
                    f"{ran.name}: fio ended with exit code {ran.exit}: {ran.fault or ran.stderr.strip()[:200]}"
                )
            (job,) = jobs_of(documents(ran.stdout)[-1], {})
            seconds.setdefault(ran.name, []).append(job.seconds)
            amounts.add(job.write_bytes)
    if not seconds:
        return None
    if len(amounts) > 1:
        raise FioError(f"the runs of the sweep wrote from {min(amounts)} to {max(amounts)} bytes, not the same amount")
    (amount,) = amounts
    found = (KneeStep(each, tuple(seconds.get(_sweep_name(each), ()))) for each in sweep_intervals(amount))
    return Sweep(amount, tuple(step for step in found if step.seconds))
