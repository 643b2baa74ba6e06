"""The two ends of a power cut without guests: the drive models over a socket, the workloads on a folder."""

import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.power.commit import Ack, Left, number_of, record
from tests.lab.power.disks import BLOCK, FLUSH, GONE, READ, WRITE, Disk, Server, _armed, copy, serve, stop
from tests.lab.power.workloads import Append, Mapped, Pages, Pair, Sqlite, workload

pytestmark = pytest.mark.lab

ONE, TWO = b"1" * BLOCK, b"2" * BLOCK


def drive(folder: Path, model: str) -> tuple[Disk, Path]:
    path = folder / "drive"
    path.write_bytes(bytes(64 * BLOCK))
    return Disk(path, model), path


class Client:
    """Speaks NBD as QEMU does."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        assert self.take(18)[:16] == b"NBDMAGICIHAVEOPT"
        connection.sendall(struct.pack(">I", 3) + struct.pack(">8sII", b"IHAVEOPT", 7, 6) + bytes(6))
        self.size = 0
        while True:
            _, _, kind, length = struct.unpack(">QIII", self.take(20))
            payload = self.take(length)
            if kind == 1:
                return
            if payload[:2] == b"\0\0":
                self.size = struct.unpack(">Q", payload[2:10])[0]

    def take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.connection.recv(size - len(data))
            assert part, "the server hung up"
            data += part
        return data

    def ask(self, command: int, offset: int = 0, data: bytes = b"", length: int = 0, fua: bool = False) -> bytes:
        size = len(data) or length
        self.connection.sendall(struct.pack(">IHHQQI", 0x25609513, fua, command, 7, offset, size) + data)
        magic, self.error, handle = struct.unpack(">IIQ", self.take(16))
        assert (magic, handle) == (0x67446698, 7)
        return self.take(length) if command == READ else b""


@contextmanager
def client(disk: Disk) -> Iterator[Client]:
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=serve, args=(theirs, disk))
    thread.start()
    with ours:
        yield Client(ours)
    theirs.shutdown(socket.SHUT_RDWR)
    thread.join()
    theirs.close()
    os.close(disk.fd)


@pytest.mark.parametrize(
    ("model", "after_write", "after_flush"),
    [("honest", False, True), ("lying", False, False), ("failing", False, False), ("plp", True, True)],
)
def test_what_is_on_the_medium(tmp_path: Path, model: str, after_write: bool, after_flush: bool) -> None:
    """The medium is all that is left when the process dies; the machine itself reads through the cache."""
    disk, path = drive(tmp_path, model)
    with client(disk) as nbd:
        assert nbd.size == 64 * BLOCK
        nbd.ask(WRITE, BLOCK, ONE + TWO)
        assert nbd.ask(READ, BLOCK, length=2 * BLOCK) == ONE + TWO
        assert (path.read_bytes()[BLOCK : 3 * BLOCK] == ONE + TWO) is after_write
        nbd.ask(FLUSH)
        assert nbd.error == (5 if model == "failing" else 0)
        assert (path.read_bytes()[BLOCK : 3 * BLOCK] == ONE + TWO) is after_flush
        nbd.ask(WRITE, 0, TWO, fua=True)
        assert (path.read_bytes()[:BLOCK] == TWO) is after_flush
        assert disk.stats() == {"write": 2, "flush": 1, "read": 1, "cached": 0 if after_flush else 3}
        assert nbd.error == 0


@pytest.mark.parametrize("model", ["honest", "lying"])
def test_a_cache_is_written_back_in_any_order(tmp_path: Path, model: str) -> None:
    disk, path = drive(tmp_path, model)
    for number in range(64):
        disk.write(number * BLOCK, ONE)
    disk.write_back(disk.half_life)
    written = [path.read_bytes()[number * BLOCK : (number + 1) * BLOCK] == ONE for number in range(64)]
    assert 10 < sum(written) < 54
    assert disk.stats()["cached"] == 64 - sum(written)
    assert written != sorted(written)
    assert written != sorted(written, reverse=True)
    os.close(disk.fd)


@pytest.mark.parametrize("model", ["honest", "lying"])
def test_a_drive_outlives_a_reset_with_its_cache(tmp_path: Path, model: str) -> None:
    disk, path = drive(tmp_path, model)
    disk.write(BLOCK, ONE)
    stop([disk], "dead,alive")
    assert path.with_suffix(".dead").read_bytes() == bytes(64 * BLOCK)
    assert path.with_suffix(".alive").read_bytes() == bytes(BLOCK) + ONE + bytes(62 * BLOCK)
    assert path.read_bytes() == bytes(64 * BLOCK), "the drive itself goes on as before"
    os.close(disk.fd)


def test_the_server_dies_with_its_caches(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b")]
    for path in paths:
        path.write_bytes(bytes(8 * BLOCK))
    server = Server(tmp_path, [(paths[0], "lying"), (paths[1], "plp")])
    try:
        for path in server.sockets:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(str(path))
            with connection:
                Client(connection).ask(WRITE, 0, ONE)
        end = time.monotonic() + 5
        while [each["write"] for each in server.stats()] != [1, 1] and time.monotonic() < end:
            time.sleep(0.05)
        assert [each["write"] for each in server.stats()] == [1, 1]
        server.snapshot("cut0")
        time.sleep(1.5)
    finally:
        server.kill()
    assert server.proc.poll() is not None
    with pytest.raises((BrokenPipeError, RuntimeError, ValueError)):
        server.snapshot("cut1")
    assert paths[0].read_bytes()[:BLOCK] == ONE, "a lying drive writes back too, later"
    assert paths[1].read_bytes()[:BLOCK] == ONE
    assert paths[1].with_suffix(".cut0").read_bytes() == ONE + bytes(7 * BLOCK)
    assert len(paths[0].with_suffix(".cut0").read_bytes()) == 8 * BLOCK


def test_a_snapshot_is_without_the_caches(tmp_path: Path) -> None:
    paths = [tmp_path / "lying", tmp_path / "plp"]
    for path in paths:
        path.write_bytes(bytes(8 * BLOCK))
    disks = [Disk(path, path.name) for path in paths]
    for disk in disks:
        disk.write(BLOCK, ONE)
        disk.flush()
        copy(disk.path, tmp_path / f"{disk.model}.copy")
        os.close(disk.fd)
    assert (tmp_path / "lying.copy").read_bytes() == bytes(8 * BLOCK)
    assert (tmp_path / "plp.copy").read_bytes() == bytes(BLOCK) + ONE + bytes(6 * BLOCK)


def test_a_group_is_stopped_within_a_write_of_one_of_its_disks(tmp_path: Path) -> None:
    """After the second write of b, whatever comes then; a disk that never writes so often is stopped after a while."""
    disks = [Disk(tmp_path / name, "plp") for name in ("a", "b") if (tmp_path / name).write_bytes(bytes(4 * BLOCK))]
    done = _armed(disks, disks[1], 2, "cut0")
    for block in (ONE, TWO, ONE):
        disks[0].write(0, block)
        disks[1].write(BLOCK, block)
    assert done.is_set()
    assert (tmp_path / "a.cut0").read_bytes()[:BLOCK] == TWO
    assert (tmp_path / "b.cut0").read_bytes()[BLOCK : 2 * BLOCK] == TWO
    for disk in disks:
        os.close(disk.fd)


def _write_on(client: Client) -> None:
    """Writes count from the moment at which the server has heard of the trap."""
    for _ in range(500):
        client.ask(WRITE, BLOCK, ONE)
        time.sleep(0.01)


def test_drives_that_are_gone_write_no_more(tmp_path: Path) -> None:
    """The one within whose write it happens too, which does not return."""
    paths = [tmp_path / name for name in ("a", "b")]
    for path in paths:
        path.write_bytes(bytes(4 * BLOCK))
    server = Server(tmp_path, [(path, "plp") for path in paths])
    connections = [socket.socket(socket.AF_UNIX) for _ in paths]
    try:
        for connection, path in zip(connections, server.sockets, strict=True):
            connection.connect(str(path))
        first, second = map(Client, connections)
        began = time.monotonic()
        waiting = ThreadPoolExecutor(1).submit(server.snapshot, GONE, ["0-1:1:2"])
        second.ask(WRITE, 0, ONE)
        first.ask(WRITE, 0, ONE)
        connections[1].settimeout(0.5)
        with pytest.raises(TimeoutError):
            _write_on(second)
        assert [began < each < time.monotonic() for each in waiting.result()] == [True, True]
        connections[0].settimeout(0.5)
        with pytest.raises(TimeoutError):
            first.ask(WRITE, BLOCK, ONE)
    finally:
        server.kill()
        for connection in connections:
            connection.close()
    assert paths[0].read_bytes() == ONE + bytes(3 * BLOCK)
    assert paths[1].read_bytes() == ONE + ONE + bytes(2 * BLOCK)
    assert not list(tmp_path.glob("*.gone"))


def test_a_torn_page_is_found_with_the_byte_at_which_it_tears(tmp_path: Path) -> None:
    job = Pages(tmp_path, tmp_path, 16384)
    left_after(job, 3)
    data = bytearray(job.file.read_bytes())
    place = next(each for each in job.chosen(2))
    new = job.page(9)
    data[place * 16384 : place * 16384 + 10752] = new[:10752]
    job.file.write_bytes(data)
    (damage,) = job.check().damage
    assert damage == f"page {place} is torn at byte 10752: generation 9, then 3"


def test_a_copy_replaces_all_of_a_file_and_keeps_its_inode(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    with source.open("wb") as file:
        file.truncate(64 * BLOCK)
        file.seek(9 * BLOCK)
        file.write(TWO)
    target.write_bytes(ONE * 3)
    inode = target.stat().st_ino
    copy(source, target)
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_ino == inode


class Enough(Exception):
    pass


def commits(count: int) -> Ack:
    def ack(number: int) -> None:
        if number == count - 1:
            raise Enough

    return ack


@pytest.mark.parametrize(
    "name",
    [
        "fsync",
        "dsync",
        "buffered",
        "mmap",
        "sqlite-full",
        "sqlite-normal",
        "pair",
        "pair-never",
        "pages16",
        "pages8-mixed",
    ],
)
def test_a_workload_finds_its_own_commits(tmp_path: Path, name: str) -> None:
    job = workload(name, tmp_path, tmp_path)
    job.prepare()
    with pytest.raises(Enough):
        job.run(commits(70))
    left = job.check()
    assert set(range(70)) <= left.have
    assert left.damage == []


def left_after(job: Append | Mapped | Pages | Pair | Sqlite, count: int) -> None:
    job.prepare()
    with pytest.raises(Enough):
        job.run(commits(count))


def test_a_hole_is_a_loss_and_garbage_is_damage(tmp_path: Path) -> None:
    job = Append(tmp_path, tmp_path)
    left_after(job, 10)
    data = bytearray(job.file.read_bytes())
    data[3 * 8192 : 4 * 8192] = bytes(8192)
    data[5 * 8192 + 100] ^= 1
    job.file.write_bytes(data)
    assert job.check() == Left(set(range(10)) - {3, 5}, ["record 5 is torn or wrong (-1)"])


def test_a_database_whose_data_is_older_than_its_checkpoint_is_damaged(tmp_path: Path) -> None:
    """What sync=disabled on the data alone leaves: the log has been cut, the pages are of before."""
    job = Pair(tmp_path, tmp_path)
    left_after(job, 20)
    old = job.pages.read_bytes()
    with pytest.raises(Enough):
        Pair(tmp_path, tmp_path).run(commits(30))
    job.pages.write_bytes(old)
    left = job.check()
    assert set(range(25)).isdisjoint(left.have)
    assert "the log starts after commit 24, the data lacks 25" in left.damage[0]


def test_a_database_whose_log_is_older_than_its_data_is_damaged(tmp_path: Path) -> None:
    """What sync=disabled on the log alone can leave."""
    job = Pair(tmp_path, tmp_path)
    left_after(job, 60)
    for path in tmp_path.glob("log-*"):
        path.unlink()
    (tmp_path / "log-00000000").write_bytes(record(0) + b"".join(record(number) for number in range(10)))
    assert job.check().damage == ["the data is of commit 49, the log ends with 9"]


def test_a_record_is_what_it_says() -> None:
    assert number_of(record(77)) == 77
    damaged = record(77)
    assert number_of(damaged[:-1] + bytes([damaged[-1] ^ 1])) == -1
    assert number_of(b"") == -1
