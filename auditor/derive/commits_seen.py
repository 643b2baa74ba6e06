"""How many commits a second a pool has seen, at the least: OpenZFS counts them for each dataset since it was mounted (2.2 and
later). A program that nobody knows by name commits, too."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Fact, Facts, Known, Subject, known, real

SUBJECT = "pool"
FACTS = {
    "commits_seen": real("commits a second of its busiest dataset since that was mounted, as far as they were counted")
}
NEEDS = ("dataset.zil_commit_count", "dataset.zil_counted_s", "pool.datasets")
LEAST_S = 600  # what came together at a start says nothing of the day


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """A lower bound: 0 where nothing was counted."""
    most, seen = 0.0, known(0.0, "no commits were counted on its datasets")
    for dataset in facts.linked(pool, "datasets"):
        match facts.get(dataset, "zil_commit_count"), facts.get(dataset, "zil_counted_s"):
            case Known(int() as count) as counted, Known(int() | float() as over) if over >= LEAST_S:
                if (each := round(count / over, 1)) > most:
                    most, seen = each, Known(each, counted.evidence)
    yield Fact(pool, "commits_seen", seen)
