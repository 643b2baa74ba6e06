"""All sources: the one list of them."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType

import auditor.collect
from auditor.databases import paths, redis, servers, services, settings, sqlite
from auditor.sources.source import Source, source

MODULES: tuple[ModuleType, ...] = (paths, redis, servers, services, settings, sqlite)


@cache
def sources() -> Mapping[str, Source]:
    """Name -> source, those first whose word counts where several know a fact. Raises TypeError for a name given twice."""
    found: dict[str, Source] = {}
    for each in (*(each for module in MODULES for each in module.SOURCES), *_of_modules(auditor.collect)):
        if each.name in found:
            raise TypeError(f"there are two sources {each.name}")
        found[each.name] = each

    def depth(name: str) -> int:
        return max((1 + depth(other) for other in found[name].after), default=0)

    return dict(sorted(found.items(), key=lambda each: (depth(each[0]), each[0])))


PARTS = ("PER", "SUBJECT", "FACTS", "request", "parse")


def _of_modules(package: ModuleType) -> Iterator[Source]:
    """Of modules that are one source each, by the names of their parts."""
    for info in pkgutil.iter_modules(package.__path__):
        module = import_module(f"{package.__name__}.{info.name}")
        has = {part for part in PARTS if hasattr(module, part)}
        if {"PER", "FACTS"} <= has:
            if lacks := set(PARTS) - has:
                raise TypeError(f"{module.__name__} has FACTS but lacks {', '.join(sorted(lacks))}")
            more = {name: getattr(module, name.upper()) for name in MORE if hasattr(module, name.upper())}
            made = source(info.name, module.PER, ask=module.request, facts=module.FACTS, subject=module.SUBJECT, **more)
            yield made(module.parse)


MORE = ("after", "form", "part", "adds", "words")
