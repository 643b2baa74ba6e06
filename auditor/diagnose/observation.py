"""What was seen of a load, as text, and the counters in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from auditor import codec, data
from auditor.facts import Facts, Subject
from auditor.verify import trial
from auditor.verify.result import Txg
from auditor.verify.trial import KernelLines, Reading

# An observation: a recording keeps it, to be judged again.

SCHEMA = "zaudit-observation/1"


class Tick(NamedTuple):
    """The histogram of all commits so far, as the kernel printed it. at: seconds since the epoch."""

    at: float
    commits: str


class TraceTexts(NamedTuple):
    """The kernel's histograms at the end. commits: by thread and ZIL. ticks: of all, as they grew. queue: from the commit
    of a thread to its first log block, empty where not traced. missed: calls that were not traced, None where unknown."""

    commits: str
    ticks: tuple[Tick, ...]
    queue: str
    missed: int | None


KERNEL = "kernel"  # role of its own threads, whose names can be believed
Service = Literal["zvol", "nfsd", ""]


def service(name: str, role: str) -> Service:
    """For whom a thread of the kernel commits: a volume, a client of NFS, or, empty, itself."""
    if role != KERNEL:
        return ""
    return "zvol" if name.startswith("zvol") else "nfsd" if name == "nfsd" else ""


class Process(NamedTuple):
    """A thread that committed. role: KERNEL, or what a server process does ("walwriter"). within: the container or guest.
    Both are empty where unknown. waited: nanoseconds that it was ready without a CPU, None where not seen."""

    pid: int
    name: str
    role: str
    within: str
    waited: int | None


class DatabaseAnswer(NamedTuple):
    """The answer of the database of --db. said: JSON of :mod:`auditor.host.sql_watch`. fault: why there is none, or
    empty."""

    engine: str
    said: str
    fault: str


class NamedProcess(NamedTuple):
    """The named process and its descendants. targets: datasets and volumes open for writing. processes: how many. threads:
    theirs. lost: threads that committed and ended before their process was seen. parent: the same database server, or 0.
    faults: what was not seen."""

    pid: int
    name: str
    targets: tuple[str, ...]
    processes: int
    threads: tuple[int, ...]
    lost: tuple[int, ...]
    parent: int
    faults: tuple[str, ...]


class Observation(NamedTuple):
    """One look at the load of one pool. target: a pool, dataset or zvol. before, after: the witnesses. untraced: why there
    is no trace, or empty. pipeline: nanoseconds of the threads of OpenZFS that pass log blocks on, None where not seen.
    logged: by the kernel meanwhile. named: a process, None for a dataset. database: None without --db."""

    target: str
    pool: str
    before: Reading
    after: Reading
    traced: TraceTexts | None
    untraced: str
    processes: tuple[Process, ...]
    pipeline: int | None
    logged: KernelLines
    named: NamedProcess | None = None
    database: DatabaseAnswer | None = None


def to_text(observation: Observation) -> str:
    return codec.to_member(SCHEMA, observation)


def from_text(text: str) -> Observation:
    """Raises codec.CodecError for anything that is not an observation of this schema."""
    return codec.from_member(Observation, SCHEMA, text, "diagnosis")


# The counters between two moments. A counter that fell or was not there is None, never 0.

PRESSURE = "/proc/pressure"
PRESSED = ("cpu", "memory", "io")
FILE = "counters.toml"
IN_FLIGHT, DONE = 8, (0, 4, 11, 15)  # places in /sys/block/X/stat; reads, writes, discards and flushes that completed
_SOME = re.compile(r"^some .*total=([0-9]{1,18})$", re.MULTILINE)


class Dataset(NamedTuple):
    """What one dataset did. commits: None where they are not counted by dataset."""

    name: str
    commits: int | None
    writes: int | None


class Zil(NamedTuple):
    """Of the whole pool. slog, normal: blocks written to the log class, and to the others. fallbacks: how often a commit
    waited for a whole transaction group, by why. apart: counted by dataset; OpenZFS 2.1 counts all pools together."""

    commits: int | None
    slog: int | None
    normal: int | None
    indirect: int | None
    fallbacks: Mapping[str, int]
    apart: bool

    @property
    def blocks(self) -> int | None:
        return self.slog + self.normal if self.slog is not None and self.normal is not None else None


class Leg(NamedTuple):
    """One device of the pool. device: a disk, or what is stacked on it. writes: without those that only flush. write_ns,
    flush_ns: means; both_ns: of a write with its flush, where they are counted together. busy: share of the time with work.
    stuck: I/Os outstanding at both moments, of a device that completed none."""

    leaf: str
    top: str
    kind: str
    device: str
    writes: int
    bytes: int
    flushes: int | None
    write_ns: float | None
    flush_ns: float | None
    both_ns: float | None
    busy: float
    stuck: int = 0

    @property
    def block_ns(self) -> float | None:
        """One log block: its write, and the flush after it; with fewer flushes than writes its share of them."""
        if self.both_ns is not None:
            return self.both_ns
        each = min((self.flushes or 0) / self.writes, 1.0) if self.writes else 0.0
        return None if self.write_ns is None else self.write_ns + (self.flush_ns or 0.0) * each


class Counters(NamedTuple):
    """fell: counters that fell or disappeared. pressure: share of the time with something waiting, by what for. syncing: a
    group that synced at both moments, and its seconds. held: how often writers were held back, None where not counted."""

    seconds: float
    datasets: tuple[Dataset, ...]
    zil: Zil
    legs: tuple[Leg, ...]
    txgs: tuple[Txg, ...]
    throttles: Mapping[str, int]
    pressure: Mapping[str, float]
    status: str
    fell: tuple[str, ...]
    syncing: tuple[int, float] | None = None
    held: int | None = None


def devices(pool: Subject, facts: Facts) -> tuple[str, ...]:
    """The block devices whose counters matter: the disks, and what is stacked on them."""
    nodes = {facts.get(leaf, "node").word() for leaf in facts.linked(pool, "leaves")}
    return tuple(sorted({*trial.disks(pool, facts), *(node for node in nodes if node)}))


def patterns(pool: Subject, facts: Facts) -> tuple[str, ...]:
    return (*trial.patterns(pool.name, devices(pool, facts)), *(f"{PRESSURE}/{what}" for what in PRESSED))


def counted(seen: Observation, facts: Facts) -> Counters:
    """Raises ValueError where a kstat is not understood."""
    before, after, pool = seen.before, seen.after, Subject("pool", seen.pool)
    seconds = after.at - before.at
    if seconds <= 0:
        raise ValueError("the clock was set back meanwhile")
    fell: list[str] = []
    datasets = tuple(_datasets(before, after, fell))
    earlier, later = (trial.table(each, trial.DMU_TX) for each in (before, after))
    grown, held = trial.grown(earlier, later), data.table(FILE)["held"]
    fell += [f"{row} of {trial.DMU_TX} fell" for row in held if row in earlier and row not in grown]
    rows = [row for row in held if row in earlier or row in later]
    boot = after.at - after.up
    history = [moment.text.get(trial.txgs_path(pool.name), "") for moment in (before, after)]
    return Counters(
        seconds=seconds,
        datasets=datasets,
        zil=_zil(before, after, fell),
        legs=_legs(before, after, pool, facts, seconds, fell),
        txgs=trial.txgs(history, boot, before.at, after.at),
        throttles={row: grown[row] for row in held if grown.get(row)},
        pressure=_pressure(before, after, seconds),
        status=after.text.get(f"{trial.STATUS}{pool.name}", ""),
        fell=tuple(fell),
        syncing=trial.syncing(history, after.up),
        held=sum(grown[row] for row in rows) if rows and all(row in grown for row in rows) else None,
    )


# -- commits ------------------------------------------------------------------------------------------------------


def _datasets(before: Reading, after: Reading, fell: list[str]) -> list[Dataset]:
    earlier, later = trial.objsets(before), trial.objsets(after)
    found = []
    for name, rows in sorted(later.items()):
        grown = _grown(earlier, name, rows)
        if len(grown) < len(rows):
            fell.append(f"the counters of {name} began again (it was mounted meanwhile)")
        found.append(Dataset(name, grown.get("zil_commit_count"), grown.get("writes")))
    gone = sorted(name for name in earlier.keys() - later.keys() if "@" not in name)  # nobody commits to a snapshot
    fell += [f"what {name} committed is not known (it was unmounted meanwhile)" for name in gone]
    fell += [
        f"{path}: {why}"
        for path, why in sorted({**before.errors, **after.errors}.items())
        if "/objset-" in path and not why.startswith("no such")
    ]
    return found


def _grown(earlier: Mapping[str, trial.Counts], name: str, rows: trial.Counts) -> trial.Counts:
    """Of a dataset that was mounted meanwhile all that it counted: it begins at 0."""
    return trial.grown(earlier.get(name, dict.fromkeys(rows, 0)), rows)


def _zil(before: Reading, after: Reading, fell: list[str]) -> Zil:
    """The sum over the datasets of the pool where they are counted apart, else of all pools together."""
    earlier, later = trial.objsets(before), trial.objsets(after)
    apart = any("zil_commit_count" in rows for rows in later.values())
    tables = [_grown(earlier, name, rows) for name, rows in later.items()]
    if not apart:
        tables = [trial.grown(*(trial.table(each, trial.ZIL_PATH) for each in (before, after)))]

    def total(row: str) -> int | None:
        there = [rows[row] for rows in tables if row in rows]
        return sum(there) if there else None

    if total("zil_commit_count") is None:
        fell.append("commits are not counted here")
    return Zil(
        commits=total("zil_commit_count"),
        slog=total("zil_itx_metaslab_slog_count"),
        normal=total("zil_itx_metaslab_normal_count"),
        indirect=total("zil_itx_indirect_count"),
        fallbacks={row: count for row in data.table(FILE)["fallbacks"] if (count := total(row))},
        apart=apart,
    )


# -- devices ------------------------------------------------------------------------------------------------------


class _Stat(NamedTuple):
    writes: int
    bytes: int
    write_ms: int
    busy_ms: int
    flushes: int | None
    flush_ms: int | None
    stuck: int


def _legs(
    before: Reading, after: Reading, pool: Subject, facts: Facts, seconds: float, fell: list[str]
) -> tuple[Leg, ...]:
    found = []
    for vdev in facts.linked(pool, "vdevs"):
        for leaf in facts.linked(vdev, "leaves"):
            disks = facts.linked(leaf, "disks")
            node = facts.get(leaf, "node").word()
            disk = disks[0].name if len(disks) == 1 else ""
            of_node, of_disk = _stat(before, after, node), _stat(before, after, disk)
            own = of_node or of_disk
            if own is None:
                fell.append(f"{leaf.name}: its device has no counters that could be read")
                continue
            kind = facts.get(leaf, "allocation_class").word()
            device = node if of_node else disk
            found.append(_leg(leaf.name, vdev.name, kind, device, own, of_disk if of_node else None, seconds))
    return tuple(found)


def _leg(leaf: str, top: str, kind: str, device: str, own: _Stat, below: _Stat | None, seconds: float) -> Leg:
    """below: the disk, where own is of what is stacked on it. A stacked device (device mapper, md) counts a flush as a
    write that takes as long, and as no flush. (drivers/md/dm.c dm_io_acct())"""
    busy = min(own.busy_ms / 1000 / seconds, 1.0)
    stacked = below is not None and not own.flushes and below.flushes
    flushes = below.flushes if stacked and below else own.flushes
    writes = max(own.writes - (flushes or 0), 0)
    stuck = max(own.stuck, below.stuck if below else 0)
    if stacked:
        both = own.write_ms * 1e6 / writes if writes else None
        return Leg(leaf, top, kind, device, writes, own.bytes, flushes, None, None, both, busy, stuck)
    flush = own.flush_ms * 1e6 / own.flushes if own.flushes and own.flush_ms is not None else None
    write = max(own.write_ms - (own.flush_ms or 0), 0) * 1e6 / writes if writes else None
    return Leg(leaf, top, kind, device, writes, own.bytes, flushes, write, flush, None, busy, stuck)


def _stat(before: Reading, after: Reading, device: str) -> _Stat | None:
    """Between the moments; None where there is no such block device, or another one has its name now."""
    path = f"/sys/block/{device.replace('/', '!')}/stat"
    cells = [moment.text.get(path, "").split() for moment in (before, after)]
    fields = [[int(each) for each in row] if all(map(trial.COUNT.fullmatch, row)) else [] for row in cells]
    if not device or len(fields[0]) != len(fields[1]) or len(fields[0]) < 11:
        return None
    grown = [later - earlier for earlier, later in zip(*fields, strict=True)]
    counting = [each for place, each in enumerate(grown) if place != IN_FLIGHT]  # those may be fewer
    if min(counting) < 0:
        return None
    flushes, flush_ms = (grown[15], grown[16]) if len(grown) > 16 else (None, None)
    done = any(grown[place] for place in DONE if place < len(grown))
    stuck = 0 if done else min(row[IN_FLIGHT] for row in fields)
    return _Stat(grown[4], grown[6] * 512, grown[7], grown[9], flushes, flush_ms, stuck)


def _pressure(before: Reading, after: Reading, seconds: float) -> dict[str, float]:
    """Linux Documentation/accounting/psi.rst: total= is in microseconds."""
    found = {}
    for what in PRESSED:
        totals = [_SOME.search(moment.text.get(f"{PRESSURE}/{what}", "")) for moment in (before, after)]
        if totals[0] and totals[1] and (grown := int(totals[1][1]) - int(totals[0][1])) >= 0:
            found[what] = min(grown / 1e6 / seconds, 1.0)
    return found
