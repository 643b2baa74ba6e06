"""What a verification comes to: latencies, counts of each run, the chain and its verdicts. Types and arithmetic."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from auditor.codec import CodecError, members, scalar, short
from auditor.text import duration

# Latency distributions as fio counts them: a number of samples for each bucket (fio stat.h, 64 buckets a power of two).

LEAST_BEYOND = 10  # samples beyond a percentile, below which it is not judged


class Histogram(NamedTuple):
    """counts: (upper end of the bucket in nanoseconds, samples), ascending; a bucket is at most 1.6 % wide."""

    counts: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, bins: Mapping[int, int]) -> Histogram:
        """From bucket -> samples; empty buckets are left out. Raises ValueError for a negative count."""
        if any(count < 0 for count in bins.values()):
            raise ValueError("a histogram with a negative count")
        return cls(tuple(sorted((ns, count) for ns, count in bins.items() if count)))

    def to_plain(self) -> dict[str, int]:
        """Bucket -> samples, as fio writes its own ("bins" of json+)."""
        return {str(ns): count for ns, count in self.counts}

    @classmethod
    def from_plain(cls, data: Any, where: str) -> Histogram:
        """Raises CodecError."""
        bins: dict[int, int] = {}
        for key, each in members(data, where):
            count = scalar(int, each, f"{where}.{short(key)}")
            if not (key.isascii() and key.isdigit() and len(key) < 19 and str(int(key)) == key):
                raise CodecError(f"{where}: {short(key)} is not a bucket in nanoseconds")
            if count < 1:
                raise CodecError(f"{where}.{key} is {count}: no samples in a bucket")
            bins[int(key)] = count
        return cls.of(bins)

    @property
    def samples(self) -> int:
        return sum(count for _, count in self.counts)

    def percentile_ns(self, q: float) -> int | None:
        """The latency that a share q (0 to 1) of the samples did not exceed; None without samples."""
        if not self.counts:
            return None
        sums = list(accumulate(count for _, count in self.counts))
        return self.counts[bisect_left(sums, q * sums[-1] - 1e-9)][0]

    def beyond(self, q: float) -> int:
        """How many samples are expected above a percentile: it is judged with LEAST_BEYOND or more."""
        return int(self.samples * (1 - q) + 1e-9)

    def judged(self, q: float) -> int | None:
        """The percentile in nanoseconds, None with too few samples beyond it."""
        return self.percentile_ns(q) if self.beyond(q) >= LEAST_BEYOND else None

    def share_above(self, ns: int) -> float:
        return sum(count for bucket, count in self.counts if bucket > ns) / self.samples if self.counts else 0.0

    def minus(self, earlier: Histogram) -> Histogram:
        """What was added since an earlier state of the same histogram. Raises ValueError when it is not one."""
        bins = Counter(dict(self.counts))
        bins.subtract(dict(earlier.counts))
        return Histogram.of(bins)


def together(histograms: Iterable[Histogram]) -> Histogram:
    bins = Counter[int]()
    for histogram in histograms:
        bins.update(dict(histogram.counts))
    return Histogram.of(bins)


# A trial as numbers: one :class:`Run` for each run of fio, not judged. A counter that was not there is None, never 0.

LIMITED = "the run was ended early: it had written as many bytes as it may (--limit)"

JOB_FILE = "zaudit.job.fio"  # what a command line calls the job file, which fio reads from its standard input


class Slice(NamedTuple):
    """A piece of a run. at_s, to_s: seconds since the run began. syncs: latencies of the syncs that ended in it."""

    at_s: float
    to_s: float
    syncs: Histogram


class Job(NamedTuple):
    """One group of jobs, as fio reports it. sync: fsync, fdatasync, dsync, sync or none. syncs: how often that returned;
    latency: of each. error: of the system, 0 for none."""

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
    """One physical disk during a run. leaves: on it. top: its top-level vdev. zil: ZIL blocks can land there. write_ms,
    flush_ms: total time. volatile: a volatile cache is on; None: unknown (why). virtual: a hypervisor is behind it."""

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
    """A transaction group that was open or synced during a run. at_s: its birth, in seconds since the run began. open_s,
    sync_s: how long it was open and synced. dirty, written: bytes."""

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
    """One run of fio and what every witness saw. purpose: log (judged), calls (the same under strace), warm (makes the
    files), or another of the profile. began: seconds since the epoch. jobs: the one that stands for the log is first.
    others: ZIL commits of other datasets of the pool, by name; None where they are not counted apart. idle_s, idle_commits,
    idle_writes (by disk): the same over an idle time just before. counters: growth of dmu_tx, by row. heat: growth of the
    counters of thermal throttling, by disk. faults: sentences about what could not be read."""

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


Status = Literal["accounts", "contradicts", "unseen"]
Outcome = Literal["TRACED", "CONTRADICTED", "INCONCLUSIVE"]
Judgement = Literal["met", "missed", "not judged"]
KERNEL_LOG = "kernel's log"  # name of the link
FOREIGN_LOAD = "foreign load"  # how a reason begins that names what others did
CANNOT_EXCLUDE = (
    "What even TRACED cannot exclude: OpenZFS ignores the result of a flush (zio_flush in module/zfs/zio.c), so a "
    "failed one shows only if the kernel logged it. A drive, controller or hypervisor may complete a flush without doing "
    "it. Only a power cut tells."
)


class Link(NamedTuple):
    """One link of the chain of custody. status: whether its figures account for all syncs of the link above. name: dataset,
    system calls, fio, ZIL, or a disk. figures: (what, number)."""

    name: str
    status: Status
    text: str
    figures: tuple[tuple[str, int], ...] = ()


class Chain(NamedTuple):
    """links: from the application down. reasons: of INCONCLUSIVE, one sentence each."""

    outcome: Outcome
    links: tuple[Link, ...]
    reasons: tuple[str, ...] = ()


def percentile_name(q: float) -> str:
    return f"p{q * 100:.4f}".rstrip("0").rstrip(".")


class Slo(NamedTuple):
    """One objective. q: the percentile as a share (0.99); limit_ns."""

    q: float
    limit_ns: int


class Percentile(NamedTuple):
    """One percentile of the sync latency of a run. ns: None with too few samples beyond it (beyond < 10). limit_ns: of the
    objective, None without one. judgement: "not judged" comes with why."""

    q: float
    ns: int | None
    beyond: int
    limit_ns: int | None
    judgement: Judgement
    why: str = ""


class Latency(NamedTuple):
    """The latency of one run. why_not: why nothing is judged, or empty. commits_per_s: of one session, 1/p50. at_slo: syncs
    per second in the seconds within the objective. tail, bottleneck: a sentence, or empty."""

    run: str
    percentiles: tuple[Percentile, ...]
    commits_per_s: float | None
    at_slo: float | None
    tail: str
    bottleneck: str
    why_not: str


class Verification(NamedTuple):
    """One verification of one dataset or zvol. target: asked for; dataset: written to; place: the directory, or the folder
    of the scratch zvol. profile: its name, or the path of the job file. chain: of the log run. latencies: one a run that
    syncs. proves, does_not: as the profile says. taken: seconds since the epoch. job_file: its text; size: what
    ${ZAUDIT_SIZE} stood for, in bytes."""

    target: str
    dataset: str
    place: str
    profile: str
    length: str
    taken: float
    chain: Chain
    runs: tuple[Run, ...]
    latencies: tuple[Latency, ...]
    proves: str
    does_not: str
    fio: str
    job_file: str
    size: int


# When the latency of a run is judged: with enough samples beyond a percentile, an honest run, and syncs that mean
# something.

SHOWN = (0.5, 0.95, 0.99, 0.999)
WITH_OBJECTIVE = ("log", "binlog", "together")  # where a session waits for a commit
SLOW = 10  # times the median
MEANINGLESS = "a sync means nothing here: its time does not matter"
CPU_BUSY, MOST_OF_IT = 80.0, 0.6


def judge(run: Run, objectives: Sequence[Slo], why_not: str) -> Latency:
    """why_not: why nothing of this run is judged, or empty. Where a sync means nothing, neither does commits per second."""
    limits = {slo.q: slo.limit_ns for slo in objectives} if run.purpose in WITH_OBJECTIVE else {}
    latency = run.log.latency if run.jobs else Histogram()
    median = latency.percentile_ns(0.5)
    percentiles = tuple(_percentile(latency, q, limits.get(q), why_not) for q in sorted({*SHOWN, *limits}))
    if why_not == MEANINGLESS:
        return Latency(run.name, percentiles, None, None, "", "", why_not)
    return Latency(
        run=run.name,
        percentiles=percentiles,
        commits_per_s=round(1e9 / median, 1) if median else None,
        at_slo=_at_objective(run, limits),
        tail=_tail(run, median) if median else "",
        bottleneck=_bottleneck(run),
        why_not=why_not,
    )


def _percentile(latency: Histogram, q: float, limit: int | None, why_not: str) -> Percentile:
    ns, beyond = latency.judged(q), latency.beyond(q)
    judgement: Judgement = "not judged"
    why = why_not
    if ns is None:
        why = f"{beyond} samples beyond it, {LEAST_BEYOND} are needed"
    elif limit is None:
        why = why or "no objective"
    elif not why_not:
        judgement = "met" if ns <= limit else "missed"
    return Percentile(q, ns, beyond, limit, judgement, why)


def _at_objective(run: Run, limits: dict[float, int]) -> float | None:
    """Syncs per second over the intervals that kept every objective; None without objectives or such intervals."""
    if not limits:
        return None
    kept = [
        each
        for each in run.timeline
        if each.syncs.samples and all(each.syncs.share_above(limit) <= 1 - q + 1e-9 for q, limit in limits.items())
    ]
    seconds = sum(each.to_s - each.at_s for each in kept)
    return round(sum(each.syncs.samples for each in kept) / seconds, 1) if seconds > 0 else None


def _tail(run: Run, median: int) -> str:
    """Whether the slow syncs come when transaction groups are synced, by the intervals in which that happened."""
    if not run.txgs or len(run.timeline) < 10:
        return ""
    syncing = [(txg.at_s + txg.open_s, txg.at_s + txg.open_s + txg.sync_s) for txg in run.txgs if txg.sync_s > 0]
    during = [each for each in run.timeline if any(begin < each.to_s and end > each.at_s for begin, end in syncing)]
    slow_all, slow_during = (
        sum(count for each in some for ns, count in each.syncs.counts if ns > SLOW * median)
        for some in (run.timeline, during)
    )
    time_during = sum(each.to_s - each.at_s for each in during) / max(run.timeline[-1].to_s, 1e-9)
    if slow_all < LEAST_BEYOND or time_during > 0.8 or slow_during < 0.8 * slow_all:
        return ""
    return (
        f"{slow_during / slow_all:.0%} of the syncs slower than {duration(SLOW * median)} fell into the {time_during:.0%} "
        "of the time with a transaction group being written: it causes the tail"
    )


def _bottleneck(run: Run) -> str:
    """Where the time of a sync goes, from the counters of the devices and of the throttle."""
    if not run.jobs or not run.log.syncs or not run.log.latency.counts:
        return ""
    job = run.log
    held = run.counters.get("dmu_tx_dirty_delay", 0) + run.counters.get("dmu_tx_dirty_over_max", 0)
    if held:
        return (
            f"the write throttle held back {held} transactions: dirty data comes in faster than the data vdevs take it"
        )
    if job.cpu_percent > CPU_BUSY:
        return f"the processor: the job kept one core busy for {job.cpu_percent:.0f} % of the time"
    mean = sum(ns * count for ns, count in job.latency.counts) / job.latency.samples
    slowest = max((each for each in run.devices if each.zil), key=_busy_ms, default=None)
    if slowest is None:
        return ""
    each = _busy_ms(slowest) * 1e6 / job.syncs
    flush = (slowest.flush_ms or 0) * 1e6 / job.syncs
    what = "log device" if slowest.allocation_class == "log" else f"{slowest.allocation_class} vdevs"
    takes = f"{slowest.disk} takes {duration(each)} of the {duration(mean)} of a sync"
    if each >= MOST_OF_IT * mean:
        return f"the {what}: {takes}, {duration(flush)} of it to flush"
    return f"not the {what}: {takes}; the rest is spent above it"


def _busy_ms(device: Device) -> int:
    return device.write_ms + (device.flush_ms or 0)
