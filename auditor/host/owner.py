"""Files of others, read with the rights of their owner, by a process of its own that has these and no more.

What lies below /proc/PID/root is what the process means by a path, and its command line, its environment, its configuration and
its mounts are whatever it says: asked to read them, root would read anything for anybody. So a child (``_owner_child``) opens
them that has entered the mount namespace and the root directory of that process, and has taken its user, its groups and no
capability: what that user may not read is not read. For the data of a server that does not run (/proc/self/root) it takes the
user that owns the folder which was named, and no group. Without root it has the rights that zaudit has. It is bounded in time,
memory, descriptors and output, and cannot write a file.
"""

from __future__ import annotations

import contextlib
import os
import pkgutil
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from auditor.host import limits
from auditor.host._reading import END, REFUSED, reason

ENVIRONMENT = {"LC_ALL": "C"}
AFTER_KILL_S = 2.0
PIPE = 1 << 16
FRAMES = limits.QUESTION_BYTES + 16 * limits.MIB  # with the names, the targets of links and what went wrong


class Answer(NamedTuple):
    """What came of a path: see :mod:`._reading`. path: below the root directory of the process."""

    kind: str
    path: str
    data: bytes


class Others:
    """What one look at a host reads of others: the processes that it holds on to, and how much it read for each user."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}
        self._read: dict[int, int] = {}
        self._lock = threading.Lock()

    def process(self, number: str) -> int:
        """A descriptor of /proc/NUMBER, the same every time: where the number goes to another process, it leads nowhere.
        Raises OSError."""
        with self._lock:
            if number not in self._held:
                self._held[number] = os.open(f"/proc/{number}", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            return self._held[number]

    def read(self, process: str, patterns: Sequence[str], owner: str, timeout_s: float) -> list[Answer] | str:
        """What patterns below its root directory name, each with ``+`` before it where more than links is wanted and ``=``
        for sizes of blocks; or why nothing was read. process: a number, or self: then owner is the folder whose owner's rights
        are taken."""
        kind, where, user = "folder", owner or "/", ITSELF
        passed: list[int] = []
        if process != "self":
            try:
                passed = [self.process(process)]
                kind, where, user = "process", str(passed[0]), os.stat(passed[0]).st_uid
            except OSError as error:  # it has ended: which is no sign that it had no such file
                return f"not read: /proc/{process}: {reason(error)}"
        left = limits.USER_BYTES - self._read.get(user, 0)
        most, whole, what = min(
            (limits.QUESTION_BYTES, limits.QUESTION_BYTES, "question"), (left, limits.USER_BYTES, "user")
        )
        over = f"more than {whole // limits.MIB} MiB for one {what}"
        sizes = all(each.startswith("=") for each in patterns)
        entries = limits.DATA_ENTRIES if sizes else limits.FOLDER_ENTRIES
        words = [
            kind,
            where,
            str(int(timeout_s) + 1),
            over,
            *map(str, (*READER, most, limits.QUESTION_FILES, entries)),
        ]
        answers = _ask(words, patterns, passed, timeout_s)
        if not isinstance(answers, str):
            with self._lock:
                read = self._read.get(user, 0) + sum(len(each.data) for each in answers)
                if read > limits.USER_BYTES:  # together with what was asked beside it, when there was room for it yet
                    return f"not read: more than {limits.USER_BYTES // limits.MIB} MiB for one user"
                self._read[user] = read
        return answers


ITSELF = -1  # in the place of a user: the one that owns a folder
READER = (limits.READER_BYTES, limits.READER_CPU_S, limits.READER_DESCRIPTORS, limits.OTHERS_FILE_BYTES)


@cache
def script() -> str:
    """For ``python3 -I -S -c``: both modules, so that the child imports nothing of zaudit."""
    reading, child = (pkgutil.get_data(__package__, f"{name}.py") for name in ("_reading", "_owner_child"))
    assert reading
    assert child
    return (
        f"import sys\nname = 'auditor.host._reading'\nsys.modules[name] = type(sys)(name)\n"
        f"exec({reading.decode()!r}, sys.modules[name].__dict__)\nexec({child.decode()!r})\nrun()\n"
    )


def start(words: Sequence[str], patterns: Sequence[str], passed: Sequence[int]) -> subprocess.Popen[bytes] | str:
    """The child, or why there is none. passed: descriptors that it has, too."""
    given = os.memfd_create("patterns", os.MFD_CLOEXEC)
    try:
        with open(os.dup(given), "wb") as file:
            file.writelines(os.fsencode(each) + b"\0" for each in patterns)
        os.lseek(given, 0, os.SEEK_SET)
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", script(), *words],
            bufsize=0, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT, cwd="/",
            start_new_session=True, pass_fds=passed,
        )  # fmt: skip
    except OSError as error:
        return f"its reader cannot be started: {reason(error)}"
    finally:
        os.close(given)


def end(child: subprocess.Popen[bytes], *, kill: bool) -> None:
    """See that it ends. It is not waited for longer than a moment."""
    if kill:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    try:
        child.wait(AFTER_KILL_S)
    except subprocess.TimeoutExpired:
        child.returncode = -signal.SIGKILL  # a file system holds it: nobody waits for it


def _ask(words: Sequence[str], patterns: Sequence[str], passed: Sequence[int], timeout_s: float) -> list[Answer] | str:
    """Start the child, hear it, and see that it ends."""
    child = start(words, patterns, passed)
    if isinstance(child, str):
        return child
    heard = _heard(child, timeout_s)
    return heard if isinstance(heard, str) else _answers(heard, child.returncode)


def _heard(child: subprocess.Popen[bytes], timeout_s: float) -> bytes | str:
    """What it said until its end; or why that is not heard. It is not waited for longer than it may take."""
    stream = child.stdout
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
                why = f"more than {FRAMES // limits.MIB} MiB of answers"
                break
    end(child, kill=bool(why))
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
