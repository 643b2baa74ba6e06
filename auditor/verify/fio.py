"""What fio and strace print, and the numbers of a run in it. What cannot be read becomes a sentence, not a 0."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from auditor.errors import EXIT_BROKE, Stop
from auditor.facts import Facts, Subject
from auditor.verify import trial as verify_trial
from auditor.verify.profile import Profile
from auditor.verify.result import LIMITED, Histogram, Job, Run, Slice, Syscalls, together
from auditor.verify.trial import Ran, Trial

# What fio prints with ``--output-format=json+ --status-interval``: one JSON document each interval, cumulative, the last one at
# the end. (fio stat.c, show_thread_status_json; json+ adds the buckets of each distribution)
#
# With fsync and fdatasync the durable time is ``sync.lat_ns``; ``sync.total_ios`` stays 0 with fdatasync. With sync=dsync and
# sync=sync there is no such block: the write itself is the sync, ``write.clat_ns``.

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
    """All documents, in the order in which they were printed. Raises FioError when there is none, or one is cut off.

    fio prints warnings of its own between them.
    """
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
    """The jobs of one document; those of one section (numjobs without group_reporting) are one. Raises FioError.

    syncs: job name -> how it syncs (:attr:`Section.sync`). first: the job that stands first, wherever it was printed.
    """
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
    return one._replace(
        writes=one.writes + other.writes,
        write_bytes=one.write_bytes + other.write_bytes,
        reads=one.reads + other.reads,
        syncs=one.syncs + other.syncs,
        short_writes=one.short_writes + other.short_writes,
        seconds=max(one.seconds, other.seconds),
        error=one.error or other.error,
        latency=together((one.latency, other.latency)),
        cpu_percent=max(one.cpu_percent, other.cpu_percent),
    )


def _job(job: Mapping[str, Any], sync: str) -> Job:
    write, read = job["write"], job["read"]
    latency = _latency(job, sync)
    return Job(
        name=str(job["jobname"]),
        sync=sync,
        writes=int(write["total_ios"]),
        write_bytes=int(write["io_bytes"]),
        reads=int(read["total_ios"]),
        syncs=int(write["total_ios"]) if sync in ("dsync", "sync") else int(job["sync"]["lat_ns"].get("N", 0)),
        short_writes=int(write["short_ios"]),
        seconds=int(job["job_runtime"]) / 1000,
        error=int(job["error"]),
        latency=latency,
        cpu_percent=float(job["usr_cpu"]) + float(job["sys_cpu"]),
    )


def _latency(job: Mapping[str, Any], sync: str) -> Histogram:
    if sync == "none":
        return Histogram()
    block = job["write"]["clat_ns"] if sync in ("dsync", "sync") else job["sync"]["lat_ns"]
    return Histogram.of({int(ns): int(count) for ns, count in block.get("bins", {}).items()})


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


# What strace saw of fio on the files of the run: ``strace -f -y -e trace=...``, one call a line.
#
# A call that another thread interrupts is printed in two pieces, ``<unfinished ...>`` and ``<... fsync resumed>``; the first
# piece names the file. (strace(1))

CALLS = (
    "open",
    "openat",
    "write",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "writev",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "msync",
)
LINE = re.compile(r"^(?:\[pid +(\d+)\] |(\d+) +)?(\w+)\((.*)$")
RESUMED = re.compile(r"^(?:\[pid +(\d+)\] |(\d+) +)?<\.\.\. \w+ resumed>(.*)$")
DESCRIPTOR = re.compile(r"^\d+<([^>]*)>")  # strace prints a > in a path as \76
AT = re.compile(r"^AT_FDCWD(?:<[^>]*>)?, ")  # the directory may hold quotation marks
PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
FLAGS = ("O_DSYNC", "O_SYNC", "O_DIRECT")
FAILED = re.compile(r"\) += -1 E[A-Z0-9]++ \([^()]*+\)$")


def parse(text: str, marks: Iterable[str]) -> Syscalls:
    """Counts of the calls that did not fail, on files whose path holds one of the marks. Raises ValueError when no call was
    traced at all."""
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


# From what a trial saw to numbers: one :class:`Run` for each run of fio. What cannot be read becomes a sentence, not a 0.

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
        found = documents(ran.stdout)
        jobs = jobs_of(found[-1], syncs, ran.sections[0])
        jobs = tuple(
            job._replace(seconds=min(job.seconds, ran.ended - ran.began)) for job in jobs
        )  # of a group: the sum
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
        idle_commits=_idle_commits(ran),
        idle_writes=idle,
        devices=tuple(verify_trial.devices(ran.before, ran.after, pool, facts)),
        txgs=verify_trial.txgs(ran.txgs, ran.after.at - ran.after.up, ran.began, ran.ended),
        counters=counters,
        heat=verify_trial.heat(ran.before, ran.after),
        syscalls=_syscalls(ran, faults),
        faults=tuple(faults),
    )


def _idle_commits(ran: Ran) -> int | None:
    try:
        return verify_trial.commits(ran.idle, ran.before)
    except ValueError:
        return None


def _syscalls(ran: Ran, faults: list[str]) -> Syscalls | None:
    if ran.strace is None:
        return None
    try:
        return parse(ran.strace, FILES)
    except ValueError as error:
        faults.append(str(error))
        return None
