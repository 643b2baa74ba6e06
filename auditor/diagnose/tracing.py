"""Histograms of ``zil_commit`` in tracefs: events of our own, in an instance of our own, appended and removed one by one.

Every sync that may write comes through zil_commit() (fsync, O_DSYNC, msync, zvols, NFS); with sync=disabled O_DSYNC does, too,
where it returns at once, and fsync does not (zfs_fsync() of module/zfs/zfs_vnops.c). Opening ``kprobe_events`` with O_TRUNC, as
``>`` of a shell does, would remove everybody's events: it is only ever appended to. Each name contains the id of the process
that made it and when that started, so that ``zaudit clean`` knows what a dead one left. Nothing is mounted. Addresses of the
kernel are replaced by small numbers before anything is kept. (Linux Documentation/trace/kprobetrace.rst, histogram.rst)

Which system call a commit comes from is counted at zpl_fsync(), one probe for each sync: fsync, fdatasync and msync(MS_SYNC)
of all file systems come to their own fsync(), where the fourth argument tells fdatasync, and msync, which asks for the same
(Linux mm/msync.c). The events of system calls (``sys_enter_fsync``) would count those to other file systems, too, and as long
as one is enabled every system call of every process takes the slow way into the kernel (syscall_regfunc() of Linux
kernel/tracepoint.c); a probe of zfs_write() would tell O_DSYNC, at the cost of every write. So a write that commits by itself
is what is left. zpl_fsync() is static and stays a function, for its address is in zpl_file_operations (OpenZFS
module/os/linux/zfs/zpl_file.c, 2.1 to 2.4); where it cannot be probed only this is not told.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from auditor.diagnose.commits import FEW, LARGEST, MOST, Histograms
from auditor.diagnose.diagnosis import StackSamples, Waiter
from auditor.diagnose.observation import KERNEL, Counters, Observation, Stacks, Tick, TraceTexts, WaitingThread
from auditor.errors import Stop
from auditor.facts import HOST, Facts, is_true
from auditor.host import child
from auditor.host.children.stack_reader import MOST_REST
from auditor.host.owner import UNTOLD, started
from auditor.sources import kstat
from auditor.text import duration
from auditor.verify import trial

ROOT = Path("/sys/kernel/tracing")
LOCKDOWN = Path("/sys/kernel/security/lockdown")
MOUNTS = Path("/proc/self/mountinfo")
PROBES, SYNTHETIC = "kprobe_events", "synthetic_events"
NAME = re.compile(r"zaudit_([0-9]{1,9})_([0-9]{1,18})")
_OURS = re.compile(r"^[pr][0-9]{0,5}:(zaudit_[0-9]{1,9}_[0-9]{1,18})/(\w{1,32}) ", re.MULTILINE)
_MADE = re.compile(r"^(zaudit_[0-9]{1,9}_[0-9]{1,18})(_queue)?\t", re.MULTILINE)
_ZIL = re.compile(r"zil: {1,20}([0-9]{1,20})")
SYNC = "zpl_fsync"
ENTRIES = ("zil_commit", "zil_commit_flags")  # 2.4 has both, where one may or may not be inlined into the other


class CannotTrace(Stop):
    """There is no trace, and why; the diagnosis goes on with counters alone."""


BY_THREAD, ALL = "common_pid.execname,zil", "us.log2"  # keys of two histograms of one event
Look = Callable[[], Histograms]


@contextlib.contextmanager
def tracing() -> Iterator[tuple[Look, Callable[[list[Tick]], TraceTexts]]]:
    """While it lasts, commits are counted. Gives two functions: the histograms of all commits so far, and everything at the
    end, which raise OSError. Raises CannotTrace; whatever was made is gone then, and after any error within it."""
    refuse()
    name = own_name()
    try:
        try:
            probed, uncalled = _install(name)
        except OSError as error:
            raise CannotTrace(f"{error.filename or ROOT}: {(error.strerror or 'no').lower()}") from None
        zils: dict[str, str] = {}

        def look() -> Histograms:
            both = _read(_events(ROOT / "instances" / name, f"synthetic/{name}") / "hist")
            return Histograms(_part(both, ALL), _unnamed(_part(both, BY_THREAD), zils))

        yield look, lambda ticks: _all(name, ticks, probed, zils, uncalled)
    finally:
        with contextlib.suppress(OSError):
            remove(name)


def refuse() -> None:
    """Raises CannotTrace where tracing cannot or must not be done."""
    if os.geteuid():
        raise CannotTrace("only root may trace")
    with contextlib.suppress(OSError):
        if "[confidentiality]" in LOCKDOWN.read_text():
            raise CannotTrace(f"{LOCKDOWN} says confidentiality: the kernel forbids tracing")
    if not any(f" {ROOT} " in line and " - tracefs " in line for line in _read(MOUNTS).splitlines()):
        raise CannotTrace(f"no tracefs is mounted (mount -t tracefs tracefs {ROOT})")
    for file in (PROBES, SYNTHETIC):
        if not (ROOT / file).exists():
            raise CannotTrace(f"{ROOT / file} does not exist: this kernel has no such events")


def own_name() -> str:
    """zaudit_PID_START."""
    return f"zaudit_{os.getpid()}_{started(os.getpid())}"


# -- making -------------------------------------------------------------------------------------------------------


def _install(name: str) -> tuple[tuple[str, ...], str]:
    """Returns the functions that are probed, and why calls are not counted, or nothing. Raises OSError or CannotTrace."""
    if name in left():
        raise CannotTrace(f"{ROOT} has events called {name} already (zaudit clean)")
    probed = [function for function in ENTRIES if _probe(name, function)]
    if ENTRIES[0] not in probed:
        raise CannotTrace("zil_commit cannot be probed: is the OpenZFS module loaded?")
    _append(SYNTHETIC, f"{name} u64 us; u64 zil")
    instance = ROOT / "instances" / name
    instance.mkdir()
    uncalled = _calls(name, instance)  # before commits are counted, and read after them: none of these lacks its call
    start = "t0=common_timestamp.usecs,t1=common_timestamp.usecs,z=zil"
    _trigger(instance, f"{name}/commit", f"hist:keys=common_pid:{start}:size={MOST}")
    took = f"hist:keys=common_pid:us=common_timestamp.usecs-$t0:onmatch({name}.commit).trace({name},$us,$z):size={MOST}"
    _trigger(instance, f"{name}/done", took)
    _trigger(instance, f"synthetic/{name}", f"hist:keys={BY_THREAD}:vals=us:size={MOST}")
    _trigger(instance, f"synthetic/{name}", f"hist:keys={ALL}:size={MOST}")
    with contextlib.suppress(OSError):
        _queue(name, instance)
        probed.append("zil_lwb_write_issue")
    return (*probed, *([] if uncalled else [SYNC])), uncalled


def _calls(name: str, instance: Path) -> str:
    """Count the calls of fsync and fdatasync on ZFS, by thread; why they are not counted, or nothing."""
    try:
        _append(PROBES, f"p:{name}/call {SYNC} datasync=$arg4:u32")
        _trigger(instance, f"{name}/call", f"hist:keys=common_pid,datasync:size={MOST}")
    except OSError as error:
        return f"{SYNC} cannot be probed: {(error.strerror or 'no').lower()}"
    return ""


def _queue(name: str, instance: Path) -> None:
    """How long a thread took from its commit to its first log block."""
    _append(PROBES, f"p:{name}/issue zil_lwb_write_issue")
    _append(SYNTHETIC, f"{name}_queue u64 us")
    waited = f"q=common_timestamp.usecs-$t1:onmatch({name}.commit).trace({name}_queue,$q)"
    _trigger(instance, f"{name}/issue", f"hist:keys=common_pid:{waited}:size={MOST}")
    _trigger(instance, f"synthetic/{name}_queue", f"hist:keys=common_pid.execname:vals=us:size={MOST}")


def _probe(name: str, function: str) -> bool:
    """Entry and return of a function, as one more place of the same two events: a call within a call is one commit. 4,096
    returns may be outstanding (KRETPROBE_MAXACTIVE_MAX of kernel/trace/trace_kprobe.c)."""
    try:
        _append(PROBES, f"p:{name}/commit {function} zil=$arg1:u64")
        _append(PROBES, f"r4096:{name}/done {function}")
    except OSError:
        return False
    return True


def _append(file: str, line: str) -> None:
    """Raises OSError. Without O_TRUNC and without O_CREAT, in one write()."""
    path = ROOT / file
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(descriptor, f"{line}\n".encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(descriptor)


def _events(instance: Path, event: str) -> Path:
    return instance / "events" / event


def _trigger(instance: Path, event: str, trigger: str) -> None:
    _append(str(_events(instance, event).relative_to(ROOT) / "trigger"), trigger)


# -- reading ------------------------------------------------------------------------------------------------------


def _all(name: str, ticks: list[Tick], probed: tuple[str, ...], zils: dict[str, str], uncalled: str) -> TraceTexts:
    instance = ROOT / "instances" / name
    both = _read(_events(instance, f"synthetic/{name}") / "hist")
    queue = _events(instance, f"synthetic/{name}_queue") / "hist"
    ticks = [*ticks[:-1], ticks[-1]._replace(commits=_part(both, ALL))] if ticks else ticks
    waited = _read(queue) if queue.exists() else ""
    called, uncalled = ("", uncalled) if uncalled else _called(name, instance)
    threads, missed = _unnamed(_part(both, BY_THREAD), zils), _missed("commit", "done")
    return TraceTexts(threads, tuple(ticks), waited, missed, probed, called, uncalled)


def _called(name: str, instance: Path) -> tuple[str, str]:
    """The histogram of calls, or nothing and why."""
    try:
        text, missed = _read(_events(instance, f"{name}/call") / "hist"), _missed("call")
    except OSError as error:
        return "", f"the histogram of {SYNC} could not be read: {(error.strerror or 'no').lower()}"
    return ("", f"the kernel may have missed calls of {SYNC}") if missed != 0 else (text, "")


def _part(text: str, keys: str) -> str:
    """A file shows the histograms of all its triggers; the one with these keys."""
    found = (part for part in text.split("# event histogram") if f" hist:keys={keys}:" in part)
    return next(found, "")


def _unnamed(text: str, numbers: dict[str, str]) -> str:
    """Addresses of the kernel become 1, 2, 3, the same each time."""
    return _ZIL.sub(lambda found: f"zil: {numbers.setdefault(found[1], str(len(numbers) + 1))}", text)


def _missed(*events: str) -> int | None:
    """Third column of kprobe_profile, of events of ours: calls that were not traced."""
    try:
        rows = [line.split() for line in _read(ROOT / "kprobe_profile").splitlines()]
    except OSError:
        return None
    ours = [row[-1] for row in rows if len(row) == 3 and row[0] in events]
    return sum(map(int, ours)) if len(ours) >= len(events) and all(each.isdecimal() for each in ours) else None


def _read(path: Path) -> str:
    with open(path, "rb") as file:
        return file.read(LARGEST).decode("utf-8", "replace")


# -- taking back --------------------------------------------------------------------------------------------------


def left() -> dict[str, bool]:
    """Name of ours in tracefs -> whether the process that made it lives. Empty where there is no tracefs to be read."""
    names: set[str] = set()
    with contextlib.suppress(OSError):
        names |= {each.name for each in (ROOT / "instances").iterdir() if NAME.fullmatch(each.name)}
        names |= {found[1] for found in _OURS.finditer(_read(ROOT / PROBES))}
        names |= {found[1] for found in _MADE.finditer(_read(ROOT / SYNTHETIC))}
    return {
        name: start != "0" and started(int(pid)) in (int(start), UNTOLD)
        for name in sorted(names)
        for _, pid, start in (name.split("_"),)
    }


def remove(name: str) -> None:
    """Everything of this name, in the order in which one thing needs the other; what is gone already is no error. Raises
    OSError for what cannot be removed."""
    assert NAME.fullmatch(name)
    instance = ROOT / "instances" / name
    probed = (f"{name}/{each}" for each in ("issue", "done", "commit", "call"))
    for event in (f"synthetic/{name}_queue", f"synthetic/{name}", *probed):
        with contextlib.suppress(FileNotFoundError):
            for line in reversed(_read(_events(instance, event) / "trigger").splitlines()):
                if line.startswith("hist:"):
                    _trigger(instance, event, "!" + line.partition(" [")[0])
    with contextlib.suppress(FileNotFoundError):
        instance.rmdir()
    probes = (found[2] for found in _OURS.finditer(_read(ROOT / PROBES)) if found[1] == name)
    for event in dict.fromkeys(probes):  # one with several places goes at once
        with contextlib.suppress(FileNotFoundError):
            _append(PROBES, f"-:{name}/{event}")
    for line in _read(ROOT / SYNTHETIC).splitlines():
        if line.partition("\t")[0] in (name, f"{name}_queue"):
            _append(SYNTHETIC, "!" + line.replace("\t", " "))


def clean() -> Iterator[tuple[str, str]]:
    """Remove what dead processes left; (name, what is wrong, or empty)."""
    for name, alive in left().items():
        if not alive:
            try:
                remove(name)
                yield name, ""
            except OSError as error:
                yield name, f"{error.filename or ROOT}: {error.strerror}"


# Who waits for a commit, from the stacks of threads: a separate process takes them, and they are counted here.

# Which threads wait in zil_commit(), seen now and then in their stacks: where tracing is not possible, and zaudit is root.
#
# The mean number of those that wait, divided by the commits per second, is how long one takes (Little's law: L = λW). It says
# too little: a thread that runs has no stack to be seen. A separate process looks (``stack_reader``), since the stack of a
# process can let its reader wait; if it is silent for too long it is killed, and what made it wait is skipped with
# everything else of that user. Nothing on the host is changed. (Linux fs/proc/base.c proc_pid_stack, lock_trace)

STARTS_S = 5.0  # in which it has to begin
SILENT_S, ATTEMPTS = 3.0, 8  # what makes its reader wait for longer is skipped; so often
THREADS = 4096  # that are distinguished
LONGEST = 1 << 20  # bytes of answers that are heard at once
_LINE = re.compile(
    rb"(?:(?P<pass>P) ([0-9]{1,12}) ([0-9]{1,7}) ([01])|(?P<stack>T) ([0-9]{1,10}) ([0-9]{1,10})"
    rb"|(?P<waits>H) ([0-9]{1,10}) ([0-9]{1,10}) ([01]) ((?:[0-9a-f]{2}){0,64})|(?P<cannot>X) (.{1,200}))"
)


@contextlib.contextmanager
def sampling() -> Iterator[Sampler]:
    """While it lasts, somebody looks, as far as the sampler is heard (``hear``) now and then."""
    sampler = Sampler()
    try:
        yield sampler
    finally:
        sampler.end()


class Sampler:
    """Adds up what the process says that looks. A pass counts when it is done."""

    def __init__(self) -> None:
        self._hits: dict[tuple[int, int, bool, str], int] = {}
        self._passes = self._most = 0
        self._cut = False
        self._passed_over: list[str] = []
        self._why: list[str] = []
        self._attempts = 0
        self._child: subprocess.Popen[bytes] | None = None
        self._start()

    def _start(self) -> None:
        self._rest, self._pass, self._reads = b"", list[tuple[int, int, bool, str]](), ("", "")
        self._heard = time.monotonic() + STARTS_S
        self._attempts += 1
        code = f"{child.source('stack_reader')}\nrun()\n"
        try:
            self._child = child.start(code, self._passed_over)
        except OSError as error:
            self._child = None
            self._why.append(f"who looks at stacks cannot be started: {error.strerror}")
            return
        assert self._child.stdout
        fcntl.fcntl(self._child.stdout, fcntl.F_SETFL, os.O_NONBLOCK)

    def hear(self) -> None:
        """What was said since. Where nothing was for too long, another one goes on."""
        if self._child is None:
            return
        assert self._child.stdout
        try:
            data = self._child.stdout.read(LONGEST)
        except OSError:
            data = None
        if data:
            self._heard = time.monotonic()
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._line(line)
        elif data == b"":
            self._end_of_it("who looks at stacks ended early")
        elif time.monotonic() - self._heard > SILENT_S and not child.runs(self._child):
            process, user = self._reads
            if process and user != "0":
                self._passed_over += [f"p{process}", f"u{user}"]
                self._why.append(f"the processes of user {user} let the reader of their stacks wait")
            elif process:
                self._passed_over.append(f"p{process}")
                self._why.append(f"the process {process} let the reader of their stacks wait")
            self._end_of_it("")
            if self._attempts < ATTEMPTS:
                self._start()
            else:
                self._why.append("the stacks of too many processes could not be read")

    def _line(self, line: bytes) -> None:
        found = _LINE.fullmatch(line)
        if found is None:
            self._end_of_it("who looks at stacks said what is not understood")
        elif found["pass"]:
            self._passes += 1
            self._most = max(self._most, int(found[3]))
            self._cut = self._cut or found[4] == b"1"
            for each in self._pass:
                if each in self._hits or len(self._hits) < THREADS:
                    self._hits[each] = self._hits.get(each, 0) + 1
                else:
                    self._cut = True
            self._pass = []
            self._reads = ("", "")
            self._heard = time.monotonic() + int(found[2]) / 1e6 * MOST_REST
        elif found["stack"]:
            self._heard = time.monotonic()
            self._reads = (found[6].decode(), found[7].decode())
        elif found["waits"]:
            name = bytes.fromhex(found[12].decode()).decode("utf-8", "surrogateescape")
            self._pass.append((int(found[9]), int(found[10]), found[11] == b"1", name))
        else:
            self._end_of_it(os.fsdecode(found[14]).lower())

    def _end_of_it(self, why: str) -> None:
        if why:
            self._why.append(why)
        reader, self._child = self._child, None
        if reader:
            if reader.stdout:
                reader.stdout.close()
            child.end(reader, kill=True)

    def end(self) -> None:
        """Nothing of it is left running, unless a file system holds it."""
        self.hear()
        self._end_of_it("")

    def stacks(self) -> Stacks:
        """Everything so far."""
        waits = tuple(
            WaitingThread(thread, process, name, kernel, hits)
            for (thread, process, kernel, name), hits in sorted(
                self._hits.items(), key=lambda each: (-each[1], each[0])
            )
        )
        why = [*self._why, *(["not every thread was looked at each time"] if self._cut else [])]
        return Stacks(self._passes, self._most, waits, tuple(dict.fromkeys(why)))


# How long a commit takes, and who waits for it, by samples of stacks. Pure.

# 17 and 27 % on OpenZFS 2.3.9 next to what the program counted itself, where those that wait for a CPU were left out
TOO_LITTLE = "which say up to 30% too little"


def stacked(seen: Observation, counted: Counters, facts: Facts) -> StackSamples | None:
    """None where nobody looked at stacks."""
    if seen.stacks is None:
        return None
    found, known = seen.stacks, {each.pid: each for each in seen.processes}
    mine = {*seen.named.threads} if seen.named else set()
    waits = [each for each in found.waits if each.hits > 0]
    samples = sum(each.hits for each in waits)
    waiting = samples / found.passes if found.passes > 0 else 0.0
    # of all pools, as stacks are, with those that found the ZIL suspended, which are counted apart (OpenZFS module/zfs/zil.c
    # zil_kstats_global_update(), zil_commit(); include/sys/zil.h ZIL_STAT_INCR)
    grown = trial.grown(*(trial.table(each, trial.ZIL_PATH) for each in (seen.before, seen.after)))
    commits = grown.get("zil_commit_count")
    commits = None if commits is None else commits + grown.get("zil_commit_suspend_count", 0)
    why = _why_not(found, samples, commits, facts)
    mean = None if why or not commits else waiting * counted.seconds * 1e9 / commits
    waiters = tuple(
        Waiter(
            pid=each.thread,
            name=each.name,
            role=KERNEL if each.kernel else known[each.thread].role if each.thread in known else "",
            within=known[each.thread].within if each.thread in known else "",
            samples=each.hits,
            part=each.hits / samples,
            own=each.thread in mine,
        )
        for each in waits
    )
    return StackSamples(found.passes, samples, waiting, mean, why, waiters)


def _why_not(found: Stacks, samples: int, commits: int | None, facts: Facts) -> str:
    """Why no mean is told, empty where one is."""
    if found.faults:
        return found.faults[0]
    if not is_true(facts.get(HOST, "all_processes")):
        return "only the processes of this container are seen"
    if commits is None:
        return f"{kstat.ROOT}/zil does not count commits here"
    if found.passes < FEW:
        return f"{found.passes} looks are too few for a mean"
    if commits < FEW or samples < FEW:
        return f"{samples} samples of {commits} commits are too few for a mean"
    return ""


def sentence(found: StackSamples) -> str:
    """about 20 ms each by 412 samples of stacks, which say up to 30 % too little; empty where no mean is told."""
    if found.mean_ns is None:
        return ""
    return f"about {duration(found.mean_ns)} each by {found.samples:,} samples of stacks, {TOO_LITTLE}"
