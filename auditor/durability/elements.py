"""The elements of a path: the fields that can be broken, and what repairs each.

`data/durability.toml` says what each costs, by event and question; this says where it is. An element is one kind of fault on
everything that has it; who has it, the reasons of an answer say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, NamedTuple, Protocol, TypeVar, get_args

from auditor.durability.answers import Party, Reason
from auditor.durability.copies import Copies
from auditor.durability.host import WORKING, Dataset, Host, Leg, Pool, Program, Store, Use, Vdev

Part = Program | Use | Dataset | Pool | Vdev | Leg | Store
P = TypeVar("P", Program, Use, Dataset, Pool, Vdev, Leg, Store)


class Change(Protocol):
    """Another part of the same kind in place of one."""

    def __call__(self, part: P, /) -> P: ...


class Element(NamedTuple):
    """repair: the values of a good one. also: values that are as good. party: of stores, whose it is."""

    of: type[Part]
    repair: Mapping[str, Any]
    also: Mapping[str, tuple[object, ...]] = {}
    party: str = ""


_KEEPS = {"cache": "protected", "honours": True, "tried": True}
ELEMENTS: dict[str, Element] = {
    "leave": Element(Program, {"leaves": True}),
    "recover": Element(Program, {"recovers": True}),
    "guard": Element(Program, {"guard": True}),
    "page in block": Element(Program, {"page_in_block": True}),
    "split": Element(Program, {"splits": False}),
    "ask": Element(Use, {"asks": "before"}),
    "pass on": Element(Use, {"passes": True}),
    "reach": Element(Use, {"reaches": True}),
    "commit": Element(Dataset, {"sync": "standard"}, {"sync": ("always",)}),
    "indirect": Element(Dataset, {"indirect": False}),
    "direct": Element(Dataset, {"direct": False}),
    "replay": Element(Dataset, {"replays": True}),
    "defect": Element(Dataset, {"sound": True}),
    "key": Element(Dataset, {"key": "available"}),
    "unmount": Element(Dataset, {"unmounts": True}),
    "zil flush": Element(Pool, {"zil_flush": True}),
    "txg flush": Element(Pool, {"txg_flush": True}),
    "import": Element(Pool, {"imports": True}),
    "room": Element(Pool, {"log_room": True, "special_room": True}),
    "redundancy": Element(Vdev, {}),
    "present": Element(Leg, {"state": "ONLINE", "in_sync": True}, {"state": WORKING}),
    "opens": Element(Leg, {"opens": True}),
    "errors": Element(Leg, {"clean": True}),
    "flush": Element(Store, {"passes": True, "counted": True}),
    "flush error": Element(Store, {"completes": True}),
    **{party: Element(Store, _KEEPS, {"cache": ("none",)}, party) for party in get_args(Party)},
}


def broken(host: Host, program: Program) -> frozenset[Reason]:
    """Every element of the path that is not known to be good, with its subject."""
    redundant = Copies(host).legs.redundant
    found = set[Reason]()
    for part, subject in _parts(host, program):
        for name, element in ELEMENTS.items():
            if name == "redundancy":
                bad = isinstance(part, Vdev) and not redundant(part)
            else:
                bad = _concerns(element, part) and not _good(element, part)
            if bad:
                found.add(Reason(name, subject))
    return frozenset(found)


def settled(host: Host) -> Host:
    """The host if all that nobody saw is as good as on a healthy one: what is left is broken for certain."""
    return replace(_mapped(host, _settled), virtual=host.virtual or False)


def _settled(part: P, /) -> P:
    """Defaults are what a healthy host has."""
    defaults: dict[str, Any] = {each.name: each.default for each in fields(part) if each.default is not MISSING}
    unseen = {name: value for name, value in defaults.items() if getattr(part, name) is None and value is not None}
    return replace(part, **unseen) if unseen else part


def repair(host: Host, names: Collection[str]) -> Host:
    """The host with these elements good, on all that has them."""
    if not names:
        return host
    elements = [ELEMENTS[name] for name in names]
    redundant = Copies(host).legs.redundant

    def one(part: P, /) -> P:
        return _repaired(elements, part)

    def legs(vdev: Vdev) -> tuple[Leg, ...]:
        """A vdev without redundancy gets a perfect leg: on no drive that could go."""
        return (Leg(f"{vdev.name} new"),) if "redundancy" in names and not redundant(vdev) else ()

    return _mapped(host, one, legs)


def _mapped(host: Host, one: Change, more: Callable[[Vdev], tuple[Leg, ...]] = lambda _: ()) -> Host:
    """With other parts in place of its own. more: legs of a vdev that are added."""

    def vdev(each: Vdev) -> Vdev:
        return replace(each, legs=(*map(one, each.legs), *more(each)))

    return replace(
        host,
        pools={name: one(each).with_vdevs(vdev) for name, each in host.pools.items()},
        datasets={name: one(each) for name, each in host.datasets.items()},
        programs={
            name: replace(one(each), log=one(each.log), pages=tuple(map(one, each.pages)))
            for name, each in host.programs.items()
        },
        stores={name: one(host.store(name)) for name in _stores(host)},
    )


def _repaired(elements: list[Element], part: P) -> P:
    for element in elements:
        if element.repair and _concerns(element, part) and not _good(element, part):
            part = replace(part, **element.repair)
    return part


def _concerns(element: Element, part: Part) -> bool:
    return isinstance(part, element.of) and (not isinstance(part, Store) or element.party in ("", part.party))


def _good(element: Element, part: Part) -> bool:
    return all(
        (found := getattr(part, name)) == value or found in element.also.get(name, ())
        for name, value in element.repair.items()
    )


def _parts(host: Host, program: Program) -> Iterator[tuple[Part, str]]:
    """What the path goes through."""
    yield program, program.name
    pools = host.pools_below(program)
    for use in program.uses:
        yield use, use.dataset
    for dataset in host.datasets.values():
        if any(dataset.pool == pool.name for pool in pools):
            yield dataset, dataset.name
    stores = set[str]()
    for pool in pools:
        yield pool, pool.name
        for vdev in pool.data + pool.log:
            yield vdev, vdev.name
            for leg in vdev.legs:
                yield leg, leg.name
                stores.update(leg.layers, leg.drives)
    for name in stores:
        yield host.store(name), name


def _stores(host: Host) -> Iterator[str]:
    for pool in host.pools.values():
        for vdev in pool.data + pool.log:
            for leg in vdev.legs:
                yield from leg.layers
                yield from leg.drives
