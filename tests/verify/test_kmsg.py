"""What the kernel logs while something runs: read from the real log, and from one that does as it is told."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from auditor.verify import kmsg
from auditor.verify.trial import Logged

ERROR = "I/O error, dev nvme2n1, sector 0 op 0x1:(WRITE) flags 0x800 phys_seg 0 prio class 0"


def record(text: str, priority: int = 3, flags: str = "-") -> bytes:
    return f"{priority},339,5140900,{flags};{text}\n SUBSYSTEM=block\n DEVICE=b259:2\n".encode()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[bytes | OSError]:
    """What each read() of it gives, once it was opened; then there is no more."""
    said: list[bytes | OSError] = []
    real = os.read

    def read(file: int, most: int) -> bytes:
        if most != kmsg.RECORD:
            return real(file, most)
        answer = said.pop(0) if said else BlockingIOError(errno.EAGAIN, "no more")
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(kmsg, "_opened", lambda: os.open(os.devnull, os.O_RDONLY))
    monkeypatch.setattr(os, "read", read)
    return said


def heard() -> Logged:
    with kmsg.listening() as logged:
        return logged()


def test_lines_of_disks_and_pools_are_kept(log: list[bytes | OSError]) -> None:
    log += [
        record("usb 1-1: new device"),
        record(ERROR),
        record("nvme nvme2: controller is down; will reset: CSTS=0x1"),
    ]
    assert heard() == Logged((ERROR, "nvme nvme2: controller is down; will reset: CSTS=0x1"), "")


def test_a_program_cannot_speak_for_the_kernel(log: list[bytes | OSError]) -> None:
    log += [record(ERROR, priority=8 + 3), record(f"x\n{ERROR}"), b"3,1,2,-", b"\xff\xfe;"]
    log.append(f"99999999999,1,2,-;{ERROR}".encode())
    assert heard() == Logged((), "")


def test_what_was_dropped_is_not_nothing(log: list[bytes | OSError]) -> None:
    log += [BrokenPipeError(errno.EPIPE, "dropped"), record(ERROR)]
    lines, missing = heard()
    assert lines == (ERROR,)
    assert "dropped a part" in missing


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_a_log_that_stops_to_answer(log: list[bytes | OSError], number: int) -> None:
    log += [record(ERROR), OSError(number, "no")]
    assert heard() == Logged((ERROR,), "the kernel's log could not be read: /dev/kmsg: no")


def test_a_flood_ends(log: list[bytes | OSError], monkeypatch: pytest.MonkeyPatch) -> None:
    log += [record(ERROR)] * (kmsg.KEPT + 1)
    assert heard() == Logged((ERROR,) * kmsg.KEPT, "the kernel logged more than 1000 lines of disks and pools")
    monkeypatch.setattr(kmsg, "MOST", 3)
    log[:] = [record("usb 1-1: new device")] * 4
    assert heard() == Logged((), "the kernel logged more than 3 lines")


def fifo(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (fifo, "it is not the kernel's log"),
        (Path.touch, "it is not the kernel's log"),
        (lambda path: path.symlink_to("/dev/kmsg"), "too many levels of symbolic links"),
        (lambda path: None, "no such file or directory"),
    ],
    ids=["fifo", "file", "link", "none"],
)
def test_nothing_else_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], says: str
) -> None:
    make(tmp_path / "kmsg")
    monkeypatch.setattr(kmsg, "PATH", str(tmp_path / "kmsg"))
    assert heard() == Logged((), f"the kernel's log could not be read: {tmp_path / 'kmsg'}: {says}")


@pytest.mark.skipif(not os.access(kmsg.PATH, os.R_OK), reason="the kernel's log cannot be read here")
def test_the_log_of_this_kernel() -> None:
    """It has an end, and what was there before is not read."""
    lines, missing = heard()
    assert missing == ""
    assert not any("Linux version" in line for line in lines)
