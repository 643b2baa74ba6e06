"""Which of the databases of this host the audit is about: those that keep something on a dataset that is audited, or on a
pool whose datasets nobody could list, those of which nobody knows where they keep it, and the one that the user named."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, links

SUBJECT = "host"
FACTS = {
    "databases": links("database", "the databases that the audit is about"),
}


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Unknown where nobody could see the processes."""
    processes = facts.get(HOST, "database_processes")
    if isinstance(processes, Unknown):
        yield Fact(HOST, "databases", processes)
        return
    pools = facts.linked(HOST, "pools")
    audited = {each for pool in pools for each in facts.linked(pool, "datasets")}
    unlisted = {pool.name for pool in pools if isinstance(facts.get(pool, "datasets"), Unknown)}
    about = []
    for database in facts.linked(HOST, "database_processes"):
        places = facts.get(database, "datasets")
        named = facts.get(database, "process")
        mine = isinstance(named, Known) and named.value == "self"
        there = facts.linked(database, "datasets")
        if (
            mine
            or isinstance(places, Unknown)
            or any(each in audited or each.name.partition("/")[0] in unlisted for each in there)
        ):
            about.append(database)
    yield Fact(HOST, "databases", Known(tuple(about), processes.evidence))
