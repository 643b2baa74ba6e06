"""What a target brings along: a database that keeps something on what is audited is as safe as everything that it uses, so each
dataset on which it keeps files is audited too, whatever was named; and so on, for the databases that keep files on that.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from auditor.facts import Facts, Known, Subject, word

PROVIDES = {"dataset.brought": word("why it is audited though nobody named it")}
SELF = "self"  # in place of a process: a database that the user named by its folder
# of a dataset, which goes into commands: the first letter is that of a pool (man 8 zpool-create)
_NAME = re.compile(r"[A-Za-z][^@#]*", re.DOTALL)


def by_databases(facts: Facts, roots: Collection[Subject]) -> dict[Subject, str]:
    """The datasets that were not named, and why each is audited. roots: those that were, each with all below it."""
    names = {root.name for root in roots}
    waiting = list(facts.subjects("database"))
    found: dict[Subject, str] = {}
    while about := [each for each in waiting if _concerns(each, facts, names, found)]:
        for database in about:
            waiting.remove(database)
            for dataset in facts.linked(database, "datasets"):
                if not _below(dataset, names) and _NAME.fullmatch(dataset.name):
                    found.setdefault(dataset, _why(database, dataset, facts))
    return found


def _concerns(database: Subject, facts: Facts, names: Collection[str], found: Collection[Subject]) -> bool:
    process = facts.get(database, "process")
    if isinstance(process, Known) and process.value == SELF:
        return True
    return any(_below(each, names) or each in found for each in facts.linked(database, "datasets"))


def _below(dataset: Subject, names: Collection[str]) -> bool:
    """Whether it, or one above it, is among the names."""
    parts = dataset.name.split("/")
    return any("/".join(parts[:end]) in names for end in range(1, len(parts) + 1))


def _why(database: Subject, dataset: Subject, facts: Facts) -> str:
    log, data = (dataset in facts.linked(database, name) for name in ("log_datasets", "data_datasets"))
    what = "its log and its data" if log and data else "its log" if log else "data"
    return f"{database.name} keeps {what} there"
