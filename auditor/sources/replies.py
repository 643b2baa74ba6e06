"""Answers that are JSON, numbers or ``key : value`` lines: what is not as expected is a ValueError that names the key.

nvme-cli prints 128-bit counters as JSON numbers or as strings, depending on its release and on json-c's; it prints ``{"error":
...}`` when it could not ask, and its usage around JSON after an option that it does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from auditor.facts import Facts, Known, Subject
from auditor.host.request import Skip

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


Document = Mapping[str, object]


_START = re.compile(r"^[^\S\n]*+\{", re.MULTILINE)
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[0-9]+|[0-9]{1,3}(,[0-9]{3})+")


def first_object(text: str) -> Document | None:
    """The first JSON object of the text, or None when no line opens one; ValueError when it is cut off or an error."""
    start = _START.search(text)
    if not start:
        return None
    try:
        found, _ = json.JSONDecoder(strict=False).raw_decode(text, start.end() - 1)
    except (ValueError, RecursionError):
        raise ValueError("the JSON is cut off or malformed") from None
    assert isinstance(found, dict)
    if isinstance(error := found.get("error"), str) and error.strip():
        raise ValueError(error.strip())
    for key, value in found.items():
        if key.startswith("Error:"):
            said = [str(part) for part in value.values()] if isinstance(value, dict) else []
            raise ValueError(" ".join([key, *said]))
    return found


def key_values(text: str) -> Iterator[tuple[str, str]]:
    """(key in lower case with single underscores, value) of every whole ``key : value`` line, first of each key only.

    The last line counts only when it ends: "vwc : 0" may be the beginning of "vwc : 0x7"."""
    seen: set[str] = set()
    for line in text.split("\n")[:-1]:
        key, colon, value = line.partition(":")
        key = "_".join(key.lower().split())
        if colon and key and key not in seen:
            seen.add(key)
            yield key, value.strip()


def non_negative(value: object) -> int | None:
    """A number that is not negative: 7, 7.0, "7", "0x7", "1,243", "100%"; anything else is None."""
    match value:
        case bool():
            return None
        case int():
            return value if value >= 0 else None
        case float():
            return int(value) if value.is_integer() and 0 <= value < 1 << 53 else None
        case str():
            bare = value.strip().removesuffix("%").strip()
            return int(bare.replace(",", ""), 0 if bare.startswith("0x") else 10) if _NUMBER.fullmatch(bare) else None
        case _:
            return None


def counter(value: object) -> int | None:
    """A count; one that is all ones or nearly (underflow, "not reported") is None."""
    number = non_negative(value)
    return number if number is not None and number < 1 << 63 else None


def only_nvme(disk: Subject, facts: Facts) -> Skip | None:
    """Why a disk is not asked for what only NVMe has, or None when it is to be asked."""
    match facts.get(disk, "transport"):
        case Known(str() as bus) if not bus.startswith("nvme") and not disk.name.startswith("nvme"):
            return Skip(f"{disk.name} is not an NVMe device ({bus})", applies=False)
        case _:
            return None
