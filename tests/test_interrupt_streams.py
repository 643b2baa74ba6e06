"""Standard streams that are closed, full or read by nobody, and Ctrl-C before anything runs: the exit code says what it is."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
import time

import pytest

from auditor import interrupt
from tests.golden import CANONICAL, HOSTS
from tests.shared import ROOT, briefly

CHECK = f"check --replay {shlex.quote(str(HOSTS / CANONICAL))}"
COMPLAINT = "zaudit: standard output: No space left on device\n"


def shell(words: str, unbuffered: str = "") -> tuple[int, str]:
    """(exit code, what reached standard error). Nobody reads the standard output."""
    line = f"{shlex.quote(sys.executable)} -m auditor {words}"
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as unread:
        done = subprocess.run(
            ["bash", "-c", line],
            stdout=unread,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": unbuffered},
            check=False,
        )
    return done.returncode, done.stderr.decode()


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", briefly([("",), ("1",)], quick=1))
@pytest.mark.parametrize(
    ("words", "code", "says"),
    briefly(
        [
            (f"{CHECK} >&-", 14, ""),
            (f"{CHECK} 2>&- >/dev/null", 14, ""),
            (f"{CHECK} <&- >&- 2>&-", 14, ""),
            (f"{CHECK} >/dev/full", 1, COMPLAINT),
            (f"{CHECK} -o /dev/null 2>/dev/full", 14, ""),
            ("rules >&-", 0, ""),
            ("rules >/dev/full 2>/dev/full", 1, ""),
            ("check --replay nowhere 2>/dev/full", 2, ""),
            ("check --replay nowhere 2>&-", 2, ""),
            ("nonsense 2>/dev/full", 2, ""),
            ("--version >&-", 0, ""),
            ("--version >/dev/full", 1, COMPLAINT),
            ("--version", 1, ""),
            ("rules", 1, ""),
        ],
        quick=4,
    ),
)
def test_streams(words: str, code: int, says: str, unbuffered: str) -> None:
    assert shell(words, unbuffered) == (code, says)


@pytest.mark.parametrize("module", ["click", "auditor.cli", "auditor.commands.reference"])
def test_an_interrupt_while_zaudit_starts(module: str) -> None:
    script = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "sys.argv = ['zaudit', 'rules']\n"
        "from auditor.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, b"", b"")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", seen := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    show = interrupt.progress()
    assert show
    show(1, 2, "zpool status \x1b[31m" + "x" * 80, 0.0)
    written = seen.getvalue()
    assert written.startswith("\r\x1b[K1/2 zpool status ")
    assert "\x1b[31m" not in written
    assert len(written) < 90
    show(2, 2, "", 0.0)
    assert seen.getvalue().endswith("\r\x1b[K")
    monkeypatch.setenv("TERM", "dumb")
    assert interrupt.progress() is None
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setenv("TERM", "xterm")
    assert interrupt.progress() is None


def test_seconds_are_counted_where_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", seen := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    show = interrupt.progress(900.0)
    assert show
    monkeypatch.setattr(time, "monotonic", lambda: 148.2)
    show(1, 96, "properties of 2,000 datasets of tank (zfs get)", 0.4)
    show(1, 96, "properties of 2,000 datasets of tank (zfs get)", 48.2)
    before = seen.getvalue()
    show(1, 96, "properties of 2,000 datasets of tank (zfs get)", 48.3)  # nothing is written where nothing has changed
    assert seen.getvalue() == before
    assert before.split("\r\x1b[K")[1:] == [
        "1/96 properties of 2,000 datasets of tank (zfs get)",
        "1/96 properties of 2,000 datasets of tank (zfs get), 48 s, at most 852 s more",
    ]
    show(1, 96, "x" * 200, 50.0)
    assert seen.getvalue().endswith("xxx..., 50 s, at most 852 s more")
    assert len(seen.getvalue().rpartition("\x1b[K")[2]) == 79


def test_without_a_deadline_nothing_is_said_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", seen := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    show = interrupt.progress()
    assert show
    show(1, 2, "names of the datasets of tank (zfs list)", 7.0)
    assert seen.getvalue().endswith("1/2 names of the datasets of tank (zfs list), 7 s")
