"""What ``zaudit advise log`` says: whether a log device would help a pool, which kind, and how large, from counters.
Pure.

A commit waits for the drives on which the intent log lies: of a log vdev; without one, from 2.4 on, of a special vdev;
else of the data (model/intent_log.py). With sync=disabled it is not counted: zil_commit() returns first. A log block is
free again when its transaction group is on disk. Up to three groups are in the works (open, quiescing, syncing), and
the log holds at most what came in meanwhile. Writers are throttled near zfs_wrlog_data_max. (OpenZFS module/zfs/zil.c,
include/sys/zil.h zil_stats_t, include/sys/txg.h TXG_CONCURRENT_STATES; man 4 zfs)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from auditor.facts import HOST, Facts, Known, Subject, Unknown
from auditor.report import document as doc
from auditor.text import counted, duration, few, quoted, size

ALLOCATED = "zil_itx_metaslab_normal_alloc", "zil_itx_metaslab_slog_alloc"
SHORT_S = 3600.0  # less is little to judge by, and no commits in less say nothing
APART_S = 300.0  # by which the clock of a recording and that of a counter may differ: it takes a while to look
DAY_S, YEAR = 86400, 365
STATES = 3
SELDOM = 1.0  # commits a second below which nobody is seen to wait for them
HDD, UNPROTECTED, PROTECTED, UNSEEN = "hard disks", "unprotected", "protected", "unseen"


class NotMeasured(Exception):
    """The counters are not there; the text says why."""


class Measured(NamedTuple):
    """Of the datasets whose counters were read. rate: bytes of log blocks a second. seconds: the shortest counted time.
    between: since an earlier look. unsynced: with sync=disabled, not counted. past: with logbias=throughput."""

    commits: float
    rate: float
    seconds: float
    counted: int
    unseen: tuple[str, ...]
    unsynced: tuple[str, ...]
    past: tuple[str, ...]
    between: bool = False


def page(pool: Subject, facts: Facts, before: Facts | None = None) -> Iterator[doc.Block]:
    """before: an earlier look at the same pool, where only what was counted since is to count. Raises NotMeasured."""
    found = measured(pool, facts, before)
    helps, answer = _whether(pool, found, facts)
    more = f"zaudit verify {quoted(pool.name)} measures commit latency."
    yield doc.Say(f"Log device for pool {pool.name}, from its counters. Nothing is changed.")
    yield doc.section("", [doc.labelled((*_figures(pool, found), _txgs(pool, facts)), at=13)])
    yield doc.section("", [doc.Say(answer), doc.Say(more)])
    if found.commits:
        yield doc.section("", [*_size(pool, found, facts), *(_which(pool, found, facts) if helps else ())])


def measured(pool: Subject, facts: Facts, before: Facts | None = None) -> Measured:
    """The counters of all datasets of a pool together. Raises NotMeasured."""
    datasets = facts.get(pool, "datasets")
    if isinstance(datasets, Unknown):
        raise NotMeasured(datasets.reasons[0].text)
    if before is not None:
        guid = facts.get(pool, "guid").or_none()
        if guid is None or guid != before.get(pool, "guid").or_none():
            raise NotMeasured(f"the earlier look was at another pool {pool}, or it is not known at which")
    commits = rate = 0.0
    times = list[float]()
    unseen, unsynced, past = list[str](), list[str](), list[str]()
    for dataset in facts.linked(pool, "datasets"):
        if facts.get(dataset, "sync").or_none() == "disabled":
            unsynced.append(dataset.name)
        elif facts.get(dataset, "logbias").or_none() == "throughput":
            past.append(dataset.name)
        numbers = _counts(dataset, facts)
        if numbers and before is not None:
            numbers = _between(numbers, _counts(dataset, before), facts.now - before.now)
        if not numbers or numbers[0] <= 0:
            unseen.append(dataset.name)
            continue
        times.append(numbers[0])
        commits += numbers[1] / numbers[0]
        rate += (numbers[2] + numbers[3]) / numbers[0]
    if not times:
        raise NotMeasured(_why_not(pool, unseen, facts, before))
    seen = tuple(unseen), tuple(unsynced), tuple(past)
    return Measured(commits, rate, min(times), len(times), *seen, before is not None)


def _between(now: Sequence[float], then: Sequence[float], elapsed: float) -> list[float]:
    """What was counted in so many seconds; nothing where a remount has set the counters back."""
    found = [each - before for each, before in zip(now, then, strict=False)]
    same = len(then) == len(now) and min(found) >= 0 and abs(found[0] - elapsed) <= APART_S
    return found if same else []


def _counts(dataset: Subject, facts: Facts) -> list[float]:
    """Seconds, commits, and bytes of log blocks on the two places; nothing where one of them is not known."""
    found = [_number(dataset, name, facts) for name in ("zil_counted_s", "zil_commit_count", *ALLOCATED)]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else []


def _why_not(pool: Subject, unseen: Sequence[str], facts: Facts, before: Facts | None) -> str:
    if not unseen:
        return f"pool {pool} has no dataset"
    if before is not None and any(_counts(Subject("dataset", each), facts) for each in unseen):
        return "no dataset was counted at both times without a remount in between"
    why = facts.get(Subject("dataset", unseen[0]), "zil_itx_metaslab_slog_alloc")
    reason = f": {why.reasons[0].text}" if isinstance(why, Unknown) else ""
    return f"no counters of the log of {unseen[0]}{reason} (OpenZFS 2.2 and later have them, for what is mounted)"


def _figures(pool: Subject, found: Measured) -> Iterator[tuple[str, str]]:
    span = _span(found.seconds)
    over = (
        f"in the {span} since the earlier look" if found.between else f"the mean since the mount, at least {span} ago"
    )
    yield "commits", f"{_rate(found.commits)} a second on {counted(found.counted, 'dataset')}, {over}"
    yield "log", f"{size(found.rate)} a second, {size(found.rate * DAY_S)} a day, in allocated log blocks"
    if found.seconds < SHORT_S:
        yield "", "Too short to judge: ask again after a day of ordinary work."
    if not found.between:
        name = quoted(pool.name)
        text = (
            "The mean hides them. To measure one load alone: zaudit record -o "
            f"BEFORE {name}, then the load, then zaudit advise log {name} --since BEFORE; or zaudit diagnose {name} meanwhile"
        )
        yield "bursts", text
    if found.unseen:
        why = "not counted at both times, or mounted again" if found.between else "not mounted, or without counters"
        yield "not counted", f"{few(found.unseen, 3)}: {why}"
    if found.unsynced:
        yield (
            "not counted",
            f"{few(found.unsynced, 3)}: with sync=disabled no commit reaches the log. A log device does nothing there until "
            "sync=standard is set.",
        )
    if found.past:
        yield "bypassing", f"{few(found.past, 3)}: with logbias=throughput the data does not go to a log device"


def _txgs(pool: Subject, facts: Facts) -> tuple[str, str]:
    opened, synced = _number(pool, "txg_open_ms_p95", facts), _number(pool, "txg_sync_ms_p95", facts)
    if opened is None or synced is None:
        return "groups", "the times of transaction groups are not known (zfs_txg_history)"
    return "groups", f"open {duration(opened * 1e6)}, written in {duration(synced * 1e6)} (p95)"


def _whether(pool: Subject, found: Measured, facts: Facts) -> tuple[bool, str]:
    """Whether it may help, and the answer in words. No and hardly need an hour of counters."""
    logs, place = facts.get(pool, "log_vdevs"), facts.get(pool, "zil_class")
    for each in (logs, place):
        if isinstance(each, Unknown):
            return True, f"Would one help? Not known: {each.reasons[0].text}"
    assert isinstance(place, Known)
    if isinstance(logs, Known) and logs.value:
        held = facts.get(pool, "log_bytes")
        room = size(held.value) if isinstance(held, Known) and isinstance(held.value, int) else "an unknown size"
        names = ", ".join(each.name for each in facts.linked(pool, "log_vdevs"))
        lost = "" if place.value == "log" else " None of them can be written to: the log lies elsewhere."
        return True, f"The pool has log devices: {names}, {room}.{lost}"
    if found.commits >= SELDOM:
        return _waiting(pool, str(place.value), facts)
    if found.unsynced and not found.commits:
        return True, "Would one help? Not known: what would be committed with sync=standard was not counted."
    seen = "nothing that was counted has asked for a commit"
    if found.commits:
        seen = f"on average there was a commit every {_span(1 / found.commits)}"
    if found.seconds < SHORT_S:
        return True, f"Would one help? Not known: {seen}, but {_span(found.seconds)} are too short to tell."
    word = "Hardly" if found.commits else "No"
    still = " Each still waits for hard disks." if found.commits and drives(pool, facts) == HDD else ""
    return False, f"Would one help? {word}: in {_span(found.seconds)} {seen}.{still}"


def _waiting(pool: Subject, place: str, facts: Facts) -> tuple[bool, str]:
    kind = drives(pool, facts)
    special = place == "special"
    where = (
        "the special vdevs, where the log lies without a log vdev since OpenZFS 2.4," if special else "the data drives"
    )
    if kind == HDD:
        on = "hard disks of the special vdevs" if special else "hard disks"
        return True, (
            f"Would one help? Yes: each commit waits for a write and a flush on {on}. A log device with power-loss "
            "protection answers in a fraction of that."
        )
    if kind == UNPROTECTED:
        return True, (
            f"Would one help? Yes, if it has power-loss protection: {where} have none that is known of, so that each commit "
            "waits until they have emptied their caches."
        )
    if kind == PROTECTED:
        return False, (
            f"Would one help? Hardly: {where} need not empty a cache to keep a commit, and a log device of their kind is no "
            "faster. It would take from them what the log writes twice."
        )
    drive = "the special vdevs are, on which the log lies," if special else "the data drives are,"
    return True, f"Would one help? Not known: what {drive} or whether they have power-loss protection, was not seen."


def drives(pool: Subject, facts: Facts) -> str:
    """HDD, UNPROTECTED, PROTECTED or UNSEEN: the worst of the drives on which the intent log lies, where all are known."""
    if not isinstance(facts.get(pool, "zil_leaves"), Known):
        return UNSEEN
    leaves = facts.linked(pool, "zil_leaves")
    disks = [disk for leaf in leaves for disk in facts.linked(leaf, "disks")]
    if not disks or not all(facts.linked(leaf, "disks") for leaf in leaves):
        return UNSEEN
    if all(facts.get(disk, "hdd").or_none() is True for disk in disks):
        return HDD
    kept = [facts.get(disk, "keeps_acknowledged").or_none() for disk in disks]
    if False in kept:
        return UNPROTECTED
    return PROTECTED if all(each is True for each in kept) else UNSEEN


def _size(pool: Subject, found: Measured, facts: Facts) -> Iterator[doc.Block]:
    """By the average, by the largest transaction group, and what it never exceeds."""
    needs = list[tuple[float, str]]()
    opened, synced = _number(pool, "txg_open_ms_p95", facts), _number(pool, "txg_sync_ms_p95", facts)
    if opened is not None and synced is not None:
        held = (opened + 2 * synced) / 1000
        needs.append((found.rate * held, f"on average: {size(found.rate)}/s for {duration(held * 1e9)}"))
    if dirty := _number(pool, "txg_dirty_bytes_max", facts):
        text = f"if all that was written had been synced: {STATES} groups of {size(dirty)} of new data"
        needs.append((STATES * dirty, text))
    yield doc.Say("How large?" if needs else "How large? Not known: no transaction groups were seen.")
    if (limit := _number(HOST, "zfs_wrlog_data_max", facts)) is not None:
        text = "zfs_wrlog_data_max: writers are throttled before the log of a pool holds more; a larger device gains nothing"
        needs.append((limit, text))
    yield doc.labelled(((size(need), text) for need, text in needs), at=12, right=True)


def _which(pool: Subject, found: Measured, facts: Facts) -> Iterator[doc.Block]:
    year = size(found.rate * DAY_S * YEAR)
    yield doc.Say(
        f"Which? A mirror of two drives with power-loss protection, each rated for at least {year} of writes a year."
    )
    yield doc.Code(("zaudit drives MODEL",), "About a drive:")
    if not facts.linked(pool, "log_vdevs"):
        lines = (f"zpool add {quoted(pool.name)} log mirror DEVICE1 DEVICE2",)
        yield doc.Code(lines, "What would add them; zpool remove takes them out again:")


def _number(subject: Subject, name: str, facts: Facts) -> float | None:
    found = facts.get(subject, name).or_none()
    return float(found) if isinstance(found, int | float) else None


def _rate(number: float) -> str:
    """3,420; 10; 0.25."""
    return f"{number:.3g}" if number < 999.5 else f"{number:,.0f}"


def _span(seconds: float) -> str:
    for unit, length in (("days", DAY_S), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}" if seconds < 1000 * length else f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.3g} s"
