"""Sizes, times and percentiles as people write them on a command line and in a job file."""

from __future__ import annotations

import re

from auditor.errors import Stop

SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ns|us|µs|ms|s)")
POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
MOST = 2.0**62
NANOSECONDS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


class ProfileError(Stop, ValueError):
    """A job file, size or objective that cannot be used, and why."""


def size_bytes(text: str) -> int:
    """Bytes of ``8k``, ``64m``, ``1g`` (powers of 1024, as fio has it by default). Raises ProfileError."""
    found = SIZE.fullmatch(text.strip())
    if not found:
        raise ProfileError(f"{text!r} is not a size such as 8k, 64m or 1g")
    return _whole(found[1], 1024 ** POWERS[found[2].lower()])


def _whole(number: str, times: int) -> int:
    """Their product, in 64 bits. Raises ProfileError."""
    product = float(number) * times
    if product > MOST:
        raise ProfileError(f"{number[:20]} is too large")
    return int(product)


def nanoseconds(text: str) -> int:
    """Of ``5ms``, ``800us``, ``1s``. Raises ProfileError."""
    found = TIME.fullmatch(text.strip())
    if not found:
        raise ProfileError(f"{text!r} is not a time such as 800us, 5ms or 1s")
    return _whole(found[1], NANOSECONDS[found[2]])


def share(percentile: str) -> float:
    """0.99 of ``p99`` or ``99``, 0.999 of ``p99.9``. Raises ProfileError."""
    try:
        q = float(percentile.strip().removeprefix("p")) / 100
    except ValueError:
        q = 0.0
    if not 0 < q < 1:
        raise ProfileError(f"{percentile!r} is not a percentile such as p99 or p99.9")
    return round(q, 9)
