"""checklists.toml: what people tick off, and what answers it. The file's own head says what its words mean."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from auditor import data
from auditor.data import TableError

FILE = "checklists.toml"
TEXTS = ("id", "text", "source", "on", "ask")
PROOFS = ("rules", "against", "facts", "links", "verify", "diagnose")
ON = ("", "log")


class Line(NamedTuple):
    """One line of a list; the head of the file says what each key is."""

    id: str
    text: str
    source: str
    on: str
    rules: tuple[str, ...]
    against: tuple[str, ...]
    facts: tuple[str, ...]
    links: tuple[str, ...]
    verify: tuple[str, ...]
    diagnose: tuple[str, ...]
    ask: str


class List(NamedTuple):
    """A list and its lines. about: the question that it answers."""

    id: str
    title: str
    about: str
    lines: tuple[Line, ...]


@cache
def load() -> tuple[List, ...]:
    """All lists, in the order of the file."""
    return parse(data.table(FILE))


def parse(document: data.Document) -> tuple[List, ...]:
    """The lists of a table in this form. Raises TableError for anything misspelt, missing or of the wrong type, and for a line
    that nothing answers."""
    keys = frozenset({"id", "title", "about", "line"})
    lists = tuple(_list(entry, where) for where, entry in data.entries(FILE, document, "list", keys))
    ids = [line.id for each in lists for line in each.lines]
    if twice := {id for id in ids if ids.count(id) > 1}:
        raise TableError(f"{FILE}: {', '.join(sorted(twice))} is there twice")
    return lists


def _list(entry: Mapping[str, Any], where: str) -> List:
    texts = {key: entry[key] for key in ("id", "title", "about")}
    if any(not isinstance(value, str) or not value for value in texts.values()):
        raise TableError(f"{where}: {', '.join(texts)} are texts, and not empty")
    if not isinstance(entry["line"], list) or not all(isinstance(each, dict) for each in entry["line"]):
        raise TableError(f"{where}: expected [[list.line]] entries")
    return List(**texts, lines=tuple(_line(each, f"{where} ({entry['id']})") for each in entry["line"]))


def _line(entry: Mapping[str, Any], where: str) -> Line:
    if wrong := {*TEXTS, *PROOFS} ^ set(entry):
        raise TableError(f"{where}: missing or unknown {', '.join(sorted(wrong))}")
    where = f"{where}: {entry['id']}"
    if any(not isinstance(entry[key], str) for key in TEXTS) or not all(entry[key] for key in ("id", "text", "source")):
        raise TableError(f"{where}: {', '.join(TEXTS)} are texts; id, text and source are not empty")
    if entry["on"] not in ON:
        raise TableError(f"{where}: on is one of {', '.join(map(repr, ON))}")
    lists = {key: entry[key] for key in PROOFS}
    if any(not isinstance(value, list) or not all(isinstance(e, str) for e in value) for value in lists.values()):
        raise TableError(f"{where}: {', '.join(PROOFS)} are lists of texts")
    if not entry["ask"] and not any(value for key, value in lists.items() if key != "against"):
        raise TableError(f"{where}: nothing answers it")
    proofs = {key: tuple(map(str, value)) for key, value in lists.items()}
    return Line(
        id=entry["id"],
        text=entry["text"],
        source=entry["source"],
        on=entry["on"],
        rules=proofs["rules"],
        against=proofs["against"],
        facts=proofs["facts"],
        links=proofs["links"],
        verify=proofs["verify"],
        diagnose=proofs["diagnose"],
        ask=entry["ask"],
    )
