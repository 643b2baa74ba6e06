"""What fio prints with ``--output-format=json+ --status-interval``: one JSON document each interval, cumulative, the last
one at the end. (fio stat.c, show_thread_status_json; json+ adds the buckets of each distribution)

With fsync and fdatasync the durable time is ``sync.lat_ns``; ``sync.total_ios`` stays 0 with fdatasync. With sync=dsync and
sync=sync there is no such block: the write itself is the sync, ``write.clat_ns``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from auditor.errors import EXIT_BROKE, Stop
from auditor.verify.histogram import Histogram, together
from auditor.verify.result import Job, Slice

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


def jobs(document: Mapping[str, Any], syncs: Mapping[str, str], first: str = "") -> tuple[Job, ...]:
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


def timeline(found: list[dict[str, Any]], syncs: Mapping[str, str], began: float, first: str = "") -> Iterator[Slice]:
    """What each interval added for the first job. began: seconds since the epoch. Raises FioError."""
    before, at = Histogram(), 0.0
    for document in found:
        log = jobs(document, syncs, first)[0]
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
