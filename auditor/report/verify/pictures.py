"""Pictures as text: latency heat map, percentile curve, bars. Unicode; :data:`auditor.report.console.ASCII` is one to one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from auditor.report.verify.grids import curve as points_of
from auditor.report.verify.grids import heat_map as map_of
from auditor.report.verify.grids import named, row_of, share_within, ticks
from auditor.units import duration
from auditor.verify.histogram import Histogram
from auditor.verify.model import Percentile
from auditor.verify.result import Run

LABEL = 8  # columns of the axis on the left
SHADES = ((0.30, "█"), (0.10, "▓"), (0.02, "▒"), (0.0, "░"))  # above this share of the syncs of a column
SHADES_SAY = "░ some ▒ over 2 % ▓ over 10 % █ over 30 % of the syncs in a column; a row reaches up to the next latency."


class Picture(NamedTuple):
    """lines: as wide as was asked for. says: how to read it, to be wrapped."""

    lines: tuple[str, ...]
    says: str


def heat_map(run: Run, width: int, rows: int = 14) -> Picture | None:
    """Time from left to right, latency upwards on a log axis; below, when transaction groups were synced.

    None without a timeline.
    """
    room = max(width - LABEL - 2, 10)
    drawn = map_of(run, room, rows)
    if drawn is None:
        return None
    wide = max(room // len(drawn.columns), 1)
    lines = [
        _line(duration(drawn.rows[row]), "".join(_shade(column[row]) * wide for column in drawn.cells))
        for row in reversed(range(len(drawn.rows) - 1))
    ]
    lines.append(_base(len(drawn.columns) * wide))
    if drawn.syncing:
        lines.append(_line("TXG sync", "".join(_busy(drawn.syncing, *span) * wide for span in drawn.columns)))
    start, end = drawn.columns[0][0], drawn.columns[-1][1]
    middle = drawn.columns[len(drawn.columns) // 2][0]
    across = len(drawn.columns) * wide
    lines.append(_labels([(0, _s(start)), (across // 2, _s(middle)), (across, _s(end))], across))
    synced = " TXG sync: ▂ a transaction group was synced, █ for most of the column." if drawn.syncing else ""
    return Picture(tuple(lines), SHADES_SAY + synced)


def _shade(share: float) -> str:
    return next((shade for least, shade in SHADES if share > least), " ")


def _busy(spans: Iterable[tuple[float, float]], start: float, end: float) -> str:
    share = share_within(spans, start, end)
    return "█" if share > 0.5 else "▂" if share > 0 else " "


def _s(seconds: float) -> str:
    return f"{seconds:.0f} s"


def percentile_curve(
    histogram: Histogram, objectives: Sequence[Percentile], width: int, rows: int = 14
) -> Picture | None:
    """Latency over 1/(1-q) on log axes; an objective is a line that the curve must stay below. None without samples."""
    room = max(width - LABEL - 2, 20)
    points = points_of(histogram, room)
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
    lines = [_line(duration(levels[row]), "".join(cells[row])) for row in reversed(range(len(cells)))]
    lines.append(_base(room))
    lines.append(_labels([(round(x / last * (room - 1)), text) for x, text in ticks(last)], room))
    says = "● the latency that a share of the syncs did not exceed"
    if any(not point.judged for point in points):
        says += ", ○ with too few samples beyond it"
    if limits:
        says += "; ─┤ an objective"
    return Picture(tuple(lines), says + ".")


class Bar(NamedTuple):
    """One bar. value: where it ends; low, high: between which its trials lie."""

    label: str
    value: float
    low: float
    high: float
    text: str


def bars(rows: Sequence[Bar], width: int, mark: float) -> list[str]:
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


def _line(label: str, cells: str) -> str:
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
