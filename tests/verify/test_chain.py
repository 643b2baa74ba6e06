"""The chain of custody, world by world: outcome, the link that contradicts, and why nothing could be said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.facts import Fact, Facts, Subject, known, unknown
from auditor.verify import chain
from auditor.verify.result import CANNOT_EXCLUDE, LIMITED, Chain, Syscalls, Zil
from auditor.verify.trial import STATUS, UNLOGGED, UNSEEN, KernelLines
from tests.folded import for_each
from tests.shared import briefly
from tests.verify.worlds import DATA, FAILED, LEG_A, LEG_B, MIRRORED, NOTHING, SYNCS, Disk, World, world

DSYNC = {"rw": "write", "sync": "dsync"}
FSYNC = {"rw": "write", "fsync": "1"}
NO_FLUSH = LEG_A._replace(flushes=0)
ALONE = tuple(disk._replace(writes=2 * SYNCS, flushes=SYNCS + 20) for disk in DATA)
HALF = tuple(
    Disk(f"nvme{i}n1", f"nvme{i}n1", "normal", SYNCS + 20, SYNCS // 2 + 10) for i in range(2)
)  # two top-level vdevs share the commits
HALF_LEG = LEG_B._replace(writes=SYNCS, flushes=SYNCS // 2)  # it was there for half of the run
FAULTED, OFFLINE = {"nvme3n1": "FAULTED  0  0  0  0"}, {"nvme3n1": "OFFLINE  0  0  0  0"}
SPECIAL = tuple(disk._replace(class_="special") for disk in (LEG_A, LEG_B))
POINTERS = Zil(SYNCS, SYNCS, SYNCS, 1, 1, 0, 0, 0, SYNCS, SYNCS * 8192, 0, 0)

FOUR_JOBS = {"rw": "write", "fdatasync": "1", "numjobs": "4"}


def raidz(name: str, count: int, share: float, *, parity: int, volatile: bool) -> World:
    """A raidz vdev without SLOG, of whose legs each log block touches a share."""
    flushes = SYNCS + 20 if volatile else 0
    legs = tuple(
        Disk(f"sd{i}", name, "normal", int(SYNCS * share) + 300 + flushes, flushes, volatile) for i in range(count)
    )
    found = world(legs, zil_class="normal")
    found.facts.put(Fact(Subject("vdev", name, "tank"), "parity", known(parity, "")))
    return found


def mirrors(count: int, writes: int, flushes: int) -> tuple[Disk, ...]:
    """Many mirrors beside a mirrored SLOG, each written to in some of the transaction groups."""
    data = (Disk(f"sd{i}{leg}", f"mirror-{i + 2}", "normal", writes, flushes) for i in range(count) for leg in "ab")
    return (*data, LEG_A, LEG_B)


def four_mirrors(flushes: int) -> tuple[Disk, ...]:
    """No SLOG; of the last mirror this many flushes were counted."""
    return tuple(
        Disk(f"sd{i}{leg}", f"mirror-{i}", "normal", SYNCS // 2 + 300, SYNCS // 4 + 14 if i < 3 else flushes)
        for i in range(4)
        for leg in "ab"
    )


def unlogged(what: World, logged: KernelLines = UNLOGGED) -> World:
    """The same where the kernel's log was not read."""
    runs = tuple(ran._replace(logged=logged) for ran in what.trial.runs)
    return what._replace(trial=what.trial._replace(runs=runs))


def earlier(what: World, logged: KernelLines) -> World:
    """The same after a run in which the kernel logged something."""
    (ran,) = what.trial.runs
    calls = ran._replace(name="calls", purpose="calls", logged=logged)
    return what._replace(trial=what.trial._replace(runs=(calls, ran)))


def status_of(what: World, pool: str, other: str) -> World:
    """The same where zpool status answered after the run of another pool."""
    ran = what.trial.runs[-1]
    text = {f"{STATUS}{pool}": ran.before.text[f"{STATUS}{pool}"].replace(f"pool: {pool}", f"pool: {other}")}
    after = NOTHING._replace(text=text)
    return what._replace(trial=what.trial._replace(runs=(*what.trial.runs[:-1], ran._replace(after=after))))


PATH = "recoverable transport error, dev {}, sector 0 op 0x2:(FLUSH) flags 0x0 phys_seg 0 prio class 0"


def multipath(what: World) -> World:
    """The same with a log device behind dm-multipath."""
    leaf = Subject("leaf", "nvme2n1", "tank")
    what.facts.put(Fact(Subject("disk", "nvme2n1"), "used_by", known((leaf,), "")))
    what.facts.put(Fact(leaf, "layers", known(("multipath",), "")))
    what.facts.put(Fact(leaf, "nodes", known(("dm-0",), "")))
    return what


def reset(what: World) -> World:
    """The same where it is known which controller the drives hang on."""
    for i in range(4):
        path = f"/sys/devices/pci0/nvme/nvme{i}/nvme{i}n1"
        what.facts.put(Fact(Subject("disk", f"nvme{i}n1"), "sysfs_path", known(path, "")))
    return what


TWO_LOGS = (*DATA, Disk("nvme2n1", "nvme2n1", "log", SYNCS, SYNCS // 2))


def blocks(slog: int, normal: int = 0) -> Zil:
    """So many log blocks for the commits."""
    return Zil(SYNCS, slog + normal, slog, 1, 1, normal, 1, 1, 0, 0, 0, 0)


def many(count: int) -> tuple[Disk, ...]:
    return (*DATA, *(disk._replace(writes=2 * count, flushes=count) for disk in (LEG_A, LEG_B)))


# -- what a counter cannot prove ----------------------------------------------------------------------------------


def known_of(what: World, leaf: str, **values: object) -> World:
    """The same with facts of a leaf."""
    for name, value in values.items():
        what.facts.put(Fact(Subject("leaf", leaf, "tank"), name, known(value, "")))  # type: ignore[arg-type]
    return what


def heads(what: World) -> World:
    """The same with drives behind NVMe multipath."""
    for device in what.log.devices:
        path = f"/devices/virtual/nvme-subsystem/nvme-subsys0/{device.disk}"
        what.facts.put(Fact(Subject("disk", device.disk), "sysfs_path", known(path, "")))
    return what


def paths(active: tuple[int, int], idle: tuple[int, int], *, volatile: bool = True) -> World:
    """A log device behind dm-multipath: (writes, flushes) of its paths, as witnesses.devices() adds those of the map."""
    on = (("mpatha", "mpatha", "log"),)
    legs = (Disk("sdb", "mpatha", "log", *active, volatile, on), Disk("sdc", "mpatha", "log", *idle, volatile, on))
    what = world((*DATA, *legs)).changed(idle_writes={disk.name: 0 for disk in (*DATA, *legs)})
    return known_of(what, "mpatha", layers=("multipath",), stack_rearranges=False, nodes=("dm-0",))


def layered(*disks: tuple[int, int, bool], layer: str, rearranges: bool | None = False) -> World:
    """No SLOG, one leaf on several disks: (writes, flushes, volatile) of each."""
    on = (("lv", "lv", "normal"),)
    below = tuple(Disk(f"sd{i}", "lv", "normal", *each, on) for i, each in enumerate(disks))
    what = known_of(world(below, zil_class="normal"), "lv", layers=(layer,))
    return what if rearranges is None else known_of(what, "lv", stack_rearranges=rearranges)


WHOLE, FLUSHED_ONLY, HALF_OF_THEM = (
    (2 * SYNCS, SYNCS + 20, True),
    (SYNCS + 20, SYNCS + 20, True),
    (SYNCS, SYNCS // 2, True),
)


def special(
    of_special: tuple[int, int], of_data: tuple[int, int], *, volatile: bool = True, slog: bool = False
) -> World:
    """2.4, a special vdev: (writes, flushes) of its legs and of those of the data vdev. Few log blocks are on a SLOG."""
    upper = tuple(Disk(f"nvme{i}n1", "mirror-1", "special", *of_special, volatile) for i in (2, 3))
    data = tuple(disk._replace(writes=of_data[0], flushes=of_data[1]) for disk in DATA)
    log = (Disk("nvme4n1", "nvme4n1", "log", 180, 90),) if slog else ()
    some = 90 if slog else 0
    what = world((*data, *upper, *log), zil_class="log" if slog else "special", zil=blocks(some, SYNCS - some))
    return what.changed(idle_writes={device.disk: 0 for device in what.log.devices})


EACH, BY_TXGS = (2 * SYNCS, SYNCS + 20), (300, 14)
DIM = {"zil_nocacheflush": 1}


def two_legs(writes: int, flushes: int, log_blocks: int, **of_job: str) -> World:
    """A mirrored SLOG that took so many log blocks from several jobs."""
    legs = (disk._replace(writes=writes, flushes=flushes) for disk in (LEG_A, LEG_B))
    return world((*DATA, *legs), options={**FOUR_JOBS, **of_job}, zil=blocks(log_blocks))


TRACED = {
    "mirrored SLOG": world(),
    "dm-multipath, every flush at the map": paths((2 * SYNCS, SYNCS + 1), (SYNCS + 1, SYNCS + 1)),
    "dm-multipath in turns, every flush at the map": paths(
        (SYNCS * 3 // 2 + 1, SYNCS + 1), (SYNCS * 3 // 2 + 1, SYNCS + 1)
    ),
    "dm-multipath without a volatile cache": paths((SYNCS, 0), (0, 0), volatile=False),
    "NVMe multipath, counted at its paths": heads(world()),
    "LVM linear over two disks, one written to": layered(WHOLE, FLUSHED_ONLY, layer="lvm"),
    "LVM linear over two disks, one written to and the other never flushed": layered(WHOLE, (0, 0, True), layer="lvm"),
    "LVM linear over two disks, both written to": layered(
        (SYNCS * 3 // 2, SYNCS + 20, True), (SYNCS * 3 // 2 + 40, SYNCS + 20, True), layer="lvm"
    ),
    "md-linear over three disks": layered(FLUSHED_ONLY, WHOLE, FLUSHED_ONLY, layer="md-linear"),
    "bcache: log blocks in the cache, flushes to both": layered(
        WHOLE, FLUSHED_ONLY, layer="bcache-writeback", rearranges=True
    ),
    "two disks below a leaf, one without a volatile cache": layered((SYNCS + 300, 0, False), FLUSHED_ONLY, layer="lvm"),
    "2.4, special full, every block flushed on the data vdevs": special(BY_TXGS, EACH),
    "2.4, special full meanwhile": special((SYNCS + 300, SYNCS // 2 + 14), (SYNCS + 300, SYNCS // 2 + 14)),
    "2.4, SLOG and data vdevs full, every block on special": special(EACH, BY_TXGS, slog=True),
    "2.4, SLOG and special full, every block on the data vdevs": special(BY_TXGS, EACH, slog=True),
    "a setting that matters to no device": world(
        tuple(disk._replace(flushes=0, volatile=False) for disk in MIRRORED), parameters=DIM
    ),
    "four jobs, a flush for each log block": two_legs(2 * SYNCS, SYNCS, SYNCS),
    "transaction groups flush data disks while nothing runs": world(ALONE, zil_class="normal").changed(
        idle_writes={disk.name: 10 for disk in ALONE}
    ),
    "single SLOG": world((*DATA, LEG_A._replace(top="nvme2n1"))),
    "no SLOG": world(ALONE, zil_class="normal"),
    "striped, no SLOG": world(HALF, zil_class="normal"),
    "special on 2.4": world((*DATA, *SPECIAL), zil_class="special"),
    "fsync": world(options=FSYNC),
    "dsync": world(options=DSYNC),
    "O_SYNC": world(options={"rw": "write", "sync": "1"}),
    "sync=always commits twice": world(many(2 * SYNCS), sync="always", zil=Zil(2 * SYNCS, 1, 2 * SYNCS, 1, 1, 0)),
    "group commit of four jobs": world(many(SYNCS // 4), options=FOUR_JOBS, zil=blocks(SYNCS // 4)),
    "pointers, data on the data vdevs": world((*ALONE, LEG_A, LEG_B), zil=POINTERS),
    "no volatile cache, no flush": world(tuple(disk._replace(flushes=0, volatile=False) for disk in MIRRORED)),
    "no volatile cache, no count of flushes": world(
        tuple(disk._replace(flushes=None, volatile=False) for disk in MIRRORED)
    ),
    "unknown cache, but flushed": world(tuple(disk._replace(volatile=None) for disk in MIRRORED)),
    "2.1: all pools together": world(together=True),
    "a few commits of others": world(others={"tank/other": 12}),
    "raidz2 of eight without caches": raidz("raidz2-0", 8, 5 / 8, parity=2, volatile=False),
    "raidz1 of six without caches": raidz("raidz1-0", 6, 4 / 6, parity=1, volatile=False),
    "raidz2 of eight with caches": raidz("raidz2-0", 8, 5 / 8, parity=2, volatile=True),
    "24 mirrors, each written to in some transaction groups": world(mirrors(24, 60, 5)),
    "60 mirrors that get an uberblock now and then": world(mirrors(60, 16, 4)),
    "two single log vdevs, four jobs": world(
        (*TWO_LOGS, Disk("nvme3n1", "nvme3n1", "log", SYNCS, SYNCS // 2)), options=FOUR_JOBS
    ),
    "a second log vdev that took no part": world(
        (*DATA, LEG_A._replace(top="nvme2n1"), Disk("nvme4n1", "nvme4n1", "log", 0, 0))
    ).changed(idle_writes={"nvme2n1": 2, "nvme4n1": 0}),
    "a leg of the log mirror is offline": world(
        (*DATA, LEG_A, LEG_B._replace(writes=0, flushes=0)), always=OFFLINE
    ).changed(idle_writes={"nvme2n1": 2, "nvme3n1": 0}),
    "a few log blocks fell back": world(zil=Zil(SYNCS, SYNCS, SYNCS - 15, 1, 1, 15, 1, 1, 0, 0, 0, 0)),
    "a flush fails on a path, and dm-multipath repeats it on another": multipath(
        world(logged=[PATH.format("nvme2n1")])
    ),
    "a write of another disk fails": world(logged=[FAILED.format("sdz"), PATH.format("sdz")]),
    "four mirrors, no SLOG, four jobs": world(four_mirrors(SYNCS // 4), options=FOUR_JOBS, zil_class="normal"),
}

CONTRADICTED = {
    "dm-multipath, a third of the flushes": (paths((SYNCS + 500, 500), (500, 500)), {"sdb"}, "500 flushes although"),
    "NVMe multipath, few flushes at its paths": (
        heads(world((*DATA, LEG_A._replace(flushes=30), LEG_B))),
        {"nvme2n1"},
        "30 flushes although",
    ),
    "LVM linear over two disks, the one written to never flushed": (
        layered((SYNCS, 0, True), FLUSHED_ONLY, layer="lvm"),
        {"sd0"},
        "3000 writes and no flushes although",
    ),
    "LVM linear over two disks, half of the flushes": (
        layered((SYNCS * 3 // 2, SYNCS // 2, True), (SYNCS // 2, SYNCS // 2, True), layer="lvm"),
        {"normal vdevs"},
        "the commits went elsewhere",
    ),
    "2.4, special full, data vdevs not flushed for it": (
        special(BY_TXGS, (SYNCS + 300, 14)),
        {"nvme0n1", "nvme1n1"},
        "14 flushes although",
    ),
    "2.4, special has space and is not flushed": (
        special((SYNCS + 300, 14), BY_TXGS),
        {"nvme2n1", "nvme3n1"},
        "14 flushes although",
    ),
    "four jobs, fewer flushes than four can share": (
        two_legs(SYNCS + 600, 600, SYNCS),
        {"nvme2n1", "nvme3n1"},
        "600 flushes although",
    ),
    "one job, flushes for three of ten log blocks": (
        two_legs(SYNCS + 930, 930, SYNCS, numjobs="1"),
        {"nvme2n1", "nvme3n1"},
        "930 flushes although",
    ),
    "sync=disabled": (world(sync="disabled", zil=Zil(0, 0, 0, 0, 0, 0, 0, 0, 0)), {"ZIL"}, "sync=disabled on tank/db"),
    "one leg without flushes": (world((*DATA, NO_FLUSH, LEG_B)), {"nvme2n1"}, "no flushes although it has a volatile"),
    "one leg with half of them": (
        world((*DATA, LEG_A._replace(flushes=SYNCS // 3), LEG_B)),
        {"nvme2n1"},
        "1000 flushes although",
    ),
    "four jobs, one leg behind the other": (
        world((*DATA, LEG_A._replace(flushes=800), LEG_B), options={"rw": "write", "fdatasync": "1", "numjobs": "4"}),
        {"nvme2n1"},
        "800 flushes although",
    ),
    "one leg without writes": (world((*DATA, LEG_A._replace(writes=0, flushes=0), LEG_B)), {"nvme2n1"}, "no write"),
    "no flush at all, zil_nocacheflush": (
        world(tuple(disk._replace(flushes=0) for disk in (LEG_A, LEG_B)) + DATA, parameters={"zil_nocacheflush": True}),
        {"nvme2n1", "nvme3n1"},
        "zil_nocacheflush=True",
    ),
    "zfs_nocacheflush": (
        world(tuple(disk._replace(flushes=0) for disk in MIRRORED), parameters={"zfs_nocacheflush": True}),
        {"nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1"},
        "zfs_nocacheflush=True",
    ),
    "striped, one top without commits": (
        world((HALF[0], HALF[1]._replace(writes=30, flushes=14)), zil_class="normal"),
        {"normal vdevs"},
        "the commits went elsewhere",
    ),
    "data leaves never flushed": (
        world((*(disk._replace(flushes=0) for disk in DATA), LEG_A, LEG_B)),
        {"nvme0n1", "nvme1n1"},
        "no flushes in 7 transaction groups",
    ),
    "pointers, data vdevs not flushed": (
        world((*(disk._replace(flushes=0, writes=SYNCS) for disk in DATA), LEG_A, LEG_B), zil=POINTERS),
        {"nvme0n1", "nvme1n1"},
        "no flushes although",
    ),
    "libeatmydata": (
        world(calls=Syscalls(100, 0, 0, ((),)), preload="libeatmydata.so", zil=Zil(0, 0, 0, 0, 0, 0)),
        {"system calls", "ZIL"},
        "libeatmydata.so is preloaded",
    ),
    "dsync without the flag": (
        world(options=DSYNC, calls=Syscalls(100, 0, 0, ((),))),
        {"system calls"},
        "the kernel saw 0",
    ),
    "wrong dataset": (world(landed="tank/other"), {"dataset"}, "lie on tank/other, not on tank/db"),
    "commits on another dataset": (
        world(zil=Zil(0, 0, 0, 0, 0, 0, 0, 0, 0), others={"tank/other": SYNCS}),
        {"ZIL"},
        "tank/other saw 3000",
    ),
    "one of two log vdevs never flushed, four jobs": (
        world((*TWO_LOGS, Disk("nvme3n1", "nvme3n1", "log", SYNCS // 2, 0)), options=FOUR_JOBS),
        {"nvme3n1"},
        "1500 writes and no flushes although",
    ),
    "one of two log vdevs seldom flushed, four jobs": (
        world((*TWO_LOGS, Disk("nvme3n1", "nvme3n1", "log", SYNCS // 2, 100)), options=FOUR_JOBS),
        {"nvme3n1"},
        "1500 writes and 100 flushes although",
    ),
    "one of four mirrors never flushed, four jobs": (
        world(four_mirrors(0), options=FOUR_JOBS, zil_class="normal"),
        {"sd3a", "sd3b"},
        "1800 writes and no flushes although",
    ),
    "half of the log blocks on data vdevs that are not flushed for them": (
        world(zil=Zil(SYNCS, SYNCS, SYNCS * 51 // 100, 1, 1, SYNCS * 49 // 100, 1, 1, 0, 0, 0, 0)),
        {"nvme0n1", "nvme1n1"},
        "14 flushes although",
    ),
    "half of the data as pointers to data vdevs that are not flushed for them": (
        world(zil=Zil(SYNCS, SYNCS, SYNCS, 1, 1, 0, 1, 1, SYNCS * 49 // 100, 1, 0, 0)),
        {"nvme0n1", "nvme1n1"},
        "14 flushes although",
    ),
    "a raidz without caches that saw too few writes": (
        raidz("raidz2-0", 8, 0.1, parity=2, volatile=False),
        {"normal vdevs"},
        "the commits went elsewhere",
    ),
    "one of 24 mirrors never flushed": (
        world(
            (
                *mirrors(23, 60, 5),
                Disk("sdza", "mirror-99", "normal", 60, 0),
                Disk("sdzb", "mirror-99", "normal", 60, 5),
            )
        ),
        {"sdza"},
        "60 writes, no flushes in 7 transaction groups",
    ),
    "flushes of a log device fail": (
        world(logged=[FAILED.format("nvme2n1")] * 3),
        {"kernel's log"},
        "nvme2n1: at least 3 flushes that failed (I/O error, dev nvme2n1, sector 0 op 0x1:(WRITE)",
    ),
    "flushes fail in the run under strace": (
        earlier(world(), KernelLines((FAILED.format("nvme2n1"),), "")),
        {"kernel's log"},
        "nvme2n1: at least 1 flushes that failed",
    ),
    "flushes of a data device fail": (
        world(logged=[FAILED.format("nvme0n1")]),
        {"kernel's log"},
        "nvme0n1: at least 1",
    ),
    "a leg is offline, and the other gets no flush": (
        world((*DATA, NO_FLUSH, LEG_B._replace(writes=0, flushes=0)), always=OFFLINE),
        {"nvme2n1"},
        "no flushes",
    ),
    "a leg fails that got no flush before": (
        world((*DATA, LEG_A, HALF_LEG._replace(flushes=0)), failed=FAULTED),
        {"nvme3n1"},
        "no flushes",
    ),
    "even with foreign load": (world((*DATA, NO_FLUSH, LEG_B), others={"tank/other": 900}), {"nvme2n1"}, "no flushes"),
}

INCONCLUSIVE = {
    "NVMe multipath, counted at the head": (
        heads(world(tuple(disk._replace(flushes=0) for disk in MIRRORED))), "its flushes in /sys/block/nvme2c*n1/stat",
    ),
    "NVMe multipath before Linux 6.3: the head counts nothing": (
        heads(world((*(disk._replace(writes=0, flushes=0) for disk in MIRRORED),))), "in /sys/block/nvme3c*n1/stat",
    ),
    "dm-multipath, counted at the paths": (paths((2 * SYNCS, 0), (0, 0)), "its flushes in /sys/block/dm-0/stat"),
    "bcache: the backing disk gets writes and no flush": (
        layered(WHOLE, (400, 0, True), layer="bcache-writeback", rearranges=True), "flushes them when it likes",
    ),
    "nobody knows what lies between a leaf and its disks": (
        layered((SYNCS, 0, True), FLUSHED_ONLY, layer="lvm", rearranges=None), "flushes them when it likes",
    ),
    "no SLOG, zil_nocacheflush, and a neighbour flushes as often": (
        world(ALONE, zil_class="normal", parameters=DIM), "OpenZFS leaves them out (zil_nocacheflush=1)",
    ),
    "no SLOG, zfs_nocacheflush, and a neighbour flushes as often": (
        world(ALONE, zil_class="normal", parameters={"zfs_nocacheflush": 1}), "leaves them out (zfs_nocacheflush=1)",
    ),
    "SLOG, zfs_nocacheflush, and a neighbour flushes the data disks": (
        world((*DATA, *(disk._replace(volatile=False) for disk in (LEG_A, LEG_B))), parameters={"zfs_nocacheflush": 1}),
        "14 flushes in 7 transaction groups; not by OpenZFS",
    ),
    "no SLOG, and a neighbour flushes while nothing of zaudit runs": (
        world(ALONE, zil_class="normal").changed(idle_writes={disk.name: 300 for disk in ALONE}),
        "foreign load: up to 300 flushes of nvme0n1 in 3 s",
    ),
    "more flushes than log blocks": (
        world(tuple(disk._replace(writes=9000, flushes=4500) for disk in DATA), zil_class="normal"),
        "foreign load: 4500 flushes of nvme0n1 for 3000 log blocks",
    ),
    "four jobs, fewer flushes than log blocks": (two_legs(SYNCS + 1500, 1500, SYNCS), "1500 flushes for up to 3000"),
    "four jobs, and log blocks are not counted": (
        two_legs(SYNCS + 1500, 1500, SYNCS).changed(zil=Zil(SYNCS)), "1500 flushes for up to 3000",
    ),
    "four jobs, flushes for three of ten log blocks": (two_legs(SYNCS, 930, SYNCS), "930 flushes for up to 3000"),
    "a leg of the log mirror fails meanwhile": (world((*DATA, LEG_A, HALF_LEG), failed=FAULTED), "nvme3n1 was ONLINE before"),
    "a leg of the only mirror fails meanwhile": (
        world((LEG_A._replace(class_="normal"), HALF_LEG._replace(class_="normal")), zil_class="normal", failed=FAULTED),
        "nvme3n1 was ONLINE before",
    ),
    "the only log device fails meanwhile": (
        world((*DATA, Disk("nvme3n1", "nvme3n1", "log", 900, 400)), failed=FAULTED), "nvme3n1 was ONLINE before",
    ),
    "one of four mirrors flushed far less than the others": (
        world(four_mirrors(30), options=FOUR_JOBS, zil_class="normal"),
        "far fewer than others of its class",
    ),
    "one of two log vdevs got a few log blocks and no flush": (
        world((*TWO_LOGS, Disk("nvme3n1", "nvme3n1", "log", 15, 0)), options=FOUR_JOBS).changed(
            idle_writes={"nvme2n1": 2, "nvme3n1": 0}
        ),
        "15 writes and no flush; too few of them",
    ),
    "unknown cache, no flush": (world((*DATA, NO_FLUSH._replace(volatile=None), LEG_B)), "whether it has a volatile cache"),
    "no count of flushes": (world(tuple(disk._replace(flushes=None) for disk in MIRRORED)), "does not count flushes"),
    "foreign load on another dataset": (world(others={"tank/a": 1, "tank/b": 500}), "tank/b: 500"),
    "foreign load on the same": (world(zil=Zil(SYNCS + 200, 1, SYNCS + 200, 1, 1, 0)), "3200 commits of tank/db for 3000"),
    "foreign load, all pools together": (
        world(together=True, zil=Zil(SYNCS + 200, 1, SYNCS + 200, 1, 1, 0)),
        "3200 commits of all pools for 3000",
    ),
    "foreign load only at idle, 2.1": (world(together=True, idle_commits=90), "90 commits in 3 s before the run"),
    "foreign writes to the log device": (
        world().changed(idle_writes={disk.name: 200 for disk in MIRRORED}),
        "200 writes to nvme2n1",
    ),
    "scrub": (world(scan="scrub"), "a scrub ran meanwhile"),
    "a scan that nobody could see": (world(scan=UNSEEN), "zpool status did not say"),
    "no strace": (world(traced=False), "strace is not installed"),
    "no kstat": (world().changed(zil=None, others=None), "no kstat of tank/db"),
    "no counters of a leg": (world().changed(devices=world().log.devices[:-1]), "no counters of nvme3n1 alone"),
    "no counters of a data leaf": (world().changed(devices=world().log.devices[1:]), "no counters of nvme0n1 alone"),
    "a leg on a data disk": (
        world(
            (
                DATA[0]._replace(leaves=(("p1", "mirror-0", "normal"), ("p2", "mirror-1", "log")), writes=9000, flushes=9000),
                DATA[1],
                LEG_A,
            )
        ),
        "no counters of p2 alone",
    ),
    "what the kernel logged was not read": (unlogged(world()), "what the kernel logged meanwhile is not in the recording"),
    "the kernel logged more than it keeps": (
        unlogged(world(), KernelLines((), "dropped a part")), "kernel's log: dropped a part"
    ),
    "a flush fails where nobody knows of a cache": (
        world(tuple(disk._replace(volatile=None) for disk in MIRRORED), logged=[FAILED.format("nvme2n1")]),
        "nvme2n1: at least 1 flushes that failed",
    ),
    "a write fails": (
        world(logged=["I/O error, dev nvme1n1, sector 99 op 0x1:(WRITE) flags 0x0 phys_seg 3 prio class 0"]),
        "nvme1n1: at least 1 reads or writes that failed",
    ),
    "a controller is reset": (
        reset(world(logged=["nvme nvme2: I/O tag 3 (0003) opcode 0x1 (I/O Cmd) QID 1 timeout, reset controller"])),
        "nvme2n1: at least 1 resets of its controller",
    ),
    "so many errors of another disk that one of the pool's may be missing": (
        world(logged=["I/O error, dev sdz, sector 99 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0"] * 10),
        "so many errors of other devices",
    ),
    "a flush fails on a path, and whether another one repeated it is not known": (
        multipath(world(logged=[PATH.format("nvme2n1")] * 10)),
        "the kernel may have kept that of the last path out of its log",
    ),
    "a controller is reset, and nobody knows of which drive": (
        world(logged=["nvme nvme9: controller is down; will reset: CSTS=0xffffffff"]), "sysfs_path was not looked at",
    ),
    "a line that is none": (world(logged=["Oops"]), "could not be understood"),
    "a write error that the kernel did not log": (
        world(failed={"nvme3n1": "ONLINE  0  4  0  0"}), "write errors of nvme3n1: 0 before the runs, 4 after them",
    ),
    "a leg that failed": (world(failed={"nvme3n1": "FAULTED  0  4  0  0"}), "nvme3n1 was ONLINE before the runs and FAULTED"),
    "another pool before than after": (status_of(world(), "tank", "other"), "zpool status did not say before and after"),
    "no transaction groups": (world().changed(txgs=()), "0 transaction groups"),
    "no write on any data leaf": (
        world((*(disk._replace(writes=0, flushes=0) for disk in DATA), LEG_A, LEG_B)),
        "7 transaction groups wrote, and no write was counted",
    ),
    "nobody knows where the files lie": (world(landed=""), "on which file system"),
    "never a sync": (world(options={"rw": "write"}, syncs=0), "never asked for stable storage"),
    "fewer syncs than there were to be": (world(writes=2 * SYNCS), "3000 syncs for 6000 writes, 6000 were expected"),
    "fio failed": (world().changed(faults=("fio ended with exit code 1: Input/output error",)), "exit code 1"),
    "fio said nothing": (world().changed(jobs=(), faults=("fio: it printed no JSON",)), "printed no JSON"),
    "io_uring": (world(options={"rw": "write", "fdatasync": "1", "ioengine": "io_uring"}, calls=Syscalls(0, 0, 0, ((),))),
                 "ioengine=io_uring"),
    "libaio with dsync": (world(options={**DSYNC, "ioengine": "libaio"}, calls=Syscalls(0, 0, 0, ())), "ioengine=libaio"),
    "mmap": (world(options={**FSYNC, "ioengine": "mmap"}, calls=Syscalls(0, 0, 0, ())), "ioengine=mmap"),
}  # fmt: skip


def follow(what: World) -> Chain:
    return chain.follow(what.trial, what.runs, what.section, what.facts)


def wrong(found: Chain) -> set[str]:
    return {link.name for link in found.links if link.status == "contradicts"}


@pytest.mark.parametrize("name", TRACED)
def test_traced(name: str) -> None:
    found = follow(TRACED[name])
    assert [link for link in found.links if link.status != "accounts"] == []
    assert found.reasons == ()
    assert found.outcome == "TRACED"
    assert [link.name for link in found.links[:4]] == ["dataset", "system calls", "fio", "ZIL"]
    assert {disk.disk for disk in TRACED[name].log.devices} == {link.name for link in found.links[4:-1]}
    assert found.links[-1].name == "kernel's log"


@pytest.mark.parametrize("name", CONTRADICTED)
def test_contradicted(name: str) -> None:
    what, links, says = CONTRADICTED[name]
    found = follow(what)
    assert found.outcome == "CONTRADICTED"
    assert wrong(found) >= links
    if "ZIL" not in links:  # then nothing reached the devices either, or all of it
        assert wrong(found) == links
    assert any(says in link.text for link in found.links if link.name in links), found.links


@pytest.mark.parametrize("name", INCONCLUSIVE)
def test_inconclusive(name: str) -> None:
    what, says = INCONCLUSIVE[name]
    found = follow(what)
    assert wrong(found) == set()
    assert found.outcome == "INCONCLUSIVE"
    assert any(says in reason for reason in found.reasons), found.reasons


def test_a_run_that_reached_its_limit_can_be_followed() -> None:
    assert follow(world().changed(faults=(LIMITED,))).outcome == "TRACED"


def test_a_run_that_did_not_take_place() -> None:
    what = world(traced=False)
    found = follow(what._replace(runs=(), trial=what.trial._replace(runs=())))
    assert found.outcome == "INCONCLUSIVE"
    assert "system calls: the run under strace did not take place" in found.reasons
    assert "fio: the run of the log did not take place" in found.reasons


def test_a_hidden_name_cannot_write_to_the_terminal() -> None:
    what = world(landed="tank/\x1b[2J")
    assert "\x1b" not in str([link.text for link in follow(what).links])


def test_what_even_traced_cannot_exclude_is_said() -> None:
    assert "power cut" in CANNOT_EXCLUDE


# -- fewer witnesses ----------------------------------------------------------------------------------------------

NOT_FINE = {
    **{name: what for name, (what, *_) in CONTRADICTED.items()},
    **{name: what for name, (what, _) in INCONCLUSIVE.items()},
}
DROPS = (
    "calls",
    "logged",
    "status",
    "zil",
    "txgs",
    "idle_commits",
    "idle_writes",
    "landed",
    "sync",
    "zil_class",
    "zil_leaves",
)


def without(facts: Facts, subject: Subject, name: str) -> Facts:
    left = Facts()
    left.put_all(facts)
    left.replace(Fact(subject, name, unknown("nobody looked")))
    return left


def dropped(what: World, drop: str) -> World:
    """The same world with a witness less."""
    kind, _, which = drop.partition(" ")
    devices = what.log.devices
    match kind:
        case "calls":
            return what._replace(runs=tuple(run for run in what.runs if run.purpose != "calls"))
        case "zil":
            return what.changed(zil=None, others=None)
        case "txgs":
            return what.changed(txgs=())
        case "idle_commits":
            return what.changed(idle_commits=None)
        case "idle_writes":
            return what.changed(idle_writes={})
        case "logged":
            return unlogged(what) if what.trial.runs else what
        case "status":
            return status_of(what, "tank", "") if what.trial.runs else what
        case "landed":
            return what._replace(trial=what.trial._replace(landed=""))
        case "device":
            return what.changed(devices=tuple(each for each in devices if each.disk != which))
        case "flushes":
            return what.changed(
                devices=tuple(each._replace(flushes=None) if each.disk == which else each for each in devices)
            )
        case "volatile":
            return what.changed(
                devices=tuple(each._replace(volatile=None) if each.disk == which else each for each in devices)
            )
        case "class":
            facts = without(what.facts, Subject("leaf", which, "tank"), "allocation_class")
            blind = tuple(each._replace(allocation_class="") if each.disk == which else each for each in devices)
            return what._replace(facts=facts).changed(devices=blind)
        case "sync":
            return what._replace(facts=without(what.facts, Subject("dataset", "tank/db"), "sync"))
    return what._replace(facts=without(what.facts, Subject("pool", "tank"), kind))


@given(st.data())
def test_fewer_witnesses_never_make_it_fine(data: st.DataObject) -> None:
    what = NOT_FINE[data.draw(st.sampled_from(sorted(NOT_FINE)))]
    disks = [each.disk for each in what.log.devices] or ["none"]
    each = [f"{kind} {disk}" for kind in ("device", "flushes", "volatile", "class") for disk in disks]
    for drop in data.draw(st.lists(st.sampled_from((*DROPS, *each)), min_size=1, max_size=4)):
        what = dropped(what, drop)
    assert follow(what).outcome != "TRACED"


@pytest.mark.parametrize("drop", briefly(((drop,) for drop in DROPS), quick=4))
@for_each("name", sorted(NOT_FINE))
def test_no_single_witness_less_makes_it_fine(name: str, drop: str) -> None:
    assert follow(dropped(NOT_FINE[name], drop)).outcome != "TRACED"


def test_of_a_mirror_no_leg_may_be_left_to_compare_with() -> None:
    """One failed, and of the other there are no counters."""
    what = dropped(NOT_FINE["a leg fails that got no flush before"], "device nvme2n1")
    assert follow(what).outcome != "TRACED"


@pytest.mark.parametrize(("flushes", "outcome"), [(2, "TRACED"), (8, "TRACED"), (300, "INCONCLUSIVE")])
def test_writes_before_the_run_matter_only_with_flushes(flushes: int, outcome: str) -> None:
    """Transaction groups write to data disks at any time, and flush them a few times."""
    what = world(ALONE, zil_class="normal").changed(idle_writes={disk.name: 6000 for disk in ALONE})
    row = "0 0 0 0 {} 0 0 0 0 0 0 0 0 0 0 {} 0\n"
    idle, before = (
        NOTHING._replace(text={f"/sys/block/{disk.name}/stat": row.format(*counts) for disk in ALONE})
        for counts in ((5, 5), (6005, 5 + flushes))
    )
    (ran,) = what.trial.runs
    ran = ran._replace(idle=idle, before=ran.before._replace(text={**ran.before.text, **before.text}))
    found = follow(what._replace(trial=what.trial._replace(runs=(ran,))))
    assert found.outcome == outcome
    assert wrong(found) == set()


def test_write_through_is_named() -> None:
    what = world((*DATA, NO_FLUSH, LEG_B))
    what.facts.put(Fact(Subject("disk", "nvme2n1"), "sysfs_write_cache", known("write through", "")))
    (link,) = [link for link in follow(what).links if link.status == "contradicts"]
    assert "/sys/block/nvme2n1/queue/write_cache says write through" in link.text


def test_figures_are_those_of_the_witnesses() -> None:
    figures = {link.name: dict(link.figures) for link in follow(world()).links}
    assert figures["system calls"] == {"syncs that fio counted": 100, "fdatasync that the kernel saw": 100}
    assert figures["fio"] == {"writes": SYNCS, "syncs": SYNCS}
    assert figures["ZIL"] == {"commits": SYNCS, "log blocks on the SLOG": SYNCS, "log blocks on other vdevs": 0}
    assert figures["nvme2n1"] == {"writes": 2 * SYNCS, "flushes": SYNCS + 1}
