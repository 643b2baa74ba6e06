"""Tables without code, as TOML; each with one loader beside it that refuses whatever it does not understand."""

from __future__ import annotations

import json
import pkgutil
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

RETIRED = "retired.toml"


def text(name: str) -> str:
    """One file of this folder; also out of a zip archive (zaudit.pyz)."""
    content = pkgutil.get_data(__name__, name)
    assert content is not None
    return content.decode()


@cache
def packed() -> dict[str, Any]:
    """Rules and bugs, as setup.py makes one file of them when zaudit is packed: JSON is read in a tenth of the time that
    TOML takes. Nothing in a checkout."""
    try:
        found: dict[str, Any] = json.loads(text("rules.json"))
    except OSError:
        return {}
    return found


@cache
def advisories() -> Mapping[str, Mapping[str, Any]]:
    """The known bugs of releases, by name, as they are written. Raises tomllib.TOMLDecodeError."""
    found: dict[str, Any] = packed().get("advisories") or tomllib.loads(text("advisories.toml"))
    return found


@cache
def bugs_fixed() -> Mapping[str, Any]:
    """The bugs that later releases fix, by name, as they are written. Raises tomllib.TOMLDecodeError."""
    found: dict[str, Any] = packed().get("fixes") or tomllib.loads(text("fixes.toml"))
    return found


@cache
def retired() -> Mapping[str, str]:
    """A sentence about each rule that zaudit no longer has, by id: that it is retired, and what to use."""
    return {id: f"{id} is retired: {use}" for id, use in parse_retired(text(RETIRED)).items()}


def parse_retired(text: str) -> dict[str, str]:
    """What to use instead of each rule of a table in this form. Raises TableError for anything else."""
    found: dict[str, str] = {}
    for id, entry in tomllib.loads(text).items():
        match entry:
            case {"successor": str(rule), **others} if rule and not others:
                found[id] = f"use rule {rule}"
            case {"instead": str(use), **others} if use and not others:
                found[id] = use
            case _:
                raise TableError(f"{RETIRED}: {id}: expected successor or instead, and nothing else")
    return found


class TableError(ValueError):
    """A table that cannot be used; the text says which entry and why."""


def document(file: str, content: str) -> dict[str, Any]:
    """What a file says. Raises TableError."""
    try:
        return tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{file}: {error}") from None


def texts(where: str, found: object) -> tuple[str, ...]:
    """A list of texts. Raises TableError."""
    if not isinstance(found, list) or not all(isinstance(each, str) and each.strip() for each in found):
        raise TableError(f"{where} is a list of texts")
    return tuple(found)


def entries(file: str, content: str, word: str, keys: frozenset[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(what to call it in an error, table) of each ``[[word]]`` of a file that has nothing else, each with exactly these keys.

    Raises TableError.
    """
    tables = document(file, content)
    found = tables.get(word)
    if set(tables) != {word} or not isinstance(found, list) or not found:
        raise TableError(f"{file}: expected [[{word}]] entries and nothing else")
    for number, entry in enumerate(found, 1):
        where = f"{file}: entry {number}"
        if not isinstance(entry, dict):
            raise TableError(f"{where} is not a table")
        if wrong := keys ^ set(entry):
            raise TableError(f"{where}: missing or unknown {', '.join(sorted(wrong))}")
        yield where, entry
