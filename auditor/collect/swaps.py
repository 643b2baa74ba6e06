"""``/proc/swaps``: what the host swaps to. (man 5 proc; Linux mm/swapfile.c swap_show)"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, known, words
from auditor.host.request import Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {"swaps": words("the paths of devices and files that the host swaps to")}
PATH = "/proc/swaps"
_ROW = re.compile(r"(\S+)\s+(?:partition|file)\s+\d+\s+\d+\s+-?\d+")
_ESCAPE = re.compile(r"\\([0-3][0-7]{2})")


def request(host: Subject, facts: Facts) -> Read:
    return Read((PATH,))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """A heading, and a line for each. Raises ValueError for anything else."""
    if PATH not in reply.text:
        return
    heading, *rows = reply.text[PATH].splitlines()[:1000] or [""]
    if not heading.startswith("Filename") or not reply.text[PATH].endswith("\n"):
        raise ValueError(f"{PATH} is cut off")
    found = [_ROW.fullmatch(row.rstrip()) for row in rows]
    if not all(found):
        raise ValueError(f"a line of {PATH} is not understood")
    paths = tuple(_ESCAPE.sub(lambda code: chr(int(code[1], 8)), row[1]) for row in found if row)
    yield Fact(HOST, "swaps", known(paths, ", ".join(paths) or "no swap", f"cat {PATH}"))
