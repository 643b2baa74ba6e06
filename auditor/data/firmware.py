"""firmware.toml: firmware of drives that is known to lose data or to kill the drive. Its head says what its words mean."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from typing import NamedTuple

from auditor import data
from auditor.data.drives import normal

FILE = "firmware.toml"
KEYS = frozenset({"model", "firmware", "harm", "fixed", "source", "example"})


class FirmwareError(ValueError):
    """firmware.toml cannot be used; the text says which entry and why."""


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
    return parse(data.text(FILE))


def parse(text: str) -> tuple[Bug, ...]:
    """The entries of a table in this form. Raises FirmwareError for anything misspelt, missing or of the wrong type."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FirmwareError(f"{FILE}: {error}") from None
    entries = document.get("firmware")
    if set(document) != {"firmware"} or not isinstance(entries, list) or not entries:
        raise FirmwareError(f"{FILE}: expected [[firmware]] entries and nothing else")
    return tuple(_bug(entry, f"{FILE}: entry {number}") for number, entry in enumerate(entries, 1))


def _bug(entry: object, where: str) -> Bug:
    if not isinstance(entry, dict):
        raise FirmwareError(f"{where} is not a table")
    if wrong := KEYS ^ set(entry):
        raise FirmwareError(f"{where}: missing or unknown {', '.join(sorted(wrong))}")
    example = entry["example"]
    texts = [entry[key] for key in sorted(KEYS - {"example"})]
    texts += example if isinstance(example, list) and len(example) == 3 else [None]
    if any(not isinstance(each, str) or not each.strip() for each in texts):
        raise FirmwareError(f"{where}: all values are texts, and example has three")
    try:
        model, firmware = (re.compile(entry[key], re.IGNORECASE | re.ASCII) for key in ("model", "firmware"))
    except re.error as error:
        raise FirmwareError(f"{where}: {error}") from None
    return Bug(model, firmware, entry["harm"], entry["fixed"], entry["source"], tuple(example))


def match(model: str, revision: str) -> Bug | None:
    """The first entry that this model with this revision falls under, or None."""
    bare = normal(model)
    return next((bug for bug in load() if bug.model.search(bare) and bug.firmware.fullmatch(revision.strip())), None)
