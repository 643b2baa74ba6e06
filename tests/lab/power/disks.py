"""NBD disks with a modelled write cache.

    python -m tests.lab.power.disks SEED SOCKET=FILE,MODEL...

Writes that are in a drive's cache live in this process only: SIGKILL it and the power is gone. The models:

honest  volatile cache that obeys: a FLUSH (or FUA) is acknowledged when FILE holds the data
lying   volatile cache that acknowledges FLUSH and FUA and ignores them
failing volatile cache that answers each FLUSH with an error, and does not empty
flaky   the same with each tenth FLUSH, and obeys all others
plp     power-loss protection: every write is in FILE before it is acknowledged
half    volatile cache that writes back half of its blocks at a FLUSH, any of them, and acknowledges it
late    volatile cache that acknowledges each FLUSH at once, and obeys it 10 ms later
first   volatile cache that obeys the first FLUSH and ignores all others

Between flushes a volatile cache writes back block by block in an order of its own (random, from SEED): half of the blocks
within a second, within a fifth of one on a lying drive. Blocks of 4 KiB are written whole or not at all. Counters of each disk
go to SOCKET.stats ten times a second.

A line NAME on standard input stops all disks at one moment and copies each medium to FILE.NAME, without the caches: what
a power cut at this moment would leave. Then the moment of each disk is answered (time.monotonic), and the machine goes on. With
words FIRST-LAST:DISK:N behind the name, the disks FIRST to LAST (by number) are stopped at a moment of their own: when DISK has
done N more writes, so that a cut hits between two writes that belong together. Where that does not come within TRAP_S it is as
without. The name GONE copies nothing: the disks stay stopped, and wait to be killed.
"""

import contextlib
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from ..vm import die_with_parent

MODELS = {"honest": 1.0, "lying": 0.2, "failing": 1.0, "flaky": 1.0, "plp": 0.0, "half": 1.0, "late": 1.0, "first": 1.0}
"""Model and the half-life of a block in its cache, in seconds."""
LATE_S, FLAKY = 0.01, 10
BLOCK = 4096
ROOT = Path(__file__).resolve().parents[3]

# fixed newstyle NBD without structured replies (doc/proto.md of the NBD project)
GO, INFO, ABORT = 7, 6, 2
ACK, REP_INFO, ERR_UNSUP = 1, 3, 0x80000001
HAS_FLAGS, SEND_FLUSH, SEND_FUA, SEND_TRIM = 1, 4, 8, 32
READ, WRITE, DISCONNECT, FLUSH, TRIM = range(5)
REQUEST, REPLY = struct.Struct(">IHHQQI"), struct.Struct(">IIQ")
REPLY_MAGIC = 0x67446698
EIO, EINVAL = 5, 22
TRAP_S = 40.0
GONE = "gone"


class Disk:
    """One drive over a raw file."""

    def __init__(self, path: Path, model: str, seed: str = "0") -> None:
        self.model, self.half_life = model, MODELS[model]
        self.path, self.fd = path, os.open(path, os.O_RDWR)
        self.size = os.fstat(self.fd).st_size
        self.lock = threading.Lock()
        self.cache: dict[int, bytes] = {}
        self.count = {"write": 0, "flush": 0, "read": 0}
        self.random = random.Random(seed)
        self.stopped = 0.0  # when it was stopped last
        self.left = 0  # writes until the trap is called
        self.trap: Callable[[], None] | None = None
        self.clock = 0.0  # seconds of write_back()
        self.late: list[tuple[float, dict[int, bytes]]] = []  # when a FLUSH is obeyed, and what it was for

    def write(self, offset: int, data: bytes, fua: bool = False) -> None:
        """Whole blocks only: the server tells its client so."""
        with self.lock:
            self.count["write"] += 1
            if self.model == "plp":
                os.pwrite(self.fd, data, offset)
            else:
                numbers = range(offset // BLOCK, (offset + len(data)) // BLOCK)
                for index, number in enumerate(numbers):
                    self.cache[number] = data[index * BLOCK : (index + 1) * BLOCK]
                if fua and self.model in ("honest", "flaky"):
                    self._destage(numbers)
            self.left -= 1
            if self.trap and self.left <= 0:
                trap, self.trap = self.trap, None
                trap()

    def read(self, offset: int, length: int) -> bytes:
        """What the machine sees: the cache over the medium."""
        with self.lock:
            self.count["read"] += 1
            data = bytearray(os.pread(self.fd, length, offset))
            if self.cache:
                for index, number in enumerate(range(offset // BLOCK, (offset + length) // BLOCK)):
                    if (block := self.cache.get(number)) is not None:
                        data[index * BLOCK : (index + 1) * BLOCK] = block
            return bytes(data)

    def flush(self) -> int:
        """An honest drive empties its cache; a lying one says that it did; the error of a failing one."""
        with self.lock:
            self.count["flush"] += 1
            if self.model == "failing" or (self.model == "flaky" and self.count["flush"] % FLAKY == 0):
                return EIO
            if self.model in ("honest", "flaky") or (self.model == "first" and self.count["flush"] == 1):
                self._destage(self.cache)
            elif self.model == "half":
                self._destage([number for number in self.cache if self.random.random() < 0.5])
            elif self.model == "late":
                self.late.append((self.clock + LATE_S, dict(self.cache)))
        return 0

    def write_back(self, seconds: float) -> None:
        """What the drive does by itself in so many seconds: each block has the same chance to reach the medium."""
        if not self.half_life:
            return
        stays = 0.5 ** (seconds / self.half_life)
        with self.lock:
            self.clock += seconds
            while self.late and self.late[0][0] <= self.clock:
                flushed = self.late.pop(0)[1]
                self._destage([number for number, block in flushed.items() if self.cache.get(number) is block])
            self._destage([number for number in self.cache if self.random.random() > stays])

    def stats(self) -> dict[str, int]:
        """Requests so far, and blocks that are not on the medium."""
        return {**self.count, "cached": len(self.cache)}

    def save(self, target: Path, *, alive: bool) -> None:
        """A copy of the medium; alive: with what is in the cache. The lock is held by whoever asks."""
        copy(self.path, target)
        if alive and self.cache:
            with target.open("r+b") as file:
                for number, block in self.cache.items():
                    os.pwrite(file.fileno(), block, number * BLOCK)

    def _destage(self, numbers: Iterable[int]) -> None:
        for number in sorted(numbers):
            os.pwrite(self.fd, self.cache.pop(number), number * BLOCK)


def copy(source: Path, target: Path) -> None:
    """The content of a sparse file into another one, which keeps its inode: a guest may have it open."""
    with source.open("rb") as read, target.open("r+b" if target.exists() else "wb") as write:
        size, at = os.fstat(read.fileno()).st_size, 0
        write.truncate(0)
        write.truncate(size)
        with contextlib.suppress(OSError):  # there is no more data
            while at < size:
                at = os.lseek(read.fileno(), at, os.SEEK_DATA)
                end = os.lseek(read.fileno(), at, os.SEEK_HOLE)
                while at < end:
                    at += os.copy_file_range(read.fileno(), write.fileno(), end - at, at, at)


def snapshots(disks: Sequence[Disk]) -> None:
    """Copies of all media, for each line on standard input: at one moment, or when a disk of a group has written enough."""
    for line in sys.stdin:
        name, *traps = line.split()
        waiting = []
        left = list(disks)
        for each in traps:
            group, trigger, writes = each.split(":")
            first, last = map(int, group.split("-"))
            here = disks[first : last + 1]
            left = [disk for disk in left if disk not in here]
            waiting.append((here, disks[int(trigger)], _armed(here, disks[int(trigger)], int(writes), name)))
        stop(left, name)
        end = time.monotonic() + TRAP_S
        for here, trigger_disk, done in waiting:
            if not done.wait(max(end - time.monotonic(), 0)):
                with trigger_disk.lock:
                    late, trigger_disk.trap = trigger_disk.trap is None, None
                done.wait() if late else stop(here, name)
        print(*(disk.stopped for disk in disks), flush=True)


def stop(disks: Sequence[Disk], name: str, but: Disk | None = None) -> None:
    """Copy the media of these disks at one moment, or stop them for good. but: the one whose lock is held already."""
    with contextlib.ExitStack() as stack:
        for disk in disks:
            if disk is not but:
                stack.enter_context(disk.lock)
        for disk in disks:
            disk.stopped = time.monotonic()
        if name == GONE:
            stack.pop_all()
            return
        for disk in disks:
            for alive, each in enumerate(name.split(",")):
                disk.save(disk.path.with_suffix(f".{each}"), alive=bool(alive))


def _armed(disks: Sequence[Disk], trigger: Disk, writes: int, name: str) -> threading.Event:
    """From now on: the writes of one disk are counted, and its group is stopped within the last of them."""
    done = threading.Event()

    def trap() -> None:
        stop(disks, name, trigger)
        done.set()
        if name == GONE:
            threading.Event().wait()

    with trigger.lock:
        trigger.left, trigger.trap = writes, trap
    return done


def serve(connection: socket.socket, disk: Disk) -> None:
    """One client, until it leaves."""
    with contextlib.suppress(EOFError, OSError):
        if negotiate(connection, disk.size, HAS_FLAGS | SEND_FLUSH | SEND_FUA):
            while _request(connection, disk):
                pass


def negotiate(connection: socket.socket, size: int, flags: int) -> bool:
    """Fixed newstyle, without structured replies; False where the client leaves. flags: of the transmission."""
    connection.sendall(b"NBDMAGICIHAVEOPT" + struct.pack(">H", 3))
    receive(connection, 4)
    while True:
        _, option, length = struct.unpack(">8sII", receive(connection, 16))
        receive(connection, length)
        replies: list[tuple[int, bytes]] = [(ERR_UNSUP, b"")]
        if option in (GO, INFO):
            sizes = struct.pack(">HIII", 3, BLOCK, BLOCK, 32 << 20)
            replies = [(REP_INFO, struct.pack(">HQH", 0, size, flags)), (REP_INFO, sizes), (ACK, b"")]
        elif option == ABORT:
            replies = [(ACK, b"")]
        for kind, payload in replies:
            connection.sendall(struct.pack(">QIII", 0x3E889045565A9, option, kind, len(payload)) + payload)
        if option in (GO, ABORT):
            return bool(option == GO)


def _request(connection: socket.socket, disk: Disk) -> bool:
    _, flags, command, handle, offset, length = REQUEST.unpack(receive(connection, REQUEST.size))
    data, error = b"", 0
    if command == READ:
        data = disk.read(offset, length)
    elif command == WRITE:
        disk.write(offset, receive(connection, length), bool(flags & 1))
    elif command == FLUSH:
        error = disk.flush()
    elif command == DISCONNECT:
        return False
    else:
        error = EINVAL
    connection.sendall(REPLY.pack(REPLY_MAGIC, error, handle) + data)
    return True


def receive(connection: socket.socket, size: int) -> bytes:
    """Exactly so many bytes. Raises EOFError."""
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def listen(path: Path, served: Callable[[socket.socket], object]) -> None:
    """Serve every client that connects."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(4)
        while True:
            threading.Thread(target=served, args=(server.accept()[0],), daemon=True).start()


def main(seed: str, specifications: Sequence[str]) -> None:
    """The server process. Ctrl-C is the parent's business: it decides when the power fails."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    disks: dict[Path, Disk] = {}
    for specification in specifications:
        address, _, rest = specification.partition("=")
        file, _, model = rest.rpartition(",")
        disks[Path(address)] = Disk(Path(file), model, f"{seed}/{len(disks)}")
    for path, disk in disks.items():
        threading.Thread(target=listen, args=(path, partial(serve, disk=disk)), daemon=True).start()
    threading.Thread(target=snapshots, args=(list(disks.values()),), daemon=True).start()
    tick, reported = 0.05, 0.0
    while True:
        time.sleep(tick)
        for disk in disks.values():
            disk.write_back(tick)
        if time.monotonic() - reported > 0.1:
            reported = time.monotonic()
            for path, disk in disks.items():
                new = path.with_suffix(".new")
                new.write_text(json.dumps(disk.stats()))
                new.rename(path.with_suffix(".stats"))


class Server:
    """The disk server as a child process over existing raw files."""

    def __init__(self, folder: Path, files: Sequence[tuple[Path, str]], seed: str = "0") -> None:
        self.sockets = [folder / f"n{number}" for number in range(len(files))]
        words = [f"{path}={file},{model}" for path, (file, model) in zip(self.sockets, files, strict=True)]
        command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, seed, *words]
        pipe = subprocess.PIPE
        self.proc = subprocess.Popen(command, cwd=ROOT, preexec_fn=die_with_parent, text=True, stdin=pipe, stdout=pipe)
        end = time.monotonic() + 20
        while not all(path.exists() and path.with_suffix(".stats").exists() for path in self.sockets):
            if time.monotonic() > end or self.proc.poll() is not None:
                self.kill()
                raise RuntimeError("the disk server did not start")
            time.sleep(0.02)

    def stats(self) -> list[dict[str, int]]:
        """The counters of each disk, at most 0.2 s old."""
        return [json.loads(path.with_suffix(".stats").read_text()) for path in self.sockets]

    def snapshot(self, name: str, traps: Sequence[str] = ()) -> list[float]:
        """What a power cut now would leave, in FILE.NAME of each disk. traps: groups that are stopped within a write. The
        moment of each disk; with the name GONE nothing is written after it."""
        assert self.proc.stdin
        assert self.proc.stdout
        self.proc.stdin.write(" ".join((name, *traps)) + "\n")
        self.proc.stdin.flush()
        if not (moments := self.proc.stdout.readline().split()):
            raise RuntimeError("the disk server is gone")
        return [float(each) for each in moments]

    def kill(self) -> None:
        """The power is gone."""
        self.proc.kill()
        self.proc.communicate()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
