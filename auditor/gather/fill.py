"""What could not be found out: every fact that is left becomes Unknown, with the reason of the source that gives it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import cast

from auditor.facts import HOST, Fact, Facts, Kind, Subject, Unknown, unknown
from auditor.gather.gatherer import Gatherer
from auditor.gather.targets import covers, pool_of
from auditor.sources.source import Per, Source


def fill(gatherer: Gatherer, facts: Facts) -> None:
    """Every fact that a source could have given and did not becomes Unknown, with that source's reason.

    Where several could have given it, the reason of one that applies to the subject is the better one.
    """
    roots: dict[Subject, dict[Subject, None]] = {}  # by pool: of many pools no dataset is compared with all roots
    for name, subject in gatherer.answers:
        if gatherer.sources[name].per == "target":
            roots.setdefault(pool_of(subject), {})[subject] = None
    for of_kind, names_of in _sources(tuple(gatherer.sources.items())).items():
        pers = dict.fromkeys(gatherer.sources[name].per for name in names_of)
        known: dict[tuple[Subject, ...], list[tuple[Unknown, list[str]]]] = {}  # of all datasets below one root alike
        for subject in [HOST] if of_kind == "host" else list(facts.subjects(of_kind)):
            asked = {per: _asked(per, subject, roots) for per in pers}
            if (reasons := known.get(key := tuple(asked.values()))) is None:
                reasons = known[key] = _reasons(gatherer, names_of, asked)
            present = facts.of(subject)
            for reason, names in reasons:
                if missing := [each for each in names if each not in present]:
                    facts.put_all(Fact(subject, each, reason) for each in missing)


@cache
def _sources(sources: tuple[tuple[str, Source], ...]) -> Mapping[Kind, Mapping[str, list[str]]]:
    """Kind -> source -> the facts of this kind that it can give."""
    found: dict[Kind, dict[str, list[str]]] = {}
    for name, source in sources:
        for fact in source.facts:
            kind, _, bare = fact.rpartition(".")
            found.setdefault(cast(Kind, kind or source.subject), {}).setdefault(name, []).append(bare)
    return found


def _reasons(
    gatherer: Gatherer, names_of: Mapping[str, list[str]], asked: Mapping[Per, Subject]
) -> list[tuple[Unknown, list[str]]]:
    """(why its facts are not known, their names) of each source, those that apply first. asked: by what a question is about."""
    found = []
    for name, names in names_of.items():
        answer = gatherer.answers.get((name, asked[gatherer.sources[name].per]))
        why = (answer.failure if answer else None) or unknown(f"{name.replace('_', ' ')} was not asked")
        found.append((not (answer and answer.applies), why, names))
    return [(why, names) for _, why, names in sorted(found, key=lambda each: each[0])]


def _asked(per: Per, subject: Subject, roots: Mapping[Subject, Iterable[Subject]]) -> Subject:
    """The subject that a source was asked about to learn of this one."""
    match per:
        case "host":
            return HOST
        case "pool":
            return pool_of(subject)
        case "target":
            mine = roots.get(pool_of(subject), ())
            inside = (root for root in mine if covers(root, subject) or covers(subject, root))
            return max(inside, key=lambda root: len(root.name), default=subject)
        case _:
            return subject
