"""Who commits: by thread and volume, from histograms of the kernel; and the process that the user names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from auditor import EXIT_NOTHING, Stop
from auditor.databases import SERVERS
from auditor.diagnose.diagnosis import Cause, ProcessPart
from auditor.diagnose.observation import KERNEL, Counters, NamedProcess, Observation, Tick, TraceTexts
from auditor.facts import HOST, Facts, Subject, is_true
from auditor.host import owner
from auditor.host.live import Host
from auditor.host.request import Files, Read
from auditor.sources import mounts
from auditor.text import duration, harmless
from auditor.verify.result import Histogram, Slice

# What the kernel's histogram triggers print. (Linux Documentation/trace/histogram.rst; kernel/trace/trace_events_hist.c)
# One line an entry, ``{ common_pid: postgres [ 338], zil: 1 } hitcount: 300 us: 8127205``; at the end ``Hits``, ``Entries``
# and ``Dropped``: what found no room. A key ``us: ~ 2^14`` means more than 2^13 microseconds, up to 2^14 (hist_field_log2()
# rounds up).

MOST = 4096  # entries of a histogram
LARGEST = 4 << 20  # bytes of a file of tracefs that are read: so many entries of at most 400, of several histograms
# a name is any 15 bytes, newlines and brackets among them; it is padded to 16 (hist_trigger_print_key())
_THREAD = re.compile(
    r"^\{ common_pid: ((?s:.){1,16}?) {0,20}\[ {0,12}([0-9]{1,9})\](?:, zil: {1,20}([0-9]{1,9}))?"
    r" \} hitcount: {1,20}([0-9]{1,19}) {1,20}us: {1,20}([0-9]{1,19})[ \t]*$",
    re.MULTILINE,
)
_LATENCY = re.compile(r"^\{ us: ~ 2\^([0-9]{1,2}) {0,20}\} hitcount: {1,20}([0-9]{1,19})[ \t]*$", re.MULTILINE)
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
    """What the histograms come to. faults: why they are not believed. whole: the threads account for every commit."""

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
    """ZIL -> the one dataset with about as many commits. A ZIL that fits none is that of the dataset with sync=disabled,
    where only one is written to: its commits are not counted. of_volumes: the kernel's threads among these."""
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
    """Where all commits are counted together (OpenZFS 2.1): the one ZIL of volumes is that of the one dataset that was
    written to, where that is a volume, and log blocks were written for every other commit at least."""
    written = [each.name for each in counted.datasets if each.writes]
    commits, blocks = counted.zil.commits or 0, counted.zil.blocks or 0
    alone = len(facts.linked(HOST, "imported_pools")) == 1
    if counted.zil.apart or not alone or len(zils) != 1 or len(written) != 1 or 2 * blocks < commits:
        return {}
    return dict.fromkeys(zils, written[0]) if volumes(written, facts) else {}


def volumes(names: Collection[str], facts: Facts) -> set[str]:
    return {name for name in names if facts.get(Subject("dataset", name), "type").word() == "volume"}


def silent(counted: Counters, facts: Facts) -> list[str]:
    return [
        each.name
        for each in counted.datasets
        if each.writes and facts.get(Subject("dataset", each.name), "sync").word() == "disabled"
    ]


def mixed(counted: Counters, pool: Subject, facts: Facts) -> str:
    """Why the commits may be those of another pool too, where all are counted together (OpenZFS 2.1). Empty where no other
    is imported, or the log devices of this one wrote as many blocks as were counted, and labels."""
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
    """Where the ZIL counted other than the trace. late: seconds by which it was read later, at most."""
    commits = counted.zil.commits
    if not trace.whole or commits is None or lost:
        return ()
    if close(commits, trace.commits, min(late / counted.seconds, MOST_LATE) * commits):
        return ()
    return (
        f"the kernel traced {trace.commits} commits, those of other pools among them, and the ZIL counted {commits}",
    )


# A process in place of a dataset: on which datasets it and its children have files open for writing, and which threads are
# theirs. The name of a pool begins with a letter, so digits alone are a process (OpenZFS module/zcommon/zfs_namecheck.c
# pool_namecheck()). The number of its mount tells which file a descriptor means: another mount namespace may read a path
# otherwise. (man 5 proc_pid_fdinfo, proc_pid_mountinfo, proc_tid_children)

PID = re.compile(r"[0-9]{1,20}")
LARGEST_PID = 1 << 22  # PID_MAX_LIMIT of include/linux/threads.h
PROCESSES, LOOKED_AT, THREADS = 1024, 64, 20_000  # of one family; whose descriptors are read; whose numbers are kept
WRITES, PATH_ONLY = 0o3, 0o10000000  # O_WRONLY | O_RDWR, O_PATH
_FLAGS = re.compile(r"^flags:[ \t]{1,9}([0-7]{1,12})$", re.MULTILINE)
_MOUNT = re.compile(r"^mnt_id:[ \t]{1,9}([0-9]{1,10})$", re.MULTILINE)
_CHILDREN = re.compile(r"(?:[0-9]{1,7} )*")
_VOLUME = re.compile(r"/dev/zd[0-9]{1,7}(?:p[0-9]{1,3})?")
TABLES = ("/proc/1/mountinfo", "/proc/self/mountinfo")


class NoSuchLoad(Stop):
    """The process has nothing to be diagnosed, or may not be looked into; the text says why and what to name instead."""

    exit_code = EXIT_NOTHING


class ProcessLoad(NamedTuple):
    """name: of the process. targets: datasets, and nodes of volumes, that it and its children write to. started: of
    :func:`owner.started`. unseen: why there may be more, or empty."""

    pid: int
    name: str
    started: int
    targets: tuple[str, ...]
    parent: int
    unseen: str


def meant(target: str) -> bool:
    return PID.fullmatch(target) is not None


def find(host: Host, target: str) -> ProcessLoad:
    """Raises NoSuchLoad."""
    pid = int(target)
    if not 0 < pid < LARGEST_PID:
        raise NoSuchLoad(f"no process has the number {target}")
    # the first question about it keeps hold of it: whatever is asked later is of this one, or is not answered
    comm = host.read(Read((f"/proc/{pid}/comm",))).text.get(f"/proc/{pid}/comm")
    started = owner.started(pid)
    if comm is None or not started:
        raise NoSuchLoad(f"no process {pid} is seen here{_hidden(host)}")
    name = comm.removesuffix("\n")
    called = f"process {pid} ({harmless(name)})"
    if started == owner.UNTOLD:
        raise NoSuchLoad(f"{called} lets its reader wait: name a dataset")
    own = _opened(host, (pid,))
    family = sorted({*members(host, pid).values()} - {pid})[: LOOKED_AT - 1]
    theirs = _opened(host, family) if family else Files({})
    still = {*members(host, pid).values()}  # others may have the numbers of those that are no children any more
    theirs = theirs._replace(links={path: to for path, to in theirs.links.items() if int(path.split("/")[2]) in still})
    if owner.started(pid) != started:
        raise NoSuchLoad(f"{called} ended while it was looked at")
    targets = tuple(sorted({*_targets(own, host), *_targets(theirs, host)}))
    unseen = [*_unseen(own), *_unseen(theirs)]
    if not targets:
        kinds = sorted({mount.fstype for _, mount, _ in _written(own) if mount})
        on = f" (its files are on {', '.join(map(harmless, kinds[:5]))})" if kinds else ""
        why = f": {unseen[0]}; name a dataset, or run zaudit as root" if unseen else f"{on}; name a dataset"
        what = "which files it has open is not known" if unseen else "it has no file on ZFS open for writing"
        raise NoSuchLoad(f"{called}: {what}{why}")
    pools = sorted({each.partition("/")[0] for each in targets if not each.startswith("/")})
    if len(pools) > 1:
        raise NoSuchLoad(several(called, pools, targets))
    return ProcessLoad(pid, name, started, targets, _parent(host, pid, name), unseen[0] if unseen else "")


def several(called: str, pools: Iterable[str], targets: Iterable[str]) -> str:
    """That one pool has to be chosen."""
    there = [harmless(each) for each in targets]
    return (
        f"{called} writes to {len(list(pools))} pools ({', '.join(there[:8])}{', ...' if len(there) > 8 else ''}): "
        f"name one of these datasets in its place"
    )


def members(host: Host, pid: int) -> dict[int, int]:
    """Thread -> process, of the process and its descendants that still run. At most PROCESSES."""
    threads: dict[int, int] = {pid: pid}
    seen, level = {pid}, [pid]
    while level and len(threads) < THREADS:
        said = host.read(Read(tuple(f"/proc/{each}/task/*/children" for each in level))).text
        below: set[int] = set()
        for path, text in said.items():
            parts = path.split("/")
            threads[int(parts[4])] = int(parts[2])
            below |= {int(each) for each in text.split()} if _CHILDREN.fullmatch(text) else set()
        level = sorted(below - seen)[: PROCESSES - len(seen)]
        seen |= set(level)
    return threads


def whole(host: Host, pid: int) -> bool:
    """Whether this kernel says which children a process has (CONFIG_PROC_CHILDREN)."""
    return bool(host.read(Read((f"/proc/{pid}/task/*/children",))).text)


class Family:
    """The threads of a process that was found, and of its children, as they come and go while it is watched."""

    def __init__(self, host: Host, found: ProcessLoad) -> None:
        self._host, self._found = host, found
        self.threads: dict[int, int] = {}
        self._told = whole(host, found.pid)
        self.look()

    def look(self) -> None:
        """Those that there are now, in addition."""
        if len(self.threads) < THREADS:
            self.threads |= members(self._host, self._found.pid)

    def named(self, known: Iterable[int], traced: Iterable[int]) -> NamedProcess:
        """What is recorded. known: threads that were seen at either end; traced: those that committed."""
        found, threads = self._found, tuple(sorted(self.threads)[:THREADS])
        lost = sorted({*traced} - {*known} - {*threads})[:THREADS]
        processes = len({*self.threads.values()})
        return NamedProcess(
            found.pid, found.name, found.targets, processes, threads, tuple(lost), found.parent, tuple(self._faults())
        )

    def _faults(self) -> Iterator[str]:
        found, now = self._found, owner.started(self._found.pid)
        if found.unseen:
            yield f"not every file that it has open was seen: {found.unseen}"
        if not self._told:
            yield "this kernel does not say which children a process has: those are not counted as its own"
        elif len({*self.threads.values()}) >= PROCESSES or len(self.threads) >= THREADS:
            yield f"it has more than {PROCESSES:,} children or {THREADS:,} threads: not all are counted as its own"
        if now == 0:
            yield "it ended while it was watched"
        elif now not in (found.started, owner.UNTOLD):
            yield "it ended while it was watched, and its number went to another process, which may be counted as its own"


# -- what it has open ---------------------------------------------------------------------------------------------


def _opened(host: Host, pids: Iterable[int]) -> Files:
    return host.read(Read(tuple(f"/proc/{pid}/{each}" for pid in pids for each in ("fd/*", "fdinfo/*", "mountinfo"))))


def _unseen(files: Files) -> list[str]:
    """Why descriptors were not seen, but for those that were closed meanwhile."""
    return [
        f"{path}: {why}"
        for path, why in sorted(files.errors.items())
        if ("/fd/" in path or "/fdinfo/" in path) and not why.startswith("no such")
    ]


def _written(files: Files) -> Iterator[tuple[str, mounts.Mount | None, str]]:
    """(process, mount, path) of each file that is open for writing. mount: None where the process does not see it."""
    tables: dict[str, Mapping[int, mounts.Mount]] = {}
    for path, target in sorted(files.links.items()):
        _, _, pid, _, number = path.split("/")
        info = files.text.get(f"/proc/{pid}/fdinfo/{number}", "")
        flags, mount = _FLAGS.search(info), _MOUNT.search(info)
        if flags and mount and int(flags[1], 8) & WRITES and not int(flags[1], 8) & PATH_ONLY:
            if pid not in tables:
                tables[pid] = _table(files.text.get(f"/proc/{pid}/mountinfo", ""))
            yield mount[1], tables[pid].get(int(mount[1])), target


def _table(text: str) -> dict[int, mounts.Mount]:
    try:
        return {each.number: each for each in mounts.mounts(text)}
    except ValueError:
        return {}


def _targets(files: Files, host: Host) -> Iterator[str]:
    """Datasets, volumes, and the volumes below other file systems. The numbers of mounts are of the whole machine, so one
    outside of the process's root directory is found among those of the host."""
    hosts: dict[int, mounts.Mount] | None = None
    for number, mount, path in _written(files):
        if mount is None:
            if hosts is None:
                said = host.read(Read(TABLES)).text
                hosts = {key: each for table in reversed(TABLES) for key, each in _table(said.get(table, "")).items()}
            mount = hosts.get(int(number))
        if mount is None:
            continue
        if mount.fstype == "zfs" and "@" not in mount.source:
            yield mount.source
        elif mount.fstype == "devtmpfs" and _VOLUME.fullmatch(path):
            yield path
        elif not mount.fstype.startswith("fuse") and _VOLUME.fullmatch(mount.source):
            yield mount.source


def _parent(host: Host, pid: int, name: str) -> int:
    """Of a process of a database server the parent, where that is the same program; else 0."""
    if name not in SERVERS:
        return 0
    said = host.read(Read((f"/proc/{pid}/stat",))).text.get(f"/proc/{pid}/stat", "").rpartition(") ")[2].split()
    parent = int(said[1]) if len(said) > 1 and PID.fullmatch(said[1]) else 0
    comm = host.read(Read((f"/proc/{parent}/comm",))).text.get(f"/proc/{parent}/comm", "") if parent else ""
    return parent if comm == f"{name}\n" else 0


def _hidden(host: Host) -> str:
    """Why it may be there all the same. (man 5 proc, hidepid)"""
    try:
        table = mounts.mounts(host.read(Read((TABLES[1],))).text.get(TABLES[1], ""))
    except ValueError:
        return ""
    mount = mounts.mount_of(table, "/proc")
    hides = mount is not None and any(each.startswith("hidepid=") and each != "hidepid=0" for each in mount.options)
    return " (/proc is mounted with hidepid, which hides those of others; run zaudit as root)" if hides else ""


# How much of what was seen is of the named process. Only who commits is narrowed: a log block holds commits of all, and the
# devices serve all. A thread of the kernel commits what is written to a volume (OpenZFS module/os/linux/zfs/zvol_os.c), so
# for a process that has one open the commits to that volume count as well.

SHARED = "log blocks, devices and causes are of the whole pool"


def attribute_to_process(
    seen: Observation, trace: Trace, facts: Facts, where: Mapping[int, str]
) -> tuple[ProcessPart | None, frozenset[Thread]]:
    """None where no process was named; and what of the trace is its own. where: ZIL -> dataset."""
    named = seen.named
    if named is None:
        return None, frozenset()
    why = _why_not(seen, trace, facts)
    below = volumes(named.targets, facts)
    kernels = [] if why or not below else of_kernel(seen, trace.threads)
    through = [each for each in kernels if where.get(each.zil) in below]
    threads = {*named.threads} if not why else set()
    mine = frozenset((*(each for each in trace.threads if each.pid in threads), *through))
    commits, us = sum(each.commits for each in mine), sum(each.us for each in mine)
    whole = sum(each.us for each in trace.threads)
    told = _share(trace, why, commits, us, whole)
    children, names = named.processes - 1, sorted({where[each.zil] for each in through})
    also = f" and {children:,} process{'es' if children > 1 else ''} that it started" if children > 0 else ""
    told += f", with what threads of the kernel commit to {', '.join(names)}" if names else ""
    faults = [*named.faults]
    if lost := sum(each.commits for each in trace.threads if each.pid in {*named.lost} and not why):
        faults.append(f"{lost:,} commits are of threads that ended before anybody saw whose they were")
    if untold := sum(each.commits for each in kernels if each.zil not in where):
        faults.append(f"{untold:,} commits are to some volume, and to which is not known")
    return ProcessPart(
        pid=named.pid,
        name=named.name,
        processes=named.processes,
        datasets=named.targets,
        commits=None if why else commits,
        mean_ns=us * 1000 / commits if commits else None,
        part=None if why else us / whole if whole else 0.0,
        text=f"process {named.pid} ({named.name}){also}{told}; {SHARED} {seen.pool}",
        faults=tuple(faults),
        parent=named.parent,
    ), mine


def _why_not(seen: Observation, trace: Trace, facts: Facts) -> str:
    if seen.traced is None:
        return f"which commits are its own was not seen: {seen.untraced}"
    if not trace.whole:
        return "which commits are its own is not known: not every thread that commits was seen"
    if not is_true(facts.get(HOST, "all_processes")):
        return "which commits are its own is not known: the kernel numbers processes otherwise than this container"
    return ""


def _share(trace: Trace, why: str, commits: int, us: int, whole: int) -> str:
    if why:
        return f": {why}"
    if not commits:
        return f" made none of the {trace.commits:,} commits"
    return (
        f" made {commits:,} of {trace.commits:,} commits, {us / whole if whole else 0:.0%} of the time of all of them, "
        f"{duration(us * 1000 / commits)} each"
    )
