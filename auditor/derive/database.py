"""What is known of the database that the user named (``--db``): the page size that its data files are written in."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data.databases import databases
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, Unknown, flag, number, unknown

SUBJECT = "dataset"
FACTS = {
    "db_named": flag("the user said which database runs here"),
    "db_page_bytes": number("page of the database's data files"),
}
NEEDS = ("host.database",)


def derive(dataset: Subject, facts: Facts) -> Iterator[Fact]:
    """db_page_bytes is the default of that database; a server built or set up otherwise is not seen here."""
    found = _of(facts)
    yield Fact(dataset, "db_named", found[0])
    yield Fact(dataset, "db_page_bytes", found[1])


_NONE = (Known(False, (Evidence("no database named", "--db"),)), unknown("no database was named", "--db"))
_SEEN: dict[str, tuple[Known, Known]] = {}


def _of(facts: Facts) -> tuple[Known | Unknown, Known | Unknown]:
    """The same two objects for every dataset."""
    named = facts.get(HOST, "database")
    if isinstance(named, Unknown):
        return named, named
    name = str(named.value)
    if not name:
        return _NONE
    if name not in _SEEN:
        database = databases()[name]
        seen = Evidence(f"{database.name} pages of {database.page_bytes} bytes by default", f"--db {name}")
        _SEEN[name] = Known(True, (seen,)), Known(database.page_bytes, (seen,))
    return _SEEN[name]
