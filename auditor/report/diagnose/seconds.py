"""The lines of ``--watch``: columns of a fixed width, so that they stand below each other and can be cut apart by a program."""

from __future__ import annotations

import time
from collections.abc import Sequence

from auditor.diagnose.model import Second
from auditor.text import harmless
from auditor.units import duration, size

EVERY = 20  # lines, after which the names of the columns come again
COLUMNS = ("time", "commits/s", "mean", "p99", "slowest", "log write", "flush", "held", "dirty", "TXG", "synced in")
WIDTHS = (8, 9, 7, 7, 7, 9, 7, 5, 8, 4, 9)
OWN, OWN_WIDTHS = ("own/s", "own mean"), (7, 8)
NONE = "-"


def header(narrowed: bool) -> str:
    """The names. narrowed: with columns for the process or dataset that was named."""
    return _line((*COLUMNS[:2], *OWN, *COLUMNS[2:]) if narrowed else COLUMNS, narrowed)


def row(second: Second, narrowed: bool) -> str:
    """One second; a dash for what was not seen."""
    cells = [time.strftime("%H:%M:%S", time.localtime(second.at)), _rate(second.commits, second.seconds)]
    if narrowed:
        cells += [_rate(second.own, second.seconds), _took(second.own_mean_ns)]
    cells += [
        _took(second.mean_ns), _took(second.p99_ns), _took(second.most_ns), _took(second.write_ns), _took(second.flush_ns),
        NONE if second.held is None else f"{second.held:,}", NONE if second.dirty is None else size(second.dirty),
        harmless(second.states) or NONE, NONE if second.sync_s is None else duration(second.sync_s * 1e9),
    ]  # fmt: skip
    return _line(cells, narrowed)


def legend(narrowed: str, untraced: str) -> list[str]:
    """What is said once, before the first line. narrowed: to what, or empty; untraced: why there is no trace, or empty."""
    told = []
    if untraced:
        told.append(f"How long commits take is not seen ({NONE}): {harmless(untraced)}.")
    if narrowed:
        told.append(f"own: of {harmless(narrowed)}; everything else is of the whole pool.")
    return [
        *told,
        "p99 and slowest: at most so long; log write, flush: mean of the slowest leg; held: writes held back;",
        "dirty: of the newest TXG that syncs or was synced; TXG: under way (O open, Q quiescing, W waiting, S syncing).",
    ]


def _line(cells: Sequence[str], narrowed: bool) -> str:
    widths = (*WIDTHS[:2], *OWN_WIDTHS, *WIDTHS[2:]) if narrowed else WIDTHS
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def _rate(count: int | None, seconds: float) -> str:
    return NONE if count is None or seconds <= 0 else f"{count / seconds:,.0f}"


def _took(ns: float | None) -> str:
    return NONE if ns is None else duration(ns)
