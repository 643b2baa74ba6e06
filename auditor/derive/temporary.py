"""Whether what a database keeps on a dataset is temporary: removed at each of its starts, so that a crash may take it.

PostgreSQL removes the files of sorts and of temporary tables in all tablespaces when it starts, and writes none of them to
its log. But nothing keeps lasting tables out of a tablespace that temp_tablespaces names, and which folder belongs to which
name only the server knows: of a dataset with nothing but tablespaces that is not told.
(postgres/postgres src/backend/storage/file/fd.c RemovePgTempFiles, src/backend/catalog/storage.c smgrGetPendingDeletes)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, flag, join, known, unknown
from auditor.text import harmless

SUBJECT = "host"  # several databases may keep files on one dataset
FACTS = {"dataset.db_temporary": flag("the databases here keep nothing on it that they need after a crash")}


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Of every dataset: false, or unknown; never true."""
    databases = list(facts.subjects("database"))
    found: dict[Subject, list[Judged]] = {}
    for database in databases:
        for dataset in facts.linked(database, "datasets"):
            found.setdefault(dataset, []).append(_temporary(database, dataset, facts))
    places = [facts.get(HOST, "databases"), *(facts.get(each, "datasets") for each in databases)]
    holes = [each for each in places if isinstance(each, Unknown)]
    elsewhere: Judged = join(holes) if holes else known(False, "no database keeps files on it", "ps -e")
    for dataset in facts.subjects("dataset"):
        here = found.get(dataset, [])
        lasting = [each for each in here if isinstance(each, Known)]
        unsure = [each for each in here if isinstance(each, Unknown)]
        yield Fact(dataset, "db_temporary", lasting[0] if lasting else join(unsure) if unsure else elsewhere)


def _temporary(database: Subject, dataset: Subject, facts: Facts) -> Judged:
    if dataset not in facts.linked(database, "tablespace_datasets"):
        return known(False, f"{database.name} keeps more than tablespaces on it")
    named = facts.get(database, "temp_tablespaces")
    if isinstance(named, Unknown):
        return named
    if not named.value:
        return Known(False, named.evidence)
    assert isinstance(named.value, tuple)
    names = harmless(", ".join(map(str, named.value)))
    return unknown(
        f"{database.name}: temp_tablespaces = {names}; whether {dataset.name} holds these, and nothing else, is not known",
        f'declare {dataset.name} role = "rebuildable" in the policy, if so',
    )
