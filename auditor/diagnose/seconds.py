"""What one second of a load comes to: a line of ``--watch``, told from two looks as a diagnosis is. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from auditor.diagnose import counters, histograms
from auditor.diagnose.commits import datasets_of
from auditor.diagnose.counters import Counted
from auditor.diagnose.diagnosis import log_class
from auditor.diagnose.histograms import Looked, Thread
from auditor.diagnose.model import Second
from auditor.diagnose.observation import Observation
from auditor.facts import HOST, Facts, Subject, is_true
from auditor.verify import witnesses
from auditor.verify.histogram import Histogram
from auditor.verify.trial import UNLOGGED, Reading


class Moment(NamedTuple):
    """One look."""

    reading: Reading
    looked: Looked


class Scope(NamedTuple):
    """What is watched. dataset: to which it is narrowed, empty for a pool or a process."""

    pool: str
    dataset: str
    facts: Facts


def second(first: Moment, before: Moment, after: Moment, wanted: Scope, threads: Collection[int] | None) -> Second:
    """From one look to the next. first: the one with which it began; threads: of a process to which it is narrowed. What cannot
    be told is None."""
    taken = max(after.reading.at - before.reading.at, 0.0)
    try:
        counted = _counted(before, after, wanted)
    except ValueError:
        return Second(at=after.reading.at, seconds=taken)
    since = before.looked.threads or before is first  # else a look is missing, and this one holds more than a second
    looked = after.looked if since else Looked()
    traced, latency = _traced(before.looked, looked), _latency(before.looked, looked)
    commits = sum(each.commits for each in traced) if traced is not None else counted.zil.commits
    own, own_mean = _own(first, after, counted, traced, wanted, threads)
    kind = log_class(counted, wanted.facts, Subject("pool", wanted.pool))
    legs = [leg for leg in counted.legs if leg.kind == kind and leg.writes]
    slowest = max(legs, key=lambda leg: leg.block_ns or 0.0, default=None)
    states, dirty, synced = _groups(after.reading.text.get(witnesses.txgs_path(wanted.pool), ""))
    return Second(
        at=after.reading.at,
        seconds=taken,
        commits=commits,
        mean_ns=_mean(traced),
        p99_ns=latency.judged(0.99) if latency else None,
        most_ns=latency.counts[-1][0] if latency and latency.counts else None,
        own=own,
        own_mean_ns=own_mean,
        device=slowest.device if slowest else "",
        write_ns=(slowest.block_ns if slowest.write_ns is None else slowest.write_ns) if slowest else None,
        flush_ns=slowest.flush_ns if slowest else None,
        held=counted.held,
        dirty=dirty,
        states=states,
        sync_s=synced,
    )


def _counted(before: Moment, after: Moment, wanted: Scope) -> Counted:
    """Raises ValueError."""
    seen = Observation("", wanted.pool, before.reading, after.reading, None, "", (), None, UNLOGGED)
    return counters.counted(seen, wanted.facts)


# -- traced -------------------------------------------------------------------------------------------------------


def _traced(before: Looked, after: Looked) -> tuple[Thread, ...] | None:
    """What each thread did meanwhile; None without a trace, and where it cannot be told."""
    if not after.threads or not histograms.whole(after.threads):
        return None
    earlier, later = histograms.threads(before.threads), histograms.threads(after.threads)
    if earlier.unread or later.unread:
        return None
    past = {(each.pid, each.name, each.zil): each for each in earlier.rows}
    found = []
    for each in later.rows:
        was = past.get((each.pid, each.name, each.zil))
        commits, us = (each.commits - was.commits, each.us - was.us) if was else (each.commits, each.us)
        if commits < 0 or us < 0:
            return None
        if commits:
            found.append(each._replace(commits=commits, us=us))
    return tuple(found)


def _latency(before: Looked, after: Looked) -> Histogram | None:
    if not after.latencies or not histograms.whole(after.latencies):
        return None
    try:
        return histograms.latencies(after.latencies).minus(histograms.latencies(before.latencies))
    except ValueError:
        return None


def _mean(threads: Sequence[Thread] | None) -> float | None:
    commits = sum(each.commits for each in threads or ())
    return sum(each.us for each in threads or ()) * 1000 / commits if commits else None


def _own(
    first: Moment,
    after: Moment,
    counted: Counted,
    traced: tuple[Thread, ...] | None,
    wanted: Scope,
    threads: Collection[int] | None,
) -> tuple[int | None, float | None]:
    """Commits of the process, or to the dataset, and their mean. Which ZIL is the one of a dataset is told by the counts since
    watching began."""
    if threads is not None:
        if not is_true(
            wanted.facts.get(HOST, "all_processes")
        ):  # the kernel numbers them otherwise than this container
            return None, None
        mine = [each for each in traced or () if each.pid in threads]
        return (sum(each.commits for each in mine) if traced is not None else None), _mean(mine)
    if not wanted.dataset:
        return None, None
    counts = [each.commits for each in counted.datasets if _within(each.name, wanted.dataset)]
    told = [each for each in counts if each is not None]
    mean = None
    if traced:
        everything = histograms.threads(after.looked.threads).rows
        zils = datasets_of(everything, _counted(first, after, wanted), wanted.facts)
        mean = _mean([each for each in traced if _within(zils.get(each.zil, ""), wanted.dataset)])
    return (sum(told) if told else None), mean


def _within(name: str, dataset: str) -> bool:
    return name == dataset or name.startswith(f"{dataset}/")


# -- transaction groups -------------------------------------------------------------------------------------------


def _groups(text: str) -> tuple[str, int | None, float | None]:
    """The states of those that are not committed, oldest first; the dirty bytes of the newest of which they are known, which is
    syncing or was synced last; and how long the last one took to sync. (OpenZFS module/zfs/spa_stats.c)"""
    states, dirty, synced = "", None, None
    for line in text.splitlines()[-100:]:
        cells = line.split()
        if len(cells) != 12 or not all(map(witnesses.COUNT.fullmatch, (cells[0], cells[3], cells[11]))):
            continue
        if cells[2] == "C":
            dirty, synced = int(cells[3]), int(cells[11]) / 1e9
        elif cells[2] in "BOQWS":
            states += cells[2]
            dirty = int(cells[3]) or dirty
    return states, dirty, synced
