"""One walk over a host: all questions, and the facts of the answers. Nothing is judged here. First the host, then pools and
datasets, then the disks behind the leaves, as much at once as the answers allow."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from auditor import EXIT_NOTHING, Stop
from auditor.data import platforms
from auditor.databases import ENGINES, paths, redis, servers, settings
from auditor.databases.configuration import ELSEWHERE
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, known, unknown
from auditor.gather import layers, users, witnesses
from auditor.gather.gatherer import Gatherer, Progress, fill, of
from auditor.gather.layers import covers, pool_of
from auditor.host import sql
from auditor.host.live import Host
from auditor.host.request import Read
from auditor.sources import block_tree, zpool_status
from auditor.sources.block_tree import Holders, Place
from auditor.sources.mounts import Mount
from auditor.sources.source import Source
from auditor.sources.zfs import above

# As root these would load the module (libzfs_core_init() of lib/libzfs_core), and zaudit changes nothing
LOADERS = frozenset({"zfs", "zpool", "zdb"})


class NothingToAudit(Stop):
    """No ZFS here, no pool, or no such target; the text says which and what is there instead. facts: of the host, where no
    pool was named and none is imported, so that they may tell why; else None."""

    exit_code = EXIT_NOTHING

    def __init__(self, text: str, facts: Facts | None = None) -> None:
        super().__init__(text)
        self.facts = facts


class DatabaseError(Stop):
    """``--db`` that is not understood; the text repeats no DSN."""


class LookOptions(NamedTuple):
    """What changes the questions. consistent: read the dataset properties in one transaction group. database: what will run
    there (its page size decides a rule). directory: of its data, where it does not run. connection: to the server."""

    consistent: bool = False
    database: str = ""
    directory: str = ""
    connection: str = ""

    def words(self) -> dict[str, str]:
        words = {"consistent": "yes" if self.consistent else "no", "database": self.database}
        if self.directory:
            words["directory"] = self.directory
        if self.connection:
            words["connection"] = self.connection
        return words

    def with_database(self, said: str) -> LookOptions:
        """The same with what ``--db NAME[=DIR|DSN]`` says. Raises DatabaseError."""
        name, equals, place = said.partition("=")
        if name not in ENGINES or (equals and not place) or (place.startswith("/") and name == "sqlite"):
            raise DatabaseError(
                f"--db {name}: NAME is one of {', '.join(ENGINES)}; DIR is an absolute path, not of SQLite"
            )
        if not place or place.startswith("/"):
            return self._replace(database=name, directory=place.rstrip("/") or place, connection="")
        if name not in sql.DRIVERS:
            raise DatabaseError(
                f"--db {name}=...: DIR is an absolute path; a DSN goes with {', '.join(sql.DRIVERS)} only"
            )
        if "=" not in place and "://" not in place:
            raise DatabaseError(f"--db {name}=...: neither an absolute path nor a DSN (a URI or key=value)")
        if fault := sql.fault(name, place):
            raise DatabaseError(f"--db {name}=...: {fault}")
        return self._replace(database=name, directory="", connection=place)


class Gathered(NamedTuple):
    """The facts, and the datasets that the targets meant. unasked: today's questions that a recording did not know."""

    facts: Facts
    roots: tuple[Subject, ...]
    unasked: tuple[str, ...]


def gather(
    host: Host,
    names: Sequence[str],
    wanted: LookOptions,
    sources: Mapping[str, Source],
    progress: Progress | None = None,
) -> Gathered:
    """Ask a host everything that there is to ask about these targets. Raises NothingToAudit."""
    facts, inventory = Facts(host.now), Facts(host.now)
    facts.put_all(_option_facts(wanted))
    gatherer = Gatherer(host, sources, progress)
    try:
        read_host(gatherer, facts, inventory)
        loaded = _loaded(gatherer, facts)
        facts.put(Fact(HOST, "zfs_loaded", loaded))
        why = loaded.evidence[0].text if isinstance(loaded, Known) and not loaded.value else ""
        if why:
            if names:
                raise NothingToAudit(why)
            gatherer.withheld = dict.fromkeys(LOADERS, why)
        for name in of(sources, "host"):  # all commands that are run once
            gatherer.ask(name, [HOST], facts)
        roots, imported = _roots(gatherer, facts, inventory, host, names)
        if not roots:
            look_at_pools(gatherer, facts, inventory, roots)
            raise NothingToAudit(why or "no pool is imported", facts)
        look_at_pools(gatherer, facts, inventory, roots, imported)
        for root in roots:
            layers.must_exist(host, root, gatherer.failure("zfs_list", root))
    except layers.TargetError as error:
        raise NothingToAudit(str(error)) from None
    finally:
        gatherer.close()
    return Gathered(facts, roots, gatherer.unasked)


def _option_facts(wanted: LookOptions) -> list[Fact]:
    named = f"--db {wanted.database}={wanted.connection}" if wanted.connection else ""
    # of a server that is asked itself it will be seen which datasets are its own
    everywhere = "" if wanted.connection else wanted.database
    where = f"--db {wanted.database}={wanted.directory}" if wanted.directory else ""
    return [
        Fact(HOST, "consistent", known(wanted.consistent, "--consistent" if wanted.consistent else "")),
        Fact(HOST, "database", known(everywhere, f"--db {everywhere}" if everywhere else "")),
        Fact(HOST, "connected_engine", known(wanted.database if wanted.connection else "", named)),
        Fact(HOST, "database_directory", known(wanted.directory, where)),
        Fact(HOST, "database_connection", known(wanted.connection, named)),
    ]


def _roots(
    gatherer: Gatherer, facts: Facts, inventory: Facts, host: Host, names: Sequence[str]
) -> tuple[tuple[Subject, ...], Sequence[str]]:
    """The datasets that the names mean, or the roots of all imported pools; and these pools, as far as they are listed."""
    gatherer.settle(facts, ["zpool_list", "zfs_version", "zfs_userland"])
    pools = witnesses.pool_names(facts)
    if not names:
        if pools is None and not gatherer.withheld:
            failure = gatherer.failure("zpool_list", HOST)
            why = "; ".join(reason.text for reason in failure.reasons) if failure else "zpool list names none"
            raise NothingToAudit(f"no pool can be listed: {why}")
        names = pools or ()
    held_by = partial(holder, gatherer, facts, inventory)
    return tuple(
        sorted({each for name in names for each in layers.resolve(host, name, pools, held_by, facts)})
    ), pools or ()


def _loaded(gatherer: Gatherer, facts: Facts) -> Judged:
    """Is the module of OpenZFS loaded? Where it is not, the text of the evidence is the whole sentence."""
    for name in ("zfs_version", "zfs_txg_timeout"):
        if isinstance(fact := facts.get(HOST, name), Known):
            return Known(True, fact.evidence)
    module = gatherer.failure("zfs_version", HOST) or unknown("it was not looked for")
    pools = isinstance(facts.get(HOST, "kstat_pools"), Known)  # a folder of the module, and so of one that is loaded
    if pools or not any("no such file" in reason.text for reason in module.reasons):
        return module
    why = "; ".join(reason.text for reason in module.reasons if "/zfs/" in reason.text)
    return known(False, f"OpenZFS is not loaded here ({why})")


# -- the walk ---------------------------------------------------------------------------------------------------------

PROVIDES = {
    **servers.PROVIDES,
    "host.pools": Spec.links("pool", "the pools that are audited"),
    "host.zfs_loaded": Spec.flag("OpenZFS is in the kernel that runs"),
    "host.platform": Spec.word("in whose words fixes and remedies are (auditor/data/platforms.toml)"),
    "host.consistent": Spec.flag("the properties of datasets are to be read in one transaction group"),
    "host.waivers": Spec.links("waiver", "what the policy waives"),
    "waiver.expired": Spec.flag("its last day was over"),
    "waiver.used": Spec.flag("its rule found something, or could not decide, where it holds"),
    "waiver.in_view": Spec.flag("what it is about was judged this time"),
    "dataset.role": Spec.word("what the policy says it is for", "log", "data", "both", "rebuildable", "undeclared"),
    "dataset.database": Spec.word("the database that the policy names for it, or empty"),
    "pool.datasets": Spec.links("dataset", "what is audited of its datasets"),
    "host.database": Spec.word("the database that the user named for all datasets, or empty"),
    "host.connected_engine": Spec.word("the database that the user named a connection to, or empty"),
    "host.database_directory": Spec.word("where the user said that the data of that database lies, or empty"),
    "host.database_connection": Spec.word("how the user said to connect to it, or empty"),
    "database.live": Spec.flag("its settings are those in force: it says them itself"),
}
# Of many pools these are asked before all others: what they say decides the gravest rules, and a deadline may end the rest.
GRAVEST = ("zfs_get", "zfs_list", "zpool_status")


def read_host(gatherer: Gatherer, facts: Facts, inventory: Facts) -> None:
    """All files that are read once: releases, parameters, kstats, block devices. Starts no command. The inventory gets the
    facts of block devices: a host has more of them than the audit is about."""
    first = [
        name for name in of(gatherer.sources, "host") if isinstance(gatherer.sources[name].request(HOST, facts), Read)
    ]
    for name in first:
        gatherer.ask(name, [HOST], facts)
    gatherer.settle(facts, [name for name in first if gatherer.sources[name].subject != "disk"])
    gatherer.settle(inventory, first)
    witnesses.check_mount_namespace(facts)
    facts.put(platform := _platform(facts))
    gatherer.platform = str(platform.value.or_none() or platforms.ANY)


def _platform(facts: Facts) -> Fact:
    """Its platform, by the kernel where that tells, else by os-release: TrueNAS and Proxmox VE say Debian there."""
    ids, kernel = facts.get(HOST, "os_ids"), facts.get(HOST, "kernel_release")
    name = platforms.here(ids.words(), kernel.word())
    if isinstance(kernel, Unknown):
        return Fact(HOST, "platform", kernel)
    if name == platforms.ANY and isinstance(ids, Unknown):
        return Fact(HOST, "platform", ids)
    evidence = tuple(piece for each in (ids, kernel) if isinstance(each, Known) for piece in each.evidence)
    return Fact(HOST, "platform", Known(name, evidence))


def look_at_pools(
    gatherer: Gatherer, facts: Facts, inventory: Facts, roots: Sequence[Subject], imported: Sequence[str] = ()
) -> None:
    """The pools of the roots, the datasets under them, then the disks behind the leaves, while slower answers come in; last
    what the databases on them use elsewhere. imported: names of all pools of this host."""
    pools = tuple(dict.fromkeys(pool_of(root) for root in roots))
    for name in GRAVEST:
        gatherer.ask(name, roots if gatherer.sources[name].per == "target" else pools, facts)
    _look_into(gatherer, facts, pools)
    for name in of(gatherer.sources, "target"):
        gatherer.ask(name, roots, facts)
    others = [pool for name in imported if (pool := Subject("pool", name)) not in pools]
    for name in COLLECTORS:
        gatherer.ask(name, others, facts)
    _settle_disks(gatherer, inventory)
    if why := gatherer.failure("dmsetup_table", HOST):  # what is stacked is not among the disks that fill() looks after
        inventory.put_all(Fact(disk, "dm_targets", why) for disk in list(inventory.subjects("disk")))
    gatherer.settle(facts, ["zpool_status", "zpool_status_paths"])
    facts.put_all(zpool_status.join(facts))
    facts.put_all(block_tree.links(facts, inventory))
    for disk in sorted({disk for leaf in facts.subjects("leaf") for disk in facts.linked(leaf, "disks")}):
        facts.add(disk)
        for name, value in inventory.of(disk).items():
            facts.put(Fact(disk, name, value))
    _ask_disks(gatherer, facts, pools)
    holders = _holders(gatherer, facts, inventory)
    paths = layers.Paths(gatherer.host.steady)
    facts.put_all(list(layers.below(facts, holders, paths)))
    look_at_databases(gatherer, facts, inventory)
    more = layers.expand(facts, roots)
    pools = _bring(gatherer, facts, pools, more)
    gatherer.settle(facts)
    away = {each for each in facts.subjects("dataset") if facts.get(each, "mounted").or_none() is False}
    used = {place for each in facts.linked(HOST, "database_processes") for place in facts.linked(each, "datasets")}
    for name in of(gatherer.sources, "dataset"):
        gatherer.ask(name, sorted(away | used & set(facts.subjects("dataset"))), facts)
    gatherer.settle(facts)
    facts.put_all(list(zpool_status.adopt(facts)))
    facts.put_all(datasets_of(gatherer, facts, pools, roots, tuple(more)))
    facts.put_all(list(layers.above(facts, holders)))
    facts.put_all(list(layers.keys(facts, holders, paths)))
    witnesses.compare(facts)
    redis.compare(facts)
    fill(gatherer, facts)
    facts.put_all(list(users.users(facts, holders, paths)))  # of all reasons why something is not known, too


def holder(gatherer: Gatherer, facts: Facts, inventory: Facts, what: Mount | str) -> Place:
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
    gatherer.settle(
        inventory, [each for each in of(gatherer.sources, "host") if gatherer.sources[each].subject == "disk"]
    )


def _look_into(gatherer: Gatherer, facts: Facts, pools: Sequence[Subject]) -> None:
    for pool in pools:
        facts.add(pool)
    seen = (Evidence(", ".join(pool.name for pool in pools), "zpool list"),)
    facts.replace(Fact(HOST, "pools", Known(tuple(pools), seen)))
    for name in of(gatherer.sources, "pool"):
        gatherer.ask(name, pools, facts)


def _ask_disks(gatherer: Gatherer, facts: Facts, pools: Sequence[Subject]) -> None:
    """All questions about the disks of these pools; of those of other pools only their names, where unknown."""
    leaves = [leaf for leaf in facts.subjects("leaf") if pool_of(leaf) in pools]
    mine = {disk for leaf in leaves for disk in facts.linked(leaf, "disks")}
    disks = sorted(mine | {disk for disk in facts.subjects("disk") if nameless(disk, facts)})
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
    """pool.datasets: what is audited of each pool; unknown when one of its roots could not be listed. more: brought in,
    each alone; one that could not be looked at is there, and unknown."""
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
        yield Fact(pool, "datasets", Unknown.join(failures) if failures else Known(inside, (seen,)))


# -- neighbours -------------------------------------------------------------------------------------------------------
# Pools that are not audited, as far as they may share a disk with one that is. A log device that also holds the data of
# another pool dies with it, and waits for it. (``model/vdev.py``)

COLLECTORS = ("zpool_status", "zpool_status_paths")
NAMES = ("sysfs_serial", "udev_serial", "nvme_list_serial")


def nameless(disk: Subject, facts: Facts) -> bool:
    """Whether nothing that was asked once for all disks tells its serial number."""
    return not any(isinstance(found := facts.get(disk, name), Known) and found.value for name in NAMES)


# -- databases --------------------------------------------------------------------------------------------------------

PLACES: dict[str, tuple[str, ...]] = {
    "database_process": (),
    "redis_unit": (),
    "database_includes": (),
    "database_settings": ("directories",),
    "database_paths": ("mountinfo", "symlinks"),
    "database_links": ("more_symlinks",),
    "database_blocks": (),
}
"""What is asked one after the other, and what of it says where files are."""
STARTS = ("database_unit", "unit_start", "unit_conditions")  # once it is known where their file systems are mounted


def look_at_databases(gatherer: Gatherer, facts: Facts, inventory: Facts) -> None:
    """The servers that run and the one that is named: each question needs the answers of the one before."""
    gatherer.settle(facts, ["database_processes", "database_sql"])
    crowds = servers.choose(facts, lambda request: gatherer.host.read(request))
    named, directory = facts.get(HOST, "database").word(), facts.get(HOST, "database_directory").word()
    if facts.get(HOST, "database_connection").word() and (why := gatherer.failure("database_sql", HOST)):
        facts.put(Fact(HOST, "connected_database", why))
        if not facts.linked(HOST, "connected_database"):
            _not_reached(facts, facts.get(HOST, "connected_engine").word())
    if directory:
        subject = Subject("database", f"{named} {directory}")
        seen = (Evidence(f"--db {named}={directory}", "zaudit check --db"),)
        for name, value in (("engine", named), ("process", "self"), ("data_directory", directory)):
            facts.put(Fact(subject, name, Known(value, seen)))
        _add_database(facts, subject, seen)
    for subject in facts.linked(HOST, "connected_database"):
        _add_database(facts, subject, (Evidence("--db"),))
        facts.put(Fact(subject, "live", Known(True, (Evidence("the server itself was asked", "--db"),))))
    databases = [each for each in facts.subjects("database") if each not in crowds]
    for each, why in crowds.items():
        facts.put_all(Fact(each, name, why) for name in _database_facts(gatherer))
    held = settings.known_before(facts, databases)
    for name in PLACES:
        gatherer.ask(name, databases, facts)
        gatherer.settle(facts, [name])
        for each in databases:
            if why := gatherer.failure(name, each):  # else it would be "not looked at" to those that ask next
                facts.put_all(Fact(each, fact, why) for fact in PLACES[name] if fact not in facts.of(each))
    settings.withdraw(facts, databases, held, gatherer.sources["database_settings"].facts)
    for each in databases:
        facts.put(Fact(each, "live", _not_asked(facts, each)))
    overlays = layers.overlays_of_databases(paths.tables(facts), facts, gatherer.host)
    facts.put_all(list(paths.lies_on(facts, inventory, overlays)))
    for name in STARTS:
        gatherer.ask(name, databases, facts)
        gatherer.settle(facts, [name])
        for each in databases:
            if name == STARTS[0] and (why := gatherer.failure(name, each)):
                facts.put(Fact(each, "unit", why))


def _database_facts(gatherer: Gatherer) -> Iterator[str]:
    """The names of all facts of a database that anything here could give."""
    yield "live"
    for source in gatherer.sources.values():
        for name in source.facts:
            kind, _, bare = name.rpartition(".")
            if (kind or source.subject) == "database":
                yield bare


def _not_asked(facts: Facts, database: Subject) -> Judged:
    """Of one that does not answer it is open whether it is the one that was meant."""
    connected = facts.get(HOST, "connected_database")
    engine = facts.get(HOST, "connected_engine").word()
    if engine and isinstance(connected, Unknown) and database.name.startswith(f"{engine} "):
        return connected
    return Known(False, (Evidence("its files were read; the server was not queried"),))


def _not_reached(facts: Facts, engine: str) -> None:
    """A server that did not answer is undecided, and not left out. Where one of its kind runs here, it may be this one."""
    here = [each for each in facts.subjects("database") if each.name.startswith(f"{engine} ")]
    if not here:
        subject = Subject("database", f"{engine} {ELSEWHERE}")
        facts.put(Fact(subject, "engine", Known(engine, (Evidence(f"--db {engine}"),))))
        _add_database(facts, subject, (Evidence("--db"),))


def _add_database(facts: Facts, subject: Subject, seen: tuple[Evidence, ...]) -> None:
    """To those that were found; where nobody could see them, it stays unknown which there are."""
    found = facts.get(HOST, "database_processes")
    if isinstance(found, Known) and subject not in facts.linked(HOST, "database_processes"):
        both = (*facts.linked(HOST, "database_processes"), subject)
        facts.replace(Fact(HOST, "database_processes", Known(both, (*found.evidence, *seen))))
