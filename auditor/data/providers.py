"""providers.toml: who may stand below a virtual disk, and what its documentation promises. Its head says how to read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Literal, NamedTuple

from auditor import data

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
def load() -> Mapping[str, Provider]:
    """All, by id, in the order of the table."""
    return {each.id: each for each in data.entries("providers.toml", "provider", Provider)}
