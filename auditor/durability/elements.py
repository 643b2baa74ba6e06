"""The elements of a path: the fields that can be broken, and what repairs each.

`data/durability.toml` says what each costs, by event and question; this says where it is. An element is one kind of fault on
everything that has it; who has it, the reasons of an answer say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
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


def broken(host: Host, program: Program) -> Mapping[Reason, bool]:
    """Every element of the path that is not known to be good, with its subject; False: nobody saw whether it is."""
    redundant = Copies(host).legs.redundant
    found: dict[Reason, bool] = {}
    for part, subject in _parts(host, program):
        for name, element in ELEMENTS.items():
            if _concerns(element, part) and (bad := _bad(element, part)):
                found[Reason(name, subject)] = any(each is not None for each in bad)
        if isinstance(part, Vdev) and not redundant(part):
            found[Reason("redundancy", subject)] = True
    return found


def repair(host: Host, reasons: Collection[Reason]) -> Host:
    """The host with these elements of these subjects good."""
    if not reasons:
        return host
    elements: dict[str, list[Element]] = {}
    for each in reasons:
        elements.setdefault(each.subject, []).append(ELEMENTS[each.element])
    redundant = Copies(host).legs.redundant

    def one(part: P, /) -> P:
        for element in elements.get(_name(part), ()):
            if _concerns(element, part) and _bad(element, part):
                part = replace(part, **element.repair)
        return part

    def legs(vdev: Vdev) -> tuple[Leg, ...]:
        """A vdev without redundancy gets a perfect leg: on no drive that could go."""
        bare = Reason("redundancy", vdev.name) in reasons and not redundant(vdev)
        return (Leg(f"{vdev.name} new"),) if bare else ()

    return _mapped(host, one, legs)


def _mapped(host: Host, one: Change, more: Callable[[Vdev], tuple[Leg, ...]]) -> Host:
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


def _concerns(element: Element, part: Part) -> bool:
    return isinstance(part, element.of) and (not isinstance(part, Store) or element.party in ("", part.party))


def _bad(element: Element, part: Part) -> list[object]:
    """The values that are not good."""
    values = ((name, getattr(part, name), good) for name, good in element.repair.items())
    return [found for name, found, good in values if found != good and found not in element.also.get(name, ())]


def _name(part: Part) -> str:
    """What an answer calls it."""
    return part.dataset if isinstance(part, Use) else part.name


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
