"""firmware.toml: firmware of drives that is known to lose data or to kill the drive. Its head says what its words mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from auditor import data
from auditor.data import TableError
from auditor.data.drives import normal

FILE = "firmware.toml"
KEYS = frozenset({"model", "firmware", "harm", "fixed", "source", "example"})


class Bug(NamedTuple):
    """One entry. example: a model, an affected revision, one that is not."""

    model: re.Pattern[str]
    firmware: re.Pattern[str]
    harm: str
    fixed: str
    source: str
    example: tuple[str, str, str]


@cache
def load() -> tuple[Bug, ...]:
    """All entries, in the order in which they are tried."""
    return parse(data.table(FILE))


def parse(document: data.Document) -> tuple[Bug, ...]:
    """The entries of a table in this form. Raises TableError for anything misspelt, missing or of the wrong type."""
    return tuple(_bug(entry, where) for where, entry in data.entries(FILE, document, "firmware", KEYS))


def _bug(entry: Mapping[str, Any], where: str) -> Bug:
    example = entry["example"]
    texts = [entry[key] for key in sorted(KEYS - {"example"})]
    texts += example if isinstance(example, list) and len(example) == 3 else [None]
    if any(not isinstance(each, str) or not each.strip() for each in texts):
        raise TableError(f"{where}: all values are texts, and example has three")
    try:
        model, firmware = (re.compile(entry[key], re.IGNORECASE | re.ASCII) for key in ("model", "firmware"))
    except re.error as error:
        raise TableError(f"{where}: {error}") from None
    return Bug(model, firmware, entry["harm"], entry["fixed"], entry["source"], tuple(example))


def match(model: str, revision: str) -> Bug | None:
    """The first entry that this model with this revision falls under, or None."""
    bare = normal(model)
    return next((bug for bug in load() if bug.model.search(bare) and bug.firmware.fullmatch(revision.strip())), None)
