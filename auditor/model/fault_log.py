"""What the kernel reports of faults since boot: of each disk, of the threads of OpenZFS, of memory and processors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, is_true, unknown
from auditor.model.derivation import catch_missing, derivation, first_known, gaps


class Source(NamedTuple):
    """A tally of the host. whole: the fact that its question saw the beginning of the log. what: its entries, as a finding
    names them; part: what they point at. least: fewer are usual."""

    fact: str
    whole: str = "kernel_log_whole"
    what: str = ""
    part: str = ""
    least: int = 1


FLUSHES, ASSUMED = Source("kernel_log_flush_errors"), Source("kernel_log_assumed")
FAILED_IO = Source("kernel_log_io_errors", what="failed reads or writes", part="drive")
RESETS = Source("kernel_log_resets", what="time-outs or resets of its controller or link", part="link")
CONTROLLER = Source("controller_faults", "faults_whole", "faults of its controller", "controller")
FAULTS = (  # what may be the cause of others before them
    Source("scsi_hardware_errors", "buses_whole", "hardware errors", "drive"),
    Source("scsi_medium_errors", "buses_whole", "medium errors", "drive"),
    CONTROLLER,
    Source("pcie_uncorrected", "buses_whole", "PCIe errors not corrected", "bus"),
    Source("dma_faults", "buses_whole", "DMA accesses refused by the IOMMU", "bus"),
    Source("kernel_log_trim_errors", what="failed TRIM commands", part="TRIM"),
    FAILED_IO,
    Source("scsi_aborts", "faults_whole", "commands given up", "link"),
    RESETS,
    # one as it is attached, and one more where its controller is set up again, are usual
    Source("scsi_power_ons", "faults_whole", "power-ons or resets of the drive", "link", least=3),
    Source("pcie_corrected", "buses_whole", "corrected PCIe errors", "bus", least=100),
)
NOTHING = "nothing"
PARTS = {each.what: each.part for each in FAULTS}
PATH_ERRORS = "kernel_log_flush_path_errors"
LINES_KEPT = 10  # of errors of the block layer in five seconds; more are dropped (ratelimit_types.h)
GONE = "dmesg -k: the beginning of the kernel's log is gone, so what it no longer holds is not known"
_PORT, _CONTROLLER = re.compile(r"/(ata\d+)/"), re.compile(r"/nvme/(nvme\d+)/")
_ADDRESS, _NO_SAS = re.compile(r"/(\d+:\d+:\d+:\d+)/"), re.compile(r"/(?:ata|usb|session|rport-|virtio)\d")
_FUNCTION = re.compile(r"/([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?=/)")
# a controller may read and write as a function that it does not have (Linux drivers/pci/quirks.c quirk_dma_func1_alias)
_DEVICE = re.compile(r"/([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})\.[0-7](?=/)")


class Log(NamedTuple):
    """One of the sources. entries: by what they name, each with its place in the log, how often, and the evidence. whole: it
    reaches back to the start. ports: of ATA. controllers: of NVMe. paths: some are named by the path of a leaf."""

    entries: Mapping[str, Sequence[tuple[int, int, Evidence]]]
    whole: bool
    ports: frozenset[str]
    controllers: frozenset[str]
    paths: bool

    def of(self, names: Iterable[str] | None = None) -> list[tuple[int, Evidence]]:
        """(times, evidence) of the entries with these names, or of all, in the order of the log."""
        named = self.entries if names is None else names
        found = sorted((each for name in named for each in self.entries.get(name, ())), key=lambda each: each[0])
        return [(times, seen) for _, times, seen in found]


@derivation(
    "host",
    **{
        "disk.logged_faults": Spec.tally(
            "WHAT=TIMES of logged faults of it, its link and its controller since boot, the cause of others first"
        ),
        "disk.logged_fault": Spec.word("what the first of them points at", NOTHING, *dict.fromkeys(PARTS.values())),
        "disk.logged_flush_errors": Spec.number(
            "cache flushes of it that the kernel logged as failed since it booted, at least"
        ),
        "disk.cache_assumed": Spec.flag(
            "the kernel could not ask whether it caches writes, and took it for a cache that writes through"
        ),
    },
)
def logged_faults(host: Subject, facts: Facts) -> Iterator[Fact]:
    """What the kernel logged of each disk since it booted: faults of it, its link and its controller, failed flushes, and a
    cache that it guessed.

    What is there counts even where the beginning of the log is gone; silence counts only where the log is whole. The log
    names a disk by its name, ATA port, NVMe controller, leaf path, SCSI address or a PCI function on the way; a name may
    have gone to another drive since. Faults of mpt3sas count for every SCSI disk that libata, USB, iSCSI, Fibre Channel or
    virtio does not attach. dm-multipath repeats a failed flush on another path, unless the error is the target's own
    (dm-mpath.c multipath_end_io); the last failure is logged under the dm device."""
    counted: dict[Subject, dict[Source, Judged]] = {}
    for disk, source, times in of_disks((*FAULTS, FLUSHES, ASSUMED), facts):
        counted.setdefault(disk, {})[source] = times
    for disk, times_of in counted.items():
        faults = together([(source.what, times_of[source]) for source in FAULTS])
        first = next((PARTS[what] for what, _ in faults.pairs()), NOTHING)
        if isinstance(assumed := times_of[ASSUMED], Known):
            assumed = assumed._replace(value=assumed.value != 0)
        yield Fact(disk, "logged_faults", faults)
        yield Fact(disk, "logged_fault", faults._replace(value=first) if isinstance(faults, Known) else faults)
        yield Fact(disk, "logged_flush_errors", times_of[FLUSHES])
        yield Fact(disk, "cache_assumed", assumed)


def of_disks(sources: Sequence[Source], facts: Facts) -> Iterator[tuple[Subject, Source, Judged]]:
    """How often each of these sources names each disk; 0 where it is less than usual."""
    logs = {source: _log(source, facts) for source in sources}
    disks = list(facts.subjects("disk"))
    on_port: dict[str, list[Subject]] = {}
    for disk in disks:
        for port in dict.fromkeys(_PORT.findall(f"{facts.get(disk, 'sysfs_path').word()}/")):
            on_port.setdefault(port, []).append(disk)
    for disk in disks:
        for source, log in logs.items():
            if isinstance(log, Unknown):
                yield disk, source, log
                continue
            names, doubt = _names(disk, source, log, on_port, facts)
            judged = _total(log, names, source.least)
            if source == FLUSHES and (heads := _multipath(disk, log, facts)):
                judged = _behind_multipath(disk, judged, names, heads, log, facts)
            found = isinstance(judged, Known) and judged.value
            yield disk, source, doubt if doubt and log.entries and not found else judged


def together(of: Iterable[tuple[str, Judged]]) -> Judged:
    """One tally: of numbers by their names, of tallies by these and those of their entries. What was found counts although
    something else is unknown."""
    of = list(of)
    times: dict[str, int] = {}
    for what, found in of:
        tallied = found.pairs()
        if isinstance(found, Known) and isinstance(found.value, int) and found.value:
            tallied = (("", str(found.value)),)
        for name, often in tallied:
            entry = f"{what} {name}".strip()
            times[entry] = max(int(often), times.get(entry, 0))
    unseen = gaps(found for _, found in of)
    if not times and unseen:
        return Unknown.join(unseen)
    seen = (
        piece for _, found in of if isinstance(found, Known) and (found.value or not times) for piece in found.evidence
    )
    return Known(tuple(f"{entry}={often}" for entry, often in times.items()), tuple(dict.fromkeys(seen)))


def _log(source: Source, facts: Facts) -> Log | Unknown:
    if isinstance(found := facts.get(HOST, source.fact), Unknown):
        return found
    entries: dict[str, list[tuple[int, int, Evidence]]] = {}
    pairs = found.pairs()
    lines = zip(pairs, found.evidence, strict=True) if pairs else ()  # an entry without evidence must not be lost
    for place, ((name, times), seen) in enumerate(lines):
        entries.setdefault(name, []).append((place, int(times), seen))
    ports, controllers = (frozenset(filter(re.compile(each).fullmatch, entries)) for each in (r"ata\d+", r"nvme\d+"))
    whole = is_true(facts.get(HOST, source.whole))
    return Log(entries, whole, ports, controllers, any(name.startswith("/") for name in entries))


def _multipath(disk: Subject, log: Log, facts: Facts) -> frozenset[str]:
    """The dm devices above a disk that is a path of dm-multipath for every leaf on it; asked only when a flush failed."""
    if not log.entries:
        return frozenset()
    leaves = facts.linked(disk, "used_by")
    if not all("multipath" in facts.get(leaf, "layers").words() for leaf in leaves):
        return frozenset()
    return frozenset(name for leaf in leaves for name in facts.get(leaf, "nodes").words())


@catch_missing
def _behind_multipath(
    disk: Subject, judged: Judged, names: frozenset[str], heads: frozenset[str], log: Log, facts: Facts
) -> Judged:
    """Without the errors of this path that another one may have made good, and with those of the dm devices above."""
    paths, failed_io = _log(Source(PATH_ERRORS), facts), _log(FAILED_IO, facts)
    if isinstance(paths, Unknown):
        return paths
    repeated, failed = paths.of(names), log.of(names | heads)
    lost = _sum(failed) - _sum(repeated)
    if lost:
        return Known(lost, tuple(seen for _, seen in failed))
    if not repeated:
        return judged
    text = f"{_sum(repeated)} flushes of {disk} failed on this path, and dm-multipath repeats such on another"
    if not log.whole:
        return unknown(f"{text}; {GONE}")
    if _sum(log.of()) + (0 if isinstance(failed_io, Unknown) else _sum(failed_io.of())) >= LINES_KEPT:
        return unknown(f"{text}; with so many errors the kernel may have kept that of the last path out of its log")
    return Known(0, (Evidence(f"{text}: none of {', '.join(sorted(heads))} itself", "dmesg -k"),))


def _total(log: Log, names: frozenset[str], least: int) -> Judged:
    """The sum over its names, from the least that is unusual on."""
    mine = log.of(names)
    if (times := _sum(mine)) >= least:
        return Known(times, tuple(seen for _, seen in mine))
    if not log.whole:
        return unknown(GONE)
    nothing = "no more than is usual of it in" if mine else "nothing of it in"
    return Known(0, (Evidence(f"{nothing} the kernel's log, which reaches back to its start", "dmesg -k"),))


def _sum(counted: list[tuple[int, Evidence]]) -> int:
    return sum(times for times, _ in counted)


def _names(
    disk: Subject, source: Source, log: Log, on_port: Mapping[str, Sequence[Subject]], facts: Facts
) -> tuple[frozenset[str], Unknown | None]:
    """(what this source surely calls it; why another name may mean it, too)."""
    place = facts.get(disk, "sysfs_path")
    if source.fact.startswith("kernel_log_"):
        return _of_block_layer(disk, log, place, on_port, facts)
    if isinstance(place, Unknown):
        return frozenset(), place
    path = f"{place.value}/"
    addresses = frozenset(_ADDRESS.findall(path)[-1:])
    if source.fact.startswith("scsi_") or (source == CONTROLLER and not addresses):
        return addresses, None
    function = _DEVICE if source.fact == "dma_faults" else _FUNCTION
    way = frozenset(function.findall(path))
    names = frozenset(at for at in log.entries if way.intersection(function.findall(f"/{at}/")))
    if source == CONTROLLER and not _NO_SAS.search(path):
        names |= {at for at in log.entries if at.startswith("mpt")}
    # a path of multipath, a layer, or what is behind no PCI
    return names, None if way else unknown(f"{disk}: no PCI device on the way to it ({place.value})")


def _of_block_layer(
    disk: Subject, log: Log, place: Judged, on_port: Mapping[str, Sequence[Subject]], facts: Facts
) -> tuple[frozenset[str], Unknown | None]:
    names, doubts = {disk.name}, list[Unknown]()
    if log.paths:
        if isinstance(used := facts.get(disk, "used_by"), Unknown):
            doubts.append(used)
        else:
            paths = (facts.get(leaf, "path") for leaf in facts.linked(disk, "used_by"))
            names |= {str(path.value) for path in paths if isinstance(path, Known)}
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


THREADS = {
    "zfs_panics": "panic at",
    "zfs_oopses": "fault in",
    "zfs_faults_beside": "fault in",
    "hung_tasks": "hung task",
    "hung_in_zfs": "hung task",
}
HARDWARE = {"machine_checks": "machine checks:", "hardware_errors": "reported:"}
UNCORRECTED, CORRECTED = "memory_uncorrected_errors", "memory_corrected_errors"
ONE_MODULE = (2, 2)  # from which on zcommon, icp and the others are part of zfs.ko (commit ad9e767657)
USUAL = 100  # corrected errors of memory; a few a year are nothing


@derivation(
    "host",
    zfs_threads_stopped=Spec.tally(
        "HOW AND WHERE=TIMES of threads of OpenZFS that panicked or faulted, and of tasks that hung in it, since boot"
    ),
    hardware_faults=Spec.tally("WHAT=TIMES of errors of memory and processors since boot"),
)
def host_faults(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Threads of OpenZFS that stopped or hung, and faults of memory and processors, each from several questions to the kernel.

    Machine checks and counters of memory errors count on bare metal alone, the counters where the memory has ECC."""
    threads = {name: facts.get(HOST, name) for name in THREADS}
    version = facts.get(HOST, "zfs_version").or_none()
    if isinstance(version, tuple) and version >= ONE_MODULE and isinstance(threads["zfs_faults_beside"], Unknown):
        del threads["zfs_faults_beside"]  # what an older question did not look for is not there
    yield Fact(HOST, "zfs_threads_stopped", together((THREADS[name], each) for name, each in threads.items()))
    yield Fact(HOST, "hardware_faults", _hardware(facts))


@catch_missing
def _hardware(facts: Facts) -> Judged:
    virtual, ecc = facts.need(HOST, "virtualization"), facts.get(HOST, "memory_ecc")
    if virtual.value != "none":
        return Known((), virtual.evidence)
    found = [(what, facts.get(HOST, name)) for name, what in HARDWARE.items()]
    if isinstance(ecc, Unknown):
        found.append(("", ecc))
    elif is_true(ecc):
        corrected = facts.get(HOST, CORRECTED)
        if isinstance(corrected, Known) and corrected.number() < USUAL:
            corrected = corrected._replace(value=0)
        found += [("memory errors not corrected", facts.get(HOST, UNCORRECTED)), ("corrected memory errors", corrected)]
    return together(found)


@derivation("host", memory_ecc=Spec.flag("errors of memory are corrected and noticed (ECC)"))
def memory_ecc(host: Subject, facts: Facts) -> Judged:
    """Whether errors of memory are corrected: the kernel's driver for the memory controller knows, the firmware's tables say
    so.

    In a virtual machine neither says anything: QEMU's tables claim "Multi-bit ECC" whatever its host has."""
    machine = facts.need(HOST, "virtualization")
    if machine.value != "none":
        return unknown(f"in {machine.value}: what memory the machine below has is not seen")
    return first_known((facts.get(HOST, "edac_corrects"), facts.get(HOST, "dmi_memory_ecc")))
