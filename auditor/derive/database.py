"""What is known of the database of a dataset: that which the policy names, or the user for all (``--db``), or which was found
to keep its data there; and the page size that its data files are written in."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data.databases import databases
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, Unknown, flag, number, unknown

SUBJECT = "dataset"
FACTS = {
    "db_named": flag("which database runs here was said, or found"),
    "db_page_bytes": number("page of the database's data files"),
}
NEEDS = ("host.database", "dataset.database", "host.databases", "database.data_datasets", "database.page_bytes")


def derive(dataset: Subject, facts: Facts) -> Iterator[Fact]:
    """db_page_bytes of one that was named is the default of that database; a server built otherwise is not seen here."""
    found = _of(facts, dataset)
    yield Fact(dataset, "db_named", found[0])
    yield Fact(dataset, "db_page_bytes", found[1])


_NONE = (Known(False, (Evidence("no database named", "--db"),)), unknown("no database was named", "--db"))
_SEEN: dict[tuple[str, str], tuple[Known, Known]] = {}


def _of(facts: Facts, dataset: Subject) -> tuple[Known | Unknown, Known | Unknown]:
    """The same two objects for all datasets of a database."""
    declared, named = facts.get(dataset, "database"), facts.get(HOST, "database")
    for each in (declared, named):
        if isinstance(each, Known) and each.value:
            return _seen(str(each.value), each.evidence[0].command)
    if isinstance(named, Unknown):
        return named, named
    for database in facts.linked(HOST, "databases"):
        if dataset in facts.linked(database, "data_datasets"):
            return Known(True, (Evidence(f"{database.name} keeps its data here"),)), facts.get(database, "page_bytes")
    return _NONE


def _seen(name: str, command: str) -> tuple[Known, Known]:
    if (name, command) not in _SEEN:
        database = databases()[name]
        seen = Evidence(f"{database.name} pages of {database.page_bytes} bytes by default", command)
        _SEEN[name, command] = Known(True, (seen,)), Known(database.page_bytes, (seen,))
    return _SEEN[name, command]
