"""providers.toml: who may stand below a virtual disk, and what its documentation promises. Its head says how to read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Any, Literal, NamedTuple, cast, get_args

from auditor import data
from auditor.data import TableError

FILE = "providers.toml"
Keeps = Literal["power", "below", "drive"]
YEARS = 2  # an adopted answer holds from the day on which its source was read
TEXTS = ("id", "name", "machine", "terms", "documents", "source", "read")
LISTS = ("machines", "transports", "keeps")


class Provider(NamedTuple):
    """One entry. models: the empty pattern where disks are not known by their model."""

    id: str
    name: str
    machine: str
    terms: str
    documents: str
    source: str
    machines: tuple[str, ...]
    transports: tuple[str, ...]
    keeps: tuple[Keeps, ...]
    models: str
    read: date

    @property
    def site(self) -> str:
        """Where its documentation is: docs.aws.amazon.com."""
        return self.source.split("/")[2]

    @property
    def expires(self) -> date:
        return self.read.replace(year=self.read.year + YEARS)

    def may_be(self, model: str, transport: str, machine: str) -> bool:
        """Could it stand below a disk that looks like this?"""
        if self.models:
            return re.search(self.models, model) is not None
        return transport in self.transports or machine in self.machines


@cache
def load() -> Mapping[str, Provider]:
    """All, by id, in the order of the table."""
    return parse(data.table(FILE))


def parse(document: data.Document) -> dict[str, Provider]:
    """The entries of a table in this form. Raises TableError for anything misspelt, missing, of the wrong type or twice."""
    entries = document.get("provider")
    if set(document) != {"provider"} or not isinstance(entries, list):
        raise TableError(f"{FILE}: expected [[provider]] entries and nothing else")
    found = dict[str, Provider]()
    for number, entry in enumerate(entries, 1):
        each = _provider(f"{FILE}: entry {number}", entry)
        if each.id in found:
            raise TableError(f"{FILE}: {each.id} stands there twice")
        found[each.id] = each
    return found


def _provider(where: str, entry: Mapping[str, Any]) -> Provider:
    if stray := sorted(entry.keys() - {*TEXTS, *LISTS, "models"}):
        raise TableError(f"{where}: there is no {stray[0]!r}")
    if wrong := [key for key in TEXTS if not isinstance(entry.get(key), str) or not entry[key].strip()]:
        raise TableError(f"{where}: {wrong[0]} is a text, and not empty")
    lists = {key: data.texts(f"{where}: {key}", entry.get(key, [])) for key in LISTS}
    if not lists["keeps"] or not set(lists["keeps"]) <= set(get_args(Keeps)):
        raise TableError(f"{where}: keeps is a list of {', '.join(get_args(Keeps))}")
    models = entry.get("models", "")
    if not isinstance(models, str) or bool(models) is bool(lists["machines"]):
        raise TableError(f"{where}: it is known by models, or by machines")
    try:
        read = date.fromisoformat(entry["read"])
    except ValueError:
        raise TableError(f"{where}: read is a day") from None
    texts = {key: entry[key] for key in TEXTS if key != "read"}
    if not re.fullmatch(r"https://[\w.-]+/\S+", texts["source"]):
        raise TableError(f"{where}: source is the address of a document")
    return Provider(
        **texts,
        machines=lists["machines"],
        transports=lists["transports"],
        keeps=cast("tuple[Keeps, ...]", lists["keeps"]),
        models=models,
        read=read,
    )
