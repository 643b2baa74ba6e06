"""The look itself: every second, with tracing where root may trace."""

from __future__ import annotations

import contextlib
import math
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from auditor import interrupt
from auditor.databases.postgres import task
from auditor.diagnose import commits, observation
from auditor.diagnose import tracing as trace
from auditor.diagnose.commits import Histograms
from auditor.diagnose.conclusion import Moment, Scope, second
from auditor.diagnose.diagnosis import Second
from auditor.diagnose.observation import KERNEL, DatabaseAnswer, Observation, Process, Tick, TraceTexts
from auditor.diagnose.process_share import Family, ProcessLoad
from auditor.facts import Facts, Subject
from auditor.host import sql, sql_watch
from auditor.host.live import KTHREADD, Host
from auditor.host.request import Read
from auditor.host.sql_watch import Connection
from auditor.verify import execution, trial
from auditor.verify.execution import Progress

# Until somebody has seen enough: SIGINT or SIGTERM ends the watching, and the report is still made.

SLICE_S = 0.1


@contextlib.contextmanager
def ending() -> Iterator[Callable[[], bool]]:
    """Gives a function that tells whether the first of these signals came. A second one does what it did before."""
    came: list[int] = []

    def end(number: int, _: object) -> None:
        came.append(number)
        interrupt.heard(number)
        for each, handler in before.items():
            signal.signal(each, handler)

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    for each in before:
        signal.signal(each, end)
    try:
        yield lambda: bool(came)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def wait(until: float, over: Callable[[], bool]) -> None:
    """Until this time of the monotonic clock, or until it is over. A sleep goes on after a signal, so it is cut into slices."""
    while (left := until - time.monotonic()) > 0 and not over():
        time.sleep(min(left, SLICE_S))


# Asks the database of ``--db`` while the kernel is watched.


@contextlib.contextmanager
def asking(wanted: Connection | None, seconds: float) -> Iterator[Callable[[], DatabaseAnswer | None]]:
    """What gives its answers once the time is over; None where no database was named."""
    if wanted is None:
        yield lambda: None
    elif not wanted.dsn:
        can = wanted.engine in sql.DRIVERS
        why = f"--db {wanted.engine}=DSN names a connection to it" if can else "zaudit can ask no such server"
        yield lambda: DatabaseAnswer(wanted.engine, "", f"zaudit did not ask it: {why}")
    else:
        with sql_watch.watching(wanted, seconds) as end:

            def answer() -> DatabaseAnswer:
                said = end()
                return DatabaseAnswer(
                    wanted.engine, said.text, f"it did not answer: {said.fault}" if said.fault else ""
                )

            yield answer


# ``--watch``: a line for each second while somebody looks, and then the same observation as without.


class WatchOptions(NamedTuple):
    """begin: is told why there is no trace, or nothing; line: each second. again: a host for one look, whose answers together
    are bounded. dataset: to which it is narrowed, or empty."""

    begin: Callable[[str], None]
    line: Callable[[Second], None]
    again: Callable[[], Host]
    dataset: str


# Looks at the load of a pool for some seconds: the witnesses before and after, and the kernel's histograms meanwhile.

NOT_ASKED = "--no-trace"
THREADS, NAMES = "/proc/*/task/*/schedstat", "/proc/*/comm"
_PIPELINE = re.compile(r"z_(?:(?:wr_iss_h|wr_int_h)(?:_\w*)?|(?:null|ioctl|flush)_(?:iss|int)(?:_\w*)?)")
OF_KTHREADD = [KTHREADD, "Uid:\t0\t0\t0\t0"]  # what is kept of the status of its threads
PAUSES = 3.0  # times as long as a look took, before the next one
MOST = 256  # threads whose names are asked for, those with the most commits
_WITHIN = (
    (
        re.compile(r"/(?:docker-|libpod-|cri-containerd-|crio-)([0-9a-f]{12})[0-9a-f]{52}(?:\.scope)?(?:/|$)"),
        "container {}",
    ),
    (re.compile(r"/docker/([0-9a-f]{12})[0-9a-f]{52}(?:/|$)"), "container {}"),
    (re.compile(r"/lxc(?:\.payload)?[./]([\w.-]{1,64})(?:/|$)"), "container {}"),
    (re.compile(r"/machine\.slice/machine-qemu\\x2d[0-9]{1,9}\\x2d([\w.-]{1,64})\.scope"), "guest {}"),
    (re.compile(r"/qemu\.slice/([0-9]{1,9})\.scope"), "guest {}"),
    (re.compile(r"^[0-9]{1,9}:[^:]*:/system\.slice/([\w.@-]{1,64})\.service"), "{}.service"),
)
_OF_USER = re.compile(r"[0-9]{1,9}:[^:]*:/user\.slice/user-([0-9]{1,10})\.slice/")


def observe(
    host: Host,
    target: str,
    pool: Subject,
    facts: Facts,
    seconds: float,
    progress: Progress | None,
    *,
    traced: bool,
    process: ProcessLoad | None = None,
    watch: WatchOptions | None = None,
    database: Connection | None = None,
) -> Observation:
    """process: to which it is narrowed; database: to be asked meanwhile. Raises Interrupted when a signal came, with watch a
    second one; nothing is left then."""
    patterns = observation.patterns(pool, facts)
    began = _times(host)
    family = Family(host, process) if process else None
    until = ending() if watch else contextlib.nullcontext(lambda: False)
    with (
        execution.interruptible(),
        asking(database, seconds) as asked,
        trial.listening() as logged,
        _tracing(traced) as (look, end, why),
        until as over,
    ):
        before = execution.reading(host, patterns)
        if watch:
            watch.begin(why)
        files = tuple(each for each in patterns if each.startswith("/"))
        moments = [Moment(before, Histograms())]  # the first one, and the last one

        def look_once() -> Tick | None:
            looked, tick = Histograms(), None
            if look:
                with contextlib.suppress(OSError):  # a tick that is missing is a longer one
                    looked = look()
                    tick = Tick(time.time(), looked.latencies)
            if family:
                family.look()
            if watch:
                now = Moment(execution.reading(watch.again(), files), looked)
                threads = family.threads if family and not watch.dataset else None
                watch.line(second(moments[0], moments[-1], now, Scope(pool.name, watch.dataset, facts), threads))
                moments[1:] = [now]
            return tick

        ticks = list(_ticks(seconds, look_once, over, progress))
        found, why = _ended(end, ticks, why)
        ended = _times(host)
        after = execution.reading(host, patterns)
        said = asked()
        committers = sorted(commits.by_thread(found.commits).rows, key=lambda each: -each.commits) if found else []
        names = {each.pid: each.name for each in committers}  # who did most first
        who = tuple(_processes(host, names, began, ended))
        spent = _pipeline(host, began, ended)
        named = family.named({*began, *ended}, names) if family else None
        return Observation(target, pool.name, before, after, found, why, who, spent, logged(), named, said)


@contextlib.contextmanager
def _tracing(wanted: bool) -> Iterator[tuple[trace.Look | None, Callable[[list[Tick]], TraceTexts] | None, str]]:
    """Without a trace: why there is none."""
    with contextlib.ExitStack() as stack:
        why = "" if wanted else NOT_ASKED
        look, end = None, None
        if wanted:
            try:
                look, end = stack.enter_context(trace.tracing())
            except trace.CannotTrace as error:
                why = str(error)
        yield look, end, why


def _ticks(
    seconds: float,
    look: Callable[[], Tick | None],
    over: Callable[[], bool],
    progress: Progress | None,
) -> Iterator[Tick]:
    """One look a second, until it is over; where one takes long the next is a second or more later, so that looking takes a
    quarter of the time at most."""
    started = time.monotonic()
    next_, took = 0, 0.0
    while (done := time.monotonic() - started) < seconds and not over():
        if progress:
            progress("looking at the commits", done, seconds)
        next_ = max(next_ + 1, math.ceil(done + PAUSES * took))
        wait(started + min(next_, seconds), over)
        began = time.monotonic()
        if tick := look():
            yield tick
        took = time.monotonic() - began


def _ended(
    end: Callable[[list[Tick]], TraceTexts] | None, ticks: list[Tick], why: str
) -> tuple[TraceTexts | None, str]:
    """What was traced, or why nothing was: counters say what they say all the same."""
    if end is None:
        return None, why
    try:
        return end(ticks), why
    except OSError as error:
        return None, f"the histograms of the kernel could not be read: {(error.strerror or 'no').lower()}"


# -- who ----------------------------------------------------------------------------------------------------------


class _Times(NamedTuple):
    """Nanoseconds that a thread ran, and that it was ready and had no CPU. (Documentation/scheduler/sched-stats.rst)"""

    ran: int
    waited: int


def _times(host: Host) -> dict[int, _Times]:
    """By thread."""
    found = {}
    for path, text in host.read(Read((THREADS,))).text.items():
        cells = text.split()
        if len(cells) == 3 and all(map(trial.COUNT.fullmatch, cells)):
            found[int(path.split("/")[4])] = _Times(int(cells[0]), int(cells[1]))
    return found


def _pipeline(host: Host, began: dict[int, _Times], ended: dict[int, _Times]) -> int | None:
    """Nanoseconds that the threads of OpenZFS ran, or were ready to, that pass log blocks and flushes on: those of writes with
    high priority, of flushes and of what waits for both (zio_taskq_types of module/zfs/spa.c). Of all pools, at the least: a
    thread that ended meanwhile is not seen any more. None where there is none."""
    names = host.read(Read((NAMES,))).text
    called = [int(path.split("/")[2]) for path, name in names.items() if _PIPELINE.fullmatch(name.strip())]
    ours = _of_kernel(host, called)  # of all: whoever likes has a thousand processes of such a name
    spent = [sum(ended[pid]) - sum(began.get(pid, (0,))) for pid in ours if pid in ended]
    return sum(spent) if spent and min(spent) >= 0 else None


def _of_kernel(host: Host, pids: Iterable[int]) -> set[int]:
    """Which of them are threads of the kernel, whose names nobody else may have: they are root's, made by kthreadd, and in no
    control group, where every process of a user or of a container is."""
    asked = {pid: (f"/proc/{pid}/status", f"/proc/{pid}/cgroup") for pid in pids}
    said = host.read(Read(tuple(path for pair in asked.values() for path in pair))).text
    found = set()
    for pid, pair in asked.items():
        whose, groups = (said.get(path, "").removesuffix("\n").split("\n") for path in pair)
        if whose == OF_KTHREADD and all(each.endswith(":/") for each in groups if each):
            found.add(pid)
    return found


def _processes(
    host: Host, seen: dict[int, str], began: dict[int, _Times], ended: dict[int, _Times]
) -> Iterator[Process]:
    """These, as far as they still run."""
    called = dict(islice(seen.items(), MOST))
    of_kernel = _of_kernel(host, called)
    asked = {pid: (f"/proc/{pid}/cgroup", f"/proc/{pid}/cmdline") for pid in called}
    said = host.read(Read(tuple(path for pair in asked.values() for path in pair))).text
    for pid, name in called.items():
        group, line = (said.get(each, "") for each in asked[pid])
        waited = ended[pid].waited - began[pid].waited if pid in began and pid in ended else -1
        what = KERNEL if pid in of_kernel else task(line)
        yield Process(pid, name, what, within(group), waited if waited >= 0 else None)


def within(group: str) -> str:
    """The container, guest or service of a control group, empty where none is told. Whoever has a group calls those inside as
    he likes: the outermost counts, and what a user made is told as his."""
    for line in group.split("\n"):  # the one character that no name of a group has
        matches = ((pattern.search(line), words) for pattern, words in _WITHIN)
        found = [(match.start(), words.format(match[1])) for match, words in matches if match]
        if found:
            user = _OF_USER.match(line)
            return f"{min(found)[1]} of user {user[1]}" if user else min(found)[1]
    return ""
