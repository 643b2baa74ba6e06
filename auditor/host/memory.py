"""Files of /proc about a process which the kernel reads out of its memory, or for which it asks who may look into it.

A reader of these files waits while the process holds its memory lock, and a process can hold it for as long as it likes: if it
has a file system of its own (FUSE) that does not answer, a thread that reads its own memory there waits, and so does the start
of another program, which closes a file there. So a separate process of zaudit reads them (``_owner_child``), one after the
other; if it is silent for too long it is killed and left behind, and another one continues with the next process. A user whose
processes together took too much time, or had too much to say, is skipped from then on, so that the others are read
(``accounts``). (Linux mm/memory.c
__access_remote_vm, kernel/fork.c mm_access, kernel/ptrace.c, fs/exec.c begin_new_exec and exec_update_lock, fs/fuse/dev.c
request_wait_answer)
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from subprocess import Popen

from auditor.host import limits, owner
from auditor.host._reading import DONE, END, ERROR, REFUSED, TEXT
from auditor.host.accounts import ENDED, INSIDE, Accounts, status
from auditor.host.request import UNANSWERED
from auditor.host.running import Time, within

# what is told of every process without either; of process 1, which is root's, everything is
AT_ONCE = re.compile(
    r"/proc/(?:1/.*|[^/]+/(?:status|comm|cgroup|mountinfo|task/[^/]+/(?:schedstat|children)))", re.DOTALL
)
STAT, STATUS = "/stat", "/status"
FILE, USER, ALL = 0.05, 0.1, 0.9  # of the time of a question: for one file, for all of a user, for all
SLICE_S = 0.25
SLOW_S, SHORT = 0.02, 1024  # what comes faster, and is no longer (bytes), is nobody's fault
SHARE = limits.MACHINE_BYTES // 4  # of a user, in one question
# descriptors and the like: those of one process, and those of one user (not root), of whom four may have as many before an
# answer is too much for its reader (gather/bounds.py FILES)
ENTRIES, USER_ENTRIES = 10_000, 40_000
STARTED_S, UNTOLD = 5.0, -1
ENOUGH = "a user had his share"
SILENT, LEFT_OUT = UNANSWERED


def read(
    paths: Sequence[str], held: tuple[str, int] | None, timeout_s: float, said: Callable[[str, str, bytes], None]
) -> None:
    """Say what came of each path (/proc/NUMBER/..., a pattern behind that), as :class:`._reading.Reader` does. held: a number,
    and a descriptor of its folder that leads nowhere when the number goes to another process. Where the line of a process in
    stat is not had, its status is said in its place."""
    look = _Look(held, timeout_s, said)
    rest = list(paths)
    while rest:
        rest = look.part(rest)


class _Look:
    """One question."""

    def __init__(self, held: tuple[str, int] | None, timeout_s: float, said: Callable[[str, str, bytes], None]) -> None:
        self._held, self._timeout_s, self._said = held, timeout_s, said
        self._until = time.monotonic() + ALL * timeout_s
        self._accounts = Accounts()
        self._seconds: dict[int, float] = {}  # by account, as the three below
        self._size: dict[int, int] = {}
        self._entries: dict[int, int] = {}
        self._over: dict[int, str] = {}  # why nothing more is asked
        self._bytes = limits.MACHINE_BYTES

    def part(self, paths: list[str]) -> list[str]:
        """Read one after the other, as far as one reader comes; those that are still to be read."""
        where, passed = (f"{self._held[0]} {self._held[1]}", [self._held[1]]) if self._held else ("", [])
        over = f"more than {limits.MACHINE_BYTES // limits.MIB} MiB for one question"
        bounds = (*owner.READER[:3], limits.FILE_BYTES, self._bytes, limits.MACHINE_ENTRIES, ENTRIES)
        child = owner.start(["memory", where, str(int(self._timeout_s) + 1), over, *map(str, bounds)], paths, passed)
        if isinstance(child, str):
            return self._fail(paths, child)
        done, why = -1, "given up"
        try:
            done, why = self._hear(child, paths)
        finally:
            owner.end(child, kill=bool(why))
        why = why or owner.ended_early(child.returncode)
        if done < 0 or time.monotonic() >= self._until:  # nor would another one
            return self._fail(paths[max(done, 0) :], why)
        return self._behind(paths[done:], why)

    def _hear(self, child: Popen[bytes], paths: Sequence[str]) -> tuple[int, str]:
        """How many of them are done, below 0 where it could not begin; and why no more is heard, empty where it ended."""
        stream = child.stdout
        assert stream is not None
        heard, done, silent_s, most_s = bytearray(), -1, 0.0, FILE * self._timeout_s
        size = count = 0
        poll = select.poll()
        poll.register(stream, select.POLLIN)
        with stream:
            while (now := time.monotonic()) < self._until:
                came = poll.poll(SLICE_S * 1000)
                silent_s += min(time.monotonic() - now, SLICE_S)  # who was stopped meanwhile still hears what was said
                if not came:
                    if done >= 0 and silent_s > most_s and not _runs(child.pid):
                        return done, f"{SILENT}{most_s:g} s"
                    continue
                if not (chunk := os.read(stream.fileno(), owner.PIPE)):
                    return done, ""
                heard += chunk
                for answer in owner.frames(heard):
                    if answer.kind == REFUSED:
                        return -1, f"{LEFT_OUT}{os.fsdecode(answer.data)}"
                    if answer.kind == DONE:
                        done += 1
                        enough = done and self._had_enough(paths[done - 1], silent_s, size, count)
                        silent_s, size, count = 0.0, 0, 0
                        if enough:
                            return done, ENOUGH
                    elif answer.kind != END:
                        size, count = size + len(answer.data), count + 1
                        self._bytes -= len(answer.data)
                        self._said(*answer)
        return done, f"{SILENT}{ALL * self._timeout_s:g} s"

    def _behind(self, paths: list[str], why: str) -> list[str]:
        """What is still to be read where no more was heard, without the process that is the reason, and without those of users
        that had their share. Root's come first: nobody else makes them wait."""
        stuck = ""
        if paths and why != ENOUGH:
            stuck = _number(paths[0])
            self._had_enough(paths[0], FILE * self._timeout_s, 0, 0)
        rest: list[tuple[int, str]] = []
        accounts = {number: self._accounts.of(number) for number in map(_number, paths)}
        for each in paths:
            account = accounts[_number(each)]
            if _number(each) == stuck:
                self._fail([each], why)
            elif account in self._over:
                self._fail([each], self._over[account])
            else:
                rest.append((account, each))
        return [each for _, each in sorted(rest, key=lambda each: each[0])]

    def _had_enough(self, path: str, seconds: float, size: int, count: int) -> bool:
        """Whether the user of this process, which took so long and said so much, had all that is for one. That it takes long
        is never root's fault."""
        if seconds <= SLOW_S and size <= SHORT and count <= 1:
            return False
        if (account := self._accounts.of(_number(path))) == ENDED:
            return False
        self._size[account] = self._size.get(account, 0) + size
        self._seconds[account] = self._seconds.get(account, 0.0) + (seconds if seconds > SLOW_S and account else 0.0)
        self._entries[account] = self._entries.get(account, 0) + (count if account else 0)
        if self._entries[account] > USER_ENTRIES:
            self._over[account] = f"more than {USER_ENTRIES:,} entries for one user"
        elif self._size[account] > SHARE:
            self._over[account] = f"more than {SHARE // limits.MIB} MiB for one user"
        elif self._seconds[account] >= USER * self._timeout_s:
            self._over[account] = f"{LEFT_OUT}other processes of user {account % INSIDE} did not answer"
        return account in self._over

    def _fail(self, paths: Sequence[str], why: str) -> list[str]:
        for each in paths:
            self._said(ERROR, each, os.fsencode(why))
            if each.endswith(STAT) and (line := status(_number(each))):
                self._said(TEXT, each.removesuffix(STAT) + STATUS, line)
        return []


def started(pid: int) -> int:
    """When a process started (field 22 of /proc/PID/stat; its name may hold spaces and brackets), in ticks since the machine
    did; 0 where there is none, UNTOLD for one that lets its reader wait."""

    def look() -> int:
        try:
            with open(f"/proc/{pid}{STAT}", "rb") as file:
                return int(file.read().rpartition(b")")[2].split()[19])
        except (OSError, IndexError, ValueError):
            return 0

    return look() if pid == os.getpid() else within(Time.of(STARTED_S), look, lambda why: UNTOLD)


def _number(path: str) -> str:
    return path.split("/")[2]


def _runs(child: int) -> bool:
    """Whether it would go on if it had a processor."""
    with suppress(OSError), open(f"/proc/{child}/stat", "rb") as file:
        return file.read().rpartition(b") ")[2].startswith(b"R")
    return False
