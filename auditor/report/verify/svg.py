"""Pictures as inline SVG: latency heat map, percentile curves, bars. The classes get their colours from page.py."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from auditor.report.page import escaped
from auditor.report.verify.grids import HeatMap, Point, curve, doublings, heat_map, named, ticks
from auditor.report.verify.pictures import Bar
from auditor.verify.model import percentile_name
from auditor.units import duration
from auditor.verify.histogram import Histogram
from auditor.verify.model import Percentile
from auditor.verify.result import Run

WIDTH = 960
LEFT, RIGHT, TOP = 74.0, 24.0, 16.0
LEVELS = (0.0, 0.005, 0.02, 0.05, 0.1, 0.3)  # above this share of the syncs of a column, one shade darker
LINES_MOST = 150  # transaction groups, above which lines through the whole picture would hide it
COLOURS = 6


class Frame(NamedTuple):
    """Where numbers are in a drawing. xs: (left, right) in their own unit; ys: (bottom, top) in nanoseconds, logarithmic."""

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


def latency_map(run: Run, objectives: Sequence[Percentile]) -> str:
    """Time from left to right, latency upwards; transaction groups as lines and a strip below. Empty without a timeline."""
    drawn = heat_map(run, 240, 40, fine=True)
    if drawn is None:
        return ""
    span = (drawn.columns[0][0], drawn.columns[-1][1])
    frame = Frame(span, (drawn.rows[0], drawn.rows[-1]), 240.0)
    bottom = TOP + frame.height
    parts = [*_latency_axis(frame), *_txgs(drawn, frame), *_cells(drawn, frame), *_limits(frame, objectives)]
    parts += [
        _text(frame.x(at), bottom + 38, f"{at:.0f} s", "middle")
        for at in (span[0] + (span[1] - span[0]) * i / 6 for i in range(7))
    ]
    return _svg(f"Latency of each sync of run {run.name} over time", bottom + 46, parts)


def _cells(drawn: HeatMap, frame: Frame) -> Iterable[str]:
    """One path for each shade, in it a rectangle for the rows of a column that share it: much shorter than one a cell."""
    paths: list[list[str]] = [[] for _ in LEVELS]
    for (start, end), column in zip(drawn.columns, drawn.cells, strict=True):
        left, right = frame.x(start), frame.x(end)
        for level, together in groupby(range(len(column)), key=lambda row: sum(column[row] > each for each in LEVELS)):
            rows = list(together)
            if level:
                top, bottom = frame.y(drawn.rows[rows[-1] + 1]), frame.y(drawn.rows[rows[0]])
                paths[level - 1].append(f"M{left:.1f} {top:.1f}H{right:.1f}V{bottom:.1f}H{left:.1f}z")
    return [f'<path class="h{level}" d="{"".join(path)}"/>' for level, path in enumerate(paths) if path]


def _txgs(drawn: HeatMap, frame: Frame) -> Iterable[str]:
    bottom = TOP + frame.height
    if drawn.syncing:
        yield _text(LEFT - 8, bottom + 15, "TXG sync", "end")
    strip = "".join(
        f"M{frame.x(start):.1f} {bottom + 6:.1f}h{max(frame.x(end) - frame.x(start), 1):.1f}v10H{frame.x(start):.1f}z"
        for start, end in drawn.syncing
    )
    yield f'<path class="txg" d="{strip}"/>'
    if len(drawn.syncing) <= LINES_MOST:
        lines = "".join(f"M{frame.x(start):.1f} {TOP}V{bottom:.1f}" for start, _ in drawn.syncing)
        yield f'<path class="txgline" d="{lines}"/>'


def _limits(frame: Frame, objectives: Sequence[Percentile]) -> Iterable[str]:
    for each in objectives:
        if each.limit_ns is not None and frame.ys[0] < each.limit_ns < frame.ys[1]:
            y = frame.y(each.limit_ns)
            label = f"{percentile_name(each.q)} objective {duration(each.limit_ns)}"
            yield f'<path class="limit" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            yield _text(WIDTH - RIGHT - 4, y - 4, label, "end", "limitname")


class Curve(NamedTuple):
    """A distribution that is drawn, with its objectives."""

    name: str
    latency: Histogram
    percentiles: Sequence[Percentile]


def percentile_curves(runs: Sequence[Curve]) -> str:
    """Latency of each over 1/(1-q), both logarithmic; dashed where too few samples lie beyond. Empty without samples."""
    curves = [(run, points) for run in runs if (points := curve(run.latency, 240))]
    if not curves:
        return ""
    limits = list(
        dict.fromkeys(
            (each.q, each.limit_ns)
            for run in runs
            for each in run.percentiles
            if each.limit_ns is not None and each.limit_ns > 0 and 0 < each.q < 1
        )
    )
    values = [point.ns for _, points in curves for point in points] + [limit for _, limit in limits]
    last = max(points[-1].x for _, points in curves)
    low, high = max(min(values), 1) / 1.3, max(max(values), 1) * 1.3
    frame = Frame((0.0, last), (low, high), 260.0)
    bottom = TOP + frame.height
    parts = list(_latency_axis(frame))
    for x, text in ticks(last):
        parts.append(f'<path class="grid" d="M{frame.x(x):.1f} {TOP}V{bottom:.1f}"/>')
        parts.append(_text(frame.x(x), bottom + 18, text, "middle"))
    for q, limit in limits:
        x, y = frame.x(-math.log10(1 - q)), frame.y(limit)
        parts.append(f'<path class="limit" d="M{LEFT} {y:.1f}H{x:.1f}M{x:.1f} {y - 6:.1f}v12"/>')
        parts.append(_text(x - 4, y - 5, f"{percentile_name(q)} objective {duration(limit)}", "end", "limitname"))
    for i, (_, points) in enumerate(curves):
        judged = [point for point in points if point.judged]
        beyond = judged[-1:] + [point for point in points if not point.judged]
        parts.append(_line(judged, frame, f"c{i % COLOURS}"))
        parts.append(_line(beyond, frame, f"c{i % COLOURS} beyond"))
    for i, (run, _) in enumerate(curves[: 2 * COLOURS]):
        y = bottom - 12 - 18 * i  # below the curves, which rise to the right
        parts.append(f'<path class="c{i % COLOURS}" d="M{WIDTH - RIGHT - 34} {y - 4}h26"/>')
        parts.append(_text(WIDTH - RIGHT - 42, y, run.name, "end", "runname"))
    return _svg("Latency that a share of the syncs did not exceed, by run", bottom + 28, parts)


def _line(points: Sequence[Point], frame: Frame, name: str) -> str:
    if not points:
        return ""
    way = "L".join(f"{frame.x(point.x):.1f} {frame.y(point.ns):.1f}" for point in points)
    return f'<path class="{name}" d="M{way}"/>'


def histogram(latency: Histogram, what: str) -> str:
    """How many took how long, a bar for each power of two. what: is counted. Empty without samples."""
    rows = doublings(latency)
    if not rows:
        return ""
    step, left, room = 26, 110.0, WIDTH - 110.0 - RIGHT - 130
    most = max(count for _, count in rows)
    parts = []
    for i, (ns, count) in enumerate(rows):
        y, wide = TOP + step * i, room * count / most
        parts.append(_text(left - 10, y + 16, f"≤ {duration(ns)}", "end"))
        parts.append(f'<rect class="bar" x="{left}" y="{y + 3}" width="{wide:.1f}" height="18"/>')
        parts.append(_text(left + wide + 8, y + 16, f"{count:,} ({100 * count / latency.samples:.3g} %)", "start"))
    told = ", ".join(f"{count:,} up to {duration(ns)}" for ns, count in rows)
    return _svg(f"{what[:1].upper()}{what[1:]} by latency: {told}", TOP + step * len(rows) + 8, parts)


def bars(rows: Sequence[Bar], mark: float, mark_name: str) -> str:
    """Bars on a log axis from 1 on, with the spread of the trials, and a line at a value that they are measured by."""
    step, left = 26, 270.0
    top = math.log(max([row.high for row in rows] + [mark]) * 1.1)
    room = WIDTH - left - RIGHT - 70

    def at(value: float) -> float:
        return left + min(max(math.log(max(value, 1e-9)) / top, 0.0), 1.0) * room

    parts = []
    for i, row in enumerate(rows):
        y = TOP + step * i
        parts.append(_text(left - 10, y + 16, f"{row.label}   {row.text}", "end"))
        parts.append(f'<rect class="bar" x="{left}" y="{y + 3}" width="{at(row.value) - left:.1f}" height="18"/>')
        parts.append(f'<path class="spread" d="M{at(row.low):.1f} {y + 12}H{at(row.high):.1f}"/>')
    bottom = TOP + step * len(rows)
    parts.append(f'<path class="limit" d="M{at(mark):.1f} {TOP}V{bottom}"/>')
    parts.append(_text(at(mark), bottom + 16, mark_name, "middle", "limitname"))
    return _svg("Time by how often is synced", bottom + 24, parts)


# -- axes ----------------------------------------------------------------------------------------------------------


def _latency_axis(frame: Frame) -> Iterable[str]:
    for ns in named(*frame.ys, 9):
        if frame.ys[0] <= ns <= frame.ys[1]:
            y = frame.y(ns)
            yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            if y < TOP + frame.height - 10:  # below is the strip of the transaction groups
                yield _text(LEFT - 8, y + 4, duration(ns), "end")


def _text(x: float, y: float, text: str, anchor: str, name: str = "") -> str:
    kind = f' class="{name}"' if name else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escaped(text)}</text>'


def _svg(title: str, height: float, parts: Iterable[str]) -> str:
    return (
        f'<div class="table" tabindex="0"><svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escaped(title)}">'
        f"<title>{escaped(title)}</title>{''.join(parts)}</svg></div>"
    )
