"""A small world, whole: three drives, three layers, two datasets, a database, and what can be broken or unknown of each.

A state is a set of faults, no two of one field. The world without faults loses nothing: each drive has a volatile cache and
empties it when it is asked to, so that each flush matters. One of the drives holds a leg of the data and a leg of the log.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from auditor.durability.host import Dataset, Host, Leg, Pool, Program, Store, Use, Vdev
from auditor.durability.table import Judge, Table
from tests.durability.hosts import NAME


class Fault(NamedTuple):
    part: str
    field: str
    value: Any

    @property
    def place(self) -> tuple[str, str]:
        return self.part, self.field


State = frozenset[Fault]
GOOD: State = frozenset()
STORES = ("d0", "d1", "d2", "controller", "mapper", "queue")
LEGS = ("data0", "data1", "log0", "log1")
USES, DATASETS = ("log", "pages"), ("tank/wal", "tank/db")


def _faults(part: str, **values: tuple[Any, ...]) -> list[Fault]:
    return [Fault(part, field, value) for field, each in values.items() for value in each]


BAD = (False, None)
EVERY: tuple[Fault, ...] = (
    *_faults("host", virtual=(True, None)),
    *_faults("program", leaves=BAD, guard=BAD, splits=(True, None), page_in_block=BAD, elsewhere=(True, None)),
    *_faults("program", closes=BAD, recovers=BAD),
    *_faults("log", asks=("later", "never", None), passes=BAD, reaches=BAD, remote=(True, None)),
    *_faults("pages", asks=("never", None), passes=BAD, reaches=BAD),
    *(
        fault
        for name in DATASETS
        for fault in _faults(
            name,
            sync=("disabled", "always", None),
            indirect=(True, None),
            direct=(True, None),
            replays=BAD,
            sound=BAD,
            key=("absent", "behind itself", None),
            unmounts=(True, False),
        )
    ),
    *_faults("tank", zil_flush=BAD, txg_flush=BAD, imports=BAD, log_room=BAD),
    *(
        fault
        for name in LEGS
        for fault in _faults(name, state=("OFFLINE", "UNAVAIL", None), in_sync=BAD, clean=BAD, opens=BAD)
    ),
    *(
        fault
        for name in STORES
        for fault in _faults(name, cache=("protected", None), passes=BAD, completes=BAD, counted=(None,), honours=BAD)
    ),
    *_faults("d0", alone=BAD),
    *_faults("d1", alone=BAD),
)


def world(state: Iterable[Fault]) -> Host:
    fields: dict[str, dict[str, Any]] = {}
    for part, field, value in state:
        fields.setdefault(part, {})[field] = value
    of = {part: fields.get(part, {}) for part in ("host", "program", "tank", *STORES, *LEGS, *USES, *DATASETS)}
    parties: dict[str, dict[str, Any]] = {
        "controller": {"party": "controller"},
        "mapper": {"party": "layer"},
        "queue": {"party": "layer", "place": "host"},
    }
    stores = {
        name: Store(**{"name": name, "cache": "volatile", **parties.get(name, {}), **of[name]}) for name in STORES
    }
    below = {
        "data0": {"drives": ("d0",), "layers": ("controller",)},
        "data1": {"drives": ("d1",), "layers": ("mapper",)},
        "log0": {"drives": ("d1",)},
        "log1": {"drives": ("d2",), "layers": ("queue",)},
    }
    data0, data1, log0, log1 = (Leg(**{"name": name, **below[name], **of[name]}) for name in LEGS)
    tank = Pool("tank", (Vdev("mirror-0", (data0, data1)),), log=(Vdev("mirror-1", (log0, log1)),), **of["tank"])
    log, pages = Use("tank/wal", **of["log"]), Use("tank/db", **of["pages"])
    program = Program(NAME, log, (pages,), **of["program"])
    datasets = {name: Dataset(name, "tank", **of[name]) for name in DATASETS}
    return Host({"tank": tank}, datasets, {NAME: program}, stores, **of["host"] or {"virtual": False})


def states(faults: Iterable[Fault], size: int) -> Iterator[State]:
    """Sets of this size in which no field has two values."""
    for each in itertools.combinations(faults, size):
        if len({fault.place for fault in each}) == size:
            yield frozenset(each)


def judge(state: State) -> Table:
    given = world(state)
    return Judge(given).table(given.programs[NAME])
