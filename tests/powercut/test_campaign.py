"""Whole sessions by the command line, in a mount namespace that plays another boot, and on a loop device with a partition."""

from __future__ import annotations

import array
import fcntl
import hashlib
import json
import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time
import tomllib
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from auditor import codec
from auditor.host.trust import held
from auditor.powercut import campaign, target, wire
from auditor.powercut.proof import Drive
from auditor.powercut.sectors import slots_of, unit
from auditor.powercut.target import LABEL, MARGIN, TargetError, partition
from auditor.powercut.wire import Run
from auditor.sources import machine
from auditor.verify import ledger, place
from auditor.verify.ledger import PlaceError
from tests.fake import CommandLine
from tests.powercut.test_witness import Server, logged, until
from tests.shared import briefly
from tests.verify.fake_zfs import FakeZfs

root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for namespaces and loop devices")
KEY = hashlib.sha256(b"zaudit powercut key" + b"0123456789abcdef" * 2).digest()
MIB = 1 << 20
SECTOR = 512
SERIAL = "LOOPDRIVE1234S1"
SETUP = (
    'mount --bind "$1/lib" /var/lib && mount --bind "$1/boot" /proc/sys/kernel/random/boot_id && '
    'mount --bind "$1/sbin" /usr/local/sbin && mount --bind "$1/run" /run && shift && exec "$@"'
)


class Host:
    """A machine that boots when it is told to, with a drive that counts."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self.server = folder, server
        for name in ("lib", "sbin", "data", "run"):
            (folder / name).mkdir(mode=0o755, exist_ok=True)
        (folder / "key").write_bytes(b"0123456789abcdef" * 2)
        (folder / "key").chmod(0o600)
        self.cycles = self.unsafe = self.boots = 0
        program = folder / "sbin" / "smartctl"
        program.write_text(f"#!/bin/sh\ncat {folder}/counters\n")
        program.chmod(0o755)
        self.boot(cut=False)

    def boot(self, *, cut: bool = True) -> None:
        self.boots += 1
        (self.folder / "boot").write_text(f"boot-{self.boots}\n")
        self.cycles += cut
        self.unsafe += cut
        told = {"power_cycle_count": self.cycles, "model_name": "MODEL", "firmware_version": "F1", "serial_number": SERIAL,
                "nvme_smart_health_information_log": {"unsafe_shutdowns": self.unsafe}}  # fmt: skip
        (self.folder / "counters").write_text(json.dumps(told))

    def command(self, *words: str) -> list[str]:
        python = [sys.executable, "-m", "auditor", "powercut", *words]
        return ["unshare", "-m", "--propagation", "private", "sh", "-c", SETUP, "sh", str(self.folder), *python]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*words), capture_output=True, text=True, check=False)

    def write(self, *words: str, commits: int = 40, end: int = signal.SIGKILL) -> str:
        """Write until the witness has so many commits more; then all processes end at once. What it said."""
        store = self.folder / "store"
        before = total(store)
        process = subprocess.Popen(self.command(*words), stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            while (total(store) < before + commits or control_waits(store)) and process.poll() is None:
                time.sleep(0.02)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, end)
            _, said = process.communicate(timeout=60)
        return said

    @property
    def start(self) -> list[str]:
        address = f"127.0.0.1:{self.server.address[1]}"
        words = ["--despite", "servers"]  # whatever else runs where the tests do
        return ["start", "--witness", address, "--key", str(self.folder / "key"), *words]


def total(store: Path) -> int:
    """Commits that the witness has."""
    with held(str(store)) as folder:
        found = [run for _, run in wire.runs(folder, 64 << 20)]
    streams = [one for run in found for each in run.sessions for one in each.streams.values()]
    return sum(each.newest for each in streams if each.layout.flushed)


def control_waits(store: Path) -> bool:
    """Whether the control stream of the newest session has written nothing yet."""
    with held(str(store)) as folder:
        newest = [run.sessions[-1] for _, run in wire.runs(folder, 64 << 20) if run.sessions][-1:]
    return any(not one.layout.flushed and not one.newest for each in newest for one in each.streams.values())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server(tmp_path / "store", KEY, 64 << 20)
    yield found
    found.stop()


@pytest.fixture
def host(tmp_path: Path, server: Server) -> Host:
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    return Host(tmp_path, server)


def gpt(size: int, label: str, start: int = MIB) -> tuple[bytes, bytes]:
    """(the first MiB, the last 17 KiB) of a disk with one partition, up to a MiB before its end. (UEFI 2.10, chapter 5)"""
    sectors = size // SECTOR
    kind, unique = bytes(range(16)), bytes(range(16, 32))
    entry = struct.pack("<16s16sQQQ72s", kind, unique, start // SECTOR, sectors - 2049, 0, label.encode("utf-16-le"))
    entries = entry + bytes(127 * 128)

    def header(here: int, other: int, table: int) -> bytes:
        def pack(crc: int) -> bytes:
            return struct.pack(
                "<8sIIIIQQQQ16sQIII", b"EFI PART", 0x10000, 92, crc, 0, here, other, 34, sectors - 34, bytes(16), table,
                128, 128, zlib.crc32(entries),
            )  # fmt: skip

        return pack(zlib.crc32(pack(0))).ljust(SECTOR, b"\0")

    mbr = (
        bytes(446)
        + struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xEE, b"\xff" * 3, 1, min(sectors - 1, 2**32 - 1))
        + bytes(48)
    )
    first = (mbr + b"\x55\xaa" + header(1, sectors - 1, 2) + entries).ljust(MIB, b"\0")
    return first, entries + header(sectors - 1, 1, sectors - 33)


def add_partition(device: str, start: int, length: int) -> None:
    """The first one, in bytes, as addpart does, which not every Debian has. (include/uapi/linux/blkpg.h)"""
    values = array.array("B", struct.pack("<qqi64s64s4x", start, length, 1, b"", b""))
    address, size = values.buffer_info()
    with open(device, "rb") as file:
        fcntl.ioctl(file, 0x1269, struct.pack("<iiiiQ", 1, 0, size, 0, address))  # BLKPG, BLKPG_ADD_PARTITION


class Loop:
    """A drive in a file, with one partition; the file outlives it."""

    def __init__(self, path: Path, label: str = LABEL) -> None:
        self.path, self.size, self.part, self.label = path, 64 * MIB, path.with_suffix(".part"), label
        self.run = path.parent / "run" / "udev" / "data"
        self.run.mkdir(parents=True, exist_ok=True)
        first, last = gpt(self.size, label)
        with path.open("wb") as file:
            file.write(first)
            file.truncate(self.size)
            file.seek(self.size - len(last))
            file.write(last)
        self.device = ""

    def attach(self) -> str:
        """The partition."""
        done = subprocess.run(
            ["losetup", "-P", "-f", "--show", str(self.path)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"no loop devices here: {done.stderr.strip()}")
        self.device = done.stdout.strip()
        node = Path("/sys/class/block", os.path.basename(self.device) + "p1", "dev")
        if not node.exists():  # a kernel without EFI partitions
            add_partition(self.device, MIB, self.size - 2 * MIB)
        number = node.read_text().strip().split(":")
        (self.run / f"b{':'.join(number)}").write_text(f"E:ID_PART_ENTRY_NAME={self.label}\nE:ID_PART_ENTRY_UUID=1-2\n")
        self.part.unlink(missing_ok=True)
        try:
            os.mknod(self.part, 0o600 | stat.S_IFBLK, os.makedev(*map(int, number)))
            os.close(os.open(self.part, os.O_RDONLY))
        except OSError as error:
            self.detach()
            pytest.skip(f"no device nodes in {self.part.parent}: {error.strerror}")
        return str(self.part)

    def detach(self) -> None:
        if self.device:
            subprocess.run(["losetup", "-d", self.device], check=True)
        self.device = ""

    def write(self, offset: int, data: bytes) -> None:
        """On the medium, behind the back of the drive; offset: in the partition."""
        with self.path.open("r+b") as file:
            file.seek(MIB + offset)
            file.write(data)

    def read(self, offset: int, size: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(MIB + offset)
            return file.read(size)


@pytest.fixture
def loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    drive = Loop(tmp_path / "drive")
    monkeypatch.setattr(target, "UDEV", drive.run)
    try:
        drive.attach()
        yield drive
    finally:
        drive.detach()


def lose(drive: Loop, run: Run, *, flushed: bool) -> None:
    """What the cut took: the newest acknowledged write of a stream is as the session began."""
    session = run.sessions[-1]
    stream = next(each for each in session.streams.values() if each.layout.flushed is flushed and each.newest)
    layout = stream.layout
    for generation in range(stream.newest, stream.newest + 1 + flushed):  # one may have been on its way
        (slot,) = slots_of(layout, generation)
        drive.write(layout.offset(slot), unit(layout, slot, 0, 0))


def kept(host: Host) -> Any:
    """What zaudit check reads in the only record of the host."""
    (path,) = (host.folder / "lib" / "zaudit" / "cuts").glob("*.json")
    return json.loads(machine.keep_cuts(path.read_text()))["evidence"]


def word(done: subprocess.CompletedProcess[str]) -> str:
    """The verdict: line 2."""
    return done.stdout.splitlines()[1].partition(":")[0] if done.stdout else done.stderr


@root
@pytest.mark.slow
def test_a_drive_from_start_to_report(host: Host, loop: Loop, tmp_path: Path) -> None:
    """Cuts that take what was not flushed are trials; one that takes what was acknowledged is a loss, and nothing is
    written over it."""
    part = str(loop.part)
    plan = host.run("plan", "--raw", part)
    assert (plan.returncode, plan.stderr) == (2 if "stop them first" in plan.stdout else 0, "")
    assert "overwrites 32 MiB" in plan.stdout
    assert host.run("check").returncode == 3

    said = host.write(*host.start, "--raw", part, end=signal.SIGKILL)
    assert f"session 1 writes to {part}" in said
    loop.detach()
    lose(loop, logged(tmp_path / "store"), flushed=False)
    loop.attach()
    host.boot()
    refused = host.run(*host.start, "--raw", part)
    assert (refused.returncode, "waits for its check" in refused.stderr) == (2, True)
    checked = host.run("check")
    assert (checked.returncode, word(checked)) == (10, "TOO FEW CUTS"), checked.stdout + checked.stderr
    assert "unsafe shutdowns 0 to 1" in checked.stdout
    assert host.run("check").returncode == 3

    said = host.write("resume")
    assert "session 3 writes" in said
    loop.detach()
    lose(loop, logged(tmp_path / "store"), flushed=False)
    lose(loop, logged(tmp_path / "store"), flushed=True)
    before = loop.read(0, 40 * MIB)
    loop.attach()
    host.boot()
    again = host.run("resume")
    assert (again.returncode, word(again)) == (14, "LOST"), again.stdout + again.stderr
    assert "1 of 2 cuts lost" in again.stdout
    assert loop.read(0, 40 * MIB) == before, "evidence is not written over"

    of_host = json.loads(host.run("report", "--format", "json").stdout)
    of_witness = json.loads(host.run("report", str(tmp_path / "store"), "--format", "json").stdout)
    assert of_host == of_witness
    (run,) = of_host["runs"]
    assert [each["worst"] for each in run["trials"]] == ["", "LOST"]
    assert [each["informative"] for each in run["trials"]] == [True, True]
    assert (run["verdict"]["word"], run["drives"][0]["model"], run["layer"]) == ("LOST", "MODEL", "drive")
    assert SERIAL not in json.dumps(of_host), "a serial number leaves the host as a hash"
    evidence = {
        "layer": "drive",
        "verdict": "LOST",
        "cuts": 2,
        "lost": 1,
        "model": "MODEL",
        "firmware": "F1",
        "serial": SERIAL,
    }
    assert kept(host) == [evidence], "the host's own record has it, so that zaudit check knows the drive again"
    entries = host.run("report", str(tmp_path / "store"), "--format", "toml").stdout
    (entry,) = tomllib.loads(entries)["cuts"]
    assert (entry["model"], entry["verdict"], entry["informative_cuts"], entry["lost"]) == ("MODEL", "LOST", 2, 1)
    identity = run["drives"][0]["identity"]
    assert not [each for each in (SERIAL, identity, run["machine"], os.uname().nodename, part) if each in entries]
    reached = [each for each in run["trials"][1]["streams"] if each["flushed"] and each["missing"]]
    assert [each["lost"] for each in reached] == [each["acknowledged"] for each in reached] != []
    logs = b"".join(each.read_bytes() for each in (tmp_path / "store").iterdir())
    assert b"MODEL" in logs
    assert SERIAL.encode() not in logs


@root
@pytest.mark.slow
def test_a_reset_is_no_cut_and_an_end_in_order_neither(host: Host, loop: Loop) -> None:
    part = str(loop.part)
    host.write(*host.start, "--raw", part)
    host.boot(cut=False)
    checked = host.run("check")
    assert (checked.returncode, "NO CUT" in checked.stdout, "reset" in checked.stdout) == (10, True, True)
    said = host.write("resume", end=signal.SIGINT)
    assert "this was no cut" in said
    host.boot()
    assert "the run had ended in order" in host.run("check").stdout


@root
def test_a_run_that_still_writes_is_not_checked(host: Host, loop: Loop) -> None:
    """Its partition is busy, which is no sign that it is gone; nor does a second run begin."""
    process = subprocess.Popen(host.command(*host.start, "--raw", str(loop.part)), stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: total(host.folder / "store") > 10)
        for words in (["check"], ["resume"], [*host.start, "--raw", str(loop.part)]):
            done = host.run(*words)
            assert (done.returncode, "still writes" in done.stderr or "busy" in done.stderr) == (2, True), done.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, "this was no cut" in said) == (0, True)


@root
def test_a_drive_that_was_replaced_is_judged_by_nobody(host: Host, loop: Loop) -> None:
    host.write(*host.start, "--raw", str(loop.part))
    host.boot()
    text = (host.folder / "counters").read_text()
    (host.folder / "counters").write_text(text.replace("S1", "S2"))
    checked = host.run("check")
    assert "another drive is in its place" in checked.stdout
    assert checked.returncode == 10
    assert [each["serial"] for each in kept(host)] == [""]


@root
def test_a_drive_that_is_gone(host: Host, tmp_path: Path) -> None:
    loop = Loop(tmp_path / "drive")
    part = loop.attach()
    host.write(*host.start, "--raw", part)
    loop.detach()
    host.boot()
    checked = host.run("check")
    assert (checked.returncode, word(checked)) == (14, "GONE")


@root
@pytest.mark.parametrize(
    "profile", briefly([(each,) for each in ("fsync", "dsync", "direct", "mmap", "pages16")], quick=1)
)
def test_a_folder_from_start_to_report(profile: str, host: Host) -> None:
    data = host.folder / "data"
    os.chown(data, 1234, 1234)
    # a kill ends a write between two pages, as no cut does: a page of four is torn by it
    end = signal.SIGTERM if profile == "pages16" else signal.SIGKILL
    said = host.write(*host.start, str(data), "--profile", profile, "--despite", "counters", commits=20, end=end)
    assert "session 1 writes" in said
    (made,) = data.glob(".zaudit-*")
    assert {each.stat().st_uid for each in made.iterdir()} == {1234}, "written with the rights of the owner"
    host.boot()
    checked = host.run("check")
    (row,) = [
        each.split("  ") for each in checked.stdout.splitlines() if "nothing lost" in each and "no control" in each
    ]
    assert row[-1].strip() == "not informative", checked.stdout + checked.stderr


@root
def test_a_folder_that_is_gone_or_was_changed(host: Host) -> None:
    data = host.folder / "data"
    host.write(*host.start, str(data), "--despite", "counters")
    (made,) = data.glob(".zaudit-*")
    file = made / target.file_name(0)
    file.write_bytes(bytes(len(file.read_bytes())))
    host.boot()
    checked = host.run("check")
    assert (checked.returncode, word(checked)) == (14, "LOST")
    assert host.run("resume").returncode == 14, "what was lost is not written over"
    host.write(*host.start, str(data), "--despite", "counters")
    (made,) = data.glob(".zaudit-*")
    made.rename(data / "elsewhere")
    host.boot()
    checked = host.run("check")
    assert (checked.returncode, word(checked)) == (14, "GONE")


@root
def test_without_a_witness_nothing_is_written(host: Host, loop: Loop) -> None:
    before = loop.read(0, 40 * MIB)
    host.server.stop()
    done = host.run(*host.start, "--raw", str(loop.part))
    assert (done.returncode, "no witness" in done.stderr) == (1, True), done.stderr
    (host.folder / "key").write_bytes(b"another key 1234")
    assert loop.read(0, 40 * MIB) == before


@root
def test_another_key(host: Host, loop: Loop) -> None:
    (host.folder / "key").write_bytes(b"another key 1234")
    before = loop.read(0, 40 * MIB)
    done = host.run(*host.start, "--raw", str(loop.part))
    assert (done.returncode, "another key" in done.stderr) == (1, True), done.stderr
    assert loop.read(0, 40 * MIB) == before
    assert host.run("check").returncode == 3


@root
def test_a_witness_that_goes_and_comes_back(host: Host, loop: Loop) -> None:
    """The host stops and says so; nothing is lost on the witness, and the run goes on."""
    process = subprocess.Popen(host.command(*host.start, "--raw", str(loop.part)), stderr=subprocess.PIPE, text=True)
    until(lambda: total(host.folder / "store") > 10)
    host.server.stop()
    _, said = process.communicate(timeout=60)
    assert (process.returncode, "zaudit powercut: 127.0.0.1" in said) == (1, True), said
    store, (_, port) = host.folder / "store", host.server.address
    before = total(store)
    waits = host.run("report")
    assert (waits.returncode, word(waits), "check on the host, once it is back" in waits.stdout) == (10, "NO CUT", True)
    assert "What was acknowledged is known to the witness alone." in " ".join(waits.stdout.split())
    host.server = Server(store, KEY, 64 << 20, port=port)
    try:
        assert total(store) == before
        checked = host.run("check")
        assert (checked.returncode, word(checked)) == (10, "NO CUT"), checked.stdout + checked.stderr
        assert "the host was not restarted" in checked.stdout
        assert "session 3 writes" in host.write("resume")
    finally:
        host.server.stop()


@root
def test_a_disk_of_the_host_that_is_full(host: Host) -> None:
    """It ends before the first commit; nothing waits for a check, and another run can begin."""
    data = host.folder / "data"
    small = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(data)]
    if subprocess.run(small, capture_output=True, check=False).returncode:
        pytest.skip("no mounts here")
    try:
        done = host.run(*host.start, str(data), "--despite", "counters")
        assert (done.returncode, "No space left on device: nothing was committed" in done.stderr) == (1, True), (
            done.stderr
        )
        assert host.run("check").returncode == 3
        subprocess.run(["mount", "-o", "remount,size=64m", str(data)], check=True)
        assert "session 1 writes" in host.write(*host.start, str(data), "--despite", "counters")
    finally:
        subprocess.run(["umount", "-l", str(data)], check=True)


# -- a partition --------------------------------------------------------------------------------------------------


@root
def test_a_partition_that_is_ours(loop: Loop, tmp_path: Path) -> None:
    (tmp_path / "by-partlabel").symlink_to(loop.part)
    with partition(str(tmp_path / "by-partlabel"), write=False) as found:
        assert found.disk == os.path.basename(loop.device)
    with partition(str(loop.part)) as found:
        assert (found.disk, found.uuid, found.size, found.block) == (
            os.path.basename(loop.device),
            "1-2",
            loop.size - 2 * MIB,
            SECTOR,
        )
        with pytest.raises(TargetError, match="busy"), partition(str(loop.part)):
            pass


@root
@pytest.mark.parametrize("at", [0, 512, 64 << 10, MIB - 512, -512, -MIB, -(64 << 10)])
def test_what_is_not_empty_at_its_ends_is_somebody_s(at: int, loop: Loop) -> None:
    """Labels of pools, of RAID, LVM and swap, and super blocks lie there; whatever it is, nothing is written."""
    loop.detach()
    loop.write(at if at >= 0 else loop.size - 2 * MIB + at, b"\1")
    loop.attach()
    with pytest.raises(TargetError, match=r"its (first|last) MiB is not empty"), partition(str(loop.part)):
        pass


@root
@pytest.mark.parametrize("label", ["data", "", "zaudit-powercu", "zaudit-powercut2"])
def test_another_label_is_somebody_s(label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = Loop(tmp_path / "drive", label)
    monkeypatch.setattr(target, "UDEV", drive.run)
    part = drive.attach()
    try:
        with pytest.raises(TargetError, match="its label is"), partition(part):
            pass
        with pytest.raises(TargetError, match="no partition"), partition(drive.device):
            pass
    finally:
        drive.detach()


@root
def test_what_is_mounted_is_not_opened(loop: Loop, tmp_path: Path) -> None:
    part = str(loop.part)
    if not shutil.which("mkfs.ext4"):
        pytest.skip("no mkfs.ext4 here (apt install e2fsprogs)")
    subprocess.run(["mkfs.ext4", "-q", "-F", part], check=True)
    (tmp_path / "mnt").mkdir()
    if subprocess.run(["mount", part, str(tmp_path / "mnt")], capture_output=True, check=False).returncode:
        pytest.skip("no mounts here")
    try:
        with pytest.raises(TargetError, match="mounted, in a pool or used otherwise"), partition(part):
            pass
    finally:
        subprocess.run(["umount", part], check=True)
    with pytest.raises(TargetError, match="first MiB is not empty"), partition(part):
        pass


@pytest.mark.parametrize("make", ["file", "folder", "fifo", "none"])
def test_only_a_block_device_is_opened(make: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    if make == "file":
        path.write_bytes(bytes(16 * MIB))
    elif make == "folder":
        path.mkdir()
    elif make == "fifo":
        os.mkfifo(path)
    with pytest.raises(TargetError), partition(str(path)):
        pass


# -- the ledger and the commands ----------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(ledger, "name", lambda: folder)
    return folder


def test_what_waits_for_its_check_outlives_clean(state: Path, tmp_path: Path, zaudit: CommandLine) -> None:
    """A verification that begins, and zaudit clean, leave it; with --powercut it goes."""
    (tmp_path / "data").mkdir()
    made = place.directory(str(tmp_path / "data"), "", "ab" * 16)
    gone = made._replace(boot="another")
    ledger.record(gone)
    assert list(place.clean(FakeZfs())) == []
    done = zaudit("clean")
    assert (done.code, "left for zaudit powercut check" in done.out) == (0, True)
    assert os.path.isdir(made.path)
    done = zaudit("clean", "--powercut")
    assert (done.code, os.path.exists(made.path), list(ledger.places())) == (0, False, [])


def test_a_session_that_waits_can_be_forgotten(state: Path, zaudit: CommandLine, tmp_path: Path) -> None:
    """And a folder that the administrator removed by zaudit clean is not one that a cut took."""
    key = tmp_path / "key"
    key.write_bytes(b"0123456789abcdef")
    key.chmod(0o600)
    waiting = campaign.State("ab" * 16, "h", 1, str(key), "tank/db", "", "fsync", 4, "0" * 16, "", 1, False)
    campaign.save_state(waiting)
    with pytest.raises(campaign.Refused, match="waits for its check"):
        campaign.begin(waiting._replace(target=""))
    with pytest.raises(PlaceError, match="not on record"):
        campaign._left(waiting, {})
    assert zaudit("clean").code == 0
    assert campaign.load_state() == waiting
    assert zaudit("clean", "--powercut").code == 0
    assert campaign.begin(waiting._replace(target="")).run != waiting.run


@pytest.mark.parametrize("gone", [False, True])
def test_a_pool_that_is_not_imported(gone: bool, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may have imported it yet, which is no loss; where it does not import any more the user says so."""
    made = place.directory(str(tmp_path), "tank/db", "ab" * 16)
    ledger.record(made)
    waiting = campaign.State("ab" * 16, "h", 1, "/k", "tank/db", "", "fsync", 1, made.id, "", 1, False)
    asked = []

    def call(argv: tuple[str, ...]) -> tuple[int, str]:
        asked.append(argv[0])
        return (1, "cannot open 'tank': no such pool") if argv[0] == "zpool" else (0, "yes")

    monkeypatch.setattr(ledger, "call", call)
    if gone:
        assert campaign._left(waiting, {}, gone=True) == ([], "pool tank does not import any more")
    else:
        with pytest.raises(campaign.Refused, match=r"zpool import tank, then check.*check --gone") as refused:
            campaign._left(waiting, {})
        assert refused.value.exit_code == 2
    monkeypatch.setattr(ledger, "call", lambda argv: (0, "yes"))
    Path(made.path, target.file_name(0)).touch(mode=0o600)
    (left,), lack = campaign._left(waiting, {}, gone=True)
    assert (left.stream, lack) == (0, "")
    assert asked == ["zpool"]


def test_a_record_of_a_later_version(state: Path, zaudit: CommandLine) -> None:
    path = campaign.record_of("ab" * 16)
    path.parent.mkdir(mode=0o700)
    path.write_text('{"schema": "zaudit-cuts/9"}')
    path.chmod(0o600)
    done = zaudit("powercut", "report")
    assert (done.code, "of a later version of zaudit" in done.err, path.exists()) == (2, True, True)


def test_the_state_is_believed_of_nobody_else(state: Path) -> None:
    with pytest.raises(campaign.NoRun):
        campaign.load_state()
    first = campaign.State("ab" * 16, "h", 1, "/k", "tank/db", "", "fsync", 4)
    campaign.save_state(first)
    assert campaign.load_state() == first
    assert first.layer == "pool"
    path = state / campaign.STATE
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o666)
    with pytest.raises(PlaceError):
        campaign.load_state()
    path.chmod(0o600)
    path.write_text('{"run": 3}')
    with pytest.raises(codec.CodecError):
        campaign.load_state()
    path.write_text("{")
    with pytest.raises(PlaceError, match="damaged"):
        campaign.load_state()


def test_hazards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "crypttab").write_text("# tpm2-device=auto\nroot UUID=1 none luks,tpm2-device=auto\n")
    (tmp_path / "mdstat").write_text("md0 : active raid1\n [=>..]  resync = 8.1%\n")
    (tmp_path / "proc" / "17").mkdir(parents=True)
    (tmp_path / "proc" / "17" / "comm").write_text("postgres\n")
    monkeypatch.setattr(target, "CRYPTTAB", tmp_path / "crypttab")
    monkeypatch.setattr(target, "MDSTAT", tmp_path / "mdstat")
    monkeypatch.setattr(target, "PROC", tmp_path / "proc")
    drive = Drive("sda")
    found = list(target.hazards(["tank", "mine"], ["mine"], [drive, drive._replace(name="sdb", cycles=3)]))
    assert [each.name for each in found] == ["", "tpm", "resync", "servers", "counters"]
    assert "--production tank" in found[0].text
    (tmp_path / "crypttab").write_text("# tpm2-device=auto\n")
    (tmp_path / "mdstat").write_text("unused devices: <none>\n")
    (tmp_path / "proc" / "17" / "comm").write_text("bash\n")
    assert list(target.hazards([], [], [drive._replace(cycles=3)])) == []
    assert [each.name for each in target.hazards([], [], [])] == ["counters"]


@pytest.mark.parametrize("value", ["host:", "host:0", "host:99999", "host:x"])
def test_an_address_that_is_none(value: str, zaudit: CommandLine, tmp_path: Path) -> None:
    assert zaudit("powercut", "start", str(tmp_path), "--witness", value, "--key", "k").code == 2


def test_a_calibration_is_of_an_orderly_reboot(state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from auditor.host.request import Capture
    from tests.fake import FakeHost

    def host(cycles: int) -> Any:
        told = json.dumps({"power_cycle_count": cycles, "serial_number": "S"})
        return FakeHost({("smartctl",): Capture(0, told.encode())})

    monkeypatch.setattr(campaign, "disks", lambda: ["sda"])
    monkeypatch.setattr(ledger, "boot_id", lambda: "b1")
    assert "reboot this host in order" in campaign.calibrate(host(3))
    assert "reboot this host in order" in campaign.calibrate(host(3))
    monkeypatch.setattr(ledger, "boot_id", lambda: "b2")
    assert campaign.calibrate(host(4)) == "an orderly reboot moves: sda 1 power cycles and 0 unsafe shutdowns"
    assert campaign._orderly() == {"sda": [1, 0]}
    monkeypatch.setattr(campaign, "disks", list)
    with pytest.raises(campaign.Refused):
        campaign.calibrate(host(4))


def test_layouts_on_a_partition(state: Path) -> None:
    raw = target.Partition(-1, "/dev/x", "", "sda", 64 * MIB, 4096)
    layouts = [each for each, _ in target.raw_layouts(raw, "00" * 16, 4, control_only=False)]
    ends = [(each.base, each.base + each.size) for each in layouts]
    assert ends[0][0] == MARGIN
    assert ends[-1][1] <= raw.size - MARGIN
    assert all(one[1] == other[0] for one, other in pairwise(ends))
    assert {each.atomic for each in layouts} == {8}
    assert [each.flushed for each in layouts] == [True] * 4 + [False]
    with pytest.raises(TargetError, match="too small"):
        target.raw_layouts(raw._replace(size=20 * MIB), "00" * 16, 4, control_only=False)
