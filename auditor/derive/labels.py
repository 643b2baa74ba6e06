"""Pools that devices of this host bear the labels of, and that are not imported.

A start that imported less than it should, a drive of another host, and one that was taken out of a pool long ago look alike:
blkid tells the name, and nothing of the state. Where a pool of that name is imported, the label is taken for its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import every
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, known, words, words_of

SUBJECT = "host"
FACTS = {"pools_not_imported": words("pools of labels on devices of this host that are not imported, with the devices")}
NEEDS = ("host.zfs_labels", "host.imported_pools", "host.zfs_loaded")
SHOWN = 4


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    loaded = facts.get(HOST, "zfs_loaded")
    none = isinstance(loaded, Known) and not loaded.value
    found = every([facts.get(HOST, "zfs_labels"), loaded if none else facts.get(HOST, "imported_pools")])
    yield Fact(HOST, "pools_not_imported", found if isinstance(found, Unknown) else _away(facts, *found, none=none))


def _away(facts: Facts, labels: Known, imported: Known, *, none: bool) -> Judged:
    here = set() if none else {pool.name for pool in facts.linked(HOST, "imported_pools")}
    away: dict[str, list[str]] = {}
    for each in words_of(labels):
        pool, _, device = each.rpartition("=")
        if pool not in here:
            away.setdefault(pool, []).append(device)
    told = tuple(f"{pool} ({_some(devices)})" for pool, devices in away.items())
    seen = known(told, ", ".join(told) or "each is of an imported pool", "lsblk -o NAME,FSTYPE,LABEL")
    return Known(told, (*seen.evidence, *imported.evidence))


def _some(devices: list[str]) -> str:
    more = f" and {len(devices) - SHOWN} more" if len(devices) > SHOWN else ""
    return ", ".join(devices[:SHOWN]) + more
