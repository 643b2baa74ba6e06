"""A command that runs: where its program lies, how long it may take, how much it may print; and nothing outlives zaudit."""

from __future__ import annotations

import ctypes
import io
import itertools
import os
import re
import selectors
import signal
import stat
import subprocess
import time
from _thread import start_new_thread  # Thread.start() waits for ever for a thread that had too little memory to begin
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, get_ident
from typing import Generic, NamedTuple, NoReturn, TypeVar

from auditor.host import request, trust
from auditor.host.children.reader import Closing
from auditor.host.request import Capture

# What may take long: waits that count only real waiting, calls that are given up when they hang in the kernel, and parallel
# calls. Threads do not keep the program alive: it ends by os._exit().

SLICE_S = 0.25
PATIENCE = 40  # slices in which no thread does anything although something is to be done: they have ended

K = TypeVar("K")
T = TypeVar("T")


class Time(NamedTuple):
    """How long an answer may take, and what is said when it took longer."""

    seconds: float
    late: str

    @classmethod
    def of(cls, seconds: float) -> Time:
        """The time of one question."""
        return cls(seconds, f"no answer within {seconds:g} s")


def slices(seconds: float) -> Iterator[float]:
    """Time-outs of successive waits, so many seconds together. A wait counts for no longer than planned: a process that was
    stopped meanwhile (Ctrl-Z, a frozen virtual machine) or got no processor still hears what came."""
    while seconds > 0:
        wait, began = min(seconds, SLICE_S), time.monotonic()
        yield wait
        seconds -= min(time.monotonic() - began, wait)


def within(allowed: Time, call: Callable[[], T], failed: Callable[[str], T]) -> T:
    """What a call returns that may hang in the kernel: then its thread is left behind, with what it holds. failed: makes an
    answer of the reason why there is none, also of what the call raised."""
    answers: SimpleQueue[T | BaseException] = SimpleQueue()

    def make() -> None:
        try:
            answers.put(call())
        except BaseException as error:  # told to the thread that asks
            answers.put(error)

    if allowed.seconds <= 0:
        return failed(allowed.late)
    try:
        start_new_thread(make, ())
    except RuntimeError as error:  # no more threads for this user
        return failed(f"cannot be started: {error}")
    for wait in slices(allowed.seconds):
        try:
            answer = answers.get(timeout=wait)
        except Empty:
            continue
        return failed(f"{type(answer).__name__}: {answer}") if isinstance(answer, BaseException) else answer
    return failed(allowed.late)


class Workers(Generic[K, T]):
    """Makes calls in parallel, by key, at most a given number at once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads = 0
        self._busy = 0
        self._open = 0
        self._calls: SimpleQueue[tuple[K, Callable[[], T]]] = SimpleQueue()
        self._made: SimpleQueue[tuple[K, Callable[[], T]]] = SimpleQueue()

    def __len__(self) -> int:
        """Those whose answer nobody has taken yet."""
        return self._open

    def start(self, key: K, call: Callable[[], T]) -> None:
        """Have it called as soon as one of the threads is free."""
        self._open += 1
        self._calls.put((key, call))
        if self._threads < min(self._open, self._most):
            try:
                start_new_thread(self._work, ())
                self._threads += 1
            except RuntimeError:  # no more threads for this user: those that there are do it, or else this one
                if not self._threads:
                    self._make()

    def ended(self, waiting: Callable[[], None] = lambda: None) -> tuple[K, T]:
        """The next in the order of ending: waits for it, and raises what it raised. Raises MemoryError where its thread had
        too little memory to say so. waiting: called now and then meanwhile."""
        idle = 0
        while True:
            idle = 0 if self._busy else idle + 1
            try:
                key, result = self._made.get(timeout=SLICE_S)  # now and then a signal is looked for
            except Empty:
                if idle > PATIENCE:
                    self._make_here()
                waiting()
                continue
            self._open -= 1
            return key, result()

    def _make_here(self) -> None:
        """A call that no thread has taken, as the threads ended before they began."""
        try:
            key, call = self._calls.get_nowait()
        except Empty:
            raise MemoryError("a thread ended before its answer") from None
        self._answer(key, call)

    def abandon(self) -> None:
        """Call nothing more. What is being called goes on, and nobody hears of it."""
        try:
            while True:
                self._calls.get_nowait()
        except Empty:
            self._open = 0

    def _work(self) -> None:
        while True:
            self._make()

    def _make(self) -> None:
        key, call = self._calls.get()
        self._busy += 1
        try:
            self._answer(key, call)
        finally:
            self._busy -= 1

    def _answer(self, key: K, call: Callable[[], T]) -> None:
        try:
            answer = call()
        except BaseException as error:  # raised where the answer is taken
            self._made.put((key, _raising(error)))
        else:
            self._made.put((key, lambda: answer))


def _raising(error: BaseException) -> Callable[[], NoReturn]:
    def result() -> NoReturn:
        raise error

    return result


# What a command has printed so far, no more than is allowed of one and of all together.


def branches(pattern: str) -> list[str]:
    """The alternatives of a regular expression, where it has some at its top: each for itself is found four times as fast in
    the lines of a history, as it begins with letters or is anchored. A class may hold no bar and no parenthesis."""
    found, depth, escaped = [""], 0, False
    for char in pattern:
        depth += 0 if escaped else {"(": 1, ")": -1}.get(char, 0)
        if char == "|" and not depth and not escaped:
            found.append("")
        else:
            found[-1] += char
        escaped = char == "\\" and not escaped
    return found


class Total:
    """Bytes of the answers of one run. Many threads add to it."""

    def __init__(self, limit: int = request.ANSWERS_BYTES) -> None:
        self.late = f"more than {limit >> 20} MiB of answers in all"
        self._left = limit
        self._lock = Lock()

    def take(self, size: int) -> bool:
        """Whether there was room for so many more; below 0 gives back."""
        with self._lock:
            self._left -= size
            return self._left >= 0


class Lines:
    """The lines in which a pattern is found, as they come; the others are forgotten at once. first: of the first line in which
    this one is found, nothing but the match is kept."""

    def __init__(self, pattern: str, first: str = "") -> None:
        self._kept = [re.compile(each.encode()).search for each in branches(pattern)]
        self._first = re.compile(first.encode()) if first else None
        self._rest = b""

    def of(self, data: bytes) -> bytes:
        """What is kept of this and of the part of a line before it. Raises ValueError where a line has no end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > request.LINE_BYTES:
            raise ValueError(f"a line of more than {request.LINE_BYTES >> 10} KiB")
        return b"".join(kept + b"\n" for line in lines if (kept := self._of_line(line)) is not None)

    def end(self) -> bytes:
        """What is kept of a last line without an end."""
        return (self._of_line(self._rest) if self._rest else b"") or b""

    def _of_line(self, line: bytes) -> bytes | None:
        begins = self._first and self._first.search(line)
        if begins:
            self._first = None
        for found in self._kept:
            if found(line):
                return line
        return begins[0] if begins else None


class Output:
    """Both streams. keep, first: as of Lines, of standard output. part: more is kept of what is not the whole answer."""

    def __init__(self, keep: str, first: str, total: Total, *, part: bool = False) -> None:
        self.out, self.err = io.BytesIO(), io.BytesIO()
        self._lines = Lines(keep, first) if keep else None
        self._total, self._most = total, request.PART_BYTES if part else request.HALF_BYTES
        self._printed = 0

    def take(self, stream: io.BytesIO, data: bytes) -> str:
        """Keep what came; why no more is taken, or an empty string."""
        self._printed += len(data)
        if self._printed > (limit := request.HISTORY_BYTES if self._lines else request.OUTPUT_BYTES):
            return f"more than {limit >> 20} MiB of output"
        if self._lines and stream is self.out:
            try:
                data = self._lines.of(data)
            except ValueError as error:
                return str(error)
        stream.write(data)
        return "" if self._total.take(len(data)) else self._total.late

    def streams(self, *, whole: bool) -> tuple[bytes, bytes]:
        """Both streams; the beginning of them where it is not the whole answer."""
        if whole:
            return self.out.getvalue() + (self._lines.end() if self._lines else b""), self.err.getvalue()
        kept = tuple(stream.getbuffer()[: self._most].tobytes() for stream in (self.out, self.err))
        self._total.take(sum(map(len, kept)) - self.out.tell() - self.err.tell())
        return kept[0], kept[1]


# Where a tool lies: in a fixed list of folders, never in the caller's PATH; for root only where nobody but root could have
# put or exchanged it (:mod:`auditor.host.trust`).

VENDORS = ("/opt/MegaRAID/storcli", "/opt/MegaRAID/perccli", "/opt/smartstorageadmin/ssacli/bin")
NIXOS = "/run/current-system/sw/bin"  # which has no tools elsewhere; what it links to is in root's /nix/store
MISSING = "not installed"
PATH = ("/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin", NIXOS, *VENDORS)


def find_program(names: Iterable[str], path: tuple[str, ...] = PATH) -> tuple[str, str]:
    """(path of the first that is there, empty) or (empty, why there is none)."""
    places = (f"{folder}/{name}" for name in names for folder in path)
    tool = next((place for place in places if os.access(place, os.X_OK)), "")
    if not tool:
        return "", MISSING
    # an ordinary user stakes no more than if he started it himself
    why = refusal(tool) if os.geteuid() == 0 else ""
    return ("", f"not run: {tool}: {why}") if why else (tool, "")


def refusal(program: str) -> str:
    """Why a program is not run, or empty. It starts by its own name: many programs look at what they are called."""
    try:
        node, _ = trust.locate(program)
    except OSError as error:
        return error.strerror or str(error)
    with Closing(node):
        regular = stat.S_ISREG(os.fstat(node).st_mode)
    return "" if regular and os.access(program, os.X_OK) else "not a program"


# A command that runs: in a separate process group, bounded in time and output, every failure a value; nothing of it
# outlives the program.
#
# At the time-out it is killed with its group, and waited for at most two seconds: a suspended pool leaves processes in
# uninterruptible sleep. What left the group (setsid) is found by a variable in its environment: its parents are dead by
# then, so it has become a child of zaudit, which adopts orphans (man 2 PR_SET_CHILD_SUBREAPER). Where the kernel does not
# list children (CONFIG_PROC_CHILDREN), only the group is killed.

PIPE = 1 << 16  # what a pipe holds
PR_SET_CHILD_SUBREAPER = 36
MARK = "ZAUDIT_COMMAND"

_NUMBERS = itertools.count(1)
_RUNNING: set[subprocess.Popen[bytes]] = set()
_STARTING: set[int] = set()  # threads in which a command begins: one that nobody knows of yet cannot be killed
_ended = False


def adopt_orphans() -> None:
    """From now on what loses its parent becomes a child of this process. Without it only groups are killed."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(
    argv: tuple[str, ...],
    allowed: Time,
    environment: Mapping[str, str],
    keep: str = "",
    first: str = "",
    total: Total | None = None,
    folder: str = "/",
    *,
    part: bool = False,
) -> Capture:
    """Run argv[0] (an absolute path) with these environment variables. keep, first, part: as in
    :class:`auditor.host.request.Run`. total: of all answers of the run, to which this one is added. folder: in which it
    starts."""
    if allowed.seconds <= 0:
        return Capture(None, fault=allowed.late)
    began, mark = time.monotonic(), f"{MARK}={os.getpid()}.{next(_NUMBERS)}."
    output = Output(keep, first, total or Total(), part=part)
    try:
        process = start(argv, {**environment, MARK: mark.partition("=")[2]}, folder)
    except OSError as error:
        return Capture(None, fault=f"cannot be started: {error.strerror}")
    except ValueError as error:  # a NUL byte or a lone surrogate in an argument
        return Capture(None, fault=f"cannot be started: {error}")
    fault = "given up"
    try:
        fault = listen(process, allowed, output)
    finally:
        if fault:
            end(process, mark)
        close(process)
    seconds = time.monotonic() - began
    return Capture(None if fault else process.returncode, *output.streams(whole=not fault), seconds, fault)


def kill_all() -> None:
    """Nothing that was started outlives the program, and nothing more is started."""
    global _ended
    _ended = True
    for _ in slices(request.AFTER_KILL_S):
        if not _STARTING:
            break
        time.sleep(0.01)
    for process in tuple(_RUNNING):
        _kill(process)
    _kill_marked(f"{MARK}={os.getpid()}.")


def start(argv: tuple[str, ...], environment: Mapping[str, str], folder: str) -> subprocess.Popen[bytes]:
    """Raises OSError or ValueError."""
    _STARTING.add(get_ident())
    try:
        if _ended:
            raise OSError(0, "zaudit is about to end")
        process = subprocess.Popen(
            argv,
            bufsize=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
        _RUNNING.add(process)
        return process
    finally:
        _STARTING.discard(get_ident())


def listen(process: subprocess.Popen[bytes], allowed: Time, output: Output) -> str:
    """Hear what it prints until it has ended; why it has to be ended before, or an empty string."""
    with selectors.PollSelector() as pipes:
        for stream, said in ((process.stdout, output.out), (process.stderr, output.err)):
            assert stream is not None
            pipes.register(stream, selectors.EVENT_READ, said)
        for wait in slices(allowed.seconds):
            if not pipes.get_map():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(wait)
                    return ""
                continue
            for key, _ in pipes.select(wait):
                if not (data := os.read(key.fd, PIPE)):
                    pipes.unregister(key.fileobj)
                elif fault := output.take(key.data, data):
                    return fault
    return allowed.late


def end(process: subprocess.Popen[bytes], mark: str) -> None:
    """Kill it with all that it started, and wait for it, but not for ever."""
    _kill(process)
    for wait in slices(request.AFTER_KILL_S):
        with suppress(subprocess.TimeoutExpired):
            process.wait(wait)
            break
    else:
        process.returncode = -signal.SIGKILL  # keeps the interpreter from waiting for it later
    _kill_marked(mark)


def close(process: subprocess.Popen[bytes]) -> None:
    """Of one that has ended: forget it."""
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()
    _RUNNING.discard(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _kill_marked(mark: str) -> None:
    """Kill the children of this process that have it in their environment, and then those that become children by that."""
    # to read the environment of a process may hang where that process does
    within(Time.of(request.AFTER_KILL_S), lambda: _kill_children(mark), lambda why: None)


def _kill_children(mark: str) -> None:
    """Until nothing is found twice: what the first look saw ending has left its children by the second."""
    none_before = False
    for wait in slices(request.AFTER_KILL_S):
        said = {pid: _environment(pid) for pid in _children()}
        found = [pid for pid, each in said.items() if f"\0{mark}".encode() in each]
        none = not found and all(said.values())
        if none and none_before:
            return
        none_before = none
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(min(wait, 0.01))
        for pid in found:
            with suppress(OSError):
                os.waitpid(pid, os.WNOHANG)


def _children() -> list[int]:
    """Of all threads of this process. (man 5 proc_tid_children)"""
    found: list[int] = []
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, file.read_text().split())
    return found


def _environment(pid: int) -> bytes:
    """NUL before each variable; empty of one that is just becoming another program, which has none yet and will (fs/exec.c)."""
    with suppress(OSError):
        if "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(errors="replace"):
            text = Path(f"/proc/{pid}/environ").read_bytes()
            return b"\0" + text if text else b""
    return b"\0"
