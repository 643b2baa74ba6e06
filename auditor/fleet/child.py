"""A process that judges one recording after the other, bounded in memory. Its time is bounded by the caller.

It is started with :mod:`subprocess` because Dask's workers are daemons, which :mod:`multiprocessing` does not allow to have
children; the two ends talk through one of its pipes.
"""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from auditor.fleet.judging import How, judged_lines, lines, unjudged

MEMORY = 3 << 30  # bytes of address space; a recording is 256 MiB at most, and its text as much again
TRIES = 2  # of a recording whose process died: something else may have killed it
IDLE = 600.0  # seconds
_CODE = "import sys; sys.path[:] = sys.argv[2:]; from auditor.fleet.child import run; run(int(sys.argv[1]))"


class Child:
    """The process; it is started when it is first given something, and anew when it is given something after its end."""

    def __init__(self, how: How) -> None:
        self._how = how
        self._process: subprocess.Popen[bytes] | None = None
        self.pipe: Connection

    def give(self, name: str) -> None:
        """Judge this recording; its lines come through the pipe. Raises OSError where no process can be started."""
        if self._process is None:
            self.pipe, theirs = Pipe()
            with theirs:
                flags = ("-I", *(("-B",) if sys.dont_write_bytecode else ()))
                number = theirs.fileno()
                argv = (sys.executable, *flags, "-c", _CODE, str(number), *sys.path)
                self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, pass_fds=(number,))
        with suppress(OSError):  # a process that is gone shows at the other end, too
            self.pipe.send((self._how, name))

    def taken(self) -> str:
        """The lines of what it was given. Raises EOFError or OSError where the process died of it."""
        return self.pipe.recv_bytes().decode()

    def died(self) -> str:
        """How it ended; it has closed its end of the pipe."""
        process = self._process
        assert process is not None
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
        self.end()
        code = process.returncode
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def end(self) -> None:
        """Kill the process, if there is one, and wait for its end."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self.pipe.close()
            self._process = None

    def judged(self, name: str, seconds: float) -> str:
        """The lines of one recording, whatever becomes of the process."""
        status = ""
        for _ in range(TRIES):
            self.give(name)
            if not self.pipe.poll(seconds):
                self.end()
                return late(name, seconds)
            try:
                return self.taken()
            except (EOFError, OSError):
                status = self.died()
        return deadly(name, status)


def late(name: str, seconds: float) -> str:
    """The line of a recording whose time is over."""
    return lines([unjudged(name, f"not judged within {seconds:g} s")])


def deadly(name: str, status: str) -> str:
    """The line of a recording that no process survived. status: how the last one ended."""
    return lines([unjudged(name, f"the process that judged it died {TRIES} times ({status})")])


def run(number: int) -> None:
    """In the process: names come through this descriptor, lines go back, until nobody is at the other end or wants anything
    any more: a worker of a cluster outlives its clients."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal means the parent, which ends us
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    least = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (least if soft == resource.RLIM_INFINITY else min(soft, least), hard))
    pipe = Connection(number)
    with suppress(EOFError, OSError):
        while pipe.poll(IDLE):
            how, name = pipe.recv()
            pipe.send_bytes(judged_lines(name, how).encode())
