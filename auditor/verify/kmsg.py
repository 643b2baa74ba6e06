"""What the kernel logged while something ran: the records that came after the last one there was.

A reader of its own keeps its place, and is told when records were dropped before it saw them, so that "nothing was logged" is
seen and not assumed, also where the beginning of the log is gone.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator

from auditor.host import kmsg
from auditor.sources.kernel_log import KEEP
from auditor.verify.trial import Logged

KEPT = 1000  # lines
_KEPT = re.compile(KEEP)


@contextlib.contextmanager
def listening() -> Iterator[Callable[[], Logged]]:
    """Gives a function that returns what was logged since it began, of what concerns disks and pools."""
    try:
        log = kmsg.opened()
    except OSError as error:
        missing = _unread(error)
        yield lambda: Logged((), missing)
        return
    try:
        os.lseek(log, 0, os.SEEK_END)
        yield lambda: _read(log)
    finally:
        os.close(log)


def _read(log: int) -> Logged:
    lines: list[str] = []
    missing = ""
    try:
        for record in kmsg.records(log):
            if record is None:
                missing = "the kernel logged more than it keeps, and dropped a part before it could be read"
            elif _KEPT.search(line := record.text.decode("utf-8", "replace")):
                if len(lines) == KEPT:
                    return Logged(tuple(lines), f"the kernel logged more than {KEPT} lines of disks and pools")
                lines.append(line)
    except OSError as error:
        missing = _unread(error)
    return Logged(tuple(lines), missing)


def _unread(error: OSError) -> str:
    return f"the kernel's log could not be read: {kmsg.PATH}: {(error.strerror or 'no').lower()}"
