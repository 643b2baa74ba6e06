"""Which elements a cell hangs on: the smallest sets of them whose joint repair improves it.

Elements in series hide each other: with sync=disabled, fsync=off seems to cost nothing, and the other way round. So each member
of a smallest set carries the cell. An answer improves only if one of its reasons changes; the search follows the reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from auditor.durability.answers import SAFE, Answer, Rank, Reason
from auditor.durability.elements import broken, repair
from auditor.durability.events import EventName, Question
from auditor.durability.host import Host
from auditor.durability.table import Judge

LARGEST = 3  # elements of a set
PATHS = 256  # whose searches are kept
Elements = frozenset[str]
NONE: Elements = frozenset()


class Level(NamedTuple):
    """sets: smallest sets of elements that improve a cell from this rank. members: they, each with its subjects."""

    rank: Rank
    sets: tuple[Elements, ...]
    members: frozenset[Reason]


class Carried(NamedTuple):
    """A cell that an element helps to make what it is."""

    event: EventName
    question: Question
    rank: Rank


def carried(host: Host, name: str) -> Iterator[tuple[Reason, tuple[Carried, ...]]]:
    """Element and subject with the cells that hang on it, of one program. Paths that are equal but for their names, as those of
    equal pools and of many hosts of a fleet, are searched once."""
    path = host.path_of(host.programs[name])
    shape, names = path.numbered()
    for (element, number), cells in search(_Path(shape, path, name, names)).items():
        yield Reason(element, names[number]), cells


@dataclass(frozen=True)
class _Path:
    shape: tuple[object, ...]
    host: Host = field(compare=False)
    name: str = field(compare=False)
    names: tuple[str, ...] = field(compare=False)


@lru_cache(maxsize=PATHS)
def search(path: _Path) -> Mapping[tuple[str, int], tuple[Carried, ...]]:
    """Element and the number of its subject -> the cells that hang on it."""
    numbers = {name: number for number, name in enumerate(path.names)}
    found = Repairs(path.host, path.name).carried()
    return {(each.element, numbers[each.subject]): cells for each, cells in found.items()}


class Repairs:
    """Of one program on one host. Repaired hosts are evaluated once for all cells."""

    def __init__(self, host: Host, name: str) -> None:
        self._host = host.path_of(host.programs[name])
        self._name = name
        self._judges: dict[Elements, Judge] = {}
        self._cells: dict[tuple[Elements, EventName, Question], Answer | None] = {}
        self._broken = broken(self._host, host.programs[name])
        self._candidates = frozenset(each.element for each in self._broken)

    def levels(self, event: EventName, question: Question) -> Iterator[Level]:
        """From the cell as it is upwards: what a loss hides is found in what is left when the first set is repaired."""
        base = NONE
        while sets := self._smallest(base, event, question):
            rank = self._cell(base, event, question).rank
            members = frozenset(each for one in sets for each in self._members(base, one, event, question))
            yield Level(rank, tuple(sets), members)
            base |= sets[0]

    def carried(self) -> Mapping[Reason, tuple[Carried, ...]]:
        """Element and subject -> the cells that hang on it."""
        found: dict[Reason, list[Carried]] = {}
        for event, question in self._judge(NONE).table(self._host.programs[self._name]):
            for level in self.levels(event, question):
                for member in level.members:
                    found.setdefault(member, []).append(Carried(event, question, level.rank))
        return {member: tuple(cells) for member, cells in found.items()}

    def _smallest(self, base: Elements, event: EventName, question: Question) -> list[Elements]:
        """Sets of up to three, none of which includes another."""
        before = self._cell(base, event, question).rank
        found, tried = list[Elements](), {NONE}
        grown = [NONE] if before is not Rank.SAFE else []
        for _ in range(LARGEST):
            larger = {one | {name}: None for one in grown for name in self._reasons(base | one, event, question) - base}
            grown = []
            for one in sorted(larger, key=sorted):
                if one not in tried and not any(smaller <= one for smaller in found):
                    tried.add(one)
                    improves = self._cell(base | one, event, question).rank > before
                    (found if improves else grown).append(one)
        return found

    def _reasons(self, repaired: Elements, event: EventName, question: Question) -> set[str]:
        return {each.element for each in self._cell(repaired, event, question).why if each.element in self._candidates}

    def _members(self, base: Elements, one: Elements, event: EventName, question: Question) -> Iterator[Reason]:
        """The subjects of each element that matter when the others of the set are repaired."""
        for name in one:
            for reason in self._cell(base | (one - {name}), event, question).why:
                if reason.element == name and reason in self._broken:
                    yield reason

    def _cell(self, repaired: Elements, event: EventName, question: Question) -> Answer:
        """A question that does not arise has nothing to improve."""
        judge = self._judge(repaired)
        return judge.cell(judge.copies.host.programs[self._name], event, question) or SAFE

    def _judge(self, repaired: Elements) -> Judge:
        if repaired not in self._judges:
            self._judges[repaired] = Judge(repair(self._host, repaired))
        return self._judges[repaired]
