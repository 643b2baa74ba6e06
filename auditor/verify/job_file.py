"""Reads the job file that a user names: once, from what was opened, and only when it is a plain file of at most a fixed
size."""

from __future__ import annotations

import os
import stat
from errno import EFBIG, EINVAL

MOST = 1 << 20  # bytes; fio's own job files have a few thousand


def read(path: str) -> str:
    """Its text. Raises OSError or UnicodeDecodeError. A device, FIFO or socket is only looked at (open(2), O_PATH)."""
    node = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(node).st_mode):
            raise OSError(EINVAL, "it is no regular file", path)
        with open(f"/proc/self/fd/{node}", "rb") as file:
            said = file.read(MOST + 1)
    finally:
        os.close(node)
    if len(said) > MOST:
        raise OSError(EFBIG, f"it is longer than {MOST >> 20} MiB", path)
    return said.decode("utf-8")
