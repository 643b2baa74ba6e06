"""shingled.toml: hard disks that are known to be shingled. Its head says what its words mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from auditor import data
from auditor.data import TableError
from auditor.data.drives import normal

FILE = "shingled.toml"
LISTS = ("examples", "others")
KEYS = frozenset({"model", "family", "source", *LISTS})


class Family(NamedTuple):
    """One entry."""

    model: re.Pattern[str]
    family: str
    source: str
    examples: tuple[str, ...]
    others: tuple[str, ...]


@cache
def load() -> tuple[Family, ...]:
    """All entries, in the order in which they are tried."""
    return parse(data.table(FILE))


def parse(document: data.Document) -> tuple[Family, ...]:
    """The entries of a table in this form. Raises TableError for anything misspelt, missing or of the wrong type."""
    return tuple(_family(entry, where) for where, entry in data.entries(FILE, document, "shingled", KEYS))


def _family(entry: Mapping[str, Any], where: str) -> Family:
    lists = [entry[key] for key in LISTS]
    if not all(isinstance(each, list) and each for each in lists):
        raise TableError(f"{where}: examples and others are lists of models, at least one")
    texts = [*(entry[key] for key in ("model", "family", "source")), *(each for some in lists for each in some)]
    if any(not isinstance(each, str) or not each.strip() for each in texts):
        raise TableError(f"{where}: all values are texts")
    try:
        model = re.compile(entry["model"], re.IGNORECASE | re.ASCII)
    except re.error as error:
        raise TableError(f"{where}: {error}") from None
    return Family(model, entry["family"], entry["source"], *(tuple(each) for each in lists))


@cache
def match(model: str) -> Family | None:
    """The entry that this model falls under, or None."""
    bare = normal(model)
    return next((each for each in load() if each.model.search(bare)), None)
