"""What a target brings along: a database that keeps something on what is audited is as safe as everything that it uses, so each
dataset on which it keeps files is audited too, whatever was named; and so on, for the databases that keep files on that. And a
pool is as safe as the datasets of this host that hold its leaves.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from auditor.databases import paths
from auditor.facts import Fact, Facts, Known, Subject, unknown, word

PROVIDES = {"dataset.brought": word("why it is audited though nobody named it")}
MOST = 64  # datasets that one database brings; for each some commands are run, and a process of anybody may have many links
SELF = "self"  # in place of a process: a database that the user named by its folder
# of a dataset, which goes into commands: the first letter is that of a pool (man 8 zpool-create)
_NAME = re.compile(r"[A-Za-z][^@#]*", re.DOTALL)


def along(facts: Facts, roots: Collection[Subject]) -> dict[Subject, str]:
    """The datasets that were not named, and why each is audited. roots: those that were, each with all below it. Where a
    database keeps its files is unknown afterwards, where it would bring more than MOST."""
    found: dict[Subject, str] = {}
    while True:
        before = len(found)
        for each, why in [*_by_databases(facts, roots, found), *_by_leaves(facts, roots, found)]:
            found.setdefault(each, why)
        if len(found) == before:
            return found


def _by_databases(
    facts: Facts, roots: Collection[Subject], found: Collection[Subject]
) -> Iterator[tuple[Subject, str]]:
    """What databases use that keep something on what is audited."""
    names = {root.name for root in roots}
    for database in facts.subjects("database"):
        if _concerns(database, facts, names, found):
            used = [each for each in facts.linked(database, "datasets") if not _below(each, names)]
            if len(used) > MOST:
                _withdraw(database, len(used), facts)
                continue
            for dataset in used:
                if dataset not in found and _NAME.fullmatch(dataset.name):
                    yield dataset, _why(database, dataset, facts)


def _withdraw(database: Subject, count: int, facts: Facts) -> None:
    text = f"{database.name} keeps files on {count:,} datasets that were not named, more than are looked at"
    for name in paths.PROVIDES:
        facts.replace(Fact(database, name.partition(".")[2], unknown(text, "zaudit check of the whole pools")))


def _by_leaves(facts: Facts, roots: Collection[Subject], found: Collection[Subject]) -> Iterator[tuple[Subject, str]]:
    """What the leaves of the pools lie on: zvols, and files."""
    names = {root.name for root in roots}
    for name in dict.fromkeys(each.name.partition("/")[0] for each in (*roots, *found)):
        for leaf in facts.linked(Subject("pool", name), "leaves"):
            for dataset in facts.linked(leaf, "lies_on"):
                if not _below(dataset, names) and _NAME.fullmatch(dataset.name):
                    yield dataset, f"{leaf.name} of pool {name} lies on it"


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
