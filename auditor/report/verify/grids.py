"""The numbers of a picture, before anybody draws it as text or as SVG: rows of latency, columns of time, points of a curve."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from auditor.verify.histogram import Histogram, together
from auditor.verify.result import Run, Txg

# how a decade may be divided, finest first: steps that a reader can name
DECADES: tuple[tuple[float, ...], ...] = ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))


class HeatMap(NamedTuple):
    """When syncs took how long. columns: (from, to) in seconds since the run began; rows: the latencies between rows in
    nanoseconds, ascending, one more than there are rows. cells: for each column the share of its syncs in each row.
    syncing: (from, to) of each transaction group while it was synced. born: when each was born."""

    columns: tuple[tuple[float, float], ...]
    rows: tuple[float, ...]
    cells: tuple[tuple[float, ...], ...]
    syncing: tuple[tuple[float, float], ...]
    born: tuple[float, ...]


def heat_map(run: Run, columns: int, rows: int, *, fine: bool = False) -> HeatMap | None:
    """A run in at most so many columns (whole slices together) and rows; None without a timeline.

    fine: rows of equal height, for a drawing with an axis of its own.
    """
    slices = sorted((each for each in run.timeline if each.to_s > each.at_s), key=lambda each: each.at_s)
    merged = together(each.syncs for each in slices)
    if not merged.counts or columns < 1:
        return None
    low, high = merged.counts[0][0], merged.counts[-1][0]
    levels = even(low, high, rows) if fine else named(low, high, rows)
    group = math.ceil(len(slices) / columns)
    parts = [slices[i : i + group] for i in range(0, len(slices), group)]
    cells = tuple(_shares(together(each.syncs for each in part), levels) for part in parts)
    spans = tuple((part[0].at_s, max(each.to_s for each in part)) for part in parts)
    start, end = spans[0][0], spans[-1][1]
    syncing = tuple(span for span in sync_times(run.txgs) if span[1] > start and span[0] < end)
    born = tuple(txg.at_s for txg in run.txgs if start <= txg.at_s < end)
    return HeatMap(spans, levels, cells, syncing, born)


def _shares(histogram: Histogram, levels: Sequence[float]) -> tuple[float, ...]:
    counts = [0] * (len(levels) - 1)
    for ns, count in histogram.counts:
        counts[row_of(ns, levels)] += count
    whole = histogram.samples
    return tuple(count / whole if whole else 0.0 for count in counts)


def sync_times(txgs: Iterable[Txg]) -> list[tuple[float, float]]:
    """When each transaction group was synced, in seconds since the run began: after it was open, one after the other."""
    times: list[tuple[float, float]] = []
    for txg in sorted(txgs, key=lambda each: each.number):
        if txg.sync_s > 0:
            start = max(txg.at_s + txg.open_s, times[-1][1] if times else -math.inf)
            times.append((start, start + txg.sync_s))
    return times


def share_within(spans: Iterable[tuple[float, float]], start: float, end: float) -> float:
    """Which share of a piece of time lies within spans (0 to 1)."""
    covered = sum(max(min(end, to) - max(start, at), 0.0) for at, to in spans)
    return min(covered / (end - start), 1.0) if end > start else 0.0


def doublings(histogram: Histogram) -> list[tuple[int, int]]:
    """(upper end in nanoseconds, samples) by powers of two of a microsecond, those between that are empty, too."""
    counts: dict[int, int] = {}
    for ns, count in histogram.counts:
        power = (max(ns - 1, 0) // 1000).bit_length()
        counts[power] = counts.get(power, 0) + count
    return [(1000 << power, counts.get(power, 0)) for power in range(min(counts), max(counts) + 1)] if counts else []


# -- axes ----------------------------------------------------------------------------------------------------------


def named(low: float, high: float, most: int) -> tuple[float, ...]:
    """Latencies that divide low to high into at most so many rows (or a decade each), at numbers like 1, 2, 5, 10."""
    low, high = max(low, 1.0), max(high, 1.0)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1
    for steps in DECADES:
        marks = [step * 10.0**decade for decade in range(first, last + 1) for step in steps]
        start = max(bisect_left(marks, low) - 1, 0)
        marks = marks[start : max(bisect_left(marks, high), start + 1) + 1]
        if len(marks) - 1 <= most:
            break
    return tuple(marks)


def even(low: float, high: float, rows: int) -> tuple[float, ...]:
    """So many rows of equal height on a log axis around low to high."""
    bottom = math.log10(max(low, 1.0)) - 0.02
    top = max(math.log10(max(high, 1.0)) + 0.02, bottom + 0.3)
    return tuple(10 ** (bottom + (top - bottom) * i / rows) for i in range(rows + 1))


def row_of(ns: float, levels: Sequence[float]) -> int:
    """The row of a latency: above its lower end, up to and with its upper one; what lies outside is in the outermost."""
    return min(max(bisect_left(levels, ns) - 1, 0), len(levels) - 2)


# -- percentile curve ------------------------------------------------------------------------------------------------


class Point(NamedTuple):
    """A point of the percentile curve.

    x: log10 of 1/(1-q), so that 90 % is 1 and 99.9 % is 3. judged: enough samples lie beyond it.
    """

    x: float
    ns: int
    judged: bool


def curve(histogram: Histogram, points: int) -> list[Point]:
    """The percentiles of a distribution at equal steps of x, as HdrHistogram draws them; the last one is the largest sample."""
    samples = histogram.samples
    if not samples:
        return []
    last = max(math.log10(samples), 0.31)
    drawn = []
    for i in range(points):
        x = last * i / max(points - 1, 1)
        q = 1 - 10**-x
        ns = histogram.percentile_ns(q)
        if ns is not None:
            drawn.append(Point(x, ns, histogram.judged(q) is not None))
    return drawn


def ticks(last: float) -> list[tuple[float, str]]:
    """Where x is marked, and as what: 50 %, 90 %, 99 %, 99.9 % ..."""
    marks = [(math.log10(2), "50 %")]
    digits = 1
    while digits <= last:
        marks.append((float(digits), f"{(1 - 10.0**-digits) * 100:.{max(digits - 2, 0)}f} %"))
        digits += 1
    return [mark for mark in marks if mark[0] <= last]
