"""``zaudit diagnose``: watch a load, with tracing where root may trace; its command, and the lines of ``--watch``."""

from __future__ import annotations

import contextlib
import math
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from auditor import Stop, audit, interrupt
from auditor.databases.postgres import task
from auditor.diagnose import commits, conclusion, database_counters, observation, tracing
from auditor.diagnose.commits import Family, Histograms, ProcessLoad
from auditor.diagnose.conclusion import Moment, Scope, second
from auditor.diagnose.diagnosis import Diagnosis, Outcome, Second
from auditor.diagnose.observation import KERNEL, DatabaseAnswer, Observation, Process, Tick, TraceTexts
from auditor.facts import Facts, Subject
from auditor.host import sql, sql_watch
from auditor.host.live import KTHREADD, HidingHost, Host, LiveHost
from auditor.host.request import Read
from auditor.host.sql_watch import Connection
from auditor.judge.policy import Policy
from auditor.recording import archive, recording
from auditor.report.model import Report
from auditor.screen import note, say, width
from auditor.text import duration, harmless, size
from auditor.verify import execution, trial, verification
from auditor.verify.execution import Progress

# SIGINT or SIGTERM ends the watching, and the report still comes.

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
    for each, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(each, end)
    try:
        yield lambda: bool(came)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def wait(until: float, over: Callable[[], bool]) -> None:
    """Until this time of the monotonic clock, or until over. In slices: a sleep continues after a signal."""
    while (left := until - time.monotonic()) > 0 and not over():
        time.sleep(min(left, SLICE_S))


@contextlib.contextmanager
def asking(wanted: Connection | None, seconds: float) -> Iterator[Callable[[], DatabaseAnswer | None]]:
    """Gives what returns its answer at the end; None without --db."""
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


# ``--watch``: a line each second, and then the same observation.


class WatchOptions(NamedTuple):
    """begin: gets why there is no trace, or nothing. line: gets each second. again: makes a host for one look, with its own
    bound on answers. dataset: to which it is narrowed, or empty."""

    begin: Callable[[str], None]
    line: Callable[[Second], None]
    again: Callable[[], Host]
    dataset: str


# Watches the load of a pool: the witnesses before and after, and the kernel's histograms meanwhile.

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
    """process: to which it is narrowed. database: to be asked meanwhile. Raises Interrupted at a signal, with watch at the
    second; nothing is left then."""
    patterns = observation.patterns(pool, facts)
    began = _times(host)
    family = Family(host, process) if process else None
    until = ending() if watch else contextlib.nullcontext(lambda: False)
    with (
        interrupt.raising(execution.Interrupted),
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
def _tracing(wanted: bool) -> Iterator[tuple[tracing.Look | None, Callable[[list[Tick]], TraceTexts] | None, str]]:
    """Without a trace: why there is none."""
    with contextlib.ExitStack() as stack:
        why = "" if wanted else NOT_ASKED
        look, end = None, None
        if wanted:
            try:
                look, end = stack.enter_context(tracing.tracing())
            except tracing.CannotTrace as error:
                why = str(error)
        yield look, end, why


def _ticks(
    seconds: float, look: Callable[[], Tick | None], over: Callable[[], bool], progress: Progress | None
) -> Iterator[Tick]:
    """One look a second, until over; later after a long one: looking takes a quarter of the time at most."""
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
    found = {}
    for path, text in host.read(Read((THREADS,))).text.items():
        cells = text.split()
        if len(cells) == 3 and all(map(trial.COUNT.fullmatch, cells)):
            found[int(path.split("/")[4])] = _Times(int(cells[0]), int(cells[1]))
    return found


def _pipeline(host: Host, began: dict[int, _Times], ended: dict[int, _Times]) -> int | None:
    """Nanoseconds that the threads of OpenZFS ran, or were ready to run, that pass on writes of high priority and flushes
    (zio_taskq_types of module/zfs/spa.c). Of all pools, at the least: a thread that ended is not seen. None where there is
    none."""
    names = host.read(Read((NAMES,))).text
    called = [int(path.split("/")[2]) for path, name in names.items() if _PIPELINE.fullmatch(name.strip())]
    ours = _of_kernel(host, called)  # of all: whoever likes has a thousand processes of such a name
    spent = [sum(ended[pid]) - sum(began.get(pid, (0,))) for pid in ours if pid in ended]
    return sum(spent) if spent and min(spent) >= 0 else None


def _of_kernel(host: Host, pids: Iterable[int]) -> set[int]:
    """Which of them are threads of the kernel, whose names can be believed: root's, children of kthreadd, and in no control
    group, where every process of a user or container is."""
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
    """The container, guest or service of a control group, or empty. Its owner names groups inside freely: the outermost
    counts, and one that a user made is shown as his."""
    for line in group.split("\n"):  # the one character that no name of a group has
        matches = ((pattern.search(line), words) for pattern, words in _WITHIN)
        found = [(match.start(), words.format(match[1])) for match, words in matches if match]
        if found:
            user = _OF_USER.match(line)
            return f"{min(found)[1]} of user {user[1]}" if user else min(found)[1]
    return ""


EXITS: dict[Outcome, int] = {
    "NOTHING STANDS OUT": 0,
    "NOBODY COMMITS": 0,
    "INCONCLUSIVE": 10,
    "CAUSE": 12,
    "NOT DURABLE": 14,
}


class DiagnoseOptions(NamedTuple):
    target: str
    seconds: float
    traced: bool
    watch: bool
    beside: bool  # the lines of --watch go to standard error
    record: Path | None
    options: audit.Options
    timeout: float
    deadline: float


class DiagnosisResult(NamedTuple):
    """unkept: why its recording could not be written, to be raised once the report is out."""

    diagnosis: Diagnosis
    report: Report
    unkept: Exception | None = None


class CannotDiagnose(Stop):
    """What was seen cannot be read; the text says why."""


def live(wanted: DiagnoseOptions, progress: Callable[..., None] | None, steps: Progress | None) -> DiagnosisResult:
    """Diagnose on this host."""
    if wanted.record:
        archive.possible(wanted.record)
    options, asked = wanted.options, None
    if (
        database := options.wanted.database
    ):  # the DSN is told to nobody else: neither the recording nor the report has it
        asked = Connection(database, options.wanted.connection)
        hidden = options.wanted._replace(connection=sql.REDACTED if asked.dsn else "")
        options = options._replace(wanted=hidden)
    policy = options.policy
    looked_at = HidingHost(LiveHost(wanted.timeout, wanted.deadline), asked.dsn if asked else "")
    machine = LiveHost(wanted.timeout)
    host: Host = recording.RecordingHost(looked_at) if wanted.record else looked_at
    named = commits.find(machine, wanted.target) if commits.meant(wanted.target) else None
    targets = named.targets if named else (wanted.target,)
    seen = audit.look(host, targets, options, progress)
    root = _one_pool(seen, named)
    if named:  # of a volume its dataset
        named = named._replace(targets=tuple(each.name for each in seen.roots))
    pool = Subject("pool", root.partition("/")[0])
    if looked_at.error:
        note(f"zaudit: --db {options.wanted.database}: {harmless(looked_at.error)[:300]}")
    if why := database_counters.elsewhere(seen.facts, pool.name):
        raise CannotDiagnose(f"--db: {why}")
    watch = _watching(wanted, root, pool, named, seen.facts) if wanted.watch else None
    seconds, traced = wanted.seconds, wanted.traced
    made = observe(
        machine, root, pool, seen.facts, seconds, steps, traced=traced, process=named, watch=watch, database=asked
    )
    if tracing.own_name() in tracing.left():
        note(f"zaudit: {tracing.own_name()} could not be removed from {tracing.ROOT}; zaudit clean tries again")
    chosen = verification.rules(policy)
    unkept = verification.keep(host, wanted.record, targets, options, chosen.rules, observation.to_text(made))
    return _judged(seen, made, targets, policy)._replace(unkept=unkept)


def _watching(
    wanted: DiagnoseOptions, root: str, pool: Subject, named: commits.ProcessLoad | None, facts: Facts
) -> WatchOptions:
    """A process that writes to one volume is narrowed to that: threads of the kernel commit for it."""
    volume = commits.volumes((root,), facts)
    dataset = root if root != pool.name and (named is None or volume) else ""
    narrowed = dataset
    if named:
        those = f"process {named.pid} ({named.name}) and those that it started"
        narrowed = f"{root}, to which {those} write" if dataset else f"the threads of {those}"
    lines = Lines(narrowed, beside=wanted.beside)
    return WatchOptions(lines.begin, lines.line, lambda: LiveHost(wanted.timeout), dataset)


def _one_pool(seen: audit.Look, named: commits.ProcessLoad | None) -> str:
    """The dataset that is diagnosed; of several of one process their pool. Raises NoSuchLoad."""
    names = [root.name for root in seen.roots]
    pools = sorted({name.partition("/")[0] for name in names})
    if named and len(pools) > 1:
        raise commits.NoSuchLoad(commits.several(f"process {named.pid} ({harmless(named.name)})", pools, names))
    return names[0] if len(names) == 1 else pools[0]


def replayed(path: Path, policy: Policy | None = None) -> DiagnosisResult:
    """A recorded diagnosis, judged again. policy: instead of its own."""
    past, text = verification.load(path, "diagnosis")
    seen = audit.replay(past, policy)
    return _judged(seen, observation.from_text(text), past.targets, seen.policy)


def _judged(
    seen: audit.Look, made: observation.Observation, targets: tuple[str, ...], policy: Policy
) -> DiagnosisResult:
    chosen = verification.rules(policy)
    report = audit.judge(seen, chosen.rules, targets, "low", left_out=chosen.left_out)
    try:
        return DiagnosisResult(conclusion.diagnose(made, seen.facts), report)
    except ValueError as error:
        raise CannotDiagnose(str(error)) from None


# The lines of ``--watch``: columns of a fixed width, which a program can cut.

HEADER_EVERY = 20  # lines, after which the names of the columns come again
WIDTHS = {
    "time": 8, "commits/s": 9, "own/s": 7, "own mean": 8, "mean": 7, "p99": 7, "slowest": 7, "log write": 9, "flush": 7,
    "held": 5, "dirty": 8, "TXG": 4, "synced in": 9,
}  # fmt: skip
NARROWED = ("own/s", "own mean")
LAST = ("synced in", "slowest", "dirty", "TXG", "p99", "held")  # of which a narrow terminal lacks the first ones
GAP, NONE = "  ", "-"


def columns(*, narrowed: bool, width: int | None) -> list[str]:
    """Their names. narrowed: with those of the process or dataset that was named; width: of the terminal, None for a file."""
    told = [each for each in WIDTHS if narrowed or each not in NARROWED]
    for each in LAST:
        if width is not None and sum(WIDTHS[name] + len(GAP) for name in told) - len(GAP) > width:
            told.remove(each)
    return told


def header(told: Sequence[str]) -> str:
    return GAP.join(each.rjust(WIDTHS[each]) for each in told)


def row(second: Second, told: Sequence[str]) -> str:
    """One second; a dash for what was not seen."""

    def rate(count: int | None) -> str:
        return NONE if count is None or second.seconds <= 0 else f"{count / second.seconds:,.0f}"

    cells = {
        "time": time.strftime("%H:%M:%S", time.localtime(second.at)),
        "commits/s": rate(second.commits),
        "own/s": rate(second.own),
        "own mean": _took(second.own_mean_ns),
        "mean": _took(second.mean_ns),
        "p99": _took(second.p99_ns),
        "slowest": _took(second.most_ns),
        "log write": _took(second.write_ns),
        "flush": _took(second.flush_ns),
        "held": NONE if second.held is None else f"{second.held:,}",
        "dirty": NONE if second.dirty is None else size(second.dirty),
        "TXG": harmless(second.states) or NONE,
        "synced in": NONE if second.sync_s is None else duration(second.sync_s * 1e9),
    }
    return GAP.join(cells[each].rjust(WIDTHS[each]) for each in told)


def legend(narrowed: str, untraced: str) -> list[str]:
    """What is said once, before the first line. narrowed: to what, or empty; untraced: why there is no trace, or empty."""
    told = []
    if untraced:
        told.append(f"How long commits take is not seen ({NONE}): {harmless(untraced)}.")
    if narrowed:
        told.append(f"own: of {harmless(narrowed)}; everything else is of the whole pool.")
    return [
        *told,
        "p99 and slowest: at most so long; log write, flush: mean of the slowest leg; held: writes held back;",
        "dirty: of the newest TXG that syncs or was synced; TXG: under way (O open, Q quiescing, W waiting, S syncing).",
    ]


def _took(ns: float | None) -> str:
    return NONE if ns is None else duration(ns)


class Lines:
    """One line a second, each written at once. beside: to standard error, for a report on standard output."""

    def __init__(self, narrowed: str, *, beside: bool) -> None:
        self._narrowed = narrowed
        self._say: Callable[[str], None] = note if beside else say
        self._again = (sys.stderr if beside else sys.stdout).isatty()  # a file has names at its beginning alone
        self._columns = columns(narrowed=bool(narrowed), width=width() if self._again else None)
        self._count = 0

    def begin(self, untraced: str) -> None:
        for each in legend(self._narrowed, untraced):
            self._say(each)

    def line(self, second: Second) -> None:
        if self._count == 0 or (self._again and self._count % HEADER_EVERY == 0):
            self._say(header(self._columns))
        self._count += 1
        self._say(row(second, self._columns))
