"""How answers join, by enumeration."""

from __future__ import annotations

import itertools

import pytest

from auditor.durability.answers import (
    SAFE,
    Answer,
    Rank,
    all_of,
    any_of,
    at_least,
    either,
    holds,
    lost,
    relies,
    unknown,
)

FOUR = (lost("a", "x"), unknown("b", "x"), relies("drive", "d0", "c"), SAFE)


def test_copies_take_the_best_and_places_the_worst() -> None:
    for one, other in itertools.product(FOUR, repeat=2):
        assert all_of((one, other)).rank == min(one.rank, other.rank)
        assert any_of(one, other).rank == max(one.rank, other.rank)


def test_k_of_n_is_that_of_all_subsets() -> None:
    for answers in itertools.product(FOUR, repeat=4):
        for needed in range(1, 5):
            best = max(min(each.rank for each in subset) for subset in itertools.combinations(answers, needed))
            assert at_least(needed, answers).rank == best
        assert at_least(5, answers).rank is Rank.LOST
        assert at_least(0, answers) is SAFE


def test_promises() -> None:
    d = [relies("drive", f"d{i}", "drive") for i in range(3)]
    assert str(any_of(d[0], d[1])) == "relies on d0 or d1"
    assert str(all_of(d[:2])) == "relies on d0 and d1"
    assert str(at_least(2, d)) == "relies on 2 of (d0, d1, d2)"
    assert str(at_least(3, d)) == "relies on d0 and d1 and d2"
    assert str(all_of((any_of(d[0], d[1]), d[1]))) == "relies on d1"
    assert str(all_of((any_of(d[0], d[1]), d[2]))) == "relies on (d0 or d1) and d2"
    assert str(any_of(d[0], all_of(d[:2]))) == "relies on d0"
    hypervisor = [relies("hypervisor", "", "hypervisor", name) for name in ("vda", "vdb")]
    assert str(any_of(*hypervisor)) == str(all_of(hypervisor)) == "relies on the hypervisor"
    assert str(at_least(2, [*d[:2], SAFE])) == "relies on d0 or d1"


def test_reasons_are_all_that_could_improve_it() -> None:
    bad, doubt = lost("a", "x"), unknown("b", "y")
    assert any_of(bad, doubt).why == (*doubt.why, *bad.why)
    assert all_of((bad, doubt)).why == bad.why
    assert all_of((bad, lost("c", "z"))).why == (*bad.why, ("c", "z"))
    assert str(bad) == "LOST (a x)"
    assert str(SAFE) == "no loss"


@pytest.mark.parametrize(("value", "rank"), [(True, Rank.SAFE), (None, Rank.UNKNOWN), (False, Rank.LOST)])
def test_what_must_be_so(value: bool | None, rank: Rank) -> None:
    assert holds(value, "a", "x").rank is rank


def test_one_of_two_that_nobody_saw() -> None:
    for one, other in itertools.product(FOUR, repeat=2):
        found: Answer = either(one, other, "which", "x")
        if one.rank == other.rank:
            assert found.rank == one.rank
        else:
            relied = min(one.rank, other.rank) is Rank.RELIES
            assert found.rank is (Rank.RELIES if relied else Rank.UNKNOWN)
