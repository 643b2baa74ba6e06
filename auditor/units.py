"""Figures for people: three of them, in the unit that suits."""

from __future__ import annotations

BYTES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
TIMES = (("ns", 1), ("µs", 10**3), ("ms", 10**6), ("s", 10**9))


def size(count: float) -> str:
    """Bytes: 64 KiB, 1.53 MiB."""
    unit = 0
    while abs(count) >= 1024 and unit < len(BYTES) - 1:
        count, unit = count / 1024, unit + 1
    return f"{_figures(count)} {BYTES[unit]}"


def duration(ns: float) -> str:
    """Nanoseconds: 812 µs, 1.11 ms, 38 s. What is less than half of one is none."""
    ns = 0.0 if abs(ns) < 0.5 else ns
    unit, divisor = next(((unit, each) for unit, each in reversed(TIMES) if abs(ns) >= each), TIMES[0])
    return f"{_figures(ns / divisor)} {unit}"


def _figures(number: float) -> str:
    return f"{number:.3g}" if abs(number) < 999.5 else f"{number:,.0f}"
