"""What a change would do: the table before and after, and what is gained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from auditor.durability.answers import Rank
from auditor.durability.events import EVENTS, QUESTIONS, EventName, Question
from auditor.durability.host import Host, Pool, Vdev
from auditor.durability.table import Table, table

CellName = tuple[EventName, Question]


class Change(NamedTuple):
    """Fields of one thing, by its name. A leg is POOL/LEG. A store that is new is made."""

    of: Literal["pool", "dataset", "program", "store", "leg"]
    name: str
    fields: Mapping[str, Any]


class Gain(NamedTuple):
    """worst: how many ranks the worst cell gains; better and worse: the cells that change."""

    worst: int
    better: tuple[CellName, ...]
    worse: tuple[CellName, ...]


def change(host: Host, changes: Iterable[Change]) -> Host:
    """From left to right. Raises KeyError for a thing that the host lacks, TypeError for a field that the thing lacks."""
    for of, name, fields in changes:
        match of:
            case "pool":
                host = replace(host, pools={**host.pools, name: replace(host.pools[name], **fields)})
            case "dataset":
                host = replace(host, datasets={**host.datasets, name: replace(host.datasets[name], **fields)})
            case "program":
                host = replace(host, programs={**host.programs, name: replace(host.programs[name], **fields)})
            case "store":
                host = replace(host, stores={**host.stores, name: replace(host.store(name), **fields)})
            case "leg":
                pool, _, leg = name.partition("/")
                host = replace(host, pools={**host.pools, pool: _change_leg(host.pools[pool], leg, fields)})
    return host


def _change_leg(pool: Pool, name: str, fields: Mapping[str, Any]) -> Pool:
    def vdev(each: Vdev) -> Vdev:
        return replace(each, legs=tuple(replace(leg, **fields) if leg.name == name else leg for leg in each.legs))

    if all(leg.name != name for each in pool.data + pool.log for leg in each.legs):
        raise KeyError(f"{pool.name}/{name}")
    return pool.with_vdevs(vdev)


def suppose(host: Host, name: str, changes: Iterable[Change]) -> tuple[Table, Table]:
    """The tables of one program before and after."""
    after = change(host, changes)
    return table(host, host.programs[name]), table(after, after.programs[name])


def gain(before: Table, after: Table) -> Gain:
    """An event that can no longer happen loses nothing."""
    names = [(event, question) for event in EVENTS for question in QUESTIONS]
    ranks = {name: (_rank(before, name), _rank(after, name)) for name in names}
    worst = min(names, key=lambda name: ranks[name][0])  # of equal ones that of the mildest event
    return Gain(
        ranks[worst][1] - ranks[worst][0],
        tuple(name for name, (old, new) in ranks.items() if new > old),
        tuple(name for name, (old, new) in ranks.items() if new < old),
    )


def _rank(cells: Table, name: CellName) -> Rank:
    return cells[name].rank if name in cells else Rank.SAFE
