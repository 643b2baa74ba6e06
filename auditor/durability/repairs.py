"""Which elements a cell hangs on: the reasons of its answer, and what these hide.

Elements in series hide each other: with sync=disabled, fsync=off seems to cost nothing, and the other way round. So what an
answer gives as its reasons is repaired, and the cell is asked again, until it is safe or nothing more can be repaired. What is
broken for certain comes first: what nobody saw may be just as broken, and hides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar, get_args

from auditor.durability.answers import SAFE, Answer, Party, Rank, Reason
from auditor.durability.copies import Copies
from auditor.durability.host import WORKING, Dataset, EventName, Host, Leg, Pool, Program, Question, Store, Use, Vdev
from auditor.durability.table import Judge

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
    values = ((name, getattr(part, name), good) for name, good in element.repair.items())
    return [found for name, found, good in values if found != good and found not in element.also.get(name, ())]


def _name(part: Part) -> str:
    return part.dataset if isinstance(part, Use) else part.name


def _parts(host: Host, program: Program) -> Iterator[tuple[Part, str]]:
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


PATHS = 256  # whose searches are kept
Reasons = frozenset[Reason]
NONE: Reasons = frozenset()


class Level(NamedTuple):
    """The answer when what hides it is repaired, and the reasons of it that can be."""

    rank: Rank
    members: Reasons


class Carried(NamedTuple):
    """A cell that an element helps to make what it is."""

    event: EventName
    question: Question
    rank: Rank


def carried(host: Host, name: str) -> Iterator[tuple[Reason, tuple[Carried, ...]]]:
    """The cells that hang on each element of one program. Paths that are equal but for names are searched once."""
    path, names = host.path_of(host.programs[name]).numbered()
    for each, cells in search(path).items():
        yield Reason(each.element, names[each.subject]), cells


@lru_cache(maxsize=PATHS)
def search(path: Host) -> Mapping[Reason, tuple[Carried, ...]]:
    """Of a path without names: the answer follows from what is equal alone, whoever's host came first."""
    (name,) = path.programs
    return Repairs(path, name).carried()


class Repairs:
    """Of one program on one host. Repaired hosts are evaluated once for all cells."""

    def __init__(self, host: Host, name: str) -> None:
        self._host = host.path_of(host.programs[name])
        self._name = name
        self._judges: dict[Reasons, Judge] = {}
        self._broken = broken(self._host, host.programs[name])

    def levels(self, event: EventName, question: Question) -> Iterator[Level]:
        """From the cell as it is upwards; no repair makes what is left worse than the cell is."""
        repaired, rank = NONE, Rank.LOST
        while (found := self._cell(repaired, event, question)).rank is not Rank.SAFE:
            members = frozenset(self._broken.keys() & found.why)
            rank = max(rank, found.rank)
            yield Level(rank, members)
            more = members - repaired
            repaired |= frozenset(each for each in more if self._broken[each]) or more
            if not more:
                return

    def carried(self) -> Mapping[Reason, tuple[Carried, ...]]:
        """Element and subject -> the cells that hang on it."""
        found: dict[Reason, dict[Carried, None]] = {}
        for event, question in self._judge(NONE).table(self._host.programs[self._name]):
            for level in self.levels(event, question):
                for member in level.members:
                    found.setdefault(member, {})[Carried(event, question, level.rank)] = None
        return {member: tuple(cells) for member, cells in found.items()}

    def _cell(self, repaired: Reasons, event: EventName, question: Question) -> Answer:
        """A question that does not arise has nothing to improve."""
        judge = self._judge(repaired)
        return judge.cell(judge.copies.host.programs[self._name], event, question) or SAFE

    def _judge(self, repaired: Reasons) -> Judge:
        if repaired not in self._judges:
            self._judges[repaired] = Judge(repair(self._host, repaired))
        return self._judges[repaired]
