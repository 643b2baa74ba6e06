"""What a trial comes to, as numbers: one :class:`Run` for each run of fio. Nothing here is judged.

A counter that was not there is None, never 0.
"""

from __future__ import annotations

from typing import NamedTuple

from auditor.verify.histogram import Histogram

LIMITED = "the run was ended early: it had written as many bytes as it may (--limit)"

JOB_FILE = "zaudit.job.fio"  # what a command line calls the job file, which fio reads from its standard input


class Slice(NamedTuple):
    """A piece of a run. at_s, to_s: seconds since the run began. syncs: latencies of the sync writes that ended in it."""

    at_s: float
    to_s: float
    syncs: Histogram


class Job(NamedTuple):
    """What fio says of one group of jobs. sync: how it asked for stable storage (fsync, fdatasync, dsync, sync or none).

    syncs: how often that returned; latency: of each until it returned. error: of the system, 0 for none.
    """

    name: str
    sync: str
    writes: int
    write_bytes: int
    reads: int
    syncs: int
    short_writes: int
    seconds: float
    error: int
    latency: Histogram
    cpu_percent: float


class Zil(NamedTuple):
    """What the ZIL counted during a run. None: this release does not count it."""

    commits: int
    writers: int | None = None
    slog_blocks: int | None = None
    slog_bytes: int | None = None
    slog_written: int | None = None
    normal_blocks: int | None = None
    normal_bytes: int | None = None
    normal_written: int | None = None
    indirect: int | None = None
    indirect_bytes: int | None = None
    errors: int | None = None
    stalls: int | None = None


class Device(NamedTuple):
    """One physical disk during a run. leaves: those on it. top: its top-level vdev. zil: ZIL blocks can land there.

    flush_ms, write_ms: time that flushes and writes took together. volatile: whether it has a volatile cache that is on;
    None: nobody could tell (why says it). virtual: a hypervisor stands behind it.
    """

    disk: str
    leaves: tuple[str, ...]
    top: str
    zil: bool
    allocation_class: str
    writes: int
    bytes: int
    flushes: int | None
    write_ms: int
    flush_ms: int | None
    volatile: bool | None
    why: str
    virtual: bool


class Txg(NamedTuple):
    """A transaction group that was open or synced during a run. at_s: when it was born, in seconds since the run began;
    open_s, sync_s: how long it was open and how long it took to sync. dirty, written: bytes."""

    number: int
    at_s: float
    open_s: float
    sync_s: float
    dirty: int
    written: int


class Syscalls(NamedTuple):
    """What strace saw of fio on the files of the run. opened: the flags of each open, without O_CREAT and the like."""

    writes: int
    fsyncs: int
    fdatasyncs: int
    opened: tuple[tuple[str, ...], ...]


class Run(NamedTuple):
    """One run of fio and what every witness saw during it.

    purpose: log (judged), calls (the same under strace), warm (makes the files), and what the profile has besides. began:
    seconds since the epoch. jobs: the job that stands for the log is the first. others: ZIL commits of other datasets of the
    pool, by name; None where they cannot be told apart. idle_s, idle_commits, idle_writes (by disk): the same over an
    idle time just before. counters: what grew of dmu_tx, by row. heat: by disk, how much its counters of thermal
    throttling grew. faults: sentences about what could not be read.
    """

    name: str
    purpose: str
    argv: tuple[str, ...]
    began: float
    seconds: float
    jobs: tuple[Job, ...]
    timeline: tuple[Slice, ...]
    zil: Zil | None
    others: dict[str, int] | None
    idle_s: float
    idle_commits: int | None
    idle_writes: dict[str, int]
    devices: tuple[Device, ...]
    txgs: tuple[Txg, ...]
    counters: dict[str, int]
    heat: dict[str, int]
    syscalls: Syscalls | None
    faults: tuple[str, ...]

    @property
    def log(self) -> Job:
        return self.jobs[0]

    @property
    def latency(self) -> Histogram:
        """Of the syncs of the job that stands for the log; empty when fio said nothing."""
        return self.jobs[0].latency if self.jobs else Histogram()
