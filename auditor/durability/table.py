"""The table of a program: each event and question, with the worst choice of the drive that goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from auditor.durability.answers import Answer, Rank, all_of
from auditor.durability.copies import CLASSES, Copies
from auditor.durability.events import ALL, EVENTS, QUESTIONS, Event, EventName, Question
from auditor.durability.host import Host, Leg, Pool, Program, Vdev
from auditor.durability.questions import answer


class Cell(NamedTuple):
    """drives: those of which any one is the worst choice; empty where none goes."""

    answer: Answer
    drives: tuple[str, ...] = ()

    @property
    def rank(self) -> Rank:
        return self.answer.rank


Table = Mapping[tuple[EventName, Question], Cell]


class Row(NamedTuple):
    """cell: None where the question arises from the next boot on. next_boot: what becomes of it then, where that differs."""

    event: EventName
    question: Question
    cell: Cell | None
    next_boot: Cell | None = None


def table(host: Host, program: Program) -> Table:
    """All events that can happen to this host, and the questions that arise: none about the consistency of what is lost."""
    return Judge(host).table(program)


def rows(now: Host, next_boot: Host, name: str) -> Iterator[Row]:
    """The same function of two hosts: what is in force, and what the next boot puts in force. In both, what decides at an
    import (replays, opens, imports, key) is as the next import finds it."""
    today, then = table(now, now.programs[name]), table(next_boot, next_boot.programs[name])
    for event, question in dict.fromkeys((*today, *then)):
        cell, later = today.get((event, question)), then.get((event, question))
        same = cell and later and (later.rank, later.answer.relies) == (cell.rank, cell.answer.relies)
        yield Row(event, question, cell, None if same else later)


class Judge:
    """One host with what was found of it already; of several programs the pools are evaluated once."""

    def __init__(self, host: Host) -> None:
        self.copies = Copies(host)
        self._shapes: dict[int, frozenset[object]] = {}

    def table(self, program: Program) -> Table:
        found: dict[tuple[EventName, Question], Cell] = {}
        for name in EVENTS:
            if choices := self.choices(program, name):
                for question in QUESTIONS:
                    if cell := self._cell(program, question, choices):
                        found[name, question] = cell
        return found

    def cell(self, program: Program, event: EventName, question: Question) -> Cell | None:
        """One cell; None where the table has none: the event cannot happen here, or the question does not arise."""
        choices = self.choices(program, event)
        return self._cell(program, question, choices) if choices else None

    def data_left(self, program: Program, name: EventName) -> bool:
        """Is all data of its pools left for certain, or on promises? What the pool question asks beyond that is the import."""
        choices = self.choices(program, name)
        pools = self.copies.host.pools_of(program)
        return all(self.copies.data(pool, event).rank >= Rank.RELIES for event in choices for pool in pools)

    def _cell(self, program: Program, question: Question, choices: Mapping[Event, tuple[str, ...]]) -> Cell | None:
        found = [(answer(self.copies, program, event, question), drives) for event, drives in choices.items()]
        answers = [(each, drives) for each, drives in found if each]
        rank = min((each.rank for each, _ in answers), default=Rank.SAFE)
        if len(answers) < len(found) and rank is not Rank.LOST:
            return None  # the worst choice leaves nothing to ask about
        worst = [(each, drives) for each, drives in answers if each.rank == rank]
        return Cell(all_of(each for each, _ in worst), tuple(drive for _, drives in worst for drive in drives))

    def choices(self, program: Program, name: EventName) -> Mapping[Event, tuple[str, ...]]:
        """The event with each drive that may go, and the drives that are like it: one of them is tried for all."""
        event, host = ALL[name], self.copies.host
        if name == "below" and host.virtual is False:
            return {}
        if not event.takes:
            return {event: ()}
        pools = tuple(host.pools_below(program))
        alike: dict[object, dict[str, None]] = {}
        for pool in host.pools_of(program):
            for drive in self.copies.touched(pool, event.takes):
                alike.setdefault(self._kind(drive, pools), {})[drive] = None
        groups = [tuple(drives) for drives in alike.values()]
        return {replace(event, device=drives[0], alike=drives[1:]): drives for drives in groups}

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
        host = self.copies.host
        if id(vdev) not in self._shapes:
            self._shapes[id(vdev)] = frozenset(Counter(leg_shape(host, leg) for leg in vdev.legs).items())
        gone = Counter(leg_shape(host, leg) for leg in vdev.legs if drive in leg.drives)
        return vdev.needed, self._shapes[id(vdev)], frozenset(gone.items())


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
