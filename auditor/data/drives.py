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
        """Whether the pattern is found in a model, which is :func:`normal`."""
        return _found(self.pattern, model)


def _found(pattern: str, model: str) -> bool:
    """Compiling takes long: a pattern is spared it whose letters are not in the model."""
    lower = model.lower()
    return any(word in lower for word in _words(pattern)) and bool(_compiled(pattern).search(model))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


@cache
def _words(pattern: str) -> tuple[str, ...]:
    """Each model that the pattern matches has one of these in it, in lower case: of each branch the longest run of plain
    characters outside of groups, "" where there is none."""
    bare, groups = pattern, 1
    while groups:  # from the innermost outward
        bare, groups = _GROUP.subn(r"\\W", bare)
    return tuple(max(_PLAIN.split(_UNSURE.sub("\n", branch)), key=len).lower() for branch in bare.split("|"))


# a group without groups in it; what stands for more or less than itself; what is not plain
_GROUP = re.compile(r"\([^()]*\)")
_UNSURE = re.compile(r"(?:\\.|\[[^][]*\]|.)(?:[?*+]|\{[^{}]*\})|\\.|\[[^][]*\]")
_PLAIN = re.compile(r"[^A-Za-z0-9 _-]")


@cache
def load() -> tuple[Drive, ...]:
    """All entries, in the order in which they are tried. Their patterns are compiled when they are needed."""
    return parse(data.table(FILE), compiled=False)


def parse(document: data.Document, *, compiled: bool = True) -> tuple[Drive, ...]:
    """The entries of a table in this form. Raises TableError for anything misspelt, missing or of the wrong type.

    compiled: False for a table whose patterns the tests have compiled.
    """
    return tuple(_drive(entry, where, compiled) for where, entry in data.entries(FILE, document, "drive", KEYS))


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
    return next((each for each in load() if each.matches(bare) or (spaced != bare and each.matches(spaced))), None)


SIMILAR = 5  # entries that are offered


def near(model: str) -> tuple[tuple[Drive, str], ...]:
    """(entry, an example of it) of what a model may be meant to be: that hold all its words, else that are spelt alike."""
    words = normal(model).lower().split()
    if max(map(len, words), default=0) < 3:
        return ()
    names = [(each, example) for each in load() for example in each.examples]
    held = [(each, name) for each, name in names if all(word in f"{each.family} {name}".lower() for word in words)]
    if not held:
        import difflib

        alike = difflib.get_close_matches(" ".join(words), [name.lower() for _, name in names], n=SIMILAR, cutoff=0.75)
        held = [(each, name) for each, name in names if name.lower() in alike]
    return tuple(dict(reversed(held)).items())[::-1][:SIMILAR]  # the first example of each entry
