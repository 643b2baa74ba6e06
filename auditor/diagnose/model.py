"""What a diagnosis says, before anybody decides how it looks."""

from __future__ import annotations

from typing import Literal, NamedTuple

from auditor.diagnose.shares import Share
from auditor.diagnose.view import View
from auditor.verify.histogram import Histogram
from auditor.verify.result import Slice, Txg

Outcome = Literal["NOT DURABLE", "CAUSE", "NOTHING STANDS OUT", "NOBODY COMMITS", "INCONCLUSIVE"]


class Evidence(NamedTuple):
    """text: what was seen; command: that shows it again, or empty."""

    text: str
    command: str


class Cause(NamedTuple):
    """Something that stands out. id: of the kind of cause; rule: that covers it, or empty. decisive: it explains commits that
    wait for something else than their log block."""

    id: str
    text: str
    evidence: tuple[Evidence, ...]
    fix: str
    rule: str
    decisive: bool


class Calls(NamedTuple):
    """How a thread came to its commits. fsync, fdatasync: its calls that came to ZFS, msync as fdatasync; other: its commits
    beyond these. at_most: not each of these calls need be one of these commits: fsync and fdatasync are at most so many, and
    other is at least so many."""

    fsync: int
    fdatasync: int
    other: int
    at_most: bool


class Committer(NamedTuple):
    """A thread that committed. dataset: to which, empty where that could not be told. part: of the time of all commits.
    own: of the process that was named. service: zvol or nfsd, of a thread of the kernel that commits for others. calls: None
    where they were not counted."""

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
    calls: Calls | None = None


class Own(NamedTuple):
    """The process that was named, with those that it started. datasets: to which it had files open for writing. commits,
    mean_ns, part (of the time of all commits): None where they were not seen. text: one sentence; faults: what was not seen of
    it. parent: which is the same database server, or 0."""

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


class Waiter(NamedTuple):
    """A thread that was seen waiting for commits. part: of all samples. own: of the process that was named."""

    pid: int
    name: str
    role: str
    within: str
    samples: int
    part: float
    own: bool


class Stacked(NamedTuple):
    """What samples of stacks come to, where there is no trace. passes: looks at all threads; samples: threads that were waiting
    then; waiting: how many at a time, on average; mean_ns: of a commit, too small by nature, None with the reason why."""

    passes: int
    samples: int
    waiting: float
    mean_ns: float | None
    why: str
    waiters: tuple[Waiter, ...]


class Second(NamedTuple):
    """One line of ``--watch``. at: its end, seconds since the epoch; seconds: how long it was. None: not seen, or there was
    nothing. most_ns: the bucket of the slowest. own: commits of the process, or to the dataset, that was named. device: the
    slowest leg of the log, with what a write and a flush took on it. held: writers that were held back; states: of the
    transaction groups that are not committed (open, quiescing, waiting, syncing); dirty: bytes of the newest of which that is
    known; sync_s: of the last that was committed."""

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


class Committed(NamedTuple):
    """A dataset that committed. commits: None where datasets are not counted apart. sync: the property, or empty."""

    dataset: str
    commits: int | None
    sync: str


class Device(NamedTuple):
    """A device of the pool while commits ran. log: log blocks land there. None: not counted. block_ns: what one log block
    costs on it, its write and the flush after it."""

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
    """One diagnosis. answer: one sentence. reasons: why it is INCONCLUSIVE, or what else could not be seen. commits: by the
    ZIL; traced: by the trace; mean_ns: None without one. latency: by powers of two. overlap: as of Shares. taken: seconds
    since the epoch. own: where a process was named. stacked: without a trace, as root. database: its own view, where --db
    named one. held: how often writers were held back, of all pools together, None where that was not counted. calls: of all
    threads together; uncalled: why they were not counted, or empty."""

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
    datasets: tuple[Committed, ...]
    devices: tuple[Device, ...]
    causes: tuple[Cause, ...]
    commands: tuple[str, ...]
    own: Own | None = None
    stacked: Stacked | None = None
    database: View | None = None
    held: int | None = None
    calls: Calls | None = None
    uncalled: str = ""
