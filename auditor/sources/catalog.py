"""All sources: the one list of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

from auditor.collect import (
    database_blocks,
    database_includes,
    database_links,
    database_paths,
    database_process,
    database_processes,
    database_settings,
    database_sql,
    database_unit,
    redis_unit,
    sqlite_locks,
    unit_conditions,
    unit_start,
)
from auditor.sources import (
    block_devices,
    guests,
    kernel_log,
    kernel_module,
    kstat,
    machine,
    mounts,
    nvme,
    raid,
    shares,
    smartctl,
    targets,
    udev,
    units,
    upkeep,
    zdb,
    zfs,
    zpool,
    zpool_history,
    zpool_status,
)
from auditor.sources.source import Source, source

MODULES: tuple[ModuleType, ...] = (
    block_devices,
    guests,
    kernel_log,
    kernel_module,
    kstat,
    machine,
    mounts,
    nvme,
    raid,
    shares,
    smartctl,
    targets,
    udev,
    units,
    upkeep,
    zdb,
    zfs,
    zpool,
    zpool_history,
    zpool_status,
)
# modules of auditor/collect, which are one source each
SINGLE: tuple[ModuleType, ...] = (
    *(database_blocks, database_includes, database_links, database_paths, database_process, database_processes),
    *(database_settings, database_sql, database_unit, redis_unit, sqlite_locks, unit_conditions, unit_start),
)


@cache
def sources() -> Mapping[str, Source]:
    """Name -> source, those first whose word counts where several know a fact. Raises TypeError for a name given twice."""
    found: dict[str, Source] = {}
    for each in (*(each for module in MODULES for each in module.SOURCES), *map(_of_module, SINGLE)):
        if each.name in found:
            raise TypeError(f"there are two sources {each.name}")
        found[each.name] = each

    def depth(name: str) -> int:
        return max((1 + depth(other) for other in found[name].after), default=0)

    return dict(sorted(found.items(), key=lambda each: (depth(each[0]), each[0])))


MORE = ("after", "form", "part", "adds", "words")


def _of_module(module: Any) -> Source:
    """Of a module that is one source, by the names of its parts."""
    name = module.__name__.rpartition(".")[2]
    more = {each: getattr(module, each.upper()) for each in MORE if hasattr(module, each.upper())}
    return source(name, module.PER, ask=module.request, facts=module.FACTS, subject=module.SUBJECT, **more)(
        module.parse
    )
