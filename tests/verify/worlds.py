"""Made-up pools under a run of fio, by what each witness counted: the truth is known, so the verdict is too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from auditor.facts import HOST, Fact, Facts, Scalar, Subject, known
from auditor.verify.profile import Section
from auditor.verify.result import Device, Histogram, Job, Run, Syscalls, Txg, Zil
from auditor.verify.trial import STATUS, FioRun, KernelLines, Reading, Trial

SYNCS, TXGS = 3000, 7
POOL, DATASET = Subject("pool", "tank"), Subject("dataset", "tank/db")
NOTHING = Reading(0.0, 0.0, {}, {})
FAILED = "I/O error, dev {}, sector 0 op 0x1:(WRITE) flags 0x800 phys_seg 0 prio class 0"


class Disk(NamedTuple):
    """A disk of a pool and what it counted. leaves: (name, top-level vdev, class) of each leaf on it; one when empty."""

    name: str
    top: str
    class_: str
    writes: int = 300
    flushes: int | None = 2 * TXGS
    volatile: bool | None = True
    leaves: tuple[tuple[str, str, str], ...] = ()


DATA = (Disk("nvme0n1", "mirror-0", "normal"), Disk("nvme1n1", "mirror-0", "normal"))
LEG_A = Disk("nvme2n1", "mirror-1", "log", 2 * SYNCS, SYNCS + 1)
LEG_B = Disk("nvme3n1", "mirror-1", "log", 2 * SYNCS, SYNCS + 1)
MIRRORED = (*DATA, LEG_A, LEG_B)


class World(NamedTuple):
    """What chain.follow() is given."""

    trial: Trial
    runs: tuple[Run, ...]
    section: Section
    facts: Facts

    @property
    def log(self) -> Run:
        return self.runs[-1]

    def changed(self, **of_log: object) -> World:
        return self._replace(runs=(*self.runs[:-1], self.log._replace(**of_log)))  # type: ignore[arg-type]


def facts(disks: Sequence[Disk], zil_class: str, sync: str, parameters: Mapping[str, Scalar]) -> Facts:
    """What the audit saw of the pool."""
    found = Facts()
    tops: dict[str, list[Subject]] = {}
    for disk in disks:
        subject = Subject("disk", disk.name)
        found.add(subject)
        if disk.volatile is not None:
            found.put(Fact(subject, "volatile_cache", known(disk.volatile, "vwc")))
        for name, top, class_ in disk.leaves or ((disk.name, disk.top, disk.class_),):
            leaf = Subject("leaf", name, "tank")
            if leaf not in tops.setdefault(top, []):
                tops[top].append(leaf)
            found.replace(Fact(leaf, "allocation_class", known(class_, "")))
            found.replace(Fact(leaf, "disks", known((*found.linked(leaf, "disks"), subject), "")))
    vdevs = {top: Subject("vdev", top, "tank") for top in tops}
    for top, leaves in tops.items():
        found.put(Fact(vdevs[top], "leaves", known(tuple(leaves), "")))
    everything = tuple(leaf for leaves in tops.values() for leaf in leaves)
    zil = tuple(leaf for leaf in everything if known(zil_class, "") == found.get(leaf, "allocation_class"))
    found.put(Fact(POOL, "vdevs", known(tuple(vdevs.values()), "")))
    found.put(Fact(POOL, "leaves", known(everything, "")))
    found.put(Fact(POOL, "zil_leaves", known(zil, "")))
    found.put(Fact(POOL, "zil_class", known(zil_class, "")))
    found.put(Fact(DATASET, "sync", known(sync, "")))
    for name, value in parameters.items():
        found.put(Fact(HOST, name, known(value, "")))
    return found


def device(disk: Disk, zil_class: str) -> Device:
    """As witnesses.devices() would have it."""
    leaves = disk.leaves or ((disk.name, disk.top, disk.class_),)
    return Device(
        disk=disk.name,
        leaves=tuple(name for name, _, _ in leaves),
        top=leaves[0][1],
        zil=any(class_ == zil_class for _, _, class_ in leaves),
        allocation_class=leaves[0][2],
        writes=disk.writes,
        bytes=disk.writes * 4096,
        flushes=disk.flushes,
        write_ms=disk.writes // 10,
        flush_ms=disk.flushes,
        volatile=disk.volatile,
        why="" if disk.volatile is not None else "nvme id-ctrl: run as root",
        virtual=False,
    )


def status(disks: Sequence[Disk], rows: Mapping[str, str]) -> str:
    """What ``zpool status -p -s`` says of the pool. rows: of a vdev that is not well."""

    def row(depth: int, name: str) -> str:
        return f"\t{' ' * depth}{name}  {rows.get(name, 'ONLINE  0  0  0  0')}"

    legs = [leg for disk in disks for leg in disk.leaves or ((disk.name, disk.top, disk.class_),)]
    lines = ["  pool: tank", " state: ONLINE", "config:", "", "\tNAME  STATE  READ WRITE CKSUM  SLOW", row(0, "tank")]
    for head, classes in (("", ("normal",)), ("special", ("special",)), ("logs", ("log",))):
        tops: dict[str, list[str]] = {}
        for name, top, class_ in legs:
            if class_ in classes:
                tops.setdefault(top, []).append(name)
        lines += [f"\t{head}"] if head and tops else []
        for top, leaves in tops.items():
            lines += [row(2, top), *(row(4, leaf) for leaf in leaves if leaf != top)]
    return "\n".join((*lines, "", "errors: No known data errors", ""))


def world(
    disks: Sequence[Disk] = MIRRORED,
    *,
    syncs: int = SYNCS,
    writes: int | None = None,
    options: Mapping[str, str] | None = None,
    zil_class: str = "log",
    sync: str = "standard",
    parameters: Mapping[str, Scalar] | None = None,
    zil: Zil | None = None,
    others: Mapping[str, int] | None = None,
    together: bool = False,
    idle_commits: int = 0,
    calls: Syscalls | None = None,
    traced: bool = True,
    landed: str = "tank/db",
    preload: str = "",
    scan: str = "",
    logged: Sequence[str] = (),
    failed: Mapping[str, str] | None = None,
    always: Mapping[str, str] | None = None,
) -> World:
    """A healthy pool with a mirrored SLOG, but for what is said. together: this release counts no datasets apart. logged: by
    the kernel; failed: vdev -> what zpool status says of it after the run.
    """
    section = Section("log", "log", "", dict(options or {"rw": "write", "fdatasync": "1"}))
    job = Job(
        "log", section.sync, writes or syncs, 8192 * syncs, 0, syncs, 0, 36.0, 0, Histogram(((10**7, syncs),)), 5.0
    )
    slog = syncs if zil_class == "log" else 0
    counted = zil or Zil(syncs, syncs, slog, 1, 1, syncs - slog, 1, 1, 0, 0, 0, 0)
    log = Run(
        name="log",
        purpose="log",
        argv=("fio",),
        began=1e9,
        seconds=37.0,
        jobs=(job,),
        timeline=(),
        zil=counted,
        others=None if together else dict(others or {}),
        idle_s=3.0,
        idle_commits=idle_commits,
        idle_writes={disk.name: 2 for disk in disks},
        devices=tuple(device(disk, zil_class) for disk in disks),
        txgs=tuple(Txg(i, 5.0 * i - 4, 4.9, 0.1, 1 << 20, 1 << 20) for i in range(TXGS)),
        counters={"dmu_tx_assigned": syncs, "dmu_tx_dirty_delay": 0, "dmu_tx_dirty_over_max": 0},
        heat={},
        syscalls=None,
        faults=(),
    )
    flag = {"dsync": ("O_DSYNC",), "sync": ("O_SYNC",)}.get(section.sync, ())
    fsyncs, fdatasyncs = (100 if section.sync == each else 0 for each in ("fsync", "fdatasync"))
    under = log._replace(
        name="calls",
        purpose="calls",
        jobs=(job._replace(writes=100, syncs=min(100, syncs)),),
        syscalls=calls or Syscalls(100, fsyncs, fdatasyncs, (flag,)),
    )
    before, after = (
        NOTHING._replace(text={f"{STATUS}tank": status(disks, rows)}) for rows in (always or {}, failed or always or {})
    )
    ran = FioRun(
        *("log", "log", ("log",), ("fio",), NOTHING, before, after, 1e9, 1e9 + 37, 0, "", ""),
        logged=KernelLines(tuple(logged), ""),
    )
    trial = Trial(
        target="tank/db",
        dataset="tank/db",
        landed=landed,
        place="/tank/db/.zaudit-0",
        profile="postgres",
        job_file="",
        length="quick",
        objectives="",
        size=1 << 30,
        fio="fio-3.33",
        preload=preload,
        runs=(ran,),
        scan=scan,
    )
    return World(trial, (under, log) if traced else (log,), section, facts(disks, zil_class, sync, parameters or {}))
