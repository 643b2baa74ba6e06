"""All sources: the one list of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate
from functools import cache
from types import ModuleType

from auditor import data
from auditor.host.request import Command, Read
from auditor.sources.source import Keep, Source


def of_module(module: ModuleType) -> tuple[Source, ...]:
    """Its sources, in their order."""
    return tuple(each for each in vars(module).values() if isinstance(each, Source))


@cache
def sources() -> Mapping[str, Source]:
    """Name -> source, those first whose word counts where several know a fact. Raises TypeError for a name given twice."""
    found: dict[str, Source] = {}
    modules = (*data.modules("auditor.databases"), *data.modules(__name__))
    for each in (each for module in modules for each in of_module(module)):
        if found.get(each.name, each) is not each:
            raise TypeError(f"there are two sources {each.name}")
        found[each.name] = each

    def depth(name: str) -> int:
        return max((1 + depth(other) for other in found[name].after), default=0)

    return dict(sorted(found.items(), key=lambda each: (depth(each[0]), each[0])))


@cache
def commands() -> tuple[Command, ...]:
    """All command lines that may be run: of several that begin alike the longest beginning is first."""
    every = dict.fromkeys(each for source in sources().values() for each in source.runs)
    return tuple(sorted(every, key=lambda each: -len(each.begins)))


@cache
def places() -> tuple[frozenset[str], tuple[str, ...]]:
    """What may be read: files, and beginnings of all that is below them."""
    every = {
        pattern
        for source in sources().values()
        for pattern in (*source.keeps, *(source.ask.patterns if isinstance(source.ask, Read) else ()))
    }
    begins = {each.partition("*")[0] for each in every if "*" in each}
    folders = tuple(sorted(each for each in begins if not each.startswith(tuple(begins - {each}))))
    return frozenset(each for each in every if not each.startswith(folders)), folders


@cache
def _keeps() -> tuple[Mapping[str, Keep], tuple[tuple[re.Pattern[str], Keep], ...]]:
    every = {pattern: keep for source in sources().values() for pattern, keep in source.keeps.items()}
    return every, tuple((re.compile(translate(each)), keep) for each, keep in every.items() if "*" in each)


def keep(path: str) -> Keep | None:
    """What makes the part of a file that is kept, where a source declares it."""
    files, patterns = _keeps()
    return files.get(path) or next((keep for pattern, keep in patterns if pattern.match(path)), None)
