"""In the guest: programs that commit, report each commit to the host before the next, and later say what is left."""

import mmap
import os
import random
import sqlite3
import struct
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NoReturn

from .commit import RECORD, Ack, Alone, Left, Workload, number_of, record
from .postgres import Postgres


class Append(Alone):
    """Appends of 8 KiB records; commit: fsync after each, with O_DIRECT or without, or O_DSYNC, or nothing at all (for
    sync=always)."""

    def __init__(self, data: Path, log: Path, commit: str = "fsync") -> None:
        self.file, self.commit = data / "records", commit

    def prepare(self) -> None:
        self.file.touch()

    def run(self, ack: Ack) -> NoReturn:
        fd = os.open(self.file, os.O_RDWR | {"dsync": os.O_DSYNC, "direct": os.O_DIRECT}.get(self.commit, 0))
        memory = mmap.mmap(-1, RECORD)  # O_DIRECT wants it aligned
        number = 0
        while True:
            memory[:] = record(number)
            os.pwrite(fd, memory, number * RECORD)
            if self.commit in ("fsync", "direct"):
                os.fsync(fd)
            ack(number)
            number += 1

    def check(self) -> Left:
        left = Left()
        with self.file.open("rb") as file:
            for number in range(os.fstat(file.fileno()).st_size // RECORD):
                try:
                    data = os.pread(file.fileno(), RECORD, number * RECORD)
                except OSError as error:
                    left.damage.append(f"record {number}: {error.strerror}")
                    continue
                found = number_of(data)
                if found == number:
                    left.have.add(number)
                elif data.strip(b"\0"):
                    left.damage.append(f"record {number} is torn or wrong ({found})")
        return left


class Mapped(Alone):
    """Records of 4 KiB into a mapping, msync after each; a ring of 4096 records."""

    RING, SIZE = 4096, 4096

    def __init__(self, data: Path, log: Path) -> None:
        self.file = data / "mapped"

    def prepare(self) -> None:
        self.file.write_bytes(bytes(self.RING * self.SIZE))

    def run(self, ack: Ack) -> NoReturn:
        with self.file.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            number = 0
            while True:
                place = number % self.RING * self.SIZE
                memory[place : place + self.SIZE] = record(number, self.SIZE)
                memory.flush(place, self.SIZE)
                ack(number)
                number += 1

    def check(self) -> Left:
        left, data = Left(), self.file.read_bytes()
        for place in range(self.RING):
            block = data[place * self.SIZE : (place + 1) * self.SIZE]
            found = number_of(block, self.SIZE)
            if found >= 0 and found % self.RING == place:
                left.have.update(range(place, found + 1, self.RING))  # what it overwrote was there before
            elif block.strip(b"\0"):
                left.damage.append(f"block {place} is torn or wrong")
        return left


class Sqlite(Alone):
    """One INSERT a transaction, WAL journal."""

    def __init__(self, data: Path, log: Path, synchronous: str) -> None:
        self.file, self.synchronous = data / "sqlite.db", synchronous

    def connect(self) -> sqlite3.Connection:
        base = sqlite3.connect(self.file, isolation_level=None)
        base.execute("PRAGMA journal_mode=WAL")
        base.execute(f"PRAGMA synchronous={self.synchronous}")
        base.execute("PRAGMA wal_autocheckpoint=200")
        return base

    def prepare(self) -> None:
        base = self.connect()
        base.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, body BLOB)")
        base.close()

    def run(self, ack: Ack) -> NoReturn:
        number = 0
        with closing(self.connect()) as base:
            while True:
                base.execute("INSERT INTO t VALUES (?, ?)", (number, os.urandom(500)))
                ack(number)
                number += 1

    def check(self) -> Left:
        left = Left()
        base = None
        try:
            base = self.connect()
            left.have = {row[0] for row in base.execute("SELECT n FROM t")}
            words = [row[0] for row in base.execute("PRAGMA integrity_check")]
            left.damage = [] if words == ["ok"] else words
        except sqlite3.Error as error:
            left.damage.append(f"sqlite: {error}")
        finally:
            if base:
                base.close()
        return left


class Pair(Alone):
    """The shape of every database, small: a log with fsync in one place, data pages and checkpoints in another.

    Commit n goes to the log. After 25 commits a checkpoint writes their pages (page n % 64), fsyncs them, starts a new log
    that says so in its head, and removes the old one. flush: what it does instead of fsync. direct: pages are written
    with O_DIRECT.
    """

    PAGES, EVERY = 64, 25

    def __init__(
        self, data: Path, log: Path, *, flush: Callable[[int], object] = os.fsync, direct: bool = False
    ) -> None:
        self.pages, self.log, self.flush, self.direct = data / "pages", log, flush, direct

    def prepare(self) -> None:
        self.pages.write_bytes(bytes(self.PAGES * RECORD))
        os.close(self.start_log(0))

    def start_log(self, number: int) -> int:
        fd = os.open(self.log / f"log-{number:08d}", os.O_RDWR | os.O_CREAT)
        os.write(fd, record(number))
        self.flush(fd)
        folder = os.open(self.log, os.O_RDONLY)
        self.flush(folder)
        os.close(folder)
        return fd

    def run(self, ack: Ack) -> NoReturn:
        pages, log = os.open(self.pages, os.O_RDWR | (os.O_DIRECT if self.direct else 0)), self.start_log(0)
        memory = mmap.mmap(-1, RECORD)
        number = since = 0
        while True:
            os.write(log, record(number))
            self.flush(log)
            ack(number)
            number += 1
            if number - since == self.EVERY:
                for each in range(since, number):
                    memory[:] = record(each)
                    os.pwrite(pages, memory, each % self.PAGES * RECORD)
                self.flush(pages)
                new = self.start_log(number)
                os.unlink(self.log / f"log-{since:08d}")
                os.close(log)
                since, log = number, new

    def check(self) -> Left:
        left, newest = Left(), -1
        data = self.pages.read_bytes()
        for place in range(self.PAGES):
            found = number_of(data[place * RECORD : (place + 1) * RECORD])
            newest = max(newest, found)
            left.have.update(range(place, found + 1, self.PAGES))
        begins, ends = 0, -1
        for path in sorted(self.log.glob("log-*")):
            records = path.read_bytes()
            numbers = [number_of(records[at : at + RECORD]) for at in range(0, len(records), RECORD)]
            if numbers and numbers[0] >= 0:
                begins, ends = numbers[0], max(ends, numbers[0] - 1, *numbers)
                left.have.update(each for each in numbers[1:] if each >= 0)
        if newest > ends:
            left.damage.append(f"the data is of commit {newest}, the log ends with {ends}")
        if missing := [number for number in range(begins) if number not in left.have]:
            left.damage.append(
                f"the log starts after commit {begins - 1}, the data lacks {len(missing)} of those before"
            )
        return left


class Pages(Alone):
    """Checkpoints: some of 256 pages rewritten in place, then one fsync. A page carries its generation every 16 bytes, so that
    a torn one shows both and the byte at which they meet. direct: with O_DIRECT. before: writes of so many bytes behind the
    pages, before each page, as other files of the same dataset bring records of other lengths into its log."""

    PAGES, STEP = 256, 16

    def __init__(
        self, data: Path, log: Path, size: int, *, each: int = 32, before: Sequence[int] = (), direct: bool = False
    ) -> None:
        self.file, self.size, self.each, self.before, self.direct = data / "pages", size, each, before, direct

    def chosen(self, number: int) -> list[int]:
        """The pages that a checkpoint rewrites."""
        return random.Random(number).sample(range(self.PAGES), self.each)

    def page(self, number: int) -> bytes:
        """Its generation, and bytes that do not compress, over and over; a check sum at the end."""
        body = bytearray(os.urandom(self.size))
        for at, byte in enumerate(struct.pack("<Q", number)):
            body[at :: self.STEP] = bytes([byte]) * (self.size // self.STEP)
        del body[-4:]
        return bytes(body) + struct.pack("<I", zlib.crc32(body))

    def prepare(self) -> None:
        with self.file.open("wb") as file:
            for _ in range(self.PAGES):
                file.write(self.page(0))
            file.flush()
            os.fsync(file.fileno())
        os.sync()

    def run(self, ack: Ack) -> NoReturn:
        fd = os.open(self.file, os.O_RDWR | (os.O_DIRECT if self.direct else 0))
        memory = mmap.mmap(-1, self.size)  # O_DIRECT wants it aligned
        number = 0
        while True:
            for place in self.chosen(number):
                for size in self.before:
                    os.pwrite(fd, bytes(size), self.PAGES * self.size)
                memory[:] = self.page(number + 1)
                os.pwrite(fd, memory, place * self.size)
            os.fsync(fd)
            ack(number)
            number += 1

    def check(self) -> Left:
        left, newest = Left(), [0] * self.PAGES
        data = self.file.read_bytes()
        for place in range(self.PAGES):
            page = data[place * self.size : (place + 1) * self.size]
            newest[place] = number_of(page, self.size)
            if newest[place] < 0:
                marks = [page[at : at + 8] for at in range(0, self.size - self.STEP, self.STEP)]
                at = next((i * self.STEP for i, mark in enumerate(marks) if mark != marks[0]), -1)
                old, new = (int.from_bytes(mark, "little") for mark in (marks[-1], marks[0]))
                left.damage.append(f"page {place} is torn at byte {at}: generation {new}, then {old}")
                newest[place] = new
        last = max(newest)
        left.have = {n for n in range(last) if all(newest[place] > n for place in self.chosen(n))}
        return left


def workload(name: str, data: Path, log: Path) -> Workload:
    """By its name in matrix.toml."""
    kinds: dict[str, Callable[[], Workload]] = {
        "fsync": lambda: Append(data, log, "fsync"),
        "direct": lambda: Append(data, log, "direct"),
        "dsync": lambda: Append(data, log, "dsync"),
        "buffered": lambda: Append(data, log, "nothing"),
        "mmap": lambda: Mapped(data, log),
        "sqlite-full": lambda: Sqlite(data, log, "FULL"),
        "sqlite-normal": lambda: Sqlite(data, log, "NORMAL"),
        "pair": lambda: Pair(data, log),
        "pair-direct": lambda: Pair(data, log, direct=True),
        "pair-never": lambda: Pair(data, log, flush=lambda _: None),
        "postgres": lambda: Postgres(data, log),
        "postgres-async": lambda: Postgres(data, log, "synchronous_commit=off"),
        "pages16-direct": lambda: Pages(data, log, 16384, direct=True),
        # a record is its page and 192 bytes, a log block holds 130,888: what is left before the 8th page (2.1) or the 15th is
        # more than the space that the log would rather waste, and less than a record
        "pages4-mixed": lambda: Pages(data, log, 4096, each=240, before=(152,)),
        "pages8-mixed": lambda: Pages(data, log, 8192, each=160, before=(152,)),
        "pages16-mixed": lambda: Pages(data, log, 16384, each=80, before=(1936,)),
        # with sync=always, each in a block of its own, whose length follows from those before
        "pages16-apart": lambda: Pages(data, log, 16384, each=4, before=(11000,) * 9),
        **{f"pages{size}": lambda size=size: Pages(data, log, size << 10) for size in (4, 8, 16, 32)},  # type: ignore[misc]
    }
    return kinds[name]()
