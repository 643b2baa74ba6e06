"""advice.toml: properties for databases. Its head says what its words mean."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from auditor import data
from auditor.data import TableError

FILE = "advice.toml"
TEXTS = ("type", "property", "value", "reason", "cost", "source")
LISTS = ("engines", "parts", "also")
PARTS = ("data", "log", "both")
TYPES = ("filesystem", "volume", "any")
SIZES = frozenset({"recordsize", "volblocksize"})


class Advice(NamedTuple):
    """One entry. value and also: of a size in bytes, else as the property spells it."""

    engines: tuple[str, ...]
    parts: tuple[str, ...]
    type: str
    property: str
    shown: str
    value: int | str
    also: tuple[int | str, ...]
    reason: str
    cost: str
    source: str
    dispute: str


@cache
def load() -> tuple[Advice, ...]:
    """All entries."""
    return parse(data.table(FILE))


def parse(document: data.Document) -> tuple[Advice, ...]:
    """The entries of a table in this form. Raises TableError for anything misspelt, missing or of the wrong type."""
    keys = frozenset((*TEXTS, *LISTS, "dispute"))
    return tuple(_advice(entry, where) for where, entry in data.entries(FILE, document, "advice", keys))


def _advice(entry: Mapping[str, Any], where: str) -> Advice:
    lists = [entry[key] for key in LISTS]
    if not all(isinstance(each, list) and all(isinstance(one, str) for one in each) for each in lists):
        raise TableError(f"{where}: {', '.join(LISTS)} are lists of words")
    if any(not isinstance(entry[key], str) or not entry[key] for key in TEXTS) or not isinstance(entry["dispute"], str):
        raise TableError(f"{where}: {', '.join(TEXTS)} are texts, and not empty")
    if entry["type"] not in TYPES or not entry["parts"] or not {*entry["parts"]} <= {*PARTS}:
        raise TableError(f"{where}: type is one of {', '.join(TYPES)}, parts are {', '.join(PARTS)}")
    name = entry["property"]
    try:
        value, *also = (_bytes(each) if name in SIZES else each for each in (entry["value"], *entry["also"]))
    except ValueError as error:
        raise TableError(f"{where}: {error}") from None
    texts = (entry[key] for key in ("reason", "cost", "source", "dispute"))
    return Advice(
        tuple(entry["engines"]), tuple(entry["parts"]), entry["type"], name, entry["value"], value, tuple(also), *texts
    )


def _bytes(text: str) -> int:
    """As ``zfs set`` takes it: 32K, 1M. Raises ValueError."""
    return int(text[:-1]) << {"K": 10, "M": 20}.get(text[-1:], 0) if text[-1:] in ("K", "M") else int(text)


def of(engine: str, part: str, kind: str) -> list[Advice]:
    """What is advised for a dataset of this kind, each property once."""
    found: dict[str, Advice] = {}
    for each in load():
        if (not each.engines or engine in each.engines) and part in each.parts and each.type in (kind, "any"):
            found.setdefault(each.property, each)
    return list(found.values())
