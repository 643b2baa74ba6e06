"""What a run writes, and what is left of it: sectors that identify themselves, their writer's plan and the checker. No I/O.

A stream writes units of some sectors into slots, over and over. Each commit has a generation, 1, 2, 3 and so on, and writes
one or more slots. Each sector names its stream, slot, generation and place in the unit. So any mixture of old and new, of
two places or two runs shows by itself; the checker needs only the newest acknowledged generation."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

SECTOR = 512
MAGIC = b"zauditC1"
HEAD = struct.Struct("<Q8s16sHHHHIQ")  # generation, magic, mark, stream, index, count, 0, slot, previous
TAIL = struct.Struct("<IQ")  # CRC-32 of all before it, the generation again
PAYLOAD = SECTOR - HEAD.size - TAIL.size
NOTHING = -1  # the generation of a sector that is none of this session's; 0 is what the session began with

Class = Literal["GONE", "CORRUPT", "REORDERED", "LOST", "STALE", "TORN"]
CLASSES: tuple[Class, ...] = ("GONE", "CORRUPT", "REORDERED", "LOST", "STALE", "TORN")  # the most severe first
UNITS = 1 << 16  # of one layout, at most: slots
LONGEST = 256  # sectors of a unit, at most


class Layout(NamedTuple):
    """One stream of writes. mark: 32 hexadecimal digits, of the session. slots: a power of two. each: slots that one commit
    writes. sectors: of a unit. atomic: aligned sectors that are promised to be old or new as a whole; 1 without a promise.
    flushed: a flush comes before the acknowledgement; a control stream is never flushed. base: byte of slot 0."""

    mark: str
    stream: int
    slots: int
    sectors: int
    each: int = 1
    atomic: int = 1
    flushed: bool = True
    base: int = 0

    @property
    def unit(self) -> int:
        """Bytes."""
        return self.sectors * SECTOR

    @property
    def size(self) -> int:
        """Bytes of all slots."""
        return self.slots * self.unit

    def offset(self, slot: int) -> int:
        """Of a slot, in bytes."""
        return self.base + slot * self.unit

    def fault(self) -> str:
        """Why no stream can be like this; empty where it can."""
        try:
            marked = len(bytes.fromhex(self.mark)) == 16
        except ValueError:
            marked = False
        bounds = (
            (marked, "the mark is not 16 bytes"),
            (0 <= self.stream < 1 << 16, "no number of a stream"),
            (0 < self.slots <= UNITS and self.slots & (self.slots - 1) == 0, "the slots are no power of two"),
            (0 < self.sectors <= LONGEST, "no length of a unit"),
            (0 < self.each <= self.slots, "a commit cannot write so many slots"),
            (0 < self.atomic <= self.sectors and self.sectors % self.atomic == 0, "no part of a unit is atomic"),
            (0 <= self.base < 1 << 62 and self.base % SECTOR == 0, "no place to begin"),
        )
        return next((why for held, why in bounds if not held), "")


def mark_of(run: bytes, session: int) -> str:
    """The mark of the sectors of a session: of what an earlier one left none has it."""
    return hashlib.sha256(b"zaudit powercut" + run + struct.pack("<I", session)).hexdigest()[:32]


# -- writing ------------------------------------------------------------------------------------------------------


def slots_of(layout: Layout, generation: int) -> list[int]:
    """The slots that a commit writes, all different: one after the other, or strewn by an odd stride."""
    if layout.each == 1:
        return [(generation - 1) % layout.slots]
    seed = hashlib.sha256(struct.pack("<HQ", layout.stream, generation) + bytes.fromhex(layout.mark)).digest()
    first, stride = struct.unpack_from("<II", seed)
    return [(first + number * (stride | 1)) % layout.slots for number in range(layout.each)]


def unit(layout: Layout, slot: int, generation: int, previous: int) -> bytes:
    """The bytes of a slot. previous: the newest generation of the stream whose flush had returned, 0 for none."""
    return b"".join(_sector(layout, slot, generation, previous, index) for index in range(layout.sectors))


def _sector(layout: Layout, slot: int, generation: int, previous: int, index: int) -> bytes:
    mark, place = bytes.fromhex(layout.mark), (layout.stream, index, layout.sectors, 0, slot)
    head = HEAD.pack(generation, MAGIC, mark, *place, previous)
    body = head + hashlib.shake_128(head).digest(PAYLOAD)  # does not compress, and no two are alike
    return body + TAIL.pack(zlib.crc32(body), generation)


# -- reading ------------------------------------------------------------------------------------------------------


class Sector(NamedTuple):
    """state: own; absent, of an earlier session, of zeros or of nobody; torn, begun again and not finished; wrong, with why."""

    state: Literal["own", "absent", "torn", "wrong"]
    generation: int = NOTHING
    previous: int = 0
    why: str = ""


def parse_sector(layout: Layout, slot: int, index: int, data: bytes) -> Sector:
    """What lies in the place of a sector."""
    if not data.strip(b"\0"):
        return Sector("absent", why="zeros")
    generation, magic, mark, stream, place, count, _, number, previous = HEAD.unpack_from(data)
    crc, again = TAIL.unpack_from(data, SECTOR - TAIL.size)
    if zlib.crc32(data[: SECTOR - TAIL.size]) != crc or generation != again:
        if magic == MAGIC and mark.hex() == layout.mark and generation != again:
            return Sector("torn", why=f"begins with generation {generation} and ends with {again}")
        return Sector("wrong", why="its check sum is wrong")
    if magic != MAGIC or mark.hex() != layout.mark:
        return Sector("absent", why="of an earlier session" if magic == MAGIC else "of nobody")
    if (stream, number, place, count) != (layout.stream, slot, index, layout.sectors):
        return Sector("wrong", why=f"it belongs to stream {stream}, slot {number}, sector {place}")
    if generation and slot not in slots_of(layout, generation):
        return Sector("wrong", why=f"generation {generation} does not write this slot")
    return Sector("own", generation, previous)


class Receipts(NamedTuple):
    """Of one stream: all generations up to the newest are acknowledged, but those whose flush failed. Of a control stream:
    all up to the newest were completed."""

    newest: int = 0
    failed: frozenset[int] = frozenset()


class Damage(NamedTuple):
    """found: what lies there, in words. acknowledged: a write that was acknowledged is not all there."""

    kind: Class
    stream: int
    slot: int
    expected: int
    found: str
    acknowledged: bool = True


class Remains(NamedTuple):
    """What is left of a stream. missing: slots that lack their newest acknowledged generation. newest: the newest whole
    generation. checked: slots that should hold something acknowledged."""

    stream: int
    flushed: bool
    acknowledged: int
    checked: int
    missing: int
    newest: int
    damage: tuple[Damage, ...]


def expected(layout: Layout, acknowledged: Receipts) -> list[int]:
    wanted = [0] * layout.slots
    left = layout.slots
    for generation in range(acknowledged.newest, 0, -1):
        if generation in acknowledged.failed:
            continue
        for slot in slots_of(layout, generation):
            if not wanted[slot]:
                wanted[slot] = generation
                left -= 1
        if not left:
            break
    return wanted


# slot -> its bytes, perhaps fewer than there should be, or why it cannot be read
Read = Callable[[int], bytes | OSError]


def check(layout: Layout, acknowledged: Receipts, read: Read) -> Remains:
    """What is left of a stream. Writes without an acknowledgement may be there or not, in any order: that is no damage."""
    wanted = expected(layout, acknowledged)
    damage: list[Damage] = []
    floor: list[int] = []  # the oldest generation in each slot
    causes: dict[int, int] = {}  # a generation that a record found here rests on -> the newest generation that says so
    newest = missing = 0
    for slot, want in enumerate(wanted):
        data = read(slot)
        sectors = list(_sectors(layout, slot, data))
        found = list(_judge(layout, slot, want, sectors))
        damage += found
        missing += any(each.acknowledged for each in found) and bool(want)
        floor.append(min(each.generation for each in sectors))
        if floor[-1] > 0 and floor[-1] == max(each.generation for each in sectors):
            newest = max(newest, floor[-1])
            causes[sectors[0].previous] = max(floor[-1], causes.get(sectors[0].previous, 0))
    if layout.flushed:
        damage += _reordered(layout, floor, causes)
    checked = sum(each > 0 for each in wanted)
    return Remains(layout.stream, layout.flushed, acknowledged.newest, checked, missing, newest, tuple(damage))


def _sectors(layout: Layout, slot: int, data: bytes | OSError) -> Iterator[Sector]:
    for index in range(layout.sectors):
        if isinstance(data, OSError):
            yield Sector("wrong", why=data.strerror or str(data))
        elif len(part := data[index * SECTOR : (index + 1) * SECTOR]) < SECTOR:
            yield Sector("absent", why="behind the end of the file")
        else:
            yield parse_sector(layout, slot, index, part)


def _judge(layout: Layout, slot: int, want: int, sectors: Sequence[Sector]) -> Iterator[Damage]:
    """At most one finding: what is wrong with a slot whose newest acknowledged generation is want."""
    generations = [each.generation for each in sectors]
    old = min(generations) < want
    parts = (generations[at : at + layout.atomic] for at in range(0, layout.sectors, layout.atomic))

    def damage(kind: Class, found: str) -> Damage:
        return Damage(kind, layout.stream, slot, want, found, old)

    if wrong := next((each for each in sectors if each.state == "wrong"), None):
        yield damage("CORRUPT", wrong.why)
    elif torn := next((each for each in sectors if each.state == "torn"), None):
        yield damage("TORN", torn.why)
    elif mixed := next((part for part in parts if len(set(part)) > 1), None):  # promised to be whole, and is not
        yield damage("TORN", _words(mixed))
    elif old and len(set(generations)) == 1 and generations[0] > 0:
        yield damage("STALE", f"generation {generations[0]}")
    elif old:
        words = _words(generations) if max(generations) > 0 else sectors[0].why or "what the session began with"
        yield damage("LOST", words)  # also where nothing was acknowledged: what the session began with was flushed


def _words(generations: Iterable[int]) -> str:
    found = sorted(set(generations))
    return " and ".join("nothing of this session" if each == NOTHING else f"generation {each}" for each in found)


def _reordered(layout: Layout, floor: Sequence[int], causes: dict[int, int]) -> Iterator[Damage]:
    """A record is there, and what was flushed before it was written is not: the newest that each slot lacks."""
    lacking: set[int] = set()
    for cause, effect in sorted(causes.items(), reverse=True):
        for slot in slots_of(layout, cause) if cause else ():
            if floor[slot] < cause and slot not in lacking:
                lacking.add(slot)
                found = f"generation {effect}, which was written after the flush of {cause}, is there"
                yield Damage("REORDERED", layout.stream, slot, cause, found)
