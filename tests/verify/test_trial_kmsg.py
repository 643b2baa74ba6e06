"""What the kernel logs while something runs: read from the real log, and from one that does as it is told."""

from __future__ import annotations

import errno
import os

import pytest

from auditor.host import builtin
from auditor.verify import trial
from auditor.verify.trial import KernelLines
from tests.logs import record, replay

ERROR = "I/O error, dev nvme2n1, sector 0 op 0x1:(WRITE) flags 0x800 phys_seg 0 prio class 0"


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[bytes | OSError]:
    said: list[bytes | OSError] = []
    replay(monkeypatch, said)
    return said


def heard() -> KernelLines:
    with trial.listening() as logged:
        return logged()


def test_lines_of_disks_and_pools_are_kept(log: list[bytes | OSError]) -> None:
    log += [
        record("usb 1-1: new device"),
        record(ERROR),
        record("nvme nvme2: controller is down; will reset: CSTS=0x1"),
    ]
    assert heard() == KernelLines((ERROR, "nvme nvme2: controller is down; will reset: CSTS=0x1"), "")


def test_a_program_cannot_speak_for_the_kernel(log: list[bytes | OSError]) -> None:
    log += [record(ERROR, priority=8 + 3), record(f"x\\x0a{ERROR}"), record(f"x\n{ERROR}")]
    assert heard() == KernelLines((), "")


def test_what_is_no_record_was_not_understood(log: list[bytes | OSError]) -> None:
    for each in (b"3,1,2,-", b"\xff\xfe;", f"99999999999,1,2,-;{ERROR}".encode()):
        log.append(each)
        lines, missing = heard()
        assert lines == ()
        assert missing


def test_what_was_dropped_is_not_nothing(log: list[bytes | OSError]) -> None:
    log += [BrokenPipeError(errno.EPIPE, "dropped"), record(ERROR)]
    lines, missing = heard()
    assert lines == (ERROR,)
    assert "dropped a part" in missing


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_a_log_that_stops_to_answer(log: list[bytes | OSError], number: int) -> None:
    log += [record(ERROR), OSError(number, "no")]
    assert heard() == KernelLines((ERROR,), "the kernel's log could not be read: /dev/kmsg: no")


def test_a_flood_ends(log: list[bytes | OSError], monkeypatch: pytest.MonkeyPatch) -> None:
    log += [record(ERROR)] * (trial.KEPT + 1)
    assert heard() == KernelLines((ERROR,) * trial.KEPT, "the kernel logged more than 1000 lines of disks and pools")
    monkeypatch.setattr(builtin, "MOST_RECORDS", 3)
    log[:] = [record("usb 1-1: new device")] * 4
    assert "dropped a part" in heard().missing


def test_what_cannot_be_opened_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "KMSG_PATH", "/nowhere")
    assert heard() == KernelLines((), "the kernel's log could not be read: /nowhere: no such file or directory")


@pytest.mark.skipif(not os.access(builtin.KMSG_PATH, os.R_OK), reason="the kernel's log cannot be read here")
def test_the_log_of_this_kernel() -> None:
    """It has an end, and what was there before is not read."""
    lines, missing = heard()
    if missing.endswith("not permitted"):
        pytest.skip("the kernel's log cannot be read by this user (kernel.dmesg_restrict)")
    assert missing == ""
    assert not any("Linux version" in line for line in lines)
