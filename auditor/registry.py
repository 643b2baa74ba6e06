"""Which facts exist: every collector and every derivation, discovered by folder. A stray module is an error."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import cast

import auditor.collect
import auditor.derive
from auditor.collect import _blocks as blocks
from auditor.collect import database_paths
from auditor.facts import Kind, Spec
from auditor.gather import brought, database_walk, layers, walk
from auditor.verify.specs import FACTS as RUN_FACTS
from auditor.verify.specs import HOST_FACTS

COLLECTOR = ("PER", "SUBJECT", "FACTS", "request", "parse")
DERIVATION = ("SUBJECT", "FACTS", "NEEDS", "derive")


@cache
def collectors() -> dict[str, ModuleType]:
    """Name -> module of every collector, those first whose word counts where several know a fact: a collector names in
    AFTER those that it gives way to."""
    found = dict(_modules(auditor.collect, COLLECTOR))

    def depth(name: str) -> int:
        return max((1 + depth(other) for other in getattr(found[name], "AFTER", ())), default=0)

    return dict(sorted(found.items(), key=lambda each: depth(each[0])))


@cache
def derivations() -> dict[str, ModuleType]:
    """Name -> module of every derivation."""
    return dict(_modules(auditor.derive, DERIVATION))


def _modules(package: ModuleType, parts: tuple[str, ...]) -> Iterator[tuple[str, ModuleType]]:
    """The modules of a folder that have all the parts; one that has only some of them is a mistake."""
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda each: each.name):
        module = import_module(f"{package.__name__}.{info.name}")
        has = [part for part in parts if hasattr(module, part)]
        if len(has) == len(parts):
            yield info.name, module
        elif parts[0] in has and "FACTS" in has:
            raise TypeError(f"{module.__name__} has FACTS but lacks {', '.join(set(parts) - set(has))}")


def specs(module: ModuleType) -> list[tuple[tuple[Kind, str], Spec]]:
    """((kind, fact), spec) of one module. A module about one kind names its facts bare, others qualify them."""
    subject = module.SUBJECT if isinstance(module.SUBJECT, str) else ""
    return list(qualified(module.FACTS, subject).items())


def qualified(facts: Mapping[str, Spec], subject: str = "") -> dict[tuple[Kind, str], Spec]:
    """(kind, fact) -> spec, from names that are qualified ("leaf.path") or about one kind of subject ("path")."""
    found = {}
    for name, spec in facts.items():
        kind, _, bare = name.rpartition(".")
        found[cast(Kind, kind or subject), bare] = spec
    return found


@cache
def registry() -> dict[tuple[Kind, str], Spec]:
    """(kind, fact) -> spec of every fact that anything can provide."""
    found: dict[tuple[Kind, str], Spec] = {}
    walked: dict[tuple[Kind, str], Spec] = {
        **qualified(blocks.PROVIDES),
        **qualified(walk.PROVIDES),
        **qualified(brought.PROVIDES),
        **qualified(layers.PROVIDES),
        **qualified(database_walk.PROVIDES),
        **qualified(database_paths.PROVIDES),
        **qualified(RUN_FACTS, "run"),
        **qualified(HOST_FACTS, "host"),
    }
    modules = (*collectors().values(), *derivations().values())
    for key, spec in (*walked.items(), *(each for module in modules for each in specs(module))):
        if key in found and found[key] != spec:
            raise TypeError(f"{'.'.join(key)} is already something else")
        found[key] = spec
    return found
