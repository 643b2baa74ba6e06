"""RAID controllers: their drivers, and what the tools of their vendors say of caches, batteries and volumes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from auditor.facts import HOST, Fact, Facts, Known, Scalar, Spec, Subject, known
from auditor.host.request import WITNESS, Files, Output, Read, Run, Skip, command
from auditor.sources.source import first_object, source

DRIVERS = ("megaraid_sas", "smartpqi", "hpsa", "aacraid")
LINKS = tuple(f"/sys/bus/pci/drivers/{name}/*:*" for name in DRIVERS)


@source(
    "raid_drivers",
    "host",
    ask=Read((*LINKS, WITNESS)),
    facts={"raid_drivers": Spec.words("drivers of RAID controllers that have a controller")},
)
def drivers(reply: Files, host: Subject) -> Iterator[Fact]:
    """/sys/bus/pci/drivers: which RAID controllers have a driver bound to them, so that only their own tool is asked.

    That none is there counts only where files could be read at all: /proc/filesystems is the witness."""
    reply.witness()
    if not reply.complete(*LINKS):
        return
    found = tuple(name for name in DRIVERS if any(f"/drivers/{name}/" in link for link in reply.links))
    text = ", ".join(found) or "no RAID controller has a driver"
    yield Fact(HOST, "raid_drivers", known(found, text, "ls /sys/bus/pci/drivers/{megaraid_sas,smartpqi,hpsa,aacraid}"))


def unless(facts: Facts, *drivers: str) -> Skip | None:
    """For the collectors of the controllers' tools: nothing to ask where none of these drivers has a controller."""
    match facts.get(HOST, "raid_drivers"):
        case Known(tuple() as there) if not set(drivers) & set(map(str, there)):
            return Skip(f"there is no controller of {' or '.join(drivers)}", applies=False)
    return None


KEYS = ("BBU_Info", "Cachevault_Info")
_STORCLI = command("storcli64", others=re.compile(r"/call(/vall)?|show|all|J|nolog"))


@source(
    "storcli_battery",
    "host",
    ask=lambda _, facts: unless(facts, "megaraid_sas") or storcli("/call", "show", "all"),
    runs=(_STORCLI,),
    facts={
        "storcli_batteries": Spec.words(
            "CONTROLLER=STATE of the battery or CacheVault of each controller; none where it has none"
        )
    },
    form="json",
)
def battery(reply: Output, host: Subject) -> Iterator[Fact]:
    """``storcli64 /call show all``: the battery or CacheVault behind the cache of each MegaRAID or PERC controller.

    ``BBU_Info`` and ``Cachevault_Info`` are lists with a ``State``; a controller without either has neither. (Broadcom, StorCLI
    Reference Manual) One fact; raises ValueError for a controller of which too little is said to conclude from absence."""
    found = []
    for controller, data in controllers(reply.text):
        if "Basics" not in data or "HwCfg" not in data:
            raise ValueError(f"controller {controller}: not all of it")
        rows: list[object] = []
        for key in KEYS:
            if isinstance(listed := data.get(key), list):
                rows += listed
        states = [str(row.get("State", "unknown")) for row in rows if isinstance(row, Mapping)]
        found += [f"{controller}={state}" for state in states or ["none"]]
    if not found:
        raise ValueError("no controller answered")
    yield Fact(HOST, "storcli_batteries", known(tuple(found), ", ".join(found), "storcli64 /call show all"))


WRITE_POLICIES = ("write through", "write back", "write back without battery")
POLICY = Spec.word("write cache policy of a RAID volume", *WRITE_POLICIES)
DRIVE_CACHES = ("enabled", "disabled", "default")
DRIVE_CACHE = Spec.word("write caches of the drives behind a RAID volume, as its controller sets them", *DRIVE_CACHES)
LEVELS = ("0", "1", "5", "6", "10", "50", "60")
LEVEL = Spec.word("RAID level of a volume", *LEVELS)
VOLUMES_COMMAND = "storcli64 /call/vall show all"
TOOLS = ("storcli", "perccli64", "perccli")
_CACHE = re.compile(r"(?:NR|Ra|R)(WT|WB|AWB|FWB)[CD]")
_DISK_CACHE = {"Enabled": DRIVE_CACHES[0], "Disabled": DRIVE_CACHES[1], "Disk's Default": DRIVE_CACHES[2]}
_POLICY = {"WT": WRITE_POLICIES[0], "WB": WRITE_POLICIES[1], "AWB": WRITE_POLICIES[2], "FWB": WRITE_POLICIES[2]}


def storcli(*argv: str) -> Run:
    """A storcli command; its exit code is not 0 where one controller of several has nothing to show."""
    return Run(("storcli64", *argv, "J", "nolog"), also=TOOLS, accept=frozenset(range(256)))


def controllers(text: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """(number, what it answered) of each controller that answered; raises ValueError where there is none at all."""
    root = first_object(text)
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


@source(
    "storcli_volumes",
    "host",
    ask=lambda _, facts: unless(facts, "megaraid_sas") or storcli("/call/vall", "show", "all"),
    runs=(_STORCLI,),
    facts={
        "raid_write_policy": POLICY,
        "raid_disk_cache": DRIVE_CACHE,
        "raid_level": LEVEL,
        "raid_drive_models": Spec.words("model of each drive behind a RAID volume"),
        "storcli_controller": Spec.word("number of the controller that it is a volume of"),
    },
    subject="disk",
    after=("ssacli",),  # no volume is behind two controllers
    form="json",
)
def volumes(reply: Output, host: Subject) -> Iterator[Fact]:
    """``storcli64 /call/vall show all``: cache policies, RAID level and drives of each volume of a MegaRAID or PERC controller.

    perccli is the same tool under Dell's name. ``Cache`` is read ahead (R, NR, Ra), write policy (WT; WB, which falls back to
    write through while the battery is not good; AWB and FWB, which do not) and C or D for cached or direct. ``Disk Cache
    Policy`` is that of the drives behind the volume: Enabled, Disabled, or Disk's Default, which leaves it to each drive.
    ``nolog`` keeps the tool from writing a log file. (Its own legend; Broadcom, StorCLI Reference Manual)"""
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
                yield Fact(disk, name, known(value, f"{key} {node[0]}: {text}".rstrip(": "), VOLUMES_COMMAND))


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


@source(
    "ssacli",
    "host",
    ask=lambda _, facts: unless(facts, "smartpqi", "hpsa") or Run(tuple(COMMAND.split()), also=("hpssacli",)),
    runs=(command(COMMAND),),
    facts={
        "raid_write_policy": POLICY,
        "raid_disk_cache": DRIVE_CACHE,
        "raid_level": LEVEL,
        "raid_battery_ok": Spec.flag("the battery, capacitor or flash behind the cache of its RAID controller is good"),
    },
    subject="disk",
)
def ssacli(reply: Output, host: Subject) -> Iterator[Fact]:
    """``ssacli ctrl all show config detail``: caches and battery of HPE Smart Array controllers, and their volumes.

    Sections by heading: ``... in Slot N ...``, ``Logical Drive: N``, ``physicaldrive ...``; below them ``Key: value``. Older
    releases print ``Disk Name: /dev/sda          Mount Points: ...`` in one line. ``No-Battery Write Cache: Enabled`` keeps
    write back on without a good battery. ``Drive Write Cache: Enabled`` is about the drives; newer controllers set it apart for
    those of volumes (``Configured Drive Write Cache Policy``), where Default leaves it to each drive. ``Fault Tolerance`` is
    the level of a volume: ``RAID 1``, ``1``, ``1+0``, ``6 (ADG)``. (HPE, Smart Storage Administrator CLI User Guide)

    Volumes that say their name and their caching, with what their controller says of its battery.
    """
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
    here: tuple[Section, list[Section]] | None = None
    section: Section = {}
    for line in text.split("\n"):
        key, _, value = line.strip(" \t\r").partition(": ")
        if re.match(r"\S.*? in Slot \S", line):  # Smart Array P440ar in Slot 0 (Embedded)
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
