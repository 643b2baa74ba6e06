"""Which facts exist: those of every source, and of every derivation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import cast

from auditor.databases import paths
from auditor.facts import Kind, Spec
from auditor.gather import layers, users, walk
from auditor.model import (
    database,
    database_start,
    dataset,
    disk,
    fault_log,
    flushes,
    intent_log,
    kernels,
    next_boot,
    pool,
    release,
    vdev,
    write_cache,
)
from auditor.model.derivation import Derivation
from auditor.model.run import FACTS as RUN_FACTS
from auditor.model.run import HOST_FACTS
from auditor.sources import block_tree
from auditor.sources.catalog import sources as sources
from auditor.sources.source import Source

# all of auditor/model that derive facts
MODULES = (
    *(database, database_start, dataset, disk, flushes, intent_log, fault_log, kernels),
    *(next_boot, pool, release, vdev, write_cache),
)


@cache
def derivations() -> tuple[Derivation, ...]:
    found = (each for module in MODULES for each in vars(module).values() if isinstance(each, Derivation))
    return tuple(dict.fromkeys(found))


def specs(source: Source) -> list[tuple[tuple[Kind, str], Spec]]:
    """((kind, fact), spec) of a source. One about one kind names its facts bare, others qualify them."""
    return list(qualified(source.facts, source.subject).items())


def qualified(facts: Mapping[str, Spec], subject: str = "") -> dict[tuple[Kind, str], Spec]:
    """(kind, fact) -> spec, from names that are qualified ("leaf.path") or about one kind of subject ("path")."""
    found = {}
    for name, spec in facts.items():
        kind, _, bare = name.rpartition(".")
        found[cast(Kind, kind or subject), bare] = spec
    return found


def every() -> Iterator[tuple[tuple[Kind, str], Spec]]:
    """((kind, fact), spec) of every source and derivation."""
    for source in sources().values():
        yield from specs(source)
    for derivation in derivations():
        yield from derivation.specs.items()


@cache
def registry() -> dict[tuple[Kind, str], Spec]:
    """(kind, fact) -> spec of every fact that anything can provide."""
    found: dict[tuple[Kind, str], Spec] = {}
    walked: dict[tuple[Kind, str], Spec] = {
        **qualified(block_tree.PROVIDES),
        **qualified(walk.PROVIDES),
        **qualified(layers.PROVIDES),
        **qualified(users.PROVIDES),
        **qualified(paths.PROVIDES),
        **qualified(RUN_FACTS, "run"),
        **qualified(HOST_FACTS, "host"),
    }
    for key, spec in (*walked.items(), *every()):
        if key in found and found[key] != spec:
            raise TypeError(f"{'.'.join(key)} is already something else")
        found[key] = spec
    return found
