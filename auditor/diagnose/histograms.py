"""What the kernel's histogram triggers print. (Linux Documentation/trace/histogram.rst; kernel/trace/trace_events_hist.c)

One line an entry, ``{ common_pid: postgres [ 338], zil: 1 } hitcount: 300 us: 8127205``, and at the end ``Hits``, ``Entries``
and ``Dropped``: what found no room any more. A key ``us: ~ 2^14`` stands for more than 2^13 microseconds, up to 2^14
(hist_field_log2() rounds up).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from auditor.diagnose.observation import Tick
from auditor.verify.histogram import Histogram
from auditor.verify.result import Slice

MOST = 4096  # entries of a histogram
_ENTRY = re.compile(r"^\{ (.{1,400}?) \} hitcount: {1,20}([0-9]{1,19})(?: {1,20}us: {1,20}([0-9]{1,19}))?[ \t]*$", re.M)
_THREAD = re.compile(r"common_pid: (.{1,64}?) {0,20}\[ {0,12}([0-9]{1,9})\](?:, zil: {1,20}([0-9]{1,9}))?")
_POWER = re.compile(r"us: ~ 2\^([0-9]{1,2})")
_DROPPED = re.compile(r"^ {4}Dropped: ([0-9]{1,19})$", re.M)


class Thread(NamedTuple):
    """Commits of one thread to one ZIL. zil: a number that stands for it, 0 where it is not known."""

    pid: int
    name: str
    zil: int
    commits: int
    us: int


def whole(text: str) -> bool:
    """Whether it is a histogram in which everything found room. An empty one prints no entries and drops none."""
    dropped = _DROPPED.search(text)
    return dropped is not None and int(dropped[1]) == 0


def threads(text: str) -> tuple[Thread, ...]:
    """Raises ValueError where an entry is not understood."""
    found = []
    for key, hits, us in _entries(text):
        thread = _THREAD.fullmatch(key)
        if thread is None or not us:
            raise ValueError("a histogram of commits with an entry of another kind")
        found.append(Thread(int(thread[2]), thread[1], int(thread[3] or 0), int(hits), int(us)))
    return tuple(found)


def latencies(text: str) -> Histogram:
    """Microseconds by powers of two; a bucket is called by its upper end. Raises ValueError as :func:`threads`."""
    bins: dict[int, int] = {}
    for key, hits, _ in _entries(text):
        power = _POWER.fullmatch(key.rstrip())
        if power is None:
            raise ValueError("a histogram of latencies with an entry of another kind")
        ns = (1 << min(int(power[1]), 40)) * 1000
        bins[ns] = bins.get(ns, 0) + int(hits)
    return Histogram.of(bins)


def slices(began: float, ticks: Sequence[Tick]) -> tuple[Slice, ...]:
    """What was added between one tick and the next. Raises ValueError where a histogram lost samples."""
    found = []
    start, earlier = began, Histogram()
    for tick in ticks:
        now = latencies(tick.commits)
        found.append(Slice(round(start - began, 3), round(tick.at - began, 3), now.minus(earlier)))
        start, earlier = tick.at, now
    return tuple(found)


def _entries(text: str) -> list[tuple[str, str, str]]:
    entries = _ENTRY.findall(text)
    if len(entries) != sum(line.startswith("{") for line in text.split("\n")):
        raise ValueError("a histogram with an entry that is cut off")
    if len(entries) > MOST:
        raise ValueError("a histogram with more entries than one may have")
    return entries
