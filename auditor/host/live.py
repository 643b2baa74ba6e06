"""The one seam to the machine: a Host runs commands and reads files, live or from a recording.

Safety (tests hold each line): never a shell; tools only from a fixed PATH; only commands that a source declares, and this
Python itself for files of others, with the rights of their owner (:mod:`.owner`); files judged before they are opened, so
that no device, FIFO or socket ever is (``children.reader``), but for the kernel's log (:mod:`.builtin`); LC_ALL=C and
TZ=UTC, so that output does not depend on the caller; each command in a separate process group, killed with all that it
started at the time-out and then waited for at most two seconds (a suspended pool leaves processes in uninterruptible
sleep); output bounded, of one and of all together; every failure is a value."""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from auditor.databases import SERVERS, configuration
from auditor.databases.engine import ARGUMENT, path
from auditor.host import builtin, process, request, sql, trust
from auditor.host import owner as host_owner
from auditor.host.children.reader import BLOCKS, CHANGED, DEVICE, ERROR, LINK, OTHER, TEXT, Reader, reason
from auditor.host.owner import Others
from auditor.host.process import PATH as PATH
from auditor.host.process import Output, Time, Total, within
from auditor.host.request import AT_ONCE, NOTHING, Capture, Files, Read, Run
from auditor.sources import commands, guests, keep, places

ENVIRONMENT = {"PATH": ":".join(PATH), "LC_ALL": "C", "LANG": "C", "TZ": "UTC", "HOME": "/nonexistent"}


class Host(Protocol):
    """Answers each question in a bounded time. now: seconds since the epoch. euid: who asks (0 is root). at_once: how many
    questions threads may ask at the same time; 1 of a host that never waits."""

    now: float
    euid: int
    at_once: int

    def run(self, request: Run) -> Capture:
        """Run a command. Never raises for what the command does."""

    def read(self, request: Read) -> Files:
        """Read all files that the patterns name. Never raises for what the files do."""

    def realpath(self, path: str) -> str:
        """The path without symbolic links; raises FileNotFoundError when it does not exist, OSError for other reasons."""

    def steady(self, path: str) -> str:
        """The same of a path that was named earlier, to the kernel; empty where it is not there, and where others than root
        may have moved it since. Raises OSError where there was no answer in time."""


def permitted(argv: tuple[str, ...]) -> bool:
    """Whether a source declares the command: each only reads. ``hdparm -W0`` and ``nvme set-feature`` do not."""
    if not any(each.permits(argv) for each in commands()):
        return False
    return argv[0] != sql.NAME or (len(argv) == 3 and not sql.fault(argv[1], argv[2]))


def readable(pattern: str) -> bool:
    """Whether it is, or is below, what a source declares."""
    files, folders = places()
    return (pattern in files or pattern.startswith(folders)) and ".." not in pattern.split("/")


class LiveHost:
    """This machine. timeout_s: of one question; deadline_s: of all together, from now on, or 0. What may hang in the kernel
    runs in a thread that can be left behind, or in another process."""

    at_once = AT_ONCE

    def __init__(self, timeout_s: float, deadline_s: float = 0.0) -> None:
        self.now = time.time()
        self.euid = os.geteuid()
        self._timeout_s, self._deadline_s = timeout_s, deadline_s
        self._began = time.monotonic()
        self._total = Total()
        self._others = Others()
        self._tools: dict[tuple[str, ...], str] = {}
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:  # inherited: every command would seem to end with 0
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        process.adopt_orphans()

    def run(self, request: Run) -> Capture:
        if not permitted(request.argv):
            raise PermissionError(f"zaudit does not run this: {' '.join(request.argv)}")
        allowed = self._allowed()
        if request.argv == builtin.UDEV_ARGV and (udev := within(allowed, _udev, _fault)):
            return udev if self._total.take(len(udev.stdout)) else _fault(self._total.late)
        if request.argv[0] == builtin.KMSG:
            return within(allowed, partial(builtin.kmsg_answer, Output(request.keep, "", self._total)), _fault)
        argv, own, more = request.argv, False, NOTHING
        if argv[0] == sql.NAME:
            more = sql.environment()
            own = sql.importable(argv[1])
            argv = ("python3", "-I", "-c", sql.script(), *argv[1:])
        elif argv[0] == builtin.LZC_NAME:
            own = builtin.lzc_importable()
            argv = ("python3", "-I", "-c", builtin.lzc_script(), *argv[1:])
        if argv[0] == "python3":
            argv = (*argv[:3], builtin.script(argv[3]), *argv[4:])
        # a library that the system's Python may lack; in another process, for nothing ends a library that hangs in this one
        tool = sys.executable if own else self._tool((argv[0], *request.also), allowed)
        if isinstance(tool, Capture):
            return tool
        words, environment, chosen = (tool, *argv[1:]), {**ENVIRONMENT, **more}, (request.keep, request.first)
        allowed = self._allowed(halved=request.halved)
        return process.run(words, allowed, environment, *chosen, self._total, part=request.part)

    def read(self, request: Read) -> Files:
        if not all(map(readable, request.patterns)):
            raise PermissionError(f"zaudit does not read this: {request.patterns}")
        none, allowed = partial(_none, request), self._allowed()
        read = partial(read_files, request.patterns, self._others, request.owner, self._timeout_s, request.blocks,
                       request.trusted)  # fmt: skip
        found = within(allowed, read, none)
        return found if self._total.take(sum(map(len, found.text.values()))) else none(self._total.late)

    def realpath(self, path: str) -> str:
        return self._path(partial(os.path.realpath, path, strict=True))

    def steady(self, path: str) -> str:
        try:
            return self._path(partial(trust.resolve, path))
        except OSError as error:
            if error.errno == 0:
                raise
            return ""

    def _path(self, look: Callable[[], str]) -> str:
        def real() -> tuple[str, OSError | None]:
            try:
                return look(), None
            except OSError as error:
                return "", error
            except ValueError as error:  # a NUL byte in it
                return "", OSError(errno.EINVAL, str(error))

        found, error = within(self._allowed(), real, lambda why: ("", OSError(0, why)))
        if error:
            raise error
        return found

    def _allowed(self, *, halved: bool = False) -> Time:
        """For the next question. halved: the rest is for what comes after it."""
        left = self._began + self._deadline_s - time.monotonic()
        if not self._deadline_s or left >= self._timeout_s * (2 if halved else 1):
            return Time.of(self._timeout_s)
        deadline = f"the deadline of {self._deadline_s:g} s"
        if halved and left > 0:
            return Time(left / 2, f"no answer within {round(left / 2, 1):g} s, half of what {deadline} left")
        return Time(left, f"not asked: {deadline} was over" if left <= 0 else f"no answer before {deadline}")

    def _tool(self, names: tuple[str, ...], allowed: Time) -> str | Capture:
        """The path of the first of them that is installed, or why there is none."""
        if found := self._tools.get(names):
            return found
        tool = within(allowed, partial(_found, names), _fault)
        if isinstance(tool, str):
            self._tools[names] = tool
        return tool


def _fault(reason: str) -> Capture:
    return Capture(None, fault=reason)


def _none(request: Read, reason: str) -> Files:
    return Files({}, errors=dict.fromkeys(request.patterns, reason))


def _found(names: tuple[str, ...]) -> str | Capture:
    tool, fault = process.find_program(names, PATH)
    if fault:
        return _fault(fault)
    # one that cannot be read now is waited for here: where vfork() waits, so do all threads
    with suppress(PermissionError), open(tool, "rb") as file:
        file.read(1)
    return tool


def _udev() -> Capture | None:
    """udev's database through pyudev, which answers as well as udevadm does; None where it is missing."""
    began = time.monotonic()
    builtin.by_soname()
    if not (udev := builtin.udev_context()):
        return None
    try:
        answer = builtin.export_udev(udev)
    except Exception as error:  # a library may raise anything; the capture says what
        return Capture(1, b"", f"{type(error).__name__}: {error}".encode(), time.monotonic() - began)
    return Capture(0, answer.encode("utf-8", "surrogateescape"), b"", time.monotonic() - began)


# A host that alone knows the DSN of ``--db``: questions and answers name the connection by a word.

_WORDS = re.compile(rb"(?s): (?!No module named).*")


class HidingHost:
    """Passes every question on; that of the database with its DSN in place of the word. Its answer lacks the words of an
    error, which name hosts and people. dsn: of the only connection that is asked."""

    def __init__(self, host: Host, dsn: str) -> None:
        self.now, self.euid, self.at_once = host.now, host.euid, host.at_once
        self._host, self._dsn = host, dsn
        self.error = ""

    def run(self, request: Run) -> Capture:
        if request.argv[:1] != (sql.NAME,):
            return self._host.run(request)
        said = self._host.run(request._replace(argv=(*request.argv[:2], self._dsn)))
        self.error = said.stderr.decode("utf-8", "replace").strip()
        return said._replace(stderr=_WORDS.sub(b": (redacted)", said.stderr))

    def read(self, request: Read) -> Files:
        """Its own command line is a file, too."""
        found = self._host.read(request)
        if not self._dsn or not any(self._dsn in text for text in found.text.values()):
            return found
        return found._replace(text={path: text.replace(self._dsn, sql.REDACTED) for path, text in found.text.items()})

    def realpath(self, path: str) -> str:
        return self._host.realpath(path)

    def steady(self, path: str) -> str:
        return self._host.steady(path)


# Reading the files that a source asks for: the machine's own here, those of others with their rights (``owner``). Sizes and
# numbers are bounded (``request``), and of what may hold passwords only a part is kept (``allowed_part``).

_OF_PROCESS = re.compile(r"/proc/(\d+|self)/(.+)", re.DOTALL)
_OF_EACH = re.compile(r"/proc/(\d+|\*)/(.+)", re.DOTALL)
_OPEN = re.compile(r"/proc/\d+/fd/\d+")
_ENDED = b"no such file or directory"
Answers = tuple[  # as Files has them, still being filled
    dict[str, str], dict[str, str], dict[str, str], dict[str, str], dict[str, float]
]


def read_files(
    patterns: tuple[str, ...],
    others: Others | None = None,
    owner: str = "",
    timeout_s: float = 30.0,
    blocks: bool = False,
    trusted: bool = False,
) -> Files:
    """Expand the patterns and read what they name; symbolic links are noted, and followed only to regular files. others:
    what was seen of the processes whose files are wanted. owner: the folder whose owner's rights count below
    /proc/self/root. blocks: read only the sizes of blocks. trusted: of the machine's own files only those that no one but
    root and this user could have put there or changed."""
    found: Answers = {}, {}, {}, {}, {}
    seen = others or Others()
    mine: list[str] = []
    kept: list[str] = []
    theirs: dict[str, list[str]] = {}  # root directory -> patterns
    for pattern in patterns:
        root = PROCESS_ROOT.match(pattern)
        if not _possible(pattern):
            _keep(found, ERROR, pattern, reason(ValueError()).encode())
        elif root:
            theirs.setdefault(root[0].rstrip("/"), []).append(pattern)
        elif _OF_EACH.fullmatch(pattern) and not host_owner.USERS_AT_ONCE.fullmatch(pattern):
            kept.append(pattern)
        else:
            mine.append(pattern)
    if mine:
        _read_own(mine, seen, found, trusted=trusted)
    if kept:
        _read_memory(kept, seen, timeout_s, found)
    for root_path, wanted in theirs.items():
        _read_others(root_path, wanted, seen, owner, timeout_s, blocks, found)
    return Files(*found)


def _possible(path: str) -> bool:
    """Whether a file can have this name."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _the_one(patterns: Sequence[str]) -> str:
    """The number of the process that all that they say of processes is about, if it is one."""
    numbers = {process[1] for each in patterns if (process := _OF_EACH.match(each))} - {"self"}
    return numbers.pop() if len(numbers) == 1 and "*" not in numbers else ""


def _read_own(patterns: Sequence[str], others: Others, found: Answers, *, trusted: bool) -> None:
    one = _the_one(patterns)

    def opened(path: str, flags: int) -> int:
        if trusted:
            return trust.locate(path)[0]
        flags |= os.O_PATH | os.O_CLOEXEC
        if one and (process := _OF_PROCESS.fullmatch(path)) and process[1] == one:
            return os.open(process[2], flags, dir_fd=others.process(one))
        return os.open(path, flags)

    wide = False

    def said(kind: str, path: str, data: bytes) -> None:
        if kind != OTHER:  # what is no file has nothing to say: /dev is full of it
            _keep(found, kind, path, data, wide=wide)

    try:
        reader = Reader(
            opened, said, file_bytes=request.FILE_BYTES, total_bytes=request.MACHINE_BYTES, files=request.MACHINE_ENTRIES,
            entries=request.MACHINE_ENTRIES, over=f"more than {request.MACHINE_BYTES // request.MIB} MiB for one question",
            follow=lambda path: not _OF_PROCESS.match(path),
        )  # fmt: skip
    except OSError as error:  # without /proc no file can be judged before it is read
        _fail(found, patterns, f"/proc/self/fd: {reason(error)}")
        return
    try:
        for pattern in patterns:
            wide = "*" in pattern
            reader.read(pattern, content=True)
    finally:
        reader.close()


def _read_memory(patterns: Sequence[str], others: Others, timeout_s: float, found: Answers) -> None:
    """Of all processes only those that are there are told."""
    wide: dict[str, bool] = {}
    try:
        numbers = sorted(filter(str.isdigit, os.listdir("/proc"))) if any("*" in each for each in patterns) else []
        held = (one, others.process(one)) if (one := _the_one(patterns)) else None
    except OSError as error:
        _fail(found, patterns, reason(error))
        return
    for pattern in patterns:
        process = _OF_EACH.fullmatch(pattern)
        assert process
        every = process[1] == "*"
        wide |= dict.fromkeys((f"/proc/{each}/{process[2]}" for each in numbers) if every else [pattern], every)

    def said(kind: str, path: str, data: bytes) -> None:
        every = wide.get(path, True)
        if not (every and data == _ENDED):
            _keep(found, kind, path, data, wide=every)

    host_owner.read_memory(list(wide), held, timeout_s, said)


def _read_others(
    root: str, patterns: Sequence[str], others: Others, owner: str, timeout_s: float, blocks: bool, found: Answers
) -> None:
    """Files below the root directory of a process: of those that are no configuration only links and devices are noted."""
    wanted = [
        f"{'=' if blocks else '+' if _is_configuration(each) else '-'}{each.removeprefix(root)}" for each in patterns
    ]
    answers = others.read(root.split("/")[2], wanted, owner, timeout_s)
    if isinstance(answers, str):
        _fail(found, patterns, answers)
        return
    for kind, below, data in answers:
        path = root + below
        if kind == TEXT and not _is_configuration(path):
            _keep(found, ERROR, path, b"its name is none that zaudit reads")
        elif kind == OTHER:
            _keep(found, ERROR, path, b"not a regular file")
        elif kind == BLOCKS:
            _keep(found, TEXT, path, data)
        else:
            _keep(found, kind, path, data)


def _is_configuration(path: str) -> bool:
    return bool(CONFIGURATION.fullmatch(path.rpartition("/")[2].replace("*", "x")))


def _keep(found: Answers, kind: str, path: str, data: bytes, *, wide: bool = False) -> None:
    text, links, errors, devices, changed = found
    if kind == LINK and _OPEN.fullmatch(path) and not data.startswith(b"/"):
        return  # sockets, pipes and the like
    if kind == CHANGED:  # a link, and what it leads to: the later of both
        changed[path] = max(float(data), changed.get(path, float(data)))
    elif kind != TEXT:
        (links if kind == LINK else devices if kind == DEVICE else errors)[path] = os.fsdecode(data)
    elif (kept := allowed_part(path, data.decode("utf-8", "surrogateescape"), wide=wide)) is not None:
        text[path] = kept


def _fail(found: Answers, patterns: Sequence[str], why: str) -> None:
    for pattern in patterns:
        _keep(found, ERROR, pattern, why.encode("utf-8", "surrogateescape"))


# What is kept of files that say more than zaudit asks (passwords), before anything is parsed, stored or recorded.

PROCESS_ROOT = re.compile(r"/proc/(?:\d+|self)/root/")
CONFIGURATION = re.compile(r"[\w.@#-]+\.(?:conf|cnf|ya?ml)")
KTHREADD = "PPid:\t2"  # the parent of all threads of the kernel
NAMED = "Name:\t"
_STATUS = frozenset((KTHREADD, *(NAMED + each for each in SERVERS)))
IGNORES_FLUSHES = "libeatmydata"
_SIZE = re.compile(r"[0-9]{1,10} [0-9]{1,10}")
_PROCESS = re.compile(r"/proc/(?:\d+|self)/(environ|maps|cmdline|status|stat)")


def allowed_part(name: str, text: str, *, wide: bool = False) -> str | None:
    """The part of a file that is kept, or None. wide: one of many of a pattern. Lines of a configuration keep their
    number."""
    if PROCESS_ROOT.match(name):
        last = name.rpartition("/")[2]
        if "*" in last:  # sizes of blocks, and how many files have them; a question mark for any other line
            return "".join(f"{line if _SIZE.fullmatch(line) else '?'}\n" for line in text.splitlines())
        return configuration.settings(last, text)
    if declared := keep(name):
        return declared(text)
    found = _PROCESS.fullmatch(name)
    match found and found[1]:
        case "stat":  # of database servers, and of the first process, which shows that they can be seen
            command = text.partition(" (")[2].rpartition(") ")[0]  # may hold any character (man 5 proc_pid_stat)
            return text if name == "/proc/1/stat" or command in ("", *SERVERS) else None
        case "environ":
            return configuration.variables(text)
        case "cmdline":
            guest = guests.keep_command_line(text)
            return guest if wide or guest is not None else configuration.command_line(text)
        case "maps":
            return _libraries(text)
        case "status":  # who runs it, whether the kernel made it, and which database server it may be
            return "".join(f"{line}\n" for line in text.split("\n") if line.startswith("Uid:") or line in _STATUS)
        case _:
            return text


def _libraries(maps: str) -> str:
    """Of the files that are mapped those that make fsync do nothing, and that there are others. What was kept is kept again."""
    rows = (line.split(maxsplit=5) for line in maps.splitlines())
    names = {" ".join(row) if len(row) < 5 else row[5] for row in rows if len(row) != 5}
    found = {each if path(each) else IGNORES_FLUSHES for each in names if IGNORES_FLUSHES in each}
    others = [ARGUMENT] if any(IGNORES_FLUSHES not in each for each in names) else []
    return "".join(f"{each}\n" for each in (*sorted(found), *others))
