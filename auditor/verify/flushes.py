"""The last links of the chain: on which devices the commits landed, and whether each of them was flushed for it.

A mirror is as good as its worst leg; top-level vdevs of one class share the commits. A device without a volatile cache
needs no flush. What a flush does behind the device, nobody can see.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.facts import HOST, Facts, Known, Subject
from auditor.text import harmless
from auditor.verify.model import Link
from auditor.verify.profile import Section
from auditor.verify.result import Device, Run

SHARE = 0.98  # of syncs that a witness has to account for
FLUSHED = (
    0.3  # flushes in writes, at the least: one flush a log block makes it 0.5, since a flush counts as a write too
)
TXGS_LEAST = 3
NOCACHEFLUSH = ("zfs_nocacheflush", "zil_nocacheflush")


def links(run: Run, section: Section, pool: Subject, facts: Facts) -> Iterator[Link]:
    """One link for each device that commits landed on, and one for each that only transaction groups were written to."""
    floor = max(int(SHARE * run.log.syncs / max(section.jobs * section.depth, 1)), 1)
    landed = classes(run, facts, pool)
    if not landed:
        yield Link("devices", "unseen", "on which class of vdevs the blocks of the ZIL landed could not be seen")
    for class_ in landed:
        yield from _class(class_, run, floor, facts, pool)
    if "normal" not in landed:
        yield from _data(run, facts, pool)


def classes(run: Run, facts: Facts, pool: Subject) -> list[str]:
    """The classes whose devices each commit waited for: where most log blocks went, and where the data of pointers went."""
    where = facts.get(pool, "zil_class")
    chosen = str(where.value) if isinstance(where, Known) else ""
    zil = run.zil
    if zil is None or zil.slog_blocks is None or zil.normal_blocks is None or not zil.commits:
        return [chosen] if chosen else []
    found = []
    if zil.slog_blocks + zil.normal_blocks:
        other = "special" if chosen == "special" else "normal"  # the kstat counts both as normal
        found.append("log" if zil.slog_blocks >= zil.normal_blocks else other)
    if zil.indirect and zil.indirect >= 0.5 * zil.commits and "normal" not in found:
        found.append("normal")
    return found


def _class(class_: str, run: Run, floor: int, facts: Facts, pool: Subject) -> Iterator[Link]:
    tops: dict[str, list[Device]] = {}
    for device in run.devices:
        if device.allocation_class == class_ and not _shared(device, facts, pool):
            tops.setdefault(device.top, []).append(device)
    missing = _without_counters(run, facts, pool, class_)
    if missing or not tops:
        named = ", ".join(missing) or "any of their devices"
        yield Link(f"{class_} vdevs", "unseen", f"no counters of {named} alone: what reaches them cannot be seen")
    enough = sum(min(map(_safe, legs)) for legs in tops.values()) >= floor
    followed = [
        _device(device, facts, enough=enough and not _behind(device, legs)) for legs in tops.values() for device in legs
    ]
    yield from followed
    if tops and not enough and all(link.status == "accounts" for link in followed):
        text = f"{run.log.syncs} syncs, but too few writes and flushes on all of them: the commits went elsewhere"
        yield Link(f"{class_} vdevs", "contradicts", text)


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


def _behind(device: Device, legs: Sequence[Device]) -> bool:
    """Far fewer flushes than another leg of the same vdev, which is asked for the same ones."""
    return _safe(device) < 0.5 * max(leg.flushes or 0 for leg in legs)


def _device(device: Device, facts: Facts, *, enough: bool) -> Link:
    name, where = harmless(device.disk), f"{device.allocation_class} {harmless(device.top)}"
    figures = _figures(device)
    if device.flushes is None and device.volatile is not False:
        return Link(name, "unseen", f"{where}: this kernel does not count flushes", figures)
    if device.volatile is False and not (device.flushes or 0) > FLUSHED * device.writes:
        text = f"{where}: {device.writes} writes; it has no volatile cache, so that none needs a flush"
        return Link(name, "accounts", text, figures)
    flushed = device.flushes or 0
    if enough or (device.writes and flushed >= FLUSHED * device.writes):
        text = f"{where}: {device.writes} writes, {flushed} flushes that it acknowledged"
        if device.virtual:
            text += "; it is virtual: what its host makes of a flush cannot be seen from here"
        return Link(name, "accounts", text, figures)
    if not device.writes:
        return Link(name, "contradicts", f"{where}: no write at all", figures)
    return _unflushed(device, f"{where}: {device.writes} writes and {flushed or 'no'} flushes", facts)


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


def _data(run: Run, facts: Facts, pool: Subject) -> Iterator[Link]:
    """Each transaction group that wrote something flushes the devices that it wrote to, before its uberblock and after
    (vdev_config_sync() of module/zfs/vdev_label.c). Flushing that was latched off shows here, and in no setting."""
    txgs = sum(1 for txg in run.txgs if txg.written and txg.at_s + txg.open_s + txg.sync_s < run.seconds)
    if txgs < TXGS_LEAST:
        yield Link(
            "normal vdevs", "unseen", f"{txgs} transaction groups were seen to write: no flush could be expected"
        )
        return
    if missing := _without_counters(run, facts, pool, "normal"):
        text = f"no counters of {', '.join(missing)} alone: whether transaction groups flush them cannot be seen"
        yield Link("normal vdevs", "unseen", text)
    normal = [device for device in run.devices if device.allocation_class == "normal"]
    if normal and not any(device.writes for device in normal):
        text = f"{txgs} transaction groups wrote, and no write was counted on any of them: these are not their counters"
        yield Link("normal vdevs", "unseen", text)
        return
    for device in normal:
        counted = f"{device.writes} writes, {device.flushes or 'no'} flushes in {txgs} transaction groups"
        text = f"normal {harmless(device.top)}: {counted}"
        if device.volatile is False or not device.writes or (device.flushes or 0) >= txgs - 1:
            yield Link(harmless(device.disk), "accounts", text, _figures(device))
        elif device.flushes is None:
            text = f"normal {harmless(device.top)}: this kernel does not count flushes"
            yield Link(harmless(device.disk), "unseen", text, _figures(device))
        else:
            yield _unflushed(device, text, facts)
