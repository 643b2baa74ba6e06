"""The table: which rows there are, what a change of the host does to it, and how its cost grows."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from auditor.durability.answers import Answer, Choice, Rank, Relies, all_of
from auditor.durability.copies import Copies
from auditor.durability.host import ALL, EVENTS, GONE, EventName, Host, Pool, Program, Question, Store
from auditor.durability.table import Judge, Table, answer
from tests.durability.hosts import NAME, client, host, leg, mirror, perfect, pool, raidz, ranks

DATA = mirror("d0", "d1")


def test_rows_are_the_events_that_can_happen() -> None:
    def events(given: Host) -> list[EventName]:
        return list(dict.fromkeys(event for event, _ in Judge(given).table(given.programs[NAME])))

    physical = host(pool(DATA))
    assert events(physical) == [each for each in EVENTS if each not in ("power+log", "log", "below")]
    assert events(replace(physical, virtual=True)) == [each for each in EVENTS if each not in ("power+log", "log")]
    assert events(perfect()) == [each for each in EVENTS if each != "below"]


def test_worst_choice_of_the_drive() -> None:
    given = host(pool(DATA, mirror("d2"), mirror("d3", "d4", leg("d5", in_sync=False))))
    cells = Judge(given).table(given.programs[NAME])
    assert cells["drive", "pool"].rank is Rank.LOST
    assert {reason.subject for reason in cells["drive", "pool"].why} == {"d2"}


def whole(given: Host, program: Program, event: EventName, question: Question) -> Answer:
    """The cell by each drive and each vdev for itself."""
    copies, takes = Copies(given), ALL[event].takes
    drives = [drive for each in given.pools.values() for drive in copies.touched(each, takes)] if takes else [""]
    cells = [answer(copies, program, replace(ALL[event], device=drive), question) for drive in drives]
    worst = min(cell.rank for cell in cells if cell)
    return all_of(cell for cell in cells if cell and cell.rank is worst)


def enough(relies: Relies, broken: Collection[str]) -> bool:
    """Is all kept that is relied on, when these break their promises?"""
    return all(
        sum(enough(one, broken) for one in each.sets) >= each.needed
        if isinstance(each, Choice)
        else each.name not in broken
        for each in relies
    )


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    "flaw", [{}, {"honours": False}, {"passes": None}, {"redundant": None}, {"alone": None, "party": "target"}]
)
def test_vdevs_that_are_alike_have_the_answer_of_each(flaw: dict[str, Any], several: bool) -> None:
    """Reasons and promises name every one; a vdev that shares a drive with the log is like no other."""
    names = [(f"a{i}", f"b{i}") for i in range(5)]
    stores = [client(each, **flaw) for pair in names for each in pair[: 1 + several]]
    given = host(pool(*(mirror(*pair) for pair in names), log=(mirror("a0", "s1"),), log_room=None), *stores)
    program = given.programs[NAME]
    for (event, question), cell in Judge(given).table(program).items():
        expected = whole(given, program, event, question)
        assert (cell.rank, set(cell.why)) == (expected.rank, set(expected.why))
        for broken in itertools.combinations([name for pair in names for name in pair] + ["s1", "tank"], 2):
            assert enough(cell.relies, broken) is enough(expected.relies, broken)


def wide(mirrors: int, drive: Store) -> Host:
    names = [(f"a{i}", f"b{i}") for i in range(mirrors)]
    return host(pool(*(mirror(*pair) for pair in names)), *(replace(drive, name=one) for pair in names for one in pair))


@pytest.mark.parametrize("drive", [Store(""), client(""), client("", honours=False)])
def test_mirrors_that_are_alike_are_evaluated_once(drive: Store) -> None:
    """Legs that are evaluated for the whole table."""

    def judged(mirrors: int) -> int:
        given = wide(mirrors, drive)
        judge = Judge(given)
        judge.table(given.programs[NAME])
        return judge.copies.legs.judged

    assert judged(2_000) == judged(200)


def test_cost_of_a_wide_raidz_is_linear_for_each_drive() -> None:
    given = host(pool(raidz(3, *(f"d{i}" for i in range(200)))))
    judge = Judge(given)
    judge.table(given.programs[NAME])
    assert judge.copies.legs.judged <= 20 * 200


def changed(given: Host, **dataset: Any) -> Table:
    """With these fields of tank/db."""
    after = replace(given, datasets={"tank/db": replace(given.datasets["tank/db"], **dataset)})
    return Judge(after).table(after.programs[NAME])


def test_change_of_one_of_two_in_series_gains_nothing() -> None:
    given = host(pool(DATA), dataset={"sync": "disabled"}, use={"asks": "never"})
    alone = changed(given, sync="standard")
    assert alone["crash", "commits"].rank is Rank.LOST
    assert changed(given, sync="always")["crash", "commits"].rank is Rank.SAFE


def test_change_that_makes_a_cell_worse() -> None:
    """sync=standard with doublewrite off: the replay may tear pages that were whole."""
    given = host(pool(DATA), dataset={"sync": "disabled"}, guard=False, splits=True)
    before, after = changed(given), changed(given, sync="standard")
    worse = {question for event, question in before if after[event, question].rank < before[event, question].rank}
    assert worse == {"consistency"}


def test_program_on_a_dataset_that_nobody_saw() -> None:
    given = host(pool(DATA))
    for lacking in (replace(given, pools={}), replace(given, datasets={})):
        cells = Judge(lacking).table(lacking.programs[NAME])
        assert {cell.rank for cell in cells.values()} == {Rank.UNKNOWN}


def test_pool_has_no_vdev_twice() -> None:
    """The classes of a pool are joined once, in order."""
    tank = Pool("tank", (DATA,), special=(mirror("d2"),), dedup=(mirror("d3"),), log=(mirror("s0"),))
    assert [vdev.name for vdev in tank.data] == ["d0+d1", "d2", "d3"]


FLAWS: tuple[dict[str, Any], ...] = ({}, {"honours": None}, {"honours": False}, {"passes": False})


@pytest.mark.parametrize("event", ["drive", "power+drive"])
def test_drives_that_are_alike_stand_for_each_other(event: EventName) -> None:
    """The cell is that of each drive for itself: rank, reasons and promises."""
    for flaws in itertools.product(FLAWS, repeat=3):
        stores = [client(f"b{i}", **{"honours": True, **flaw}) for i, flaw in enumerate(flaws)]
        stale = mirror("a2", leg("b2", in_sync=False))
        given = host(pool(mirror("a0", "b0"), mirror("a1", "b1"), stale), *stores)
        judge, program = Judge(given), given.programs[NAME]
        each = {
            drive: answer(Copies(given), program, replace(ALL[event], device=drive), "pool")
            for drive in ("a0", "b0", "a1", "b1", "a2", "b2")
        }
        worst = min(found.rank for found in each.values() if found)
        equal = {drive: found for drive, found in each.items() if found and found.rank == worst}
        cell = judge.cell(program, event, "pool")
        assert cell
        assert cell.rank is worst
        joined = all_of(equal.values())
        assert (cell.relies, set(cell.why)) == (joined.relies, set(joined.why))


def test_when_the_pool_is_gone_only_another_host_has_commits() -> None:
    """Nothing on this host rescues them, and no other question arises."""
    expected: dict[bool | None, Rank] = {False: Rank.LOST, None: Rank.UNKNOWN, True: Rank.RELIES}
    for waits, rank in expected.items():
        given = perfect()
        program = replace(given.programs[NAME], elsewhere=waits)
        found = answer(Copies(given), program, GONE, "commits")
        assert found is not None
        assert found.rank is rank
        assert [answer(Copies(given), program, GONE, each) for each in ("consistency", "pool")] == [None, None]
        assert answer(Copies(given), replace(program, elsewhere=False, standby=waits), GONE, "commits") == found


def test_a_claimed_log_has_no_other_copy() -> None:
    """A mount has to replay it: until then it goes with its log device, and with what a restart cannot open."""
    for claimed, alone in ((False, "SAFE"), (True, "LOST")):
        found = ranks(host(pool(DATA, log=(mirror("s0"),)), dataset={"claimed": claimed}))
        assert (found["log"], found["restart"], found["process"]) == (alone, "SAFE", "SAFE")
        missing = host(pool(DATA, log=(mirror(leg("s0", state="UNAVAIL")),)), dataset={"claimed": claimed})
        assert (ranks(missing)["restart"] == "LOST") is claimed
    assert ranks(host(pool(DATA, log=(mirror("s0", "s1"),)), dataset={"claimed": True}))["log"] == "SAFE"
