"""retired.toml: rules that zaudit no longer has. Its head describes it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from auditor import data
from auditor.data import TableError

FILE = "retired.toml"


@cache
def load() -> Mapping[str, str]:
    """A sentence about each, by id: that it is retired, and what to use."""
    return {id: f"{id} is retired: {use}" for id, use in parse(data.table(FILE)).items()}


def parse(document: data.Document) -> dict[str, str]:
    """What to use instead of each rule of a table in this form. Raises TableError for anything else."""
    found: dict[str, str] = {}
    for id, entry in document.items():
        match entry:
            case {"successor": str(rule), **others} if rule and not others:
                found[id] = f"use rule {rule}"
            case {"instead": str(use), **others} if use and not others:
                found[id] = use
            case _:
                raise TableError(f"{FILE}: {id}: expected successor or instead, and nothing else")
    return found
