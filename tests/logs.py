"""A kernel's log that does as it is told: what each read() of /dev/kmsg gives."""

from __future__ import annotations

import errno
import os

import pytest

from auditor.host import builtin


def record(text: str, number: int = 339, *, priority: int = 3, us: int = 0, flags: str = "-") -> bytes:
    """As the kernel prints one, with what it knows of the device."""
    return f"{priority},{number},{us},{flags};{text}\n SUBSYSTEM=block\n DEVICE=b259:2\n".encode()


def replay(patch: pytest.MonkeyPatch, said: list[bytes | OSError]) -> None:
    """From now on the log gives this, once it was opened; then there is no more."""
    real = os.read

    def read(file: int, most: int) -> bytes:
        if most != builtin.RECORD_BYTES:
            return real(file, most)
        answer = said.pop(0) if said else BlockingIOError(errno.EAGAIN, "no more")
        if isinstance(answer, OSError):
            raise answer
        return answer

    patch.setattr(builtin, "open_kmsg", lambda: os.open(os.devnull, os.O_RDONLY))
    patch.setattr(os, "read", read)
