"""What causes are found in, and what their finders share. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from auditor.diagnose.counters import Counted, Leg
from auditor.facts import Facts, Subject
from auditor.sources import kstat
from auditor.text import quoted
from auditor.verify.failures import Failure

FEW = 20  # writes, commits or delays below which nothing is concluded
SLOWER, SLOWER_NS = 2.5, 2e6  # a leg stands out when it takes so many times as long as the others, and so much longer


class Seen(NamedTuple):
    """What causes are found in. kind: the class of vdevs where log blocks land, or empty. committers: threads that commit to
    the busiest ZIL, None without a trace; waiting: how many are in a commit at any moment, on the average; woken: the least
    and the most of a commit, 0 to 1, that is waiting for a CPU. failed: what the kernel logged of the pool's disks
    meanwhile. mixed: what the ZIL counted may be of other pools, too."""

    counted: Counted
    facts: Facts
    pool: Subject
    kind: str
    committers: int | None
    waiting: float
    woken: tuple[float, float]
    failed: tuple[Failure, ...]
    mixed: bool = False


def slower_leg(legs: tuple[Leg, ...]) -> tuple[Leg, float] | None:
    """The leg that takes much longer than the median of the others of its vdev, and how many times as long."""
    timed = [(leg, leg.block_ns) for leg in legs if leg.block_ns is not None and leg.writes >= FEW]
    if len(timed) < 2:
        return None
    worst, most = max(timed, key=lambda each: each[1])
    others = median(ns for leg, ns in timed if leg is not worst)
    if others <= 0 or most < SLOWER * others or most - others < SLOWER_NS:
        return None
    return worst, most / others


def legs_of(seen: Seen, *, log: bool) -> dict[str, tuple[Leg, ...]]:
    """Top-level vdev -> its legs, of the class of the log blocks, or of the others."""
    tops: dict[str, tuple[Leg, ...]] = {}
    for leg in seen.counted.legs:
        if (leg.kind == seen.kind) is log:
            tops[leg.top] = (*tops.get(leg.top, ()), leg)
    return tops


def growing(command: str) -> str:
    """The command that shows how counters grow which another one shows: they run since boot, import or mount. One with
    a name in $'...' stays as it is: watch hands it to sh, which need not know that form, and would end the word elsewhere."""
    return command if "$'" in command else f"watch -d {quoted(command)}"


def stat(device: str) -> str:
    """The command that shows the counters of a device."""
    return growing(f"cat {quoted(f'/sys/block/{device}/stat')}")


def status(seen: Seen) -> str:
    """The command that shows the state of the pool."""
    return f"zpool status {quoted(seen.pool.name)}"


def kstat_rows(seen: Seen, row: str) -> str:
    """The command that shows a row of the kstats of all datasets of the pool."""
    return growing(f"grep -w {row} {quoted(f'{kstat.ROOT}/{seen.pool.name}')}/objset-0x*")


def in_progress(seen: Seen) -> Iterator[str]:
    """scrub, resilver."""
    yield from (what for what in ("scrub", "resilver") if f"{what} in progress" in seen.counted.status)
