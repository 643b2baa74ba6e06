"""What all derivations do with what they need: all of it known, or the reasons of everything that is not."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.facts import Evidence, Facts, Judged, Known, Subject, Unknown, join
from auditor.text import quoted


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
