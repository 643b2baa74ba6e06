"""How the files of a database are spread: whether one pool holds all, which a crash takes back to one moment, and whether
its log is apart from its data, so that each has the settings that it needs."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Evidence, Fact, Facts, Known, Subject, Unknown, flag, join, unknown

SUBJECT = "database"
FACTS = {
    "one_pool": flag("all its files are in one pool, besides those that the policy says are rebuilt"),
    "log_apart": flag("its log is written to other datasets than its data"),
}


def derive(database: Subject, facts: Facts) -> Iterator[Fact]:
    """Unknown where its datasets are."""
    places = facts.get(database, "datasets")
    if isinstance(places, Known):
        all_of_it = facts.linked(database, "datasets")
        lasting = [each for each in all_of_it if not _rebuilt(each, facts)]
        pools = sorted({each.name.partition("/")[0] for each in lasting or all_of_it})
        places = Known(len(pools) == 1, (Evidence(f"files in {' and '.join(pools) or 'no pool'}"),))
    yield Fact(database, "one_pool", places)
    holes = [
        hole for name in ("log_datasets", "data_datasets") if isinstance(hole := facts.get(database, name), Unknown)
    ]
    if holes:
        yield Fact(database, "log_apart", join(holes))
        return
    log, data = ([each.name for each in facts.linked(database, name)] for name in ("log_datasets", "data_datasets"))
    if not log and not data:
        yield Fact(database, "log_apart", unknown(f"{database.name}: none of its files was seen on a dataset"))
        return
    said = f"log in {', '.join(log) or 'no dataset'}, data in {', '.join(data) or 'no dataset'}"
    yield Fact(database, "log_apart", Known(not set(log) & set(data), (Evidence(said),)))


def _rebuilt(dataset: Subject, facts: Facts) -> bool:
    """Declared so; what nobody declares is not."""
    role = facts.get(dataset, "role")
    return isinstance(role, Known) and role.value == "rebuildable"
