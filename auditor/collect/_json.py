"""JSON and numbers from outside, by type: what is not as expected is a ValueError that names the key. No collector."""

from __future__ import annotations

import json
from typing import Any

LARGEST, LEAST = (1 << 64) - 1, -(1 << 63)  # no kernel and no tool counts further


def is_integer(text: str) -> bool:
    """Whether it is a decimal number of 64 bits, with or without a sign."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 20 and LEAST <= int(text) <= LARGEST


def integer(text: str) -> int:
    """A decimal number of 64 bits; ValueError for anything else."""
    if not is_integer(text):
        raise ValueError(f"{text[:40]!r} is not a number of 64 bits")
    return int(text)


def document(text: str) -> dict[str, Any]:
    """The object that a whole text is."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    return _of_type(found, dict, "the document")  # type: ignore[no-any-return]


def text_of(value: dict[str, Any], key: str) -> str:
    """A text."""
    found: str = _of_type(value.get(key), str, key)
    return found


def rows(value: dict[str, Any], key: str, width: int) -> list[list[Any]]:
    """A list of lists, each of this many values."""
    found: list[list[Any]] = _of_type(value.get(key), list, key)
    for row in found:
        if not isinstance(row, list) or len(row) != width:
            raise ValueError(f"{key}: {str(row)[:60]} is not a row of {width}")
    return found


def texts(value: dict[str, Any], key: str, width: int) -> list[list[str]]:
    """A list of lists, each of this many texts; null is an empty one."""
    found = [["" if each is None else each for each in row] for row in rows(value, key, width)]
    return [[_of_type(each, str, key) for each in row] for row in found]


def _of_type(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{where} is {str(value)[:60]}, not {kind.__name__}")
    return value
