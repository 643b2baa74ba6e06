"""What is judged of facts of which few have changed: what reads none of these is as it was, and is not judged again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from auditor.facts import KINDS, Facts, Judged, Kind, Subject, value_of
from auditor.judge import verdict
from auditor.judge.rule import Rule

Outcomes = dict[tuple[str, Subject], str]


def outcomes(rules: Sequence[Rule], facts: Facts) -> Outcomes:
    """(rule, subject) -> pass, fail, unknown or not applicable."""
    return {(each.rule.id, each.subject): each.outcome for each in verdict.judge(rules, facts)}


@dataclass(frozen=True)
class Before:
    """What was judged. reads: by the id of a rule, the names of all facts on which its verdicts hang."""

    rules: Sequence[Rule]
    facts: Facts
    outcomes: Outcomes
    reads: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, rules: Sequence[Rule], facts: Facts) -> Before:
        """Judge all."""
        return cls(rules, facts, outcomes(rules, facts), {rule.id: _reads(rule) for rule in rules})

    def after(self, facts: Facts) -> Outcomes:
        """As outcomes() of these facts."""
        names = changed(self.facts, facts)
        rules = [rule for rule in self.rules if names & self.reads[rule.id]]
        anew = {rule.id for rule in rules}
        kept = {key: outcome for key, outcome in self.outcomes.items() if key[0] not in anew}
        return kept | outcomes(rules, facts)


def changed(before: Facts, after: Facts) -> frozenset[str]:
    """Names of facts that are not what they were; of what is not known the reasons decide nothing."""
    names: set[str] = set()
    for subject in {*_subjects(before), *_subjects(after)}:
        one, other = before.of(subject), after.of(subject)
        if one != other:  # the reasons or the evidence, at least
            names.update(name for name in one.keys() | other.keys() if _kept(one.get(name)) != _kept(other.get(name)))
    return frozenset(names)


def _reads(rule: Rule) -> frozenset[str]:
    """What it names, and the links to what it judges."""
    written = (rule.when, rule.expect, *(each.when for each in rule.cases))
    return frozenset(_links(rule.subject)).union(*(re.findall(r"\w+", each.source) for each in written if each))


def _links(kind: Kind) -> set[str]:
    routes = verdict.ROUTES[kind] if kind != "host" else ()
    return {link for _, link in routes}.union(*(_links(parent) for parent, _ in routes))


def _subjects(facts: Facts) -> Iterator[Subject]:
    return (subject for kind in KINDS for subject in facts.subjects(kind))


def _kept(value: Judged | None) -> object:
    return value and (type(value), value_of(value))
