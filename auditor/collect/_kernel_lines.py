"""How lines of the kernel's log begin, and which one is its first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

# a time and, with CONFIG_PRINTK_CALLER, a thread or CPU
HEAD = r"^(?:\[ *\d+\.\d+\])?(?:\[ *[TC]\d+\])? ?"
BOOT = r"Linux version \S+ .*"
# the kernel's own has no time yet: any user may run a program called "Linux version 6" that ends by a fault, which is logged
_FIRST = re.compile(r"\[ *0\.000000\]")

_GROUP = re.compile(r"(?<!\\)[(](?![?])")


def compiled(of: Mapping[str, str]) -> dict[str, re.Pattern[str]]:
    """A pattern for each kind of line, after what lines begin with."""
    return {name: re.compile(f"{HEAD}{pattern}") for name, pattern in of.items()}


def kept(of: Mapping[str, str]) -> str:
    """One pattern for the lines of any kind, without groups that capture."""
    return f"{HEAD}(?:{'|'.join(_GROUP.sub('(?:', pattern) for pattern in of.values())})$"


def begins(line: str) -> bool:
    """Whether a line that reads like BOOT is the kernel's own."""
    return bool(_FIRST.match(line))


class Line(NamedTuple):
    """One of the lines that were asked for. kind: the name of its pattern; part: the first group that matched, or nothing."""

    kind: str
    part: str
    text: str


def lines(text: str, patterns: Mapping[str, re.Pattern[str]]) -> tuple[list[Line], bool]:
    """(those of what ``dmesg`` said, whether the log reaches back to its start); ``boot`` is the pattern of its first line.
    Raises ValueError for a line that was not asked for, or half of one."""
    *told, rest = text.split("\n")
    if rest:
        raise ValueError("the last line is cut off")
    found: list[Line] = []
    boots = []
    for at, line in enumerate(told):
        kind, match = next(
            ((kind, hit) for kind, each in patterns.items() if (hit := each.fullmatch(line))), ("", None)
        )
        if match is None:
            raise ValueError(f"a line that was not asked for: {line[:80]}")
        if kind != "boot":
            found.append(Line(kind, next((each for each in match.groups() if each), ""), line))
        elif begins(line):
            boots.append(at)
    return found, boots == [0]
