"""Facts from facts, without I/O. One module a question; each says what it NEEDS, from which follows
the order in which they run.

A derivation has SUBJECT, FACTS (qualified, "leaf.path", where they are not about that kind of subject), NEEDS (the
qualified names of the facts that it reads) and ``derive(subject, facts)``, which yields a Known with the evidence of
everything that it rests on, or an Unknown with the reasons of what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from graphlib import TopologicalSorter
from types import ModuleType

from auditor.facts import HOST, Facts


def run(derivations: Mapping[str, ModuleType], facts: Facts) -> None:
    """Apply all derivations, those first that others need. Raises graphlib.CycleError when they need each other."""
    for module in _ordered(tuple(derivations.items())):
        for subject in [HOST] if module.SUBJECT == "host" else list(facts.subjects(module.SUBJECT)):
            facts.put_all(module.derive(subject, facts))


@cache
def _ordered(derivations: tuple[tuple[str, ModuleType], ...]) -> list[ModuleType]:
    modules = dict(derivations)
    provider = {
        fact if "." in fact else f"{module.SUBJECT}.{fact}": name
        for name, module in derivations
        for fact in module.FACTS
    }
    needs = {
        name: {provider[need] for need in module.NEEDS if need in provider} - {name} for name, module in derivations
    }
    return [modules[name] for name in TopologicalSorter(dict(sorted(needs.items()))).static_order()]
