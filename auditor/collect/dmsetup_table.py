"""``dmsetup table --concise``: what each device-mapper device does with the writes that it gets. (man 8 dmsetup)

One line: ``NAME,UUID,MINOR,FLAGS,TABLE[,TABLE...]`` of each device, joined by semicolons, with a backslash before what is
none of these. A table line is ``START LENGTH TARGET ...``; the kernel calls the device dm-MINOR. Needs root.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.collect.request import Output, Run, Skip
from auditor.facts import HOST, Fact, Facts, Known, Subject, known, words

PER = "host"
SUBJECT = "disk"
FACTS = {"dm_targets": words("device-mapper targets that it is made of: linear, crypt, multipath, cache, ...")}

_SPLIT = {mark: re.compile(rf"(?<!\\)((?:\\\\)*){re.escape(mark)}") for mark in ",;"}


def request(host: Subject, facts: Facts) -> Run | Skip:
    """Not where udev shows no such device: the command would load the kernel module for nothing."""
    match facts.get(HOST, "dev_links"):
        case Known(tuple() as pairs) if not any(re.search(r"=dm-\d+$", str(pair)) for pair in pairs):
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
        targets = [re.match(r"\d+ \d+ ([a-z0-9_-]+)", table) for table in fields[4:]]
        if not all(targets):
            raise ValueError(f"not a table: {device[:60]}")
        names = tuple(dict.fromkeys(found[1] for found in targets if found))
        disk = Subject("disk", f"dm-{fields[2]}")
        yield Fact(
            disk,
            "dm_targets",
            known(names, f"{fields[0]}: {', '.join(names) or 'empty'}", f"dmsetup table {fields[0]}"),
        )


def _parts(text: str, mark: str) -> list[str]:
    """Split at marks that no backslash stands before."""
    parts, start = [], 0
    for found in _SPLIT[mark].finditer(text):
        parts.append(text[start : found.end() - 1])
        start = found.end()
    return [*parts, text[start:]]
