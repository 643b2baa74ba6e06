"""What the kernel logged of each disk since it booted: failed I/O, failed flushes, resets, and a cache that it guessed.

What is there counts even where the beginning of the log is gone; that nothing is there counts only where it is whole. ATA
devices are found by their port, NVMe controllers by their place in the device tree, what OpenZFS says by the path of a leaf.
A name may have gone to another drive since: what is logged is of whatever had it then.

A flush that fails on one path of dm-multipath is repeated on another, unless the error is the target's own (dm-mpath.c
multipath_end_io); where no path is left, the request of the dm device fails, and that is logged under its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    flag,
    is_true,
    number,
    pairs_of,
    unknown,
    words_of,
)

SUBJECT = "host"  # the log is laid out once for all disks
FACTS = {
    "disk.logged_io_errors": number("messages of the kernel since it booted of reads and writes of it that failed"),
    "disk.logged_flush_errors": number(
        "cache flushes of it that the kernel logged as failed since it booted, at least"
    ),
    "disk.logged_resets": number(
        "messages of the kernel since it booted of its controller or link: commands that timed out or failed at first, resets"
    ),
    "disk.logged_trim_errors": number("messages of the kernel since it booted of TRIM commands to it that failed"),
    "disk.cache_assumed": flag(
        "the kernel could not ask whether it caches writes, and took it for a cache that writes through"
    ),
}
SOURCES = {
    "logged_io_errors": "kernel_log_io_errors",
    "logged_flush_errors": "kernel_log_flush_errors",
    "logged_resets": "kernel_log_resets",
    "logged_trim_errors": "kernel_log_trim_errors",
    "cache_assumed": "kernel_log_assumed",
}
PATH_ERRORS = "kernel_log_flush_path_errors"
NEEDS = (
    "host.kernel_log_whole",
    *(f"host.{name}" for name in SOURCES.values()),
    f"host.{PATH_ERRORS}",
    "disk.sysfs_path",
    "disk.used_by",
    "leaf.layers",
    "leaf.nodes",
    "leaf.path",
)
LIMITED = ("kernel_log_flush_errors", "kernel_log_io_errors")
LINES_KEPT = 10  # of errors of the block layer in five seconds; more are dropped (ratelimit_types.h)
GONE = "dmesg -k: the beginning of the kernel's log is gone, so what it no longer holds is not known"
_PORT, _CONTROLLER = re.compile(r"/(ata\d+)/"), re.compile(r"/nvme/(nvme\d+)/")


class Log(NamedTuple):
    """One of the sources. entries: by device, each with its place in the log, how often, and the evidence. ports: of ATA.
    controllers: of NVMe. paths: some are named by the path of a leaf."""

    entries: Mapping[str, Sequence[tuple[int, int, Evidence]]]
    ports: frozenset[str]
    controllers: frozenset[str]
    paths: bool

    def of(self, names: Iterable[str] | None = None) -> list[tuple[int, Evidence]]:
        """(times, evidence) of the entries of these devices, or of all, in the order of the log."""
        devices = self.entries if names is None else names
        found = sorted((each for device in devices for each in self.entries.get(device, ())), key=lambda each: each[0])
        return [(times, seen) for _, times, seen in found]


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """All facts of all disks."""
    logs = {source: _log(facts.get(HOST, source)) for source in (*SOURCES.values(), PATH_ERRORS)}
    disks = list(facts.subjects("disk"))
    on_port: dict[str, list[Subject]] = {}
    for disk in disks:
        for port in dict.fromkeys(_PORT.findall(_path(disk, facts))):
            on_port.setdefault(port, []).append(disk)
    for disk in disks:
        for name, source in SOURCES.items():
            if isinstance(log := logs[source], Unknown):
                yield Fact(disk, name, log)
                continue
            names, doubt = _names(disk, log, on_port, facts)
            judged = _judged(name, log, facts.get(HOST, "kernel_log_whole"), names)
            if name == "logged_flush_errors" and (heads := _multipath(disk, log, facts)):
                judged = _behind_multipath(disk, judged, names, heads, logs, facts)
            found = isinstance(judged, Known) and judged.value
            yield Fact(disk, name, doubt if doubt and not found else judged)


def _log(found: Judged) -> Log | Unknown:
    if isinstance(found, Unknown):
        return found
    entries: dict[str, list[tuple[int, int, Evidence]]] = {}
    pairs = pairs_of(found)
    lines = zip(pairs, found.evidence, strict=True) if pairs else ()  # an entry without evidence must not be lost
    for place, ((device, times), seen) in enumerate(lines):
        entries.setdefault(device, []).append((place, int(times), seen))
    ports, controllers = (frozenset(filter(re.compile(each).fullmatch, entries)) for each in (r"ata\d+", r"nvme\d+"))
    return Log(entries, ports, controllers, any(device.startswith("/") for device in entries))


def _multipath(disk: Subject, log: Log, facts: Facts) -> frozenset[str]:
    """The dm devices above a disk that is a path of dm-multipath for every leaf on it; asked only when a flush failed."""
    if not log.entries:
        return frozenset()
    leaves = facts.linked(disk, "used_by")
    if not all("multipath" in words_of(facts.get(leaf, "layers")) for leaf in leaves):
        return frozenset()
    return frozenset(name for leaf in leaves for name in words_of(facts.get(leaf, "nodes")))


def _behind_multipath(
    disk: Subject,
    judged: Judged,
    names: frozenset[str],
    heads: frozenset[str],
    logs: Mapping[str, Log | Unknown],
    facts: Facts,
) -> Judged:
    """Without the errors of this path that another one may have made good, and with those of the dm devices above."""
    paths, whole = logs[PATH_ERRORS], facts.get(HOST, "kernel_log_whole")
    if isinstance(paths, Unknown):
        return paths
    repeated = paths.of(names)
    failed = _of(logs[SOURCES["logged_flush_errors"]], names | heads)
    lost = _sum(failed) - _sum(repeated)
    if lost:
        return Known(lost, tuple(seen for _, seen in failed))
    if not repeated:
        return judged
    text = f"{_sum(repeated)} flushes of {disk} failed on this path, and dm-multipath repeats such on another"
    if not is_true(whole):
        return unknown(f"{text}; {GONE}")
    if sum(_sum(_of(logs[name])) for name in LIMITED) >= LINES_KEPT:
        return unknown(f"{text}; with so many errors the kernel may have kept that of the last path out of its log")
    return Known(0, (Evidence(f"{text}: none of {', '.join(sorted(heads))} itself", "dmesg -k"),))


def _judged(name: str, log: Log, whole: Judged, names: frozenset[str]) -> Judged:
    """The sum over its names."""
    mine = log.of(names)
    if not mine and not is_true(whole):
        return unknown(GONE)
    nothing = (Evidence("nothing of it in the kernel's log, which reaches back to its start", "dmesg -k"),)
    times = _sum(mine)
    return Known(times > 0 if name == "cache_assumed" else times, tuple(seen for _, seen in mine) or nothing)


def _of(log: Log | Unknown, names: Iterable[str] | None = None) -> list[tuple[int, Evidence]]:
    return log.of(names) if isinstance(log, Log) else []


def _sum(counted: list[tuple[int, Evidence]]) -> int:
    return sum(times for times, _ in counted)


def _names(
    disk: Subject, log: Log, on_port: Mapping[str, Sequence[Subject]], facts: Facts
) -> tuple[frozenset[str], Unknown | None]:
    """(what the log surely calls it: its own name, the paths of its leaves, its controller, its port without other disks; why
    another name may mean it, too)."""
    names, doubts = {disk.name}, list[Unknown]()
    if log.paths:
        if isinstance(used := facts.get(disk, "used_by"), Unknown):
            doubts.append(used)
        else:
            paths = (facts.get(leaf, "path") for leaf in facts.linked(disk, "used_by"))
            names |= {str(path.value) for path in paths if isinstance(path, Known)}
    place = facts.get(disk, "sysfs_path")
    if isinstance(place, Unknown):
        doubts += [place] if log.ports or log.controllers else []
    else:
        path = f"{place.value}/"
        if (port := _PORT.search(path)) and port[1] in log.ports:
            if others := [other for other in on_port[port[1]] if other != disk]:
                doubts.append(unknown(f"dmesg -k: {port[1]} may be {disk} or {others[0]}, which share a port"))
            else:
                names.add(port[1])
        if log.controllers and disk.name.startswith("nvme"):
            if controller := _CONTROLLER.search(path):
                names.add(controller[1])
            else:
                doubts.append(unknown(f"dmesg -k: which NVMe controller {disk} is attached to is not known"))
    return frozenset(names), doubts[0] if doubts else None


def _path(disk: Subject, facts: Facts) -> str:
    found = facts.get(disk, "sysfs_path")
    return f"{found.value}/" if isinstance(found, Known) else ""
