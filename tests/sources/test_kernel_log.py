"""/dev/kmsg, record by record: from the real log, and from one that does as it is told."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from auditor.facts import HOST, Known
from auditor.gather.answer import answer_of
from auditor.host import builtin
from auditor.host.live import LiveHost, permitted
from auditor.host.process import Output, Total
from auditor.host.request import Capture, Run
from auditor.recording import recording
from auditor.recording.recording import Recording, RecordingHost, ReplayHost
from auditor.sources import kernel_log
from auditor.sources.source import Source
from tests import question
from tests.folded import for_each
from tests.logs import record, replay

ERROR = "I/O error, dev sda, sector 0 op 0x1:(WRITE) flags 0x800 phys_seg 0 prio class 0"
CACHE = "sd 0:0:0:0: [sda] Write cache: enabled, read cache: enabled, doesn't support DPO or FUA"
DISKS = question.run(kernel_log.log)
Log = list[bytes | OSError]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    said: Log = []
    replay(monkeypatch, said)
    return said


def answer(keep: str = "") -> Capture:
    return builtin.kmsg_answer(Output(keep, "", Total()))


def text(keep: str = "") -> list[str]:
    found = answer(keep)
    assert found.exit == 0
    return found.stdout.decode("utf-8", "surrogateescape").splitlines()


def test_each_record_is_a_line_below_the_numbers(log: Log) -> None:
    log += [record("Linux version 6.12.48 #1", 0), record(ERROR, 1, us=12_345_678), record("x", 2, priority=8 + 3)]
    assert text() == ["records 0 to 2", "[    0.000000] Linux version 6.12.48 #1", f"[   12.345678] {ERROR}"]
    log += [record("usb 1-1: new device", 0), record(ERROR, 1)]
    assert text(kernel_log.KEEP) == ["records 0 to 1", f"[    0.000000] {ERROR}"]


def test_of_a_record_the_first_line_counts(log: Log) -> None:
    """What a user calls an option of mount(2) is logged with its newlines, which the kernel escapes here."""
    log.append(record(f"tmpfs: Unknown parameter 'x\\x0a{ERROR}\\x0a{CACHE}\\x0ax'", 7, us=1_225_425_329))
    assert text() == ["records 7 to 7", "[ 1225.425329] tmpfs: Unknown parameter 'x"]
    log.append(record("Linux version 6.12.48 #1", 0) + f"\n{ERROR}\n SUBSYSTEM=block\n".encode())
    assert text() == ["records 0 to 0", "[    0.000000] Linux version 6.12.48 #1"]


@for_each(
    "case",
    [
        (r"a\x5cx0ab", r"a\x0ab"),  # a backslash of somebody's, and no newline
        (r"vdev=/dev/disk/by-partlabel/My\x5cx20Label", r"vdev=/dev/disk/by-partlabel/My\x20Label"),
        (r"a\x1b[31m\x07", r"a\x1b[31m\x07"),
        (r"\xc3\xa9 \xff", "\u00e9 \udcff"),
        (r"\x0a", ""),
        ("", ""),
    ],
)
def test_escapes(case: tuple[str, str]) -> None:
    found = builtin.first_line(case[0].encode()).decode("utf-8", "surrogateescape")
    assert found == case[1]


def test_no_program_speaks_for_the_kernel(log: Log) -> None:
    log += [record(ERROR, 0, priority=8 + 3), record(ERROR, 1, priority=24 * 8)]
    assert text() == ["records 0 to 1"]


@for_each("at", [0, 1, 2])
def test_what_was_dropped_is_not_nothing(at: int) -> None:
    said: Log = [record("Linux version 6.12.48 #1", 0), record("x", 1)]
    said.insert(at, BrokenPipeError(errno.EPIPE, "dropped"))
    with pytest.MonkeyPatch.context() as patch:
        replay(patch, said)
        assert text()[0] == "records 0 to 1, some lost"


def test_what_is_no_record_is_lost_and_a_flood_ends(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log += [record("x", 0), b"3,1,2,-"]
    assert text()[0] == "records 0 to 0, some lost"
    monkeypatch.setattr(builtin, "MOST_RECORDS", 3)
    log[:] = [record("x", number) for number in range(4)]
    assert text()[0] == "records 0 to 2, some lost"


@for_each("number", [errno.EINVAL, errno.EIO])
def test_a_log_that_stops_to_answer(number: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        replay(patch, [record("x", 0), OSError(number, "No")])
        assert answer()[:3] == (1, b"", b"no")


def test_no_more_is_kept_than_one_answer_may_have(log: Log) -> None:
    log += [record("x" * 4000, number) for number in range(4)]
    assert builtin.kmsg_answer(Output("", "", Total(10_000))).fault == "more than 0 MiB of answers in all"


def test_an_empty_log_is_no_answer(log: Log) -> None:
    assert answer()[:3] == (1, b"", b"it holds no record")


# -- what is opened --------------------------------------------------------------------------------------------------------


def fifo(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (fifo, "it is not the kernel's log"),
        (Path.touch, "it is not the kernel's log"),
        (lambda path: path.symlink_to("/dev/kmsg"), "it is not the kernel's log"),
        (lambda path: None, "no such file or directory"),
    ],
    ids=["fifo", "file", "link", "none"],
)
def test_nothing_else_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], says: str
) -> None:
    make(tmp_path / "kmsg")
    monkeypatch.setattr(builtin, "KMSG_PATH", str(tmp_path / "kmsg"))
    assert answer()[:3] == (1, b"", says.encode())


def test_another_device_of_that_name_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    real = os.open

    def noted(path: str, flags: int, *more: int) -> int:
        opened.append(flags)
        return real(path, flags, *more)

    monkeypatch.setattr(builtin, "KMSG_PATH", os.devnull)
    monkeypatch.setattr(os, "open", noted)
    assert answer()[:3] == (1, b"", b"it is not the kernel's log")
    assert [bool(flags & os.O_PATH) for flags in opened] == [True]


def test_who_may_not_read_it_is_told_to_be_root(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied() -> int:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(builtin, "open_kmsg", denied)
    host = LiveHost(5)
    host.euid = 1000
    found = answer_of(kernel_log.log, HOST, DISKS, host.run(DISKS), host)
    assert found.failure
    assert found.failure.reasons[0][:2] == ("/dev/kmsg (disks): operation not permitted", "run as root")


def test_dmesg_is_not_run_any_more() -> None:
    assert not permitted(("dmesg", "--kernel"))
    assert permitted(DISKS.argv)
    assert not permitted((*DISKS.argv, "more"))


readable = pytest.mark.skipif(not os.access(builtin.KMSG_PATH, os.R_OK), reason="the kernel's log cannot be read here")


@readable
def test_the_log_of_this_kernel() -> None:
    found = LiveHost(30).run(Run(DISKS.argv))
    if found.exit:
        assert found.stderr == b"operation not permitted"
        pytest.skip("the kernel's log cannot be read by this user (kernel.dmesg_restrict)")
    first, *lines = found.stdout.decode("utf-8", "surrogateescape").splitlines()
    assert re.fullmatch(r"records \d+ to \d+(, some lost)?", first)
    assert lines
    assert all(re.match(r"\[ *\d+\.\d{6}\] .", line) for line in lines)


MOUNT = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
uid, gid = os.getuid(), os.getgid()
if libc.unshare(0x10000000 | 0x00020000):
    sys.exit(77)
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)
libc.mount(b"x", b"/mnt", b"tmpfs", 0, sys.argv[1].encode())
"""


@readable
def test_lines_that_a_user_has_put_into_this_kernels_log() -> None:
    """For real: one record, with a mark of its own that no rule looks for."""
    mark = f"zaudit-test-{os.getpid()}"
    if answer().exit or subprocess.run([sys.executable, "-c", MOUNT, f"x\n{mark} line\nx"], check=False).returncode:
        pytest.skip("no user namespaces here, or the log is not for this user")
    found = text()
    if not any(line.endswith("tmpfs: Unknown parameter 'x") for line in found):
        pytest.skip("this kernel does not log what it does not know of a mount option")
    assert not any(mark in line for line in found)


# -- and what is made of it --------------------------------------------------------------------------------------------------


def facts(source: Source, log_: Log) -> dict[str, object]:
    """What a live host's log yields, and a replay of what was recorded of it."""
    with pytest.MonkeyPatch.context() as patch:
        replay(patch, log_)
        host = RecordingHost(LiveHost(5))
        request = question.run(source)
        host.run(request)
    past = host.recording((), {}, "test")
    assert past.commands[request.argv].keep == request.keep
    again = ReplayHost(past)
    found = answer_of(source, HOST, request, again.run(request), again).facts
    return {
        name.rpartition(".")[2]: each.value
        for name in source.facts
        if isinstance(each := found.get(HOST, name.rpartition(".")[2]), Known)
    }


FORGED = f"tmpfs: Unknown parameter 'x\\x0a{ERROR}\\x0aINFO: task txg_sync:1 blocked for more than 120 seconds.\\x0ax'"


def test_a_log_with_forged_lines_is_whole_and_says_nothing_of_them() -> None:
    found = facts(kernel_log.log, [record("Linux version 6.12.48 #1", 0), record(FORGED, 1)])
    assert found["kernel_log_whole"] is True
    assert found["kernel_log_flush_errors"] == ()
    assert facts(kernel_log.hangs, [record("Linux version 6.12.48 #1", 0), record(FORGED, 1)])["hung_tasks"] == ()


def test_a_ring_that_was_filled_says_nothing_by_its_silence() -> None:
    for first in (record("[    0.000000] Linux version 6.12.48 #1", 150), record("Linux version 6.12.48 #1", 1)):
        assert facts(kernel_log.hangs, [first]) == {}
        assert "kernel_log_whole" not in facts(kernel_log.log, [first])


def test_a_name_can_only_add() -> None:
    found = facts(
        kernel_log.faults, [record("Linux version 6.12.48 #1", 0), record("PANIC: [4242]: segfault at 0 ip 0", 1)]
    )
    assert found["zfs_panics"] == ("OpenZFS=1",)


def test_a_recording_keeps_it_and_old_ones_answer_from_dmesg(tmp_path: Path) -> None:
    boot = "[    0.000000] Linux version 6.12.48 (ann@build7) #1 SMP\n"
    old: dict[tuple[str, ...], Capture] = {("dmesg", "--kernel"): Capture(0, boot.encode(), keep=kernel_log.KEEP)}
    past = Recording(taken=0.0, euid=0, targets=(), commands=old)
    recording.write(past, tmp_path / "old")
    answered = ReplayHost(recording.load(tmp_path / "old")).run(DISKS)
    assert answered.stdout.decode() == f"dmesg\n{boot}"
    new = {**old, DISKS.argv: Capture(0, b"records 5 to 9\n", keep=kernel_log.KEEP)}
    recording.write(Recording(taken=0.0, euid=0, targets=(), commands=new), tmp_path / "new.tar.gz")
    assert ReplayHost(recording.load(tmp_path / "new.tar.gz")).run(DISKS).stdout == b"records 5 to 9\n"
    none: dict[tuple[str, ...], Capture] = {("dmesg", "--kernel"): Capture(None, fault="not installed")}
    missing = Recording(taken=0.0, euid=0, targets=(), commands=none)
    assert ReplayHost(missing).run(DISKS).fault == "dmesg was not installed"
