"""What a cell hangs on, and the severity that follows from it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from auditor.durability.answers import Rank, Reason
from auditor.durability.host import ALL, QUESTIONS, EventName, Host, Leg, Question
from auditor.durability.repairs import Carried, Repairs, broken, carried, repair, search
from auditor.judge.event import SEVERITIES, Severity
from tests.durability.hosts import NAME, client, host, leg, losing, mirror, of, perfect, pool, raidz
from tests.durability.small_world import GOOD, Fault, State, world

COMMON = ("process", "restart", "crash", "power")
SEVERITY: Mapping[Carried, Severity] = {
    **{Carried(event, question, Rank.RELIES): "low" for event in ALL for question in QUESTIONS},
    **{Carried(event, question, Rank.UNKNOWN): "medium" for event in ALL for question in QUESTIONS},
    **{
        Carried(event, question, Rank.LOST): "critical" if event in COMMON else "high"
        for event in ALL
        for question in QUESTIONS
    },
}
DATA = mirror("d0", "d1")


def members(given: Host, event: EventName, question: Question = "commits") -> list[set[str]]:
    """Level by level, the elements."""
    return [{each.element for each in level.members} for level in Repairs(given, NAME).levels(event, question)]


def severities(given: Host) -> Mapping[str, Severity]:
    """Element -> severity, whatever the subject; without those that only a restart's promise of unmounting hangs on."""
    return {
        f"{reason.element} {reason.subject}": max((SEVERITY[each] for each in cells), key=SEVERITIES.index)
        for reason, cells in carried(given, NAME)
    }


def test_perfect_host_has_nothing_to_repair() -> None:
    assert Repairs(perfect(), NAME).carried() == {}


def test_two_in_series_share_the_cell() -> None:
    given = host(pool(DATA), dataset={"sync": "disabled"}, use={"asks": "never"})
    assert members(given, "crash") == [{"ask", "commit"}]
    found = severities(given)
    assert (found["ask tank/db"], found["commit tank/db"]) == ("critical", "critical")


def test_three_in_series_share_the_cell() -> None:
    given = host(pool(DATA), dataset={"sync": "disabled", "replays": False}, use={"asks": "never"})
    assert members(given, "crash") == [{"ask", "commit", "replay"}]


def test_what_another_setting_rescues_carries_nothing() -> None:
    given = host(pool(DATA), dataset={"sync": "always"}, use={"asks": "never"})
    assert severities(given) == {}


def test_alternatives() -> None:
    """Flushes that are sent, or drives that do without."""
    drives = [client(name, honours=True) for name in ("d0", "d1")]
    given = host(pool(DATA, zil_flush=False), *drives)
    found = next(Repairs(given, NAME).levels("power", "commits")).members
    assert found == {Reason("drive", "d0"), Reason("drive", "d1"), Reason("zil flush", "tank")}


def test_what_a_loss_hides_is_found_on_the_next_level() -> None:
    given = host(pool(DATA), client("d0"), client("d1"), dataset={"sync": "disabled", "unmounts": True})
    assert [level.rank for level in Repairs(given, NAME).levels("power", "commits")] == [Rank.LOST, Rank.RELIES]
    found = severities(given)
    assert found == {"commit tank/db": "critical", "drive d0": "low", "drive d1": "low"}


def test_drives_of_one_vdev_alone() -> None:
    """The other vdev has a leg that keeps all: its other leg decides nothing without the loss of a drive."""
    given = host(pool(DATA, mirror("d2", "d3")), client("d0", honours=False), client("d2", honours=False))
    found = Repairs(given, NAME).carried()
    assert set(found) == {Reason("drive", "d0"), Reason("drive", "d2")}
    assert {cell.event for cells in found.values() for cell in cells} == {"power+drive"}
    both = replace(given, stores={**given.stores, "d1": client("d1", honours=False)})
    power = next(Repairs(both, NAME).levels("power", "pool")).members
    assert power == {Reason("drive", "d0"), Reason("drive", "d1")}


def test_raidz_of_drives_without_flush() -> None:
    """Each of them carries the cell."""
    wide = raidz(2, *(f"d{i}" for i in range(12)))
    given = host(pool(wide), *(client(f"d{i}", passes=False) for i in range(12)))
    first = next(Repairs(given, NAME).levels("power", "pool"))
    assert {each.element for each in first.members} == {"drive", "flush"}
    assert {each.subject for each in first.members} == {f"d{i}" for i in range(12)}


@pytest.mark.parametrize(
    ("given", "event", "question", "element"),
    [
        (host(pool(mirror("d0"))), "drive", "pool", Reason("redundancy", "d0")),
        (host(pool(DATA, log=(mirror("s0"),))), "power+log", "commits", Reason("redundancy", "s0")),
        (host(pool(mirror("d0", leg("d1", state="OFFLINE")))), "drive", "pool", Reason("present", "d1")),
        (host(pool(mirror("d0", leg("d1", clean=False)))), "drive", "pool", Reason("errors", "d1")),
        (host(pool(DATA, log=(mirror(leg("s0", state="UNAVAIL")),))), "crash", "commits", Reason("present", "s0")),
        (host(pool(DATA), dataset={"key": "behind itself"}), "restart", "commits", Reason("key", "tank/db")),
        (host(pool(DATA), splits=True, guard=False), "crash", "consistency", Reason("guard", NAME)),
        (host(pool(DATA, imports=False)), "restart", "pool", Reason("import", "tank")),
    ],
)
def test_element(given: Host, event: EventName, question: Question, element: Reason) -> None:
    assert element in next(Repairs(given, NAME).levels(event, question)).members


def test_what_no_repair_improves() -> None:
    """A circle of pools: nothing on this host decides it."""
    given = host(pool(mirror(replace(leg("d0"), drives=(), on="tank/db"))))
    assert losing(given, rank="UNKNOWN")
    assert members(given, "crash") == [set()]


def test_what_nobody_saw_hides_nothing() -> None:
    """One mirror whose legs are lost and unseen, below one that is lost: each leg carries its own answer."""
    drives = [
        client("d0", passes=False),
        client("d1", passes=None),
        client("d2", passes=False),
        client("d3", passes=False),
    ]
    given = host(pool(DATA, mirror("d2", "d3")), *drives)
    carried = Repairs(given, NAME).carried()
    ranks = {
        each.subject: {cell.rank for cell in cells if (cell.event, cell.question) == ("power", "pool")}
        for each, cells in carried.items()
        if each.element == "flush"
    }
    assert ranks == {"d0": {Rank.UNKNOWN}, "d1": {Rank.UNKNOWN}, "d2": {Rank.LOST}, "d3": {Rank.LOST}}


def test_no_repair_makes_a_cell_worse_than_it_is() -> None:
    """With fsync=off nothing is replayed that could split a page: the guard counts as what the host relies on today."""
    given = host(pool(DATA), dataset={"unmounts": None}, use={"asks": "never"}, splits=True, guard=False)
    today = of(given, "crash", "consistency")
    ranks = [level.rank for level in Repairs(given, NAME).levels("crash", "consistency")]
    assert ranks == sorted(ranks)
    assert today.startswith("relies on")
    assert Rank.LOST not in ranks


def test_many_that_nobody_saw_are_few_questions() -> None:
    """One repair for each level, however many elements are unseen."""
    unseen = [client(f"d{i}", passes=None, completes=None, honours=None) for i in range(4)]
    given = host(
        pool(mirror("d0", "d1"), mirror("d2", "d3"), zil_flush=None, txg_flush=None, imports=None, log_room=None),
        *unseen, dataset={"sync": None, "replays": None, "sound": None, "key": None, "indirect": None},
        use={"asks": None, "passes": None, "reaches": None}, leaves=None, recovers=None, virtual=None,
    )  # fmt: skip
    found = Repairs(given, NAME)
    assert len(found.carried()) > 20
    assert len(found._judges) < 20


LONE = (
    ("program", "leaves", False),
    ("log", "asks", "never"),
    ("log", "passes", False),
    ("pages", "asks", "never"),
    ("tank/wal", "sync", "disabled"),
    ("tank/db", "sync", "disabled"),
    ("tank/wal", "replays", False),
    ("tank/wal", "sound", False),
    ("tank/wal", "key", "behind itself"),
    ("tank", "zil_flush", False),
    ("tank", "txg_flush", False),
    ("tank", "imports", False),
    ("data0", "state", "OFFLINE"),
    ("data1", "in_sync", False),
    ("d1", "passes", False),
    ("d2", "honours", False),
    ("mapper", "completes", False),
    ("queue", "passes", False),
)
NAMES = {
    "leaves": "leave",
    "asks": "ask",
    "passes": "pass on",
    "sync": "commit",
    "replays": "replay",
    "sound": "defect",
    "key": "key",
    "zil_flush": "zil flush",
    "txg_flush": "txg flush",
    "imports": "import",
    "state": "present",
    "in_sync": "present",
    "completes": "flush error",
}
SUBJECTS = {"program": NAME, "log": "tank/wal", "pages": "tank/db"}


def element_of(fault: Fault) -> Reason:
    """The element that a fault of the small world breaks."""
    if fault.part in ("d1", "d2", "queue") and fault.field != "completes":
        return Reason("flush" if fault.field == "passes" else "drive", fault.part)
    if fault.field == "passes":
        return Reason("pass on", SUBJECTS[fault.part])
    return Reason(NAMES[fault.field], SUBJECTS.get(fault.part, fault.part))


def loses_alone(fault: Fault) -> bool:
    found = Repairs(world(frozenset({fault})), NAME).carried()
    return any(cell.rank is Rank.LOST for cell in found.get(element_of(fault), ()))


@pytest.mark.slow
def test_no_element_that_loses_alone_is_hidden_by_others() -> None:
    """In the small world, all pairs and triples of what loses a cell alone: each carries a loss in company, too."""
    alone = [fault for each in LONE if loses_alone(fault := Fault(*each))]
    assert len(alone) == 18
    states: list[State] = [
        frozenset(each)
        for size in (2, 3)
        for each in itertools.combinations(alone, size)
        if len({fault.place for fault in each}) == size
    ]
    assert len(states) == 969
    hidden = []
    for state in states:
        found = Repairs(world(state), NAME).carried()
        hidden += [(sorted(state), fault) for fault in state if element_of(fault) not in found]
    assert hidden == []


def test_repair_makes_each_element_good() -> None:
    for each in LONE:
        given = world(GOOD | {Fault(*each)})
        element = element_of(Fault(*each))
        assert element in broken(given, given.programs[NAME])
        fixed = repair(given, {element})
        assert element not in broken(fixed, fixed.programs[NAME])


def test_paths_that_differ_in_names_alone_are_searched_once() -> None:
    every = [host(pool(mirror(*names)), *map(client, names)) for names in (("d0", "d1"), ("d7", "d8"))]
    search.cache_clear()
    found = [dict(carried(each, NAME)) for each in every]
    assert search.cache_info().misses == 1
    assert found == [Repairs(each, NAME).carried() for each in every]
    assert found[0] != found[1]


def test_a_path_with_one_drive_twice_is_another() -> None:
    two, one = (host(pool(mirror("d0", Leg("d1", (drive,))))) for drive in ("d1", "d0"))
    assert two.numbered() != one.numbered()


def test_no_name_of_another_host_is_in_an_answer() -> None:
    """What names nothing is no name: a leg on nothing and one on a dataset that nobody saw are two paths."""
    unseen, bare = (
        host(pool(mirror(replace(leg("d0"), drives=(), on=on))), dataset={"key": "absent"}) for on in ("gone/db", "")
    )
    search.cache_clear()
    clean = [dict(carried(each, NAME)) for each in (unseen, bare)]
    search.cache_clear()
    assert [dict(carried(each, NAME)) for each in (bare, unseen)] == clean[::-1]
    assert clean[0] != clean[1]


def test_what_is_searched_has_no_name() -> None:
    """Words that the model makes of a name, such as that of a perfect leg, cannot be the name of something else."""
    given = host(pool(mirror("d0"), mirror("d0 new")), *map(client, ("d0", "d0 new")))
    path, names = given.path_of(given.programs[NAME]).numbered()
    assert names.keys() == {""} | {f"#{number}" for number in range(1, len(names))}
    words = re.findall(r"[\w/]+", repr(path))  # the field "standby" has "db" in it
    assert not [each for each in names.values() if each and set(each.split()) & {*words}]
    plain = host(pool(mirror("d0"), mirror("d1")), *map(client, ("d0", "d1")))
    assert path == plain.path_of(plain.programs[NAME]).numbered()[0]
