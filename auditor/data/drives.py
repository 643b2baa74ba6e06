"""Drives by model: their power-loss protection (drives.toml), firmware that loses data or kills the drive (firmware.toml), and
hard disks that are shingled (shingled.toml). The head of each file says what its words mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Literal, NamedTuple

from auditor import data

CLASSES = ("plp-full", "data-at-rest-only", "none", "ephemeral", "virtual")
CONFIDENCES = ("A", "B", "C")


class Drive(NamedTuple):
    """One entry. plp: one of CLASSES. confidence: one of CONFIDENCES. examples: models."""

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
    return data.entries("drives.toml", "drive", Drive)


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
    if not held:  # "980 PRO" alone: which entry takes it behind a brand, and not every model of that brand?
        brands = dict.fromkeys(" ".join(name.split()[:count]) for _, name in names for count in (1, 2))
        found = (
            (match(f"{brand} {normal(model)}"), brand) for brand in brands if match(f"{brand} of another model") is None
        )
        held = [(each, f"{brand} {normal(model)}") for each, brand in found if each]
    if not held:
        import difflib

        alike = difflib.get_close_matches(" ".join(words), [name.lower() for _, name in names], n=SIMILAR, cutoff=0.75)
        held = [(each, name) for each, name in names if name.lower() in alike]
    return tuple(dict(reversed(held)).items())[::-1][:SIMILAR]  # the first example of each entry


class FirmwareBug(NamedTuple):
    """Firmware that loses data or kills the drive. model, firmware: patterns, of the whole revision; example: a model, an
    affected revision, one that is not."""

    model: str
    firmware: str
    harm: str
    fixed: str
    source: str
    example: tuple[str, str, str]


@cache
def load_firmware() -> tuple[FirmwareBug, ...]:
    return data.entries("firmware.toml", "firmware", FirmwareBug)


def match_firmware(model: str, revision: str) -> FirmwareBug | None:
    """The first entry that this model with this revision falls under, or None."""
    bare, firmware = normal(model), revision.strip()
    found = (bug for bug in load_firmware() if _found(bug.model, bare) and _compiled(bug.firmware).fullmatch(firmware))
    return next(found, None)


class Shingled(NamedTuple):
    """A family of shingled hard disks. model: a pattern; examples, others: models that it means, and that it does not."""

    model: str
    family: str
    source: str
    examples: tuple[str, ...]
    others: tuple[str, ...]


@cache
def load_shingled() -> tuple[Shingled, ...]:
    return data.entries("shingled.toml", "shingled", Shingled)


@cache
def match_shingled(model: str) -> Shingled | None:
    """The entry that this model falls under, or None."""
    bare = normal(model)
    return next((each for each in load_shingled() if _found(each.model, bare)), None)


# providers.toml: who may stand below a virtual disk, and what its documentation promises. Its head says how to read it.


Keeps = Literal["power", "below", "drive"]
YEARS = 2  # an adopted answer holds from the day on which its source was read


class Provider(NamedTuple):
    """One entry. models: the empty pattern where disks are not known by their model. read: a day (2026-11-27)."""

    id: str
    name: str
    machine: str
    terms: str
    documents: str
    source: str
    keeps: tuple[Keeps, ...]
    read: str
    machines: tuple[str, ...] = ()
    transports: tuple[str, ...] = ()
    models: str = ""

    @property
    def site(self) -> str:
        """Where its documentation is: docs.aws.amazon.com."""
        return self.source.split("/")[2]

    @property
    def expires(self) -> date:
        read = date.fromisoformat(self.read)
        return read.replace(year=read.year + YEARS)

    def may_be(self, model: str, transport: str, machine: str) -> bool:
        """Could it stand below a disk that looks like this?"""
        if self.models:
            return re.search(self.models, model) is not None
        return transport in self.transports or machine in self.machines


@cache
def load_providers() -> Mapping[str, Provider]:
    """All, by id, in the order of the table."""
    return {each.id: each for each in data.entries("providers.toml", "provider", Provider)}
