"""Scripts for points.c, and what their acknowledgements promise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

NEIGHBOURS, APART = 8 << 20, 64 << 10  # where what is written next to the pages goes
FIRST = 6 << 20  # where the first commit writes: it makes the log, which waits for a transaction group (zil_create())


class Slot(NamedTuple):
    """A range that is always written as a whole."""

    dataset: str
    offset: int
    length: int


Promise = Mapping[Slot, int]  # the generation that each slot has at least
# findings that a drive which honours flushes never causes; torn is none of them
HARM = ("lost", "import", "checksum", "unreadable", "wrong", "replay differs", "dead")
WRONG = (1 << 32) - 1  # points.c: not of this place


class Script(NamedTuple):
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    @property
    def devices(self) -> tuple[str, ...]:
        words = [line.split()[1:] for line in self.lines if line.split()[0] in ("create", "add")]
        return tuple(dict.fromkeys(word for line in words for word in line if word != "mirror"))

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(line.split()[1] for line in self.lines if line.startswith("dataset "))

    @property
    def slots(self) -> tuple[Slot, ...]:
        return tuple(dict.fromkeys(_slot(line) for line in self.lines if line.startswith("write ")))

    def promises(self) -> dict[str, Promise]:
        """Token of a commit -> what holds from it on: fsync keeps all that was written to its dataset before."""
        written: dict[Slot, int] = {}
        kept: dict[Slot, int] = {}
        found = dict[str, Promise]()
        for line in self.lines:
            verb, *words = line.split()
            if verb == "write":
                written[_slot(line)] = int(words[3])
            if verb == "txg":
                kept = dict(written)
            if verb == "commit":
                kept |= {slot: number for slot, number in written.items() if slot.dataset == words[0]}
                found[words[1]] = dict(kept)
        return found


def _slot(line: str) -> Slot:
    _, name, offset, length, *_ = line.split()
    return Slot(name, int(offset), int(length))


class Finding(NamedTuple):
    """What is wrong with a slot. at: the byte of it from which on it is of another generation."""

    what: str
    slot: Slot
    at: int = 0
    words: str = ""


class Observation(NamedTuple):
    """What points.c read after a crash. runs: of each dataset (from, to, generation)."""

    imported: int
    checksum: int
    runs: Mapping[str, tuple[tuple[int, int, int], ...]]
    trouble: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Observation:
        imported, checksum = -1, 0
        runs: dict[str, list[tuple[int, int, int]]] = {}
        trouble = []
        for line in text.splitlines():
            verb, *words = line.split()
            if verb == "import":
                imported = int(words[0])
            elif verb == "checksum":
                checksum = int(words[0])
            elif verb == "run":
                runs.setdefault(words[0], []).append((int(words[1]), int(words[2]), int(words[3])))
            else:
                trouble.append(line)
        return cls(imported, checksum, {name: tuple(each) for name, each in runs.items()}, tuple(trouble))


def generations(runs: Iterable[tuple[int, int, int]], slot: Slot) -> list[tuple[int, int]]:
    """Of one slot: (byte, generation) where a generation begins; 0 is what nobody wrote."""
    found: list[tuple[int, int]] = []
    at, end = slot.offset, slot.offset + slot.length
    for start, stop, number in runs:
        if stop <= at or start >= end:
            continue
        if start > at:
            found.append((at - slot.offset, 0))
        found.append((max(start, at) - slot.offset, number))
        at = stop
    if at < end:
        found.append((at - slot.offset, 0))
    return [each for number, each in enumerate(found) if number == 0 or found[number - 1][1] != each[1]]


def judge(seen: Observation, slots: Iterable[Slot], promise: Promise) -> Iterator[Finding]:
    """Lost: some byte is older than what was acknowledged. Torn: one slot, more than one generation."""
    nowhere = Slot("", 0, 0)
    if seen.imported != 0:
        yield Finding("import", nowhere, words=f"zpool import ends with {seen.imported}")
        return
    if seen.checksum:
        yield Finding("checksum", nowhere, words=f"{seen.checksum} checksum errors")
    for words in seen.trouble:
        yield Finding("unreadable", nowhere, words=words)
    for slot in slots:
        found = generations(seen.runs.get(slot.dataset, ()), slot)
        numbers = [number for _, number in found]
        words = ", ".join(f"{number} from byte {at}" for at, number in found)
        if WRONG in numbers:
            yield Finding("wrong", slot, words=words)
        if min(numbers) < promise.get(slot, 0):
            yield Finding("lost", slot, words=f"generation {promise[slot]} was acknowledged, found {words}")
        if len(found) > 1:
            yield Finding("torn", slot, found[1][0], words)


class Plan(NamedTuple):
    """A workload. layout: words of "create"; pages of page bytes, each after a write of neighbour bytes; how: fsync after the
    burst, or always, dsync: each write by itself, or together, as of writers at the same time."""

    name: str
    layout: str
    page: int = 16384
    record: int = 16384
    logbias: str = "latency"
    neighbour: int = 1936
    how: str = "fsync"
    together: bool = False
    datasets: tuple[str, ...] = ("a",)
    burst: int = 16
    pages: int = 32
    steps: tuple[str, ...] = ("burst", "burst", "txg", "burst")

    def script(self) -> Script:
        return Script(tuple(self._lines()))

    def _lines(self) -> Iterator[str]:
        yield f"create {self.layout}"
        for name in self.datasets:
            yield f"dataset {name} {self.record} {self.logbias}"
            yield from (f"write {name} {number * self.page} {self.page} 1 fsync" for number in range(self.pages))
        yield "txg"
        for name in self.datasets:
            yield f"write {name} {FIRST} 512 1 fsync"
            yield f"commit {name} start-{name}"
        generation, place = 1, 0
        for step in self.steps:
            if step != "burst":
                yield step
                continue
            generation += 1
            for number in range(self.burst):
                place = (place * 5 + 7) % self.pages  # not in order, as a checkpoint
                for name in self.datasets:
                    yield from self._write(name, place, number, generation)
            if self.how == "fsync" or self.together:
                yield from (f"commit {name} {name}{generation}" for name in self.datasets)

    def _write(self, name: str, place: int, number: int, generation: int) -> Iterator[str]:
        writes = [(place * self.page, self.page)]
        if self.neighbour:
            writes.insert(0, (NEIGHBOURS + number * APART, self.neighbour))
        for which, (offset, length) in enumerate(writes):
            yield f"write {name} {offset} {length} {generation} {self.how}"
            if self.how != "fsync" and not self.together:
                yield f"commit {name} {name}{generation}.{number}.{which}"


# what is tried on each line; quick: in the five minutes of CI
PLANS = (
    Plan("log", "d0 l0", steps=("burst", "burst", "txg", "burst", "burst")),
    Plan("no log", "d0"),
    Plan("throughput", "d0 l0", logbias="throughput"),
    Plan("large writes without a log", "d0", page=65536, record=65536, pages=16, burst=8),
    Plan(
        "two datasets", "d0 l0", datasets=("a", "b"), burst=6, steps=("burst", "snapshot a s", "burst", "txg", "burst")
    ),
    Plan("mirrors", "mirror d0 d1 mirror l0 l1", burst=8),
    Plan("two logs", "d0 l0 l1", burst=24),
    Plan("log added", "d0", burst=8, steps=("burst", "add l0", "burst", "txg", "burst")),
    Plan("log removed", "d0 l0", burst=8, steps=("burst", "remove l0", "burst", "txg", "burst")),
    Plan("log faulted", "d0 l0", burst=8, steps=("burst", "fault l0", "burst", "txg", "burst")),
    Plan("sync=always", "d0 l0", how="always", burst=6),
    Plan("O_DSYNC", "d0 l0", page=4096, record=16384, how="dsync", burst=6),
)
QUICK = PLANS[0]
