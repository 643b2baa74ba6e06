"""What strace saw of fio on the files of the run: ``strace -f -y -e trace=...``, one call a line.

A call that another thread interrupts is printed in two pieces, ``<unfinished ...>`` and ``<... fsync resumed>``; the first
piece names the file. (strace(1))
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from auditor.verify.result import Syscalls

CALLS = (
    "open",
    "openat",
    "write",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "writev",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "msync",
)
LINE = re.compile(r"^(?:\[pid +(\d+)\] |(\d+) +)?(\w+)\((.*)$")
RESUMED = re.compile(r"^(?:\[pid +(\d+)\] |(\d+) +)?<\.\.\. \w+ resumed>(.*)$")
DESCRIPTOR = re.compile(r"^\d+<([^>]*)>")  # strace prints a > in a path as \76
AT = re.compile(r"^AT_FDCWD(?:<[^>]*>)?, ")  # the directory may hold quotation marks
PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
FLAGS = ("O_DSYNC", "O_SYNC", "O_DIRECT")
FAILED = re.compile(r"\) += -1 E[A-Z0-9]++ \([^()]*+\)$")


def parse(text: str, marks: Iterable[str]) -> Syscalls:
    """Counts of the calls that did not fail, on files whose path holds one of the marks. Raises ValueError when no call was
    traced at all."""
    wanted = tuple(marks)
    counts = {"write": 0, "fsync": 0, "fdatasync": 0}
    opened: list[tuple[str, ...]] = []
    begun: dict[str, tuple[str, str]] = {}
    seen = False
    for line in text.splitlines():
        if found := RESUMED.match(line):
            call, rest = begun.pop(found[1] or found[2] or "", ("", ""))
            rest += found[3]
        elif found := LINE.match(line):
            seen = True
            call, rest = found[3], found[4]
            if "<unfinished ...>" in rest:  # how it ends stands on another line; some never do
                begun[found[1] or found[2] or ""] = call, rest
                continue
        else:
            continue
        if call in ("open", "openat"):
            path = PATH.match(AT.sub("", rest))
            if path and any(mark in path[1] for mark in wanted) and not FAILED.search(rest) and "O_RDONLY" not in rest:
                opened.append(tuple(flag for flag in FLAGS if re.search(rf"\b{flag}\b", rest)))
            continue
        descriptor = DESCRIPTOR.match(rest)
        if descriptor is None or not any(mark in descriptor[1] for mark in wanted) or FAILED.search(rest):
            continue
        kind = call if call in ("fsync", "fdatasync") else "write" if "write" in call else ""
        if kind:
            counts[kind] += 1
    if not seen:
        raise ValueError(f"strace traced no call: {' '.join(text.split())[:120] or 'it printed nothing'}")
    return Syscalls(counts["write"], counts["fsync"], counts["fdatasync"], tuple(opened))
