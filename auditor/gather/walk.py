"""Walks the subjects and asks: host, then pools and datasets, then the disks behind the leaves, as much at once as the
answers allow."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from auditor.data import platforms
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Known,
    Subject,
    Unknown,
    flag,
    join,
    links,
    value_of,
    word,
    word_of,
    words_of,
)
from auditor.gather import brought, database_walk, layers, mounted, neighbours, users, witnesses
from auditor.gather.fill import fill
from auditor.gather.gatherer import Gatherer, of
from auditor.gather.targets import covers, pool_of
from auditor.host.request import Read
from auditor.sources import block_tree, zpool_status
from auditor.sources.block_tree import Holders, Place
from auditor.sources.mounts import Mount
from auditor.sources.source import Source
from auditor.sources.zfs import above

PROVIDES = {
    "host.pools": links("pool", "the pools that are audited"),
    "host.zfs_loaded": flag("OpenZFS is in the kernel that runs"),
    "host.platform": word("in whose words fixes and remedies are (auditor/data/platforms.toml)"),
    "host.consistent": flag("the properties of datasets are to be read in one transaction group"),
    "host.waivers": links("waiver", "what the policy waives"),
    "waiver.expired": flag("its last day was over"),
    "waiver.used": flag("its rule found something, or could not decide, where it holds"),
    "waiver.in_view": flag("what it is about was judged this time"),
    "dataset.role": word("what the policy says it is for", "log", "data", "both", "rebuildable", "undeclared"),
    "dataset.database": word("the database that the policy names for it, or empty"),
    "pool.datasets": links("dataset", "what is audited of its datasets"),
}
# Of many pools these are asked before all others: what they say decides the gravest rules, and a deadline may end the rest.
GRAVEST = ("zfs_get", "zfs_list", "zpool_status")


def read_host(gatherer: Gatherer, facts: Facts, inventory: Facts) -> None:
    """All files that are read once: releases, parameters, kstats, block devices. Starts no command.

    facts of block devices go to the inventory: a host has more of them than the audit is about.
    """
    first = [name for name in of(gatherer.sources, "host") if _reads_only(gatherer.sources[name], facts)]
    for name in first:
        gatherer.ask(name, [HOST], facts)
    gatherer.settle(facts, [name for name in first if not _about_disks(gatherer.sources[name])])
    gatherer.settle(inventory, first)
    mounted.stand(facts)
    facts.put(platform := _platform(facts))
    gatherer.platform = str(value_of(platform.value) or platforms.ANY)


def ask_host(gatherer: Gatherer, facts: Facts) -> None:
    """All commands that are run once; does not wait."""
    for name in of(gatherer.sources, "host"):
        gatherer.ask(name, [HOST], facts)


def _platform(facts: Facts) -> Fact:
    """Which platform it is, by its kernel where that tells, else by what os-release says: TrueNAS and Proxmox VE call
    themselves Debian there."""
    ids, kernel = facts.get(HOST, "os_ids"), facts.get(HOST, "kernel_release")
    name = platforms.here(words_of(ids), word_of(kernel))
    if isinstance(kernel, Unknown):
        return Fact(HOST, "platform", kernel)
    if name == platforms.ANY and isinstance(ids, Unknown):
        return Fact(HOST, "platform", ids)
    evidence = tuple(piece for each in (ids, kernel) if isinstance(each, Known) for piece in each.evidence)
    return Fact(HOST, "platform", Known(name, evidence))


def _reads_only(source: Source, facts: Facts) -> bool:
    return isinstance(source.request(HOST, facts), Read)


def _about_disks(source: Source) -> bool:
    return source.subject == "disk"


def look_at_pools(
    gatherer: Gatherer,
    facts: Facts,
    inventory: Facts,
    roots: Sequence[Subject],
    imported: Sequence[str] = (),
) -> None:
    """The pools of the roots, the datasets under them, and then the disks behind the leaves, while slower answers still come
    in; last what the databases on them use elsewhere. imported: names of all pools of this host."""
    pools = tuple(dict.fromkeys(pool_of(root) for root in roots))
    for name in GRAVEST:
        gatherer.ask(name, roots if gatherer.sources[name].per == "target" else pools, facts)
    _look_into(gatherer, facts, pools)
    for name in of(gatherer.sources, "target"):
        gatherer.ask(name, roots, facts)
    others = [pool for name in imported if (pool := Subject("pool", name)) not in pools]
    for name in neighbours.COLLECTORS:
        gatherer.ask(name, others, facts)
    _settle_disks(gatherer, inventory)
    if why := gatherer.failure("dmsetup_table", HOST):  # what is stacked is not among the disks that fill() looks after
        inventory.put_all(Fact(disk, "dm_targets", why) for disk in list(inventory.subjects("disk")))
    gatherer.settle(facts, ["zpool_status", "zpool_status_paths"])
    for fact in zpool_status.join(facts):
        facts.put(fact)
    for fact in block_tree.links(facts, inventory):
        facts.put(fact)
    for disk in sorted({disk for leaf in facts.subjects("leaf") for disk in facts.linked(leaf, "disks")}):
        facts.add(disk)
        for name, value in inventory.of(disk).items():
            facts.put(Fact(disk, name, value))
    _ask_disks(gatherer, facts, pools)
    holders = _holders(gatherer, facts, inventory)
    paths = layers.Paths(gatherer.host.steady)
    facts.put_all(list(layers.below(facts, holders, paths)))
    database_walk.look_at(gatherer, facts, inventory)
    more = brought.along(facts, roots)
    pools = _bring(gatherer, facts, pools, more)
    gatherer.settle(facts)
    for fact in list(zpool_status.adopt(facts)):
        facts.put(fact)
    for fact in datasets_of(gatherer, facts, pools, roots, tuple(more)):
        facts.put(fact)
    facts.put_all(list(layers.above(facts, holders)))
    facts.put_all(list(layers.keys(facts, holders, paths)))
    witnesses.compare(facts)
    fill(gatherer, facts)
    facts.put_all(list(users.users(facts, holders, paths)))  # of all reasons why something is not known, too


def held(gatherer: Gatherer, facts: Facts, inventory: Facts, what: Mount | str) -> Place:
    """What holds a mount or a block device; waits until all block devices are known where it is not a dataset itself."""
    if isinstance(what, Mount) and what.fstype == "zfs":
        return Place((what.source,))
    _settle_disks(gatherer, inventory)
    holders = _holders(gatherer, facts, inventory)
    return holders.mount(what) if isinstance(what, Mount) else holders.device(what)


def _holders(gatherer: Gatherer, facts: Facts, inventory: Facts) -> Holders:
    if why := gatherer.failure("zfs_mounts", HOST):  # else it would be "not looked at" to those that ask next
        facts.put(Fact(HOST, "mount_table", why))
    return Holders(facts, inventory)


def _settle_disks(gatherer: Gatherer, inventory: Facts) -> None:
    gatherer.settle(inventory, [name for name in of(gatherer.sources, "host") if _about_disks(gatherer.sources[name])])


def _look_into(gatherer: Gatherer, facts: Facts, pools: Sequence[Subject]) -> None:
    """These pools are audited."""
    for pool in pools:
        facts.add(pool)
    seen = (Evidence(", ".join(pool.name for pool in pools), "zpool list"),)
    facts.replace(Fact(HOST, "pools", Known(tuple(pools), seen)))
    for name in of(gatherer.sources, "pool"):
        gatherer.ask(name, pools, facts)


def _ask_disks(gatherer: Gatherer, facts: Facts, pools: Sequence[Subject]) -> None:
    """All that is asked of the disks of these pools; of those of other pools what they are called, where nobody said it."""
    leaves = [leaf for leaf in facts.subjects("leaf") if pool_of(leaf) in pools]
    mine = {disk for leaf in leaves for disk in facts.linked(leaf, "disks")}
    disks = sorted(mine | {disk for disk in facts.subjects("disk") if neighbours.nameless(disk, facts)})
    for name in of(gatherer.sources, "disk"):
        gatherer.ask(name, disks, facts)


def _bring(
    gatherer: Gatherer, facts: Facts, pools: tuple[Subject, ...], more: Mapping[Subject, str]
) -> tuple[Subject, ...]:
    """Look at datasets that were not named, each without those below it, and at their pools; all pools that are audited."""
    if not more:
        return pools
    pools = tuple(dict.fromkeys((*pools, *map(pool_of, more))))
    _look_into(gatherer, facts, pools)
    _ask_disks(gatherer, facts, pools)
    names = of(gatherer.sources, "target")
    gatherer.settle(facts, names)
    for dataset, why in more.items():
        facts.put(Fact(dataset, "brought", Known(why, (Evidence(why),))))
    for name in names:
        gatherer.ask(name, more, facts)
    told = Facts()  # of what is below them, too
    gatherer.settle(told, names)
    wanted = {name for each in more for name in (each.name, *above(each.name))}
    facts.put_all(each for each in told if each.subject.name in wanted)
    return pools


def datasets_of(
    gatherer: Gatherer, facts: Facts, pools: Sequence[Subject], roots: Sequence[Subject], more: Sequence[Subject] = ()
) -> Iterator[Fact]:
    """pool.datasets: what is audited of each pool; unknown when one of its roots could not be listed. more: that were not
    named, each alone: one that could not be looked at is there, and undecided."""
    every: dict[Subject, list[Subject]] = {}
    for each in sorted({*facts.subjects("dataset"), *more}):
        every.setdefault(pool_of(each), []).append(each)
    for pool in pools:
        mine = [root for root in roots if pool_of(root) == pool]
        # of one that zfs list did not name, what zfs get said before it was given up is not all that there is
        part = [
            root
            for root in mine
            if gatherer.in_part("zfs_get", root) and not isinstance(facts.get(root, "listed"), Known)
        ]
        unseen = [root for root in mine if not facts.of(root) or root in part]
        failures = [why for root in unseen if (why := gatherer.failure("zfs_get", root))]
        alone = {each for each in more if pool_of(each) == pool}
        there = every.get(pool, ())
        inside = tuple(each for each in there if each in alone or any(covers(root, each) for root in mine))
        words = " ".join(shlex.quote(root.name) for root in (*mine, *alone))
        seen = Evidence(f"{len(inside)} datasets", f"zfs list {'-r ' if mine else ''}{words}")
        yield Fact(pool, "datasets", join(failures) if failures else Known(inside, (seen,)))
