"""Facts from facts, without I/O. One module a question; a fact that another one needs is derived when it asks for it.

A derivation has SUBJECT, FACTS (qualified, "leaf.path", where they are not about that kind of subject) and
``derive(subject, facts)``, which yields a Known with the evidence of everything that it rests on, or an Unknown with the
reasons of what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from auditor.facts import HOST, Fact, Facts, Kind, Subject, unknown


def run(derivations: Mapping[str, ModuleType], facts: Facts) -> None:
    """Derive all that can be, each fact once: before its turn where another one asks for it."""
    facts.derive = lazy = Lazy(derivations, facts)
    for module in derivations.values():
        for subject in [HOST] if module.SUBJECT == "host" else facts.subjects(module.SUBJECT):
            lazy.run(module, subject)
    facts.derive = None


class Lazy:
    """Puts facts when they are asked for. A fact that would follow from itself is unknown."""

    def __init__(self, derivations: Mapping[str, ModuleType], facts: Facts) -> None:
        self._facts = facts
        self._provider: dict[tuple[Kind, str], ModuleType] = {}
        for module in derivations.values():
            for name in module.FACTS:
                kind, _, bare = name.rpartition(".")
                self._provider[kind or module.SUBJECT, bare] = module
        self._begun: set[tuple[str, Subject]] = set()
        self._done: set[tuple[str, Subject]] = set()

    def __call__(self, subject: Subject, name: str) -> None:
        """Derive this fact, if something can."""
        module = self._provider.get((subject.kind, name))
        if module and not self.run(module, HOST if module.SUBJECT == "host" else subject):
            self._facts.put(Fact(subject, name, unknown(f"{subject.kind} {subject}: {name} follows from itself")))

    def run(self, module: ModuleType, subject: Subject) -> bool:
        """Derive all facts of a module about a subject, unless that was done; False where it is being done."""
        key = module.__name__, subject
        if key in self._begun:
            return key in self._done
        self._begun.add(key)
        self._facts.put_all(list(module.derive(subject, self._facts)))
        self._done.add(key)
        return True
