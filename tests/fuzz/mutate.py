"""Changes to text that a tool could print, or an attacker could write: cut, doubled, swapped, blown up, of another tool."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

HUGE = "9" * 5000
WORDS = (
    *(
        "0",
        "-1",
        "-",
        "",
        "1" + "0" * 30,
        HUGE,
        "1e999",
        "NaN",
        "Infinity",
        "0xffffffffffffffff",
        "18446744073709551616",
    ),
    *(
        "null",
        "true",
        "[]",
        "{}",
        "[" * 3000,
        '"',
        "\0",
        "\x1b[31m",
        "\udcff",
        "\u202e",
        "\U000e0041",
        "\n",
        "\t",
        "  ",
    ),
    *(":", "=", "(", ")", "%", "0x", "\u0663", "²", "１", "K", "T", "1.5T", "none", "unavail", "ONLINE", "FAULTED"),
    *("mirror-0", "logs", "errors: No known data errors", "permission denied", "Zugriff verweigert", "/" * 5000),
)
CHARACTERS = "\0\t\n\r \"':\\\x85\u2028\x1c\udc80{}[]=,/-09aZ"
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1.5,
        10**30,
        "",
        "x",
        "1",
        "-",
        "\udcff",
        "0x1",
        str(10**30),
        float("nan"),
        float("inf"),
    ),
    *([], {}, [None], {"": None}, [[]], {"a": {"b": 1}}, [1, "2"]),
)


def text(chance: Random, told: str, other: str) -> str:
    """Changed in one place or a few. other: what another tool said."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        told = chance.choice(CHANGES)(chance, told, other)
    return told


def _cut(chance: Random, told: str, _: str) -> str:
    return told[: chance.randrange(len(told) + 1)]


def _gap(chance: Random, told: str, _: str) -> str:
    at = chance.randrange(len(told) + 1)
    return told[:at] + told[at + chance.randrange(1, 80) :]


def _word(chance: Random, told: str, _: str) -> str:
    at = chance.randrange(len(told) + 1)
    return told[:at] + chance.choice(WORDS) + told[at:]


def _character(chance: Random, told: str, _: str) -> str:
    at = chance.randrange(len(told) + 1)
    return told[:at] + chance.choice(CHARACTERS) + told[at + 1 :]


def _lines(chance: Random, told: str, other: str) -> str:
    """A line goes, comes twice, changes its place, or lines of another tool come in."""
    lines, others = told.splitlines(True), other.splitlines(True)
    if not lines:
        return other
    at, to = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(to, lines[at])
        case 2:
            lines[at], lines[to] = lines[to], lines[at]
        case _:
            start = chance.randrange(len(others) + 1)
            lines[at:at] = others[start : start + chance.randrange(1, 6)]
    return "".join(lines)


def _token(chance: Random, told: str, _: str) -> str:
    """A number or a word is another one."""
    places = list(re.finditer(chance.choice((r"\d+", r"[A-Za-z_]{2,}")), told))
    if not places:
        return told
    found = chance.choice(places)
    return told[: found.start()] + chance.choice(WORDS) + told[found.end() :]


def _run(chance: Random, told: str, _: str) -> str:
    """One character many times over: what a careless pattern tries in every way."""
    if not told:
        return told
    at = chance.randrange(len(told))
    character = chance.choice((told[at], chance.choice(CHARACTERS)))
    return told[:at] + character * chance.choice((10, 1000, 60_000)) + told[at:]


def _other(_: Random, told: str, other: str) -> str:
    return other


def _blanks(chance: Random, told: str, _: str) -> str:
    return told.replace("\n", "\r\n") if chance.random() < 0.5 else told.replace("\t", " ")


def _json(chance: Random, told: str, _: str) -> str:
    if told.lstrip()[:1] not in ("{", "["):
        return told
    try:
        document = json.loads(told)
    except (ValueError, RecursionError):
        return told
    return json.dumps(value(chance, document))


CHANGES = (
    _cut,
    _gap,
    _word,
    _character,
    _lines,
    _lines,
    _token,
    _token,
    _run,
    _run,
    _other,
    _blanks,
    _json,
    _json,
    _json,
)


def value(chance: Random, document: Any) -> Any:
    """A document of JSON in which one value, at any depth, is another one or gone."""
    inner: Any = document
    above: Any = None
    key: Any = None
    for _ in range(chance.randrange(1, 9)):
        if isinstance(inner, dict) and inner:
            above, key = inner, chance.choice(list(inner))
        elif isinstance(inner, list) and inner:
            above, key = inner, chance.randrange(len(inner))
        else:
            break
        inner = above[key]
    if above is None:
        return chance.choice(VALUES)
    if chance.random() < 0.15:
        del above[key]
    else:
        above[key] = chance.choice(VALUES)
    return document


def parts(chance: Random, told: dict[str, str], other: str) -> dict[str, str]:
    """Several texts by name (standard output and error, files, links): some change, go, or go by another name.

    A name begins with what it is ("text /proc/uptime"), and a file that is gone has an error instead.
    """
    told = dict(told)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        name = chance.choice(list(told)) if told else ""
        match chance.randrange(10), name.partition(" "):
            case _, ("", *_):
                break
            case 0, (_, " ", path):
                del told[name]
                told[f"error {path}"] = chance.choice(("no such file", "permission denied", "input/output error"))
            case 1, (kind, " ", path):
                told[f"{kind} {text(chance, path, '/')}"] = told.pop(name)
            case _:
                told[name] = text(chance, told[name], other)
    return told


def smaller(told: str) -> Any:
    """Shorter texts to try instead, the boldest first."""
    for mark in ("\n", " ", ""):
        pieces = told.split(mark) if mark else list(told)
        size = len(pieces)
        while size > 1 and len(pieces) < 100_000:
            size = (size + 1) // 2
            for at in range(0, len(pieces), size):
                yield mark.join([*pieces[:at], *pieces[at + size :]])
            if len(pieces) // size > 64:
                break
