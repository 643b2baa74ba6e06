"""The one seam to the machine: a Host runs commands and reads files, live or from a recording.

Safety (each line is held by a test): never a shell; tools only from a fixed PATH; only commands that a source declares,
and this Python itself for files of others, which are read with the rights of their owner (:mod:`.owner`); files judged
before they are opened, so that no device, FIFO or socket ever is (``children.reader``), but for the kernel's log
(:mod:`.kmsg`); LC_ALL=C and TZ=UTC, so that their output does not depend on the caller; each command in its own process
group, killed with all that it started at the time-out and then waited for at most two seconds (a suspended pool leaves
processes in uninterruptible sleep); output bounded, of one and of all together; every failure is a value.
"""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

from auditor.host import kmsg, libraries, process, sql, trust
from auditor.host.files import read_files
from auditor.host.owner import Others
from auditor.host.process import PATH as PATH
from auditor.host.process import Output, Time, Total, within
from auditor.host.request import AT_ONCE, NOTHING, Capture, Files, Read, Run
from auditor.sources.catalog import commands, places

ENVIRONMENT = {"PATH": ":".join(PATH), "LC_ALL": "C", "LANG": "C", "TZ": "UTC", "HOME": "/nonexistent"}


class Host(Protocol):
    """Gives an answer to each question, in a time that is bounded.

    now: seconds since the epoch; euid: who asks (0 is root). at_once: how many questions may be asked beside each other, from
    threads; 1 of a host that need not be waited for.
    """

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
    """This machine. timeout_s: of one question; deadline_s: of all together, from now on, or 0.

    What may hang in the kernel is done in a thread of its own, which is then left behind, or in another process.
    """

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
        if request.argv == libraries.UDEV_ARGV and (udev := within(allowed, _udev, _fault)):
            return udev if self._total.take(len(udev.stdout)) else _fault(self._total.late)
        if request.argv[0] == kmsg.NAME:
            return within(allowed, partial(kmsg.answer, Output(request.keep, "", self._total)), _fault)
        argv, own, more = request.argv, False, NOTHING
        if argv[0] == sql.NAME:
            more = sql.environment()
            own = sql.importable(argv[1])
            argv = ("python3", "-I", "-c", sql.script(), *argv[1:])
        elif argv[0] == libraries.LZC_NAME:
            own = libraries.lzc_importable()
            argv = ("python3", "-I", "-c", libraries.lzc_script(), *argv[1:])
        if argv[0] == "python3":
            argv = (*argv[:3], libraries.script(argv[3]), *argv[4:])
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
    libraries.by_soname()
    if not (udev := libraries.udev_context()):
        return None
    try:
        answer = libraries.export_udev(udev)
    except Exception as error:  # a library may raise anything; the capture says what
        return Capture(1, b"", f"{type(error).__name__}: {error}".encode(), time.monotonic() - began)
    return Capture(0, answer.encode("utf-8", "surrogateescape"), b"", time.monotonic() - began)


# A host that alone knows the DSN of ``--db``: whoever asks it names the connection by a word, and so do its answers.

_WORDS = re.compile(rb"(?s): (?!No module named).*")


class HidingHost:
    """Passes every question on; that of the database with its DSN in the place of the word, and its answer without the words of
    an error, which name hosts and people. dsn: of the only connection that is asked."""

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
