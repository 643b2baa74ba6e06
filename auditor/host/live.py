"""The one seam to the machine: a Host runs commands and reads files, live or from a recording.

Safety (each line is held by a test): never a shell; tools only from a fixed PATH; only commands of :data:`READ_ONLY`;
LC_ALL=C and TZ=UTC, so that what they print does not depend on who asks; each command in its own process group, killed
with it at the time-out and then waited for at most two seconds (a suspended pool leaves processes in uninterruptible
sleep); output bounded; every failure is a value.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from auditor.host import lzc, sql, udev_db
from auditor.host.files import read_files
from auditor.host.process import Process
from auditor.host.request import NOTHING, Capture, Files, Read, Run
from auditor.host.running import Lane, Running, Then

VENDORS = ("/opt/MegaRAID/storcli", "/opt/MegaRAID/perccli", "/opt/smartstorageadmin/ssacli/bin")
PATH = ("/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin", *VENDORS)
ENVIRONMENT = {"PATH": ":".join(PATH), "LC_ALL": "C", "LANG": "C", "TZ": "UTC", "HOME": "/nonexistent"}
ROOTS = (
    *("/sys/", "/proc/", "/etc/", "/run/", "/dev/", "/usr/lib/", "/var/lib/nfs/"),
    *("/usr/local/lib/modprobe.d/", "/lib/modprobe.d/"),
)

# Command, the options that it may have, what else may stand there. Nothing else is ever started; each only reads.
_NAME, _DEVICE = re.compile(r"[^-].*", re.DOTALL), re.compile(r"/dev/[^-].*|json|6")
READ_ONLY: tuple[tuple[tuple[str, ...], frozenset[str], re.Pattern[str]], ...] = (
    (("zfs", "get"), frozenset({"-Hp", "-r", "-t", "-o"}), _NAME),
    (("zfs", "list"), frozenset({"-H", "-r", "-t", "-o", "-s"}), _NAME),
    (("zfs", "version"), frozenset(), _NAME),
    (("zpool", "get"), frozenset({"-Hp", "-o"}), _NAME),
    (("zpool", "history"), frozenset(), _NAME),
    (("zpool", "list"), frozenset({"-Hp", "-o"}), _NAME),
    (("zpool", "status"), frozenset({"-j", "--json-int", "-p", "-s", "-P"}), _NAME),
    (("zpool", "events"), frozenset({"-H"}), _NAME),
    (("zdb", "-C"), frozenset(), _NAME),
    (("nvme", "list"), frozenset({"-o"}), _DEVICE),
    (("nvme", "id-ctrl"), frozenset({"-o"}), _DEVICE),
    (("nvme", "id-ns"), frozenset({"-o"}), _DEVICE),
    (("nvme", "cmdset-ind-id-ns"), frozenset({"-o"}), _DEVICE),
    (("nvme", "smart-log"), frozenset({"-o"}), _DEVICE),
    (("nvme", "ocp", "smart-add-log"), frozenset({"-o"}), _DEVICE),
    (("nvme", "get-feature"), frozenset({"-f", "-H"}), _DEVICE),
    (("smartctl", "-j", "-x"), frozenset(), _DEVICE),
    (("hdparm", "-W"), frozenset(), re.compile(r"/dev/[^-].*")),
    (("storcli64",), frozenset(), re.compile(r"/call(/vall)?|show|all|J|nolog")),
    (("ssacli", "ctrl", "all", "show", "config", "detail"), frozenset(), re.compile(r"(?!)")),
    (("dmsetup", "table", "--concise"), frozenset(), re.compile(r"(?!)")),
    (("udevadm", "info", "--export-db"), frozenset(), re.compile(r"(?!)")),
    (("systemd-detect-virt",), frozenset(), re.compile(r"(?!)")),
    (
        ("systemctl", "show"),
        frozenset({"--property=LoadState,ActiveState,UnitFileState"}),
        re.compile(r"[a-z-]+\.service"),
    ),
    (("systemctl", "list-units"), frozenset({"--type=timer", "--plain", "--no-legend"}), re.compile(r"\*scrub\*")),
    (("dmesg", "-k"), frozenset(), re.compile(r"(?!)")),
    (("dmidecode", "-t", "memory"), frozenset(), re.compile(r"(?!)")),
)


class Host(Protocol):
    """Gives an answer, or what runs until there is one (:func:`auditor.host.running.result` waits for it).

    now: seconds since the epoch; euid: who asks (0 is root).
    """

    now: float
    euid: int

    def run(self, request: Run) -> Capture | Running[Capture]:
        """Run a command. Never raises for what the command does."""

    def read(self, request: Read) -> Files | Running[Files]:
        """Read all files that the patterns name. Never raises for what the files do."""

    def realpath(self, path: str) -> str:
        """The path without symbolic links; raises FileNotFoundError when it does not exist."""


def permitted(argv: tuple[str, ...]) -> bool:
    """Whether a command is one of those that only read. ``hdparm -W0`` or ``nvme set-feature`` are not."""
    if argv[:1] == (sql.NAME,):
        return len(argv) == 3 and argv[1] in sql.DRIVERS and not sql.fault(argv[1], argv[2])
    if argv[:3] == ("python3", "-I", "-c"):
        return argv[3:4] == (lzc.script(),)
    for words, options, others in READ_ONLY:
        if argv[: len(words)] == words:
            return all(each in options or others.fullmatch(each) for each in argv[len(words) :])
    return False


class LiveHost:
    """This machine."""

    def __init__(self, timeout_s: float) -> None:
        self.now = time.time()
        self.euid = os.geteuid()
        self._timeout_s = timeout_s
        self._lane = Lane()
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:  # inherited: every command would seem to end with 0
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def run(self, request: Run) -> Capture | Running[Capture]:
        argv = request.argv
        if not permitted(argv):
            raise PermissionError(f"zaudit does not run this: {' '.join(argv)}")
        if (inside := _in_process(argv)) is not None:
            return self._lane.call(partial(_called, inside), self._timeout_s, _fault)
        more = {}
        if argv[0] == sql.NAME:
            argv = ("python3", "-I", "-c", sql.script(), *argv[1:])
            more = {name: value for name, value in os.environ.items() if name in sql.VARIABLES or name.startswith("PG")}
        places = (f"{where}/{name}" for name in (argv[0], *request.also) for where in PATH)
        tool = next((path for path in places if os.access(path, os.X_OK)), None)
        if tool is None:
            return Capture(None, fault="not installed")
        running = spawn((tool, *argv[1:]), self._timeout_s, more)
        return Then(running, partial(_kept, request.keep)) if request.keep and isinstance(running, Running) else running

    def read(self, request: Read) -> Files | Running[Files]:
        if not all(pattern.startswith(ROOTS) and ".." not in pattern.split("/") for pattern in request.patterns):
            raise PermissionError(f"zaudit does not read this: {request.patterns}")
        return self._lane.call(partial(read_files, request.patterns), self._timeout_s, partial(_none, request))

    def realpath(self, path: str) -> str:
        return os.path.realpath(path, strict=True)


def _fault(reason: str) -> Capture:
    return Capture(None, fault=reason)


def _none(request: Read, reason: str) -> Files:
    return Files({}, errors=dict.fromkeys(request.patterns, reason))


def spawn(argv: tuple[str, ...], timeout_s: float, more: Mapping[str, str] = NOTHING) -> Capture | Running[Capture]:
    """Start a command by its path. more: of the environment."""
    try:
        return Process(argv, timeout_s, {**ENVIRONMENT, **more})
    except OSError as error:
        return Capture(None, fault=f"cannot be started: {error.strerror}")
    except ValueError as error:  # a NUL byte or a lone surrogate in an argument
        return Capture(None, fault=f"cannot be started: {error}")


def _kept(pattern: str, capture: Capture) -> Capture:
    """Of its output the lines in which the pattern is found."""
    wanted = re.compile(pattern.encode())
    *lines, last = capture.stdout.split(b"\n")
    kept = [line + b"\n" for line in lines if wanted.search(line)]
    return capture._replace(stdout=b"".join([*kept, last if wanted.search(last) else b""]))


def _in_process(argv: tuple[str, ...]) -> Callable[[], str] | None:
    """The questions that a library on this host answers as well as a command does: udev's database through pyudev, the
    channel program through libzfs_core, settings of a database through its driver. None where the library is missing:
    then the command runs."""
    if argv == udev_db.ARGV and (udev := udev_db.context()):
        return partial(udev_db.export, udev)
    if argv[0] == "python3" and lzc.importable():
        return partial(lzc.read, argv[4], argv[5], list(argv[6:]))
    if argv[0] == sql.NAME and sql.importable(argv[1]):
        return partial(sql.answer, argv[1], argv[2])
    return None


def _called(call: Callable[[], str]) -> Capture:
    """The answer of a library as a capture; what it raises is its standard error."""
    started = time.monotonic()
    try:
        answer = call()
    except Exception as error:  # a library may raise anything; the capture says what
        return Capture(1, b"", f"{type(error).__name__}: {error}".encode(), time.monotonic() - started)
    return Capture(0, answer.encode("utf-8", "surrogateescape"), b"", time.monotonic() - started)
