"""A command that runs: in its own process group, bounded in time and output, every failure a value."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Collection, Mapping

from auditor import interrupt
from auditor.host.request import Capture
from auditor.host.running import Running

OUTPUT_LIMIT = 128 << 20
PIPE = 1 << 16  # what a pipe holds
AFTER_KILL_S = 2.0
SOONEST_S, LATEST_S = 0.0005, 0.05  # from one look to the next whether a command has ended that has shut its output

_RUNNING: set[Process] = set()


def kill_all() -> None:
    """Nothing that was started outlives the program."""
    for process in tuple(_RUNNING):
        process.abandon()


class Process(Running[Capture]):
    """Runs argv[0] (an absolute path) with these environment variables. Raises OSError when it cannot be started.

    At the time-out it is killed with its process group, and then waited for at most two seconds: a suspended pool leaves
    processes in uninterruptible sleep.
    """

    def __init__(self, argv: tuple[str, ...], timeout_s: float, environment: Mapping[str, str]) -> None:
        self._timeout_s = timeout_s
        self._started = time.monotonic()
        with interrupt.whole:  # a command that nobody knows of could not be killed
            self._process = subprocess.Popen(
                argv,
                bufsize=0,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
            out, err = self._process.stdout, self._process.stderr
            assert out is not None
            assert err is not None
            self._streams = {out.fileno(): out, err.fileno(): err}
            _RUNNING.add(self)
        self._said: list[list[bytes]] = [[], []]
        self._chunks = dict(zip(self._streams, self._said, strict=True))
        self._size, self._seconds, self._fault = 0, 0.0, ""
        self._last = self._started + timeout_s  # to end before it is killed; after that, before it is given up
        self._pause = SOONEST_S
        self._due = self._last

    @property
    def watched(self) -> Collection[int]:
        return self._streams  # until they are shut

    @property
    def due(self) -> float:
        return self._due

    def proceed(self, ready: Collection[int]) -> bool:
        for descriptor in ready:
            self._hear(descriptor)
        now = time.monotonic()
        if not self._fault and (self._size > OUTPUT_LIMIT or now >= self._last):
            much, late = f"more than {OUTPUT_LIMIT >> 20} MiB of output", f"no answer within {self._timeout_s:g} s"
            self._kill(much if self._size > OUTPUT_LIMIT else late)
            self._last = now + AFTER_KILL_S
        if self._streams:
            return False
        if self._process.poll() is None:
            if now < self._last:
                self._due, self._pause = min(now + self._pause, self._last), min(self._pause * 2, LATEST_S)
                return False
            self._process.returncode = -signal.SIGKILL  # keeps the interpreter from waiting for it later
        self._seconds = now - self._started
        _RUNNING.discard(self)
        return True

    def grant(self, seconds: float) -> None:
        self._last += seconds
        self._due += seconds

    def result(self) -> Capture:
        exit_code = None if self._fault else self._process.returncode
        out, err = map(b"".join, self._said)
        return Capture(exit_code, out, err, self._seconds, self._fault)

    def abandon(self) -> None:
        """Kill it and do not wait."""
        self._kill("abandoned")
        self._process.returncode = -signal.SIGKILL
        _RUNNING.discard(self)

    def _hear(self, descriptor: int) -> None:
        if data := os.read(descriptor, PIPE):
            self._chunks[descriptor].append(data)
            self._size += len(data)
        else:
            self._streams.pop(descriptor).close()

    def _kill(self, fault: str) -> None:
        self._fault = fault
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        while self._streams:
            self._streams.popitem()[1].close()
