"""Which of the databases of this host the audit is about: those that keep something on a dataset that is audited, those of
which nobody knows where they keep it, and the one that the user named."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, Unknown, flag, links

SUBJECT = "host"
FACTS = {
    "databases": links("database", "the databases that the audit is about"),
    "database.one_pool": flag("all its files are in one pool"),
}
NEEDS = ("host.database_processes", "database.process", "database.datasets")


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Both facts."""
    processes = facts.get(HOST, "database_processes")
    if isinstance(processes, Unknown):
        yield Fact(HOST, "databases", processes)
        return
    audited = {each for pool in facts.linked(HOST, "pools") for each in facts.linked(pool, "datasets")}
    about = []
    for database in facts.linked(HOST, "database_processes"):
        places = facts.get(database, "datasets")
        named = facts.get(database, "process")
        if isinstance(places, Known):
            pools = sorted({each.name.partition("/")[0] for each in facts.linked(database, "datasets")})
            text = f"files in {' and '.join(pools) or 'no pool'}"
            yield Fact(database, "one_pool", Known(len(pools) == 1, (Evidence(text),)))
        else:
            yield Fact(database, "one_pool", places)
        mine = isinstance(named, Known) and named.value == "self"
        if mine or isinstance(places, Unknown) or audited & set(facts.linked(database, "datasets")):
            about.append(database)
    yield Fact(HOST, "databases", Known(tuple(about), processes.evidence))
