"""Which of the databases of this host the audit is about: those that keep something on a dataset that is audited, those of
which nobody knows where they keep it, and the one that the user named."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, links

SUBJECT = "host"
FACTS = {
    "databases": links("database", "the databases that the audit is about"),
}
NEEDS = ("host.database_processes", "database.process", "database.datasets")


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Unknown where nobody could see the processes."""
    processes = facts.get(HOST, "database_processes")
    if isinstance(processes, Unknown):
        yield Fact(HOST, "databases", processes)
        return
    audited = {each for pool in facts.linked(HOST, "pools") for each in facts.linked(pool, "datasets")}
    about = []
    for database in facts.linked(HOST, "database_processes"):
        places = facts.get(database, "datasets")
        named = facts.get(database, "process")
        mine = isinstance(named, Known) and named.value == "self"
        if mine or isinstance(places, Unknown) or audited & set(facts.linked(database, "datasets")):
            about.append(database)
    yield Fact(HOST, "databases", Known(tuple(about), processes.evidence))
