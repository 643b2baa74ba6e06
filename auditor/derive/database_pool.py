"""Whether a database lies in one pool: what is in one pool goes back to one moment in a crash."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Evidence, Fact, Facts, Known, Subject, flag

SUBJECT = "database"
FACTS = {"one_pool": flag("all its files are in one pool")}
NEEDS = ("database.datasets",)


def derive(database: Subject, facts: Facts) -> Iterator[Fact]:
    """Unknown where its datasets are."""
    places = facts.get(database, "datasets")
    if isinstance(places, Known):
        pools = sorted({each.name.partition("/")[0] for each in facts.linked(database, "datasets")})
        places = Known(len(pools) == 1, (Evidence(f"files in {' and '.join(pools) or 'no pool'}"),))
    yield Fact(database, "one_pool", places)
