"""One event for one dataset, as a report says it: an answer of the durability model for all three questions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from functools import reduce
from typing import Literal, NamedTuple

from auditor.judge.event import TAKES, Party, Take
from auditor.judge.verdict import Verdict

Outcome = Literal["kept", "word", "unknown", "lost"]
ORDER: dict[Outcome, int] = {"kept": 0, "word": 1, "unknown": 2, "lost": 3}


class Tried(NamedTuple):
    """What power cuts have shown of a drive that is relied on. held: informative cuts of this very drive, none of which lost
    anything. units: drives of its model that were tried, it included; lost: those of them that lost flushed data."""

    name: str
    held: int
    units: int
    lost: int


class Word(NamedTuple):
    """A promise that is relied on. names: of drives and the like, needed of which must keep it; 0: all. owner, until: who
    answers for it in the policy, if anybody does; documented: the owner is where a provider documents it, and the site has
    adopted that. tried: of those drives that power cuts were tried with."""

    party: Party
    names: tuple[str, ...] = ()
    owner: str = ""
    until: date | None = None
    needed: int = 0
    tried: tuple[Tried, ...] = ()
    documented: bool = False


class Cell(NamedTuple):
    """takes: what goes, of lost and unknown. parties: what is relied on. verdicts: of the rules that explain it. amounts: how
    much of the commits goes, of each failure that takes some; an empty one knows no bound. unseen: what keeps it unknown and
    no rule speaks of."""

    outcome: Outcome
    takes: tuple[Take, ...] = ()
    parties: tuple[Word, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    amounts: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def rules(self) -> tuple[str, ...]:
        """The ids of the rules that explain it."""
        return tuple(dict.fromkeys(each.rule.id for each in self.verdicts))

    @property
    def alike(self) -> tuple[object, ...]:
        """What two cells have in common that say the same."""
        return self.outcome, self.takes, self.parties, self.rules, self.unseen


KEPT = Cell("kept")


def joined(cells: Iterable[Cell]) -> Cell:
    """The worst of several datasets."""
    return reduce(both, cells, KEPT)


def both(first: Cell, second: Cell) -> Cell:
    """The worse of two, or both where they are alike."""
    if first.outcome != second.outcome:
        return max(first, second, key=lambda cell: ORDER[cell.outcome])
    if first.outcome == "kept":
        return first
    return Cell(
        first.outcome,
        tuple(take for take in TAKES if take in first.takes + second.takes),
        merged((*first.parties, *second.parties)),
        tuple({id(each): each for each in first.verdicts + second.verdicts}.values()),
        tuple(dict.fromkeys(first.amounts + second.amounts)),
        tuple(dict.fromkeys(first.unseen + second.unseen)),
    )


def merged(words: Iterable[Word]) -> tuple[Word, ...]:
    """Each party once, and once more for what somebody answers for; a choice stays one of its own."""
    found: dict[tuple[object, ...], Word] = {}
    for word in words:
        key = (word.party, word.owner, word.until, word.names if word.needed else ())
        before = found.get(key, word)
        names = dict.fromkeys((*before.names, *word.names))
        tried = dict.fromkeys((*before.tried, *word.tried))
        found[key] = word._replace(names=tuple(names), tried=tuple(tried))
    return tuple(found.values())
