"""What a diagnosis comes to: who commits, the shares of the wait, causes, seconds and a database's own report. Types, and
the arithmetic of shares."""

from __future__ import annotations

from typing import Literal, NamedTuple

from auditor.verify.result import Histogram, Slice, Txg

# The database's view.


class Row(NamedTuple):
    """Something that was counted. counted, mean_ns: None where unknown, or not timed. why: the reason, or empty."""

    what: str
    counted: int | None
    mean_ns: float | None
    why: str


class Wait(NamedTuple):
    """What backends waited for. mean: how many at a moment; most: at once."""

    what: str
    mean: float
    most: int


class View(NamedTuple):
    """engine: PostgreSQL. server: "postgres 1234", as the audit calls it, or empty. rows: the database's. first: the
    sentence about the row that is compared with the kernel's. kernel: commits by its processes, None where not seen. waits:
    of backends at work, active of them at a moment. settings: NAME = VALUE that decide what is counted. unseen: what is
    missing, and why. commands: that repeat it."""

    engine: str
    server: str
    first: str
    rows: tuple[Row, ...]
    kernel: Row | None
    waits: tuple[Wait, ...]
    active: float
    settings: tuple[str, ...]
    unseen: tuple[str, ...]
    commands: tuple[str, ...]


# Where the time of a commit goes, as shares that add up to all of it. A commit waits until its log block is issued (queue),
# for the threads of OpenZFS that pass it on (pipeline), for the write and then the flush of the slowest device of a log
# vdev, and for a CPU for the woken thread (wake-up). Each is measured separately; the rest is unexplained. (OpenZFS
# module/zfs/zil.c: zil_commit_writer(), zil_lwb_write_done(), zil_lwb_flush_vdevs_done(), zil_commit_waiter())

MOST_UNEXPLAINED = 0.30


class Parts(NamedTuple):
    """Means in nanoseconds. None: not measured. both: write and flush where a device counts them together. data: written
    before its log block, which only points to it."""

    commit: float
    queue: float | None = None
    write: float | None = None
    flush: float | None = None
    both: float | None = None
    pipeline: float | None = None
    wake: float | None = None
    data: float | None = None


class Share(NamedTuple):
    """what: queue, pipeline, data write, log write, flush, log write and flush, wake-up, unexplained. part: 0 to 1."""

    what: str
    ns: float
    part: float


class Shares(NamedTuple):
    """shares: add up to the commit. overlap: by how much the parts exceed it. why_not: why they explain nothing, or
    empty."""

    shares: tuple[Share, ...]
    overlap: float
    why_not: str


def shares(parts: Parts) -> Shares:
    """The shares of a mean commit. Parts that exceed the whole are scaled down alike."""
    if parts.commit <= 0:
        return Shares((), 0.0, "no commit took any time")
    # who commits waits for a CPU between its commits, too; the threads that pass a log block on work for several devices side
    # by side, and for other I/O: each at most what the others leave
    left = parts.commit - sum(filter(None, (parts.queue, parts.data, parts.write, parts.flush, parts.both)))
    if parts.wake is not None:
        parts = parts._replace(wake=min(parts.wake, max(left, 0.0)))
    if parts.pipeline is not None:
        parts = parts._replace(pipeline=min(parts.pipeline, max(left - (parts.wake or 0.0), 0.0)))
    named = (
        ("queue", parts.queue),
        ("pipeline", parts.pipeline),
        ("data write", parts.data),
        ("log write", parts.write),
        ("flush", parts.flush),
        ("log write and flush", parts.both),
        ("wake-up", parts.wake),
    )
    seen = [(what, ns) for what, ns in named if ns is not None]
    together = sum(ns for _, ns in seen)
    overlap = max(together / parts.commit - 1, 0.0)
    scale = 1 / (1 + overlap)
    told = [Share(what, ns * scale, ns * scale / parts.commit) for what, ns in seen]
    left = max(1 - sum(each.part for each in told), 0.0)
    told.append(Share("unexplained", left * parts.commit, left))
    return Shares(tuple(told), overlap, _why_not(left, overlap, seen == []))


def woken(parts: Parts, found: Shares, alone: bool) -> tuple[float, float]:
    """The least and the most of a commit, 0 to 1, that waits for a CPU. A thread alone has no turn to wait for: its queue
    time is its own work before its log block, or waiting for a CPU."""
    told = {each.what: each.part for each in found.shares}
    least = told.get("wake-up", 0.0)
    if not alone or not parts.wake:
        return least, least
    return least, max(least, min(parts.wake / parts.commit, least + told.get("queue", 0.0)))


def _why_not(left: float, overlap: float, nothing: bool) -> str:
    if nothing:
        return "no part of a commit could be measured"
    if left > MOST_UNEXPLAINED:
        return f"{left:.0%} of the time of a commit is not explained by what was measured"
    if overlap > MOST_UNEXPLAINED:
        return (
            f"the parts of a commit are {overlap:.0%} longer than the commit: devices did other work at the same time"
        )
    return ""


def longest(found: Shares) -> Share | None:
    """The part that explains most, None where none does."""
    explained = [each for each in found.shares if each.what != "unexplained"]
    return max(explained, key=lambda each: each.part, default=None) if not found.why_not else None


Outcome = Literal["NOT DURABLE", "CAUSE", "NOTHING STANDS OUT", "NOBODY COMMITS", "INCONCLUSIVE"]


class Evidence(NamedTuple):
    """text: what was seen; command: that shows it again, or empty."""

    text: str
    command: str


class Cause(NamedTuple):
    """Something that stands out. id: of the kind of cause. rule: that covers it, or empty. decisive: it explains commits
    that wait for something else than their log block."""

    id: str
    text: str
    evidence: tuple[Evidence, ...]
    fix: str
    rule: str
    decisive: bool


class Committer(NamedTuple):
    """A thread that committed. dataset: empty where unknown. part: of the time of all commits. own: of the named process.
    service: zvol or nfsd, of a thread of the kernel that commits for others."""

    pid: int
    name: str
    role: str
    within: str
    dataset: str
    commits: int
    mean_ns: float
    part: float
    own: bool = False
    service: Literal["zvol", "nfsd", ""] = ""


class ProcessPart(NamedTuple):
    """The named process and its descendants. datasets: with files open for writing. commits, mean_ns, part (of the time of
    all): None where not seen. text: one sentence. faults: what was not seen. parent: the same database server, or 0."""

    pid: int
    name: str
    processes: int
    datasets: tuple[str, ...]
    commits: int | None
    mean_ns: float | None
    part: float | None
    text: str
    faults: tuple[str, ...]
    parent: int


class Second(NamedTuple):
    """One line of ``--watch``. at: its end, seconds since the epoch; seconds: its length. None: not seen, or nothing there.
    most_ns: the bucket of the slowest. own: commits of the named process or dataset. device: the slowest leg of the log,
    with its write and flush. held: writers held back. states: of the transaction groups that are not committed (open,
    quiescing, waiting, syncing). dirty: bytes of the newest with a figure. sync_s: of the last one committed."""

    at: float
    seconds: float
    commits: int | None = None
    mean_ns: float | None = None
    p99_ns: int | None = None
    most_ns: int | None = None
    own: int | None = None
    own_mean_ns: float | None = None
    device: str = ""
    write_ns: float | None = None
    flush_ns: float | None = None
    held: int | None = None
    dirty: int | None = None
    states: str = ""
    sync_s: float | None = None


class DatasetCommits(NamedTuple):
    """A dataset that committed. commits: None where datasets are not counted apart. sync: the property, or empty."""

    dataset: str
    commits: int | None
    sync: str


class Device(NamedTuple):
    """A device of the pool while commits ran. log: log blocks land there. None: not counted. block_ns: the cost of one log
    block, its write and the flush after it."""

    device: str
    leaf: str
    top: str
    kind: str
    log: bool
    writes: int
    flushes: int | None
    write_ns: float | None
    flush_ns: float | None
    block_ns: float | None
    busy: float


class Diagnosis(NamedTuple):
    """answer: one sentence. reasons: why it is INCONCLUSIVE, or what else was not seen. commits: by the ZIL; traced: by the
    trace. mean_ns: None without a trace. latency: by powers of two. overlap: as of Shares. taken: seconds since the epoch.
    own: of the named process. database: with --db. held: how often writers were held back, of all pools, None where not
    counted."""

    target: str
    pool: str
    taken: float
    seconds: float
    outcome: Outcome
    answer: str
    reasons: tuple[str, ...]
    commits: int | None
    blocks: int | None
    traced: int | None
    mean_ns: float | None
    latency: Histogram
    timeline: tuple[Slice, ...]
    txgs: tuple[Txg, ...]
    shares: tuple[Share, ...]
    overlap: float
    committers: tuple[Committer, ...]
    datasets: tuple[DatasetCommits, ...]
    devices: tuple[Device, ...]
    causes: tuple[Cause, ...]
    commands: tuple[str, ...]
    own: ProcessPart | None = None
    database: View | None = None
    held: int | None = None
