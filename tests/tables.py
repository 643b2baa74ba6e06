"""Rows of tables, for tests that write them as a line each."""

from __future__ import annotations

from typing import Any

from auditor.databases.paths import FolderDevice, MountedFrom, SymbolicLink
from auditor.facts import Kind
from auditor.registry import registry
from auditor.sources.block_devices import DeviceName
from auditor.sources.shares import SmbShare

BETWEEN = {SymbolicLink: " -> ", FolderDevice: " -> ", MountedFrom: " -> ", SmbShare: "=", DeviceName: "="}


def typed(kind: Kind, name: str, value: Any) -> Any:
    """The value of a fact; of a table, lines as rows."""
    spec = registry().get((kind, name))
    if spec is None or spec.row is None or type(value) is not tuple:
        return value
    row, mark = spec.row, BETWEEN.get(spec.row, " ")
    return tuple(row(*each.split(mark, len(row._fields) - 1)) if isinstance(each, str) else each for each in value)
