"""How lines of the kernel's log begin, and whether the log reaches back to its start.

The first line of an answer names its source: the numbers of the records from /dev/kmsg (``host/kmsg.py``), or dmesg, in older
recordings (``recording/dmesg.py``).

A local user can add lines that look like the kernel's: users choose the names of their programs, and syslog(2) shows each line
of a mount option as a line of the log. So a line may add a finding, and no parser takes a finding back, or counts less, because
of a line. That nothing was logged counts only where the log is whole. A user who fills the log makes the answer unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from auditor.facts import Evidence

# a time and, with CONFIG_PRINTK_CALLER, a thread or CPU
HEAD = r"^(?:\[ *\d+\.\d+\])?(?:\[ *[TC]\d+\])? ?"
BOOT = r"Linux version \S+ .*"
COMMAND = "dmesg -k"  # shows the same to a reader
WHOLE = Evidence("the kernel's log reaches back to its start", f"{COMMAND} | head -1")
_RECORDS = re.compile(r"records (\d{1,20}) to \d{1,20}(, some lost)?")
_DMESG = "dmesg"
# the kernel's own has no time yet: any user may run a program called "Linux version 6" that ends by a fault, which is logged
_FIRST = re.compile(rf"\[ *0\.000000\](?:\[ *[TC]\d+\])? ?{BOOT}")
_TIME = re.compile(r"\[ *(\d+\.\d+)\]")

_GROUP = re.compile(r"(?<!\\)[(](?![?])")


def compiled(of: Mapping[str, str]) -> dict[str, re.Pattern[str]]:
    """A pattern for each kind of line, after what lines begin with. ASCII, as the reader's patterns of bytes are: a line that
    only the reader matches would spoil the whole answer."""
    return {name: re.compile(f"{HEAD}{pattern}", re.ASCII) for name, pattern in of.items()}


def kept(of: Mapping[str, str]) -> str:
    """One pattern for the lines of any kind, without groups that capture."""
    return f"{HEAD}(?:{'|'.join(_GROUP.sub('(?:', pattern) for pattern in of.values())})$"


class Line(NamedTuple):
    """One of the lines that were asked for. kind: the name of its pattern; part: the first group that matched, or nothing."""

    kind: str
    part: str
    text: str

    @property
    def seconds(self) -> float | None:
        """When it was logged, since the start; None where it does not say."""
        found = _TIME.match(self.text)
        return float(found[1]) if found else None


def lines(text: str, patterns: Mapping[str, re.Pattern[str]]) -> tuple[list[Line], bool]:
    """(those that were asked for, whether the log is all there since its start); ``boot`` is the pattern of its first line.
    Raises ValueError for a line that was not asked for, or half of one."""
    told, whole = answered(text)
    found = [
        Line(kind, next((each for each in hit.groups() if each), ""), hit[0]) for kind, hit in matched(told, patterns)
    ]
    return [each for each in found if each.kind != "boot"], whole


def answered(text: str) -> tuple[list[str], bool]:
    """(the lines of an answer, whether the log is all there since its start). Raises ValueError where it is no answer, or
    half of one."""
    first, *told = text.split("\n")
    if not told or told.pop():
        raise ValueError("the last line is cut off")
    if records := _RECORDS.fullmatch(first):
        return told, int(records[1]) == 0 and not records[2]
    if first != _DMESG:
        raise ValueError(f"the first line does not say which records these are: {first[:80]}")
    return told, [at for at, line in enumerate(told) if _FIRST.fullmatch(line)] == [0]


def matched(told: Sequence[str], patterns: Mapping[str, re.Pattern[str]]) -> list[tuple[str, re.Match[str]]]:
    """The kind of each line. Raises ValueError for one that was not asked for."""
    found = []
    for line in told:
        kind, match = next(
            ((kind, hit) for kind, each in patterns.items() if (hit := each.fullmatch(line))), ("", None)
        )
        if match is None:
            raise ValueError(f"a line that was not asked for: {line[:80]}")
        found.append((kind, match))
    return found
