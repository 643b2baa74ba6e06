"""Which facts exist: those of every source, and of every derivation, discovered by folder. A stray module is an error."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import cast

import auditor.derive
from auditor.collect import _blocks as blocks
from auditor.databases import paths
from auditor.facts import Kind, Spec
from auditor.gather import brought, database_walk, layers, users, walk
from auditor.sources.catalog import sources as sources
from auditor.sources.source import Source
from auditor.verify.specs import FACTS as RUN_FACTS
from auditor.verify.specs import HOST_FACTS

DERIVATION = ("SUBJECT", "FACTS", "NEEDS", "derive")


@cache
def derivations() -> dict[str, ModuleType]:
    """Name -> module of every derivation."""
    return dict(modules(auditor.derive, DERIVATION))


def specs(of: ModuleType | Source) -> list[tuple[tuple[Kind, str], Spec]]:
    """((kind, fact), spec) of a source or a derivation. A module about one kind names its facts bare, others qualify them."""
    if isinstance(of, Source):
        return list(qualified(of.facts, of.subject).items())
    return list(qualified(of.FACTS, of.SUBJECT if isinstance(of.SUBJECT, str) else "").items())


def modules(package: ModuleType, parts: tuple[str, ...]) -> Iterator[tuple[str, ModuleType]]:
    """The modules of a folder that have all the parts; one that has only some of them is a mistake."""
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda each: each.name):
        module = import_module(f"{package.__name__}.{info.name}")
        has = [part for part in parts if hasattr(module, part)]
        if len(has) == len(parts):
            yield info.name, module
        elif parts[0] in has and "FACTS" in has:
            raise TypeError(f"{module.__name__} has FACTS but lacks {', '.join(set(parts) - set(has))}")


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
    for key, spec in (
        *walked.items(),
        *(each for module in (*sources().values(), *derivations().values()) for each in specs(module)),
    ):
        if key in found and found[key] != spec:
            raise TypeError(f"{'.'.join(key)} is already something else")
        found[key] = spec
    return found
