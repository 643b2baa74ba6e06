"""Commits by thread and volume, from histograms of the kernel or from the calls of a process. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from auditor.diagnose.diagnosis import Calls, Cause
from auditor.diagnose.observation import KERNEL, Counters, Observation, Tick, TraceTexts
from auditor.facts import HOST, Facts, Subject
from auditor.verify.result import Histogram, Slice

# What the kernel's histogram triggers print. (Linux Documentation/trace/histogram.rst; kernel/trace/trace_events_hist.c)
#
# One line an entry, ``{ common_pid: postgres [ 338], zil: 1 } hitcount: 300 us: 8127205``, and at the end ``Hits``, ``Entries``
# and ``Dropped``: what found no room any more. A key ``us: ~ 2^14`` stands for more than 2^13 microseconds, up to 2^14
# (hist_field_log2() rounds up).

MOST = 4096  # entries of a histogram
LARGEST = 4 << 20  # bytes of a file of tracefs that are read: so many entries of at most 400, of several histograms
# a name is any 15 bytes, newlines and brackets among them; it is padded to 16 (hist_trigger_print_key())
_THREAD = re.compile(
    r"^\{ common_pid: ((?s:.){1,16}?) {0,20}\[ {0,12}([0-9]{1,9})\](?:, zil: {1,20}([0-9]{1,9}))?"
    r" \} hitcount: {1,20}([0-9]{1,19}) {1,20}us: {1,20}([0-9]{1,19})[ \t]*$",
    re.MULTILINE,
)
_LATENCY = re.compile(r"^\{ us: ~ 2\^([0-9]{1,2}) {0,20}\} hitcount: {1,20}([0-9]{1,19})[ \t]*$", re.MULTILINE)
_CALL = re.compile(
    r"^\{ common_pid: {1,20}([0-9]{1,9}), datasync: {1,20}([0-9]{1,20}) \} hitcount: {1,20}([0-9]{1,19})[ \t]*$",
    re.MULTILINE,
)
_ENTRY = re.compile(r"^\{", re.MULTILINE)
_DROPPED = re.compile(r"^ {4}Dropped: ([0-9]{1,19})$", re.M)


class Histograms(NamedTuple):
    """Both histograms so far: of all commits by latency, and by thread and ZIL. Empty without a trace."""

    latencies: str = ""
    threads: str = ""


class Thread(NamedTuple):
    """Commits of one thread to one ZIL. zil: a number that stands for it, 0 where it is not known."""

    pid: int
    name: str
    zil: int
    commits: int
    us: int


class Threads(NamedTuple):
    """unread: entries that are not understood, at the least; what is counted without them is too little."""

    rows: tuple[Thread, ...]
    unread: int


def complete(text: str) -> bool:
    """Whether it is a histogram in which everything found room. An empty one prints no entries and drops none."""
    dropped = _DROPPED.search(text)
    return dropped is not None and int(dropped[1]) == 0


def by_thread(text: str) -> Threads:
    """Those that can be read: the name of one thread costs no other."""
    seen = text[:LARGEST]
    found = list(islice(_THREAD.finditer(seen), MOST))
    rows = (Thread(int(each[2]), each[1], int(each[3] or 0), int(each[4]), int(each[5])) for each in found)
    left = len(_ENTRY.findall(_THREAD.sub("", seen, count=MOST)))
    return Threads(tuple(rows), left + (len(text) > LARGEST))


def latencies(text: str) -> Histogram:
    """Microseconds by powers of two; a bucket is called by its upper end. Raises ValueError for an entry of another kind."""
    bins = Counter[int]()
    for power, hits in _LATENCY.findall(text):
        bins[(1 << min(int(power), 40)) * 1000] += int(hits)
    if _ENTRY.search(_LATENCY.sub("", text)):
        raise ValueError("a histogram of latencies with an entry of another kind")
    return Histogram.of(bins)


def calls(text: str) -> dict[int, tuple[int, int]]:
    """Thread -> its calls of fsync, and of fdatasync. Raises ValueError for an entry of another kind, and where one found no
    room."""
    found: dict[int, tuple[int, int]] = {}
    for thread, datasync, hits in _CALL.findall(text):
        full, data = found.get(int(thread), (0, 0))
        found[int(thread)] = (full, data + int(hits)) if int(datasync) else (full + int(hits), data)
    if not complete(text):
        raise ValueError("the histogram of calls had no room for all that came")
    if _ENTRY.search(_CALL.sub("", text)):
        raise ValueError("a histogram of calls with an entry of another kind")
    return found


def slices(began: float, ticks: Sequence[Tick]) -> tuple[Slice, ...]:
    """What was added between one tick and the next. Raises ValueError where a histogram lost samples."""
    found = []
    start, earlier = began, Histogram()
    for tick in ticks:
        now = latencies(tick.commits)
        found.append(Slice(round(start - began, 3), round(tick.at - began, 3), now.minus(earlier)))
        start, earlier = tick.at, now
    return tuple(found)


# What the kernel traced: who committed, how long each waited, and to which dataset. Pure.

FEW = 20  # commits, below which no mean is told as that of a load
TOLD = 5  # commits by which two counts may differ that are not read at the same moment, and this share of them:
TOLERANCE = 0.05
LABELS = 4  # writes to a device when a transaction group ends: uberblocks and configuration (module/zfs/vdev_label.c)
MOST_LATE = 0.5  # share of the time; a trace that ends before that says nothing of the counters


class Trace(NamedTuple):
    """What the histograms come to. faults: why they are not believed. whole: every commit that was traced is among those of
    the threads."""

    threads: tuple[Thread, ...] = ()
    latency: Histogram = Histogram()
    timeline: tuple[Slice, ...] = ()
    queue_ns: float | None = None
    faults: tuple[str, ...] = ()
    whole: bool = False

    @property
    def commits(self) -> int:
        return sum(each.commits for each in self.threads)

    @property
    def mean_ns(self) -> float | None:
        return sum(each.us for each in self.threads) * 1000 / self.commits if self.commits else None


def traced(seen: TraceTexts, began: float) -> Trace:
    faults = []
    if seen.missed is None:
        faults.append("the kernel did not say whether it traced every commit")
    elif seen.missed:
        faults.append(f"the kernel did not trace {seen.missed} calls")
    if not complete(seen.commits) or not all(complete(tick.commits) for tick in seen.ticks):
        faults.append("a histogram of the kernel had no room for all that came")
    threads, queued = by_thread(seen.commits), by_thread(seen.queue)
    if unread := threads.unread + queued.unread:
        faults.append(f"{unread} entries of the kernel's histograms of threads could not be read")
    latency, timeline = Histogram(), tuple[Slice, ...]()
    try:
        latency = latencies(seen.ticks[-1].commits) if seen.ticks else latency
        timeline = slices(began, seen.ticks)
    except ValueError as error:
        faults.append(str(error))
    commits, writers = (sum(each.commits for each in found.rows) for found in (threads, queued))
    # who finds its records in somebody else's block never waits for a turn of its own
    queue = sum(each.us for each in queued.rows) * 1000 / commits if commits and writers >= 0.5 * commits else None
    whole = complete(seen.commits) and not threads.unread
    return Trace(threads.rows, latency, timeline, queue, tuple(faults), whole)


def crowd(threads: Sequence[Thread]) -> int | None:
    """Threads that commit to the busiest ZIL."""
    return max(Counter(each.zil for each in threads if each.commits >= FEW).values(), default=None)


def close(one: int, other: int, more: float = 0.0) -> bool:
    """Whether two counts are the same that were not read at the same moment. more: by which they may differ besides."""
    return abs(one - other) <= max(TOLD, TOLERANCE * max(one, other)) + more


def of_kernel(seen: Observation, threads: Sequence[Thread]) -> list[Thread]:
    """What threads of the kernel did for volumes."""
    kernels = {each.pid for each in seen.processes if each.role == KERNEL}
    return [each for each in threads if each.pid in kernels and each.name.startswith("zvol")]


def datasets_of(
    threads: Sequence[Thread], counted: Counters, facts: Facts, of_volumes: Collection[Thread] = ()
) -> dict[int, str]:
    """ZIL -> the one dataset whose count of commits is like that of the ZIL. One that no count fits is that of the dataset
    with sync=disabled, where there is only one that is written to: its commits are not counted. of_volumes: threads of the
    kernel among these."""
    sums = Counter[int]()
    for each in threads:
        sums[each.zil] += each.commits
    sums.pop(0, None)
    found = _only_volume({each.zil for each in of_volumes}, counted, facts)
    fits = {
        zil: [each.name for each in counted.datasets if each.commits and close(each.commits, commits)]
        for zil, commits in sums.items()
    }
    for zil, names in fits.items():
        if len(names) == 1 and sum(names[0] in others for others in fits.values()) == 1:
            found[zil] = names[0]
    quiet = silent(counted, facts)
    left = [zil for zil, names in fits.items() if not names and zil not in found]
    if len(quiet) == 1 and len(left) == 1:
        found[left[0]] = quiet[0]
    return found


def _only_volume(zils: set[int], counted: Counters, facts: Facts) -> dict[int, str]:
    """Where commits are counted of all datasets and pools together (OpenZFS 2.1): the one ZIL of volumes is that of the one
    dataset that was written to, where that is a volume and a log block was written for every other commit at least, which
    one that nobody writes to has none of."""
    written = [each.name for each in counted.datasets if each.writes]
    commits, blocks = counted.zil.commits or 0, counted.zil.blocks or 0
    alone = len(facts.linked(HOST, "imported_pools")) == 1
    if counted.zil.apart or not alone or len(zils) != 1 or len(written) != 1 or 2 * blocks < commits:
        return {}
    return dict.fromkeys(zils, written[0]) if volumes(written, facts) else {}


def volumes(names: Collection[str], facts: Facts) -> set[str]:
    """Those of these datasets that are volumes."""
    return {name for name in names if facts.get(Subject("dataset", name), "type").word() == "volume"}


def silent(counted: Counters, facts: Facts, *, idle: bool = False) -> list[str]:
    """Datasets with sync=disabled that were written to; idle: and those that were not, to which a sync may come as well."""
    return [
        each.name
        for each in counted.datasets
        if (each.writes or idle) and facts.get(Subject("dataset", each.name), "sync").word() == "disabled"
    ]


def mixed(counted: Counters, pool: Subject, facts: Facts) -> str:
    """Why the commits may be those of another pool, too, where all are counted together (OpenZFS 2.1): empty where no other is
    imported, or the log devices of this one alone wrote as many blocks as were counted, and labels."""
    pools, commits = facts.linked(HOST, "imported_pools"), counted.zil.commits
    if counted.zil.apart or pools == (pool,) or (commits is not None and commits < FEW):
        return ""
    tops: dict[str, int] = {}
    for leg in counted.legs:
        if leg.kind == "log":
            tops[leg.top] = max(tops.get(leg.top, 0), leg.writes)
    blocks, written = counted.zil.blocks, sum(tops.values())
    if blocks and tops and close(blocks, written, LABELS * len(tops) * (len(counted.txgs) + 1)):
        return ""
    others = ", ".join(each.name for each in pools if each != pool) or "which others are imported was not seen"
    return f"this release counts the commits of all pools together, not those of {pool.name} alone ({others})"


def disagree(counted: Counters, trace: Trace, lost: Sequence[Cause], late: float) -> tuple[str, ...]:
    """Where the ZIL counted something else than the trace. Syncs that do nothing are not counted by it. late: seconds by which
    it was read later, at most."""
    commits = counted.zil.commits
    if not trace.whole or commits is None or lost:
        return ()
    if close(commits, trace.commits, min(late / counted.seconds, MOST_LATE) * commits):
        return ()
    return (
        f"the kernel traced {trace.commits} commits, those of other pools among them, and the ZIL counted {commits}",
    )


# By which calls threads came to their commits, as far as that can be told. Pure.
#
# One call of fsync is one commit (zfs_fsync() of OpenZFS module/zfs/zfs_vnops.c), but to a dataset with sync=disabled it is
# none; before 2.4 mapped pages that it writes may be a second one (zpl_writepages() of module/os/linux/zfs/zpl_file.c). Calls
# are not counted by ZIL, so of a thread that commits to several only what is certain is told.


class CallCounts(NamedTuple):
    """rows: of each thread to each ZIL; whole: of all of them together, None where they were not counted. why_not: why."""

    rows: Mapping[Thread, Calls]
    whole: Calls | None
    why_not: str


def called(seen: TraceTexts | None, threads: Sequence[Thread], *, disabled: bool) -> CallCounts:
    """How each came to its commits. disabled: calls may have been to a dataset with sync=disabled."""
    if seen is None or seen.uncalled:
        return CallCounts({}, None, seen.uncalled if seen else "")
    try:
        counted = calls(seen.calls)
    except ValueError as error:
        return CallCounts({}, None, str(error))
    commits = Counter[int]()
    for each in threads:
        commits[each.pid] += each.commits
    of_thread = {pid: _calls(many, *counted.get(pid, (0, 0)), disabled) for pid, many in commits.items()}
    rows = {each: _part(of_thread[each.pid], each.commits, commits[each.pid]) for each in threads}
    fsync, fdatasync, other, at_most = zip(*of_thread.values(), strict=True) if of_thread else ((), (), (), ())
    return CallCounts(rows, Calls(sum(fsync), sum(fdatasync), sum(other), any(at_most)), "")


def _calls(commits: int, fsync: int, fdatasync: int, disabled: bool) -> Calls:
    """Of one thread."""
    together = fsync + fdatasync
    at_most = together > 0 and (disabled or (together > commits and not close(together, commits)))
    return Calls(min(fsync, commits), min(fdatasync, commits), max(commits - together, 0), at_most)


def _part(whole: Calls, commits: int, of_thread: int) -> Calls:
    """What is certain of commits to one ZIL, of so many of the thread."""
    if commits == of_thread:
        return whole
    fsync, fdatasync, other, at_most = whole
    mixed = sum(each > 0 for each in (fsync, fdatasync, other)) > 1
    least = max(commits - fsync - fdatasync, 0)
    return Calls(min(fsync, commits), min(fdatasync, commits), least, at_most or mixed)
