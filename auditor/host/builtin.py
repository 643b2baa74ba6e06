"""What zaudit asks without a program of that name: libzfs_core, the database of udev, and the kernel's log."""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import stat
import time
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from auditor.host.children.reader import Closing
from auditor.host.process import Output
from auditor.host.request import Capture

# C libraries by their sonames. ``ctypes.util.find_library`` would start /sbin/ldconfig, and gcc and ld of the caller's
# PATH; pyudev and psycopg call it, and pyzfs through cffi. The replacement starts nothing and knows these libraries alone.


def by_soname() -> None:
    """Replace ``ctypes.util.find_library`` in this process. Uses nothing of this module: it runs in a script, too."""
    import ctypes
    import ctypes.util

    known = {
        "c": ("libc.so.6",),
        "nvpair": ("libnvpair.so.3", "libnvpair.so.1"),  # of OpenZFS 2.0 and later, and of 0.8
        "pq": ("libpq.so.5",),
        "udev": ("libudev.so.1",),
        "zfs_core": ("libzfs_core.so.3", "libzfs_core.so.1"),
    }

    def find_library(name: str) -> str | None:
        for soname in known.get(name, ()):
            try:
                ctypes.CDLL(soname)
            except OSError:
                continue
            return soname
        return None

    ctypes.util.find_library = find_library


def script(text: str) -> str:
    """A script for ``python3 -I -c`` in which it is replaced; its first line is that of ``__future__``."""
    first, _, rest = text.partition("\n")
    return f"{first}\n{inspect.getsource(by_soname)}by_soname()\n{rest}"


# All properties of a dataset subtree in one transaction group, by a read-only ZFS channel program through libzfs_core.
#
# ``zfs get -r`` reads one dataset after the other: a ``zfs set`` or a rename in between shows half. During a channel
# program nothing can change. It needs root and pyzfs (Debian: python3-pyzfs), mostly of the system's Python, and may hang
# in the kernel: so it runs as :func:`script` by ``python3 -I -c``, with this Python where it has pyzfs. Its name stands for
# it in questions and recordings.
#
# It has no ``mounted`` (refused by prop_valid_for_ds) and no ``encryption`` (get_special_prop has no case for it: it would
# come out as the default, "off"). (man 8 zfs-program; OpenZFS module/zfs/zcp_get.c)

LZC_NAME = "lzc"  # argv: (NAME, pool, dataset, property...); no program of that name is started
LZC_CANNOT_SAY = frozenset({"mounted", "encryption"})

# argv[1]: the dataset at the top; argv[2..]: properties. Answers name -> the lines that ``zfs get -Hp`` would print. A
# number below 0 is one above 2^63 (Lua has int64 only); a property that does not apply gives nothing: both become "-". A value
# with a newline, which may look like the lines of another dataset, has no line. The setting dataset's name is the source;
# received values on the spot say "$recvd".
LZC_PROGRAM = r"""
local args = ...
local argv = args["argv"]
local answer = {}
local todo = {argv[1]}
while #todo > 0 do
  local name = table.remove(todo)
  local lines = {}
  for i = 2, #argv do
    local value, source = zfs.get_prop(name, argv[i])
    if value == nil or (type(value) == "number" and value < 0) then
      value, source = "-", "-"
    elseif source == nil then
      source = "-"
    elseif source == name then
      source = "local"
    elseif source == "$recvd" then
      source = "received"
    elseif source ~= "default" and source ~= "temporary" then
      source = "inherited from " .. source
    end
    value = tostring(value)
    if not string.find(value, "\n", 1, true) then
      lines[#lines + 1] = name .. "\t" .. argv[i] .. "\t" .. value .. "\t" .. source .. "\n"
    end
  end
  answer[name] = table.concat(lines)
  for child in zfs.list.children(name) do
    todo[#todo + 1] = child
  end
end
return answer
"""


def read_properties(pool: str, root: str, properties: list[str]) -> str:
    """The text of ``zfs get -Hp -r -o name,property,value,source`` for root and all below it, in order of name. Raises what
    libzfs_core raises (no such pool, not root, out of memory: the program may use 64 MiB and the most instructions that the
    kernel grants) and ValueError for a pool whose name would make the answer ambiguous."""
    import libzfs_core

    if pool in ("default", "temporary", "$recvd"):
        raise ValueError("the pool is named like a source of properties: " + pool)
    answer = libzfs_core.lzc_channel_program_nosync(
        pool.encode(),
        LZC_PROGRAM.encode(),
        instrlimit=100 * 1000 * 1000,
        memlimit=64 << 20,
        params=[word.encode("utf-8", "surrogateescape") for word in [root, *properties]],
    )
    return b"".join(answer[name] for name in sorted(answer)).decode("utf-8", "surrogateescape")


def lzc_importable() -> bool:
    """Whether this Python has pyzfs."""
    return importlib.util.find_spec("libzfs_core") is not None


@cache
def lzc_script() -> str:
    """For ``python3 -I -c SCRIPT POOL ROOT PROPERTY...``."""
    import inspect

    return f"""from __future__ import annotations
import sys
LZC_PROGRAM = {LZC_PROGRAM!r}
{inspect.getsource(read_properties)}
try:
    text = read_properties(sys.argv[1], sys.argv[2], sys.argv[3:])
except Exception as error:
    sys.exit(type(error).__name__ + ": " + str(error))
sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
"""


# udev's database of block devices through pyudev, in the form of ``udevadm info --export-db``: one parser, one recording.

UDEV_ARGV = ("udevadm", "info", "--export-db")


def udev_context() -> Any | None:
    """pyudev's Context, or None where pyudev or libudev is missing (pyudev needs libudev.so.1 of the host)."""
    try:
        return import_module("pyudev").Context()
    except Exception:  # ImportError, or whatever ctypes raises for a missing or foreign libudev
        return None


def export_udev(udev: Any) -> str:
    """``P: path``, ``N: name``, ``S: link`` and ``E: KEY=value`` lines of every block device, a blank line after each."""
    records = []
    for device in udev.list_devices(subsystem="block"):
        lines = [f"P: {device.device_path}", f"N: {device.sys_name.replace('!', '/')}"]
        lines += [f"S: {name.removeprefix('/dev/')}" for name in sorted(device.device_links)]
        lines += [f"E: {key}={value}" for key, value in sorted(device.properties.items())]
        records.append("\n".join(lines))
    return "\n\n".join(sorted(records)) + "\n\n"


# The kernel's log from /dev/kmsg, one record at a time. A question has a name and asks for the whole log;
# :mod:`auditor.verify.trial` reads what comes during a run.
#
# Any local user can put whole lines into the text of a record: the kernel logs an unknown mount option with its newlines.
# syslog(2) gives each line its own time stamp, as if the kernel had said it, and so does dmesg without /dev/kmsg. Here one
# read() returns one record, "priority,number,microseconds,flags;text", and a newline is "\x0a": only the text before it
# counts. No program can write a record of the kernel's facility.
#
# The first record has the number 0 and no number is left out, also after dmesg --clear. Records that were dropped before
# they could be read are an error (EPIPE): "nothing was logged" is seen, not assumed. (Linux
# Documentation/ABI/testing/dev-kmsg; kernel/printk/printk.c devkmsg_read, devkmsg_write)

KMSG = "kmsg"  # argv: (KMSG, what is looked for); no program of that name is started
KMSG_PATH = "/dev/kmsg"
KMSG_NUMBER = (1, 11)  # Documentation/admin-guide/devices.txt; a container may have a terminal of that name
RECORD_BYTES = 8192  # CONSOLE_EXT_LOG_MAX: the longest record, and the shortest buffer that always holds one
MOST_RECORDS = 1_000_000  # that are read: somebody may write faster than they are
FACILITY_OF_KERNEL = 8  # a priority below it is of the kernel itself, not of a program that writes to the log
LOST = ", some lost"
_RECORD = re.compile(rb"(\d{1,9}),(\d{1,20}),(\d{1,20}),[^;\n]*;([^\n]*)")
_NEWLINE = rb"\x0a"
# a backslash and what is no ASCII; control characters stay as they are
_ESCAPED = re.compile(rb"\\x(5c|[89a-f][0-9a-f])")


class Record(NamedTuple):
    """number: of all records since the start. us: microseconds since the start. text: the first line."""

    number: int
    us: int
    text: bytes


def open_kmsg() -> int:
    """A descriptor at the oldest record. Raises OSError, also where it is something else: judged before it is opened."""
    with Closing(os.open(KMSG_PATH, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)) as node:
        seen = os.fstat(node)
        if not stat.S_ISCHR(seen.st_mode) or (os.major(seen.st_rdev), os.minor(seen.st_rdev)) != KMSG_NUMBER:
            raise OSError(0, "it is not the kernel's log")
        return os.open(f"/proc/self/fd/{node}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)


def kmsg_records(log: int) -> Iterator[Record | None]:
    """All records from the descriptor's position to the end; those of programs without text. None stands for records that
    were dropped, one that is not understood, and the rest of too many. Raises OSError."""
    for _ in range(MOST_RECORDS):
        try:
            data = os.read(log, RECORD_BYTES)
        except BlockingIOError:
            return
        except BrokenPipeError:
            yield None
            continue
        if not (found := _RECORD.match(data)):
            yield None
            continue
        text = first_line(found[4]) if int(found[1]) < FACILITY_OF_KERNEL else b""
        yield Record(int(found[2]), int(found[3]), text)
    yield None


def first_line(text: bytes) -> bytes:
    """Of the text of a record, where the kernel has escaped all that is not printable ASCII."""
    return _ESCAPED.sub(lambda byte: bytes.fromhex(byte[1].decode()), text.partition(_NEWLINE)[0])


def kmsg_answer(output: Output) -> Capture:
    """The lines that output keeps, as dmesg prints them, after one that says which records were read. Never raises."""
    began = time.monotonic()
    first = last = -1
    lost = ""
    try:
        with Closing(open_kmsg()) as log:
            for record in kmsg_records(log):
                if record is None:
                    lost = LOST
                    continue
                first, last = record.number if first < 0 else first, record.number
                line = b"[%5d.%06d] %b\n" % (*divmod(record.us, 1_000_000), record.text)
                if record.text and (fault := output.take(output.out, line)):
                    return Capture(None, fault=fault, seconds=time.monotonic() - began)
    except OSError as error:
        return Capture(1, b"", f"{error.strerror or error}".lower().encode(), time.monotonic() - began)
    if first < 0:
        return Capture(1, b"", b"it holds no record", time.monotonic() - began)
    text = f"records {first} to {last}{lost}\n".encode() + output.streams(whole=True)[0]
    return Capture(0, text, b"", time.monotonic() - began)
