"""The knee of a sweep: found where the arithmetic puts it, as wide as the trials scatter, and never guessed."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from auditor.verify.comparison import INTERVALS, Knee, Step, Sweep, find, named
from tests import shared
from tests.verify import samples, strategies

GIB = 2**30


def model(write_s: float = 2.0, sync_ms: float = 1.0, *, scatter: float = 0.02, trials: int = 5) -> Sweep:
    return samples.sweep(write_s=write_s, sync_ms=sync_ms, scatter=scatter, trials=trials)


def test_a_fast_log() -> None:
    # 1 GiB in 2 s, a sync 1 ms: as long as writing 524 KiB
    found = find(model())
    assert found.between == (256 << 10, 1 << 20)
    assert found.at == pytest.approx(GIB * 1e-3 / 2, rel=0.1)
    assert found.sync_ms == pytest.approx(1.0, rel=0.05)
    assert found.worth == pytest.approx((2 + 65.536) / (2 + 0.01), rel=0.1)
    text = " ".join(found.says)
    assert "between a sync every 1 MiB and every 256 KiB" in text
    assert "One sync adds" in text
    assert "Group commit is worth up to 3" in text


def test_a_disk_with_a_slow_flush() -> None:
    found = find(model(write_s=8.0, sync_ms=12.0))  # as long as writing 1.5 MiB
    assert found.between == (1 << 20, 10 << 20)
    assert found.at == pytest.approx(GIB * 12e-3 / 8, rel=0.1)
    assert found.sync_ms == pytest.approx(12.0, rel=0.05)


def test_no_knee_because_syncs_are_cheap() -> None:
    found = find(model(write_s=20.0, sync_ms=0.05))
    assert found.between == (0, 16 << 10)
    assert found.at is None
    assert found.says[0].startswith("No knee down to a sync every 16 KiB")


def test_syncs_that_cost_nothing_at_all() -> None:
    found = find(model(write_s=20.0, sync_ms=0.0))
    assert found.sync_ms is None
    assert "worth nothing" in found.says[1]


def test_every_sync_is_dear() -> None:
    found = find(model(write_s=0.5, sync_ms=200.0))
    assert found.between == (100 << 20, None)
    assert "even a sync every 100 MiB" in found.says[0]


def test_the_range_widens_with_the_scatter() -> None:
    calm, rough = find(model(sync_ms=1.6, scatter=0.01)), find(model(sync_ms=1.6, scatter=0.45))
    assert calm.between == (256 << 10, 1 << 20)
    assert rough.between is not None
    small, large = rough.between
    assert small <= 256 << 10
    assert large is None or large >= 1 << 20
    assert rough.between != calm.between


def test_trials_that_scatter_too_much_found_nothing() -> None:
    wild = model()
    wild = wild._replace(
        steps=tuple(step._replace(seconds=(1.0, 2.0, 4.0)) if step.every == 0 else step for step in wild.steps)
    )
    found = find(wild)
    assert found.between is None
    assert "from 1 to 4 s" in found.why_not
    assert found.says == (f"The knee cannot be named: {found.why_not}.",)


def test_one_outlier_moves_no_median_but_is_respected() -> None:
    calm = model(scatter=0.0)
    steps = tuple(
        step._replace(seconds=(*step.seconds[:-1], step.seconds[0] * 3)) if step.every == 1 << 20 else step
        for step in calm.steps
    )
    found = find(Sweep(GIB, steps))
    assert found.at == find(calm).at
    assert found.between == (256 << 10, 10 << 20)  # 1 MiB is no longer clearly below it


@pytest.mark.parametrize(
    ("sweep", "why"),
    [
        (Sweep(0, model().steps), "no amount"),
        (Sweep(GIB, ()), "one step with a sync at the end"),
        (Sweep(GIB, tuple(step for step in model().steps if step.every != 0)), "one step with a sync at the end"),
        (Sweep(GIB, model().steps[:3]), "two with others between"),
        (Sweep(GIB, (*model().steps, model().steps[-1])), "one step with a sync at the end"),
        (model(trials=2), "at the end was tried 2 times, 3 are needed"),
        (Sweep(GIB, (*model().steps[:-1], Step(16 << 10, (0.0, 1.0, 1.0)))), "took no time"),
        (Sweep(GIB, (*model().steps[:-1], Step(16 << 10, (math.inf, 1.0, 1.0)))), "took no time"),
    ],
)
def test_what_founds_no_knee_says_why(sweep: Sweep, why: str) -> None:
    found = find(sweep)
    assert why in found.why_not
    assert found.between is None
    assert found.at is None


@shared.examples(200, deadline=None)
@given(st.floats(0.5, 100), st.floats(0.001, 100))
def test_the_knee_is_what_is_written_in_the_time_of_a_sync(write_s: float, sync_ms: float) -> None:
    found = find(model(write_s, sync_ms, scatter=0.0))
    true = GIB / (write_s / sync_ms * 1e3 + 2)  # "at the end" has one sync too
    assume(all(abs(math.log(true / every)) > 0.05 for every in INTERVALS))
    assert found.between is not None
    small, large = found.between
    assert small <= true
    assert large is None or large >= true
    bounds = (0, *sorted(INTERVALS))
    assert small == max(each for each in bounds if each <= true)
    assert (found.at is None) == (small == 0 or large is None)
    if found.at is not None:
        assert found.at == pytest.approx(true, rel=0.05)


@shared.examples(80, deadline=None)
@given(strategies.of(Sweep))
def test_any_sweep_has_a_knee_or_a_reason(sweep: Sweep) -> None:
    found = find(sweep)
    assert isinstance(found, Knee)
    assert found.says
    assert (found.between is None) == bool(found.why_not)


def test_words() -> None:
    assert [named(every) for every in (None, 0, 64 << 10, 100 << 20)] == [
        "never",
        "at the end",
        "every 64 KiB",
        "every 100 MiB",
    ]
