"""``storcli64 /call/vall show all``: the write cache policy of each volume of a MegaRAID or PERC controller.

perccli is the same tool under Dell's name. ``Cache`` is read ahead (R, NR, Ra), write policy (WT; WB, which falls back to
write through while the battery is not good; AWB and FWB, which do not) and C or D for cached or direct. ``nolog`` keeps
the tool from writing a log file. (Its own legend; Broadcom, StorCLI Reference Manual)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from auditor.collect.device_reply import document
from auditor.collect.raid_drivers import unless
from auditor.collect.request import Output, Run, Skip
from auditor.facts import Fact, Facts, Subject, known, word

PER = "host"
SUBJECT = "disk"
WRITE_POLICIES = ("write through", "write back", "write back without battery")
POLICY = word("write cache policy of a RAID volume", *WRITE_POLICIES)
FACTS = {
    "raid_write_policy": POLICY,
    "storcli_controller": word("number of the controller that it is a volume of"),
}
COMMAND = "storcli64 /call/vall show all"
TOOLS = ("storcli", "perccli64", "perccli")
_CACHE = re.compile(r"(?:NR|Ra|R)(WT|WB|AWB|FWB)[CD]")
_POLICY = {"WT": WRITE_POLICIES[0], "WB": WRITE_POLICIES[1], "AWB": WRITE_POLICIES[2], "FWB": WRITE_POLICIES[2]}


def storcli(*argv: str) -> Run:
    """A storcli command; its exit code is not 0 where one controller of several has nothing to show."""
    return Run(("storcli64", *argv, "J", "nolog"), also=TOOLS, accept=frozenset(range(256)))


def controllers(text: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """(number, what it answered) of each controller that answered; raises ValueError where there is none at all."""
    root = document(text)
    listed = root.get("Controllers") if root else None
    if not isinstance(listed, list) or not listed:
        raise ValueError("no JSON with controllers in it")
    for each in listed:
        status = each.get("Command Status") if isinstance(each, Mapping) else None
        data = each.get("Response Data") if isinstance(each, Mapping) else None
        if not isinstance(status, Mapping) or not isinstance(status.get("Status"), str):
            raise ValueError("a controller without a status")
        if isinstance(data, Mapping) and isinstance(number := status.get("Controller"), int):
            yield str(number), data


def request(host: Subject, facts: Facts) -> Run | Skip:
    return unless(facts, "megaraid_sas") or storcli("/call/vall", "show", "all")


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """Volumes that the operating system has a name for."""
    for controller, data in controllers(reply.text):
        for key, rows in data.items():
            volume = re.fullmatch(r"/c\d+/v(\d+)", key)
            properties = data.get(f"VD{volume[1]} Properties") if volume else None
            if not isinstance(rows, list) or not rows or not isinstance(properties, Mapping):
                continue
            node = re.fullmatch(r"/dev/([a-z0-9]+)", str(properties.get("OS Drive Name", "")))
            cache = _CACHE.fullmatch(str(rows[0].get("Cache", ""))) if isinstance(rows[0], Mapping) else None
            if node and cache:
                disk, text = Subject("disk", node[1]), f"{key} {properties['OS Drive Name']}: Cache {cache[0]}"
                yield Fact(disk, "raid_write_policy", known(_POLICY[cache[1]], text, COMMAND))
                yield Fact(disk, "storcli_controller", known(controller, text, COMMAND))
