"""``zaudit diagnose --watch``: its lines, with columns of a fixed width, so that they are below each other and a program can
cut them; and where they go."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence

from auditor.commands._terminal import note, say, width
from auditor.diagnose.diagnosis import Second
from auditor.text import harmless
from auditor.units import duration, size

HEADER_EVERY = 20  # lines, after which the names of the columns come again
WIDTHS = {
    "time": 8, "commits/s": 9, "own/s": 7, "own mean": 8, "mean": 7, "p99": 7, "slowest": 7, "log write": 9, "flush": 7,
    "held": 5, "dirty": 8, "TXG": 4, "synced in": 9,
}  # fmt: skip
NARROWED = ("own/s", "own mean")
LAST = ("synced in", "slowest", "dirty", "TXG", "p99", "held")  # of which a narrow terminal lacks the first ones
GAP, NONE = "  ", "-"


def columns(*, narrowed: bool, width: int | None) -> list[str]:
    """Their names. narrowed: with those of the process or dataset that was named; width: of the terminal, None for a file."""
    told = [each for each in WIDTHS if narrowed or each not in NARROWED]
    for each in LAST:
        if width is not None and sum(WIDTHS[name] + len(GAP) for name in told) - len(GAP) > width:
            told.remove(each)
    return told


def header(told: Sequence[str]) -> str:
    """The names."""
    return _line(told, {each: each for each in told})


def row(second: Second, told: Sequence[str]) -> str:
    """One second; a dash for what was not seen."""
    return _line(told, {
        "time": time.strftime("%H:%M:%S", time.localtime(second.at)),
        "commits/s": _rate(second.commits, second.seconds),
        "own/s": _rate(second.own, second.seconds),
        "own mean": _took(second.own_mean_ns),
        "mean": _took(second.mean_ns),
        "p99": _took(second.p99_ns),
        "slowest": _took(second.most_ns),
        "log write": _took(second.write_ns),
        "flush": _took(second.flush_ns),
        "held": NONE if second.held is None else f"{second.held:,}",
        "dirty": NONE if second.dirty is None else size(second.dirty),
        "TXG": harmless(second.states) or NONE,
        "synced in": NONE if second.sync_s is None else duration(second.sync_s * 1e9),
    })  # fmt: skip


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


def _line(told: Sequence[str], cells: Mapping[str, str]) -> str:
    return GAP.join(cells[each].rjust(WIDTHS[each]) for each in told)


def _rate(count: int | None, seconds: float) -> str:
    return NONE if count is None or seconds <= 0 else f"{count / seconds:,.0f}"


def _took(ns: float | None) -> str:
    return NONE if ns is None else duration(ns)


class Lines:
    """One line a second, each written at once. beside: to standard error, so that a report for programs stands alone on
    standard output."""

    def __init__(self, narrowed: str, *, beside: bool) -> None:
        self._narrowed = narrowed
        self._say: Callable[[str], None] = note if beside else say
        self._again = (sys.stderr if beside else sys.stdout).isatty()  # a file has names at its beginning alone
        self._columns = columns(narrowed=bool(narrowed), width=width() if self._again else None)
        self._count = 0

    def begin(self, untraced: str) -> None:
        """untraced: why there is no trace, or empty."""
        for each in legend(self._narrowed, untraced):
            self._say(each)

    def line(self, second: Second) -> None:
        if self._count == 0 or (self._again and self._count % HEADER_EVERY == 0):
            self._say(header(self._columns))
        self._count += 1
        self._say(row(second, self._columns))
