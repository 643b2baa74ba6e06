"""The laws of the model, over every state of the small world with up to two faults, and with three of those in series.

Single faults and pairs are all of EVERY; triples are all of SERIES, which has a fault of each element on the path of a commit
(all triples of EVERY are 630,000 states, or twenty minutes).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from auditor.durability.answers import Rank
from auditor.durability.host import ORDER, QUESTIONS, EventName, Leg, Question
from auditor.durability.table import Judge
from tests.durability.hosts import NAME
from tests.durability.small_world import EVERY, GOOD, Fault, State, judge, states, world

pytestmark = pytest.mark.slow

Ranks = Mapping[tuple[EventName, Question], Rank]
SERIES = tuple(
    Fault(*each)
    for each in (
        ("program", "leaves", False),
        ("program", "guard", False),
        ("program", "splits", True),
        ("log", "asks", "later"),
        ("log", "asks", "never"),
        ("log", "passes", False),
        ("log", "reaches", False),
        ("pages", "asks", "never"),
        ("pages", "passes", False),
        ("tank/wal", "sync", "disabled"),
        ("tank/wal", "sync", "always"),
        ("tank/wal", "sync", None),
        ("tank/db", "sync", "disabled"),
        ("tank/db", "sync", "always"),
        ("tank/wal", "indirect", True),
        ("tank/wal", "replays", False),
        ("tank/db", "replays", False),
        ("tank/wal", "key", "behind itself"),
        ("tank/wal", "unmounts", False),
        ("tank", "zil_flush", False),
        ("tank", "txg_flush", False),
        ("tank", "log_room", None),
        ("tank", "log_room", False),
        ("data0", "state", "OFFLINE"),
        ("data1", "in_sync", False),
        ("data1", "clean", False),
        ("log0", "state", "UNAVAIL"),
        ("log0", "state", "OFFLINE"),
        ("log1", "state", "OFFLINE"),
        ("log1", "state", None),
        ("log1", "opens", False),
        ("d1", "passes", False),
        ("d2", "honours", False),
        ("mapper", "completes", False),
        ("queue", "passes", False),
        ("controller", "passes", None),
    )
)
BETTER = {("sync", "always"), ("cache", "protected"), ("elsewhere", True)}  # no faults: they rescue
REPAIRS = {
    *((field, False) for field in ("leaves", "passes", "reaches", "replays", "sound", "unmounts", "imports", "opens")),
    *((field, False) for field in ("zil_flush", "txg_flush", "in_sync", "clean", "completes", "honours")),
    *(("asks", value) for value in ("later", "never")),
    *(("key", value) for value in ("absent", "behind itself")),
    ("sync", "disabled"),
    ("indirect", True),
    ("direct", True),
    ("closes", False),
    ("recovers", False),
}


def ranks(state: State) -> Ranks:
    return {name: cell.rank for name, cell in judge(state).items()}


@pytest.fixture(scope="module")
def everything() -> Mapping[State, Ranks]:
    sets = [GOOD, *states(EVERY, 1), *states(EVERY, 2), *states(SERIES, 3)]
    return {state: ranks(state) for state in sets}


def without(tables: Mapping[State, Ranks]) -> Iterator[tuple[State, Fault, State]]:
    """Each state, one of its faults, and the state without that."""
    for state in tables:
        for fault in state:
            if (rest := state - {fault}) in tables:
                yield state, fault, rest


def test_states(everything: Mapping[State, Ranks]) -> None:
    assert (len(EVERY), len(SERIES)) == (165, 36)
    assert len(everything) == 20_473
    assert set(everything[GOOD].values()) == {Rank.SAFE}


def test_graver_events_are_no_better(everything: Mapping[State, Ranks]) -> None:
    wrong = [
        (sorted(state), question, milder, graver)
        for state, cells in everything.items()
        for milder, graver in ORDER
        for question in QUESTIONS
        if {(milder, question), (graver, question)} <= cells.keys()
        and cells[milder, question] < cells[graver, question]
    ]
    assert wrong == []


def test_knowledge_overturns_no_decision(everything: Mapping[State, Ranks]) -> None:
    """What is LOST or SAFE while a field is unknown is so whatever the field is."""
    values: dict[tuple[str, str], list[Fault]] = {}
    for fault in (*EVERY, *SERIES):
        values.setdefault(fault.place, []).append(fault)
    wrong = []
    for state, fault, rest in without(everything):
        if fault.value is not None:
            continue
        for known in (
            rest,
            *(rest | {other} for other in dict.fromkeys(values[fault.place]) if other.value is not None),
        ):
            for name, rank in everything.get(known, {}).items():
                if everything[state].get(name) in (Rank.LOST, Rank.SAFE) and everything[state][name] != rank:
                    wrong.append((sorted(state, key=str), sorted(known, key=str), name))
    assert wrong == []


def test_a_repair_worsens_neither_commits_nor_pool(everything: Mapping[State, Ranks]) -> None:
    wrong = []
    for state, fault, rest in without(everything):
        kind = (fault.field, fault.value)
        # where log blocks lie depends on the log devices that accept writes
        data_leg = fault.field == "state" and fault.part.startswith("data") and fault.value is not None
        if kind in BETTER or kind in REPAIRS or data_leg:
            worse, better = (rest, state) if kind in BETTER else (state, rest)
            for (event, question), rank in everything[worse].items():
                if question != "consistency" and rank > everything[better][event, question]:
                    wrong.append((sorted(state, key=str), fault, event, question))
    assert wrong == []


def test_guard_worsens_nothing(everything: Mapping[State, Ranks]) -> None:
    guards = [each for each in without(everything) if each[1].field == "guard"]
    assert len(guards) > len(EVERY)
    for state, _, rest in guards:
        assert all(rank <= everything[rest].get(name, rank) for name, rank in everything[state].items()), sorted(
            state, key=str
        )


def test_sync_always_can_worsen_consistency(everything: Mapping[State, Ranks]) -> None:
    """Tear pages that were whole, and part log and pages: counterexamples to a law that does not hold."""
    name: tuple[EventName, Question] = ("crash", "consistency")
    never = {Fault(part, "asks", "never") for part in ("log", "pages")}
    always = Fault("tank/wal", "sync", "always")
    assert everything[frozenset(never)][name] is Rank.RELIES
    assert everything[frozenset({*never, always})][name] is Rank.LOST
    torn = {*never, Fault("program", "guard", False), Fault("program", "splits", True)}
    both = {*torn, always, Fault("tank/db", "sync", "always")}
    assert ranks(frozenset(torn))[name] is Rank.RELIES
    assert ranks(frozenset(both))[name] is Rank.LOST


def test_one_more_leg_worsens_neither_commits_nor_pool(everything: Mapping[State, Ranks]) -> None:
    small = [state for state in everything if len(state) < 2 or (len(state) == 2 and state <= set(SERIES))]
    for state, more in itertools.product(small, ("mirror-0", "mirror-1")):
        host = world(state)
        tank = host.pools["tank"].with_vdevs(
            lambda vdev, more=more: replace(vdev, legs=(*vdev.legs, Leg("new"))) if vdev.name == more else vdev  # type: ignore[misc]
        )
        grown = Judge(replace(host, pools={"tank": tank})).table(host.programs[NAME])
        for (event, question), rank in everything[state].items():
            if question != "consistency":
                assert grown[event, question].rank >= rank, (sorted(state, key=str), more, event, question)


def test_unknown_everywhere_is_nowhere_decided_for_the_better() -> None:
    """A host of which nobody saw anything: no SAFE but where no field matters."""
    faults = {fault.place: fault for fault in EVERY if fault.value is None}
    found = ranks(frozenset(faults.values()))
    assert {rank for (_, question), rank in found.items() if question != "consistency"} == {Rank.UNKNOWN}
