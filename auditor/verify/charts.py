"""Charts of a verification as text: bars, heat maps, percentile curves."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from auditor.report.document import Drawing
from auditor.text import duration
from auditor.verify.result import Histogram, Percentile, Run, Txg, together

# The numbers of a picture: rows of latency, columns of time, points of a curve.

# how a decade may be divided, finest first: steps that a reader can name
DECADES: tuple[tuple[float, ...], ...] = ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))


class HeatMap(NamedTuple):
    """When syncs took how long. columns: (from, to) in seconds since the run began; rows: the latencies between rows in
    nanoseconds, ascending, one more than there are rows. cells: for each column the share of its syncs in each row.
    syncing: (from, to) of each transaction group while it was synced."""

    columns: tuple[tuple[float, float], ...]
    rows: tuple[float, ...]
    cells: tuple[tuple[float, ...], ...]
    syncing: tuple[tuple[float, float], ...]


def heat_map(run: Run, columns: int, rows: int) -> HeatMap | None:
    """A run in at most so many columns (whole slices together) and rows; None without a timeline."""
    slices = sorted((each for each in run.timeline if each.to_s > each.at_s), key=lambda each: each.at_s)
    merged = together(each.syncs for each in slices)
    if not merged.counts or columns < 1:
        return None
    low, high = merged.counts[0][0], merged.counts[-1][0]
    levels = named(low, high, rows)
    group = math.ceil(len(slices) / columns)
    parts = [slices[i : i + group] for i in range(0, len(slices), group)]
    cells = tuple(_shares(together(each.syncs for each in part), levels) for part in parts)
    spans = tuple((part[0].at_s, max(each.to_s for each in part)) for part in parts)
    start, end = spans[0][0], spans[-1][1]
    syncing = tuple(span for span in sync_times(run.txgs) if span[1] > start and span[0] < end)
    return HeatMap(spans, levels, cells, syncing)


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


# Pictures as text: latency heat map, percentile curve, bars. Unicode; :data:`auditor.report.terminal.ASCII` is one to one.

LABEL = 8  # columns of the axis on the left
SHADES = ((0.30, "█"), (0.10, "▓"), (0.02, "▒"), (0.0, "░"))  # above this share of the syncs of a column
SHADES_SAY = "░ some ▒ over 2 % ▓ over 10 % █ over 30 % of the syncs in a column; a row reaches up to the next latency."


def heat_map_lines(run: Run, width: int, rows: int = 14) -> Drawing | None:
    """Time from left to right, latency upwards on a log axis; below, when transaction groups were synced.

    None without a timeline.
    """
    room = max(width - LABEL - 2, 10)
    drawn = heat_map(run, room, rows)
    if drawn is None:
        return None
    wide = max(room // len(drawn.columns), 1)
    lines = [
        _text_line(duration(drawn.rows[row]), "".join(_shade(column[row]) * wide for column in drawn.cells))
        for row in reversed(range(len(drawn.rows) - 1))
    ]
    lines.append(_base(len(drawn.columns) * wide))
    if drawn.syncing:
        lines.append(_text_line("TXG sync", "".join(_busy(drawn.syncing, *span) * wide for span in drawn.columns)))
    start, end = drawn.columns[0][0], drawn.columns[-1][1]
    middle = drawn.columns[len(drawn.columns) // 2][0]
    across = len(drawn.columns) * wide
    lines.append(_labels([(0, _s(start)), (across // 2, _s(middle)), (across, _s(end))], across))
    synced = " TXG sync: ▂ a transaction group was synced, █ for most of the column." if drawn.syncing else ""
    return Drawing(tuple(lines), SHADES_SAY + synced)


def _shade(share: float) -> str:
    return next((shade for least, shade in SHADES if share > least), " ")


def _busy(spans: Iterable[tuple[float, float]], start: float, end: float) -> str:
    share = share_within(spans, start, end)
    return "█" if share > 0.5 else "▂" if share > 0 else " "


def _s(seconds: float) -> str:
    return f"{seconds:.0f} s"


def percentile_curve(
    histogram: Histogram, objectives: Sequence[Percentile], width: int, rows: int = 14
) -> Drawing | None:
    """Latency over 1/(1-q) on log axes; an objective is a line that the curve must stay below. None without samples."""
    room = max(width - LABEL - 2, 20)
    points = curve(histogram, room)
    if not points:
        return None
    limits = [(each.q, each.limit_ns) for each in objectives if each.limit_ns and 0 < each.q < 1]
    low, high = histogram.counts[0][0], max([histogram.counts[-1][0], *(limit for _, limit in limits)])
    levels = named(min([low, *(limit for _, limit in limits)]), high, rows)
    last = points[-1].x
    cells = [[" "] * room for _ in range(len(levels) - 1)]
    for q, limit in limits:
        end = min(round(-math.log10(1 - q) / last * (room - 1)), room - 1)
        cells[row_of(limit, levels)][: end + 1] = ["─"] * end + ["┤"]
    for column, point in enumerate(points):
        cells[row_of(point.ns, levels)][column] = "●" if point.judged else "○"
    lines = [_text_line(duration(levels[row]), "".join(cells[row])) for row in reversed(range(len(cells)))]
    lines.append(_base(room))
    lines.append(_labels([(round(x / last * (room - 1)), text) for x, text in ticks(last)], room))
    says = "● the latency that a share of the syncs did not exceed"
    if any(not point.judged for point in points):
        says += ", ○ with too few samples beyond it"
    if limits:
        says += "; ─┤ an objective"
    return Drawing(tuple(lines), says + ".")


class Bar(NamedTuple):
    """One bar. value: where it ends; low, high: between which its trials lie."""

    label: str
    value: float
    low: float
    high: float
    text: str


def bar_lines(rows: Sequence[Bar], width: int, mark: float) -> list[str]:
    """Bars on a log axis from 1 on: ─ the spread of the trials; ┊ at a value that they are measured by."""
    label = max((len(row.label) for row in rows), default=0)
    text = max((len(row.text) for row in rows), default=0)
    room = max(width - label - text - 4, 10)
    top = math.log(max([row.high for row in rows] + [mark]) * 1.05)

    def at(value: float) -> int:
        return min(max(round(math.log(max(value, 1e-9)) / top * room), 0), room)

    lines = []
    for row in rows:
        cells = [" "] * (room + 1)
        cells[at(mark)] = "┊"
        cells[at(row.low) : at(row.high)] = "─" * (at(row.high) - at(row.low))
        cells[: at(row.value)] = "█" * at(row.value)
        lines.append(f"{row.label:>{label}}  {row.text:>{text}} {''.join(cells)}".rstrip())
    return lines


# -- axes ----------------------------------------------------------------------------------------------------------


def _text_line(label: str, cells: str) -> str:
    return f"{label:>{LABEL}} │{cells}"


def _base(room: int) -> str:
    return f"{'':{LABEL}} └{'─' * room}"


def _labels(marks: Sequence[tuple[int, str]], room: int) -> str:
    """Words below an axis, each centred at its column; one that would touch its neighbour is left out."""
    line = [" "] * (room + LABEL)
    free = 0
    for column, text in marks:
        start = min(max(column - len(text) // 2, 0), room - len(text))
        if start >= free:
            line[start : start + len(text)] = text
            free = start + len(text) + 2
    return f"{'':{LABEL}}  {''.join(line)}".rstrip()
