"""All sources: the one list of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType

from auditor.databases import paths, redis, servers, services, settings, sqlite
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
from auditor.sources.source import Source

MODULES: tuple[ModuleType, ...] = (
    block_devices,
    guests,
    kernel_log,
    kernel_module,
    kstat,
    machine,
    mounts,
    nvme,
    paths,
    raid,
    redis,
    servers,
    services,
    settings,
    shares,
    smartctl,
    sqlite,
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


@cache
def sources() -> Mapping[str, Source]:
    """Name -> source, those first whose word counts where several know a fact. Raises TypeError for a name given twice."""
    found: dict[str, Source] = {}
    for each in (each for module in MODULES for each in module.SOURCES):
        if each.name in found:
            raise TypeError(f"there are two sources {each.name}")
        found[each.name] = each

    def depth(name: str) -> int:
        return max((1 + depth(other) for other in found[name].after), default=0)

    return dict(sorted(found.items(), key=lambda each: (depth(each[0]), each[0])))
