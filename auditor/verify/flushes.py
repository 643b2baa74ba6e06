"""The last links of the chain: on which devices the commits landed, and whether each of them was flushed for it.

A class of vdevs has to account for its share of the commits together, and each device with a volatile cache that was written
to for its own writes, whatever the others did. A mirror is as good as its worst leg. A log block touches only some legs of a
raidz or dRAID vdev (one more than its parity at the least), but all of them are flushed. What a flush does behind the device,
nobody can see, and the kernel counts one that failed like one that did not (block/blk-flush.c flush_end_io).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from auditor.facts import HOST, Facts, Known, Subject
from auditor.text import harmless
from auditor.verify.model import Link
from auditor.verify.profile import Section
from auditor.verify.result import Device, Run

SHARE = 0.98  # of syncs that a witness has to account for
SMALL = 0.02  # a class that took less of the commits than this, or fewer than FEW, is not judged by them
FEW = 20
FLUSHED = (
    0.3  # flushes in writes, at the least: one flush a log block makes it 0.5, since a flush counts as a write too
)
LIKE_OTHERS = (
    0.5  # of the flushes for its writes that another device of the class got; less is too few for a log device
)
FAR_BELOW = 0.1  # the same for a device that transaction groups write to as well, as they like
TXGS_LEAST = 3
UBERBLOCKS = 3  # top-level vdevs to which each transaction group writes, if only its uberblock (SPA_SYNC_MIN_VDEVS)
NOCACHEFLUSH = ("zfs_nocacheflush", "zil_nocacheflush")

Away = Mapping[str, str]  # vdevs that were not there all the time, with a sentence


def links(run: Run, section: Section, pool: Subject, facts: Facts, away: Away) -> Iterator[Link]:
    """One link for each device that commits landed on, and one for each that only transaction groups were written to."""
    at_once = max(section.jobs * section.depth, 1)
    landed = shares(run, facts, pool)
    if not landed:
        yield Link("devices", "unseen", "on which class of vdevs the blocks of the ZIL landed could not be seen")
    for class_, share in landed.items():
        yield from _class(class_, run, max(int(SHARE * run.log.syncs * share / at_once), 1), facts, pool, away)
    yield from _data(run, facts, pool, [each for each in ("normal", "special", "dedup") if each not in landed], away)


def shares(run: Run, facts: Facts, pool: Subject) -> dict[str, float]:
    """class -> the share of the commits that waited for its devices: for a log block, or for the data of a pointer."""
    where = facts.get(pool, "zil_class")
    chosen = str(where.value) if isinstance(where, Known) else ""
    zil = run.zil
    if zil is None or zil.slog_blocks is None or zil.normal_blocks is None or not zil.commits:
        return {chosen: 1.0} if chosen else {}
    blocks = zil.slog_blocks + zil.normal_blocks
    many = max(blocks / zil.commits, 1.0)  # blocks that one commit may have written, elsewhere too
    other = "special" if chosen == "special" else "normal"  # the kstat counts both as normal
    counts = {"log": zil.slog_blocks, other: zil.normal_blocks}
    found = {
        class_: count / blocks / (1.0 if count == blocks else many)
        for class_, count in counts.items()
        if count and (count == blocks or count > max(SMALL * blocks, FEW))
    }
    if zil.indirect and zil.indirect > max(SMALL * zil.commits, FEW):
        found["normal"] = max(found.get("normal", 0.0), min(zil.indirect / zil.commits, 1.0))
    return found


def _class(class_: str, run: Run, floor: int, facts: Facts, pool: Subject, away: Away) -> Iterator[Link]:
    tops: dict[str, list[Device]] = {}
    for device in run.devices:
        if device.allocation_class == class_ and not _shared(device, facts, pool):
            tops.setdefault(device.top, []).append(device)
    missing = _without_counters(run, facts, pool, class_)
    if missing or not tops:
        named = ", ".join(missing) or "any of their devices"
        yield Link(f"{class_} vdevs", "unseen", f"no counters of {named} alone: what reaches them cannot be seen")
    legs_of = {top: _legs_of_a_block(Subject("vdev", top, pool.name), legs, facts) for top, legs in tops.items()}
    here = {top: [leg for leg in legs if not _gone(leg, away)] for top, legs in tops.items()}
    enough = sum(_accounted(here[top] or legs, legs, legs_of[top]) for top, legs in tops.items()) >= floor
    most = max((_ratio(device) for legs in tops.values() for device in legs if device.writes), default=0.0)
    followed = [
        _excused(device, here[top], away)
        or _device(
            device, facts, enough=enough, mirrored=here[top] if legs_of[top] == len(legs) else (device,), most=most
        )
        for top, legs in tops.items()
        for device in legs
    ]
    yield from followed
    if tops and not enough and all(link.status == "accounts" for link in followed):
        text = f"{run.log.syncs} syncs, but too few writes and flushes on all of them: the commits went elsewhere"
        yield Link(f"{class_} vdevs", "contradicts", text)


def _legs_of_a_block(vdev: Subject, legs: Sequence[Device], facts: Facts) -> int:
    """How many of these legs a log block touches at the least: all of a mirror, one more than the parity of a raidz."""
    parity = facts.get(vdev, "parity")
    if isinstance(parity, Known) and isinstance(parity.value, int) and parity.value > 0:
        return min(parity.value + 1, len(legs))
    return len(legs)


def _gone(device: Device, away: Away) -> str:
    """Why a device did not get all that its vdev was given, empty where it did as far as one can tell."""
    return next((away[leaf] for leaf in device.leaves if leaf in away), "")


def _excused(device: Device, others: Sequence[Device], away: Away) -> Link | None:
    """The link of a device that was not there all the time, unless what it got while it was there went without a flush."""
    why, flushed = _gone(device, away), device.flushes or 0
    if not why or (device.writes > FEW and not flushed and device.volatile):
        return None
    where = f"{device.allocation_class} {harmless(device.top)}: {device.writes} writes, {flushed} flushes"
    if not others:
        return Link(harmless(device.disk), "unseen", f"{where}: {why}", _figures(device))
    return Link(harmless(device.disk), "accounts", f"{where}: {why}; the others answer for it", _figures(device))


def _accounted(legs: Sequence[Device], every: Sequence[Device], of_a_block: int) -> int:
    """How many log blocks on one top-level vdev cannot be in a volatile cache any more. legs: those that were there."""
    of_a_block = max(of_a_block - (len(every) - len(legs)), 1)
    volatile = [device for device in legs if device.volatile is not False]
    if of_a_block == len(legs) or volatile:  # all legs of a raidz are flushed, whichever were written to
        return min(map(_safe, volatile if of_a_block < len(legs) else legs))
    return sum(map(_safe, legs)) // of_a_block


def _without_counters(run: Run, facts: Facts, pool: Subject, class_: str) -> list[str]:
    """Leaves of a class, or of none that is known, whose writes and flushes cannot be told apart from others."""
    counted = {
        leaf
        for device in run.devices
        if device.allocation_class == class_ and not _shared(device, facts, pool)
        for leaf in device.leaves
    }
    return [
        harmless(leaf.name)
        for leaf in facts.linked(pool, "leaves")
        if facts_class(leaf, facts) in (class_, "") and leaf.name not in counted
    ]


def _shared(device: Device, facts: Facts, pool: Subject) -> bool:
    """Whether leaves of several classes lie on it: its counters are those of all of them."""
    return len({facts_class(Subject("leaf", leaf, pool.name), facts) for leaf in device.leaves}) > 1


def facts_class(leaf: Subject, facts: Facts) -> str:
    """The allocation class of a leaf, empty where it is not known."""
    found = facts.get(leaf, "allocation_class")
    return str(found.value) if isinstance(found, Known) else ""


def _safe(device: Device) -> int:
    """How many writes cannot be in a volatile cache any more: one a flush; all where there is no such cache."""
    return max(device.flushes or 0, device.writes if device.volatile is False else 0)


def _ratio(device: Device) -> float:
    """Flushes for each write."""
    return (device.flushes or 0) / max(device.writes, 1)


def _device(device: Device, facts: Facts, *, enough: bool, mirrored: Sequence[Device], most: float) -> Link:
    """Judged by its own writes and flushes. enough: its class accounts for its commits. mirrored: it and those that must have
    got the same; most: flushes for each write that one of its class got."""
    name, where = harmless(device.disk), f"{device.allocation_class} {harmless(device.top)}"
    figures = _figures(device)
    flushed = device.flushes or 0
    if not device.writes and any(leg.writes for leg in mirrored):
        return Link(name, "contradicts", f"{where}: no write at all", figures)
    if device.flushes is None and device.volatile is not False:
        return Link(name, "unseen", f"{where}: this kernel does not count flushes", figures)
    if device.volatile is False and not flushed > FLUSHED * device.writes:
        text = f"{where}: {device.writes} writes; it has no volatile cache, so none needs a flush"
        return Link(name, "accounts", text, figures)
    behind = flushed < LIKE_OTHERS * max((leg.flushes or 0 for leg in mirrored), default=0)
    if device.allocation_class == "log" and 0 < device.writes <= FEW and not flushed and enough and not behind:
        text = f"{where}: {device.writes} writes and no flush; too few of them to tell why"
        return Link(name, "unseen", text, figures)
    if (device.writes and flushed >= FLUSHED * device.writes) or (
        enough and not behind and (flushed >= _due(device, most) or device.writes <= FEW)
    ):
        text = f"{where}: {device.writes} writes, {flushed} flushes that completed"
        if device.virtual:
            text += "; it is virtual: what its host makes of a flush cannot be seen from here"
        return Link(name, "accounts", text, figures)
    if not device.writes:
        return Link(name, "contradicts", f"{where}: no write at all", figures)
    text = f"{where}: {device.writes} writes and {flushed or 'no'} flushes"
    if enough and not behind and flushed and device.allocation_class != "log":
        return Link(name, "unseen", f"{text}, far fewer than others of its class for as many writes", figures)
    return _unflushed(device, text, facts)


def _due(device: Device, most: float) -> float:
    """Flushes that a device of several in its class has to show for its writes."""
    return (LIKE_OTHERS if device.allocation_class == "log" else FAR_BELOW) * most * device.writes


def _unflushed(device: Device, text: str, facts: Facts) -> Link:
    name, figures = harmless(device.disk), _figures(device)
    if device.volatile:
        return Link(name, "contradicts", f"{text} although it has a volatile cache{_because(device, facts)}", figures)
    why = f"whether it has a volatile cache cannot be seen: {harmless(device.why)}"
    return Link(name, "unseen", f"{text}{_because(device, facts)}; {why}", figures)


def _figures(device: Device) -> tuple[tuple[str, int], ...]:
    counted: Sequence[tuple[str, int | None]] = (("writes", device.writes), ("flushes", device.flushes))
    return tuple((name, count) for name, count in counted if count is not None)


def _because(device: Device, facts: Facts) -> str:
    """What is configured that explains it."""
    values = {name: facts.get(HOST, name) for name in NOCACHEFLUSH}
    found = [f"{name}={value.value}" for name, value in values.items() if isinstance(value, Known) and value.value]
    cache = facts.get(Subject("disk", device.disk), "sysfs_write_cache")
    if isinstance(cache, Known) and cache.value == "write through":
        found.append(f"/sys/block/{harmless(device.disk)}/queue/write_cache says write through")
    return f" ({', '.join(found)})" if found else ""


def _data(run: Run, facts: Facts, pool: Subject, classes_: Sequence[str], away: Away) -> Iterator[Link]:
    """Each transaction group flushes the devices that it wrote to, before its uberblock and after (vdev_config_sync() of
    module/zfs/vdev_label.c): all of a small pool, a few of one with many top-level vdevs. Flushing that was latched off
    shows here, and in no setting."""
    if "normal" not in classes_:
        return
    txgs = sum(1 for txg in run.txgs if txg.written and txg.at_s + txg.open_s + txg.sync_s < run.seconds)
    if txgs < TXGS_LEAST:
        yield Link(
            "normal vdevs", "unseen", f"{txgs} transaction groups were seen to write: no flush could be expected"
        )
        return
    if missing := _without_counters(run, facts, pool, "normal"):
        text = f"no counters of {', '.join(missing)} alone: whether transaction groups flush them cannot be seen"
        yield Link("normal vdevs", "unseen", text)
    devices = [device for device in run.devices if device.allocation_class in classes_]
    if devices and not any(device.writes for device in devices):
        text = f"{txgs} transaction groups wrote, and no write was counted on any of them: these are not their counters"
        yield Link("normal vdevs", "unseen", text)
        return
    tops = {device.top for device in run.devices if device.allocation_class != "log"}
    due = txgs - 1 if len(tops) <= UBERBLOCKS else 1
    for device in devices:
        where, name = f"{device.allocation_class} {harmless(device.top)}", harmless(device.disk)
        text = f"{where}: {device.writes} writes, {device.flushes or 'no'} flushes in {txgs} transaction groups"
        others = [each for each in devices if each.top == device.top and not _gone(each, away)]
        if excused := _excused(device, others, away):
            yield excused
        elif device.volatile is False or not device.writes or (device.flushes or 0) >= due:
            yield Link(name, "accounts", text, _figures(device))
        elif device.flushes is None:
            yield Link(name, "unseen", f"{where}: this kernel does not count flushes", _figures(device))
        elif len(tops) > UBERBLOCKS and device.writes <= FEW:
            yield Link(
                name, "unseen", f"{text}: it may have been written to by the last of them only", _figures(device)
            )
        else:
            yield _unflushed(device, text, facts)
