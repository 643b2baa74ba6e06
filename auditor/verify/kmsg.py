"""What the kernel logged while something ran: the records of ``/dev/kmsg`` that came after the last one there was.

A reader of its own keeps its place, and is told when records were dropped before it saw them (EPIPE), so that "nothing was
logged" is seen and not assumed, also where the beginning of the log is gone or somebody clears it for dmesg. One read()
gives one record: "priority,number,time,flags;text". (Linux Documentation/ABI/testing/dev-kmsg)
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator

from auditor.collect.kernel_log import KEEP
from auditor.verify.trial import Logged

PATH = "/dev/kmsg"
NUMBER = (1, 11)  # Documentation/admin-guide/devices.txt; a container may have a terminal of that name
RECORD = 8192  # CONSOLE_EXT_LOG_MAX: the longest record, and the shortest buffer that always holds one
MOST, KEPT = 200_000, 1000  # records that are read, and lines that are kept
KERNEL = 8  # a priority below it is of the kernel itself, not of a program that writes to the log
_RECORD = re.compile(r"(\d{1,9}),[^;]*;(.*)", re.DOTALL)
_KEPT = re.compile(KEEP)


@contextlib.contextmanager
def listening() -> Iterator[Callable[[], Logged]]:
    """Gives a function that returns what was logged since it began, of what concerns disks and pools."""
    try:
        log = _opened()
    except OSError as error:
        missing = f"the kernel's log could not be read: {PATH}: {(error.strerror or 'no').lower()}"
        yield lambda: Logged((), missing)
        return
    try:
        yield lambda: _read(log)
    finally:
        os.close(log)


def _opened() -> int:
    log = os.open(PATH, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        seen = os.fstat(log)
        if not stat.S_ISCHR(seen.st_mode) or (os.major(seen.st_rdev), os.minor(seen.st_rdev)) != NUMBER:
            raise OSError(0, "it is not the kernel's log")
        os.lseek(log, 0, os.SEEK_END)
    except OSError:
        os.close(log)
        raise
    return log


def _read(log: int) -> Logged:
    lines: list[str] = []
    missing = ""
    for _ in range(MOST):
        try:
            record = os.read(log, RECORD)
        except BlockingIOError:
            return Logged(tuple(lines), missing)
        except BrokenPipeError:
            missing = "the kernel logged more than it keeps, and dropped a part before it could be read"
            continue
        except OSError as error:
            return Logged(tuple(lines), f"the kernel's log could not be read: {PATH}: {error.strerror}")
        if line := _line(record):
            if len(lines) == KEPT:
                return Logged(tuple(lines), f"the kernel logged more than {KEPT} lines of disks and pools")
            lines.append(line)
    return Logged(tuple(lines), f"the kernel logged more than {MOST:,} lines")


def _line(record: bytes) -> str:
    """Its text, where the kernel says something of a disk or a pool; else empty."""
    found = _RECORD.match(record.decode("utf-8", "replace").partition("\n")[0])
    return found[2] if found and int(found[1]) < KERNEL and _KEPT.search(found[2]) else ""
