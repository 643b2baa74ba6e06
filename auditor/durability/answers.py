"""Answers of four ranks, and how they join: copies by *or*, places by *and*, legs by *k of n*.

======== ==========================================================================================================
LOST     there is a moment of the event at which it is lost
UNKNOWN  something that decides was not seen
RELIES   no loss, if parties that nobody verified keep their promise
SAFE     no loss
======== ==========================================================================================================

Knowledge turns UNKNOWN into any other rank and RELIES into SAFE or something worse. LOST and SAFE stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter
from typing import Literal, NamedTuple

Party = Literal["drive", "controller", "hypervisor", "target", "layer"]  # of stores
Promised = Party | Literal["flushes", "replicas", "program", "shutdown", "key", "room", "neighbours"]
PROMISES: dict[Promised, str] = {
    "drive": "{}",
    "controller": "{}",
    "hypervisor": "the hypervisor",
    "target": "the storage behind {}",
    "layer": "{}",
    "replicas": "the replicas of {}",
    "flushes": "flushes reaching the drives",
    "program": "the program calling fsync on {}",
    "shutdown": "the shutdown unmounting {}",
    "key": "the key of {}",
    "neighbours": "no other program flushing files of {}",
    "room": "room on the log devices of {}",
}


class Rank(IntEnum):
    """From worst to best."""

    LOST, UNKNOWN, RELIES, SAFE = range(4)


class Reason(NamedTuple):
    """What decided: an element of the path, and the thing that has it."""

    element: str
    subject: str


class Promise(NamedTuple):
    """What a party would have to keep."""

    party: Promised
    name: str

    def __str__(self) -> str:
        return PROMISES[self.party].format(self.name)


class Choice(NamedTuple):
    """So many of these sets of promises must be kept."""

    needed: int
    sets: tuple[Relies, ...]

    def __str__(self) -> str:
        each = sorted(f"({promises(one)})" if len(one) > 1 else promises(one) for one in self.sets)
        return " or ".join(dict.fromkeys(each)) if self.needed == 1 else f"{self.needed} of ({', '.join(each)})"


Relies = frozenset[Promise | Choice]
NOTHING: Relies = frozenset()


def promises(relies: Relies) -> str:
    """d0 and d1; d0 or d1; 2 of (d0, d1, d2)."""
    several = len(relies) > 1
    each = {f"({one})" if several and isinstance(one, Choice) and one.needed == 1 else str(one) for one in relies}
    return " and ".join(sorted(each))


@dataclass(frozen=True)
class Answer:
    """relies: promises, all to be kept. why: one of these reasons must change before an answer improves."""

    rank: Rank
    relies: Relies = NOTHING
    why: tuple[Reason, ...] = ()

    def __str__(self) -> str:
        match self.rank:
            case Rank.SAFE:
                return "no loss"
            case Rank.RELIES:
                return f"relies on {promises(self.relies)}"
        return f"{self.rank.name} ({', '.join(f'{why.element} {why.subject}' for why in self.why)})"


SAFE = Answer(Rank.SAFE)


def lost(element: str, subject: str) -> Answer:
    return Answer(Rank.LOST, why=(Reason(element, subject),))


def unknown(element: str, subject: str) -> Answer:
    return Answer(Rank.UNKNOWN, why=(Reason(element, subject),))


def relies(party: Promised, name: str, element: str, subject: str = "") -> Answer:
    return Answer(Rank.RELIES, frozenset({Promise(party, name)}), (Reason(element, subject or name),))


def holds(value: bool | None, element: str, subject: str) -> Answer:
    """What must be so: LOST where it is not."""
    return SAFE if value else unknown(element, subject) if value is None else lost(element, subject)


def all_of(answers: Iterable[Answer]) -> Answer:
    """Everything must survive: the worst answer. What is equally bad adds up."""
    bad = [each for each in answers if each is not SAFE]
    if len(bad) < 2:
        return bad[0] if bad else SAFE
    worst = min(map(_rank, bad))
    same = [each for each in bad if each.rank is worst]
    if len(same) == 1:
        return same[0]
    return Answer(worst, _together([each.relies for each in same]), _reasons(same))


def at_least(needed: int, answers: Iterable[Answer]) -> Answer:
    """So many must survive. By sorting: a wide vdev costs no more than its legs."""
    if needed <= 0:
        return SAFE
    listed = list(answers)
    if len(listed) == needed == 1:
        return listed[0]
    if len([each for each in listed if each is SAFE]) >= needed:
        return SAFE
    ranked = sorted(listed, key=_rank, reverse=True)
    if len(ranked) < needed:
        return Answer(Rank.LOST, why=_reasons(ranked))
    rank = ranked[needed - 1].rank
    if rank is Rank.SAFE:
        return SAFE
    why = _reasons([each for each in ranked if each.rank <= rank])
    if rank is not Rank.RELIES:
        return Answer(rank, why=why)
    better = sum(each.rank > rank for each in ranked)
    return Answer(rank, _choice(needed - better, [each.relies for each in ranked if each.rank == rank]), why)


def any_of(*answers: Answer) -> Answer:
    """Some copy must survive."""
    return at_least(1, answers)


def either(first: Answer, second: Answer, element: str, subject: str) -> Answer:
    """One of the two is true, and nobody saw which."""
    if first.rank == second.rank or min(first.rank, second.rank) >= Rank.RELIES:
        return all_of((first, second))
    return all_of((Answer(Rank.UNKNOWN, why=_reasons((first, second))), unknown(element, subject)))


def settle(value: bool | None, yes: Callable[[], Answer], no: Answer, element: str, subject: str) -> Answer:
    """The answer for what is known, and either of the two for what is not."""
    if value is None:
        return either(yes(), no, element, subject)
    return yes() if value else no


_rank = attrgetter("rank")


def _reasons(answers: Sequence[Answer]) -> tuple[Reason, ...]:
    return tuple(dict.fromkeys(reason for each in answers for reason in each.why))


def _together(sets: Sequence[Relies]) -> Relies:
    """All of them; a choice of which enough is promised anyway is none."""
    every = NOTHING.union(*sets)
    firm = {one for one in every if isinstance(one, Promise)}
    if not firm or len(firm) == len(every):
        return every
    return every - {
        one for one in every if isinstance(one, Choice) and sum(each <= firm for each in one.sets) >= one.needed
    }


def _choice(needed: int, sets: Sequence[Relies]) -> Relies:
    """All of them, or a choice; who keeps one promise may break those that include it."""
    distinct = list(dict.fromkeys(sets))
    if len(distinct) == 1:
        return distinct[0]
    if needed == len(sets):
        return _together(sets)
    if needed == 1:
        sets = [one for one in distinct if not any(other < one for other in distinct)]
    if len(sets) == 1:
        return sets[0]
    return frozenset({Choice(needed, tuple(sorted(sets, key=promises)))})
