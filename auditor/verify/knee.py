"""``--sweep``: what a sync costs, and from which amount on a commit that is written together with others no longer pays.

The same amount is written with a sync at the end only, and every 100 MiB, 10 MiB ... 16 KiB. Writing takes what it takes
at the end; each sync adds its own time. The knee is the interval at which the syncs take as long as the writing, where
the whole takes twice the time of "at the end": below it a session waits for syncs, above it for bytes. It is what the
pool could have written in the time of one sync.

Trials scatter. A step lies above the knee only when its fastest trial takes more than twice the slowest one "at the end",
below only when its slowest takes less than twice the fastest; between the two the knee is a range, and said as one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from auditor.units import size

LEAST_TRIALS = 3
TIMES = 2.0  # of "at the end", where the syncs take as long as the writing
SCATTER = 1.5  # slowest over fastest "at the end", beyond which nothing is founded on it
INTERVALS = tuple(size << 10 for size in (100 * 1024, 10 * 1024, 1024, 256, 64, 16))  # bytes


class Step(NamedTuple):
    """The amount written once a trial. every: bytes between two fdatasyncs; 0: one at the end; None: never.

    seconds: of each trial.
    """

    every: int | None
    seconds: tuple[float, ...]

    @property
    def median_s(self) -> float:
        return median(self.seconds)


class Sweep(NamedTuple):
    """amount: bytes written in each trial. steps: in the order never, at the end, then ever more often."""

    amount: int
    steps: tuple[Step, ...]


class Knee(NamedTuple):
    """between: bytes from a step that is clearly below the knee to one that is clearly above it, (smaller, larger).

    Its smaller end is 0 when no step reached the knee, its larger None when all did. at: the best guess between them, by
    the medians. sync_ms: what one sync adds; worth: how many times faster the largest interval is than the smallest.
    says: the sentences for a reader. why_not: why there is no knee to name; then between is None.
    """

    between: tuple[int, int | None] | None
    at: int | None
    sync_ms: float | None
    worth: float | None
    says: tuple[str, ...]
    why_not: str = ""


def find(sweep: Sweep) -> Knee:
    """The knee of a sweep, or why none can be named."""
    why_not = _unfit(sweep)
    if why_not:
        return Knee(None, None, None, None, (f"The knee cannot be named: {why_not}.",), why_not)
    end = next(step for step in sweep.steps if step.every == 0)
    steps = _by_interval(sweep)
    small = _clearly_above(end, steps)
    large = _clearly_below(end, steps)
    at = _crossing(end, steps)
    sync_ms = _cost_ms(sweep.amount, end, steps)
    worth = steps[-1].median_s / steps[0].median_s
    between = (small or 0, large)
    says = (_where(between, steps), *_worth(sweep.amount, end, steps, at, sync_ms, worth))
    return Knee(between, at, sync_ms, worth, says)


def _unfit(sweep: Sweep) -> str:
    if sweep.amount <= 0:
        return "no amount was written"
    if any(not math.isfinite(each) or each <= 0 for step in sweep.steps for each in step.seconds):
        return "a trial took no time"
    ends = [step for step in sweep.steps if step.every == 0]
    steps = _by_interval(sweep)
    if len(ends) != 1 or len(steps) < 2 or len({step.every for step in steps}) != len(steps):
        return "it needs one step with a sync at the end and two with others between"
    few = [step for step in (*ends, *steps) if len(step.seconds) < LEAST_TRIALS]
    if few:
        return f"{named(few[0].every)} was tried {len(few[0].seconds)} times, {LEAST_TRIALS} are needed"
    scatter = max(ends[0].seconds) / min(ends[0].seconds)
    if scatter > SCATTER:
        return (
            f"the trials with one sync at the end took from {min(ends[0].seconds):.3g} to {max(ends[0].seconds):.3g} s, "
            "so that something else was at work on the pool"
        )
    return ""


def _by_interval(sweep: Sweep) -> list[Step]:
    """The steps with syncs between, the longest interval first."""
    return sorted((step for step in sweep.steps if step.every), key=lambda step: -(step.every or 0))


def _clearly_above(end: Step, steps: Sequence[Step]) -> int | None:
    """The longest interval from which on every step, at its fastest, takes more than TIMES the slowest "at the end"."""
    found = None
    for step in reversed(steps):
        if min(step.seconds) <= TIMES * max(end.seconds):
            break
        found = step.every
    return found


def _clearly_below(end: Step, steps: Sequence[Step]) -> int | None:
    """The shortest interval up to which every step, at its slowest, takes less than TIMES the fastest "at the end"."""
    found = None
    for step in steps:
        if max(step.seconds) >= TIMES * min(end.seconds):
            break
        found = step.every
    return found


def _crossing(end: Step, steps: Sequence[Step]) -> int | None:
    """Where what the syncs add, by the medians, becomes as long as the writing; None when no two steps enclose it.

    Between two steps by the logarithms of interval and time: time that is added falls as the interval grows.
    """
    limit = (TIMES - 1) * end.median_s
    for large, small in pairwise(steps):
        below, above = large.median_s - end.median_s, small.median_s - end.median_s
        if below < limit <= above:
            low, high = math.log(small.every or 1), math.log(large.every or 1)
            # a step that adds nothing measurable founds no slope: then one sync costs the same, however long the interval
            slope = (high - low) / math.log(above / below) if below > 0 else 1.0
            return round(math.exp(min(low + slope * math.log(above / limit), high)))
    return None


def _cost_ms(amount: int, end: Step, steps: Sequence[Step]) -> float | None:
    """What one sync adds at the shortest interval, in milliseconds; None where that is lost in the scatter."""
    shortest = steps[-1]
    if not shortest.every or min(shortest.seconds) <= max(end.seconds):
        return None
    return (shortest.median_s - end.median_s) / (amount / shortest.every) * 1e3


def _where(between: tuple[int, int | None], steps: Sequence[Step]) -> str:
    small, large = between
    if large is None and small == steps[0].every:
        return f"No knee: even a sync every {size(small)} takes more time than the writing."
    if small == 0 and large == steps[-1].every:
        return f"No knee down to a sync every {size(large or 0)}: writing takes more time than the syncs."
    if large is None:
        return f"The knee lies above a sync every {size(small)}; where, the trials scatter too much to tell."
    if small == 0:
        return f"The knee lies below a sync every {size(large)}; where, the trials scatter too much to tell."
    return (
        f"The knee lies between a sync every {size(large)} and every {size(small)}: from there on the syncs take longer than "
        "the writing."
    )


def _worth(
    amount: int, end: Step, steps: Sequence[Step], at: int | None, sync_ms: float | None, worth: float
) -> list[str]:
    """What group commit is worth, in words."""
    longest, shortest = steps[0].every or 0, steps[-1].every or 0
    if sync_ms is None:
        return [
            f"A sync every {size(shortest)} costs no time that stands out of the scatter: group commit is worth nothing."
        ]
    says = []
    if at is not None:
        says.append(
            f"By the medians it is near {size(at)}: commits of many sessions that share a sync are nearly free up to that "
            "amount together."
        )
    says.append(
        f"One sync adds {sync_ms:.3g} ms: a session that syncs every {size(shortest)} reaches at most "
        f"{1e3 / sync_ms:,.0f} commits/s, and {amount / shortest / steps[-1].median_s:,.0f} with the writing."
    )
    says.append(
        f"Group commit is worth up to {worth:.1f} times: {size(amount)} took {steps[-1].median_s:.3g} s with a sync every "
        f"{size(shortest)}, {steps[0].median_s:.3g} s every {size(longest)}, {end.median_s:.3g} s with one at the end."
    )
    return says


def named(every: int | None) -> str:
    """never, at the end, every 64 KiB."""
    return "never" if every is None else f"every {size(every)}" if every else "at the end"
