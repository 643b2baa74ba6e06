"""The ZIL of a pool: its vdevs by allocation class, where commits write, how many there are, and what a crash takes
without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil

from auditor.data import releases
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
    join,
    known,
    links,
    number,
    number_of,
    real,
    unknown,
    value_of,
    word,
    word_of,
    words,
    words_of,
)
from auditor.model.derivation import (
    about,
    about_each,
    catch_missing,
    derivation,
    every,
    evidence,
    gaps,
    linked,
    need,
    numbers,
)

NO_DATA = ("indirect", "hole", "missing")
BEFORE_NORMAL = (2, 4)  # from here on the special class comes before the normal one
KNOWN_RELEASES = ((2, 0), (2, 5))  # from, to (exclusive): where the order of the classes was read in the source


@derivation(
    "pool",
    log_vdevs=links("vdev", "the log vdevs: together the SLOG"),
    special_vdevs=links("vdev", "the special vdevs"),
    data_vdevs=links("vdev", "the top-level vdevs of class normal that hold data", nonempty=True),
    log_leaves=links("leaf", "the leaves of the SLOG"),
    data_leaves=links("leaf", "the leaves of class normal", nonempty=True),
    zil_leaves=links("leaf", "the leaves on which ZIL blocks land in this release", nonempty=True),
    zil_class=word("the class on which ZIL blocks land", "log", "special", "normal"),
    data_failures_tolerated=number("devices that the weakest vdev of class normal can lose"),
    data_ashifts=words("the different ashifts of the vdevs of class normal"),
)
def allocation_classes(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """The vdevs of a pool by allocation class, and on which of them its ZIL blocks can land.

    zio_alloc_zil() in module/zfs/zio.c asks the classes in turn: the log class, then (2.4 and later: commit
    be1e991a1a, zfs.4) special, then normal. A log class without a device that can be written to is passed over.
    """
    vdevs, tops = need(facts.get(pool, "vdevs")), facts.linked(pool, "vdevs")
    classes = every(facts.get(vdev, "allocation_class") for vdev in tops)
    types = [facts.get(vdev, "type") for vdev in tops]
    no_data = {vdev for vdev, kind in zip(tops, types, strict=True) if value_of(kind) in NO_DATA}
    by_class = {
        name: tuple(v for v, of in zip(tops, classes, strict=True) if of.value == name and v not in no_data)
        for name in ("normal", "log", "special")
    }
    seen = vdevs.evidence
    yield Fact(pool, "log_vdevs", Known(by_class["log"], seen))
    yield Fact(pool, "special_vdevs", Known(by_class["special"], seen))
    unseen = gaps(types)
    yield Fact(pool, "data_vdevs", join(unseen) if unseen else Known(by_class["normal"], seen))
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
    chosen = need(chosen)
    return need(_nonempty(pool, leaves[str(chosen.value)]))._replace(evidence=chosen.evidence)


def _nonempty(pool: Subject, leaves: Judged) -> Judged:
    if isinstance(leaves, Known) and not leaves.value:
        return unknown(f"{pool.name}: zpool status names no leaf of this class")
    return leaves


@catch_missing
def _zil_class(by_class: dict[str, tuple[Subject, ...]], facts: Facts, pool: Subject) -> Judged:
    """A log vdev takes blocks while any of them can be written to (metaslab_class_get_dspace() of the log class)."""
    usable = [facts.get(vdev, "state") for vdev in by_class["log"]]
    if any(value_of(state) in ("ONLINE", "DEGRADED") for state in usable):
        return Known("log", (Evidence("the pool has a SLOG", f"zpool status {pool.name}"),))
    if unknowns := gaps(usable):
        return join(unknowns)
    without = Evidence("no log vdev can be written to" if by_class["log"] else "no SLOG", f"zpool status {pool.name}")
    if not by_class["special"]:
        return Known("normal", (without,))
    release = need(facts.get(HOST, "zfs_version"))
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
    counts = sorted(set(map(number_of, found)))
    seen = tuple(dict.fromkeys(about_each(zip(vdevs, found, strict=True))))
    return Known(tuple(counts) if name == "ashift" else counts[0], seen)


@derivation("pool", log_bytes=number("space on its log vdevs; a mirror counts once"))
def log_bytes(pool: Subject, facts: Facts) -> Judged:
    """To compare zfs_wrlog_data_max with; 0 where there is no log vdev."""
    vdevs, logs = need(facts.get(pool, "log_vdevs")), facts.linked(pool, "log_vdevs")
    sizes = every(facts.get(vdev, "asize_bytes") for vdev in logs)
    return Known(sum(map(number_of, sizes)), about_each(zip(logs, sizes, strict=True)) or vdevs.evidence)


APART = (2, 2)  # from here on the kernel counts datasets apart, before that all pools together
AROUND = ("zil_itx_indirect_count", "zil_itx_metaslab_normal_count")


@derivation(
    "pool", commit_leaves=links("leaf", "the leaves to which its commits write, or have written", nonempty=True)
)
def commit_leaves(pool: Subject, facts: Facts) -> Judged:
    """The leaves that must keep what a commit wrote before fsync returns: those of the log blocks, and often those of
    the data.

    With a log vdev (2.4: or a special one in its place) a commit still writes to the data vdevs where its data goes
    around the log (``logbias=throughput``, Direct I/O from 2.3 on: the log holds a pointer), and where the log has
    no room for its blocks. (OpenZFS module/zfs/zfs_log.c zfs_log_write, zil.c zil_lwb_add_block, zio.c
    zio_alloc_zil)

    The leaves of the data vdevs too where a counter or logbias shows that commits go there.
    """
    log, chosen = facts.get(pool, "zil_leaves"), facts.get(pool, "zil_class")
    if isinstance(log, Unknown) or isinstance(chosen, Unknown) or chosen.value == "normal":
        return log
    around = need(_around(pool, facts))
    seen = (*log.evidence, *around.evidence)
    if around.value is False:
        return Known(log.value, seen)
    both = (*facts.linked(pool, "zil_leaves"), *linked(facts, pool, "data_leaves"))
    return Known(tuple(dict.fromkeys(both)), seen)


@catch_missing
def _around(pool: Subject, facts: Facts) -> Judged:
    """Whether commits of this pool write to the data vdevs, with what shows it. One that does decides; not seen does not."""
    datasets = linked(facts, pool, "datasets")
    unknowns: list[Unknown] = []
    quiet: list[Evidence] = []
    release = facts.get(HOST, "zfs_version")
    before = isinstance(release, Known) and numbers(release)[:2] < APART
    for dataset in datasets:
        bias = facts.get(dataset, "logbias")
        if isinstance(bias, Known) and bias.value == "throughput":
            return Known(True, about(dataset, bias))
        if value_of(facts.get(dataset, "mounted")) is False:  # nothing commits there, and nothing is counted
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
        return join(unknowns)
    if not quiet:  # nothing was counted, which is not the same as nothing that goes there
        return unknown(f"{pool}: no mounted dataset whose commits are counted was looked at")
    return Known(False, tuple(dict.fromkeys(quiet))[:3])


TOLD = 5
AMONG_THE_HOST = "container "  # its programs write as those of the host do
LEAST_S = 600  # what came together at a start says nothing of the day


@derivation(
    "pool",
    commits_seen=real("commits a second of its busiest dataset since that was mounted, as far as they were counted"),
    committers_seen=words("NFS exports, guests, targets and pods that use its datasets, as far as they were seen"),
)
def commits_seen(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """How many commits a second a pool has seen, at the least: OpenZFS counts them for each dataset since it was
    mounted (2.2 and later). A program that nobody knows by name commits, too. And who is known to write to it
    synchronously: clients of NFS (each COMMIT of theirs), guests, targets of block devices and volumes of pods.

    Both are lower bounds, empty where nothing was seen: that one cannot see the processes of the host must not undo
    what a database or a property has decided. So they may show that a pool has commits to wait for, never that it
    has none.
    """
    most, seen = 0.0, known(0.0, "no commits were counted on its datasets")
    for dataset in facts.linked(pool, "datasets"):
        match facts.get(dataset, "zil_commit_count"), facts.get(dataset, "zil_counted_s"):
            case Known(int() as count) as counted, Known(int() | float() as over) if over >= LEAST_S:
                if (each := round(count / over, 1)) > most:
                    most, seen = each, Known(each, counted.evidence)
    yield Fact(pool, "commits_seen", seen)
    yield Fact(pool, "committers_seen", _committers(pool, facts))


def _committers(pool: Subject, facts: Facts) -> Known:
    found = list[str]()
    for dataset in facts.linked(pool, "datasets"):
        exported, used = facts.get(dataset, "nfs_exported_now"), facts.get(dataset, "used_by")
        by = ["an NFS export"] if is_true(exported) else []
        by += [each for each in words_of(used) if not each.startswith(AMONG_THE_HOST)]
        found += [f"{dataset.name}: {each}" for each in by]
    more = [f"and {len(found) - TOLD} more"] if len(found) > TOLD else []
    if not found:
        return known((), "no export, guest, target or pod was seen to use its datasets")
    return known((*found[:TOLD], *more), "; ".join((*found[:TOLD], *more)))


@derivation(
    "host",
    loss_window=word("how far back a crash reaches without a log, in the pool of the host where that is longest"),
    **{"pool.loss_window": word("how far back a crash reaches without a log: up to 7.3 s, by its TXGs")},
)
def loss_window(host: Subject, facts: Facts) -> Iterator[Fact]:
    """How far back a crash reaches where no log keeps what was written: to the opening of the oldest TXG that is not
    synced.

    A sync starts zfs_txg_timeout after the start of the one before, or at its end where that took longer. So a
    write waits at most the timeout for its sync to start, and then for the sync: a TXG lives that long, from its
    opening to the end of its sync. At rest that is the timeout, with syncs as long as the timeout it is twice as
    much, and under load more. Snapshots and scrubs force TXGs and shorten their lives, so the timeout and the
    longest sync count at least.

    (OpenZFS module/zfs/txg.c txg_sync_thread: "delta = ddi_get_lbolt() - start", the same in 2.1.11, 2.3.9 and
    2.4.4)

    Of each pool, and of the host for what concerns all of them.
    """
    for subject, pools in ((host, facts.linked(host, "pools")), *((pool, (pool,)) for pool in facts.subjects("pool"))):
        yield Fact(subject, "loss_window", _window(pools, facts))


@catch_missing
def _window(pools: tuple[Subject, ...], facts: Facts) -> Judged:
    """By the TXGs of these pools, where each has a history."""
    timeout = need(facts.get(HOST, "zfs_txg_timeout"))
    lives = every(facts.get(pool, "txg_life_ms_max") for pool in pools)
    syncs = every(facts.get(pool, "txg_sync_ms_max") for pool in pools)
    if not pools:
        return unknown("no pool was seen")
    longest = max(*map(_ms, lives), *(number_of(timeout) * 1000 + _ms(sync) for sync in syncs))
    seen = (
        piece for pool, *both in zip(pools, lives, syncs, strict=True) for one in both for piece in about(pool, one)
    )
    return Known(f"up to {ceil(longest / 100) / 10:g} s", (*timeout.evidence, *seen))


def _ms(found: Known) -> float:
    assert isinstance(found.value, float)
    return found.value


MANY_DIRECT = 100  # counters since the import or mount may hold a few from a setting of before


@derivation("dataset", commits_directly=flag("its commits are of Direct I/O, which goes past the log device"))
def commits_directly(dataset: Subject, facts: Facts) -> Judged:
    """Does anybody commit with Direct I/O?

    No where the pool counted no such write, or the dataset no write at all. With logbias=latency and a log device only Direct
    I/O makes commits of which the log holds a pointer (zfs_log.c zfs_log_write() of 2.3.9): yes where both were counted.
    """
    pool = Subject("pool", dataset.name.partition("/")[0])
    direct, own = facts.get(pool, "direct_write_count"), facts.get(dataset, "writes")
    for each in (direct, own):
        if value_of(each) == 0:
            return Known(False, evidence(each))
    pointers = facts.get(dataset, "zil_itx_indirect_count")
    counted, logged = every((direct, pointers)), (facts.get(dataset, "logbias"), facts.get(pool, "zil_class"))
    past_the_log = tuple(map(word_of, logged)) == ("latency", "log")
    if past_the_log and min(map(number_of, counted)) >= MANY_DIRECT:
        return Known(True, evidence(*counted, *logged))
    return unknown(
        f"{dataset.name}: {number_of(counted[0]):,} writes of the pool were Direct I/O, maybe some of this dataset"
    )
