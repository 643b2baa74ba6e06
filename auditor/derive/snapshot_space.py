"""How much of a pool snapshots hold, at least, and on which datasets.

OpenZFS tells it in one property each (usedbysnapshots); it follows from those that are read anyway: what a dataset uses beyond
what it refers to and beyond what its children use or have reserved is held by its snapshots, or reserved for itself, as of a
volume: so much less they hold at least. Of a clone, which refers to what it shares with its origin and does not use it, it is
all that can be told. (man 7 zfsprops: used, referenced, refreservation; module/zfs/dsl_dir.c dd_used_breakdown)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from auditor.facts import Evidence, Fact, Facts, Judged, Known, Subject, Unknown, number, unknown, word_of, words
from auditor.text import quoted
from auditor.units import size

SUBJECT = "pool"
FACTS = {
    "snapshots_percent": number("share of the space for data that snapshots hold at least, percent"),
    "snapshots_percent_most": number("share that they hold at most, where that is the same"),
    "held_by_snapshots": words("DATASET (size) where they hold most"),
}
SIZES = ("used", "available", "referenced", "refreservation", "reservation")
NAMED = 3
NO_CLONE = ""
LEAST = 1 << 20  # bytes: of a dataset without a snapshot it is not quite zero


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """Unknown unless the whole pool was looked at."""
    found = _held(pool, facts)
    if isinstance(found, Unknown):
        yield from (Fact(pool, name, found) for name in FACTS)
        return
    root = Subject("dataset", pool.name)
    space = _bytes(facts, root, "used") + _bytes(facts, root, "available")
    least = {name: bounds[0] for name, bounds in found.items() if bounds[0] >= LEAST}
    named = tuple(f"{name} ({size(count)})" for name, count in sorted(least.items(), key=lambda each: -each[1])[:NAMED])
    total, most = sum(least.values()), sum(bounds[1] for bounds in found.values())
    text = f"snapshots hold {size(total)} of {size(space)}" + (f", most of it on {', '.join(named)}" if named else "")
    hidden = f"what is reserved or cloned may hide {size(most - total)} more that snapshots hold"
    seen = (Evidence(text, f"zfs list -o space -r {quoted(pool.name)}"),)
    yield Fact(pool, "snapshots_percent", Known(total * 100 // space if space else 0, seen))
    same = Known(most * 100 // space if space else 0, seen)
    told = (most - total) * 100 < max(space, 1)
    yield Fact(pool, "snapshots_percent_most", same if told else unknown(hidden, f"zfs list -o space -r {pool.name}"))
    yield Fact(pool, "held_by_snapshots", Known(named, seen))


def _held(pool: Subject, facts: Facts) -> dict[str, tuple[int, int]] | Unknown:
    """Dataset -> bytes that its snapshots hold (at least, at most)."""
    datasets = facts.get(pool, "datasets")
    if isinstance(datasets, Unknown):
        return datasets
    every = facts.linked(pool, "datasets")
    if Subject("dataset", pool.name) not in every:
        return unknown(f"{pool}: not all of its datasets are audited")
    children: dict[str, int] = defaultdict(int)
    for dataset in every:
        for name in ("origin", *SIZES):
            if isinstance(why := facts.get(dataset, name), Unknown):
                return why
        counts = max(_bytes(facts, dataset, "used"), _bytes(facts, dataset, "reservation"))
        children[dataset.name.rpartition("/")[0]] += counts
    found = {}
    for dataset in every:
        own = _bytes(facts, dataset, "used") - children[dataset.name]
        beyond = own - _bytes(facts, dataset, "referenced")
        most = beyond if word_of(facts.get(dataset, "origin")) == NO_CLONE else own
        found[dataset.name] = max(beyond - _bytes(facts, dataset, "refreservation"), 0), max(most, 0)
    return found


def _bytes(facts: Facts, dataset: Subject, name: str) -> int:
    found: Judged = facts.get(dataset, name)
    return found.value if isinstance(found, Known) and isinstance(found.value, int) else 0
