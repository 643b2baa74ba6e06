"""What belongs to others, read with the rights of its owner by a separate process, and paid from the share of that user."""

from __future__ import annotations

import os
import pkgutil
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from subprocess import Popen
from typing import NamedTuple

from auditor.host import request
from auditor.host.children.reader import DONE, END, ERROR, REFUSED, TEXT, reason
from auditor.host.process import Time, within
from auditor.host.request import AFTER_KILL_S, UNANSWERED

# Whose share pays for reading a process: a user has one, with all that he may call himself. Who has a range of uids (man 5
# subuid), or is root in a container, can be thousands of users.

SUBORDINATE = "/etc/subuid"
# uids of one user or container (man 5 login.defs, SUB_UID_COUNT; man 1 systemd-nspawn, --private-users)
BLOCK = 1 << 16
INSIDE = 1 << 32  # behind all uids: accounts of user namespaces that /etc/subuid does not tell of
ENDED = -1
_RANGE = re.compile(r"^[^:\n]*:([0-9]{1,10}):([0-9]{1,10})$", re.MULTILINE)
_MOST = 1 << 20  # bytes
_UID = re.compile(rb"^Uid:\t([0-9]+)", re.MULTILINE)


class Accounts:
    """Those of one question."""

    def __init__(self) -> None:
        text = ""
        with suppress(OSError), open(SUBORDINATE, encoding="utf-8", errors="replace") as file:
            text = file.read(_MOST)
        self._ranges = [(int(first), int(count)) for first, count in _RANGE.findall(text)]
        self._here = _namespace("self")

    def of(self, number: str) -> int:
        """0 for root's; higher for who can choose among more uids, and so comes later. ENDED for an ended process."""
        if (uid := user(number)) is None:
            return ENDED
        for first, count in self._ranges:
            if uid and first <= uid < first + count:
                return uid - (uid - first) % BLOCK
        if not 0 < uid < BLOCK and _namespace(number) not in ("", self._here):
            return INSIDE + uid - uid % BLOCK
        return uid


def user(number: str) -> int | None:
    """The real uid of a process, also where its folder is shown as root's. None where it has ended."""
    found = _UID.search(status(number))
    return int(found[1]) if found else None


def status(number: str) -> bytes:
    """/proc/NUMBER/status, for which nobody waits; empty where it has ended."""
    with suppress(OSError), open(f"/proc/{number}/status", "rb") as file:
        return file.read()
    return b""


def _namespace(number: str) -> str:
    """The user namespace of a process; empty where the kernel has none or does not tell."""
    with suppress(OSError):
        return os.readlink(f"/proc/{number}/ns/user")
    return ""


# Files of others, read by a process with the rights of their owner and no more.
#
# Below /proc/PID/root lies what the process means by a path, and its command line, environment, configuration and mounts
# are whatever it says: root would read anything for anybody. So a child (``others``) enters the mount namespace and root
# directory of that process, and takes its user, its groups and no capability: what that user may not read is not read. For
# the data of a server that does not run (/proc/self/root) it takes the user that owns the named folder, and no group.
# Without root it has zaudit's rights. It is bounded in time, memory, descriptors and output, and cannot write a file.

PIPE = 1 << 16  # what a pipe holds
FRAMES = request.QUESTION_BYTES + 16 * request.MIB  # with the names, the targets of links and what went wrong


class Answer(NamedTuple):
    """What came of a path: see :mod:`.children.reader`. path: below the root directory of the process."""

    kind: str
    path: str
    data: bytes


class Others:
    """The processes that one look at a host holds on to, and how much it read for each user."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}
        self._read: dict[int, int] = {}
        self._lock = threading.Lock()

    def process(self, number: str) -> int:
        """A descriptor of /proc/NUMBER, always the same: it never leads to another process. Raises OSError."""
        with self._lock:
            if number not in self._held:
                self._held[number] = os.open(f"/proc/{number}", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            return self._held[number]

    def read(self, process: str, patterns: Sequence[str], owner: str, timeout_s: float) -> list[Answer] | str:
        """What patterns below its root directory name, each with ``+`` before it where more than links is wanted and ``=``
        for sizes of blocks; or why nothing was read. process: a number, or self: then owner is the folder whose owner's
        rights are taken."""
        kind, where, user = "folder", owner or "/", ITSELF
        passed: list[int] = []
        if process != "self":
            try:
                passed = [self.process(process)]
                kind, where, user = "process", str(passed[0]), os.stat(passed[0]).st_uid
            except OSError as error:  # it has ended: which is no sign that it had no such file
                return f"not read: /proc/{process}: {reason(error)}"
        left = request.USER_BYTES - self._read.get(user, 0)
        most, whole, what = min(
            (request.QUESTION_BYTES, request.QUESTION_BYTES, "question"), (left, request.USER_BYTES, "user")
        )
        over = f"more than {whole // request.MIB} MiB for one {what}"
        sizes = all(each.startswith("=") for each in patterns)
        entries = request.DATA_ENTRIES if sizes else request.FOLDER_ENTRIES
        words = [
            kind,
            where,
            str(int(timeout_s) + 1),
            over,
            *map(str, (*READER, most, request.QUESTION_FILES, entries)),
        ]
        answers = _ask(words, patterns, passed, timeout_s)
        if not isinstance(answers, str):
            with self._lock:
                read = self._read.get(user, 0) + sum(len(each.data) for each in answers)
                if read > request.USER_BYTES:  # together with what was asked next to it, when there was room for it yet
                    return f"not read: more than {request.USER_BYTES // request.MIB} MiB for one user"
                self._read[user] = read
        return answers


ITSELF = -1  # in the place of a user: the one that owns a folder
READER = (request.READER_BYTES, request.READER_CPU_S, request.READER_DESCRIPTORS, request.OTHERS_FILE_BYTES)


@cache
def script() -> str:
    """For ``python3 -I -S -c``: both modules, so that the child imports nothing of zaudit."""
    reading, others = map(_source, ("reader", "others"))
    return (
        f"import sys\nname = 'auditor.host.children.reader'\nsys.modules[name] = type(sys)(name)\n"
        f"exec({reading!r}, sys.modules[name].__dict__)\nexec({others!r})\nrun()\n"
    )


def _source(name: str) -> str:
    """The text of a program of ``children/``, an ordinary file."""
    text = pkgutil.get_data(f"{__package__}.children", f"{name}.py")
    assert text
    return text.decode()


def start(words: Sequence[str], patterns: Sequence[str], passed: Sequence[int]) -> Popen[bytes] | str:
    """The child, or why there is none: a bare Python without site packages, the caller's PATH or environment, in a session
    of its own, from /. passed: descriptors that it has, too."""
    given = os.memfd_create("patterns", os.MFD_CLOEXEC)
    try:
        with open(os.dup(given), "wb") as file:
            file.writelines(os.fsencode(each) + b"\0" for each in patterns)
        os.lseek(given, 0, os.SEEK_SET)
        return Popen(
            [sys.executable, "-I", "-S", "-c", script(), *words], bufsize=0,
            stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={"LC_ALL": "C"}, cwd="/",
            start_new_session=True, pass_fds=passed,
        )  # fmt: skip
    except OSError as error:
        return f"its reader cannot be started: {reason(error)}"
    finally:
        os.close(given)


def end(child: Popen[bytes], *, kill: bool) -> None:
    """See that it ends. It is not waited for longer than a moment."""
    if kill:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    try:
        child.wait(AFTER_KILL_S)
    except subprocess.TimeoutExpired:
        child.returncode = -signal.SIGKILL  # a file system holds it: nobody waits for it


def _runs(child: Popen[bytes]) -> bool:
    """Whether it would go on if it had a processor."""
    with suppress(OSError), open(f"/proc/{child.pid}/stat", "rb") as file:
        return file.read().rpartition(b") ")[2].startswith(b"R")
    return False


def _ask(words: Sequence[str], patterns: Sequence[str], passed: Sequence[int], timeout_s: float) -> list[Answer] | str:
    """Start the child, hear it, and see that it ends."""
    reader = start(words, patterns, passed)
    if isinstance(reader, str):
        return reader
    heard = _heard(reader, timeout_s)
    return heard if isinstance(heard, str) else _answers(heard, reader.returncode)


def _heard(reader: Popen[bytes], timeout_s: float) -> bytes | str:
    """What it said until its end; or why that is not heard. It is not waited for longer than it may take."""
    stream = reader.stdout
    assert stream is not None
    until, chunks, size = time.monotonic() + timeout_s, [], 0
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    why = f"no answer within {timeout_s:g} s"
    with stream:
        while (left := until - time.monotonic()) > 0:
            if not poll.poll(left * 1000):
                continue
            if not (chunk := os.read(stream.fileno(), PIPE)):
                why = ""
                break
            chunks.append(chunk)
            if (size := size + len(chunk)) > FRAMES:
                why = f"more than {FRAMES // request.MIB} MiB of answers"
                break
    end(reader, kill=bool(why))
    return why or b"".join(chunks)


def _answers(heard: bytes, exit_code: int) -> list[Answer] | str:
    answers = list(frames(bytearray(heard)))
    match answers[-1] if answers else None:
        case Answer(kind, _, why) if kind == REFUSED:
            return f"not read: {os.fsdecode(why)}"
        case Answer(kind) if kind == END:
            return answers[:-1]
    return ended_early(exit_code)


def ended_early(exit_code: int) -> str:
    """What is said of a child that did."""
    return f"its reader ended early ({f'signal {-exit_code}' if exit_code < 0 else f'exit code {exit_code}'})"


def frames(heard: bytearray) -> Iterator[Answer]:
    """What the child said, as far as it is whole, which is taken away."""
    at = 0
    while (end := heard.find(b"\n", at)) >= 0:
        kind, *lengths = bytes(heard[at:end]).split()
        if len(lengths) != 2 or not all(len(each) < 12 and each.isdigit() for each in lengths):
            break
        path, data = map(int, lengths)
        start, middle, next_ = end + 1, end + 1 + path, end + 1 + path + data
        if next_ > len(heard):
            break
        at = next_
        yield Answer(kind.decode(), os.fsdecode(bytes(heard[start:middle])), bytes(heard[middle:at]))
    del heard[:at]


# Files of /proc about a process which the kernel reads out of its memory, or for which it asks who may look into it.
#
# A reader waits while the process holds its memory lock, for as long as it likes: a thread that reads its own memory on a
# FUSE file system of its user waits there, and so does the start of another program, which closes a file there. So a
# separate process reads them (``others``), one after the other; if it is silent for too long it is killed, and another one
# continues with the next process. A user whose processes took too much time or text is skipped from then on (``Accounts``).
# (Linux mm/memory.c __access_remote_vm, kernel/fork.c mm_access, kernel/ptrace.c, fs/exec.c begin_new_exec and
# exec_update_lock, fs/fuse/dev.c request_wait_answer)

# what is told of every process without either; of process 1, which is root's, everything is
USERS_AT_ONCE = re.compile(
    r"/proc/(?:1/.*|[^/]+/(?:status|comm|cgroup|mountinfo|task/[^/]+/(?:schedstat|children)))", re.DOTALL
)
STAT, STATUS = "/stat", "/status"
FILE, USER, ALL = 0.05, 0.1, 0.9  # of the time of a question: for one file, for all of a user, for all
SLICE_S = 0.25
SLOW_S, SHORT = 0.02, 1024  # what comes faster, and is no longer (bytes), is nobody's fault
SHARE = request.MACHINE_BYTES // 4  # of a user, in one question
# descriptors and the like: those of one process, and those of one user (not root), of whom four may have as many before an
# answer is too much for its reader (gather/answer.py FILES)
ENTRIES, USER_ENTRIES = 10_000, 40_000
STARTED_S, UNTOLD = 5.0, -1
ENOUGH = "a user had his share"
SILENT, LEFT_OUT = UNANSWERED


def read_memory(
    paths: Sequence[str], held: tuple[str, int] | None, timeout_s: float, said: Callable[[str, str, bytes], None]
) -> None:
    """Say what came of each path (/proc/NUMBER/..., a pattern behind that), as ``Reader`` does. held: a number, and a
    descriptor of its folder that leads nowhere when the number goes to another process. Where the line of a process in stat
    is missing, its status comes in its place."""
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
        self._bytes = request.MACHINE_BYTES

    def part(self, paths: list[str]) -> list[str]:
        """Read one after the other, as far as one reader comes; those that are still to be read."""
        where, passed = (f"{self._held[0]} {self._held[1]}", [self._held[1]]) if self._held else ("", [])
        over = f"more than {request.MACHINE_BYTES // request.MIB} MiB for one question"
        bounds = (*READER[:3], request.FILE_BYTES, self._bytes, request.MACHINE_ENTRIES, ENTRIES)
        reader = start(["memory", where, str(int(self._timeout_s) + 1), over, *map(str, bounds)], paths, passed)
        if isinstance(reader, str):
            return self._fail(paths, reader)
        done, why = -1, "given up"
        try:
            done, why = self._hear(reader, paths)
        finally:
            end(reader, kill=bool(why))
        why = why or ended_early(reader.returncode)
        if done < 0 or time.monotonic() >= self._until:  # nor would another one
            return self._fail(paths[max(done, 0) :], why)
        return self._behind(paths[done:], why)

    def _hear(self, reader: Popen[bytes], paths: Sequence[str]) -> tuple[int, str]:
        """How many of them are done, below 0 where it could not begin; and why no more is heard, empty where it ended."""
        stream = reader.stdout
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
                    if done >= 0 and silent_s > most_s and not _runs(reader):
                        return done, f"{SILENT}{most_s:g} s"
                    continue
                if not (chunk := os.read(stream.fileno(), PIPE)):
                    return done, ""
                heard += chunk
                for answer in frames(heard):
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
        """The rest after a stop, without the process that caused it, and without those of users that had their share.
        Root's come first: no one else makes them wait."""
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
        """Whether the user of this process had his whole share. That it takes long is never root's fault."""
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
            self._over[account] = f"more than {SHARE // request.MIB} MiB for one user"
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
    """When a process started (field 22 of /proc/PID/stat; its name may hold spaces and brackets), in ticks since the
    machine did; 0 where there is none, UNTOLD for one that makes its reader wait."""

    def look() -> int:
        try:
            with open(f"/proc/{pid}{STAT}", "rb") as file:
                return int(file.read().rpartition(b")")[2].split()[19])
        except (OSError, IndexError, ValueError):
            return 0

    return look() if pid == os.getpid() else within(Time.of(STARTED_S), look, lambda why: UNTOLD)


def _number(path: str) -> str:
    return path.split("/")[2]
