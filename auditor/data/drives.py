"""drives.toml: the power-loss protection of drives by model. The file's own head says what its words mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from auditor import data
from auditor.data import TableError

FILE = "drives.toml"
CLASSES = ("plp-full", "data-at-rest-only", "none", "ephemeral", "virtual")
CONFIDENCES = ("A", "B", "C")
KEYS = frozenset({"pattern", "class", "confidence", "family", "source", "examples"})


class Drive(NamedTuple):
    """One entry. plp: one of CLASSES (``class`` in the file). confidence: one of CONFIDENCES. examples: models."""

    pattern: str
    plp: str
    confidence: str
    family: str
    source: str
    examples: tuple[str, ...]

    def matches(self, model: str) -> bool:
        """Whether the pattern is found in a model. What does not begin like it is not worth compiling it for."""
        return model.lower().startswith(_beginning(self.pattern)) and bool(_compiled(self.pattern).search(model))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


@cache
def _beginning(pattern: str) -> tuple[str, ...]:
    """What each model that the pattern matches begins with, one of these, in lower case; "" where it is not plain to see."""
    branches = _GROUP.sub("(", pattern).split("|")
    return tuple(_plain(branch) for branch in branches)


def _plain(branch: str) -> str:
    found = _PLAIN.match(branch)
    if not found:
        return ""
    uncertain = branch[found.end() : found.end() + 1] in ("?", "*", "{")
    return (found[1][:-1] if uncertain else found[1]).lower()


_PLAIN, _GROUP = re.compile(r"\^([A-Za-z0-9 _-]+)"), re.compile(r"\([^()]*(?:\([^()]*\)[^()]*)*\)")


@cache
def load() -> tuple[Drive, ...]:
    """All entries, in the order in which they are tried. Their patterns are compiled when they are needed."""
    return parse(data.text(FILE), compiled=False)


def parse(text: str, *, compiled: bool = True) -> tuple[Drive, ...]:
    """The entries of a table in this form. Raises TableError for anything misspelt, missing or of the wrong type.

    compiled: False for a table whose patterns the tests have compiled.
    """
    return tuple(_drive(entry, where, compiled) for where, entry in data.entries(FILE, text, "drive", KEYS))


def _drive(entry: Mapping[str, Any], where: str, compiled: bool) -> Drive:
    where = f"{where} ({entry['family']})"
    texts = {key: entry[key] for key in sorted(KEYS - {"examples"})}
    if any(not isinstance(value, str) or not value.strip() for value in texts.values()):
        raise TableError(f"{where}: {', '.join(texts)} are texts, and not empty")
    examples = entry["examples"]
    if not isinstance(examples, list) or not examples or any(not isinstance(e, str) or not e for e in examples):
        raise TableError(f"{where}: examples is a list of models, at least one")
    if texts["class"] not in CLASSES:
        raise TableError(f"{where}: class is one of {', '.join(CLASSES)}")
    if texts["confidence"] not in CONFIDENCES:
        raise TableError(f"{where}: confidence is one of {', '.join(CONFIDENCES)}")
    try:
        if compiled:
            _compiled(texts["pattern"])
    except re.error as error:
        raise TableError(f"{where}: pattern: {error}") from None
    return Drive(
        texts["pattern"], texts["class"], texts["confidence"], texts["family"], texts["source"], tuple(examples)
    )


def normal(model: str) -> str:
    """A model as the patterns expect it: trimmed, single spaces, without the "ATA " of the kernel's SCSI layer."""
    bare = " ".join(model.split())
    return bare[4:] if bare[:4].upper() == "ATA " else bare


@cache
def match(model: str) -> Drive | None:
    """The first entry for a model, or None. Underscores may stand for spaces, as in udev's ID_MODEL."""
    bare = normal(model)
    spaced = normal(bare.replace("_", " "))
    return next((drive for drive in load() if drive.matches(bare) or drive.matches(spaced)), None)
