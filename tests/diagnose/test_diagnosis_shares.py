"""Shares add up to the whole, whatever was measured, and say so when they explain too little or too much."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.diagnose.diagnosis import MOST_UNEXPLAINED, Parts, longest, shares

NS = st.floats(0, 1e11, allow_nan=False)
MEASURED = st.none() | NS
PARTS = st.builds(
    Parts, st.floats(1, 1e11, allow_nan=False), MEASURED, MEASURED, MEASURED, MEASURED, MEASURED, MEASURED, MEASURED
)


@given(PARTS)
def test_shares_add_up_and_no_part_is_made_of_what_is_left(parts: Parts) -> None:
    found = shares(parts)
    assert sum(each.part for each in found.shares) == pytest.approx(1)
    assert sum(each.ns for each in found.shares) == pytest.approx(parts.commit)
    assert all(0 <= each.part <= 1 + 1e-9 for each in found.shares)
    measured = {
        "queue": parts.queue,
        "log write": parts.write,
        "flush": parts.flush,
        "log write and flush": parts.both,
        "data write": parts.data,
    }
    for each in found.shares:
        if each.what in measured:
            assert each.ns <= (measured[each.what] or 0) + 1e-6


@given(PARTS)
def test_more_than_a_third_unexplained_is_no_answer(parts: Parts) -> None:
    found = shares(parts)
    left = next(each.part for each in found.shares if each.what == "unexplained")
    nothing = all(each is None for each in parts[1:])
    assert bool(found.why_not) == (left > MOST_UNEXPLAINED or found.overlap > MOST_UNEXPLAINED or nothing)
    if found.why_not:
        assert longest(found) is None


def test_a_commit_whose_flush_takes_most_of_it() -> None:
    found = shares(Parts(commit=27e6, queue=1e6, write=1.5e6, flush=24e6, wake=0.1e6))
    most = longest(found)
    assert most
    assert (most.what, most.ns) == ("flush", 24e6)
    assert found.shares[-1].what == "unexplained"
    assert found.shares[-1].part == pytest.approx(0.4 / 27)
    assert not found.why_not
    assert not found.overlap


def test_parts_that_are_longer_than_the_whole_are_told() -> None:
    found = shares(Parts(commit=10e6, write=8e6, flush=8e6))
    assert found.overlap == pytest.approx(0.6)
    assert "60% longer than the commit" in found.why_not
    found = shares(Parts(commit=10e6, write=4e6, flush=8e6))
    assert found.overlap == pytest.approx(0.2)
    assert not found.why_not


def test_threads_that_work_for_several_devices_explain_no_more_than_is_left() -> None:
    found = shares(Parts(commit=10e6, write=3e6, flush=5e6, pipeline=9e6))
    assert {each.what: each.ns for each in found.shares}["pipeline"] == pytest.approx(2e6)
    assert (found.overlap, found.why_not) == (0, "")
    longer = shares(Parts(commit=10e6, write=8e6, flush=8e6, pipeline=9e6))
    assert longer.overlap == pytest.approx(0.6)
    assert longer.shares[0].ns == 0


def test_waiting_for_a_cpu_explains_no_more_than_is_left() -> None:
    found = shares(Parts(commit=10e6, write=3e6, flush=5e6, pipeline=9e6, wake=40e6))
    told = {each.what: each.ns for each in found.shares}
    assert (told["wake-up"], told["pipeline"], told["flush"]) == pytest.approx((2e6, 0, 5e6))
    assert (found.overlap, found.why_not) == (0, "")


def test_nothing_measured_explains_nothing() -> None:
    assert shares(Parts(commit=1e6)).why_not == "no part of a commit could be measured"
    assert shares(Parts(commit=0)).shares == ()
