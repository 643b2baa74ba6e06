"""Which questions there are: every collector, discovered by folder. A stray module is an error."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType

import auditor.collect
import auditor.databases

COLLECTOR = ("PER", "SUBJECT", "FACTS", "request", "parse")


@cache
def collectors() -> dict[str, ModuleType]:
    """Name -> module of every collector, those first whose word counts where several know a fact: a collector names in
    AFTER those that it gives way to."""
    found = dict(modules(auditor.collect, COLLECTOR))
    for info in pkgutil.iter_modules(auditor.databases.__path__):
        module = import_module(f"auditor.databases.{info.name}")
        found |= {each.name: each for each in getattr(module, "COLLECTORS", ())}

    def depth(name: str) -> int:
        return max((1 + depth(other) for other in getattr(found[name], "AFTER", ())), default=0)

    return dict(sorted(found.items(), key=lambda each: (depth(each[0]), each[0])))


def modules(package: ModuleType, parts: tuple[str, ...]) -> Iterator[tuple[str, ModuleType]]:
    """The modules of a folder that have all the parts; one that has only some of them is a mistake."""
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda each: each.name):
        module = import_module(f"{package.__name__}.{info.name}")
        has = [part for part in parts if hasattr(module, part)]
        if len(has) == len(parts):
            yield info.name, module
        elif parts[0] in has and "FACTS" in has:
            raise TypeError(f"{module.__name__} has FACTS but lacks {', '.join(set(parts) - set(has))}")
