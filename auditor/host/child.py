"""Python programs that zaudit starts as processes of their own: how one begins, and how it ends.

Each is an ordinary file in ``children/``, whose text is what runs: a bare Python without site packages, the caller's PATH or
environment, in a session of its own, from /.
"""

from __future__ import annotations

import os
import pkgutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from auditor.host.request import AFTER_KILL_S

ENVIRONMENT = {"LC_ALL": "C"}
PIPE = 1 << 16  # what a pipe holds


def source(name: str) -> str:
    """The text of a program of ``children/``."""
    text = pkgutil.get_data(f"{__package__}.children", f"{name}.py")
    assert text
    return text.decode()


def start(
    code: str, words: Sequence[str], stdin: int = subprocess.DEVNULL, passed: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start it; its standard output is a pipe. passed: descriptors that it has, too. Raises OSError."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, *words],
        bufsize=0, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT, cwd="/",
        start_new_session=True, pass_fds=passed,
    )  # fmt: skip


def end(child: subprocess.Popen[bytes], *, kill: bool) -> None:
    """See that it ends. It is not waited for longer than a moment."""
    if kill:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    try:
        child.wait(AFTER_KILL_S)
    except subprocess.TimeoutExpired:
        child.returncode = -signal.SIGKILL  # a file system holds it: nobody waits for it


def runs(child: subprocess.Popen[bytes]) -> bool:
    """Whether it would go on if it had a processor."""
    with suppress(OSError), open(f"/proc/{child.pid}/stat", "rb") as file:
        return file.read().rpartition(b") ")[2].startswith(b"R")
    return False
