"""/sys/block/*/md, /sys/block/*/bcache: how whole an md device is, and how a bcache device writes.

A bcache device names all its modes and puts the one that counts in brackets; what it wrote back stays in its cache for a
while after the mode has changed, and its state says so. (Linux Documentation/admin-guide/md.rst, admin-guide/bcache.rst)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import Fact, Facts, Scalar, Subject, known, number, word
from auditor.host.request import Files, Read
from auditor.text import argument

PER = "host"
SUBJECT = "disk"
MODES = ("writethrough", "writeback", "writearound", "none")
STATES = ("no cache", "clean", "dirty", "inconsistent")
FACTS = {
    "md_degraded": number("devices that an md device lacks"),
    "bcache_mode": word("how a bcache device writes", *MODES),
    "bcache_state": word("whether the cache of a bcache device holds data that is nowhere else", *STATES),
}
FILES = ("md/degraded", "bcache/cache_mode", "bcache/state")
_FILE = re.compile(r"/sys/block/([^/]+)/(.+)")
_MODE = re.compile(r"(?:\w+ )*\[(\w+)\](?: \w+)*")


def request(host: Subject, facts: Facts) -> Read:
    return Read(tuple(f"/sys/block/*/{file}" for file in FILES))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """What is no whole line, or none of the words that are known, is left out."""
    for path, content in reply.text.items():
        found = _FILE.fullmatch(path)
        if not found or not content.endswith("\n"):
            continue
        text = content.strip()
        if fact := _fact(found[2], text):
            name, value = fact
            disk = Subject("disk", found[1].replace("!", "/"))
            yield Fact(disk, name, known(value, f"{found[2]}: {text}", f"cat {argument(path)}"))


def _fact(file: str, text: str) -> tuple[str, Scalar] | None:
    """(fact, value) of one file."""
    if file == "md/degraded" and re.fullmatch(r"[0-9]{1,6}", text):
        return "md_degraded", int(text)
    if file == "bcache/cache_mode" and (mode := _MODE.fullmatch(text)) and mode[1] in MODES:
        return "bcache_mode", mode[1]
    return ("bcache_state", text) if file == "bcache/state" and text in STATES else None
