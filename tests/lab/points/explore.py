"""Every crash point of one recorded run, judged by OpenZFS's own import, claim and replay on what the crash leaves."""

from __future__ import annotations

import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab.points.recording import MARKS, Block, Entry, Kind, log_blocks, read
from tests.lab.points.workload import HARM, Finding, Observation, Promise, Script, judge

SIZE = 64 << 20  # of a device, as in points.c
SECTOR = 4096
HANG_S = 600  # a check takes a tenth of a second, a sweep of torn.py some
REMEMBERED = 48  # results that a point is compared with

Write = tuple[str, int, bytes]  # device, offset, data
Extent = tuple[str, int, int]  # device, from, to


class Point(NamedTuple):
    """A crash. at: after so many entries; kind: what is lost of the writes that no flush followed; kept: what is not."""

    at: int
    kind: str
    kept: tuple[Write, ...]


def subsets(count: int, width: int) -> Iterator[tuple[str, frozenset[int]]]:
    """Of so many writes those that are kept, bounded: none, each alone, each missing, halves. Of more than width writes every
    nth is tried alone and missing."""
    everything = frozenset(range(count))
    yield "none", frozenset()
    step = max(1, -(-count // width))
    for one in range(0, count, step):
        yield "alone", frozenset((one,))
        yield "missing", everything - {one}
    yield from (("half", frozenset(half)) for half in (range(count // 2), range(count // 2, count)))
    yield from (("half", frozenset(range(first, count, 2))) for first in (0, 1))


def cuts(length: int) -> Iterator[tuple[str, tuple[tuple[int, int], ...]]]:
    """What is left of a log block of which not all 4 KiB arrived: a beginning of it, or all but one."""
    for sector in range(0, length, SECTOR):
        if sector:
            yield "beginning", ((0, sector),)
        if length > SECTOR:
            rest = ((0, sector), (min(sector + SECTOR, length), length))
            yield "gap", tuple((start, end) for start, end in rest if start < end)


def merge(extents: Iterable[Extent]) -> list[Extent]:
    found: list[Extent] = []
    for device, start, end in sorted(extents):
        if found and found[-1][0] == device and start <= found[-1][2]:
            found[-1] = device, found[-1][1], max(end, found[-1][2])
        else:
            found.append((device, start, end))
    return found


class Points:
    """The points of a recording, in order. lying: drives that acknowledge a flush and do nothing. width: see subsets().
    cut: so many log blocks are torn at each 4 KiB. stride: a prefix after each nth write."""

    def __init__(
        self, entries: Sequence[Entry], *, width: int = 16, lying: bool = False, cut: int = 2, stride: int = 1
    ) -> None:
        self.entries, self.width, self.lying, self.stride = entries, width, lying, stride
        self.blocks = {each.entries[-1]: each for each in log_blocks(entries) if each.length > SECTOR} if cut else {}
        self.left = cut
        self.pending: list[tuple[int, Entry]] = []

    def walk(self, disks: Disks, start: int) -> Iterator[Point]:
        """disks follow: they hold what is durable for sure."""
        for number, entry in enumerate(self.entries):
            after = number + 1
            if entry.kind == Kind.FLUSH and not self.lying:
                if number >= start:
                    yield from self._subsets(number, entry.device)
                self._flush(disks, entry.device)
            elif entry.kind == Kind.WRITE and entry.device == MARKS:
                if number >= start:
                    yield from self._subsets(after, None)
            elif entry.kind == Kind.WRITE:
                self.pending.append((number, entry))
                if number < start:
                    continue
                if self.stride and number % self.stride == 0:
                    yield Point(after, "prefix", tuple(_writes(self.pending)))
                if self.left and (block := self.blocks.get(number)):
                    self.left -= 1
                    yield from self._cuts(after, block)
            if self.lying and number < start:
                self._flush(disks, None)
        if self.stride:
            yield Point(len(self.entries), "prefix", tuple(_writes(self.pending)))

    def _flush(self, disks: Disks, device: str | None) -> None:
        done = [each for each in self.pending if device in (None, each[1].device)]
        disks.settle(_writes(done))
        self.pending = [each for each in self.pending if device not in (None, each[1].device)]

    def _subsets(self, at: int, device: str | None) -> Iterator[Point]:
        """Of the writes to this device, or to all, while the others have all or nothing."""
        mine = [each for each in self.pending if device in (None, each[1].device)]
        others = [each for each in self.pending if device not in (None, each[1].device)]
        if self.lying:
            mine, others = mine[-self.width :], mine[: -self.width]
        if not mine:
            return
        for rest in (others, []) if others and not self.lying else (others,):
            for kind, kept in subsets(len(mine), self.width):
                chosen = sorted(rest + [mine[number] for number in kept])
                yield Point(at, kind, tuple(_writes(chosen)))

    def _cuts(self, at: int, block: Block) -> Iterator[Point]:
        before = tuple(_writes(each for each in self.pending if each[0] not in block.entries))
        data = b"".join(self.entries[number].data for number in block.entries)
        for kind, parts in cuts(block.length):
            left = tuple((block.device, block.offset + start, data[start:end]) for start, end in parts)
            yield Point(at, kind, before + left)


def _writes(pending: Iterable[tuple[int, Entry]]) -> Iterator[Write]:
    return ((entry.device, entry.offset, entry.data) for _, entry in pending)


class Disks:
    """The devices of a pool, and what of them is durable for sure. A crash is laid over that, and taken off again. write: to
    what the check looks at: files, or the drives of a guest."""

    def __init__(self, write: Callable[[str, int, bytes], object], durable: Mapping[str, bytes | bytearray]) -> None:
        self.write = write
        self.durable = {name: bytearray(data) for name, data in durable.items()}
        self.image = {name: bytearray(data) for name, data in durable.items()}
        self.dirty: list[Extent] = []
        for name, data in durable.items():
            write(name, 0, bytes(data))

    def settle(self, writes: Iterable[Write]) -> None:
        for device, offset, data in writes:
            for to in (self.durable, self.image):
                to[device][offset : offset + len(data)] = data
            self.write(device, offset, data)

    def lay(self, writes: Iterable[Write]) -> None:
        for device, offset, data in writes:
            self.image[device][offset : offset + len(data)] = data
            self.write(device, offset, data)
            self.dirty.append((device, offset, offset + len(data)))

    def restore(self) -> None:
        for device, start, end in merge(self.dirty):
            self.image[device][start:end] = self.durable[device][start:end]
            self.write(device, start, bytes(memoryview(self.durable[device])[start:end]))
        self.dirty = []

    def content(self, extents: Iterable[Extent]) -> tuple[bytes, ...]:
        return tuple(bytes(memoryview(self.image[device])[start:end]) for device, start, end in extents)

    def holds(self, result: Result) -> bool:
        """The newest differ most often in what was written last: from the end on."""
        pairs = zip(reversed(result.extents), reversed(result.content), strict=True)
        return all(self.image[device].startswith(data, start) for (device, start, _), data in pairs)


class Files:
    """The devices of points.c."""

    def __init__(self, folder: Path, devices: Iterable[str]) -> None:
        self.opened, self.files = ExitStack(), dict[str, int]()
        folder.mkdir(parents=True, exist_ok=True)
        for each in folder.iterdir():
            each.unlink()
        for name in devices:
            self.files[name] = os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o600)
            self.opened.callback(os.close, self.files[name])
            os.ftruncate(self.files[name], SIZE)

    def write(self, device: str, offset: int, data: bytes) -> None:
        os.pwrite(self.files[device], data, offset)


class Result(NamedTuple):
    """What a check read, and from where: a disk with the same bytes there gives the same result."""

    extents: tuple[Extent, ...]
    content: tuple[bytes, ...]
    seen: Any
    entries: tuple[Entry, ...]


class Program(NamedTuple):
    """points.c of a line, as build.sh makes it."""

    line: str
    release: str
    command: Path

    def run(self, folder: Path, log: Path, script: Script, **environment: str) -> list[Entry]:
        """Records what a script does. Writes lag, so that a flush that waits for none of them overtakes them."""
        folder.mkdir(parents=True, exist_ok=True)
        for each in folder.iterdir():
            each.unlink()
        self._call(folder, log, ["run", str(folder)], script.text, {"RECORD_LAG": "100", **environment})
        return read(log)

    def check(self, folder: Path, log: Path, script: Script) -> tuple[Observation, list[Entry]]:
        arguments = ["check", str(folder), *script.devices, "of", *script.datasets]
        text = self._call(folder, log, arguments, "", {})
        return Observation.parse(text), read(log)

    def _call(self, folder: Path, log: Path, arguments: list[str], script: str, environment: Mapping[str, str]) -> str:
        log.write_bytes(b"")
        environment = {**os.environ, "RECORD_FOLDER": str(folder), "RECORD_LOG": str(log), **environment}
        command = [str(self.command), *arguments]
        try:
            done = subprocess.run(
                command, input=script, capture_output=True, text=True, env=environment, timeout=HANG_S, errors="replace"
            )
        except subprocess.TimeoutExpired:
            if arguments[0] == "run":  # part of a recording proves nothing
                raise
            return "hang\n"
        if done.returncode and arguments[0] == "run":
            raise RuntimeError(f"points run ends with {done.returncode}: {done.stderr[-500:]}")
        crash = f"crash {done.returncode} {' '.join(done.stderr.split())[-200:]}\n" if done.returncode else ""
        return done.stdout + crash


@dataclass
class Tally:
    """points: tried; pruned: of which the result was known; the others by what was found. at_prefix: where each write so far
    was kept, as in a kernel crash, which takes no drive's cache."""

    points: int = 0
    pruned: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    at_prefix: Counter[str] = field(default_factory=Counter)
    torn_at: Counter[int] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def count(self, point: Point, findings: Collection[Finding]) -> None:
        self.points += 1
        self.kinds[point.kind] += 1
        for what in {each.what for each in findings}:
            self.found[what] += 1
            self.at_prefix[what] += point.kind == "prefix"
        self.torn_at.update({each.at for each in findings if each.what == "torn"})
        for each in findings:
            words = (
                f"{each.what}: {point.kind} at entry {point.at}: {each.slot.dataset} {each.slot.offset}: {each.words}"
            )
            if sum(line.startswith(f"{each.what}:") for line in self.examples) < 3:
                self.examples.append(words)

    def row(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "points": self.points,
            "pruned": self.pruned,
            "seconds": round(self.seconds, 1),
            "kinds": dict(self.kinds),
            "found": dict(self.found),
            "torn_at": dict(self.torn_at),
            "examples": self.examples,
        }

    def add(self, other: Tally) -> None:
        self.points += other.points
        self.pruned += other.pruned
        self.kinds += other.kinds
        self.found += other.found
        self.at_prefix += other.at_prefix
        self.torn_at += other.torn_at
        self.examples += other.examples
        self.seconds += other.seconds


class Explorer(ABC):
    """Tries the points of a recording. prune=False runs every check."""

    def __init__(self, devices: Collection[str], *, prune: bool = True) -> None:
        self.devices, self.prune = devices, prune
        self.results: list[Result] = []

    @abstractmethod
    def disks(self, durable: Mapping[str, bytes | bytearray] | None = None) -> Disks:
        """Of the check: as before the first write, or as given."""

    @abstractmethod
    def check(self) -> tuple[Any, list[Entry]]:
        """Imports what is on the disks: what it saw, and what it read and wrote."""

    @abstractmethod
    def findings(self, seen: Any, entries: Sequence[Entry], at: int) -> list[Finding]:
        """What is wrong with it after so many entries."""

    def start(self, entries: Sequence[Entry]) -> int:
        """The first acknowledgement: before it nothing is promised, and a run that ends before it proves nothing."""
        return next(number for number, each in enumerate(entries) if each.device == MARKS)

    def explore(self, entries: Sequence[Entry], points: Points) -> Tally:
        tally, begun, disks = Tally(), time.monotonic(), self.disks()
        for point in points.walk(disks, self.start(entries)):
            tally.count(point, self.findings(self.see(disks, point, tally).seen, entries, point.at))
        tally.seconds = time.monotonic() - begun
        return tally

    def see(self, disks: Disks, point: Point, tally: Tally) -> Result:
        disks.lay(point.kept)
        result = next((each for each in self.results if disks.holds(each)), None) if self.prune else None
        if result:
            tally.pruned += 1
        else:
            seen, entries = self.check()
            extents = tuple(_read(entries, self.devices))
            result = Result(extents, disks.content(extents), seen, tuple(entries))
            disks.dirty += [(each.device, each.offset, each.end) for each in entries if each.kind == Kind.WRITE]
            self.results = [result, *self.results[: REMEMBERED - 1]]
        disks.restore()
        return result

    def omit(self, entries: Sequence[Entry], since: int, needed: Sequence[int]) -> int:
        """Leaves out each of these writes before the last acknowledgement by itself: of how many it is noticed. since: all
        before is durable."""
        last = max(number for number, each in enumerate(entries) if each.device == MARKS)
        noticed, tally, disks = 0, Tally(), self.disks()
        disks.settle((each.device, each.offset, each.data) for each in entries[:since] if to_device(each))
        for left_out in needed:
            kept = [each for n, each in enumerate(entries[since:last], since) if n != left_out and to_device(each)]
            point = Point(last, "omission", tuple((each.device, each.offset, each.data) for each in kept))
            seen = self.see(disks, point, tally).seen
            noticed += any(each.what in HARM for each in self.findings(seen, entries, last + 1))
        return noticed


class UserSpace(Explorer):
    """One script on one line."""

    def __init__(self, program: Program, work: Path, script: Script, *, prune: bool = True) -> None:
        super().__init__(script.devices, prune=prune)
        self.program, self.work, self.script = program, work, script
        self.folder, self.log = work / "pool", work / "check.log"
        self.promises = script.promises()
        self.files: Files | None = None

    def disks(self, durable: Mapping[str, bytes | bytearray] | None = None) -> Disks:
        if self.files:
            self.files.opened.close()
        self.files = Files(self.folder, self.devices)
        return Disks(self.files.write, durable or {name: bytes(SIZE) for name in self.devices})

    def check(self) -> tuple[Observation, list[Entry]]:
        return self.program.check(self.folder, self.log, self.script)

    def promise(self, entries: Sequence[Entry], at: int) -> Promise:
        found: Promise = {}
        for entry in entries[:at]:
            if entry.device == MARKS:
                found = self.promises[entry.data.decode().strip()]
        return found

    def findings(self, seen: Observation, entries: Sequence[Entry], at: int) -> list[Finding]:
        return list(judge(seen, self.script.slots, self.promise(entries, at)))

    def replay(self, entries: Sequence[Entry], at: int, *, width: int, stride: int) -> Tally:
        """A crash while the check after a crash imports and replays: it must not change what the next one finds. The last
        point is a second import after the replay."""
        tally, begun, disks = Tally(), time.monotonic(), self.disks()
        disks.settle((each.device, each.offset, each.data) for each in entries[:at] if to_device(each))
        whole = self.see(disks, Point(at, "replay", ()), tally)
        self.results = []
        again = self.disks(disks.durable)
        for point in Points(whole.entries, width=width, cut=0, stride=stride).walk(again, 0):
            seen = self.see(again, point, tally).seen
            findings = self.findings(seen, entries, at)
            if seen.runs != whole.seen.runs:
                findings.append(Finding("replay differs", self.script.slots[0], words=f"at {at}"))
            tally.count(point._replace(kind="replay"), findings)
        tally.seconds = time.monotonic() - begun
        return tally


def is_exact(entries: Iterable[Entry], before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bool:
    """Is the last prefix of a recording what is on the devices, byte by byte?"""
    found = {name: bytearray(data) for name, data in before.items()}
    for each in filter(to_device, entries):
        found[each.device][each.offset : each.end] = each.data
    return all(found[name] == data for name, data in after.items())


def to_device(entry: Entry) -> bool:
    return entry.kind == Kind.WRITE and entry.device != MARKS


def _read(entries: Iterable[Entry], devices: Collection[str]) -> list[Extent]:
    return merge(
        (each.device, each.offset, each.end) for each in entries if each.kind == Kind.READ and each.device in devices
    )
