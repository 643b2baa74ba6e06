"""What ``zaudit advise log`` says: whether a log device would help a pool, which kind, and how large, from counters that were
read. Pure.

A commit that finds sync=disabled is not counted (zil_commit() returns first). A log block is free again when its transaction
group is on disk; up to three of these are in the works, open, quiescing and syncing, so that the log holds at most what came
in meanwhile. Writers are throttled when it approaches zfs_wrlog_data_max. (OpenZFS module/zfs/zil.c,
include/sys/zil.h zil_stats_t, include/sys/txg.h TXG_CONCURRENT_STATES; man 4 zfs)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from auditor.facts import HOST, Facts, Known, Subject, Unknown, value_of
from auditor.text import harmless, quoted
from auditor.units import duration, size

ALLOCATED = "zil_itx_metaslab_normal_alloc", "zil_itx_metaslab_slog_alloc"
SHORT_S = 3600.0  # of less it is said that it is little to judge by
DAY_S, YEAR = 86400, 365
STATES = 3
SELDOM = 1.0  # commits a second below which nobody is seen to wait for them
HDD, UNPROTECTED, PROTECTED, UNSEEN = "hard disks", "unprotected", "protected", "unseen"


class NotMeasured(Exception):
    """The counters are not there; the text says why."""


class Measured(NamedTuple):
    """Of the datasets whose counters were read. rate: bytes of log blocks a second; seconds: the shortest time that was
    counted; unsynced: those with sync=disabled, whose commits are not counted; past: those with logbias=throughput."""

    commits: float
    rate: float
    seconds: float
    counted: int
    unseen: tuple[str, ...]
    unsynced: tuple[str, ...]
    past: tuple[str, ...]


def page(pool: Subject, facts: Facts) -> Iterator[str]:
    """Lines. Raises NotMeasured."""
    found = measured(pool, facts)
    yield f"Log device for pool {harmless(pool.name)}, by what was counted. Nothing is changed by this."
    yield ""
    yield from _seen(found)
    yield from _txgs(pool, facts)
    yield ""
    yield from _whether(pool, found, facts)
    if found.commits:
        yield ""
        yield from _size(pool, found, facts)
        yield from _which(pool, found, facts)


def measured(pool: Subject, facts: Facts) -> Measured:
    """The counters of all datasets of a pool together. Raises NotMeasured."""
    datasets = facts.get(pool, "datasets")
    if isinstance(datasets, Unknown):
        raise NotMeasured(datasets.reasons[0].text)
    commits = rate = 0.0
    times = list[float]()
    unseen, unsynced, past = list[str](), list[str](), list[str]()
    for dataset in facts.linked(pool, "datasets"):
        if value_of(facts.get(dataset, "sync")) == "disabled":
            unsynced.append(dataset.name)
        elif value_of(facts.get(dataset, "logbias")) == "throughput":
            past.append(dataset.name)
        names = ("zil_counted_s", "zil_commit_count", *ALLOCATED)
        values = [each.value for name in names if isinstance(each := facts.get(dataset, name), Known)]
        numbers = [float(each) for each in values if isinstance(each, int | float)]
        if len(numbers) < len(names) or numbers[0] <= 0:
            unseen.append(dataset.name)
            continue
        times.append(numbers[0])
        commits += numbers[1] / numbers[0]
        rate += (numbers[2] + numbers[3]) / numbers[0]
    if not times:
        raise NotMeasured(_why_not(pool, unseen, facts))
    return Measured(commits, rate, min(times), len(times), tuple(unseen), tuple(unsynced), tuple(past))


def _why_not(pool: Subject, unseen: Sequence[str], facts: Facts) -> str:
    if not unseen:
        return f"pool {pool} has no dataset"
    why = facts.get(Subject("dataset", unseen[0]), "zil_itx_metaslab_slog_alloc")
    reason = f": {why.reasons[0].text}" if isinstance(why, Unknown) else ""
    return f"no counters of the log of {unseen[0]}{reason} (OpenZFS 2.2 and later have them, for what is mounted)"


def _seen(found: Measured) -> Iterator[str]:
    span = duration(found.seconds * 1e9) if found.seconds < 60 else _long(found.seconds)
    yield f"commits      {found.commits:.3g} a second, on {_several(found.counted)}, counted over {span} and more"
    yield f"log          {size(found.rate)} a second, {size(found.rate * DAY_S)} a day, of blocks allocated for it"
    if found.seconds < SHORT_S:
        yield "             This is a short time to judge by: ask again after a day of ordinary work."
    if found.unseen:
        yield f"not counted  {_some(found.unseen)}: not mounted, or without counters"
    if found.unsynced:
        yield f"not counted  {_some(found.unsynced)}: with sync=disabled no commit reaches the log. A log device does"
        yield "             nothing there until sync=standard is set."
    if found.past:
        yield f"bypassing    {_some(found.past)}: with logbias=throughput the data does not go to a log device"


def _txgs(pool: Subject, facts: Facts) -> Iterator[str]:
    opened, synced = _number(pool, "txg_open_ms_p95", facts), _number(pool, "txg_sync_ms_p95", facts)
    if opened is None or synced is None:
        yield "groups       the times of transaction groups are not known (zfs_txg_history)"
    else:
        text = f"open {duration(opened * 1e6)}, written in {duration(synced * 1e6)} (95 % of them at most)"
        yield f"groups       {text}"


def _whether(pool: Subject, found: Measured, facts: Facts) -> Iterator[str]:
    logs = facts.get(pool, "log_vdevs")
    kind = drives(pool, facts)
    if isinstance(logs, Unknown):
        yield f"Would one help? Not known: {harmless(logs.reasons[0].text)}"
    elif logs.value:
        held = facts.get(pool, "log_bytes")
        room = size(held.value) if isinstance(held, Known) and isinstance(held.value, int) else "an unknown size"
        yield f"The pool has log devices: {', '.join(each.name for each in facts.linked(pool, 'log_vdevs'))}, {room}."
    elif not found.commits and found.unsynced:
        yield "Would one help? Not known: what would be committed with sync=standard was not counted."
    elif not found.commits:
        yield "Would one help? No: nothing that was counted has asked for a commit."
    elif found.commits < SELDOM:
        yield f"Would one help? Hardly: on average there is a commit every {_long(1 / found.commits)}."
    elif kind == HDD:
        yield "Would one help? Yes: each commit waits for a write and a flush on hard disks, and a log device with"
        yield "power-loss protection answers in a fraction of that."
    elif kind == UNPROTECTED:
        yield "Would one help? Yes, if it has power-loss protection: the data drives have none that is known of, so that each"
        yield "commit waits until they have emptied their caches."
    elif kind == PROTECTED:
        yield "Would one help? Hardly: the data drives need not empty a cache to keep a commit, and a log device of their kind"
        yield "is no faster. It would take from them what the log writes twice."
    else:
        yield "Would one help? Not known: what the data drives are, or whether they have power-loss protection, was not seen."
    yield f"zaudit verify {quoted(pool.name)} measures what commits take now; --ab slog, what a log device is worth."


def drives(pool: Subject, facts: Facts) -> str:
    """HDD, UNPROTECTED, PROTECTED or UNSEEN: the worst of the data drives where all are known."""
    if not isinstance(facts.get(pool, "data_leaves"), Known):
        return UNSEEN
    leaves = facts.linked(pool, "data_leaves")
    disks = [disk for leaf in leaves for disk in facts.linked(leaf, "disks")]
    if not disks or not all(facts.linked(leaf, "disks") for leaf in leaves):
        return UNSEEN
    if all(value_of(facts.get(disk, "hdd")) is True for disk in disks):
        return HDD
    grades = [_number(disk, "plp_grade", facts) for disk in disks]
    known = [grade for grade in grades if grade is not None]
    if any(grade < 3 for grade in known):
        return UNPROTECTED
    return PROTECTED if len(known) == len(grades) else UNSEEN


def _size(pool: Subject, found: Measured, facts: Facts) -> Iterator[str]:
    """By the average, by the largest transaction group, and what it never exceeds."""
    needs = list[tuple[float, str]]()
    opened, synced = _number(pool, "txg_open_ms_p95", facts), _number(pool, "txg_sync_ms_p95", facts)
    if opened is not None and synced is not None:
        held = (opened + 2 * synced) / 1000
        needs.append((found.rate * held, f"on average: {size(found.rate)}/s for {duration(held * 1e9)}"))
    dirty = _number(pool, "txg_dirty_bytes_max", facts)
    if dirty:
        needs.append(
            (STATES * dirty, f"if all that was written had been synced: {STATES} groups of {size(dirty)} of new data")
        )
    limit = _number(HOST, "zfs_wrlog_data_max", facts)
    if not needs:
        yield "How large? Not known: no transaction groups were seen."
    else:
        yield "How large?"
        yield from (f"  {size(need):>8}  {text}" for need, text in needs)
    if limit is not None:
        text = "zfs_wrlog_data_max: writers are throttled before the log of a pool holds more; larger is of no use"
        yield f"  {size(limit):>8}  {text}"


def _which(pool: Subject, found: Measured, facts: Facts) -> Iterator[str]:
    year = size(found.rate * DAY_S * YEAR)
    yield f"Which? Two drives with power-loss protection as a mirror, each rated for {year} of writes a year and more:"
    yield "  zaudit drives MODEL          says what is known of a drive"
    if not facts.linked(pool, "log_vdevs"):
        yield f"  zpool add {quoted(pool.name)} log mirror DEVICE1 DEVICE2     can be removed again with zpool remove"


def _number(subject: Subject, name: str, facts: Facts) -> float | None:
    found = value_of(facts.get(subject, name))
    return float(found) if isinstance(found, int | float) else None


def _several(count: int) -> str:
    return f"{count} dataset{'s' if count > 1 else ''}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return harmless(", ".join(names[:3])) + more


def _long(seconds: float) -> str:
    for unit, length in (("days", DAY_S), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"
