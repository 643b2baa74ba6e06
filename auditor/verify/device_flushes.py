"""The last links of the chain: on which devices the commits landed, and whether each was flushed for it.

A class of vdevs accounts for its share of the commits as a whole. Each device with a volatile cache accounts for its own
writes, whatever the others did: a mirror is as good as its worst leg. A log block touches only some legs of a raidz or
dRAID vdev (parity plus one at the least), but OpenZFS flushes all of them. A leg may lie on several disks (LVM, md,
bcache): a block touches some of them, and the flush goes to each. The kernel counts a failed flush like any other
(block/blk-flush.c flush_end_io).

Fewer flushes than log blocks are no loss while several syncs are under way: a block without waiters leaves its flush to the
next one (zil_lwb_flush_defer() of module/zfs/zil.c), and the kernel answers all waiting flushes of a device with one (the
double buffering of block/blk-flush.c). They are no proof either.

Measured on 2.4.4: four jobs, 1,403 commits in 557 blocks, 571 flushes with those of transaction groups. A leaf on dm-linear
over two drives: 2,985 commits, 2,999 flushes at each, and 14 other writes at one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from auditor.facts import DATA, HOST, Facts, Known, Subject
from auditor.model.flushes import counted_elsewhere
from auditor.text import harmless
from auditor.verify.profile import Section
from auditor.verify.result import Device, Link, Run, Status

SHARE = 0.98  # of syncs that a witness has to account for
SMALL = 0.02  # a class that took less of the commits than this, or fewer than FEW, is not judged by them
FEW = 20
# flushes in writes, at the least: one flush a log block makes it 0.5, since a flush counts as a write too
FLUSHED = 0.3
LIKE_OTHERS = 0.5  # of the flushes for its writes that another of the class got; less is too few for a log device
FAR_BELOW = 0.1  # the same for a device that transaction groups write to as well, as they like
TXGS_LEAST = 3
TXG_FLUSHES = 4  # of a device in one transaction group, at the most
OF_OTHERS = 0.05  # of the flushes during a run: more than that by others, and the rest proves nothing
UBERBLOCKS = 3  # top-level vdevs to which each transaction group writes, if only its uberblock (SPA_SYNC_MIN_VDEVS)
UNWRITTEN = "nothing was written to this disk of the leg"  # but flushes: the blocks lie on the others
NOCACHEFLUSH = ("zfs_nocacheflush", "zil_nocacheflush")

Away = Mapping[str, str]  # vdevs that were not there all the time, with a sentence


class Landing(NamedTuple):
    """Commits that waited for devices of one of these classes. share: of all commits. blocks: that waited for a flush at
    the most, None where not counted."""

    classes: tuple[str, ...]
    share: float
    blocks: int | None = None


def links(run: Run, section: Section, pool: Subject, facts: Facts, away: Away) -> Iterator[Link]:
    """One link for each device that commits landed on, and one for each that only transaction groups were written to."""
    unclear = {harmless(each.disk) for each in run.devices if _unclear(each, run, facts, pool)}
    clear = {harmless(each.disk) for each in run.devices} - unclear
    for link in _links(run, section, pool, facts, away):
        if unclear and link.status == "contradicts" and link.name not in clear:
            text = f"{link.text}; a layer below the pool spreads writes over disks, and flushes them when it likes"
            yield link._replace(status="unseen", text=text)
        else:
            yield link


def _links(run: Run, section: Section, pool: Subject, facts: Facts, away: Away) -> Iterator[Link]:
    at_once = max(section.jobs * section.depth, 1)
    landings = landed(run, facts, pool)
    if not landings:
        yield Link("devices", "unseen", "on which class of vdevs the blocks of the ZIL landed could not be seen")
    due: dict[tuple[str, ...], tuple[int, float]] = {}
    for landing in landings:
        floor = max(int(SHARE * run.log.syncs * landing.share / at_once), 1)
        blocks = run.log.syncs if landing.blocks is None else landing.blocks
        most = SHARE * blocks if at_once > 1 else floor
        classes = _narrowed(landing.classes, run, floor, facts, pool)
        before = due.get(classes, (floor, most))
        due[classes] = max(before[0], floor), max(before[1], most)
    for classes, (floor, most) in due.items():
        yield from _class(classes, run, floor, most, facts, pool, away)
    taken = {class_ for classes in due for class_ in classes}
    yield from _data(run, facts, pool, [each for each in DATA if each not in taken], away)


def landed(run: Run, facts: Facts, pool: Subject) -> list[Landing]:
    """On which classes the commits waited for devices: for a log block, or for the data of a pointer. The kstat counts all
    blocks off the SLOG as normal. From 2.4 on a special vdev takes them while it has space, then the normal class
    (zio_alloc_zil() of module/zfs/zio.c, 2.4.4)."""
    chosen = facts.get(pool, "zil_class").word()
    zil = run.zil
    if zil is None or zil.slog_blocks is None or zil.normal_blocks is None or not zil.commits:
        return [Landing((chosen,), 1.0)] if chosen else []
    blocks = zil.slog_blocks + zil.normal_blocks
    many = max(blocks / zil.commits, 1.0)  # blocks that one commit may have written, elsewhere too
    special = any(device.allocation_class == "special" for device in run.devices) and chosen != "normal"
    counts = {("log",): zil.slog_blocks, ("special", "normal") if special else ("normal",): zil.normal_blocks}
    found = {
        classes: Landing(classes, count / blocks / (1.0 if count == blocks else many), count)
        for classes, count in counts.items()
        if count and (count == blocks or count > max(SMALL * blocks, FEW))
    }
    if zil.indirect and zil.indirect > max(SMALL * zil.commits, FEW):
        share, most = min(zil.indirect / zil.commits, 1.0), min(zil.indirect, blocks)
        before = found.get(("normal",), Landing(("normal",), 0.0, 0))
        found["normal",] = Landing(("normal",), max(before.share, share), max(before.blocks or 0, most))
    return list(found.values())


def foreign_flushes(run: Run, idle: Mapping[str, int], facts: Facts, pool: Subject) -> dict[str, str]:
    """The disks of the commits that others may have flushed meanwhile, with a sentence. idle: flushes of each disk in the
    idle time before. OpenZFS flushes a device at most once for a log block (zil_lwb_write_done() of module/zfs/zil.c) and
    four times in a transaction group: before the uberblocks, after them, and after each half of the labels
    (vdev_config_sync() of module/zfs/vdev_label.c)."""
    zil, found = run.zil, {}
    classes = {class_ for landing in landed(run, facts, pool) for class_ in landing.classes}
    blocks, most = 0, math.inf
    if zil is not None and zil.slog_blocks is not None and zil.normal_blocks is not None:
        blocks = zil.slog_blocks + zil.normal_blocks + sum((run.others or {}).values())
        most = (2 - SHARE) * blocks + TXG_FLUSHES * (len(run.txgs) + 2) + FEW
    for device in run.devices:
        flushes, before = device.flushes or 0, max(idle.get(device.disk, 0) - 2 * TXG_FLUSHES, 0)
        if device.volatile is False or device.allocation_class not in classes:
            continue
        if run.idle_s > 0 and before / run.idle_s * run.seconds > max(OF_OTHERS * flushes, FEW):
            text = f"up to {idle[device.disk]} flushes of {harmless(device.disk)} in {run.idle_s:.0f} s before the run"
            found[device.disk] = text
        elif flushes > most:
            text = f"{flushes} flushes of {harmless(device.disk)} for {blocks} log blocks: not all are of this pool"
            found[device.disk] = text
    return found


def _narrowed(classes: tuple[str, ...], run: Run, floor: int, facts: Facts, pool: Subject) -> tuple[str, ...]:
    """Which of several classes took the blocks: the only one with as many writes as commits, or as many flushes."""
    if len(classes) == 1:
        return classes
    of = {each: [device for device in run.devices if device.allocation_class == each] for each in classes}
    took = [each for each, devices in of.items() if sum(device.writes for device in devices) >= floor]
    if len(took) > 1:
        flushed = [each for each in took if all(device.volatile for device in of[each])]
        took = [each for each in flushed if _total(_tops((each,), run, facts, pool), facts, pool, {}) >= floor]
    return (took[0],) if len(took) == 1 else classes


Tops = dict[str, list["Leg"]]


class Leg(NamedTuple):
    """One leg of a top-level vdev. disks: it lies on these; a block touches some, a flush all."""

    disks: tuple[Device, ...]

    @property
    def data(self) -> tuple[Device, ...]:
        """The disks that were written to: a flush counts as a write too."""
        return tuple(each for each in self.disks if each.writes > (each.flushes or 0)) or self.disks[:1]

    @property
    def whole(self) -> Device:
        """Its counters as those of one disk. Only what was written to has to be flushed."""
        if len(self.disks) == 1:
            return self.disks[0]
        written = sum(max(each.writes - (each.flushes or 0), 0) for each in self.disks)
        volatile = [each for each in self.data if each.volatile is not False]
        counted = [each.flushes for each in volatile if each.flushes is not None]
        flushes = None if len(counted) < len(volatile) else min(counted, default=0)
        return self.data[0]._replace(
            writes=written + (flushes or 0), flushes=flushes, volatile=volatile[0].volatile if volatile else False
        )


def _tops(classes: Sequence[str], run: Run, facts: Facts, pool: Subject) -> Tops:
    legs: dict[tuple[str, tuple[str, ...]], list[Device]] = {}
    for device in run.devices:
        if device.allocation_class in classes and not _shared(device, facts, pool):
            legs.setdefault((device.top, device.leaves), []).append(device)
    found: Tops = {}
    for (top, _), disks in legs.items():
        found.setdefault(top, []).append(Leg(tuple(disks)))
    return found


def _total(tops: Tops, facts: Facts, pool: Subject, away: Away) -> int:
    """How many log blocks on these vdevs cannot be in a volatile cache any more."""
    found = 0
    for top, legs in tops.items():
        every = [leg.whole for leg in legs]
        here = [leg.whole for leg in legs if not _gone(leg.whole, away)]
        found += _accounted(here or every, every, _legs_of_a_block(Subject("vdev", top, pool.name), every, facts))
    return found


def _class(
    classes: tuple[str, ...], run: Run, floor: int, most: float, facts: Facts, pool: Subject, away: Away
) -> Iterator[Link]:
    """floor: fewer flushes are too few; most: as many are enough, whoever waited for which block."""
    named = " or ".join(classes)
    tops = _tops(classes, run, facts, pool)
    missing = [name for class_ in classes for name in _without_counters(run, facts, pool, class_)]
    if missing or not tops:
        which = ", ".join(dict.fromkeys(missing)) or "any of their devices"
        yield Link(f"{named} vdevs", "unseen", f"no counters of {which} alone: what reaches them cannot be seen")
    total = _total(tops, facts, pool, away)
    wholes = [leg.whole for legs in tops.values() for leg in legs]
    best = max(((each.flushes or 0) / each.writes for each in wholes if each.writes), default=0.0)
    followed: list[Link] = []
    for top, legs in tops.items():
        here = [leg.whole for leg in legs if not _gone(leg.whole, away)]
        every = _legs_of_a_block(Subject("vdev", top, pool.name), legs, facts) == len(legs)
        for leg in legs:
            mirrored = here if every else [leg.whole]
            followed += [
                _excused(device, here, away)
                or (None if device in leg.data else _link(device, "accounts", UNWRITTEN))
                or _elsewhere(device, facts, pool)
                or _device(device, facts, enough=total >= floor, mirrored=mirrored, most=best)
                for device in leg.disks
            ]
    yield from followed
    if tops and total < floor and all(link.status == "accounts" for link in followed):
        text = f"{run.log.syncs} syncs, but too few writes and flushes on all of them: the commits went elsewhere"
        yield Link(f"{named} vdevs", "contradicts", text)
    elif tops and floor <= total < most:
        text = (
            f"{total} flushes for up to {most / SHARE:.0f} log blocks: one may answer for several while several syncs are "
            "under way, or flushes were lost. One sync at a time (numjobs=1, iodepth=1) tells"
        )
        yield Link(f"{named} vdevs", "unseen", text)


def _elsewhere(device: Device, facts: Facts, pool: Subject) -> Link | None:
    """The link of a multipath disk of which nothing was counted that tells of flushes."""
    leaves = (Subject("leaf", name, pool.name) for name in device.leaves)
    files = [counted_elsewhere(leaf, Subject("disk", device.disk), facts) for leaf in leaves]
    if not any(files) or device.flushes or (device.volatile is False and device.writes):
        return None
    counted = f"the kernel counts its flushes in {harmless(max(files))}"
    return _link(device, "unseen", f"{device.writes} writes, no flush was seen; {counted}")


def _link(device: Device, status: Status, text: str) -> Link:
    counted: Sequence[tuple[str, int | None]] = (("writes", device.writes), ("flushes", device.flushes))
    figures = tuple((name, count) for name, count in counted if count is not None)
    text = f"{device.allocation_class} {harmless(device.top)}: {text}"
    return Link(harmless(device.disk), status, text, figures)


def _unclear(device: Device, run: Run, facts: Facts, pool: Subject) -> bool:
    """Whether it is one of several disks below a leaf, and a layer above it does more than pass writes and flushes on."""
    layered = [
        facts.get(leaf, "stack_rearranges") for leaf in (Subject("leaf", name, pool.name) for name in device.leaves)
    ]
    plain = all(isinstance(each, Known) and not each.value for each in layered)
    return not plain and sum(each.leaves == device.leaves for each in run.devices) > 1


def _legs_of_a_block(vdev: Subject, legs: Sequence[object], facts: Facts) -> int:
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
    text = f"{device.writes} writes, {flushed} flushes: {why}"
    return _link(device, "accounts", f"{text}; the others answer for it") if others else _link(device, "unseen", text)


def _accounted(legs: Sequence[Device], every: Sequence[Device], of_a_block: int) -> int:
    """How many log blocks on one top-level vdev cannot be in a volatile cache any more. legs: those that were there."""

    def safe(device: Device) -> int:
        """One write a flush; all where there is no such cache."""
        return max(device.flushes or 0, device.writes if device.volatile is False else 0)

    of_a_block = max(of_a_block - (len(every) - len(legs)), 1)
    volatile = [device for device in legs if device.volatile is not False]
    if of_a_block == len(legs) or volatile:  # all legs of a raidz are flushed, whichever were written to
        return min(map(safe, volatile if of_a_block < len(legs) else legs))
    return sum(map(safe, legs)) // of_a_block


def _without_counters(run: Run, facts: Facts, pool: Subject, class_: str) -> list[str]:
    """Leaves of a class, or of none that is known, of whose disks the writes and flushes cannot be told apart from others."""
    counted = {
        (leaf, device.disk)
        for device in run.devices
        if device.allocation_class == class_ and not _shared(device, facts, pool)
        for leaf in device.leaves
    }
    on = {
        leaf: {(leaf.name, disk.name) for disk in facts.linked(leaf, "disks")} for leaf in facts.linked(pool, "leaves")
    }
    return [
        harmless(leaf.name)
        for leaf, disks in on.items()
        if facts_class(leaf, facts) in (class_, "") and not (disks and disks <= counted)
    ]


def _shared(device: Device, facts: Facts, pool: Subject) -> bool:
    """Whether leaves of several classes lie on it: its counters are those of all of them."""
    return len({facts_class(Subject("leaf", leaf, pool.name), facts) for leaf in device.leaves}) > 1


def facts_class(leaf: Subject, facts: Facts) -> str:
    return facts.get(leaf, "allocation_class").word()


def _device(device: Device, facts: Facts, *, enough: bool, mirrored: Sequence[Device], most: float) -> Link:
    """Judged by its own writes and flushes. enough: its class accounts for its commits. mirrored: the legs that must have
    got the same. most: flushes for each write that one of its class got."""
    writes, flushed, of_log = device.writes, device.flushes or 0, device.allocation_class == "log"
    if not writes and any(leg.writes for leg in mirrored):
        return _link(device, "contradicts", "no write at all")
    if device.flushes is None and device.volatile is not False:
        return _link(device, "unseen", "this kernel does not count flushes")
    if device.volatile is False and not flushed > FLUSHED * writes:
        return _link(device, "accounts", f"{writes} writes; it has no volatile cache, so none needs a flush")
    behind = flushed < LIKE_OTHERS * max((leg.flushes or 0 for leg in mirrored), default=0)
    if of_log and 0 < writes <= FEW and not flushed and enough and not behind:
        return _link(device, "unseen", f"{writes} writes and no flush; too few of them to tell why")
    due = (LIKE_OTHERS if of_log else FAR_BELOW) * most * writes
    if (writes and flushed >= FLUSHED * writes) or (enough and not behind and (flushed >= due or writes <= FEW)):
        text = f"{writes} writes, {flushed} flushes that completed"
        if off := _switched_off(NOCACHEFLUSH, facts):
            return _link(device, "unseen", f"{text}; not for these writes, since OpenZFS leaves them out ({off})")
        if device.virtual:
            text += "; it is virtual: what its host makes of a flush cannot be seen from here"
        return _link(device, "accounts", text)
    if not writes:
        return _link(device, "contradicts", "no write at all")
    text = f"{writes} writes and {flushed or 'no'} flushes"
    if enough and not behind and flushed and not of_log:
        return _link(device, "unseen", f"{text}, far fewer than others of its class for as many writes")
    return _unflushed(device, text, facts)


def _unflushed(device: Device, text: str, facts: Facts) -> Link:
    reasons = [_switched_off(NOCACHEFLUSH, facts)]
    if facts.get(Subject("disk", device.disk), "sysfs_write_cache").word() == "write through":
        reasons.append(f"/sys/block/{harmless(device.disk)}/queue/write_cache says write through")
    because = f" ({', '.join(filter(None, reasons))})" if any(reasons) else ""
    if device.volatile:
        return _link(device, "contradicts", f"{text} although it has a volatile cache{because}")
    why = f"whether it has a volatile cache cannot be seen: {harmless(device.why)}"
    return _link(device, "unseen", f"{text}{because}; {why}")


def _switched_off(names: Sequence[str], facts: Facts) -> str:
    values = {name: facts.get(HOST, name) for name in names}
    return ", ".join(
        f"{name}={value.value}" for name, value in values.items() if isinstance(value, Known) and value.value
    )


def _data(run: Run, facts: Facts, pool: Subject, classes_: Sequence[str], away: Away) -> Iterator[Link]:
    """Each transaction group flushes the devices that it wrote to, before its uberblock and after (vdev_config_sync() of
    module/zfs/vdev_label.c): all of a small pool, a few of one with many top-level vdevs. A flush that was latched off
    shows here, and in no setting."""
    there = {facts_class(leaf, facts) for leaf in facts.linked(pool, "leaves")}
    classes_ = [each for each in classes_ if each in there or (each == "normal" and "" in there)]
    if not classes_:
        return
    txgs = sum(1 for txg in run.txgs if txg.written and txg.at_s + txg.open_s + txg.sync_s < run.seconds)
    if txgs < TXGS_LEAST:
        text = f"{txgs} transaction groups were seen to write: no flush could be expected"
        yield Link(f"{classes_[0]} vdevs", "unseen", text)
        return
    if missing := [name for class_ in classes_ for name in _without_counters(run, facts, pool, class_)]:
        text = f"no counters of {', '.join(missing)} alone: whether transaction groups flush them cannot be seen"
        yield Link(f"{classes_[0]} vdevs", "unseen", text)
    devices = [device for device in run.devices if device.allocation_class in classes_]
    if devices and not any(device.writes for device in devices):
        text = f"{txgs} transaction groups wrote, and no write was counted on any of them: these are not their counters"
        yield Link(f"{classes_[0]} vdevs", "unseen", text)
        return
    tops = {device.top for device in run.devices if device.allocation_class != "log"}
    due = txgs - 1 if len(tops) <= UBERBLOCKS else 1
    for device in devices:
        text = f"{device.writes} writes, {device.flushes or 'no'} flushes in {txgs} transaction groups"
        others = [each for each in devices if each.top == device.top and not _gone(each, away)]
        if excused := _excused(device, others, away):
            yield excused
        elif unseen := _elsewhere(device, facts, pool):
            yield unseen
        elif device.volatile is False or not device.writes or (device.flushes or 0) >= due:
            off = _switched_off(NOCACHEFLUSH[:1], facts) if device.volatile is not False and device.writes else ""
            text += f"; not by OpenZFS, which leaves them out ({off})" if off else ""
            yield _link(device, "unseen" if off else "accounts", text)
        elif device.flushes is None:
            yield _link(device, "unseen", "this kernel does not count flushes")
        elif len(tops) > UBERBLOCKS and device.writes <= FEW:
            yield _link(device, "unseen", f"{text}: it may have been written to by the last of them only")
        else:
            yield _unflushed(device, text, facts)
