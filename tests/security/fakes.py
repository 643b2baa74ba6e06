"""Processes of a hostile user that take a database server's name, for tests."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

USER = 65534  # who has no right here that everybody has not
_SCRIPT = """
import ctypes, mmap, os, struct, sys, threading, time  # as root: the user may not read where this Python lies
libc = ctypes.CDLL(None, use_errno=True)
def must(result):
    if result < 0:
        print(os.strerror(ctypes.get_errno()), flush=True)
        sys.exit(1)
    return result
before, after, name, user = sys.argv[1:5]
exec(before)
user = int(user)
os.setgroups([])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
libc.prctl(4, 1, 0, 0, 0)
exec(after)
libc.prctl(15, name.encode(), 0, 0, 0)
print("ready", flush=True)
time.sleep(120)
"""


class Refused(Exception):
    """The machine does not allow what a process was to do; the text says what."""


@contextlib.contextmanager
def server(*arguments: str, name: str = "mongod", user: int = USER, before: str = "", after: str = "") -> Iterator[int]:
    """The number of a process that calls itself so. before, after: Python that it executes as root, and as the user. Raises
    Refused."""
    with tempfile.TemporaryDirectory(dir="/tmp") as above:
        program = Path(above, name)  # what its command line begins with
        program.symlink_to(Path(sys.executable).resolve())
        with started([str(program), "-I", "-S", "-c", _SCRIPT, before, after, name, str(user), *arguments]) as number:
            yield number


@contextlib.contextmanager
def started(words: list[str], **how: object) -> Iterator[int]:
    """A process that says when it is ready, and its end."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd="/", **how)  # type: ignore[call-overload]
    assert process.stdout is not None
    try:
        said = process.stdout.readline().decode().strip()
        if said != "ready":
            raise Refused(said or "it ended")
        yield int(process.pid)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextlib.contextmanager
def folder(user: int = USER) -> Iterator[Path]:
    """A folder of this user below one that all may enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as above:
        os.chmod(above, 0o755)
        place = Path(above, "his")
        place.mkdir()
        os.chown(place, user, user)
        yield place
