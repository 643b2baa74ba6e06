"""In the guest: programs that commit, report each commit to the host before the next, and later say what is left."""

import ctypes
import mmap
import os
import random
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

from .commit import RECORD, Ack, Alone, Left, Workload, number_of, record
from .databases import MariaDB, Postgres

REPLACED = ("rename", "recreate", "truncate", "punch")
LONGEST = 40  # commits of a sequence
KEEP_SIZE, PUNCH_HOLE = 1, 2  # fallocate(2)


def _fallocate(fd: int, mode: int, offset: int, length: int) -> None:
    """Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(fd, mode, ctypes.c_longlong(offset), ctypes.c_longlong(length)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


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


class Replaced(Alone):
    """Two files take turns, each commit replaces the content of one of them: its name by that of a new file (rename), the file
    (recreate), or what is in it (truncate, punch). A commit is an fsync of the file, and of its folder where names change."""

    def __init__(self, data: Path, how: str) -> None:
        self.data, self.how = data, how

    def prepare(self) -> None:
        self.data.mkdir(exist_ok=True)

    def run(self, ack: Ack) -> NoReturn:
        folder, number = os.open(self.data, os.O_RDONLY), 0
        while True:
            self.replace(number)
            if self.how != "truncate":
                os.fsync(folder)
            ack(number)
            number += 1

    def replace(self, number: int) -> None:
        name, content = self.data / f"file{number % 2}", record(number, RECORD * (1 + number % 3))
        path = self.data / "new" if self.how == "rename" else name
        if self.how == "recreate":
            path.unlink(missing_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        if self.how == "punch" and number > 1:
            size = os.fstat(fd).st_size
            _fallocate(fd, PUNCH_HOLE | KEEP_SIZE, 0, size)
            os.ftruncate(fd, len(content))
        elif self.how == "truncate":
            os.ftruncate(fd, 0)
        os.pwrite(fd, content, 0)
        os.fsync(fd)
        os.close(fd)
        if self.how == "rename":
            path.rename(name)

    def check(self) -> Left:
        left = Left()
        for each in (0, 1):
            path = self.data / f"file{each}"
            data = path.read_bytes() if path.exists() else b""
            number = number_of(data, len(data)) if len(data) >= RECORD else -1
            if (number >= 0 and number % 2 != each) or (number < 0 and data and self.how == "rename"):
                left.damage.append(f"{path.name} holds {len(data)} bytes of commit {number}")
            left.have.update(range(number + 1))
        return left


def one_of(states: Sequence[bytes | None], found: bytes | None) -> bool:
    """Is it what a file had at a moment? Between two of them a write is there from its beginning on, not always whole."""
    if found is None or found in states:
        return found in states
    for before, after in pairwise(states):
        if before is not None and after is not None:
            pairs = enumerate(zip(found, after, strict=False))
            done = next((at for at, (one, other) in pairs if one != other), min(len(found), len(after)))
            if len(found) == max(len(before), done) and found[done:] == before[done:]:
                return True
    return False


class Sequences(Alone):
    """Each commit is up to three operations on four files, from a list that the seed draws, and an fsync of all that they
    changed and of the folder. After a crash each name has what it had after some operation since the last commit."""

    NAMES = ("a", "b", "c", "d")
    NEEDS_FILE = ("append", "truncate", "rename", "unlink", "link")
    KINDS = ("write", "recreate", *NEEDS_FILE)

    def __init__(self, data: Path, seed: str) -> None:
        self.data, self.seed = data, seed

    def prepare(self) -> None:
        self.data.mkdir(exist_ok=True)

    def operations(self, number: int) -> list[tuple[str, str, str, int]]:
        """(kind, name, other name, size) of a commit."""
        draw, found = random.Random(f"{self.seed}/{number}"), []
        for _ in range(draw.randint(1, 3)):
            name, other = draw.sample(self.NAMES, 2)
            found.append((draw.choice(self.KINDS), name, other, draw.randrange(1, 40000)))
        return found

    @staticmethod
    def content(number: int, name: str, size: int) -> bytes:
        return (random.Random(f"{number}{name}").randbytes(64) * (size // 64 + 1))[:size]

    def states(self) -> Iterator[tuple[int, dict[str, bytes]]]:
        """Each commit with what each name has after each of its system calls. Two names may be of one file."""
        files: dict[str, bytearray] = {}

        def now(commit: int) -> tuple[int, dict[str, bytes]]:
            return commit, {each: bytes(data) for each, data in files.items()}

        for commit in range(LONGEST):
            for kind, name, other, size in self.operations(commit):
                kind = kind if name in files or kind not in self.NEEDS_FILE else "write"
                body = self.content(commit, name, size)
                if kind in ("recreate", "link") and files.pop(name if kind == "recreate" else other, None) is not None:
                    yield now(commit)
                if kind in ("write", "recreate") and name not in files:
                    files[name] = bytearray()
                    yield now(commit)
                match kind:
                    case "write" | "recreate":
                        files[name][: len(body)] = body
                    case "append":
                        files[name] += body
                    case "truncate":
                        del files[name][size:]
                    case "rename" if files.get(other) is not files[name]:  # else rename(2) does nothing
                        files[other] = files.pop(name)
                    case "unlink":
                        del files[name]
                    case "link":
                        files[other] = files[name]
                yield now(commit)

    def run(self, ack: Ack) -> NoReturn:
        folder, number = os.open(self.data, os.O_RDONLY), 0
        while True:
            for operation in self.operations(number):
                self.do(number, *operation)
            for path in self.data.iterdir():
                fd = os.open(path, os.O_RDONLY)
                os.fsync(fd)
                os.close(fd)
            os.fsync(folder)
            ack(number)
            number += 1

    def do(self, number: int, kind: str, name: str, other: str, size: int) -> None:
        path, target = self.data / name, self.data / other
        kind = kind if path.exists() or kind not in self.NEEDS_FILE else "write"
        body = self.content(number, name, size)
        match kind:
            case "write" | "recreate":
                if kind == "recreate":
                    path.unlink(missing_ok=True)
                fd = os.open(path, os.O_RDWR | os.O_CREAT)
                os.pwrite(fd, body, 0)
                os.close(fd)
            case "append":
                with path.open("ab", buffering=0) as file:
                    file.write(body)
            case "truncate":
                os.truncate(path, min(size, path.stat().st_size))
            case "rename":
                path.rename(target)
            case "unlink":
                path.unlink()
            case "link":
                target.unlink(missing_ok=True)
                target.hardlink_to(path)

    def check(self) -> Left:
        """The newest commit at which each name has what it may have."""
        found = {path.name: path.read_bytes() for path in self.data.iterdir()}
        if not found:
            return Left()
        every = list(self.states())
        for number in reversed(range(LONGEST)):
            since = [state for commit, state in every if commit == number - 1][-1:] or [{}]
            since += [state for commit, state in every if commit == number]
            if all(one_of([state.get(name) for state in since], found.get(name)) for name in self.NAMES):
                return Left(set(range(number)))
        return Left(damage=[f"of no moment: { ({name: len(data) for name, data in found.items()}) }"])


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
        **{how: lambda how=how: Replaced(data / "files", how) for how in REPLACED},  # type: ignore[misc]
        **{f"sequence{seed}": lambda seed=seed: Sequences(data / "files", seed) for seed in "0123456789"},  # type: ignore[misc]
        "pair": lambda: Pair(data, log),
        "pair-direct": lambda: Pair(data, log, direct=True),
        "pair-never": lambda: Pair(data, log, flush=lambda _: None),
        "postgres": lambda: Postgres(data, log),
        "postgres-async": lambda: Postgres(data, log, "synchronous_commit=off"),
        "postgres-never": lambda: Postgres(data, log, "fsync=off"),
        "innodb": lambda: MariaDB(data, log),
        # a page that is written flushes the log first
        "innodb-late": lambda: MariaDB(
            data, log, "--innodb-flush-log-at-trx-commit=2", "--innodb-max-dirty-pages-pct=90"
        ),
        "innodb-no-fsync": lambda: MariaDB(data, log, "--innodb-flush-method=O_DIRECT_NO_FSYNC"),
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
