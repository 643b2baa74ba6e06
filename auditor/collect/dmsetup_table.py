"""``dmsetup table --concise``: what each device-mapper device does with the writes that it gets. (man 8 dmsetup)

One line: ``NAME,UUID,MINOR,FLAGS,TABLE[,TABLE...]`` of each device, joined by semicolons, with a backslash before what is
none of these. A table line is ``START LENGTH TARGET ...``; the kernel calls the device dm-MINOR. Needs root. A cache says
how it writes among its features, ``cache METADATA CACHE ORIGIN BLOCK NUMBER FEATURE...``, and RAID its level in the word
after ``raid``. (Linux Documentation/admin-guide/device-mapper/cache.rst, dm-raid.rst)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, DeviceName, Fact, Facts, Subject, Unknown, known, rows_of, words
from auditor.host.request import Output, Run, Skip
from auditor.text import argument

PER = "host"
SUBJECT = "disk"
FORM = "line"
FACTS = {
    "dm_targets": words("device-mapper targets that it is made of: linear, crypt, multipath, cache-writeback, ...")
}
CACHE_MODES = ("writeback", "writethrough", "passthrough")

_SPLIT = {mark: re.compile(rf"(?<!\\)((?:\\\\)*){re.escape(mark)}") for mark in ",;"}


def request(host: Subject, facts: Facts) -> Run | Skip:
    """Only where udev shows such a device: else the command would load the kernel module and make /dev/mapper/control."""
    links = facts.get(HOST, "dev_links")
    if isinstance(links, Unknown):
        return Skip(f"whether there is a device-mapper device is not known: {links.reasons[0].text}")
    if not any(re.fullmatch(r"dm-\d+", each.node) for each in rows_of(links, DeviceName)):
        return Skip("there is no device-mapper device", applies=False)
    return Run(("dmsetup", "table", "--concise"), package="dmsetup")


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """The targets of every device, each once."""
    line = reply.text.removesuffix("\n")
    if line == reply.text or "\n" in line:
        raise ValueError("not one whole line")
    if line == "No devices found":
        return
    for device in _parts(line, ";"):
        fields = _parts(device, ",")
        if len(fields) < 4 or not fields[2].isdigit() or fields[3] not in ("ro", "rw"):
            raise ValueError(f"not a device: {device[:60]}")
        targets = [re.match(r"\d+ \d+ ([a-z0-9_-]+)(.*)", table) for table in fields[4:]]
        if not all(targets):
            raise ValueError(f"not a table: {device[:60]}")
        names = tuple(dict.fromkeys(_target(found[1], found[2].split()) for found in targets if found))
        disk = Subject("disk", f"dm-{fields[2]}")
        yield Fact(
            disk,
            "dm_targets",
            known(names, f"{fields[0]}: {', '.join(names) or 'empty'}", f"dmsetup table {argument(fields[0])}"),
        )


def _target(name: str, words: list[str]) -> str:
    """The target, with its mode or level where it has one and says it."""
    if name == "cache" and len(words) > 4 and words[4].isdigit():
        modes = [each for each in words[5 : 5 + int(words[4])] if each in CACHE_MODES]
        return f"cache-{modes[0]}" if len(modes) == 1 else name
    if name == "raid" and words and words[0].startswith("raid"):
        return f"raid-{words[0]}"
    return name


def _parts(text: str, mark: str) -> list[str]:
    """Split at marks that no backslash stands before."""
    parts, start = [], 0
    for found in _SPLIT[mark].finditer(text):
        parts.append(text[start : found.end() - 1])
        start = found.end()
    return [*parts, text[start:]]
