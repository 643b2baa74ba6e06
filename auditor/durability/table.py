"""The table of a program: the answer to each question at each event, with the worst choice of the drive that goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from auditor.durability.answers import Answer, Choice, Promise, Rank, Reason, Relies, all_of, promises
from auditor.durability.copies import Copies
from auditor.durability.events import ALL, EVENTS, QUESTIONS, Event, EventName, Question
from auditor.durability.host import Host, Pool, Program, Vdev
from auditor.durability.questions import answer

Table = Mapping[tuple[EventName, Question], Answer]
CLASSES = ("normal", "special", "dedup", "log")
KEPT = 2  # vdevs of a kind
_LEG = attrgetter("state", "in_sync", "clean", "opens", "answers", "needed")
_STORE = attrgetter(
    "party", "place", "cache", "passes", "completes", "counted", "honours", "tried", "redundant", "alone"
)


def table(host: Host, program: Program) -> Table:
    """All events that can happen to this host, and the questions that arise: none about the consistency of what is lost."""
    return Judge(host).table(program)


class Folded:
    """A host with two of the vdevs that are alike and share no store with others: what is true of the first is true of all.
    Two, as a drive of one may share a physical drive with another."""

    def __init__(self, host: Host) -> None:
        self._others: dict[
            str, list[dict[str, str]]
        ] = {}  # a name -> by it and its like, those of each that is left out
        self._spread: dict[Relies, Relies] = {}
        every = [vdev for pool in host.pools.values() for vdev in pool.data + pool.log]
        used = Counter(name for vdev in every for leg in vdev.legs for name in (*leg.layers, *leg.drives))
        kinds: dict[tuple[object, ...], list[Vdev]] = {}

        def kept(vdevs: Sequence[Vdev], *of: str) -> tuple[Vdev, ...]:
            return tuple(
                vdev for vdev in vdevs if self._kept(vdev, kinds.setdefault((*of, *_shape(host, vdev, used)), []))
            )

        pools = dict[str, Pool]()
        for name, pool in host.pools.items():
            two: Mapping[str, Any] = {each: kept(getattr(pool, each), name, each) for each in CLASSES}
            pools[name] = replace(pool, **two)
        self.host = replace(host, pools=pools)

    def _kept(self, vdev: Vdev, alike: list[Vdev]) -> bool:
        if len(alike) < KEPT:
            alike.append(vdev)
            return True
        first = _names(alike[0])
        others = self._others.setdefault(first[0], [])
        others.append(dict(zip(first, _names(vdev), strict=True)))
        self._others |= dict.fromkeys(first, others) if len(others) == 1 else {}
        return False

    def names(self, name: str) -> Iterator[str]:
        """The name, and those of its like that were left out."""
        yield name
        for each in self._others.get(name, ()):
            yield each[name]

    def spread(self, found: Answer) -> Answer:
        """The answer for the whole host."""
        if not self._others or found.rank is Rank.SAFE:
            return found
        why = (Reason(each.element, name) for each in found.why for name in self.names(each.subject))
        return Answer(found.rank, self._relies(found.relies), tuple(dict.fromkeys(why)))

    def _relies(self, relies: Relies) -> Relies:
        if relies not in self._spread:
            self._spread[relies] = frozenset(one for each in relies for one in self._promised(each))
        return self._spread[relies]

    def _promised(self, each: Promise | Choice) -> Iterator[Promise | Choice]:
        """A choice between legs of one vdev arises in each of its like; another one is made once, of more."""
        others = [self._others.get(name, []) for name in _promised(each)]
        if isinstance(each, Promise) or all(one is others[0] for one in others):
            yield each
            yield from (_renamed(each, names) for names in others[0])
        else:
            yield Choice(each.needed, tuple(sorted(map(self._relies, each.sets), key=promises)))


def _shape(host: Host, vdev: Vdev, used: Mapping[str, int]) -> tuple[object, ...]:
    """All of it but names; one that shares a store, or lies in memory of this host, is like no other."""
    stores = [(leg, [host.store(name) for name in (*leg.layers, *leg.drives)]) for leg in vdev.legs]
    if any(leg.on or any(used[each.name] > 1 or each.place == "host" for each in below) for leg, below in stores):
        return (vdev.name,)
    return vdev.needed, *((*_LEG(leg), len(leg.layers), *map(_STORE, below)) for leg, below in stores)


def _names(vdev: Vdev) -> list[str]:
    """Of a vdev, its legs and their stores; of two that are alike in the same order."""
    return [vdev.name, *(name for leg in vdev.legs for name in (leg.name, *leg.layers, *leg.drives))]


def _promised(each: Promise | Choice) -> Iterator[str]:
    if isinstance(each, Promise):
        yield each.name
    else:
        yield from (name for one in each.sets for promise in one for name in _promised(promise))


def _renamed(each: Promise | Choice, names: Mapping[str, str]) -> Promise | Choice:
    if isinstance(each, Promise):
        return Promise(each.party, names[each.name])
    return Choice(each.needed, tuple(frozenset(_renamed(one, names) for one in found) for found in each.sets))


class Judge:
    """One host with what was found of it already; of several programs the pools are evaluated once, and so are vdevs that
    are alike."""

    def __init__(self, host: Host) -> None:
        self.folded = Folded(host)
        self.copies = Copies(self.folded.host)

    def table(self, program: Program) -> Table:
        found: dict[tuple[EventName, Question], Answer] = {}
        for name in EVENTS:
            if choices := self.choices(program, name):
                for question in QUESTIONS:
                    if cell := self._cell(program, question, choices):
                        found[name, question] = cell
        return found

    def cell(self, program: Program, event: EventName, question: Question) -> Answer | None:
        """One cell; None where the table has none: the event cannot happen here, or the question does not arise."""
        choices = self.choices(program, event)
        return self._cell(program, question, choices) if choices else None

    def data_left(self, program: Program, name: EventName) -> bool:
        """Is all data of its pools left for certain, or on promises? What the pool question asks beyond that is the import."""
        choices = self.choices(program, name)
        pools = self.copies.host.pools_of(program)
        return all(self.copies.data(pool, event).rank >= Rank.RELIES for event in choices for pool in pools)

    def _cell(self, program: Program, question: Question, choices: Iterable[Event]) -> Answer | None:
        found = [answer(self.copies, program, event, question) for event in choices]
        answers = [each for each in found if each]
        rank = min((each.rank for each in answers), default=Rank.SAFE)
        if len(answers) < len(found) and rank is not Rank.LOST:
            return None  # the worst choice leaves nothing to ask about
        return self.folded.spread(all_of(each for each in answers if each.rank is rank))

    def choices(self, program: Program, name: EventName) -> Sequence[Event]:
        """The event with each drive that may go."""
        event, host = ALL[name], self.copies.host
        if name == "below" and host.virtual is False:
            return ()
        if not event.takes:
            return (event,)
        drives = dict.fromkeys(
            drive for pool in host.pools_of(program) for drive in self.copies.touched(pool, event.takes)
        )
        return [replace(event, device=drive) for drive in drives]
