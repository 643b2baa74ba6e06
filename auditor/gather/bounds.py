"""How much one answer may be, before anything parses it: from a live host and from a recording alike."""

from __future__ import annotations

import re

from auditor.host.request import Output, Reply

MIB = 1 << 20
BYTES = 128 * MIB  # of one answer, all its files together: zfs get of 100,000 datasets has less
FILES = 200_000  # and links, and reasons why there is none: an objset kstat for each dataset
LINES = 4_000_000
LINE = 1 << 16  # characters; the longest that is honest is a mount of many layers, with 4 KiB
ONE_LINE = 4 * MIB  # characters, where a command puts all on one line: of 4,000 multipath disks less than 1 MiB
JSON = 16 * MIB  # characters of JSON, which may all stand on one line; 2,000 disks of zpool status -j have 2 MiB
DEPTH = 64  # of JSON: smartctl nests 8
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)


def over(said: Reply, form: str) -> str:
    """Which bound an answer is over, in words; empty for one that may be parsed. form: "text", "json" or "line"."""
    if isinstance(said, Output):
        texts = [said.text, said.stderr]
    else:
        texts = list(said.text.values())
        names = len(said.text) + len(said.links) + len(said.errors)
        if names > FILES:
            return f"{names} files, and zaudit reads {FILES} at most"
    size = sum(map(len, texts))
    if size > BYTES:
        return f"{size >> 20} MiB, and zaudit reads {BYTES >> 20} MiB at most"
    if sum(text.count("\n") for text in texts) > LINES:
        return f"more than {LINES} lines"
    return next(
        filter(None, (_of_json(each) if form == "json" and "{" in each else _of_lines(each, form) for each in texts)),
        "",
    )


def _of_lines(text: str, form: str) -> str:
    """A NUL ends a line as well: /proc/PID/cmdline has no other."""
    longest = ONE_LINE if form == "line" else LINE
    if "\0" in text:
        text = text.replace("\0", "\n")
    at = 0
    while len(text) - at > longest:
        end = text.rfind("\n", at, at + longest + 1)
        if end < 0:
            return f"a line of more than {longest >> 10} KiB"
        at = end + 1
    return ""


def _of_json(text: str) -> str:
    if len(text) > JSON:
        return f"{len(text) >> 20} MiB of JSON, and zaudit reads {JSON >> 20} MiB at most"
    depth = 0
    for found in _BRACKETS.finditer(text):
        mark = found[0]
        depth += (mark in "[{") - (mark in "]}")
        if depth > DEPTH:
            return f"JSON nested deeper than {DEPTH}"
    return ""
