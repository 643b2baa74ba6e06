"""One event for one dataset: how the outcomes of several rules come to one (Kleene's *and*, :mod:`auditor.judge.outcomes`)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from functools import reduce
from typing import Literal, NamedTuple

from auditor.judge.event import EVENTS, TAKES, Event, Party, Strike, Take
from auditor.judge.policy import Answer, Waiver
from auditor.judge.verdict import Verdict

Outcome = Literal["kept", "word", "unknown", "lost"]
ORDER: dict[Outcome, int] = {"kept": 0, "word": 1, "unknown": 2, "lost": 3}
HARMLESS = Strike("low")  # what a rule does that holds


class Word(NamedTuple):
    """Who must keep their word, with the names of drives. owner, until: who answers for it in the policy, if anybody does."""

    party: Party
    names: tuple[str, ...] = ()
    owner: str = ""
    until: date | None = None


class Cell(NamedTuple):
    """One event for one dataset. takes: what goes, of lost and unknown. parties: who must keep their word. verdicts: behind a
    lost, unknown or word. left_out: rules that would decide it and were not run."""

    outcome: Outcome
    takes: tuple[Take, ...] = ()
    parties: tuple[Word, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def rules(self) -> tuple[str, ...]:
        """The ids of the rules behind it."""
        return tuple(dict.fromkeys((*(each.rule.id for each in self.verdicts), *self.left_out)))

    @property
    def alike(self) -> tuple[object, ...]:
        """What two cells have in common that say the same, of whatever subjects."""
        return self.outcome, self.takes, self.parties, self.rules


KEPT = Cell("kept")


class Effect(NamedTuple):
    """What one verdict (or one cache, or one rule that was left out) does at the events."""

    strikes: tuple[Strike, ...]  # what it may do; harmless among them where the rule may hold
    verdict: Verdict | None = None
    drives: tuple[str, ...] = ()
    left_out: str = ""
    hypervisor: bool = False  # the drive is one that a hypervisor shows
    answer: Answer | Waiver | None = None  # of who answers for it

    @property
    def alike(self) -> tuple[object, ...]:
        """What two have in common that do the same to whatever they are about."""
        rule = self.verdict.rule.id if self.verdict else ""
        by = (self.answer.owner, self.answer.expires) if self.answer else ()
        return rule, self.strikes, self.drives, self.left_out, self.hypervisor, by

    def word(self, strike: Strike) -> Word | None:
        """Who must keep it."""
        if not strike.word:
            return None
        party: Party = "hypervisor" if strike.word == "drive" and self.hypervisor else strike.word
        names = self.drives if party == "drive" else ()
        return Word(party, names, self.answer.owner, self.answer.expires) if self.answer else Word(party, names)

    def outcome(self, event: Event) -> Outcome:
        each = {_does(strike, event) for strike in self.strikes}
        if each == {"lost"}:
            return "lost"
        if "lost" in each:
            return "unknown"
        return "word" if "word" in each else "kept"


def _does(strike: Strike, event: Event) -> Literal["kept", "word", "lost"]:
    if not strike.strikes(event):
        return "kept"
    return "word" if strike.word else "lost"


def cells_of(effects: Iterable[Effect]) -> tuple[Cell, ...]:
    """One cell for each event."""
    listed = list(effects)
    return tuple(_cell(event, listed) for event in EVENTS)


def _cell(event: Event, effects: list[Effect]) -> Cell:
    outcomes = [(effect, effect.outcome(event)) for effect in effects]
    worst: Outcome = max((outcome for _, outcome in outcomes), key=lambda each: ORDER[each], default="kept")
    if worst == "kept":
        return KEPT
    deciding = [effect for effect, outcome in outcomes if outcome == worst]
    at = [(effect, strike) for effect in deciding for strike in effect.strikes if strike.strikes(event)]
    return Cell(
        worst,
        takes=_takes(strike.takes for _, strike in at),
        parties=_merged([effect.word(strike) for effect, strike in at]) if worst == "word" else (),
        verdicts=tuple(effect.verdict for effect in deciding if effect.verdict),
        left_out=tuple(effect.left_out for effect in deciding if effect.left_out),
    )


def both_of_each(first: tuple[Cell, ...], second: tuple[Cell, ...]) -> tuple[Cell, ...]:
    return tuple(map(both, first, second))


def both(first: Cell, second: Cell) -> Cell:
    """*And*: the worse of two, or both where they are alike."""
    if first.outcome != second.outcome:
        return max(first, second, key=lambda cell: ORDER[cell.outcome])
    if first.outcome == "kept":
        return first
    return Cell(
        first.outcome,
        _takes((first.takes, second.takes)),
        _merged((*first.parties, *second.parties)),
        once((*first.verdicts, *second.verdicts)),
        tuple(dict.fromkeys((*first.left_out, *second.left_out))),
    )


def joined(cells: Iterable[Cell]) -> Cell:
    """The worst of several datasets."""
    return reduce(both, cells, KEPT)


def _takes(each: Iterable[tuple[Take, ...]]) -> tuple[Take, ...]:
    seen = {take for takes in each for take in takes}
    return tuple(take for take in TAKES if take in seen)


def _merged(words: Iterable[Word | None]) -> tuple[Word, ...]:
    """Each party once, and once more for what somebody answers for; a drive that is answered for needs no other word."""
    found: dict[tuple[Party, str, date | None], dict[str, None]] = {}
    for word in words:
        if word:
            found.setdefault((word.party, word.owner, word.until), {}).update(dict.fromkeys(word.names))
    answered = {(party, name) for (party, owner, _), names in found.items() if owner for name in names}
    merged = []
    for (party, owner, until), names in found.items():
        left = tuple(name for name in names if owner or (party, name) not in answered)
        if left or not names:
            merged.append(Word(party, left, owner, until))
    return tuple(merged)


def once(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    return tuple({id(each): each for each in verdicts}.values())
