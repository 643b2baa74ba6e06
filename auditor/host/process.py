"""A command that runs: in its own process group, bounded in time and output, every failure a value; and that nothing of it
outlives the program.

At the time-out it is killed with its group and then waited for at most two seconds: a suspended pool leaves processes in
uninterruptible sleep. What left the group (setsid) is found by a variable in its environment: its parents are dead by then,
so it has become a child of zaudit, which adopts orphans (man 2 PR_SET_CHILD_SUBREAPER). Where the kernel does not list
children (CONFIG_PROC_CHILDREN), only the group is killed.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import get_ident

from auditor.host.limits import AFTER_KILL_S
from auditor.host.output import Output, Total
from auditor.host.request import Capture
from auditor.host.running import Time, slices, within

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
    :class:`auditor.host.request.Run`.
    total: of all answers of the run, to which this one is added. folder: in which it is started."""
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
    return Capture(None if fault else process.returncode, *output.said(whole=not fault), seconds, fault)


def kill_all() -> None:
    """Nothing that was started outlives the program, and nothing more is started."""
    global _ended
    _ended = True
    for _ in slices(AFTER_KILL_S):
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
    for wait in slices(AFTER_KILL_S):
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
    within(Time.of(AFTER_KILL_S), lambda: _kill_children(mark), lambda why: None)


def _kill_children(mark: str) -> None:
    """Until nothing is found twice: what the first look saw ending has left its children by the second."""
    none_before = False
    for wait in slices(AFTER_KILL_S):
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
