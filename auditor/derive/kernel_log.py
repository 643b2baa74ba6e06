"""What the kernel logged of each disk since it booted: failed I/O, failed flushes, resets, and a cache that it guessed.

What is there counts even where the beginning of the log is gone; that nothing is there counts only where it is whole. ATA
devices are found by their port, NVMe controllers by their place in the device tree. A name may have gone to another drive
since: what is logged is of whatever had it then.

A flush that fails on one path of dm-multipath is repeated on another, unless the error is the target's own (dm-mpath.c
multipath_end_io); where no path is left, the request of the dm device fails, and that is logged under its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.derive.combine import is_true
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Subject, Unknown, flag, number, unknown

SUBJECT = "disk"
FACTS = {
    "logged_io_errors": number("reads and writes of it that the kernel logged as failed since it booted, at least"),
    "logged_flush_errors": number("cache flushes of it that the kernel logged as failed since it booted, at least"),
    "logged_resets": number("resets of its controller and flushes that had to be repeated, since boot, at least"),
    "cache_assumed": flag(
        "the kernel could not ask whether it caches writes, and took it for a cache that writes through"
    ),
}
SOURCES = {
    "logged_io_errors": "kernel_log_io_errors",
    "logged_flush_errors": "kernel_log_flush_errors",
    "logged_resets": "kernel_log_resets",
    "cache_assumed": "kernel_log_assumed",
}
PATH_ERRORS = "kernel_log_flush_path_errors"
NEEDS = (
    "host.kernel_log_whole",
    *(f"host.{name}" for name in SOURCES.values()),
    f"host.{PATH_ERRORS}",
    "disk.sysfs_path",
    "leaf.disks",
    "leaf.layers",
    "leaf.nodes",
)
LIMITED = ("kernel_log_flush_errors", "kernel_log_io_errors")
LINES_KEPT = 10  # of errors of the block layer in five seconds; more are dropped (ratelimit_types.h)
GONE = "dmesg -k: the beginning of the kernel's log is gone, so what it no longer holds is not known"
_PORT, _CONTROLLER = re.compile(r"/(ata\d+)/"), re.compile(r"/nvme/(nvme\d+)/")


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    """All facts of one disk."""
    for name, source in SOURCES.items():
        log = facts.get(HOST, source)
        if isinstance(log, Unknown):
            yield Fact(disk, name, log)
            continue
        names = _names(disk, log, facts)
        if isinstance(names, Unknown):
            yield Fact(disk, name, names)
        else:
            judged = _judged(name, log, facts.get(HOST, "kernel_log_whole"), names)
            if name == "logged_flush_errors" and (heads := _multipath(disk, log, facts)):
                judged = _behind_multipath(disk, judged, names, heads, facts)
            yield Fact(disk, name, judged)


def _multipath(disk: Subject, log: Known, facts: Facts) -> frozenset[str]:
    """The dm devices above a disk that is a path of dm-multipath for every leaf on it; asked only when a flush failed."""
    if not _entries(log):
        return frozenset()
    leaves = [leaf for leaf in facts.subjects("leaf") if disk in facts.linked(leaf, "disks")]
    if not all("multipath" in _words(facts.get(leaf, "layers")) for leaf in leaves):
        return frozenset()
    return frozenset(name for leaf in leaves for name in _words(facts.get(leaf, "nodes")))


def _behind_multipath(
    disk: Subject, judged: Judged, names: frozenset[str], heads: frozenset[str], facts: Facts
) -> Judged:
    """Without the errors of this path that another one may have made good, and with those of the dm devices above."""
    paths, whole = facts.get(HOST, PATH_ERRORS), facts.get(HOST, "kernel_log_whole")
    if isinstance(paths, Unknown):
        return paths
    repeated = _counted(paths, names)
    failed = _counted(facts.get(HOST, SOURCES["logged_flush_errors"]), names | heads)
    lost = _sum(failed) - _sum(repeated)
    if lost:
        return Known(lost, tuple(seen for _, seen in failed))
    if not repeated:
        return judged
    text = f"{_sum(repeated)} flushes of {disk} failed on this path, and dm-multipath repeats such on another"
    if not is_true(whole):
        return unknown(f"{text}; {GONE}")
    if sum(_sum(_counted(facts.get(HOST, name))) for name in LIMITED) >= LINES_KEPT:
        return unknown(f"{text}; with so many errors the kernel may have kept that of the last path out of its log")
    return Known(0, (Evidence(f"{text}: none of {', '.join(sorted(heads))} itself", "dmesg -k"),))


def _judged(name: str, log: Known, whole: Judged, names: frozenset[str]) -> Judged:
    """The sum over its names."""
    mine = _counted(log, names)
    if not mine and not is_true(whole):
        return unknown(GONE)
    nothing = (Evidence("nothing of it in the kernel's log, which reaches back to its start", "dmesg -k"),)
    times = _sum(mine)
    return Known(times > 0 if name == "cache_assumed" else times, tuple(seen for _, seen in mine) or nothing)


def _counted(log: Judged, names: frozenset[str] | None = None) -> list[tuple[int, Evidence]]:
    """(times, evidence) of the entries of these devices, or of all."""
    entries = _entries(log)
    evidence = log.evidence if isinstance(log, Known) else ()
    pairs = zip(entries, evidence, strict=True) if entries else ()  # an entry without evidence must not be lost
    found = [(*str(entry).rpartition("=")[::2], seen) for entry, seen in pairs]
    return [(int(times), seen) for device, times, seen in found if names is None or device in names]


def _sum(counted: list[tuple[int, Evidence]]) -> int:
    return sum(times for times, _ in counted)


def _entries(log: Judged) -> tuple[object, ...]:
    return log.value if isinstance(log, Known) and isinstance(log.value, tuple) else ()


def _words(found: Judged) -> tuple[str, ...]:
    return tuple(map(str, _entries(found)))


def _names(disk: Subject, log: Known, facts: Facts) -> frozenset[str] | Unknown:
    """What the log may call it: its own name, its controller, its port where no other disk hangs on that."""
    devices = {str(entry).rpartition("=")[0] for entry in _entries(log)}
    ports = {device.partition(".")[0]: device for device in devices if device.startswith("ata")}
    controllers = {device for device in devices if re.fullmatch(r"nvme\d+", device)}
    if not ports and not controllers:
        return frozenset({disk.name})
    place = facts.get(disk, "sysfs_path")
    if isinstance(place, Unknown):
        return place
    path = f"{place.value}/"
    names = {disk.name}
    if (port := _PORT.search(path)) and port[1] in ports:
        others = [other for other in facts.subjects("disk") if other != disk and f"/{port[1]}/" in _path(other, facts)]
        if others:
            return unknown(f"dmesg -k: {ports[port[1]]} may be {disk} or {others[0]}, which hang on one port")
        names.add(ports[port[1]])
    if controllers and disk.name.startswith("nvme"):
        if not (controller := _CONTROLLER.search(path)):
            return unknown(f"dmesg -k: which NVMe controller {disk} hangs on is not known")
        names.add(controller[1])
    return frozenset(names)


def _path(disk: Subject, facts: Facts) -> str:
    found = facts.get(disk, "sysfs_path")
    return f"{found.value}/" if isinstance(found, Known) else ""
