"""How many commits a second a pool has seen, at the least: OpenZFS counts them for each dataset since it was mounted (2.2 and
later). A program that nobody knows by name commits, too. And who is known to write to it synchronously: clients of NFS (each
COMMIT of theirs), guests, targets of block devices and volumes of pods.

Both are lower bounds, empty where nothing was seen: that one cannot see the processes of the host must not undo what a
database or a property has decided. So they may show that a pool has commits to wait for, never that it has none.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Fact, Facts, Known, Subject, is_true, known, real, words, words_of

SUBJECT = "pool"
FACTS = {
    "commits_seen": real("commits a second of its busiest dataset since that was mounted, as far as they were counted"),
    "committers_seen": words("NFS exports, guests, targets and pods that use its datasets, as far as they were seen"),
}
TOLD = 5
AMONG_THE_HOST = "container "  # its programs write as those of the host do
LEAST_S = 600  # what came together at a start says nothing of the day


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """Lower bounds: 0 where nothing was counted."""
    most, seen = 0.0, known(0.0, "no commits were counted on its datasets")
    for dataset in facts.linked(pool, "datasets"):
        match facts.get(dataset, "zil_commit_count"), facts.get(dataset, "zil_counted_s"):
            case Known(int() as count) as counted, Known(int() | float() as over) if over >= LEAST_S:
                if (each := round(count / over, 1)) > most:
                    most, seen = each, Known(each, counted.evidence)
    yield Fact(pool, "commits_seen", seen)
    yield Fact(pool, "committers_seen", _committers(pool, facts))


def _committers(pool: Subject, facts: Facts) -> Known:
    found = list[str]()
    for dataset in facts.linked(pool, "datasets"):
        exported, used = facts.get(dataset, "nfs_exported_now"), facts.get(dataset, "used_by")
        by = ["an NFS export"] if is_true(exported) else []
        by += [each for each in words_of(used) if not each.startswith(AMONG_THE_HOST)]
        found += [f"{dataset.name}: {each}" for each in by]
    more = [f"and {len(found) - TOLD} more"] if len(found) > TOLD else []
    if not found:
        return known((), "no export, guest, target or pod was seen to use its datasets")
    return known((*found[:TOLD], *more), "; ".join((*found[:TOLD], *more)))
