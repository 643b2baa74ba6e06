"""How facts follow from facts: what a derivation is, what it needs of others, and the evidence of several facts together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import ParamSpec, TypeVar, cast

from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Kind, Known, Spec, Subject, Unknown, unknown
from auditor.facts import Missing as Missing
from auditor.facts import every as every
from auditor.text import quoted

JUDGED = (Known, Unknown)
P = ParamSpec("P")
R = TypeVar("R")
Function = Callable[[Subject, Facts], Judged | Iterable[Fact]]


@dataclass(frozen=True, eq=False)
class Derivation:
    """Facts about one kind of subject that follow from other facts, without I/O.

    subject: the kind that it is asked about; host: all subjects at once. facts: what it gives, qualified ("leaf.path")
    where they are about another kind. function: returns the value of its only fact, or yields all. Where it raises Missing,
    all facts are unknown that it has not yielded."""

    subject: Kind
    facts: Mapping[str, Spec]
    function: Function

    @cached_property
    def specs(self) -> dict[tuple[Kind, str], Spec]:
        names = {name: name.rpartition(".") for name in self.facts}
        return {(cast(Kind, names[name][0] or self.subject), names[name][2]): spec for name, spec in self.facts.items()}

    def derive(self, subject: Subject, facts: Facts) -> list[Fact]:
        found = list[Fact]()
        try:
            answer = self.function(subject, facts)
            if isinstance(answer, JUDGED):
                return [Fact(subject, next(iter(self.facts)), answer)]
            for fact in answer:
                found.append(fact)
        except Missing as missing:
            there = {fact[:2] for fact in found}
            found += (fact for fact in self._unknown(subject, missing.why, facts) if fact[:2] not in there)
        return found

    def _unknown(self, subject: Subject, why: Unknown, facts: Facts) -> Iterator[Fact]:
        for kind, name in self.specs:
            for each in (subject,) if kind == subject.kind else facts.subjects(kind):
                yield Fact(each, name, why)

    def subjects(self, facts: Facts) -> Iterable[Subject]:
        return (HOST,) if self.subject == "host" else facts.subjects(self.subject)


def derivation(subject: Kind, **facts: Spec) -> Callable[[Function], Derivation]:
    return lambda function: Derivation(subject, facts, function)


def run(derivations: Iterable[Derivation], facts: Facts) -> None:
    """Derive all that can be, each fact once: before its turn where another one asks for it."""
    every = tuple(derivations)
    facts.derive = lazy = Lazy(every, facts)
    for each in every:
        facts.put_all(fact for subject in each.subjects(facts) for fact in lazy.of(each, subject) or ())
    facts.derive = None


class Lazy:
    """Puts facts when they are asked for. A fact that would follow from itself is unknown."""

    def __init__(self, derivations: Iterable[Derivation], facts: Facts) -> None:
        self._facts = facts
        self._provider = {key: each for each in derivations for key in each.specs}
        self._done: dict[Derivation, dict[Subject, bool]] = {each: {} for each in self._provider.values()}

    def __call__(self, subject: Subject, name: str) -> None:
        if (provider := self._provider.get((subject.kind, name))) is None:
            return
        found = self.of(provider, HOST if provider.subject == "host" else subject)
        if found is None:
            found = [Fact(subject, name, unknown(f"{subject.kind} {subject}: {name} follows from itself"))]
        self._facts.put_all(found)

    def of(self, each: Derivation, subject: Subject) -> Sequence[Fact] | None:
        """All its facts about a subject, the first time; None where these are being derived."""
        done = self._done[each]
        if subject in done:
            return () if done[subject] else None
        done[subject] = False
        found = each.derive(subject, self._facts)
        done[subject] = True
        return found


# -- what derivations need ------------------------------------------------------------------------------------------


def catch_missing(function: Callable[P, R]) -> Callable[P, R | Unknown]:
    """Makes Unknown of what the function needs and is missing."""

    @wraps(function)
    def caught(*args: P.args, **kwargs: P.kwargs) -> R | Unknown:
        try:
            return function(*args, **kwargs)
        except Missing as missing:
            return missing.why

    return caught


def gaps(judged: Iterable[object]) -> list[Unknown]:
    return [each for each in judged if isinstance(each, Unknown)]


def numbers(version: Known) -> tuple[int, ...]:
    """Of a version, without its words."""
    return tuple(each for each in version.value if isinstance(each, int)) if isinstance(version.value, tuple) else ()


def first_known(judged: Iterable[Judged]) -> Judged:
    """The first that is known; without any, the reasons of all."""
    unknowns = list[Unknown]()
    for each in judged:
        if isinstance(each, Known):
            return each
        unknowns.append(each)
    return Unknown.join(unknowns)


# -- evidence -------------------------------------------------------------------------------------------------------


def about(subject: Subject, found: Known) -> tuple[Evidence, ...]:
    """The evidence of a fact of another subject, with that subject's name in it."""
    return tuple(
        Evidence(f"{subject.name}: {each.text}", each.command.replace("{subject}", quoted(subject.name)), each.origin)
        for each in found.evidence
    )


def about_each(found: Iterable[tuple[Subject, Judged]]) -> tuple[Evidence, ...]:
    """The same of facts of several subjects, as far as they are known."""
    return tuple(piece for subject, each in found if isinstance(each, Known) for piece in about(subject, each))


def evidence(*found: Judged) -> tuple[Evidence, ...]:
    """The evidence of those facts of the same subject that are known, each once."""
    return tuple(dict.fromkeys(piece for each in found if isinstance(each, Known) for piece in each.evidence))
