"""Hosts for the tests of the model, built by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from auditor.durability.host import Dataset, EventName, Host, Leg, Pool, Program, Question, Store, Use, Vdev
from auditor.durability.table import Judge

NAME = "db"  # of the program, on tank/db


def plp(name: str, **fields: Any) -> Store:
    """A drive with documented power-loss protection."""
    return Store(name, **fields)


def client(name: str, **fields: Any) -> Store:
    """A drive with a volatile cache, of which nobody knows whether it does what a flush asks for."""
    return replace(Store(name, cache="volatile", honours=None), **fields)


def leg(drive: str, **fields: Any) -> Leg:
    """A leg on a drive of the same name."""
    return Leg(drive, (drive,), **fields)


def mirror(*legs: Leg | str) -> Vdev:
    """A mirror, or a single disk."""
    each = tuple(leg(one) if isinstance(one, str) else one for one in legs)
    return Vdev("+".join(one.name for one in each), each)


def raidz(parity: int, *legs: Leg | str) -> Vdev:
    each = mirror(*legs)
    return replace(each, name=f"raidz{parity}", needed=len(each.legs) - parity)


def pool(*normal: Vdev, **fields: Any) -> Pool:
    return Pool("tank", normal, **fields)


def on_one(use: Mapping[str, Any], fields: Mapping[str, Any]) -> Program:
    """A database with log and pages on tank/db."""
    both = Use("tank/db", **use)
    return Program(NAME, both, (both,), **fields)


def host(
    tank: Pool,
    *stores: Store,
    dataset: Mapping[str, Any] | None = None,
    use: Mapping[str, Any] | None = None,
    program: Program | None = None,
    pools: Iterable[Pool] = (),
    datasets: Iterable[Dataset] = (),
    virtual: bool | None = False,
    **fields: Any,
) -> Host:
    """stores: those that are not plp. dataset: of tank/db; use: of both log and pages; fields: of the program."""
    every = {each.name: each for each in (Dataset("tank/db", "tank", **(dataset or {})), *datasets)}
    all_pools = {each.name: each for each in (tank, *pools)}
    names = [
        name
        for each in all_pools.values()
        for vdev in each.data + each.log
        for one in vdev.legs
        for name in (*one.drives, *one.layers)
    ]
    found = {name: plp(name) for name in names} | {each.name: each for each in stores}
    wanted = program or on_one(use or {}, fields)
    return Host(all_pools, every, {wanted.name: wanted}, found, virtual)


def perfect() -> Host:
    """Three vdevs of two drives with power-loss protection, one of them the log; WAL and pages on two datasets."""
    tank = pool(mirror("d0", "d1"), mirror("d2", "d3"), log=(mirror("s0", "s1"),))
    program = Program(NAME, Use("tank/wal"), (Use("tank/db"),))
    return host(tank, program=program, datasets=[Dataset("tank/wal", "tank")])


def ranks(given: Host, question: Question = "commits") -> dict[EventName, str]:
    """Event -> rank, or the promises relied on."""
    cells = Judge(given).table(given.programs[NAME])
    return {
        event: str(cell) if cell.rank.name == "RELIES" else cell.rank.name
        for (event, asked), cell in cells.items()
        if asked == question
    }


def losing(given: Host, question: Question = "commits", rank: str = "LOST") -> set[EventName]:
    """Events at which it is so."""
    return {event for event, found in ranks(given, question).items() if found == rank}


def of(given: Host, event: EventName, question: Question = "commits") -> str:
    return ranks(given, question)[event]
