"""Databases and where they keep their files: which the audit is about, which one a dataset belongs to, and how its files
are spread over datasets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from auditor.databases import ENGINES
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Reason,
    Subject,
    Unknown,
    flag,
    join,
    known,
    links,
    number,
    number_of,
    pairs_of,
    unknown,
    value_of,
    word,
    words_of,
)
from auditor.model.derivation import Missing, catch_missing, derivation, every, gaps, need, values
from auditor.text import harmless


@derivation("host", databases=links("database", "the databases that the audit is about"))
def databases(host: Subject, facts: Facts) -> Judged:
    """Which of the databases of this host the audit is about: those that keep something on a dataset that is audited,
    or on a pool whose datasets nobody could list, those of which nobody knows where they keep it, and the one that
    the user named.

    Unknown where nobody could see the processes.
    """
    processes = need(facts.get(HOST, "database_processes"))
    pools = facts.linked(HOST, "pools")
    audited = {each for pool in pools for each in facts.linked(pool, "datasets")}
    unlisted = {pool.name for pool in pools if isinstance(facts.get(pool, "datasets"), Unknown)}
    about = []
    for database in facts.linked(HOST, "database_processes"):
        places = facts.linked(database, "datasets")
        mine = value_of(facts.get(database, "process")) == "self" or isinstance(
            facts.get(database, "datasets"), Unknown
        )
        if mine or any(each in audited or each.name.partition("/")[0] in unlisted for each in places):
            about.append(database)
    return Known(tuple(about), processes.evidence)


@derivation(
    "dataset",
    db_named=flag("which database runs here was said, or found"),
    db_engine=word("which it is", *ENGINES, "none"),
    db_page_bytes=number("page of the database's data files"),
    db_recordsize=number(
        "the least recordsize that fits it: its page, or 16 KiB, below which compression saves nothing; "
        "32 KiB on raidz, dRAID"
    ),
)
def named_database(dataset: Subject, facts: Facts) -> Iterator[Fact]:
    """What is known of the database of a dataset: that which the policy names, or the user for all (``--db``), or
    which was found to keep its data there (SQLite by its locks); and the page size that its data files are written
    in.

    db_page_bytes of one that was named is the default of that database; a server built otherwise is not seen here.
    """
    named, engine, page = _of(facts, dataset)
    yield Fact(dataset, "db_named", named)
    yield Fact(dataset, "db_engine", engine)
    yield Fact(dataset, "db_page_bytes", page)
    yield Fact(dataset, "db_recordsize", _fitting(dataset, page, facts))


@catch_missing
def _fitting(dataset: Subject, page: Judged, facts: Facts) -> Judged:
    """On raidz and dRAID more than the rule raidz-small-blocks objects to."""
    size = number_of(need(page))
    every(facts.get(each, "data_vdevs") for each in facts.linked(dataset, "pool"))
    tops = (top for each in facts.linked(dataset, "pool") for top in facts.linked(each, "data_vdevs"))
    types = every(facts.get(top, "type") for top in tops)
    spread = any(str(each.value).startswith(("raidz", "draid")) for each in types)
    return Known(max(size, 2 * SMALLEST if spread else SMALLEST), need(page).evidence)


SMALLEST = 16 << 10  # four sectors of 4096 bytes (OpenZFS documentation, Workload Tuning: SQLite)
Three = tuple[Judged, Judged, Judged]
_NOBODY = (Evidence("no database named", "--db"),)
_NONE = Known(False, _NOBODY), Known("none", _NOBODY), unknown("no database was named", "--db")


def _of(facts: Facts, dataset: Subject) -> Three:
    """The same three objects for all datasets of a database."""
    declared, named = facts.get(dataset, "database"), facts.get(HOST, "database")
    for each in (declared, named):
        if isinstance(each, Known) and each.value:
            return _seen(str(each.value), each.evidence[0].command)
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
        for (name, _), seen in zip(pairs_of(held), held.evidence, strict=False):
            if name == dataset.name:
                engine = ENGINES["sqlite"]
                page = Evidence(f"{engine.title} pages of {engine.page_bytes} bytes by default", seen.command)
                return Known(True, (seen,)), Known(engine.name, (seen,)), Known(engine.page_bytes, (seen, page))
    return None


@lru_cache(maxsize=64)
def _seen(name: str, command: str) -> Three:
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
    database_expected=flag("--db or the policy names a database"),
    database_seen=flag("of each database that is named, a server or a data directory was found"),
)
def database_seen(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Whether the databases that the user or the policy names were found: where none was, nobody has looked at its
    settings.

    Unknown, never false: what was not found may run elsewhere, later, or out of sight.
    """
    expected = dict(_expected(facts))
    named = tuple(Evidence(f"{ENGINES[name].title} is named", command) for name, command in expected.items())
    yield Fact(HOST, "database_expected", Known(bool(expected), named or _NOBODY))
    need(facts.get(HOST, "databases"))
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
    """(the word for a database, what names it)."""
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
    one_pool=flag("all its files are in one pool, besides those that the policy says are rebuilt"),
    log_apart=flag("its log is written to other datasets than its data"),
)
def placement(database: Subject, facts: Facts) -> Iterator[Fact]:
    """How the files of a database are spread: whether one pool holds all, which a crash takes back to one moment, and
    whether its log is apart from its data, so that each has the settings that it needs.

    Unknown where its datasets are.
    """
    places = facts.get(database, "datasets")
    if isinstance(places, Known):
        all_of_it = facts.linked(database, "datasets")
        lasting = [each for each in all_of_it if value_of(facts.get(each, "role")) != "rebuildable"]
        pools = sorted({each.name.partition("/")[0] for each in lasting or all_of_it})
        places = Known(len(pools) == 1, (Evidence(f"files in {' and '.join(pools) or 'no pool'}"),))
    yield Fact(database, "one_pool", places)
    log, data = ([each.name for each in facts.linked(database, name)] for name in ("log_datasets", "data_datasets"))
    values(facts, database, "log_datasets", "data_datasets")
    if not log and not data:
        raise Missing(unknown(f"{database.name}: none of its files was seen on a dataset"))
    text = f"log in {', '.join(log) or 'no dataset'}, data in {', '.join(data) or 'no dataset'}"
    yield Fact(database, "log_apart", Known(not set(log) & set(data), (Evidence(text),)))


@derivation(
    "host", **{"dataset.db_temporary": flag("the databases here keep nothing on it that they need after a crash")}
)
def temporary(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Whether what a database keeps on a dataset is temporary: removed at each of its starts, so that a crash may take
    it.

    PostgreSQL removes the files of sorts and of temporary tables in all tablespaces when it starts, and writes none
    of them to its log. But nothing keeps lasting tables out of a tablespace that temp_tablespaces names, and which
    folder belongs to which name only the server knows: of a dataset with nothing but tablespaces that is not told.
    (postgres/postgres src/backend/storage/file/fd.c RemovePgTempFiles, src/backend/catalog/storage.c
    smgrGetPendingDeletes)

    False, or unknown; never true. Several databases may keep files on one dataset.
    """
    databases = list(facts.subjects("database"))
    found: dict[Subject, list[Judged]] = {}
    for database in databases:
        for dataset in facts.linked(database, "datasets"):
            found.setdefault(dataset, []).append(_temporary(database, dataset, facts))
    holes = gaps((facts.get(HOST, "databases"), *(facts.get(each, "datasets") for each in databases)))
    elsewhere: Judged = join(holes) if holes else known(False, "no database keeps files on it", "ps -e")
    for dataset in facts.subjects("dataset"):
        here = found.get(dataset, [])
        lasting = [each for each in here if isinstance(each, Known)]
        unsure = gaps(here)
        yield Fact(dataset, "db_temporary", lasting[0] if lasting else join(unsure) if unsure else elsewhere)


@catch_missing
def _temporary(database: Subject, dataset: Subject, facts: Facts) -> Judged:
    if dataset not in facts.linked(database, "tablespace_datasets"):
        return known(False, f"{database.name} keeps more than tablespaces on it")
    named = need(facts.get(database, "temp_tablespaces"))
    if not named.value:
        return Known(False, named.evidence)
    names = harmless(", ".join(words_of(named)))
    return unknown(
        f"{database.name}: temp_tablespaces = {names}; whether {dataset.name} holds these, and nothing else, is not known",
        f'declare {dataset.name} role = "rebuildable" in the policy, if so',
    )
