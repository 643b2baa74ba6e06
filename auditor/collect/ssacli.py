"""``ssacli ctrl all show config detail``: caches and battery of HPE Smart Array controllers, and their volumes.

Sections by heading: ``... in Slot N ...``, ``Logical Drive: N``, ``physicaldrive ...``; below them ``Key: value``. Older
releases print ``Disk Name: /dev/sda          Mount Points: ...`` in one line. ``No-Battery Write Cache: Enabled`` keeps
write back on without a good battery. ``Drive Write Cache: Enabled`` is about the drives; newer controllers set it apart for
those of volumes (``Configured Drive Write Cache Policy``), where Default leaves it to each drive. ``Fault Tolerance`` is
the level of a volume: ``RAID 1``, ``1``, ``1+0``, ``6 (ADG)``. (HPE, Smart Storage Administrator CLI User Guide)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.collect.raid_drivers import unless
from auditor.collect.storcli_volumes import DRIVE_CACHE, DRIVE_CACHES, LEVEL, LEVELS, POLICY, WRITE_POLICIES
from auditor.facts import Fact, Facts, Subject, flag, known
from auditor.host.request import Output, Run, Skip

PER = "host"
SUBJECT = "disk"
FACTS = {
    "raid_write_policy": POLICY,
    "raid_disk_cache": DRIVE_CACHE,
    "raid_level": LEVEL,
    "raid_battery_ok": flag("the battery, capacitor or flash behind the cache of its RAID controller is good"),
}
COMMAND = "ssacli ctrl all show config detail"
_HEADING = re.compile(
    r"\s+(Logical Drive: \S+|physicaldrive .*|unassigned|Array:? .*|array .*|Enclosure.*|SEP .*|Expander.*)"
)
_LEVEL = re.compile(r"(?:RAID )?(\d)(?:\+)?(\d?)(?: \(\w+\))?")
_DRIVE_CACHE_KEYS = ("Configured Drive Write Cache Policy", "Drive Write Cache")
_DRIVE_CACHE = {"Default": DRIVE_CACHES[2]}
_DRIVE_CACHE |= dict.fromkeys(("Enabled", "Enable"), DRIVE_CACHES[0])
_DRIVE_CACHE |= dict.fromkeys(("Disabled", "Disable"), DRIVE_CACHES[1])
Section = dict[str, str]


def request(host: Subject, facts: Facts) -> Run | Skip:
    return unless(facts, "smartpqi", "hpsa") or Run(tuple(COMMAND.split()), also=("hpssacli",))


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """Volumes that say their name and their caching, with what their controller says of its battery."""
    controllers = list(_controllers(reply.text))
    if not controllers:
        raise ValueError("no controller in it")
    for controller, volumes in controllers:
        for volume in volumes:
            node = re.match(r"/dev/([a-z0-9]+)(?!\S)", volume.get("Disk Name", ""))
            if not node:
                continue
            disk = Subject("disk", node[1])
            if policy := _policy(controller, volume):
                text = f"{node[0]}: Caching {volume['Caching']}"
                yield Fact(disk, "raid_write_policy", known(policy, text, COMMAND))
            yield from _drives(disk, controller, volume)
            if battery := controller.get("Battery/Capacitor Status"):
                text = f"Battery/Capacitor Status: {battery}"
                yield Fact(disk, "raid_battery_ok", known(battery == "OK", text, COMMAND))
            elif controller.get("Battery/Capacitor Count") == "0":
                yield Fact(disk, "raid_battery_ok", known(False, "Battery/Capacitor Count: 0", COMMAND))


def _drives(disk: Subject, controller: Section, volume: Section) -> Iterator[Fact]:
    """How the drives behind a volume cache, which is set for all of the controller's, and at what level they make it up."""
    for key in _DRIVE_CACHE_KEYS:
        if (value := controller.get(key, "")) in _DRIVE_CACHE:
            yield Fact(disk, "raid_disk_cache", known(_DRIVE_CACHE[value], f"{key}: {value}", COMMAND))
            break
    fault = volume.get("Fault Tolerance", "")
    if (level := _LEVEL.fullmatch(fault)) and (digits := level[1] + level[2]) in LEVELS:
        yield Fact(disk, "raid_level", known(digits, f"Fault Tolerance: {fault}", COMMAND))


def _policy(controller: Section, volume: Section) -> str:
    """Write through when neither the volume nor the controller caches writes; empty where they do not say, or where the cache
    is not at work for now."""
    if controller.get("Cache Ratio", "").endswith(" 0% Write"):
        return WRITE_POLICIES[0]
    if controller.get("Cache Status", "OK") != "OK":
        return ""
    match volume.get("Caching", ""), controller.get("No-Battery Write Cache", ""):
        case ("Disabled", _):
            return WRITE_POLICIES[0]
        case ("Enabled", "Enabled"):
            return WRITE_POLICIES[2]
        case ("Enabled", "Disabled"):
            return WRITE_POLICIES[1]
        case _:
            return ""


def _controllers(text: str) -> Iterator[tuple[Section, list[Section]]]:
    """(pairs of the controller, pairs of each of its logical drives)."""
    here: tuple[Section, list[Section]] | None = None
    section: Section = {}
    for line in text.split("\n"):
        key, _, value = line.strip(" \t\r").partition(": ")
        if _is_controller(line):
            if here:
                yield here
            section = {}
            here = section, []
        elif here and (heading := _HEADING.fullmatch(line)):
            section = {}
            if heading[1].startswith("Logical Drive"):
                here[1].append(section)
        elif here and value and line[:1].isspace() and key[:1].isalpha():
            section.setdefault(key, value.strip())
    if here:
        yield here


def _is_controller(line: str) -> bool:
    """``Smart Array P440ar in Slot 0 (Embedded)``, not indented."""
    name, _, slot = line.partition(" in Slot ")
    return bool(name and slot) and not name[0].isspace() and not slot[0].isspace()
