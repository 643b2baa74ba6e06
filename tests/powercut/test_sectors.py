"""The checker names what is wrong with what is left: every class of damage, in every profile, by mutation."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.powercut.sectors import (
    CLASSES,
    NOTHING,
    SECTOR,
    Class,
    Damage,
    Layout,
    Receipts,
    Remains,
    check,
    expected,
    mark_of,
    parse_sector,
    slots_of,
    unit,
)
from auditor.powercut.target import CONTROL, PROFILES, RAW, layout_of

RUN = bytes(range(16))
MARK = mark_of(RUN, 1)
LAYOUTS = {name: layout_of(each, MARK, 3)._replace(slots=16 * each.each) for name, each in PROFILES.items()}
made = cache(unit)


class Disk:
    """What lies in the slots after so many commits; the newest ones are not acknowledged."""

    def __init__(self, layout: Layout, commits: int, mark: str = "") -> None:
        self.layout = layout._replace(mark=mark or layout.mark)
        self.slots: list[bytes | OSError] = [made(self.layout, slot, 0, 0) for slot in range(layout.slots)]
        for generation in range(1, commits + 1):
            self.write(generation)

    def write(self, generation: int, previous: int | None = None) -> None:
        for slot in slots_of(self.layout, generation):
            self.slots[slot] = made(self.layout, slot, generation, generation - 1 if previous is None else previous)

    def patch(self, slot: int, at: int, data: bytes) -> None:
        old = self.slots[slot]
        assert isinstance(old, bytes)
        self.slots[slot] = old[:at] + data + old[at + len(data) :]

    def check(self, layout: Layout, newest: int, failed: frozenset[int] = frozenset()) -> Remains:
        return check(layout, Receipts(newest, failed), lambda slot: self.slots[slot])


COMMITS, NEWEST = 40, 37


def wanted(layout: Layout) -> tuple[int, int]:
    """(a slot, its newest acknowledged generation): of the newest commit, whose slot nothing has overwritten."""
    slot = next(
        slot
        for slot in slots_of(layout, NEWEST)
        if not any(slot in slots_of(layout, later) for later in range(NEWEST + 1, COMMITS + 1))
    )
    return slot, NEWEST


def older(layout: Layout, slot: int) -> int:
    """The generation that lay there before."""
    return next((each for each in range(NEWEST - 1, 0, -1) if slot in slots_of(layout, each)), 0)


def lost(disk: Disk, slot: int) -> None:
    disk.slots[slot] = unit(disk.layout, slot, 0, 0)


def zeros(disk: Disk, slot: int) -> None:
    disk.slots[slot] = bytes(disk.layout.unit)


def short(disk: Disk, slot: int) -> None:
    disk.slots[slot] = b""


def earlier_session(disk: Disk, slot: int) -> None:
    disk.slots[slot] = unit(disk.layout._replace(mark=mark_of(RUN, 7)), slot, NEWEST, 0)


def stale(disk: Disk, slot: int) -> None:
    disk.slots[slot] = unit(disk.layout, slot, older(disk.layout, slot), 0)


def half(disk: Disk, slot: int) -> None:
    disk.patch(slot, 0, unit(disk.layout, slot, 0, 0)[: disk.layout.unit // 2])


def half_sector(disk: Disk, slot: int) -> None:
    disk.patch(slot, 0, unit(disk.layout, slot, NEWEST + 16, 0)[: SECTOR // 2])


def flipped(disk: Disk, slot: int) -> None:
    disk.patch(slot, 200, bytes([unit(disk.layout, slot, NEWEST, NEWEST - 1)[200] ^ 1]))


def garbage(disk: Disk, slot: int) -> None:
    disk.patch(slot, 0, b"\xa5" * SECTOR)


def misplaced(disk: Disk, slot: int) -> None:
    disk.slots[slot] = unit(disk.layout, slot ^ 1, NEWEST, 0)


def other_stream(disk: Disk, slot: int) -> None:
    disk.slots[slot] = unit(disk.layout._replace(stream=9), slot, NEWEST, 0)


def unreadable(disk: Disk, slot: int) -> None:
    disk.slots[slot] = OSError(errno.EIO, "Input/output error")


class Mutation(NamedTuple):
    make: Callable[[Disk, int], None]
    kind: Class
    words: str


MUTATIONS = [
    Mutation(lost, "LOST", "what the session began with"),
    Mutation(zeros, "LOST", "zeros"),
    Mutation(short, "LOST", "behind the end of the file"),
    Mutation(earlier_session, "LOST", "of an earlier session"),
    Mutation(stale, "STALE", "generation"),
    Mutation(half, "TORN", "generation 0 and generation 37"),
    Mutation(half_sector, "TORN", "begins with generation 53 and ends with 37"),
    Mutation(flipped, "CORRUPT", "its check sum is wrong"),
    Mutation(garbage, "CORRUPT", "its check sum is wrong"),
    Mutation(misplaced, "CORRUPT", "it belongs to stream 3"),
    Mutation(other_stream, "CORRUPT", "it belongs to stream 9"),
    Mutation(unreadable, "CORRUPT", "Input/output error"),
]


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_whole_is_no_damage(name: str) -> None:
    layout = LAYOUTS[name]
    disk = Disk(layout, COMMITS)
    left = disk.check(layout, NEWEST)
    assert (left.damage, left.missing, left.newest) == ((), 0, COMMITS)
    assert left.checked == sum(each > 0 for each in expected(layout, Receipts(NEWEST)))


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: str(each.make.__name__))
def test_every_class_of_damage_is_named(name: str, mutation: Mutation) -> None:
    """One unit of an acknowledged commit is wrong: one finding of it, and the order where a later record shows it."""
    layout = LAYOUTS[name]
    if mutation.kind == "TORN" and mutation.make is half and layout.atomic == 1:
        expected_kind: Class = "LOST"  # nobody promised that the unit is whole: a part of what was acknowledged is gone
    else:
        expected_kind = mutation.kind
    disk = Disk(layout, COMMITS)
    slot, generation = wanted(layout)
    mutation.make(disk, slot)
    left = disk.check(layout, NEWEST)
    here = [each for each in left.damage if each.kind != "REORDERED"]
    assert [(each.kind, each.stream, each.slot, each.expected, each.acknowledged) for each in here] == [
        (expected_kind, 3, slot, generation, True)
    ]
    assert mutation.words in here[0].found
    assert left.missing == 1
    later = [each for each in left.damage if each.kind == "REORDERED"]
    assert {(each.slot, each.expected) for each in later} == {(slot, NEWEST)}, (
        "commit 38 was begun after the flush of 37"
    )


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_suffix_that_is_gone_is_in_order(name: str) -> None:
    layout = LAYOUTS[name]
    disk = Disk(layout, NEWEST - 5)
    left = disk.check(layout, NEWEST)
    assert left.missing > 0
    assert {each.kind for each in left.damage} <= {"LOST", "STALE"}


@pytest.mark.parametrize("name", LAYOUTS)
def test_nothing_acknowledged_nothing_lost(name: str) -> None:
    """Any subset of the units that were in flight, from old to new."""
    layout = LAYOUTS[name]
    disk = Disk(layout, 20)
    for slot in slots_of(layout, 21)[::2]:
        disk.slots[slot] = unit(layout, slot, 21, 20)
    assert disk.check(layout, 20).damage == ()
    assert Disk(layout, 0).check(layout, 0).damage == ()


def test_a_drive_may_tear_between_its_blocks_and_not_within() -> None:
    layout = layout_of(RAW, MARK, 0, atomic=1)._replace(slots=16)
    disk = Disk(layout, 20)
    (slot,) = slots_of(layout, 21)
    disk.patch(slot, 0, unit(layout, slot, 21, 20)[: 3 * SECTOR])
    assert disk.check(layout, 20).damage == ()
    (torn,) = disk.check(layout._replace(atomic=8), 20).damage
    assert torn == Damage("TORN", 0, slot, 5, "generation 5 and generation 21", acknowledged=False)


def test_a_flush_that_failed_counts_for_neither_side() -> None:
    layout = LAYOUTS["fsync"]
    disk = Disk(layout, 35)
    disk.slots[slots_of(layout, 36)[0]] = unit(layout, slots_of(layout, 36)[0], 20, 19)
    disk.write(37, 35)
    assert disk.check(layout, 37, frozenset({36})).damage == ()
    assert [each.kind for each in disk.check(layout, 37).damage] == ["STALE"]


def test_a_control_stream_is_counted_and_has_no_order() -> None:
    layout = layout_of(CONTROL, MARK, 1000)._replace(slots=16)
    disk = Disk(layout, 12)
    for generation in (9, 11):
        disk.slots[generation - 1] = unit(layout, generation - 1, 0, 0)
    left = disk.check(layout, 12)
    assert (left.checked, left.missing, {each.kind for each in left.damage}) == (12, 2, {"LOST"})


def test_a_record_that_rests_on_what_is_gone() -> None:
    """Also where the witness has no acknowledgement of either: the record itself says what was flushed before it."""
    layout = LAYOUTS["fsync"]
    disk = Disk(layout, 30)
    disk.slots[slots_of(layout, 29)[0]] = unit(layout, slots_of(layout, 29)[0], 13, 12)
    left = disk.check(layout, 20)
    assert [(each.kind, each.expected) for each in left.damage] == [("REORDERED", 29)]


def test_a_generation_in_a_slot_that_it_does_not_write() -> None:
    layout = LAYOUTS["fsync"]
    sector = unit(layout, 5, 37, 36)[:SECTOR]
    assert parse_sector(layout, 5, 0, sector) == ("wrong", NOTHING, 0, "generation 37 does not write this slot")


def test_sectors_do_not_compress_and_no_two_are_alike() -> None:
    import zlib

    layout = LAYOUTS["pages16"]
    data = b"".join(unit(layout, slot, generation, 0) for slot in range(8) for generation in (1, 2))
    assert len(zlib.compress(data, 9)) > 0.85 * len(data)
    assert len({data[at : at + SECTOR] for at in range(0, len(data), SECTOR)}) == len(data) // SECTOR


@given(st.integers(1, 10**12), st.sampled_from(sorted(LAYOUTS)))
def test_a_commit_writes_different_slots(generation: int, name: str) -> None:
    layout = LAYOUTS[name]
    slots = slots_of(layout, generation)
    assert len(set(slots)) == layout.each == len(slots)
    assert all(0 <= each < layout.slots for each in slots)


@given(st.binary(max_size=600), st.integers(0, 40))
def test_anything_may_lie_there(data: bytes, newest: int) -> None:
    """No content of a drive breaks the checker, and none of it is taken for ours."""
    layout = LAYOUTS["mmap"]
    left = check(layout, Receipts(newest), lambda slot: data)
    assert left.newest == 0
    assert left.damage
    assert {each.kind for each in left.damage} <= set(CLASSES)
    assert left.missing == left.checked


@pytest.mark.parametrize(
    "changes",
    [{"mark": "x"}, {"mark": "00"}, {"slots": 3}, {"slots": 0}, {"slots": 1 << 17}, {"sectors": 0}, {"sectors": 1000},
     {"each": 0}, {"each": 32}, {"atomic": 3}, {"atomic": 0}, {"base": 1}, {"base": -512}, {"stream": -1}, {"stream": 1 << 16}],
)  # fmt: skip
def test_what_no_stream_can_be(changes: dict[str, object]) -> None:
    assert LAYOUTS["fsync"].fault() == ""
    assert LAYOUTS["fsync"]._replace(**changes).fault()  # type: ignore[arg-type]
