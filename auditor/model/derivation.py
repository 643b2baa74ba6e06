"""How facts follow from facts: what a derivation is, what it needs, and the evidence of several facts together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Kind, Known, Spec, Subject, Unknown, join, unknown
from auditor.text import quoted

Function = Callable[[Subject, Facts], Judged | Iterable[Fact]]


@dataclass(frozen=True, eq=False)
class Derivation:
    """Facts about one kind of subject that follow from other facts, without I/O.

    subject: the kind that it is asked about, one subject after the other; host: all subjects at once. facts: what it
    gives, qualified ("leaf.path") where they are about another kind. function: returns the value of its only fact, or
    yields all of them: Known with the evidence of everything that it rests on, or Unknown with the reasons of what it lacks.
    """

    subject: Kind
    facts: Mapping[str, Spec]
    function: Function

    @property
    def specs(self) -> dict[tuple[Kind, str], Spec]:
        """(kind, fact) -> spec."""
        names = {name: name.rpartition(".") for name in self.facts}
        return {(cast(Kind, names[name][0] or self.subject), names[name][2]): spec for name, spec in self.facts.items()}

    def derive(self, subject: Subject, facts: Facts) -> Iterable[Fact]:
        """All its facts about a subject."""
        found = self.function(subject, facts)
        if isinstance(found, Known | Unknown):
            (name,) = self.facts
            return (Fact(subject, name, found),)
        return found

    def subjects(self, facts: Facts) -> Iterable[Subject]:
        """All that it is asked about."""
        return (HOST,) if self.subject == "host" else facts.subjects(self.subject)


def derivation(subject: Kind, facts: Mapping[str, Spec]) -> Callable[[Function], Derivation]:
    """Makes a derivation of a function."""
    return lambda function: Derivation(subject, facts, function)


# -- all of them ----------------------------------------------------------------------------------------------------


def run(derivations: Iterable[Derivation], facts: Facts) -> None:
    """Derive all that can be, each fact once: before its turn where another one asks for it."""
    every = tuple(derivations)
    facts.derive = lazy = Lazy(every, facts)
    for each in every:
        for subject in each.subjects(facts):
            lazy.run(each, subject)
    facts.derive = None


class Lazy:
    """Puts facts when they are asked for. A fact that would follow from itself is unknown."""

    def __init__(self, derivations: Iterable[Derivation], facts: Facts) -> None:
        self._facts = facts
        self._provider = {key: each for each in derivations for key in each.specs}
        self._done: dict[Derivation, dict[Subject, bool]] = {each: {} for each in self._provider.values()}

    def __call__(self, subject: Subject, name: str) -> None:
        """Derive this fact, if something can."""
        provider = self._provider.get((subject.kind, name))
        if provider and not self.run(provider, HOST if provider.subject == "host" else subject):
            self._facts.put(Fact(subject, name, unknown(f"{subject.kind} {subject}: {name} follows from itself")))

    def run(self, each: Derivation, subject: Subject) -> bool:
        """Derive all its facts about a subject, unless that was done; False where it is being done."""
        done = self._done[each]
        if subject in done:
            return done[subject]
        done[subject] = False
        self._facts.put_all(each.derive(subject, self._facts))
        done[subject] = True
        return True


# -- what derivations do with what they need ------------------------------------------------------------------------


def values(facts: Facts, subject: Subject, *names: str) -> list[Known] | Unknown:
    """These facts of a subject, in order; or one Unknown with the reasons of those that are missing."""
    return every(facts.get(subject, name) for name in names)


def every(judged: Iterable[Judged]) -> list[Known] | Unknown:
    """All of them known, or one Unknown with all reasons."""
    known: list[Known] = []
    unknowns: list[Unknown] = []
    for each in judged:
        if isinstance(each, Known):
            known.append(each)
        else:
            unknowns.append(each)
    return join(unknowns) if unknowns else known


def about(subject: Subject, found: Known) -> tuple[Evidence, ...]:
    """The evidence of a fact of another subject, with that subject's name in it."""
    return tuple(
        Evidence(f"{subject.name}: {each.text}", each.command.replace("{subject}", quoted(subject.name)), each.origin)
        for each in found.evidence
    )


def evidence(*found: Known) -> tuple[Evidence, ...]:
    """The evidence of several facts of the same subject, each once."""
    return tuple(dict.fromkeys(each for one in found for each in one.evidence))
