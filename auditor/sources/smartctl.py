"""``smartctl`` and ``hdparm``: health, write cache and capacitors of any drive."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from auditor.facts import Fact, Facts, Known, Scalar, Spec, Subject, known
from auditor.host.request import DEVICE, Output, Run, Skip, command
from auditor.sources import block_devices
from auditor.sources.source import Document, counter, first_object, non_negative, source

Attribute = Mapping[str, object]


def describe(name: str, attribute: Attribute) -> str:
    failed = f", failed {attribute['when_failed']}" if attribute.get("when_failed") else ""
    value, threshold = attribute.get("value", "-"), attribute.get("thresh", "-")
    return f"{name} {value} (threshold {threshold}{failed}), raw {_raw_text(attribute) or '-'}"


def _raw_text(attribute: Attribute) -> str:
    raw = attribute.get("raw")
    return str(raw.get("string", "")).strip() if isinstance(raw, Mapping) else ""


def _raw(attribute: Attribute) -> int | None:
    match = re.match(r"\d+\b", _raw_text(attribute))
    return int(match[0]) if match and len(match[0]) < 20 else None


def _normalized(attribute: Attribute) -> bool | None:
    """Above its threshold and never failed; where the threshold is 0, which nothing falls below, only 100 is good."""
    value, threshold = non_negative(attribute.get("value")), non_negative(attribute.get("thresh"))
    if attribute.get("when_failed"):
        return False
    if value is None or threshold is None or attribute.get("when_failed") != "":
        return None
    if value <= threshold:
        return False
    return True if threshold or value >= 100 else None


def _counts_failures(attribute: Attribute) -> bool | None:
    """PLP_Failure: the raw value counts."""
    raw, normalized = _raw(attribute), _normalized(attribute)
    if raw or normalized is False:
        return False
    return True if raw == 0 else None


def _zero_is_good(attribute: Attribute) -> bool | None:
    """Supercap_Status: raw 0 is good; other raw values are not documented, and say nothing unless it fails."""
    normalized = _normalized(attribute)
    return normalized if normalized is not True or _raw(attribute) == 0 else None


_CHARGES: Mapping[int | None, bool] = {0: False, 1: True}
JUDGES: Mapping[str, Callable[[Attribute], bool | None]] = {
    "Power_Loss_Cap_Test": _normalized,
    "Supercap_Status": _zero_is_good,
    "Capacitor_Health": _normalized,
    "SuperCap_Health": _normalized,
    "Capacitor_Life": _normalized,
    "Power_Fail_Health": _normalized,
    "PLP_Failure": _counts_failures,
    "SuperCap_Charge_Status": lambda attribute: _CHARGES.get(_raw(attribute)),  # 2: unknown
}
COMMAND = "smartctl -x /dev/{subject}"
LOG = "nvme_smart_health_information_log"
SELF_TEST = "ata_smart_data.self_test.status.value"
ENDURANCE = "Percentage Used Endurance Indicator"


# SATA: what the temperature history log calls recommended (ataprint.cpp ataPrintSCTTempHist; kernel drivetemp: temp1_max);
# SCSI: the reference temperature of the log page (SPC, Temperature log page)
HOT = ("temperature.op_limit_max", "temperature.drive_trip")


# fact -> (where in the JSON, in order of preference)
TEXTS = {
    "smart_protocol": ("device.protocol",),
    "smart_model": ("model_name", "scsi_model_name"),
    "smart_serial": ("serial_number",),
    "smart_firmware": ("firmware_version", "scsi_revision", "revision"),
}
FLAGS = {
    "smart_passed": "smart_status.passed",
    "smart_write_cache": "write_cache.enabled",
    "smart_trim": "trim.supported",
}
NUMBERS = {
    "smart_rotation_rpm": ("rotation_rate",),
    # endurance_used: what newer releases of smartctl make of all three protocols
    "smart_percent_used": (
        f"{LOG}.percentage_used",
        "scsi_percentage_used_endurance_indicator",
        "endurance_used.current_percent",
    ),
    "smart_available_spare_percent": (f"{LOG}.available_spare",),
    "smart_available_spare_threshold_percent": (f"{LOG}.available_spare_threshold",),
    "smart_media_errors": (f"{LOG}.media_errors",),
    "smart_power_on_hours": ("power_on_time.hours",),
}
ATTRIBUTES = {
    "smart_pending_sectors": ("Current_Pending_Sector", "Total_Pending_Sectors", "Pending_Sector_Count"),
    "smart_offline_uncorrectable": ("Offline_Uncorrectable", "Total_Offl_Uncorrectabl"),
}


def _ask_health(disk: Subject, facts: Facts) -> Run | Skip:
    match facts.get(disk, "transport"):
        case Known(str() as kind) if kind in block_devices.NO_DRIVE or kind in ("virtio", "xen", "mmc", "pmem", "dasd"):
            return Skip(f"{disk.name} is no drive with SMART data ({kind})", applies=False)
        case _:
            # every exit code: what went wrong stands in the JSON, and parse() refuses bits 0 and 1
            return Run(("smartctl", "-j", "-x", f"/dev/{disk.name}"), "smartmontools", frozenset(range(256)))


@source(
    "smartctl",
    "disk",
    ask=_ask_health,
    runs=(command("smartctl -j -x", others=DEVICE, apart="-d", valued="-d -l", lists=("-l",)),),
    facts={
        "smart_passed": Spec.flag(
            "the drive's own overall verdict; a failed power-loss protection alone need not change it"
        ),
        "smart_protocol": Spec.word("what the drive speaks: ATA, SCSI or NVMe"),
        "smart_model": Spec.word("model"),
        "smart_serial": Spec.word("serial number"),
        "smart_firmware": Spec.word("firmware revision"),
        "smart_wwn": Spec.word("world-wide name, 0x and 16 hexadecimal digits"),
        "smart_rotation_rpm": Spec.number("revolutions per minute; 0 is a solid-state drive"),
        "smart_write_cache": Spec.flag("the drive's volatile write cache is on (ATA)"),
        "smart_trim": Spec.flag("the drive takes TRIM (ATA)"),
        "capacitor_attribute": Spec.flag("an attribute of its SMART table speaks of power-loss capacitors"),
        "capacitor_ok": Spec.flag("what the drive reports of its power-loss capacitors is good"),
        "smart_attributes_named": Spec.flag(
            "what its SMART attributes mean is known: smartctl knows the model, or it is a hard disk"
        ),
        "smart_pending_sectors": Spec.number("sectors that could not be read and wait for a rewrite"),
        "smart_offline_uncorrectable": Spec.number("sectors that the drive's own scan could not read"),
        "smart_uncorrected_errors": Spec.number("uncorrected read, write and verify errors (SCSI)"),
        "smart_nvme_critical_warning": Spec.number("critical warning bits (NVMe)"),
        "smart_nvme_backup_failed": Spec.flag(
            "critical warning bit 4: the power-loss protection of the volatile memory failed"
        ),
        "smart_percent_used": Spec.number("rated endurance used, percent; may exceed 100"),
        "smart_available_spare_percent": Spec.number("spare blocks left (NVMe)"),
        "smart_available_spare_threshold_percent": Spec.number("spare blocks at which the drive warns (NVMe)"),
        "smart_media_errors": Spec.number("unrecovered data integrity errors (NVMe)"),
        "smart_temperature_c": Spec.number("degrees Celsius inside the drive now"),
        "smart_temperature_limit_c": Spec.number(
            "degrees Celsius that it is meant to run at for long (SATA), or at which it trips (SCSI); 0: it names none"
        ),
        "smart_power_on_hours": Spec.number("hours powered on"),
        "smart_self_test_result": Spec.number(
            "how the newest self-test ended (SATA): 0 well, or there was none; 1, 2 stopped; 3 to 8 failed; 15 it runs"
        ),
    },
    form="json",
    title="health of",
)
def health(reply: Output, disk: Subject) -> Iterator[Fact]:
    """``smartctl -j -x``: health, write cache and capacitors of any drive. (man smartctl; smartmontools ataprint.cpp,
    nvmeprint.cpp, scsiprint.cpp, drivedb.h)

    Exit code: bit 0 wrong arguments, bit 1 device not opened; with the others the answer is whole. Attributes count by
    name: 175 is Power_Loss_Cap_Test on an Intel drive and Program_Fail_Count_Chip on an unknown one. The write cache of a
    SAS drive is not in the JSON; scsi_cache_type has it."""
    root = first_object(reply.text)
    if root is None:
        raise ValueError("no JSON in it")
    _refuse(root)
    asked = _at(root, "device.name")
    if isinstance(asked, str) and asked != f"/dev/{disk.name}":
        raise ValueError(f"it answers for {asked}, not for /dev/{disk.name}")

    def fact(name: str, value: Scalar, text: str) -> Fact:
        return Fact(disk, name, known(value, text, COMMAND))

    for name, places in TEXTS.items():
        for place in places:
            if isinstance(text := _at(root, place), str) and text.strip():
                yield fact(name, text.strip(), text.strip())
                break
    for name, place in FLAGS.items():
        if isinstance(value := _at(root, place), bool):
            yield fact(name, value, f"{place} is {'true' if value else 'false'}")
    for name, places in NUMBERS.items():
        for place in places:
            if (count := counter(_at(root, place))) is not None:
                yield fact(name, count, f"{place} {count}")
                break
    if _at(root, "endurance_used.current_percent") is None and (worn := _endurance(root)) is not None:
        yield fact("smart_percent_used", worn, f"{ENDURANCE} {worn}")
    if wwn := _wwn(root):
        yield fact("smart_wwn", wwn, wwn)
    if (degrees := counter(_at(root, "temperature.current"))) is not None:
        yield fact("smart_temperature_c", degrees, f"temperature.current {degrees}")
        limits = [(place, limit) for place in HOT if (limit := counter(_at(root, place)))]
        place, limit = limits[0] if limits else ("no separate limit", 0)
        yield fact("smart_temperature_limit_c", limit, f"{place} {limit}" if limit else place)
    if (errors := _uncorrected(root)) is not None:
        yield fact("smart_uncorrected_errors", errors, f"{errors} uncorrected errors")
    if (ended := non_negative(_at(root, SELF_TEST))) is not None and ended <= 0xFF:
        yield fact("smart_self_test_result", ended >> 4, f"{SELF_TEST} {ended}")  # the lower half: how much is left
    warning = non_negative(_at(root, f"{LOG}.critical_warning"))
    if warning is None:
        warning = non_negative(_at(root, "smart_status.nvme.value"))
    if warning is not None and warning <= 0xFF:
        yield fact("smart_nvme_critical_warning", warning, f"critical_warning {warning:#x}")
        yield fact("smart_nvme_backup_failed", bool(warning & 16), f"critical_warning {warning:#x}")
    table = _attributes(root)
    if table and isinstance(listed := _at(root, "in_smartctl_database"), bool):
        rotates = bool(counter(_at(root, "rotation_rate")))
        text = "in_smartctl_database " + str(listed).lower()
        yield fact("smart_attributes_named", listed or rotates, text + (", a hard disk" if rotates else ""))
    for name, titles in ATTRIBUTES.items():
        counts = [raw for title in titles for each in table.get(title, ()) if (raw := _health_raw(each)) is not None]
        if len(counts) == 1:
            yield fact(name, counts[0], f"{next(title for title in titles if title in table)} {counts[0]}")
    capacitors = [(name, each) for name in JUDGES for each in table.get(name, ())]
    # without each attribute's own name a capacitor of which the drive complains is one of many numbers
    known_model = _at(root, "in_smartctl_database") is True
    if capacitors or (known_model and table and not any(name.startswith("Unknown") for name in table)):
        said = ", ".join(name for name, _ in capacitors) or f"{len(table)} attributes, none about capacitors"
        yield fact("capacitor_attribute", bool(capacitors), said)
    if capacitors:
        text = "; ".join(describe(name, each) for name, each in capacitors)
        verdicts = {JUDGES[name](each) for name, each in capacitors}
        if None not in verdicts or False in verdicts:
            yield fact("capacitor_ok", False not in verdicts, text)


def _refuse(root: Document) -> None:
    """Raises ValueError with smartctl's own words when it could not ask the drive."""
    status = non_negative(_at(root, "smartctl.exit_status"))
    listed = _at(root, "smartctl.messages")
    said = [
        str(each.get("string", "")).strip()
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, Mapping) and each.get("severity") == "error"
    ]
    if status is None:
        raise ValueError("; ".join(said) or "no smartctl exit_status in it")
    if status & 3:
        what = "the drive was not opened" if status & 2 else "wrong arguments"
        raise ValueError("; ".join(said) or f"exit_status {status}: {what}")


def _at(root: Document, place: str) -> object:
    found: object = root
    for key in place.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _attributes(root: Document) -> dict[str, list[Document]]:
    """ATA attributes by name. A name can come twice (Unknown_Attribute does)."""
    listed = _at(root, "ata_smart_attributes.table")
    found: dict[str, list[Document]] = {}
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, Mapping) and isinstance(name := each.get("name"), str):
            found.setdefault(name, []).append(each)
    return found


def _health_raw(attribute: Document) -> int | None:
    """The number that the raw value begins with ("5 (0 1)" is 5), which leaves out what vendors pack into the rest."""
    match = re.match(r"\d+\b", str(_at(attribute, "raw.string") or ""))
    return counter(match[0]) if match else None


def _endurance(root: Document) -> int | None:
    """The wear of a SATA SSD from its Device Statistics log, where the drive says that the value is valid."""
    listed = _at(root, "ata_device_statistics.pages")
    for page in listed if isinstance(listed, list) else ():
        table = page.get("table") if isinstance(page, Mapping) else None
        for each in table if isinstance(table, list) else ():
            if isinstance(each, Mapping) and each.get("name") == ENDURANCE and _at(each, "flags.valid") is True:
                return counter(each.get("value"))
    return None


def _uncorrected(root: Document) -> int | None:
    """Sum over read, write and verify; None when the drive keeps no such log or a part of it is odd."""
    log = _at(root, "scsi_error_counter_log")
    if not isinstance(log, Mapping) or not log:
        return None
    counts = [counter(_at(log, f"{operation}.total_uncorrected_errors")) for operation in log]
    return None if None in counts else sum(count for count in counts if count is not None)


def _wwn(root: Document) -> str:
    naa, oui, unique = (non_negative(_at(root, f"wwn.{key}")) for key in ("naa", "oui", "id"))
    if naa is not None and oui is not None and unique is not None and naa < 16 and oui < 1 << 24 and unique < 1 << 36:
        return f"0x{naa:x}{oui:06x}{unique:09x}"
    unit = _at(root, "logical_unit_id")
    return unit if isinstance(unit, str) and re.fullmatch(r"0x[0-9a-f]{16}", unit) else ""


_DEVICE = re.compile(r"^/dev/(\S+):$", re.MULTILINE)
_CACHE = re.compile(
    r"^ write-caching = +(0 \(off\)|1 \(on\))$", re.MULTILINE
)  # not " setting drive write-caching to 0"
_TROUBLE = re.compile(r"SG_IO|failed|missing sense|Invalid argument", re.IGNORECASE)


def _ask_hdparm(disk: Subject, facts: Facts) -> Run | Skip:
    match facts.get(disk, "transport"):
        case Known(str() as bus) if bus != "sata":
            return Skip(f"{disk.name} is not a SATA drive ({bus})", applies=False)
        case _ if disk.name.startswith("nvme"):
            return Skip(f"{disk.name} is not a SATA drive (nvme)", applies=False)
        case _:
            return Run(("hdparm", "-W", f"/dev/{disk.name}"), package="hdparm")


@source(
    "hdparm",
    "disk",
    ask=_ask_hdparm,
    runs=(command("hdparm -W", others=DEVICE),),
    facts={"hdparm_write_cache": Spec.flag("the drive's volatile write cache is on, as IDENTIFY DEVICE says")},
)
def hdparm(reply: Output, disk: Subject) -> Iterator[Fact]:
    """``hdparm -W``: the write cache of a SATA drive, as the drive says. (man hdparm; hdparm.c get_wcache)

    On NVMe and virtio it prints the device's name and nothing else, with exit code 0. "not supported" is no answer either: a
    SAS drive that does not speak ATA may cache all the same."""
    text = reply.text[: reply.text.rfind("\n") + 1]  # a line that does not end may be cut off
    if _DEVICE.findall(text) != [disk.name]:
        raise ValueError(f"it does not speak of /dev/{disk.name} alone")
    said = set(_CACHE.findall(text))
    if len(said) > 1:
        raise ValueError("it says both on and off")
    if not said:
        return
    on = said == {"1 (on)"}
    if on or not _TROUBLE.search(text + reply.stderr):  # "off" out of data that did not arrive whole is no comfort
        yield Fact(disk, "hdparm_write_cache", known(on, f"write-caching = {on:d}", "hdparm -W /dev/{subject}"))
