"""The process that looks which threads wait in zil_commit(), as root: see ``stacks``, which starts it and kills it.

Of each thread it asks how often it was on a CPU (schedstat); who slept at the last look and was not since still sleeps. Of the
others it asks the state (status), and of those that sleep without being interruptible, or wait for a CPU, the stack. The first
two never let their reader wait; a stack does as long as its owner likes (``host/owner``), so it is said before whose is read.
What it says, a line each, with the numbers of a thread and its process, and names in hexadecimal:

``X WHY``               it cannot look at all
``T PROCESS USER``      the stack of a thread of this process is read now
``H THREAD PROCESS KERNEL NAME``  that one waits in zil_commit(); KERNEL: 1 for a thread of the kernel
``P MICROSECONDS THREADS CUT``    a pass is done, in so much CPU time; CUT: 1 where there was more to look at than it may

Arguments: processes and users that are skipped, as ``pNUMBER`` and ``uNUMBER``. (man 5 proc_pid_status, proc_pid_stack;
Linux Documentation/scheduler/sched-stats.rst, kernel/sched/stats.h sched_info_arrive(), fs/proc/base.c proc_task_getattr())
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import resource
import signal
import sys
import time

PROC = "/proc"
PDEATHSIG = 1
HZ, REST = 20.0, 10.0  # looks a second at most; times the CPU time of one until the next
MOST_REST = 1.5 * REST  # the longest
RESCAN_S = 1.0
THREADS, STACKS = 8192, 256  # that are looked at, whose stacks are read in one pass
MEMORY = 256 << 20
KTHREADD = 2
NOTHING = b"0 0 0\n"  # of a kernel that does not count
WAIT = (b"D", b"R")  # states in which a commit is waited for: for its log block, and then for a CPU
NUMBERS = (b"Tgid", b"PPid", b"Uid")
LINES = 12  # of status that are looked at: up to Uid there are nine
COMMITS = (b"zvol", b"nfsd")  # how threads of the kernel begin that commit for others


class Thread:
    """One that may commit. counted, status: files of it, which mean no other thread even when its number does. before: what
    they said at the last look; asleep: in no state of WAIT."""

    def __init__(self, number: int, process: int) -> None:
        self.number, self.process = number, process
        self.status = opened(f"{PROC}/{process}/task/{number}/status")
        try:
            self.counted = opened(f"{PROC}/{process}/task/{number}/schedstat")
        except OSError:
            self.counted = -1
        self.before, self.asleep = NOTHING, True

    def close(self) -> None:
        for file in (self.status, self.counted):
            if file >= 0:
                os.close(file)

    def said(self) -> tuple[bytes, bytes, int, int, int] | None:
        """(name, state, process, parent, user), None where it sleeps as it did. Raises OSError for one that has ended."""
        counted = os.pread(self.counted, 128, 0) if self.counted >= 0 else NOTHING
        if counted == self.before != NOTHING and self.asleep:
            return None
        self.before = counted
        found = status(self.status)
        self.asleep = found[1] not in WAIT
        return found


class Looker:
    """Looks again and again."""

    def __init__(self, passed_over: set[str], most: int = THREADS) -> None:
        self.passed_over, self.most = passed_over, most
        self.threads: dict[int, Thread] = {}
        self.counts: dict[
            int, int
        ] = {}  # process -> how many threads it had when they were listed; 0: none are looked at
        self.cut = False

    def rescan(self) -> None:
        """Open what is new. A process whose number of threads is as it was is not listed again."""
        self.cut = False
        there = {int(each) for each in os.listdir(PROC) if each.isdigit()} - {os.getpid(), os.getppid()}
        for gone in self.counts.keys() - there:
            del self.counts[gone]
        for process in there:
            if self.counts.get(process) != 0:
                with contextlib.suppress(OSError):
                    self.of_process(process)

    def of_process(self, process: int) -> None:
        folder = f"{PROC}/{process}/task"
        count = os.stat(folder).st_nlink
        if count == self.counts.get(process):
            return
        if process not in self.counts and self.never(process):
            self.counts[process] = 0
            return
        for number in map(int, os.listdir(folder)):
            if number not in self.threads:
                if len(self.threads) >= self.most:
                    self.cut = True
                    return
                with contextlib.suppress(OSError):
                    self.threads[number] = Thread(number, process)
        self.counts[process] = count

    def never(self, process: int) -> bool:
        """Whether it is a thread of the kernel that commits for nobody, or skipped."""
        if f"p{process}" in self.passed_over:
            return True
        file = opened(f"{PROC}/{process}/status")
        try:
            name, _, _, parent, _ = status(file)
        finally:
            os.close(file)
        return parent == KTHREADD and not name.startswith(COMMITS)

    def look(self) -> list[bytes]:
        """One pass: those that wait in zil_commit()."""
        found, read = [], 0
        for number, thread in list(self.threads.items()):
            try:
                said = thread.said()
            except OSError:  # it has ended
                thread.close()
                del self.threads[number]
                self.counts.pop(thread.process, None)
                continue
            if said is None or said[1] not in WAIT:
                continue
            name, _, process, parent, user = said
            if (read := read + 1) > STACKS:
                self.cut = True
                break
            if b" zil_commit" in self.stack(number, process, user):
                found.append(b"H %d %d %d %s\n" % (number, process, parent == KTHREADD, name.hex().encode()))
        return found

    def stack(self, number: int, process: int, user: int) -> bytes:
        if f"u{user}" in self.passed_over:
            return b""
        say(b"T %d %d\n" % (process, user))
        with contextlib.suppress(OSError), open(f"{PROC}/{process}/task/{number}/stack", "rb", 0) as file:
            return file.read(8192)
        return b""


def status(file: int) -> tuple[bytes, bytes, int, int, int]:
    """(name, state, process, parent, user); a name has no newline there. Raises OSError where a line is missing."""
    lines = dict(
        line.split(b":\t", 1) for line in os.pread(file, 4096, 0).split(b"\n", LINES)[:LINES] if b":\t" in line
    )
    try:
        process, parent, user = (int(lines[each].split()[0]) for each in NUMBERS)
        return lines[b"Name"], lines[b"State"][:1], process, parent, user
    except (KeyError, IndexError, ValueError):
        raise OSError(0, "no status") from None


def opened(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def say(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def run() -> None:
    """Until it is killed, or nobody listens any more."""
    ctypes.CDLL(None).prctl(PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    files = min(2 * THREADS + 64, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    try:
        with open(f"{PROC}/self/stack", "rb", 0) as own:
            own.read(4096)
    except OSError as error:
        say(f"X /proc/PID/stack: {error.strerror}\n".encode())
        return
    looker, scanned = Looker(set(sys.argv[1:]), (files - 64) // 2), -RESCAN_S
    while True:
        began, now = time.process_time(), time.monotonic()
        if now - scanned >= RESCAN_S:
            looker.rescan()
            scanned = now
        found = looker.look()
        took = time.process_time() - began
        say(b"".join(found) + b"P %d %d %d\n" % (took * 1e6, len(looker.threads), looker.cut))
        # at odd times, so that no load that keeps time itself is met in step
        time.sleep(max(1 / HZ, REST * took) * random.uniform(0.5, 1.5))
