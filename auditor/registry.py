"""Which facts exist: every collector and every derivation, discovered by folder. A stray module is an error."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import cast

import auditor.model
from auditor.collect import _blocks as blocks
from auditor.collect import database_paths
from auditor.facts import Kind, Spec
from auditor.gather import brought, database_walk, layers, users, walk
from auditor.gather.collectors import collectors as collectors
from auditor.model.derivation import Derivation
from auditor.verify.specs import FACTS as RUN_FACTS
from auditor.verify.specs import HOST_FACTS


@cache
def derivations() -> tuple[Derivation, ...]:
    """Every derivation."""
    names = sorted(info.name for info in pkgutil.iter_modules(auditor.model.__path__))
    found = (vars(import_module(f"{auditor.model.__name__}.{name}")).values() for name in names)
    return tuple(dict.fromkeys(each for values in found for each in values if isinstance(each, Derivation)))


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
        **qualified(users.PROVIDES),
        **qualified(database_walk.PROVIDES),
        **qualified(database_paths.PROVIDES),
        **qualified(RUN_FACTS, "run"),
        **qualified(HOST_FACTS, "host"),
    }
    collected = (each for module in collectors().values() for each in specs(module))
    derived = (each for derivation in derivations() for each in derivation.specs.items())
    for key, spec in (*walked.items(), *collected, *derived):
        if key in found and found[key] != spec:
            raise TypeError(f"{'.'.join(key)} is already something else")
        found[key] = spec
    return found
