"""The table of a program: the answer to each question at each event, with the worst choice of the drive that goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from auditor.durability.answers import Answer, Rank, all_of
from auditor.durability.copies import CLASSES, Copies
from auditor.durability.events import ALL, EVENTS, QUESTIONS, Class, Event, EventName, Question
from auditor.durability.host import Host, Leg, Pool, Program, Vdev
from auditor.durability.questions import answer

Table = Mapping[tuple[EventName, Question], Answer]


def table(host: Host, program: Program) -> Table:
    """All events that can happen to this host, and the questions that arise: none about the consistency of what is lost."""
    return Judge(host).table(program)


class Judge:
    """One host with what was found of it already; of several programs the pools are evaluated once."""

    def __init__(self, host: Host) -> None:
        self.copies = Copies(host)
        self._shapes: dict[int, tuple[list[int], list[tuple[Leg, int]]]] = {}
        self._numbers: dict[object, int] = {}  # of kinds of legs
        self._groups: dict[tuple[str, ...], list[tuple[str, ...]]] = {}

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
        return all_of(each for each in answers if each.rank is rank)

    def choices(self, program: Program, name: EventName) -> Mapping[Event, tuple[str, ...]]:
        """The event with each drive that may go, and the drives that are like it: one of them is tried for all."""
        event, host = ALL[name], self.copies.host
        if name == "below" and host.virtual is False:
            return {}
        if not event.takes:
            return {event: ()}
        return {replace(event, device=each[0], alike=each[1:]): each for each in self._alike(program, event.takes)}

    def _alike(self, program: Program, takes: Class) -> Sequence[tuple[str, ...]]:
        """Drives of this class, those that are alike together."""
        pools = tuple(self.copies.host.pools_below(program))
        key = (takes, *(pool.name for pool in self.copies.host.pools_of(program)))
        if key not in self._groups:
            alike: dict[object, dict[str, None]] = {}
            for pool in self.copies.host.pools_of(program):
                for drive in self.copies.touched(pool, takes):
                    alike.setdefault(self._kind(drive, pools), {})[drive] = None
            self._groups[key] = [tuple(drives) for drives in alike.values()]
        return self._groups[key]

    def _kind(self, drive: str, pools: tuple[Pool, ...]) -> tuple[object, ...]:
        """What two drives have in common that take the same with them: the shape of each vdev that lies on them. A part
        of a log, or of a pool below, is one of a kind."""
        touched = [
            (pool.name, which, vdev)
            for pool in pools
            for which in CLASSES
            for vdev in self.copies.touched(pool, which).get(drive, ())
        ]
        if any(which == "log" or any(leg.on for leg in vdev.legs) for _, which, vdev in touched):
            return (drive,)
        return store_shape(self.copies.host, drive), *(
            (name, which, *self._shape(vdev, drive)) for name, which, vdev in touched
        )

    def _shape(self, vdev: Vdev, drive: str) -> tuple[object, ...]:
        """All of it but names and order, and those of its legs that go with the drive."""
        if id(vdev) not in self._shapes:
            numbers = [
                self._numbers.setdefault(leg_shape(self.copies.host, leg), len(self._numbers)) for leg in vdev.legs
            ]
            self._shapes[id(vdev)] = sorted(numbers), list(zip(vdev.legs, numbers, strict=True))
        whole, legs = self._shapes[id(vdev)]
        return vdev.needed, *whole, "without", *sorted(number for leg, number in legs if drive in leg.drives)


def leg_shape(host: Host, leg: Leg) -> tuple[object, ...]:
    """All of a leg but names: what two legs have in common that keep the same."""
    states = (leg.state, leg.in_sync, leg.clean, leg.opens, leg.answers, leg.needed)
    return (*states, *(store_shape(host, name) for name in (*leg.layers, "", *leg.drives)))


def store_shape(host: Host, name: str) -> tuple[object, ...]:
    """All of a store but its name."""
    each = host.store(name)
    return (
        each.party,
        each.place,
        each.cache,
        each.passes,
        each.completes,
        each.counted,
        each.honours,
        each.redundant,
        each.alone,
    )
