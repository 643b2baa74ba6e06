"""What the answers of nvme-cli and smartctl have in common: JSON among other text, odd numbers. Not a collector.

nvme-cli prints 128-bit counters as JSON numbers or as strings, depending on its release and on json-c's; it prints ``{"error":
...}`` when it could not ask, and its usage around JSON after an option that it does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from auditor.facts import Facts, Known, Subject
from auditor.host.request import Skip

Document = Mapping[str, object]

_START = re.compile(r"^[^\S\n]*+\{", re.MULTILINE)
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[0-9]+|[0-9]{1,3}(,[0-9]{3})+")


def document(text: str) -> Document | None:
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


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """(key in lower case with single underscores, value) of every whole ``key : value`` line, first of each key only.

    The last line counts only when it ends: "vwc : 0" may be the beginning of "vwc : 0x7".
    """
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
