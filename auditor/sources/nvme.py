"""``nvme`` (nvme-cli): what NVMe drives are, what cache they have, and how they are. (NVM Express Base Specification)"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from auditor.data import drives
from auditor.facts import Fact, Facts, Known, Scalar, Spec, Subject, known
from auditor.host.request import DEVICE, NOTHING_ELSE, Command, Output, Request, Run, Skip, command
from auditor.sources.source import Ask, Document, counter, first_object, key_values, non_negative, only_nvme, source

KEYS = {"nvme_list_model": "ModelNumber", "nvme_list_serial": "SerialNumber", "nvme_list_firmware": "Firmware"}
NODE = re.compile(r"nvme\d+n\d+")


def _command(verb: str, options: str = "-o json", others: re.Pattern[str] = DEVICE) -> Command:
    return command(f"nvme {verb}", options, others, apart="-f -n -l", valued="-f -n -l -o")


def _ask(verb: str) -> Ask:
    words = ("nvme", *verb.split())
    return lambda disk, facts: (
        only_nvme(disk, facts) or Run((*words, f"/dev/{disk.name}", "-o", "json"), package="nvme-cli")
    )


def _fields(text: str, title: str, what: str) -> Document:
    """The object, or the ``key : value`` lines below this title. Raises ValueError."""
    fields = first_object(text)
    if fields is None:
        if title not in text:
            raise ValueError(f"neither JSON nor {what}")
        fields = dict(key_values(text))
    return fields


@source(
    "nvme_list",
    "host",
    ask=Run(("nvme", "list", "-o", "json"), package="nvme-cli"),
    runs=(_command("list", others=NOTHING_ELSE),),
    facts={
        "nvme_list_model": Spec.word("model number"),
        "nvme_list_serial": Spec.word("serial number"),
        "nvme_list_firmware": Spec.word("firmware revision"),
    },
    subject="disk",
    form="json",
)
def devices(reply: Output, host: Subject) -> Iterator[Fact]:
    """``nvme list``: model, serial number and firmware of every NVMe namespace, from sysfs, without root. (man nvme-list;
    nvme-cli src/nvme-print-json.c json_simple_list, json_detail_list)

    Two shapes: a flat list of devices, and one nested by host, subsystem, controller and namespace (2.x with -v, and early 2.x
    without)."""
    text = reply.text.strip()
    if not text or text.startswith("No NVMe devices detected"):
        return
    if (fields := first_object(reply.text)) is None:
        raise ValueError("no JSON")
    for node, device in _devices(_objects(fields, "Devices")):
        for name, key in KEYS.items():
            value = device.get(key)
            if NODE.fullmatch(node) and isinstance(value, str) and value.strip():
                yield Fact(Subject("disk", node), name, known(value.strip(), f"{key}: {value.strip()}", "nvme list"))


def _objects(parent: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    listed = parent.get(key)
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise ValueError(f"no list of {key} in it")
    return listed


def _devices(listed: Sequence[Mapping[str, object]]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """(node name, what is said of it) of either shape."""
    for device in listed:
        if isinstance(path := device.get("DevicePath"), str):
            yield path.removeprefix("/dev/"), device
            continue
        for subsystem in _objects(device, "Subsystems"):
            controllers = _objects(subsystem, "Controllers")
            for controller in controllers:
                for namespace in _objects(controller, "Namespaces"):
                    yield str(namespace.get("NameSpace")), controller
            # a namespace behind several controllers stands next to them; it has what all of them agree on
            shared = {
                key: values.pop()
                for key in KEYS.values()
                if len(values := {word if isinstance(word := each.get(key), str) else None for each in controllers})
                == 1
            }
            for namespace in _objects(subsystem, "Namespaces") if "Namespaces" in subsystem else ():
                yield str(namespace.get("NameSpace")), shared


TEXTS = {"nvme_model": "mn", "nvme_serial": "sn", "nvme_firmware": "fr"}
COMMAND = "nvme id-ctrl /dev/{subject}"


@source(
    "nvme_id_ctrl",
    "disk",
    ask=_ask("id-ctrl"),
    runs=(_command("id-ctrl"),),
    facts={
        "nvme_vwc_present": Spec.flag("the controller has a volatile write cache (VWC bit 0)"),
        "nvme_model": Spec.word("model number"),
        "nvme_serial": Spec.word("serial number"),
        "nvme_firmware": Spec.word("firmware revision"),
    },
    form="json",
)
def id_ctrl(reply: Output, disk: Subject) -> Iterator[Fact]:
    """``nvme id-ctrl``: what an NVMe controller is, and whether it has a volatile write cache. (NVM Express Base
    Specification, Identify Controller; nvme-cli src/nvme-print-json.c, nvme-print-stdout.c)

    VWC bit 0: present. Bits 2:1 are about FLUSH and the broadcast namespace, so 0x6 is "no cache". QEMU always reports 0x7."""
    fields = _fields(reply.text, "NVME Identify Controller", "an Identify Controller listing")
    if not any(isinstance(fields.get(key), str) for key in TEXTS.values()):
        raise ValueError("no Identify Controller data in it")

    def fact(name: str, value: Scalar, key: str) -> Fact:
        return Fact(disk, name, known(value, f"{key} : {str(fields[key]).strip()}", COMMAND))

    vwc = non_negative(fields.get("vwc"))
    if vwc is not None and vwc <= 0xFF:
        yield fact("nvme_vwc_present", bool(vwc & 1), "vwc")
    for name, key in TEXTS.items():
        if isinstance(text := fields.get(key), str) and text.strip():
            yield fact(name, text.strip(), key)


@source(
    "nvme_cmdset_ind_id_ns",
    "disk",
    ask=_ask("cmdset-ind-id-ns"),
    runs=(_command("cmdset-ind-id-ns"),),
    facts={
        "nvme_ns_vwc_absent": Spec.flag(
            "this namespace has no volatile write cache, whatever its controller says (VWCNP)"
        )
    },
    form="json",
)
def namespace_cache(reply: Output, disk: Subject) -> Iterator[Fact]:
    """``nvme cmdset-ind-id-ns``: whether a namespace has no volatile write cache though its controller has one. (NVM
    Express Base Specification, I/O Command Set Independent Identify Namespace, NSFEAT bit 5 VWCNP; Linux
    drivers/nvme/host/core.c nvme_ns_info_from_id_cs_indep; nvme-cli 2.0 and later) Controllers before NVMe 2.0 refuse the
    question. nvme-cli's ``-v`` text for the bit is the wrong way round: only the number counts."""
    title = "Command Set Independent Namespace"
    fields = _fields(reply.text, f"NVME Identify {title}", f"a {title} listing")
    features = non_negative(fields.get("nsfeat"))
    # nstat tells this structure from Identify Namespace, whose NSFEAT bit 5 means something else
    if features is None or features > 0xFF or "nstat" not in fields:
        raise ValueError("no Command Set Independent Namespace data in it")
    command = "nvme cmdset-ind-id-ns /dev/{subject}"
    yield Fact(disk, "nvme_ns_vwc_absent", known(bool(features & 0x20), f"nsfeat : {features:#x}", command))


_FEATURE = ("get-feature", "-f", "6", "-H")
CACHE_COMMAND = "nvme get-feature -f 6 -H /dev/{subject}"


_VALUE = re.compile(
    r"^get-feature: ?(?:0x)?0*6 \(Volatile Write Cache\), Current value: ?(?:0x)?([0-9a-fA-F]{1,8})[ \t]*\n",
    re.MULTILINE,
)
_WORDS = re.compile(r"^[^\S\n]*+Volatile Write Cache Enable \(WCE\)\s*+: (Enabled|Disabled)[ \t]*\n", re.MULTILINE)
_KEY = re.compile(r"(?i)feature: ?(?:0x)?0*6")


@source(
    "nvme_write_cache",
    "disk",
    ask=lambda disk, facts: only_nvme(disk, facts) or Run(("nvme", *_FEATURE, f"/dev/{disk.name}"), package="nvme-cli"),
    runs=(_command("get-feature", "-f 6 -H"),),
    facts={"nvme_write_cache": Spec.flag("the volatile write cache is switched on (Feature 6, WCE)")},
    form="json",
)
def write_cache(reply: Output, disk: Subject) -> Iterator[Fact]:
    """``nvme get-feature -f 6 -H``: whether the volatile write cache is switched on; VWC and sysfs do not show that. (NVM
    Express Base Specification, Features: Volatile Write Cache; nvme-cli src/nvme-print-stdout.c) Drives without one refuse
    the question."""
    fields = first_object(reply.text)
    if fields is not None:
        said = _from_json(fields)
    else:
        said = [bool(int(value, 16) & 1) for value in _VALUE.findall(reply.text)]
        said += [word == "Enabled" for word in _WORDS.findall(reply.text)] if said else []
    if not said:
        raise ValueError("no current value of feature 6 in it")
    if len(set(said)) > 1:
        raise ValueError("it says both Enabled and Disabled")
    yield Fact(disk, "nvme_write_cache", known(said[0], f"Volatile Write Cache Enable: {said[0]:d}", CACHE_COMMAND))


def _from_json(fields: Document) -> list[bool]:
    """nvme-cli 2.11 and later: ``{"feature: 0x06": {"name": ..., "Current": "0x00000001"}}``."""
    said = []
    for key, value in fields.items():
        if _KEY.fullmatch(key) and isinstance(value, Mapping):
            for name, each in value.items():
                if name.lower() == "current" and isinstance(each, str) and re.fullmatch(r"0x[0-9a-fA-F]{1,8}", each):
                    said.append(bool(int(each, 16) & 1))
                if name == "Volatile Write Cache Enable (WCE)" and each in ("Enabled", "Disabled"):
                    said.append(each == "Enabled")
    return said


BITS = {"nvme_spare_low": 0, "nvme_reliability_degraded": 2, "nvme_media_read_only": 3, "nvme_backup_failed": 4}
NAMES = ("available_spare", "temp_threshold", "reliability_degraded", "ro", "vmbu_failed", "pmr_ro")
# fact -> (key in JSON, key in text, largest sane value)
NUMBERS = {
    "nvme_percent_used": ("percent_used", "percentage_used", 255),
    "nvme_available_spare_percent": ("avail_spare", "available_spare", 100),
    "nvme_available_spare_threshold_percent": ("spare_thresh", "available_spare_threshold", 100),
    "nvme_media_errors": ("media_errors", "media_errors", 1 << 63),
    "nvme_power_on_hours": ("power_on_hours", "power_on_hours", 1 << 63),
}
LOG_COMMAND = "nvme smart-log /dev/{subject}"


@source(
    "nvme_smart_log",
    "disk",
    ask=_ask("smart-log"),
    runs=(_command("smart-log"),),
    facts={
        "nvme_critical_warning": Spec.number("critical warning bits; 0 is none"),
        "nvme_spare_low": Spec.flag("critical warning bit 0: spare blocks below the threshold"),
        "nvme_reliability_degraded": Spec.flag(
            "critical warning bit 2: reliability degraded by media or internal errors"
        ),
        "nvme_media_read_only": Spec.flag("critical warning bit 3: the drive went read-only"),
        "nvme_backup_failed": Spec.flag(
            "critical warning bit 4: the power-loss protection of the volatile memory failed"
        ),
        "nvme_percent_used": Spec.number("rated endurance used, percent; may exceed 100"),
        "nvme_available_spare_percent": Spec.number("spare blocks left"),
        "nvme_available_spare_threshold_percent": Spec.number("spare blocks at which the drive warns"),
        "nvme_media_errors": Spec.number("unrecovered data integrity errors"),
        "nvme_power_on_hours": Spec.number("hours powered on"),
    },
    form="json",
    title="health of",
)
def smart_log(reply: Output, disk: Subject) -> Iterator[Fact]:
    """``nvme smart-log``: wear, errors and the critical warnings of an NVMe drive. (NVM Express Base Specification, SMART /
    Health Information log page; nvme-cli src/nvme-print-json.c, nvme-print-stdout.c)

    Critical warning: bit 0 spare low, 1 temperature, 2 reliability degraded, 3 read-only, 4 volatile memory backup device
    failed, 5 persistent memory region unreliable. Bit 4 means something only where there is such a backup: 0 proves no
    power-loss protection."""
    fields = _fields(reply.text, "Smart Log for NVME device", "a SMART log listing")
    if "critical_warning" not in fields:
        raise ValueError("no critical_warning in it")

    def fact(name: str, value: Scalar, text: str) -> Fact:
        return Fact(disk, name, known(value, text, LOG_COMMAND))

    warning = _warning(fields["critical_warning"])
    if warning is not None:
        text = f"critical_warning : {warning:#x}"
        yield fact("nvme_critical_warning", warning, text)
        for name, bit in BITS.items():
            yield fact(name, bool(warning >> bit & 1), text)
    for name, (in_json, in_text, limit) in NUMBERS.items():
        value = counter(fields.get(in_json, fields.get(in_text)))
        if value is not None and value <= limit:
            yield fact(name, value, f"{in_text} : {value}")


def _warning(value: object) -> int | None:
    """The critical warning byte: a number, or (``-H``) an object that spells its bits."""
    if isinstance(value, Mapping):
        byte = non_negative(value.get("value", value.get("Value")))
        bits = [non_negative(value.get(name)) for name in NAMES]
        if byte is None or any(bit is not None and bool(bit) != bool(byte >> at & 1) for at, bit in enumerate(bits)):
            return None
        value = byte
    number = non_negative(value)
    return number if number is not None and number <= 0xFF else None


FIELDS = {"ocp_capacitor_health": "Capacitor health", "ocp_incomplete_shutdowns": "Incomplete shutdowns"}
ABSENT = {"ocp_capacitor_health": 0xFFFF, "ocp_incomplete_shutdowns": 0xFFFFFFFF}  # all ones: not kept
OCP_COMMAND = "nvme ocp smart-add-log /dev/{subject}"


def _ask_ocp_smart_log(disk: Subject, facts: Facts) -> Request:
    """Only of a drive that the table knows to have capacitors."""
    if skip := only_nvme(disk, facts):
        return skip
    match facts.get(disk, "sysfs_model"):
        case Known(str() as model) if (entry := drives.match(model)) and entry.plp == "plp-full":
            return _ask("ocp smart-add-log")(disk, facts)
        case Known(str() as model):
            return Skip(f"{disk.name}: {model.strip()} is not known to have capacitors to ask about", applies=False)
        case _:
            return Skip(f"{disk.name}: its model is not known, so it is not asked for a log that it may not have")


@source(
    "nvme_ocp_smart",
    "disk",
    ask=_ask_ocp_smart_log,
    runs=(_command("ocp smart-add-log"),),
    facts={
        "ocp_capacitor_health": Spec.number(
            "what its capacitors can hold, in percent; drives that are well say 100 and more"
        ),
        "ocp_incomplete_shutdowns": Spec.number("times that it lost power before it had written everything"),
    },
    form="json",
)
def ocp_smart_log(reply: Output, disk: Subject) -> Iterator[Fact]:
    """``nvme ocp smart-add-log``: the extended SMART log (C0h) of datacenter NVMe drives: their capacitors, and power cuts that
    they did not finish. (nvme-cli plugins/ocp/ocp-smart-extended-log.h, ocp-print-json.c, from 2.3 on)

    A drive that does not know the log answers with an error, and many count it and the kernel logs it. So only drives are asked
    whose model the table calls protected; the plugins of single vendors read nothing of capacitors that this does not (Intel's
    has none). Two ways of naming the fields are in use: "Capacitor health", and capacitor_health in the second output format.
    What it keeps of the two; raises ValueError for anything that is not this log."""
    fields = first_object(reply.text)
    if fields is None:  # releases that print text whatever they are asked for
        fields = dict(_names(reply.text))
    named = {"_".join(key.lower().split()): value for key, value in fields.items()}
    if "log_page_version" not in named or "capacitor_health" not in named:
        raise ValueError("not an extended SMART log")
    for name, field in FIELDS.items():
        value = non_negative(named.get("_".join(field.lower().split())))
        if value is not None and value < ABSENT[name]:
            yield Fact(disk, name, known(value, f"{field}: {value}", OCP_COMMAND))


def _names(text: str) -> Iterator[tuple[str, str]]:
    for line in text.split("\n")[:-1]:
        name = line.rstrip("0123456789")
        key = name.strip(" \t:")
        if (
            key[:1].isupper()
            and len(key) < len(name.lstrip(" "))
            and len(name) < len(line)
            and not set(key) & set("\t:")
        ):
            yield key, line[len(name) :]
