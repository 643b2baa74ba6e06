"""``storcli64 /call/vall show all``: cache policies, RAID level and drives of each volume of a MegaRAID or PERC controller.

perccli is the same tool under Dell's name. ``Cache`` is read ahead (R, NR, Ra), write policy (WT; WB, which falls back to
write through while the battery is not good; AWB and FWB, which do not) and C or D for cached or direct. ``Disk Cache
Policy`` is that of the drives behind the volume: Enabled, Disabled, or Disk's Default, which leaves it to each drive.
``nolog`` keeps the tool from writing a log file. (Its own legend; Broadcom, StorCLI Reference Manual)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from auditor.collect.device_reply import document
from auditor.collect.raid_drivers import unless
from auditor.facts import Fact, Facts, Scalar, Subject, known, word, words
from auditor.host.request import Output, Run, Skip

PER = "host"
AFTER = ("ssacli",)  # no volume is behind two controllers
SUBJECT = "disk"
FORM = "json"
WRITE_POLICIES = ("write through", "write back", "write back without battery")
POLICY = word("write cache policy of a RAID volume", *WRITE_POLICIES)
DRIVE_CACHES = ("enabled", "disabled", "default")
DRIVE_CACHE = word("write caches of the drives behind a RAID volume, as its controller sets them", *DRIVE_CACHES)
LEVELS = ("0", "1", "5", "6", "10", "50", "60")
LEVEL = word("RAID level of a volume", *LEVELS)
FACTS = {
    "raid_write_policy": POLICY,
    "raid_disk_cache": DRIVE_CACHE,
    "raid_level": LEVEL,
    "raid_drive_models": words("model of each drive behind a RAID volume"),
    "storcli_controller": word("number of the controller that it is a volume of"),
}
COMMAND = "storcli64 /call/vall show all"
TOOLS = ("storcli", "perccli64", "perccli")
_CACHE = re.compile(r"(?:NR|Ra|R)(WT|WB|AWB|FWB)[CD]")
_DISK_CACHE = {"Enabled": DRIVE_CACHES[0], "Disabled": DRIVE_CACHES[1], "Disk's Default": DRIVE_CACHES[2]}
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
            if not node or not isinstance(rows[0], Mapping):
                continue
            disk, drives = Subject("disk", node[1]), data.get(f"PDs for VD {volume[1] if volume else ''}")
            found = {"storcli_controller": (controller, "")} | _volume(rows[0]) | _behind(properties, drives)
            for name, (value, text) in found.items():
                yield Fact(disk, name, known(value, f"{key} {node[0]}: {text}".rstrip(": "), COMMAND))


def _volume(row: Mapping[str, object]) -> dict[str, tuple[Scalar, str]]:
    """Fact -> (value, text) of the row of a volume; what it does not say in known words is left out."""
    found: dict[str, tuple[Scalar, str]] = {}
    if cache := _CACHE.fullmatch(str(row.get("Cache", ""))):
        found["raid_write_policy"] = _POLICY[cache[1]], f"Cache {cache[0]}"
    level = str(row.get("TYPE", "")).removeprefix("RAID")
    if level in LEVELS:
        found["raid_level"] = level, f"RAID{level}"
    return found


def _behind(properties: Mapping[str, object], drives: object) -> dict[str, tuple[Scalar | tuple[str, ...], str]]:
    """The same of the drives behind it; their models only where all of them say theirs."""
    found: dict[str, tuple[Scalar | tuple[str, ...], str]] = {}
    policy = str(properties.get("Disk Cache Policy", ""))
    if policy in _DISK_CACHE:
        found["raid_disk_cache"] = _DISK_CACHE[policy], f"Disk Cache Policy {policy}"
    rows = drives if isinstance(drives, list) else []
    models = [str(row.get("Model", "")).strip() if isinstance(row, Mapping) else "" for row in rows]
    if models and all(models):
        found["raid_drive_models"] = tuple(models), ", ".join(models)
    return found
