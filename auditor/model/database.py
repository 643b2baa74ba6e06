"""Databases and where they keep their files: which the audit is about, which one a dataset belongs to, and how its files
are spread over datasets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from auditor.data import releases
from auditor.databases import ENGINES
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Reason,
    Spec,
    Subject,
    Unknown,
    Value,
    known,
    unknown,
)
from auditor.model.derivation import Missing, about, catch_missing, derivation, every, evidence, gaps
from auditor.text import harmless


@derivation("host", databases=Spec.links("database", "the databases that the audit is about"))
def databases(host: Subject, facts: Facts) -> Judged:
    """Which of the databases of this host the audit is about: those that keep something on a dataset that is audited, or on a
    pool whose datasets nobody could list, those of which nobody knows where they keep it, and the one that the user named.

    Unknown where nobody could see the processes."""
    processes = facts.need(HOST, "database_processes")
    pools = facts.linked(HOST, "pools")
    audited = {each for pool in pools for each in facts.linked(pool, "datasets")}
    unlisted = {pool.name for pool in pools if isinstance(facts.get(pool, "datasets"), Unknown)}
    about = []
    for database in facts.linked(HOST, "database_processes"):
        places = facts.linked(database, "datasets")
        mine = facts.get(database, "process").or_none() == "self" or isinstance(
            facts.get(database, "datasets"), Unknown
        )
        if mine or any(each in audited or each.name.partition("/")[0] in unlisted for each in places):
            about.append(database)
    return Known(tuple(about), processes.evidence)


@derivation(
    "dataset",
    db_named=Spec.flag("which database runs here was said, or found"),
    db_engine=Spec.word("which it is", *ENGINES, "none"),
    db_page_bytes=Spec.number("page of the database's data files"),
    db_recordsize=Spec.number(
        "the least recordsize that fits it: its page, or 16 KiB, below which compression saves nothing; "
        "32 KiB on raidz, dRAID"
    ),
)
def named_database(dataset: Subject, facts: Facts) -> Iterator[Fact]:
    """What is known of the database of a dataset: that which the policy names, or the user for all (``--db``), or which was
    found to keep its data there (SQLite by its locks); and the page size that its data files are written in.

    db_page_bytes of one that was named is the default of that database; a server built otherwise is not seen here."""
    named, engine, page = _of(facts, dataset)
    yield Fact(dataset, "db_named", named)
    yield Fact(dataset, "db_engine", engine)
    yield Fact(dataset, "db_page_bytes", page)
    yield Fact(dataset, "db_recordsize", _fitting(dataset, page, facts))


@catch_missing
def _fitting(dataset: Subject, page: Judged, facts: Facts) -> Judged:
    """On raidz and dRAID more than the rule raidz-small-blocks objects to."""
    size = page.need().number()
    every(facts.get(each, "data_vdevs") for each in facts.linked(dataset, "pool"))
    tops = (top for each in facts.linked(dataset, "pool") for top in facts.linked(each, "data_vdevs"))
    types = every(facts.get(top, "type") for top in tops)
    spread = any(str(each.value).startswith(("raidz", "draid")) for each in types)
    return Known(max(size, 2 * SMALLEST if spread else SMALLEST), page.need().evidence)


SMALLEST = 16 << 10  # four sectors of 4096 bytes (OpenZFS documentation, Workload Tuning: SQLite)
Three = tuple[Judged, Judged, Judged]
_NOBODY = (Evidence("no database named", "--db"),)
_NONE = Known(False, _NOBODY), Known("none", _NOBODY), unknown("no database was named", "--db")


def _of(facts: Facts, dataset: Subject) -> Three:
    """The same three objects for all datasets of a database."""
    declared, named = facts.get(dataset, "database"), facts.get(HOST, "database")
    for each in (declared, named):
        if isinstance(each, Known) and each.value:
            return _by_name(str(each.value), each.evidence[0].command)
    if isinstance(named, Unknown):
        return named, named, named
    found = facts.get(HOST, "databases")
    unseen = found if isinstance(found, Unknown) else None
    for database in facts.linked(HOST, "databases"):
        places = facts.get(database, "data_datasets")
        if isinstance(places, Unknown) and isinstance(facts.get(database, "process"), Known):  # it runs on this host
            unseen = places
        if dataset in facts.linked(database, "data_datasets"):
            here = (Evidence(f"{database.name} keeps its data here"),)
            return Known(True, here), facts.get(database, "engine"), facts.get(database, "page_bytes")
    return (unseen, unseen, unseen) if unseen else _of_sqlite(facts, dataset) or _NONE


def _of_sqlite(facts: Facts, dataset: Subject) -> Three | None:
    """Where files with its locks were seen. Where nobody could look for them it is as where there are none, as it is for those
    that have no lock now: the rules are about databases that are named or found."""
    held = facts.get(HOST, "sqlite_files")
    if isinstance(held, Known):
        for (name, _), seen in zip(held.pairs(), held.evidence, strict=False):
            if name == dataset.name:
                engine = ENGINES["sqlite"]
                page = Evidence(f"{engine.title} pages of {engine.page_bytes} bytes by default", seen.command)
                return Known(True, (seen,)), Known(engine.name, (seen,)), Known(engine.page_bytes, (seen, page))
    return None


@lru_cache(maxsize=64)
def _by_name(name: str, command: str) -> Three:
    database = ENGINES[name]
    seen = Evidence(f"{database.title} is named", command)
    pages: Judged = unknown(f"{database.title} has no pages of one size")
    if database.page_bytes:
        seen = Evidence(f"{database.title} pages of {database.page_bytes} bytes by default", command)
        pages = Known(database.page_bytes, (seen,))
    return Known(True, (seen,)), Known(name, (seen,)), pages


SAME = {"mariadb": "mysql"}  # a server of one is often asked for by the name of the other


@derivation(
    "host",
    database_expected=Spec.flag("--db or the policy names a database"),
    database_seen=Spec.flag("of each database that is named, a server or a data directory was found"),
)
def database_seen(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Whether the databases that the user or the policy names were found: where none was, nobody has looked at its settings.

    Unknown, never false: what was not found may run elsewhere, later, or out of sight."""
    expected = dict(_expected(facts))
    named = tuple(Evidence(f"{ENGINES[name].title} is named", command) for name, command in expected.items())
    yield Fact(HOST, "database_expected", Known(bool(expected), named or _NOBODY))
    facts.need(HOST, "databases")
    here = {}
    for database in facts.linked(HOST, "databases"):
        match facts.get(database, "engine"), facts.get(database, "unexamined"):
            case Known(str() as engine), Unknown():  # not one that stands for many
                here[SAME.get(engine, engine)] = database
    if missing := [name for name in expected if SAME.get(name, name) not in here]:
        raise Missing(Unknown(tuple(map(_unseen, missing))))
    seen = tuple(Evidence(f"{here[SAME.get(name, name)].name} was looked at", "ps -e") for name in expected)
    yield Fact(HOST, "database_seen", Known(True, seen or _NOBODY))


def _expected(facts: Facts) -> Iterator[tuple[str, str]]:
    asked = [(HOST, "database"), (HOST, "connected_engine")]
    for subject, fact in (*asked, *((each, "database") for each in facts.subjects("dataset"))):
        match facts.get(subject, fact):
            case Known(str() as name, seen) if name:
                yield name, seen[0].command if seen else "--db"


def _unseen(name: str) -> Reason:
    return Reason(
        f"no {ENGINES[name].title} was found that keeps files on what is audited: its settings were not looked at",
        f"start it, or name its data directory: --db {name}=DIR",
    )


@derivation(
    "database",
    one_pool=Spec.flag("all its files are in one pool, besides those that the policy says are rebuilt"),
    log_apart=Spec.flag("its log is written to other datasets than its data"),
)
def placement(database: Subject, facts: Facts) -> Iterator[Fact]:
    """How the files of a database are spread: whether one pool holds all, which a crash takes back to one moment, and whether
    its log is apart from its data, so that each has the settings that it needs.

    Unknown where its datasets are."""
    places = facts.get(database, "datasets")
    if isinstance(places, Known):
        all_of_it = facts.linked(database, "datasets")
        lasting = [each for each in all_of_it if facts.get(each, "role").or_none() != "rebuildable"]
        pools = sorted({each.name.partition("/")[0] for each in lasting or all_of_it})
        places = Known(len(pools) == 1, (Evidence(f"files in {' and '.join(pools) or 'no pool'}"),))
    yield Fact(database, "one_pool", places)
    log, data = ([each.name for each in facts.linked(database, name)] for name in ("log_datasets", "data_datasets"))
    facts.values(database, "log_datasets", "data_datasets")
    if not log and not data:
        raise Missing(unknown(f"{database.name}: none of its files was seen on a dataset"))
    text = f"log in {', '.join(log) or 'no dataset'}, data in {', '.join(data) or 'no dataset'}"
    yield Fact(database, "log_apart", Known(not set(log) & set(data), (Evidence(text),)))


@derivation(
    "host", **{"dataset.db_temporary": Spec.flag("the databases here keep nothing on it that they need after a crash")}
)
def temporary(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Whether a database keeps nothing on a dataset that it needs after a crash. False or unknown, never true.

    PostgreSQL removes temporary files in all tablespaces when it starts. But temp_tablespaces does not keep lasting tables
    out, and only the server knows which folder has which name. (postgres/postgres src/backend/storage/file/fd.c
    RemovePgTempFiles, src/backend/catalog/storage.c smgrGetPendingDeletes)"""
    databases = list(facts.subjects("database"))
    found: dict[Subject, list[Judged]] = {}
    for database in databases:
        for dataset in facts.linked(database, "datasets"):
            found.setdefault(dataset, []).append(_temporary(database, dataset, facts))
    holes = gaps((facts.get(HOST, "databases"), *(facts.get(each, "datasets") for each in databases)))
    elsewhere: Judged = Unknown.join(holes) if holes else known(False, "no database keeps files on it", "ps -e")
    for dataset in facts.subjects("dataset"):
        here = found.get(dataset, [])
        lasting = [each for each in here if isinstance(each, Known)]
        unsure = gaps(here)
        yield Fact(dataset, "db_temporary", lasting[0] if lasting else Unknown.join(unsure) if unsure else elsewhere)


@catch_missing
def _temporary(database: Subject, dataset: Subject, facts: Facts) -> Judged:
    if dataset not in facts.linked(database, "tablespace_datasets"):
        return known(False, f"{database.name} keeps more than tablespaces on it")
    named = facts.need(database, "temp_tablespaces")
    if not named.value:
        return Known(False, named.evidence)
    names = harmless(", ".join(named.words()))
    return unknown(
        f"{database.name}: temp_tablespaces = {names}; whether {dataset.name} holds these, and nothing else, is not known",
        f'declare {dataset.name} role = "rebuildable" in the policy, if so',
    )


# What the settings of a database mean for its commits and pages: what a restart changes, flushes that it leaves out, and
# pages that a crash may tear.

UNSAID = "default"  # the server names the value that it took


@derivation(
    "database",
    changes_at_restart=Spec.words(
        "NAME is VALUE now but VALUE in its files: settings in force that its files do not say"
    ),
)
def changes_at_restart(database: Subject, facts: Facts) -> Judged:
    """What a restart or a reload would change: where the server itself was asked, and its files say otherwise."""
    now, then = facts.values(database, "in_force", "configured")
    said = _pairs(then)
    changes = [(name, value) for name, value in _pairs(now).items() if said.get(name, value) not in (value, UNSAID)]
    seen = (*now.evidence, *then.evidence)
    found = tuple(f"{_setting(name, seen)} is {value} now but {said[name]} in its files" for name, value in changes)
    names = tuple(name for name, _ in changes)
    if not found and (hidden := sorted(said.keys() - _pairs(now).keys())):
        return unknown(f"{database}: the server did not say what is in force of {', '.join(hidden)}")
    return Known(found, tuple(each for each in seen if not names or each.text.startswith(_spelt(names))))


_SPELT = {
    "torn_page_guard": ("full_page_writes", "innodb_doublewrite"),
    "flush_log_at_commit": ("innodb_flush_log_at_trx_commit",),
    "flush_method": ("innodb_flush_method",),
    "doublewrite": ("innodb_doublewrite",),
}


def _spelt(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(spelling for name in names for spelling in _SPELT.get(name, (name,)))


def _setting(name: str, seen: tuple[Evidence, ...]) -> str:
    """As the engine spells it that was asked."""
    spellings = _spelt((name,))
    return next((each for each in spellings if any(one.text.startswith(each) for one in seen)), spellings[0])


def _pairs(found: Known) -> dict[str, str]:
    return {name: value for name, _, value in (each.partition(" = ") for each in found.words())}


OF_ALL: dict[str, tuple[Value, ...]] = {"eatmydata": (True,)}
BINARY_LOG = "sync_binlog"  # any value but 1


@derivation(
    "host", **{"dataset.flushes_omitted": Spec.words("DATABASE: SETTING of the databases on it that leave out flushes")}
)
def flushes_omitted(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Which databases on a dataset leave out flushes of what they have written: then sync=always keeps their commits, as
    each write is in the log before write(2) returns. It does not help where a server acknowledges before it writes
    (synchronous_commit off, innodb_flush_log_at_trx_commit 0).

    Unknown where a database, its place or its settings were not seen, unless one that was seen leaves flushes out. (OpenZFS
    module/zfs/zfs_vnops.c zfs_write: zil_commit with ZFS_SYNC_ALWAYS, 2.1.11, 2.3.9, 2.4.4)"""
    databases = facts.linked(HOST, "databases")
    unseen = gaps((facts.get(HOST, "databases"), *(facts.get(each, "datasets") for each in databases)))
    omitted: dict[Subject, list[Evidence]] = {}
    unsure: dict[Subject, list[Unknown]] = {}
    for database in databases:
        found, holes = _omitted(database, facts)
        for dataset in facts.linked(database, "datasets"):
            omitted.setdefault(dataset, []).extend(found)
            unsure.setdefault(dataset, []).extend(holes)
    nothing = known((), "no database that leaves out flushes was seen on it")
    for dataset in facts.subjects("dataset"):
        here: Judged = nothing
        if seen := omitted.get(dataset):
            here = Known(tuple(each.text for each in seen), tuple(seen))
        elif doubts := (*unseen, *unsure.get(dataset, ())):
            here = Unknown.join(doubts)
        yield Fact(dataset, "flushes_omitted", here)


def _omitted(database: Subject, facts: Facts) -> tuple[list[Evidence], list[Unknown]]:
    """The settings with which it leaves out flushes, and those that were not seen."""
    engine = facts.get(database, "engine")
    if isinstance(engine, Unknown):
        return [], [engine]
    settings = {**ENGINES[str(engine.value)].omitting, **(OF_ALL if database.name.split()[-1].isdigit() else {})}
    found, holes = list[Evidence](), list[Unknown]()
    for name in (*settings, *((BINARY_LOG,) if BINARY_LOG in ENGINES[str(engine.value)].compared else ())):
        value = facts.get(database, name)
        if isinstance(value, Unknown):
            holes.append(value)
        elif value.value != 1 if name == BINARY_LOG else value.value in settings[name]:
            found += [each._replace(text=f"{database.name}: {each.text}") for each in value.evidence[:1]]
    return found, holes


SPLITS_LESS, DIRECT_IO, HALF_A_BLOCK = (2, 2), (2, 3), (2, 4)  # since which line
BUFFERED = ("FSYNC", "O_DSYNC", "LITTLESYNC", "NOSYNC")  # innodb_flush_method without O_DIRECT
HEADERS = 184 + 192  # bytes of a log block that hold no data: zil_chain_t, lr_write_t (include/sys/zil.h)
RECORD = 192  # lr_write_t; its data is filled up to a multiple of 8


def whole_write(version: tuple[object, ...]) -> int:
    """The bytes of a write that the log never splits: its record is no longer than the rest of a block that the log would
    rather waste, an eighth of its largest block in 2.1, a sixteenth from 2.2 on. The rest is a multiple of 8."""
    waste = (releases.TORN_CONDITIONS["zil_maxblocksize"] - HEADERS) // (8 if version[:2] < SPLITS_LESS else 16)
    return (waste + 7) // 8 * 8 - RECORD


@derivation(
    "database",
    page_within_block=Spec.flag("each page of the data files that it has lies within one block"),
    log_splits_page=Spec.flag("the intent log may write a page in two parts"),
)
def whole_pages(database: Subject, facts: Facts) -> Iterator[Fact]:
    """Whether a crash may leave a page half old, half new, where only ZFS keeps it whole.

    A transaction group writes whole blocks, so a page within one block stays whole. The intent log splits a write that does
    not fit into the rest of a log block, and replay applies the first part alone where the second is lost. Which pages come
    apart was tried (data/releases.toml); the rest is unknown, as are pages without a known size. (OpenZFS module/zfs/zil.c
    zil_lwb_commit of 2.1, zil_lwb_assign since 2.2, zil_max_waste_space; zfs_log.c zfs_log_write, zil_write_state of 2.4;
    tests/lab/points/README.md)"""
    page, blocks = facts.need(database, "page_bytes").number(), facts.get(database, "data_blocks")
    small = any(_bytes(each) < page for each in blocks.words())
    yield Fact(database, "page_within_block", blocks._replace(value=not small) if isinstance(blocks, Known) else blocks)
    yield Fact(database, "log_splits_page", _split(database, page, facts))


def _bytes(line: str) -> int:
    return int(line.partition(" ")[0])


@catch_missing
def _split(database: Subject, page: int, facts: Facts) -> Judged:
    """One dataset on which it may happen decides."""
    places = facts.need(database, "data_datasets")
    found = [_split_on(database, each, page, facts) for each in facts.linked(database, "data_datasets")]
    if splitting := [each for each in found if isinstance(each, Known) and each.value]:
        return splitting[0]
    if holes := gaps(found):
        return Unknown.join(holes)
    return Known(False, evidence(*found) or places.evidence)


@catch_missing
def _split_on(database: Subject, dataset: Subject, page: int, facts: Facts) -> Judged:
    sync = facts.need(dataset, "sync")
    if sync.value == "disabled":  # then nothing is in the log
        return Known(False, about(dataset, sync))
    release, logbias, engine, record, *values = every(
        (
            facts.get(HOST, "zfs_version"),
            facts.get(dataset, "logbias"),
            facts.get(database, "engine"),
            facts.get(dataset, "recordsize"),
            *(facts.get(HOST, name) for name in releases.TORN_CONDITIONS),
            *(facts.get(pool, "zil_class") for pool in facts.linked(dataset, "pool")),
        )
    )
    version = release.value
    assert isinstance(version, tuple)
    table = releases.find_torn_pages(version)
    set_to = tuple(each.value for each in values)
    if table is None or set_to not in tuple((*releases.TORN_CONDITIONS.values(), each) for each in ("log", "normal")):
        return _not_tried(page, version)
    ways: tuple[releases.Way, ...] = ("fsync",) if engine.value == "postgres" else ("fsync", "always")
    if sync.value == "always":
        ways = ("always",)
    settings = [releases.TornSetting(page, str(logbias.value), each, set_to[-1] == "log") for each in ways]
    files = facts.get(database, "data_blocks")  # of files that are older than the recordsize, or short
    blocks = {record.number(), *(_bytes(each) for each in files.words())}
    if isinstance(files, Unknown):
        blocks |= {page, releases.LARGEST_RECORD}
    tried = [table.lengths_apart(each, blocks) for each in settings]
    counts = [count for each in tried for count in each or ()]
    if None in tried or not counts:
        return _not_tried(page, version)
    if not all(counts) and any(counts):
        files.need()
    if any(counts) and (direct := _direct(database, dataset, version, facts)):
        return direct
    line, most = ".".join(map(str, version[:2])), max(counts)
    words = f"at {most} of {table.lengths} lengths" if most else f"at none of {table.lengths} lengths"
    found = f"OpenZFS {line}: pages of {page:,} bytes came apart in the log {words} of the writes next to them"
    command = next((each.command for each in release.evidence), "")
    return Known(any(counts), (*known(True, found, command).evidence, *about(dataset, logbias)))


def _not_tried(page: int, version: tuple[object, ...]) -> Unknown:
    here = f"pages of {page:,} bytes with these settings were not tried on OpenZFS {'.'.join(map(str, version))}"
    why = releases.nature(version) or here
    bound = f"the log never splits a write of {whole_write(version):,} bytes and less, and may split a longer one"
    return unknown(f"{why}; by its source {bound}", "turn the guard against torn pages on")


@catch_missing
def _direct(database: Subject, dataset: Subject, version: tuple[object, ...], facts: Facts) -> Unknown | None:
    """Unknown where pages may be written with Direct I/O, for which the log holds a pointer too: whether each of them is,
    nobody sees, for ZFS falls back where a file is also mapped."""
    if version[:2] < DIRECT_IO and not releases.untold(version, DIRECT_IO):
        return None
    needed = every((facts.get(HOST, "zfs_dio_enabled"), facts.get(dataset, "direct"), facts.get(database, "engine")))
    enabled, direct, engine = (each.value for each in needed)
    buffered = engine == "postgres" or facts.get(database, "flush_method").or_none() in BUFFERED
    if not enabled or direct == "disabled" or (direct == "standard" and buffered):
        return None
    return unknown(
        f"whether {database.name} writes all pages with Direct I/O, so that the log holds pointers to them, is not seen",
        "turn the guard against torn pages on",
    )
