"""The kernel's log from /dev/kmsg, one record at a time. A question has a name and asks for the whole log;
:mod:`auditor.verify.trial` reads what comes while something runs.

Any local user can put whole lines into the text of a record: the kernel logs a mount option that it does not know, with the
newlines in it. syslog(2) gives each of those lines a time stamp of its own, as if the kernel had said it, and so does dmesg
without /dev/kmsg. Here one read() returns one record, "priority,number,microseconds,flags;text", and a newline is "\\x0a": only
the text before it counts. No program can write a record of the kernel's facility.

The first record has the number 0 and no number is left out, also after dmesg --clear. Records that were dropped before they
could be read are an error (EPIPE): "nothing was logged" is seen, not assumed.
(Linux Documentation/ABI/testing/dev-kmsg; kernel/printk/printk.c devkmsg_read, devkmsg_write)
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

from auditor.host.process import Output
from auditor.host.request import Capture

NAME = "kmsg"  # argv: (NAME, what is looked for); no program of that name is started
PATH = "/dev/kmsg"
NUMBER = (1, 11)  # Documentation/admin-guide/devices.txt; a container may have a terminal of that name
RECORD = 8192  # CONSOLE_EXT_LOG_MAX: the longest record, and the shortest buffer that always holds one
MOST = 1_000_000  # records that are read: somebody may write faster than they are
KERNEL = 8  # a priority below it is of the kernel itself, not of a program that writes to the log
LOST = ", some lost"
_RECORD = re.compile(rb"(\d{1,9}),(\d{1,20}),(\d{1,20}),[^;\n]*;([^\n]*)")
_NEWLINE = rb"\x0a"
# a backslash and what is no ASCII; control characters stay as they are
_ESCAPED = re.compile(rb"\\x(5c|[89a-f][0-9a-f])")


class Record(NamedTuple):
    """number: counts all records since the start, also those of programs. us: microseconds since the start. text: the first
    line."""

    number: int
    us: int
    text: bytes


def opened() -> int:
    """A descriptor at the oldest record. Raises OSError, also where it is something else: judged before it is opened."""
    node = os.open(PATH, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        seen = os.fstat(node)
        if not stat.S_ISCHR(seen.st_mode) or (os.major(seen.st_rdev), os.minor(seen.st_rdev)) != NUMBER:
            raise OSError(0, "it is not the kernel's log")
        return os.open(f"/proc/self/fd/{node}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    finally:
        os.close(node)


def records(log: int) -> Iterator[Record | None]:
    """All records from the descriptor's position to the end; those of programs have no text. None stands for records that were
    dropped before they could be read, for one that is not understood, and for the rest of too many. Raises OSError."""
    for _ in range(MOST):
        try:
            data = os.read(log, RECORD)
        except BlockingIOError:
            return
        except BrokenPipeError:
            yield None
            continue
        if not (found := _RECORD.match(data)):
            yield None
            continue
        text = first_line(found[4]) if int(found[1]) < KERNEL else b""
        yield Record(int(found[2]), int(found[3]), text)
    yield None


def first_line(text: bytes) -> bytes:
    """Of the text of a record, where the kernel has escaped all that is not printable ASCII."""
    return _ESCAPED.sub(lambda byte: bytes.fromhex(byte[1].decode()), text.partition(_NEWLINE)[0])


def answer(output: Output) -> Capture:
    """The lines that output keeps, as dmesg prints them, after one that says which records were read. Never raises."""
    began = time.monotonic()
    first = last = -1
    lost = ""
    try:
        log = opened()
        try:
            for record in records(log):
                if record is None:
                    lost = LOST
                    continue
                first, last = record.number if first < 0 else first, record.number
                line = b"[%5d.%06d] %b\n" % (*divmod(record.us, 1_000_000), record.text)
                if record.text and (fault := output.take(output.out, line)):
                    return Capture(None, fault=fault, seconds=time.monotonic() - began)
        finally:
            os.close(log)
    except OSError as error:
        return Capture(1, b"", f"{error.strerror or error}".lower().encode(), time.monotonic() - began)
    if first < 0:
        return Capture(1, b"", b"it holds no record", time.monotonic() - began)
    text = f"records {first} to {last}{lost}\n".encode() + output.streams(whole=True)[0]
    return Capture(0, text, b"", time.monotonic() - began)
