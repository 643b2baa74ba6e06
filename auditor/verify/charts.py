"""Charts of a verification: heat maps and curves as text, and as SVG."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from auditor.report.document import Drawing
from auditor.report.html import Element, element
from auditor.text import duration
from auditor.verify.result import Histogram, Percentile, Run, Txg, percentile_name, together

# The numbers of a picture: rows of latency, columns of time, points of a curve.

# how a decade may be divided, finest first: steps that a reader can name
DECADES: tuple[tuple[float, ...], ...] = ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))


class HeatMap(NamedTuple):
    """When syncs took how long. columns: (from, to) in seconds since the run began. rows: limits between rows in
    nanoseconds, one more than rows. cells: for each column the share of its syncs in each row. syncing: (from, to) of each
    transaction group."""

    columns: tuple[tuple[float, float], ...]
    rows: tuple[float, ...]
    cells: tuple[tuple[float, ...], ...]
    syncing: tuple[tuple[float, float], ...]


def heat_map(run: Run, columns: int, rows: int, *, fine: bool = False) -> HeatMap | None:
    """A run in at most so many columns (whole slices) and rows; None without a timeline. fine: rows of equal height."""
    slices = sorted((each for each in run.timeline if each.to_s > each.at_s), key=lambda each: each.at_s)
    merged = together(each.syncs for each in slices)
    if not merged.counts or columns < 1:
        return None
    low, high = merged.counts[0][0], merged.counts[-1][0]
    levels = even(low, high, rows) if fine else named(low, high, rows)
    group = math.ceil(len(slices) / columns)
    parts = [slices[i : i + group] for i in range(0, len(slices), group)]
    cells = []
    for part in parts:
        counts, syncs = [0] * (len(levels) - 1), together(each.syncs for each in part)
        for ns, count in syncs.counts:
            counts[row_of(ns, levels)] += count
        cells.append(tuple(count / max(syncs.samples, 1) for count in counts))
    spans = tuple((part[0].at_s, max(each.to_s for each in part)) for part in parts)
    start, end = spans[0][0], spans[-1][1]
    syncing = tuple(span for span in sync_times(run.txgs) if span[1] > start and span[0] < end)
    return HeatMap(spans, levels, tuple(cells), syncing)


def sync_times(txgs: Iterable[Txg]) -> list[tuple[float, float]]:
    """When each transaction group was synced, in seconds since the run began: after it was open, one after the other."""
    times: list[tuple[float, float]] = []
    for txg in sorted(txgs, key=lambda each: each.number):
        if txg.sync_s > 0:
            start = max(txg.at_s + txg.open_s, times[-1][1] if times else -math.inf)
            times.append((start, start + txg.sync_s))
    return times


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


class Point(NamedTuple):
    """Of the percentile curve. x: log10 of 1/(1-q): 90 % is 1, 99.9 % is 3. judged: enough samples lie beyond."""

    x: float
    ns: int
    judged: bool


def curve(histogram: Histogram, points: int) -> list[Point]:
    """The percentiles of a distribution at equal steps of x, as HdrHistogram draws them; the last one is the largest sample."""
    if not histogram.samples:
        return []
    last = max(math.log10(histogram.samples), 0.31)
    shares = ((x, 1 - 10**-x) for x in (last * i / max(points - 1, 1) for i in range(points)))
    return [Point(x, histogram.percentile_ns(q) or 0, histogram.judged(q) is not None) for x, q in shares]


def _limits_of(percentiles: Iterable[Percentile]) -> list[tuple[float, int]]:
    """(percentile, limit) of each objective that can be drawn."""
    return [(each.q, each.limit_ns) for each in percentiles if each.limit_ns and each.limit_ns > 0 and 0 < each.q < 1]


def moments(start: float, end: float, most: int = 7) -> list[int]:
    """Whole seconds at which an axis of time is marked, as many as fit, in equal and round steps."""
    steps = (*(1, 2, 5, 10, 15, 30, 60, 120, 300, 600), 1800 * math.ceil((end - start) / 1800 / (most - 1)))
    step = next(each for each in steps if (end - start) / each < most)
    return [number * step for number in range(math.ceil(start / step), math.floor(end / step) + 1)]


def ticks(last: float) -> list[tuple[float, str]]:
    """Where x is marked, and as what: 50 %, 90 %, 99 %, 99.9 % ..."""
    nines = ((float(n), f"{(1 - 10.0**-n) * 100:.{max(n - 2, 0)}f} %") for n in range(1, math.floor(last) + 1))
    return [mark for mark in ((math.log10(2), "50 %"), *nines) if mark[0] <= last]


# Pictures as text: latency heat map, percentile curve. Unicode; :data:`auditor.report.terminal.ASCII` is one to one.

LABEL = 8  # columns of the axis on the left
SHADES = ((0.30, "█"), (0.10, "▓"), (0.02, "▒"), (0.0, "░"))  # above this share of the syncs of a column
SHADES_SAY = "░ some ▒ over 2 % ▓ over 10 % █ over 30 % of the syncs in a column; a row reaches up to the next latency."


def heat_map_lines(run: Run, width: int, rows: int = 14) -> Drawing | None:
    """Time to the right, latency upwards on a log axis; below, transaction groups. None without a timeline."""
    room = max(width - LABEL - 2, 10)
    drawn = heat_map(run, room, rows)
    if drawn is None:
        return None
    wide = max(room // len(drawn.columns), 1)

    def shade(share: float) -> str:
        return next((shade for least, shade in SHADES if share > least), " ")

    lines = [
        _text_line(duration(drawn.rows[row]), "".join(shade(column[row]) * wide for column in drawn.cells))
        for row in reversed(range(len(drawn.rows) - 1))
    ]
    lines.append(_base(len(drawn.columns) * wide))
    if drawn.syncing:
        lines.append(_text_line("TXG sync", "".join(_busy(drawn.syncing, *span) * wide for span in drawn.columns)))
    across, start, end = len(drawn.columns) * wide, drawn.columns[0][0], drawn.columns[-1][1]
    times = [(round((at - start) / (end - start) * across), f"{at} s") for at in moments(start, end)]
    lines.append(_labels(times, across))
    synced = " TXG sync: ▂ a transaction group was synced, █ for most of the column." if drawn.syncing else ""
    return Drawing(tuple(lines), SHADES_SAY + synced)


def _busy(spans: Iterable[tuple[float, float]], start: float, end: float) -> str:
    covered = sum(max(min(end, to) - max(start, at), 0.0) for at, to in spans)
    return "█" if covered > 0.5 * (end - start) else "▂" if covered > 0 else " "


def percentile_curve(
    histogram: Histogram, objectives: Sequence[Percentile], width: int, rows: int = 14
) -> Drawing | None:
    """Latency over 1/(1-q) on log axes; an objective is a line that the curve must stay below. None without samples."""
    room = max(width - LABEL - 2, 20)
    points = curve(histogram, room)
    if not points:
        return None
    limits = _limits_of(objectives)
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


# Pictures as inline SVG: latency heat map, percentile curves, bars. The classes get their colours from auditor.report.html.

WIDTH = 960
LEFT, RIGHT, TOP, STEP = 74.0, 24.0, 16.0, 26
LEVELS = (0.0, 0.005, 0.02, 0.05, 0.1, 0.3)  # above this share of the syncs of a column, one shade darker
LINES_MOST = 150  # transaction groups, above which lines through the whole picture would hide it
COLOURS = 6


class Frame(NamedTuple):
    """Maps numbers to a drawing. xs: (left, right) in their own unit; ys: (bottom, top) in nanoseconds, logarithmic."""

    xs: tuple[float, float]
    ys: tuple[float, float]
    height: float

    def x(self, value: float) -> float:
        span = self.xs[1] - self.xs[0]
        share = (value - self.xs[0]) / span if span > 0 else 0.0
        return LEFT + min(max(share, 0.0), 1.0) * (WIDTH - LEFT - RIGHT)

    def y(self, ns: float) -> float:
        low, high = math.log(self.ys[0]), math.log(self.ys[1])
        share = (math.log(max(ns, 1e-9)) - low) / (high - low)
        return TOP + (1 - min(max(share, 0.0), 1.0)) * self.height


def latency_map(run: Run, objectives: Sequence[Percentile]) -> Element | None:
    """Time from left to right, latency upwards; transaction groups as lines and a strip below. None without a timeline."""
    drawn = heat_map(run, 240, 40, fine=True)
    if drawn is None:
        return None
    span = (drawn.columns[0][0], drawn.columns[-1][1])
    frame = Frame(span, (drawn.rows[0], drawn.rows[-1]), 240.0)
    bottom = TOP + frame.height
    parts = [*_latency_axis(frame), *_txgs(drawn, frame), *_cells(drawn, frame), *_limits(frame, objectives)]
    parts += [_text(frame.x(at), bottom + 38, f"{at} s", "middle") for at in moments(*span)]
    return _svg(f"Latency of each sync of run {run.name} over time", bottom + 46, parts)


def _cells(drawn: HeatMap, frame: Frame) -> Iterable[Element]:
    """One path for each shade, in it a rectangle for the rows of a column that share it: much shorter than one a cell."""
    paths: list[list[str]] = [[] for _ in LEVELS]
    for (start, end), column in zip(drawn.columns, drawn.cells, strict=True):
        left, right = frame.x(start), frame.x(end)
        for level, alike in groupby(range(len(column)), key=lambda row: sum(column[row] > each for each in LEVELS)):
            rows = list(alike)
            if level:
                top, bottom = frame.y(drawn.rows[rows[-1] + 1]), frame.y(drawn.rows[rows[0]])
                paths[level - 1].append(f"M{left:.1f} {top:.1f}H{right:.1f}V{bottom:.1f}H{left:.1f}z")
    return [_path(f"h{level}", "".join(path)) for level, path in enumerate(paths) if path]


def _txgs(drawn: HeatMap, frame: Frame) -> Iterable[Element]:
    bottom = TOP + frame.height
    if drawn.syncing:
        yield _text(LEFT - 8, bottom + 15, "TXG sync", "end")
    strip = "".join(
        f"M{frame.x(start):.1f} {bottom + 6:.1f}h{max(frame.x(end) - frame.x(start), 1):.1f}v10H{frame.x(start):.1f}z"
        for start, end in drawn.syncing
    )
    yield _path("txg", strip)
    if len(drawn.syncing) <= LINES_MOST:
        yield _path("txgline", "".join(f"M{frame.x(start):.1f} {TOP}V{bottom:.1f}" for start, _ in drawn.syncing))


def _limits(frame: Frame, objectives: Sequence[Percentile]) -> Iterable[Element]:
    for each in objectives:
        if each.limit_ns is not None and frame.ys[0] < each.limit_ns < frame.ys[1]:
            y = frame.y(each.limit_ns)
            label = f"{percentile_name(each.q)} objective {duration(each.limit_ns)}"
            yield _path("limit", f"M{LEFT} {y:.1f}H{WIDTH - RIGHT}")
            yield _text(WIDTH - RIGHT - 4, y - 4, label, "end", "limitname")


class Curve(NamedTuple):
    name: str
    latency: Histogram
    percentiles: Sequence[Percentile]


def percentile_curves(runs: Sequence[Curve]) -> Element | None:
    """Latency of each over 1/(1-q), both logarithmic; dashed where too few samples lie beyond. None without samples."""
    curves = [(run, points) for run in runs if (points := curve(run.latency, 240))]
    if not curves:
        return None
    limits = list(dict.fromkeys(limit for run in runs for limit in _limits_of(run.percentiles)))
    values = [point.ns for _, points in curves for point in points] + [limit for _, limit in limits]
    last = max(points[-1].x for _, points in curves)
    low, high = max(min(values), 1) / 1.3, max(max(values), 1) * 1.3
    frame = Frame((0.0, last), (low, high), 260.0)
    bottom = TOP + frame.height
    parts: list[Element | None] = list(_latency_axis(frame))
    for x, text in ticks(last):
        parts.append(_path("grid", f"M{frame.x(x):.1f} {TOP}V{bottom:.1f}"))
        parts.append(_text(frame.x(x), bottom + 18, text, "middle"))
    for q, limit in limits:
        x, y = frame.x(-math.log10(1 - q)), frame.y(limit)
        parts.append(_path("limit", f"M{LEFT} {y:.1f}H{x:.1f}M{x:.1f} {y - 6:.1f}v12"))
        parts.append(_text(x - 4, y - 5, f"{percentile_name(q)} objective {duration(limit)}", "end", "limitname"))
    for i, (_, points) in enumerate(curves):
        judged = [point for point in points if point.judged]
        beyond = judged[-1:] + [point for point in points if not point.judged]
        for name, line in ((f"c{i % COLOURS}", judged), (f"c{i % COLOURS} beyond", beyond)):
            way = "L".join(f"{frame.x(point.x):.1f} {frame.y(point.ns):.1f}" for point in line)
            parts.append(_path(name, f"M{way}") if line else None)
    for i, (run, _) in enumerate(curves[: 2 * COLOURS]):
        y = bottom - 12 - 18 * i  # below the curves, which rise to the right
        parts.append(_path(f"c{i % COLOURS}", f"M{WIDTH - RIGHT - 34} {y - 4}h26"))
        parts.append(_text(WIDTH - RIGHT - 42, y, run.name, "end", "runname"))
    return _svg("Latency that a share of the syncs did not exceed, by run", bottom + 28, parts)


def histogram(latency: Histogram, what: str) -> Element | None:
    """How many took how long, a bar for each power of two. what: is counted. None without samples."""
    counts = Counter[int]()
    for ns, count in latency.counts:
        counts[(max(ns - 1, 0) // 1000).bit_length()] += count
    if not counts:
        return None
    rows = [(1000 << power, counts[power]) for power in range(min(counts), max(counts) + 1)]
    left, room = 110.0, WIDTH - 110.0 - RIGHT - 130
    most = max(count for _, count in rows)
    parts = list[Element]()
    for i, (ns, count) in enumerate(rows):
        says = f"{count:,} ({100 * count / latency.samples:.3g} %)"
        parts += _bar_row(i, left, f"≤ {duration(ns)}", left, room * count / most, says)
    told = ", ".join(f"{count:,} up to {duration(ns)}" for ns, count in rows)
    return _svg(f"{what[:1].upper()}{what[1:]} by latency: {told}", TOP + STEP * len(rows) + 8, parts)


class StreamBar(NamedTuple):
    """A stream of commits. beyond: how far the newest found one is past the acknowledged one; gone: how far before it the
    first missing one is. None: unknown, or nothing."""

    label: str
    beyond: int | None
    gone: int | None


def reaches(title: str, rows: Sequence[StreamBar]) -> Element:
    """Commits from left to right, by the last acknowledged one, which is a line."""
    left = 150.0
    ends = [each.beyond or 0 for each in rows] + [-(each.gone or 0) for each in rows]
    low, high = min(ends) - 1, max(ends) + 1
    bottom = TOP + STEP * len(rows)

    def at(commits: int) -> float:
        return left + (commits - low) / (high - low) * (WIDTH - left - RIGHT - 60)

    parts = list[Element]()
    for i, row in enumerate(rows):
        y = TOP + STEP * i
        if row.beyond is None:
            parts += _text(left - 10, y + 16, row.label, "end"), _text(at(0) + 8, y + 16, "not read", "start")
            continue
        first, last = sorted((at(0), at(row.beyond)))
        parts += _bar_row(i, left, row.label, first, last - first, f"{row.beyond:+,}")
        if row.gone:
            parts.append(_path("limit", f"M{at(-row.gone):.1f} {y + 12}H{at(0):.1f}"))
    parts.append(_path("spread", f"M{at(0):.1f} {TOP}V{bottom}"))
    parts.append(_text(at(0), bottom + 16, "acknowledged", "middle"))
    return _svg(title, bottom + 24, parts)


def _latency_axis(frame: Frame) -> Iterable[Element]:
    for ns in named(*frame.ys, 9):
        if frame.ys[0] <= ns <= frame.ys[1]:
            y = frame.y(ns)
            yield _path("grid", f"M{LEFT} {y:.1f}H{WIDTH - RIGHT}")
            if y < TOP + frame.height - 10:  # below is the strip of the transaction groups
                yield _text(LEFT - 8, y + 4, duration(ns), "end")


def _path(name: str, way: str) -> Element:
    return element("path", class_=name, d=way)


def _bar_row(i: int, left: float, label: str, x: float, wide: float, says: str = "") -> Iterable[Element]:
    y = TOP + STEP * i
    yield _text(left - 10, y + 16, label, "end")
    yield element("rect", class_="bar", x=f"{x}", y=f"{y + 3}", width=f"{wide:.1f}", height="18")
    if says:
        yield _text(x + wide + 8, y + 16, says, "start")


def _text(x: float, y: float, text: str, anchor: str, name: str | None = None) -> Element:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=name)


def _svg(title: str, height: float, parts: Iterable[Element | None]) -> Element:
    box = f"0 0 {WIDTH} {height:.0f}"
    drawn = element("svg", element("title", title), *parts, viewBox=box, role="img", aria_label=title)
    return element("div", drawn, class_="table", tabindex="0")
