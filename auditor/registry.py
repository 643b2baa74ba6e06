"""Which facts exist: every collector and every derivation, discovered by folder. A stray module is an error."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import cast

import auditor.derive
from auditor.collect import _blocks as blocks
from auditor.databases import paths
from auditor.facts import Kind, Spec
from auditor.gather import brought, database_walk, layers, users, walk
from auditor.gather.collectors import collectors as collectors
from auditor.gather.collectors import modules
from auditor.verify.specs import FACTS as RUN_FACTS
from auditor.verify.specs import HOST_FACTS

DERIVATION = ("SUBJECT", "FACTS", "NEEDS", "derive")


@cache
def derivations() -> dict[str, ModuleType]:
    """Name -> module of every derivation."""
    return dict(modules(auditor.derive, DERIVATION))


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
        **qualified(paths.PROVIDES),
        **qualified(RUN_FACTS, "run"),
        **qualified(HOST_FACTS, "host"),
    }
    sources = (*collectors().values(), *derivations().values())
    for key, spec in (*walked.items(), *(each for module in sources for each in specs(module))):
        if key in found and found[key] != spec:
            raise TypeError(f"{'.'.join(key)} is already something else")
        found[key] = spec
    return found
