"""The ZIL of a pool: its vdevs by allocation class, where commits write, how many there are, and what a crash takes
without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from auditor.data import releases
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, unknown
from auditor.model.derivation import (
    Missing,
    about,
    about_each,
    catch_missing,
    derivation,
    every,
    evidence,
    gaps,
    numbers,
)
from auditor.text import quoted

NO_DATA = ("indirect", "hole", "missing")
BEFORE_NORMAL = (2, 4)  # from here on the special class comes before the normal one
KNOWN_RELEASES = ((2, 0), (2, 5))  # from, to (exclusive): where the order of the classes was read in the source


@derivation(
    "pool",
    log_vdevs=Spec.links("vdev", "the log vdevs: together the SLOG"),
    special_vdevs=Spec.links("vdev", "the special vdevs"),
    data_vdevs=Spec.links("vdev", "the top-level vdevs of class normal that hold data", nonempty=True),
    log_leaves=Spec.links("leaf", "the leaves of the SLOG"),
    data_leaves=Spec.links("leaf", "the leaves of class normal", nonempty=True),
    zil_leaves=Spec.links("leaf", "the leaves on which ZIL blocks land in this release", nonempty=True),
    zil_class=Spec.word("the class on which ZIL blocks land", "log", "special", "normal"),
    data_failures_tolerated=Spec.number("devices that the weakest vdev of class normal can lose"),
    data_ashifts=Spec.words("the different ashifts of the vdevs of class normal"),
)
def allocation_classes(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """The vdevs of a pool by allocation class, and on which of them its ZIL blocks can land.

    zio_alloc_zil() in module/zfs/zio.c asks the classes in turn: the log class, then (2.4 and later: commit be1e991a1a, zfs.4)
    special, then normal. A log class without a device that can be written to is skipped."""
    vdevs, tops = facts.need(pool, "vdevs"), facts.linked(pool, "vdevs")
    classes = every(facts.get(vdev, "allocation_class") for vdev in tops)
    types = [facts.get(vdev, "type") for vdev in tops]
    no_data = {vdev for vdev, kind in zip(tops, types, strict=True) if kind.or_none() in NO_DATA}
    by_class = {
        name: tuple(v for v, of in zip(tops, classes, strict=True) if of.value == name and v not in no_data)
        for name in ("normal", "log", "special")
    }
    seen = vdevs.evidence
    yield Fact(pool, "log_vdevs", Known(by_class["log"], seen))
    yield Fact(pool, "special_vdevs", Known(by_class["special"], seen))
    unseen = gaps(types)
    yield Fact(pool, "data_vdevs", Unknown.join(unseen) if unseen else Known(by_class["normal"], seen))
    leaves = {name: _leaves(of, facts, seen) for name, of in by_class.items()}
    yield Fact(pool, "log_leaves", leaves["log"])
    yield Fact(pool, "data_leaves", _nonempty(pool, leaves["normal"]))
    chosen = _zil_class(by_class, facts, pool)
    yield Fact(pool, "zil_class", chosen)
    yield Fact(pool, "zil_leaves", _of_class(pool, chosen, leaves))
    for name, fact in (("failures_tolerated", "data_failures_tolerated"), ("ashift", "data_ashifts")):
        yield Fact(pool, fact, _of_data(pool, by_class["normal"], name, facts))


@catch_missing
def _leaves(vdevs: tuple[Subject, ...], facts: Facts, seen: tuple[Evidence, ...]) -> Judged:
    every(facts.get(vdev, "leaves") for vdev in vdevs)
    return Known(tuple(leaf for vdev in vdevs for leaf in facts.linked(vdev, "leaves")), seen)


@catch_missing
def _of_class(pool: Subject, chosen: Judged, leaves: Mapping[str, Judged]) -> Judged:
    chosen = chosen.need()
    return _nonempty(pool, leaves[str(chosen.value)]).need()._replace(evidence=chosen.evidence)


def _nonempty(pool: Subject, leaves: Judged) -> Judged:
    if isinstance(leaves, Known) and not leaves.value:
        return unknown(f"{pool.name}: zpool status names no leaf of this class")
    return leaves


@catch_missing
def _zil_class(by_class: dict[str, tuple[Subject, ...]], facts: Facts, pool: Subject) -> Judged:
    """A log vdev takes blocks while any of them can be written to (metaslab_class_get_dspace() of the log class)."""
    usable = [facts.get(vdev, "state") for vdev in by_class["log"]]
    if any(state.or_none() in ("ONLINE", "DEGRADED") for state in usable):
        return Known("log", (Evidence("the pool has a SLOG", f"zpool status {pool.name}"),))
    if unknowns := gaps(usable):
        return Unknown.join(unknowns)
    without = Evidence("no log vdev can be written to" if by_class["log"] else "no SLOG", f"zpool status {pool.name}")
    if not by_class["special"]:
        return Known("normal", (without,))
    release = facts.need(HOST, "zfs_version")
    assert isinstance(release.value, tuple)
    if why := releases.untold(release.value, BEFORE_NORMAL) or releases.untold(release.value, KNOWN_RELEASES[1]):
        return unknown(why, releases.REMEDY)
    version = numbers(release)[:2]
    if not KNOWN_RELEASES[0] <= version < KNOWN_RELEASES[1]:
        return unknown(f"where OpenZFS {'.'.join(map(str, version))} puts ZIL blocks is not known to this zaudit")
    return Known("special" if version >= BEFORE_NORMAL else "normal", (without, *release.evidence))


@catch_missing
def _of_data(pool: Subject, vdevs: tuple[Subject, ...], name: str, facts: Facts) -> Judged:
    found = every(facts.get(vdev, name) for vdev in vdevs)
    if not found:
        return unknown(f"{pool.name}: no vdev of class normal is known")
    counts = sorted(set(map(Known.number, found)))
    seen = tuple(dict.fromkeys(about_each(zip(vdevs, found, strict=True))))
    return Known(tuple(counts) if name == "ashift" else counts[0], seen)


@derivation("pool", log_bytes=Spec.number("space on its log vdevs; a mirror counts once"))
def log_bytes(pool: Subject, facts: Facts) -> Judged:
    """To compare zfs_wrlog_data_max with; 0 where there is no log vdev."""
    vdevs, logs = facts.need(pool, "log_vdevs"), facts.linked(pool, "log_vdevs")
    sizes = every(facts.get(vdev, "asize_bytes") for vdev in logs)
    return Known(sum(map(Known.number, sizes)), about_each(zip(logs, sizes, strict=True)) or vdevs.evidence)


APART = (2, 2)  # from here on the kernel counts datasets apart, before that all pools together
AROUND = ("zil_itx_indirect_count", "zil_itx_metaslab_normal_count")


@derivation(
    "pool", commit_leaves=Spec.links("leaf", "the leaves to which its commits write, or have written", nonempty=True)
)
def commit_leaves(pool: Subject, facts: Facts) -> Judged:
    """The leaves that must keep what a commit wrote before fsync returns: those of the log blocks, and often those of the
    data.

    With a log vdev (2.4: or a special one) a commit still writes to the data vdevs where its data goes around the log
    (``logbias=throughput``, Direct I/O from 2.3 on) or the log has no room. These count where a counter or logbias shows
    it. (OpenZFS module/zfs/zfs_log.c zfs_log_write, zil.c zil_lwb_add_block, zio.c zio_alloc_zil)"""
    log, chosen = facts.get(pool, "zil_leaves"), facts.get(pool, "zil_class")
    if isinstance(log, Unknown) or isinstance(chosen, Unknown) or chosen.value == "normal":
        return log
    around = _around(pool, facts).need()
    seen = (*log.evidence, *around.evidence)
    if around.value is False:
        return Known(log.value, seen)
    both = (*facts.linked(pool, "zil_leaves"), *facts.need_linked(pool, "data_leaves"))
    return Known(tuple(dict.fromkeys(both)), seen)


@catch_missing
def _around(pool: Subject, facts: Facts) -> Judged:
    """Whether commits of this pool write to the data vdevs, with what shows it. One that does decides; not seen does not."""
    datasets = facts.need_linked(pool, "datasets")
    unknowns: list[Unknown] = []
    quiet: list[Evidence] = []
    release = facts.get(HOST, "zfs_version")
    before = isinstance(release, Known) and numbers(release)[:2] < APART
    for dataset in datasets:
        bias = facts.get(dataset, "logbias")
        if isinstance(bias, Known) and bias.value == "throughput":
            return Known(True, about(dataset, bias))
        if facts.get(dataset, "mounted").or_none() is False:  # nothing commits there, and nothing is counted
            continue
        counts = [facts.get(HOST if before else dataset, name) for name in AROUND]
        for each in (bias, *counts):
            if isinstance(each, Unknown):
                unknowns.append(each)
            elif isinstance(each.value, int) and each.value > 0:
                return Known(True, about(dataset, each))
            else:
                quiet += each.evidence
    if unknowns:
        return Unknown.join(unknowns)
    if not quiet:  # nothing was counted, which is not the same as nothing that goes there
        return unknown(f"{pool}: no mounted dataset whose commits are counted was looked at")
    return Known(False, tuple(dict.fromkeys(quiet))[:3])


@derivation(
    "host",
    loss_window=Spec.word("how far back a crash reaches without a log, in the pool of the host where that is longest"),
    **{
        "pool.loss_window": Spec.word("how far back a crash reaches without a log: up to 7.3 s, by its TXGs"),
        "database.loss_window": Spec.word("how far back a crash reaches where InnoDB flushes its log late: about 1 s"),
    },
)
def loss_window(host: Subject, facts: Facts) -> Iterator[Fact]:
    """How far back a crash reaches where no log keeps what was written: to the opening of the oldest unsynced TXG.

    A sync starts zfs_txg_timeout after the start of the one before, or at its end where that took longer. At rest a TXG
    lives for the timeout; with long syncs or under load for twice as long and more. Snapshots and scrubs shorten lives, so
    the timeout and the longest sync count at least. Of each pool, and of the host. (OpenZFS module/zfs/txg.c
    txg_sync_thread, the same in 2.1.11, 2.3.9 and 2.4.4)"""
    for subject, pools in ((host, facts.linked(host, "pools")), *((pool, (pool,)) for pool in facts.subjects("pool"))):
        window = _window(pools, facts)
        yield Fact(subject, "loss_window", _up_to(window) if isinstance(window, Known) else window)
        if subject == host:
            for database in facts.subjects("database"):
                yield Fact(database, "loss_window", _late(database, window, facts))


def _up_to(window: Known) -> Known:
    return Known(f"up to {window.value:g} s", window.evidence)


@catch_missing
def _late(database: Subject, window: Judged, facts: Facts) -> Judged:
    """Until InnoDB flushes its log. With innodb_flush_log_at_trx_commit=2 it has written it: a TXG may come before."""
    every_s = facts.need(database, "flush_log_every_s")
    if facts.need(database, "flush_log_at_commit").value == 2 and isinstance(window, Known):
        assert isinstance(window.value, float)
        if window.value < every_s.number():
            return _up_to(window)
    return Known(f"about {every_s.value} s", every_s.evidence)


@catch_missing
def _window(pools: tuple[Subject, ...], facts: Facts) -> Judged:
    timeout = facts.need(HOST, "zfs_txg_timeout")
    lives = every(facts.get(pool, "txg_life_ms_max") for pool in pools)
    syncs = every(facts.get(pool, "txg_sync_ms_max") for pool in pools)
    if not pools:
        return unknown("no pool was seen")
    longest = max(*map(_ms, lives), *(timeout.number() * 1000 + _ms(sync) for sync in syncs))
    seen = (
        piece for pool, *both in zip(pools, lives, syncs, strict=True) for one in both for piece in about(pool, one)
    )
    return Known(ceil(longest / 100) / 10, (*timeout.evidence, *seen))


def _ms(found: Known) -> float:
    assert isinstance(found.value, float)
    return found.value


SHARE = 5  # at least one in so many is of a commit: then what most take is what commits take
ENOUGH = (
    1000  # flushes since boot, or writes of commits since the import; a device with fewer is away, new or not flushed
)
LEG_TIMES = 4  # two powers of two
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400


class _Wait(NamedTuple):
    """least, most: bounds of what one commit in a hundred waits for it, ms. what: drive, queue or flush. alone: whether it was
    counted of commits, and of little else."""

    least: float
    most: float
    what: str
    leaf: Subject
    seen: tuple[Evidence, ...]
    alone: bool = True


@derivation(
    "pool",
    commits_timed=Spec.number("commits that are behind these times, at most"),
    commit_ms=Spec.real(
        "what one commit in a hundred waits for the slowest device at least, ms; of flushes the mean counts"
    ),
    commit_ms_most=Spec.real("the same: at most"),
    commit_alone=Spec.flag("most writes that were timed there are of commits; never false"),
    commit_waits_for=Spec.word("the device that takes longest"),
    commit_cause=Spec.word("what takes longest there", "leg", "drive", "queue", "flush"),
    commit_stalls=Spec.number("its writes that took 1.07 s or longer"),
    commit_took=Spec.word("how long that took, as a quantile or of flushes on average, and since when it was counted"),
)
def commit_latency(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """How long commits waited for the devices of the log, as OpenZFS timed it since the import.

    A commit waits in the queue of each leg (syncq_wait: synchronous writes alone), for the drive (disk_wait: all writes),
    and for a flush (mean by the kernel's counters since boot). The slowest leg decides. Transaction groups
    write labels synchronously, too: a device that was timed mostly for other writes says little of commits. A leg that was
    timed too little is left out."""
    leaves = [leaf for leaf in facts.need_linked(pool, "zil_leaves") if facts.get(leaf, "type").or_none() != "dspare"]
    timed = dict(zip(leaves, every(facts.get(leaf, "sync_writes_timed") for leaf in leaves), strict=True))
    leaves = [leaf for leaf in leaves if timed[leaf].number() >= ENOUGH] or leaves
    commits = _commits(pool, facts).need()
    yield Fact(pool, "commits_timed", min((*map(timed.__getitem__, leaves), commits), key=Known.number))
    waits = [wait for leaf in leaves for wait in _waits(leaf, commits.number(), facts)]
    slowest = max((wait for wait in waits if wait.alone), key=lambda wait: wait.least, default=None)
    most = max((sum(wait.most for wait in waits if wait.leaf == leaf) for leaf in leaves), default=0.0)
    seen = tuple(piece for wait in waits for piece in wait.seen)
    yield Fact(pool, "commit_ms_most", Known(round(most, 3), seen[:5]))
    mixed = next((wait.leaf.name for wait in waits if not wait.alone), "")
    why = unknown(f"{mixed}: most writes that were timed are of no commit", f"zaudit diagnose {quoted(pool.name)}")
    yield Fact(pool, "commit_alone", why if mixed else Known(True, seen[:5]))
    if slowest is None:
        raise Missing(why)
    others = [wait.least for wait in waits if wait.what == slowest.what and wait.leaf != slowest.leaf]
    leg = slowest.what == "drive" and others and slowest.least >= LEG_TIMES * max(others)
    yield Fact(pool, "commit_ms", Known(slowest.least, slowest.seen))
    yield Fact(pool, "commit_waits_for", Known(slowest.leaf.name, slowest.seen))
    yield Fact(pool, "commit_cause", Known("leg" if leg else slowest.what, slowest.seen))
    p99 = f"{slowest.least:g} ms or longer at p99 {_since_import(pool, facts)}"
    took = f"{slowest.least:g} ms on average for a flush since boot" if slowest.what == "flush" else p99
    yield Fact(pool, "commit_took", Known(took, slowest.seen))
    yield Fact(pool, "commit_stalls", facts.get(slowest.leaf, "writes_over_1s"))


@catch_missing
def _commits(pool: Subject, facts: Facts) -> Judged:
    """Of its datasets since they were mounted (2.2 and later); else of all pools since the module was loaded."""
    of = [facts.get(dataset, "zil_commit_count") for dataset in facts.linked(pool, "datasets")]
    if counted := [each for each in of if isinstance(each, Known)]:
        total = sum(map(Known.number, counted))
        return Known(total, (Evidence(f"{total:,} commits on {len(counted)} datasets"),))
    return facts.need(HOST, "zil_commit_count")


def _waits(leaf: Subject, commits: int, facts: Facts) -> Iterator[_Wait]:
    writes, synced = map(Known.number, facts.values(leaf, "writes_timed", "sync_writes_timed"))
    if synced:
        least, most, queued, queued_most = facts.values(
            leaf, "write_ms_p99", "write_ms_p99_most", "sync_queue_ms_p99", "sync_queue_ms_p99_most"
        )
        ours = synced <= SHARE * commits
        yield _Wait(_ms(least), _ms(most), "drive", leaf, about(leaf, least), ours and writes <= SHARE * synced)
        yield _Wait(_ms(queued), _ms(queued_most), "queue", leaf, about(leaf, queued), ours)
    for disk in facts.need_linked(leaf, "disks"):
        flushes, ms = map(Known.number, facts.values(disk, "flushes", "flush_ms"))
        if flushes >= ENOUGH:
            mean = round(ms / flushes, 3)
            text = f"{disk.name}: {flushes:,} flushes since boot took {mean:g} ms on average"
            yield _Wait(mean, mean, "flush", leaf, (Evidence(text, f"cat /sys/block/{disk.name}/stat"),))


def _since_import(pool: Subject, facts: Facts) -> str:
    """By the clock that OpenZFS began with at the import."""
    begun, now = facts.get(pool, "kstat_created_ns"), facts.get(pool, "kstat_clock_ns")
    if not isinstance(begun, Known) or not isinstance(now, Known):
        return "since the import"
    seconds = (now.number() - begun.number()) / 1e9
    size, unit = next(
        (each for each in ((DAY_S, "days"), (HOUR_S, "hours")) if seconds >= 2 * each[0]), (MINUTE_S, "minutes")
    )
    return f"since the import {seconds / size:.0f} {unit} ago"


MANY_DIRECT = 100  # counters since the import or mount may hold a few from a setting of before


@lru_cache(4096)
def _none(counted: tuple[Evidence, ...]) -> Known:
    """One object for thousands of datasets: what is alike is judged once."""
    return Known(False, tuple(dict.fromkeys(counted)))


@derivation("dataset", commits_directly=Spec.flag("its commits are of Direct I/O, which goes past the log device"))
def commits_directly(dataset: Subject, facts: Facts) -> Judged:
    """Does anything commit with Direct I/O? No where the pool counted no such write, or the dataset no write at all. With
    logbias=latency and a log device only Direct I/O logs pointers (zfs_log.c zfs_log_write() of 2.3.9): yes where both were
    counted."""
    pool = Subject("pool", dataset.name.partition("/")[0])
    direct, own = facts.get(pool, "direct_write_count"), facts.get(dataset, "writes")
    for each in (direct, own):
        if isinstance(each, Known) and each.value == 0:
            return _none(each.evidence)
    pointers = facts.get(dataset, "zil_itx_indirect_count")
    counted, logged = every((direct, pointers)), (facts.get(dataset, "logbias"), facts.get(pool, "zil_class"))
    past_the_log = tuple(each.word() for each in logged) == ("latency", "log")
    if past_the_log and min(map(Known.number, counted)) >= MANY_DIRECT:
        return Known(True, evidence(*counted, *logged))
    return unknown(
        f"{dataset.name}: {counted[0].number():,} writes of the pool were Direct I/O, maybe some of this dataset"
    )
