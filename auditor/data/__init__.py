"""Tables without code, as TOML; what is in each, and of which type, ``tests/data/test_data.py`` holds.

Our rules are such tables, too. All of them are compiled into one file with a line of plain JSON each, which Python reads in a
thirtieth of the time, and only where a run uses it. What is installed has this file, and looks at no source. A checkout has it
after ``make compiled``; where it is missing there, or was made of other sources, the sources are read. Nothing is looked for in
any other place.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

Document = Mapping[str, Any]  # of TOML
T = TypeVar("T")

COMPILED, RETIRED = "compiled.json", "retired.toml"
HERE = Path(__file__).resolve().parent
RULES = HERE.parent.parent / "rules"  # of a checkout
# what a rule says to a reader, and its examples: no verdict needs them
TOLD = frozenset({"impact", "why", "fix", "references", "conflicts", "unprovoked", "example"})


class TableError(ValueError):
    """A table that cannot be used; the text says which entry and why."""


def modules(package: str, *others: str) -> tuple[ModuleType, ...]:
    """The modules of a package, by name, without these others."""
    found = pkgutil.iter_modules(import_module(package).__path__)
    return tuple(import_module(f"{package}.{each[1]}") for each in found if each[1] not in others)


def read(name: str) -> bytes:
    """One file of this folder; also out of a zip archive (zaudit.pyz)."""
    found = pkgutil.get_data(__name__, name)
    assert found is not None
    return found


def text(name: str) -> str:
    """One file of this folder."""
    return read(name).decode()


def toml(name: str, content: str) -> Document:
    """A document. Raises TableError with the name."""
    import tomllib

    try:
        return tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{name}: {error}") from None


@cache
def table(name: str) -> Document:
    """A table of this folder, as it is written. Raises TableError."""
    found = _part(name)
    return toml(name, text(name)) if found is None else found


@cache
def rules() -> Mapping[str, Document]:
    """Our rules by id, as they are written. Raises OSError and TableError."""
    if _compiled():
        return {id: rule(id) for id in heads()}
    return {path.stem: toml(str(path), path.read_text()) for path in sorted(RULES.glob("*.toml"))}


@cache
def heads() -> Mapping[str, Document]:
    """They, at least with what judges. Raises as they do."""
    found = _part("rules")
    return rules() if found is None else found


def rule(id: str) -> Document:
    """One of them, whole. Raises as they do."""
    return {**heads()[id], **(_part(f"rules/{id}") or {})}


def compiled(*, installed: bool) -> str:
    """The content of the compiled file; installed: where there are no sources. Raises OSError and TableError."""
    judged = {id: {key: value for key, value in each.items() if key not in TOLD} for id, each in rules().items()}
    told = {f"rules/{id}": {key: value for key, value in each.items() if key in TOLD} for id, each in rules().items()}
    tables = {path.name: table(path.name) for path in sorted(HERE.glob("*.toml"))}
    return packed({"sources": "" if installed else _digest(), "rules": judged, **told, **tables})


def packed(parts: Mapping[str, Any]) -> str:
    """In the form of the compiled file."""
    return "".join(f"{name}\t{json.dumps(part)}\n" for name, part in parts.items())


def _part(name: str) -> Any:
    """One line of what is compiled, or None where it is not there."""
    try:
        return json.loads(_compiled().get(name, "null"))
    except ValueError:
        raise TableError(f"{COMPILED} is damaged: install zaudit again") from None


@cache
def _compiled() -> Mapping[str, str]:
    """The lines that are compiled, or none where they are not of these sources. Raises TableError where there are none."""
    try:
        lines = text(COMPILED).split("\n")[:-1]
        found = {name: part for name, _, part in (line.partition("\t") for line in lines)}
        sources = json.loads(found["sources"])
    except (OSError, ValueError, KeyError):
        if RULES.is_dir():
            return {}
        raise TableError(f"{COMPILED} is missing or damaged: install zaudit again") from None
    return found if sources == "" or sources == _digest() else {}


def _digest() -> str:
    import hashlib

    found = hashlib.sha256()
    for path in (*sorted(HERE.glob("*.toml")), *sorted(RULES.glob("*.toml"))):
        content = path.read_bytes()
        found.update(f"{path.name} {len(content)}\n".encode() + content)
    return found.hexdigest()


def entries(file: str, word: str, kind: type[T]) -> tuple[T, ...]:
    """Each ``[[word]]`` of a table as one of these named tuples."""
    return tuple(record(kind, each) for each in table(file)[word])


def record(kind: type[T], entry: Document) -> T:
    """An entry as a named tuple, its lists as tuples."""
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()})


@cache
def retired() -> Mapping[str, str]:
    """A sentence about each rule that zaudit no longer has, by id: that it is retired, and what to use."""
    return {
        id: f"{id} is retired: {entry['instead'] if 'instead' in entry else 'use rule ' + entry['successor']}"
        for id, entry in table(RETIRED).items()
    }
