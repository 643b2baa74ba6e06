"""Severities, and what the durability model calls events, questions and parties, as rules and reports name them; and
a cell of their table: an answer for all three questions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from functools import cache, reduce
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from auditor.durability import answers, host
from auditor.durability.answers import Party as StoreParty

if TYPE_CHECKING:
    from auditor.judge.verdict import Verdict

Outcome = Literal["kept", "word", "unknown", "lost"]
ORDER: dict[Outcome, int] = {"kept": 0, "word": 1, "unknown": 2, "lost": 3}


class Tried(NamedTuple):
    """Power cuts of a drive that is relied on. held: informative cuts of this drive that lost nothing. units: tried
    drives of its model, it included; lost: those that lost flushed data."""

    name: str
    held: int
    units: int
    lost: int


class Word(NamedTuple):
    """A promise that is relied on. names: of drives; needed: how many of them must keep it, 0: all. owner, until: who answers
    for it in the policy. documented: by a provider, and adopted by the site. tried: those drives that power cuts were
    tried with."""

    party: Party
    names: tuple[str, ...] = ()
    owner: str = ""
    until: date | None = None
    needed: int = 0
    tried: tuple[Tried, ...] = ()
    documented: bool = False


class Cell(NamedTuple):
    """takes: what goes, of lost and unknown. parties: what is relied on. verdicts: of the rules that explain it.
    amounts: how much of the commits goes by each failure; empty: no bound is known. unseen: what keeps it unknown
    without a rule."""

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


Severity = Literal["low", "medium", "high", "critical"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

Event = host.EventName
EVENTS: tuple[Event, ...] = host.EVENTS
# what comes to every host by itself, the mildest first, then what takes a broken device as well
NEXT: tuple[Event, ...] = ("process", "restart", "crash", "power", "below", "drive", "log", "power+log", "power+drive")
# import: a log device is missing, or another host had the pool
Take = Literal["commits", "consistency", "pool", "import"]
TAKES: tuple[Take, ...] = get_args(Take)
Party = answers.Promised
STORE_PARTIES: tuple[StoreParty, ...] = get_args(StoreParty)
# for whom a site can answer in its policy, and the only answer that there is
ANSWERING: tuple[Party, ...] = ("hypervisor", "controller", "target", "drive")
ANSWER = "flushes honoured"

MEANS: dict[Event, str] = {
    "process": "the database is killed",
    "restart": "the host restarts in good order",
    "crash": "the kernel crashes or is reset",
    "power": "the power fails",
    "power+log": "the power fails and a log device does not come back",
    "power+drive": "the power fails and a data drive does not come back",
    "drive": "a data drive dies",
    "log": "a log device dies",
    "below": "the physical host or the storage loses power",
}
TAKEN: dict[Take, str] = {
    "commits": "acknowledged commits",
    "consistency": "the consistency of the database",
    "pool": "the pool",
    "import": "the import of the pool as it is",
}
GOES: dict[Event, str] = {
    "process": "what the database had not yet written",
    "restart": "what was in memory, after programs have ended and file systems were unmounted",
    "crash": "what was in memory",
    "power": "what was in memory and in volatile caches of drives and controllers that were not flushed",
    "power+log": "the same, and what was on a log device",
    "power+drive": "the same, and what was on one data drive (or special device, also where that holds the log)",
    "drive": "what was on one data drive (or special device)",
    "log": "what was on one log device",
    "below": "what the underlying device had acknowledged and not made durable",
}


@cache
def milder(event: Event) -> frozenset[Event]:
    """Events of which this one destroys everything, too."""
    found = {mild for mild, grave in host.ORDER if grave == event}
    return frozenset(found.union(*map(milder, found)))
