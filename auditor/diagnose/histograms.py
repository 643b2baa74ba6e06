"""What the kernel's histogram triggers print. (Linux Documentation/trace/histogram.rst; kernel/trace/trace_events_hist.c)

One line an entry, ``{ common_pid: postgres [ 338], zil: 1 } hitcount: 300 us: 8127205``, and at the end ``Hits``, ``Entries``
and ``Dropped``: what found no room any more. A key ``us: ~ 2^14`` stands for more than 2^13 microseconds, up to 2^14
(hist_field_log2() rounds up).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from auditor.diagnose.observation import Tick
from auditor.verify.histogram import Histogram
from auditor.verify.result import Slice

MOST = 4096  # entries of a histogram
LARGEST = 4 << 20  # bytes of a file of tracefs that are read: so many entries of at most 400, of several histograms
# a name is any 15 bytes, newlines and brackets among them; it is padded to 16 (hist_trigger_print_key())
_THREAD = re.compile(
    r"^\{ common_pid: ((?s:.){1,16}?) {0,20}\[ {0,12}([0-9]{1,9})\](?:, zil: {1,20}([0-9]{1,9}))?"
    r" \} hitcount: {1,20}([0-9]{1,19}) {1,20}us: {1,20}([0-9]{1,19})[ \t]*$",
    re.MULTILINE,
)
_LATENCY = re.compile(r"^\{ us: ~ 2\^([0-9]{1,2}) {0,20}\} hitcount: {1,20}([0-9]{1,19})[ \t]*$", re.MULTILINE)
_CALL = re.compile(
    r"^\{ common_pid: {1,20}([0-9]{1,9}), datasync: {1,20}([0-9]{1,20}) \} hitcount: {1,20}([0-9]{1,19})[ \t]*$",
    re.MULTILINE,
)
_ENTRY = re.compile(r"^\{", re.MULTILINE)
_DROPPED = re.compile(r"^ {4}Dropped: ([0-9]{1,19})$", re.M)


class Looked(NamedTuple):
    """Both histograms so far: of all commits by latency, and by thread and ZIL. Empty without a trace."""

    latencies: str = ""
    threads: str = ""


class Thread(NamedTuple):
    """Commits of one thread to one ZIL. zil: a number that stands for it, 0 where it is not known."""

    pid: int
    name: str
    zil: int
    commits: int
    us: int


class Threads(NamedTuple):
    """unread: entries that are not understood, at the least; what is counted without them is too little."""

    rows: tuple[Thread, ...]
    unread: int


def whole(text: str) -> bool:
    """Whether it is a histogram in which everything found room. An empty one prints no entries and drops none."""
    dropped = _DROPPED.search(text)
    return dropped is not None and int(dropped[1]) == 0


def threads(text: str) -> Threads:
    """Those that can be read: the name of one thread costs no other."""
    seen = text[:LARGEST]
    found = list(islice(_THREAD.finditer(seen), MOST))
    rows = (Thread(int(each[2]), each[1], int(each[3] or 0), int(each[4]), int(each[5])) for each in found)
    left = len(_ENTRY.findall(_THREAD.sub("", seen, count=MOST)))
    return Threads(tuple(rows), left + (len(text) > LARGEST))


def latencies(text: str) -> Histogram:
    """Microseconds by powers of two; a bucket is called by its upper end. Raises ValueError for an entry of another kind."""
    bins: dict[int, int] = {}
    for power, hits in _LATENCY.findall(text):
        ns = (1 << min(int(power), 40)) * 1000
        bins[ns] = bins.get(ns, 0) + int(hits)
    if _ENTRY.search(_LATENCY.sub("", text)):
        raise ValueError("a histogram of latencies with an entry of another kind")
    return Histogram.of(bins)


def calls(text: str) -> dict[int, tuple[int, int]]:
    """Thread -> its calls of fsync, and of fdatasync. Raises ValueError for an entry of another kind, and where one found no
    room."""
    found: dict[int, tuple[int, int]] = {}
    for thread, datasync, hits in _CALL.findall(text):
        full, data = found.get(int(thread), (0, 0))
        found[int(thread)] = (full, data + int(hits)) if int(datasync) else (full + int(hits), data)
    if not whole(text):
        raise ValueError("the histogram of calls had no room for all that came")
    if _ENTRY.search(_CALL.sub("", text)):
        raise ValueError("a histogram of calls with an entry of another kind")
    return found


def slices(began: float, ticks: Sequence[Tick]) -> tuple[Slice, ...]:
    """What was added between one tick and the next. Raises ValueError where a histogram lost samples."""
    found = []
    start, earlier = began, Histogram()
    for tick in ticks:
        now = latencies(tick.commits)
        found.append(Slice(round(start - began, 3), round(tick.at - began, 3), now.minus(earlier)))
        start, earlier = tick.at, now
    return tuple(found)
