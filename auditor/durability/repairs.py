"""Which elements a cell hangs on: the reasons of its answer, and what these hide.

Elements in series hide each other: with sync=disabled, fsync=off seems to cost nothing, and the other way round. So what an
answer gives as its reasons is repaired, and the cell is asked again, until it is safe or nothing more can be repaired. What is
broken for certain comes first: what nobody saw may be just as broken, and hides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from auditor.durability.answers import SAFE, Answer, Rank, Reason
from auditor.durability.elements import broken, repair
from auditor.durability.events import EventName, Question
from auditor.durability.host import Host
from auditor.durability.table import Judge

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
    """Element and subject with the cells that hang on it, of one program. Paths that are equal but for their names, as those of
    equal pools and of many hosts of a fleet, are searched once."""
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
