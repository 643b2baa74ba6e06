"""What is known of the database of a dataset: that which the policy names, or the user for all (``--db``), or which was found
to keep its data there (SQLite by its locks); and the page size that its data files are written in."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.databases import ENGINES
from auditor.derive.combine import every
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
    number,
    pairs_of,
    unknown,
    word,
)

SUBJECT = "dataset"
FACTS = {
    "db_named": flag("which database runs here was said, or found"),
    "db_engine": word("which it is", *ENGINES, "none"),
    "db_page_bytes": number("page of the database's data files"),
    "db_recordsize": number(
        "the least recordsize that fits it: its page, or 16 KiB, below which compression saves nothing; 32 KiB on raidz, dRAID"
    ),
}


def derive(dataset: Subject, facts: Facts) -> Iterator[Fact]:
    """db_page_bytes of one that was named is the default of that database; a server built otherwise is not seen here."""
    named, engine, page = _of(facts, dataset)
    fitting = _fitting(dataset, page, facts)
    yield from (Fact(dataset, name, value) for name, value in zip(FACTS, (named, engine, page, fitting), strict=True))


SMALLEST = 16 << 10  # four sectors of 4096 bytes (OpenZFS documentation, Workload Tuning: SQLite)


def _fitting(dataset: Subject, page: Judged, facts: Facts) -> Judged:
    """On raidz and dRAID more than the rule raidz-small-blocks objects to."""
    if not isinstance(page, Known) or not isinstance(page.value, int):
        return page
    vdevs = every(facts.get(each, "data_vdevs") for each in facts.linked(dataset, "pool"))
    if isinstance(vdevs, Unknown):
        return vdevs
    tops = (top for each in facts.linked(dataset, "pool") for top in facts.linked(each, "data_vdevs"))
    types = every(facts.get(top, "type") for top in tops)
    if isinstance(types, Unknown):
        return types
    spread = any(str(each.value).startswith(("raidz", "draid")) for each in types)
    return Known(max(page.value, 2 * SMALLEST if spread else SMALLEST), page.evidence)


Three = tuple[Judged, Judged, Judged]
_NOBODY = (Evidence("no database named", "--db"),)
_NONE = Known(False, _NOBODY), Known("none", _NOBODY), unknown("no database was named", "--db")
_SEEN: dict[tuple[str, str], Three] = {}


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


def _seen(name: str, command: str) -> Three:
    if (name, command) not in _SEEN:
        database = ENGINES[name]
        seen = Evidence(f"{database.title} is named", command)
        pages: Judged = unknown(f"{database.title} has no pages of one size")
        if database.page_bytes:
            seen = Evidence(f"{database.title} pages of {database.page_bytes} bytes by default", command)
            pages = Known(database.page_bytes, (seen,))
        _SEEN[name, command] = Known(True, (seen,)), Known(name, (seen,)), pages
    return _SEEN[name, command]
