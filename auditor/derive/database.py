"""What is known of the database that the policy names for a dataset, or the user for all (``--db``): the page size that its
data files are written in."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data.databases import databases
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, Unknown, flag, number, unknown

SUBJECT = "dataset"
FACTS = {
    "db_named": flag("the user said which database runs here"),
    "db_page_bytes": number("page of the database's data files"),
}
NEEDS = ("host.database", "dataset.database")


def derive(dataset: Subject, facts: Facts) -> Iterator[Fact]:
    """db_page_bytes is the default of that database; a server built or set up otherwise is not seen here."""
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
    return (named, named) if isinstance(named, Unknown) else _NONE


def _seen(name: str, command: str) -> tuple[Known, Known]:
    if (name, command) not in _SEEN:
        database = databases()[name]
        seen = Evidence(f"{database.name} pages of {database.page_bytes} bytes by default", command)
        _SEEN[name, command] = Known(True, (seen,)), Known(database.page_bytes, (seen,))
    return _SEEN[name, command]
