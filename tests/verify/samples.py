"""Made-up but realistic verifications for tests: a single committer on a pool whose transaction groups disturb it."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from functools import cache

from auditor.verify.comparison import INTERVALS, Step, Sweep
from auditor.verify.result import (
    KERNEL_LOG,
    LEAST_BEYOND,
    Chain,
    Device,
    Histogram,
    Job,
    Latency,
    Link,
    Percentile,
    Run,
    Slice,
    Slo,
    Syscalls,
    Txg,
    Verification,
    Zil,
)

BEGAN = 1_795_262_400.0  # 2026-11-21 12:00 UTC
PLACE = "/tank/db/wal/.zaudit-3f2c9a10"
SLO = (Slo(0.99, 5_000_000), Slo(0.999, 25_000_000))
JOB_FILE = """; proves: ...
[global]
directory=${ZAUDIT_DIRECTORY}
ioengine=psync
time_based
runtime=${ZAUDIT_RUNTIME}

[log]
rw=write
bs=8k
size=256m
fdatasync=1
"""
JUDGED = (0.5, 0.95, 0.99, 0.999)


def bucket(ns: float) -> int:
    """The upper end of the bucket in which fio counts a latency (64 buckets a power of two)."""
    whole = int(ns) or 1
    shift = whole.bit_length() - 7
    return ((whole >> shift) + 1 << shift) - 1 if shift > 0 else whole


def histogram(latencies_ns: Sequence[float]) -> Histogram:
    """As fio would count them."""
    return Histogram.of(Counter(map(bucket, latencies_ns)))


@cache
def timeline(
    *, seed: int = 1, seconds: int = 120, median_ms: float = 1.1, spike_ms: float = 8.0, txg_s: float = 5.0
) -> tuple[Slice, ...]:
    """One slice a second of a single committer: log-normal latencies, and spikes while a transaction group syncs."""
    chance = random.Random(seed).random

    def lognormal(sigma: float) -> float:
        """As Random.lognormvariate(0, sigma), which takes twice as long for the hundred thousands of them."""
        while True:
            first, second = chance(), 1.0 - chance()
            z = random.NV_MAGICCONST * (first - 0.5) / second  # type: ignore[attr-defined]
            if z * z / 4.0 <= -math.log(second):
                return math.exp(z * sigma)

    slices: list[list[float]] = [[] for _ in range(seconds)]
    now = 0.0
    while now < seconds:
        syncing = now >= txg_s and now % txg_s < 0.14 * txg_s
        spike = syncing and chance() < 0.15
        took = lognormal(0.7) * spike_ms if spike else lognormal(0.18) * median_ms
        now += took / 1e3 + 20e-6
        if now < seconds:
            slices[int(now)].append(took * 1e6)
    return tuple(Slice(float(at), at + 1.0, histogram(latencies)) for at, latencies in enumerate(slices))


def txgs(seconds: int = 120, txg_s: float = 5.0) -> tuple[Txg, ...]:
    """A transaction group every txg_s seconds; the first was born before the run."""
    count = int(seconds / txg_s) + 1
    return tuple(
        Txg(81_204 + i, round((i - 1) * txg_s, 3), txg_s, round(0.14 * txg_s, 3), 41_000_000, 44_800_000)
        for i in range(count)
    )


def device(disk: str, syncs: int, *, flushes: int | None = None, volatile: bool | None = False) -> Device:
    """One leg of a mirrored log that got every sync."""
    return Device(
        disk=disk,
        leaves=(f"{disk}p1",),
        top="mirror-1",
        zil=True,
        allocation_class="log",
        writes=2 * syncs,
        bytes=12_288 * syncs,
        flushes=syncs + 1 if flushes is None else flushes,
        write_ms=int(syncs * 0.09),
        flush_ms=int(syncs * 0.4),
        volatile=volatile,
        why="" if volatile is not None else f"nvme id-ctrl /dev/{disk}: permission denied",
        virtual=False,
    )


def argv(size: str = "1g", seconds: int = 120, place: str = PLACE) -> tuple[str, ...]:
    """The canonical single committer of PostgreSQL."""
    return (
        *("fio", "--output-format=json+", "--name=wal", f"--directory={place}", "--ioengine=psync", "--rw=write"),
        *("--bs=8k", f"--size={size}", "--fdatasync=1", "--time_based=1", f"--runtime={seconds}"),
    )


@cache
def run(
    name: str = "log",
    purpose: str = "log",
    *,
    seed: int = 1,
    seconds: int = 120,
    median_ms: float = 1.1,
    spike_ms: float = 8.0,
    size: str = "1g",
    place: str = PLACE,
) -> Run:
    """One run with everything that its witnesses saw, all of it in agreement."""
    slices = timeline(seed=seed, seconds=seconds, median_ms=median_ms, spike_ms=spike_ms)
    bins: dict[int, int] = {}
    for each in slices:
        for ns, count in each.syncs.counts:
            bins[ns] = bins.get(ns, 0) + count
    latency = Histogram.of(bins)
    syncs = latency.samples
    job = Job("wal", "fdatasync", syncs, 8192 * syncs, 0, syncs, 0, float(seconds), 0, latency, 6.5)
    return Run(
        name=name,
        purpose=purpose,
        argv=argv(size, seconds, place),
        began=BEGAN,
        seconds=seconds + 0.4,
        jobs=(job,),
        timeline=slices,
        zil=Zil(syncs, syncs, syncs, 8192 * syncs, 12_288 * syncs, 0, 0, 0, 0, 0, 0, 0),
        others={"tank/db": 0, "tank/home": 2},
        idle_s=5.0,
        idle_commits=0,
        idle_writes={"nvme0n1": 4, "nvme1n1": 4},
        devices=(device("nvme2n1", syncs), device("nvme3n1", syncs)),
        txgs=txgs(seconds),
        counters={"dmu_tx_assigned": 5 * syncs, "dmu_tx_dirty_delay": 0},
        heat={},
        syscalls=None,
        faults=(),
    )


def latency(of: Run, slo: Sequence[Slo] = SLO, *, why_not: str = "") -> Latency:
    """The latency of a run, judged as the objectives say."""
    limits = {each.q: each.limit_ns for each in slo}
    counted = of.log.latency
    percentiles = []
    for q in JUDGED:
        ns, limit, beyond = counted.judged(q), limits.get(q), counted.beyond(q)
        if limit is None:
            percentiles.append(Percentile(q, ns, beyond, None, "not judged", "no objective"))
        elif why_not:
            percentiles.append(Percentile(q, ns, beyond, limit, "not judged", why_not))
        elif ns is None:
            why = f"only {beyond} samples lie beyond it, {LEAST_BEYOND} are needed"
            percentiles.append(Percentile(q, None, beyond, limit, "not judged", why))
        else:
            percentiles.append(Percentile(q, ns, beyond, limit, "met" if ns <= limit else "missed"))
    median = counted.judged(0.5)
    return Latency(
        run=of.name,
        percentiles=tuple(percentiles),
        commits_per_s=1e9 / median if median else None,
        at_slo=None if why_not or not median else round(0.9e9 / median),
        tail="43 of the 50 slowest syncs ended while a transaction group was being synced.",
        bottleneck="The log device: nvme2n1 was busy flushing for 71 % of the run.",
        why_not=why_not,
    )


def links(of: Run) -> tuple[Link, ...]:
    """The chain of custody of a run in which everything agrees."""
    syncs = of.log.syncs
    legs = tuple(
        Link(
            each.disk,
            "accounts",
            f"{each.flushes:,} flushes for {syncs:,} syncs, in mirror-1 (log)",
            (("writes", each.writes), ("flushes", each.flushes or 0), ("bytes", each.bytes)),
        )
        for each in of.devices
    )
    return (
        Link("dataset", "accounts", "sync=standard, logbias=latency, on the dataset that holds the log"),
        Link("system calls", "accounts", "512 fdatasync calls for 512 writes, seen by strace", (("fdatasync", 512),)),
        Link("fio", "accounts", f"{syncs:,} fdatasyncs returned", (("writes", of.log.writes), ("syncs", syncs))),
        Link("ZIL", "accounts", f"{syncs:,} commits, all to the SLOG", (("commits", syncs), ("SLOG blocks", syncs))),
        *legs,
        Link(KERNEL_LOG, "accounts", "no failed flush, read or write of a device of the pool was logged meanwhile"),
    )


def traced(runs: Sequence[Run] | None = None, *, slo: Sequence[Slo] = SLO) -> Verification:
    """A healthy pool with a mirrored SLOG: the log alone, and together with the checkpoint."""
    if runs is None:
        runs = (run(), run("together", "together", seed=2, median_ms=1.4, spike_ms=22.0))
    return Verification(
        target="tank/db/wal",
        dataset="tank/db/wal",
        place=PLACE,
        profile="postgres",
        length="quick",
        taken=BEGAN,
        chain=Chain("TRACED", links(runs[0])),
        runs=tuple(runs),
        latencies=tuple(latency(each, slo) for each in runs),
        proves="Each commit of a single session waits for one fdatasync of the write-ahead log on this dataset.",
        does_not="Recovery after a crash, a standby, or what a drive does with a flush that it has acknowledged.",
        fio="fio-3.39",
        job_file=JOB_FILE,
        size=1 << 30,
    )


def contradicted() -> Verification:
    """sync=disabled: fio issued thousands of fdatasyncs and the ZIL saw none of them."""
    fast = run(median_ms=0.02, spike_ms=0.05, seconds=10)
    syncs = fast.log.syncs
    silent = fast._replace(
        zil=Zil(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        devices=tuple(each._replace(writes=0, bytes=0, flushes=0, write_ms=0, flush_ms=0) for each in fast.devices),
    )
    why = "the chain is contradicted at the ZIL: these are not latencies of stable storage"
    broken = (
        Link("dataset", "contradicts", "sync=disabled, inherited from tank"),
        Link("system calls", "accounts", "512 fdatasync calls for 512 writes, seen by strace", (("fdatasync", 512),)),
        Link("fio", "accounts", f"{syncs:,} fdatasyncs returned", (("writes", syncs), ("syncs", syncs))),
        Link("ZIL", "contradicts", f"fio issued {syncs:,} fdatasyncs, the ZIL saw 0: sync=disabled", (("commits", 0),)),
        *(
            Link(each.disk, "contradicts", "no flush although the ZIL can land here", (("writes", 0), ("flushes", 0)))
            for each in silent.devices
        ),
    )
    return traced((silent,))._replace(
        chain=Chain("CONTRADICTED", broken),
        latencies=(latency(silent, why_not=why)._replace(commits_per_s=None, tail="", bottleneck=""),),
    )


def inconclusive() -> Verification:
    """A virtual disk, no right to read its cache, and a scrub that began midway."""
    seen = run(seconds=8)
    blind = seen._replace(
        zil=None,
        others=None,
        idle_commits=None,
        devices=tuple(
            each._replace(volatile=None, why="not readable", virtual=True, flushes=None, flush_ms=None)
            for each in seen.devices
        ),
        txgs=(),
        faults=("/proc/spl/kstat/zfs/tank/txgs: no such file",),
    )
    reasons = (
        "a scrub of tank began during the run",
        "nvme2n1 and nvme3n1 are virtual disks: what lies below them cannot be seen",
    )
    why = "a scrub of tank ran"
    hidden = (
        *links(seen)[:3],
        Link("ZIL", "unseen", "this release does not count commits by dataset, and others committed too"),
        *(
            Link(each.disk, "unseen", "a virtual disk: what it does with a flush cannot be seen")
            for each in blind.devices
        ),
    )
    latencies = (latency(blind, why_not=why)._replace(tail=""),)
    chain = Chain("INCONCLUSIVE", hidden, reasons)
    return traced((seen,))._replace(runs=(blind,), chain=chain, latencies=latencies)


def with_calls(verification: Verification) -> Verification:
    """The same with the short run under strace."""
    under = run("calls", "calls", seconds=2)._replace(
        syscalls=Syscalls(512, 0, 512, (("O_RDWR",), ("O_RDWR", "O_DSYNC")))
    )
    return verification._replace(runs=(*verification.runs, under))


def sweep(
    *, amount: int = 2**30, write_s: float = 2.0, sync_ms: float = 1.0, scatter: float = 0.04, trials: int = 5
) -> Sweep:
    """What --sweep measures where writing takes write_s and each sync sync_ms more; trials differ by up to scatter."""
    steps = [Step(None, tuple(write_s * 0.6 * (1 + scatter * i / trials) for i in range(trials)))]
    for every in (0, *INTERVALS):
        total = write_s + (amount / every if every else 1) * sync_ms / 1e3
        steps.append(
            Step(every, tuple(round(total * (1 + scatter * (i * 2 % trials) / trials), 6) for i in range(trials)))
        )
    return Sweep(amount, tuple(steps))


MADE = {"traced": traced, "contradicted": contradicted, "inconclusive": inconclusive}


@cache
def made(name: str) -> Verification:
    """One of each kind."""
    return MADE[name]()
