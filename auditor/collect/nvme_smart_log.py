"""``nvme smart-log``: wear, errors and the critical warnings of an NVMe drive. (NVM Express Base Specification, SMART /
Health Information log page; nvme-cli src/nvme-print-json.c, nvme-print-stdout.c)

Critical warning: bit 0 spare low, 1 temperature, 2 reliability degraded, 3 read-only, 4 volatile memory backup device
failed, 5 persistent memory region unreliable. Bit 4 means something only where there is such a backup: 0 proves no
power-loss protection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from auditor.collect.device_reply import counter, document, non_negative, only_nvme, pairs
from auditor.facts import Fact, Facts, Scalar, Subject, flag, known, number
from auditor.host.request import Output, Run, Skip

PER = "disk"
SUBJECT = "disk"
FORM = "json"
FACTS = {
    "nvme_critical_warning": number("critical warning bits; 0 is none"),
    "nvme_spare_low": flag("critical warning bit 0: spare blocks below the threshold"),
    "nvme_reliability_degraded": flag("critical warning bit 2: reliability degraded by media or internal errors"),
    "nvme_media_read_only": flag("critical warning bit 3: the drive went read-only"),
    "nvme_backup_failed": flag("critical warning bit 4: the power-loss protection of the volatile memory failed"),
    "nvme_percent_used": number("rated endurance used, percent; may exceed 100"),
    "nvme_available_spare_percent": number("spare blocks left"),
    "nvme_available_spare_threshold_percent": number("spare blocks at which the drive warns"),
    "nvme_media_errors": number("unrecovered data integrity errors"),
    "nvme_error_log_entries": number("entries in the error log over the life of the drive"),
    "nvme_power_on_hours": number("hours powered on"),
}
BITS = {"nvme_spare_low": 0, "nvme_reliability_degraded": 2, "nvme_media_read_only": 3, "nvme_backup_failed": 4}
NAMES = ("available_spare", "temp_threshold", "reliability_degraded", "ro", "vmbu_failed", "pmr_ro")
# fact -> (key in JSON, key in text, largest sane value)
NUMBERS = {
    "nvme_percent_used": ("percent_used", "percentage_used", 255),
    "nvme_available_spare_percent": ("avail_spare", "available_spare", 100),
    "nvme_available_spare_threshold_percent": ("spare_thresh", "available_spare_threshold", 100),
    "nvme_media_errors": ("media_errors", "media_errors", 1 << 63),
    "nvme_error_log_entries": ("num_err_log_entries", "num_err_log_entries", 1 << 63),
    "nvme_power_on_hours": ("power_on_hours", "power_on_hours", 1 << 63),
}
COMMAND = "nvme smart-log /dev/{subject}"


def request(disk: Subject, facts: Facts) -> Run | Skip:
    return only_nvme(disk, facts) or Run(("nvme", "smart-log", f"/dev/{disk.name}", "-o", "json"), package="nvme-cli")


def parse(reply: Output, disk: Subject) -> Iterator[Fact]:
    fields = document(reply.text)
    json = fields is not None
    if fields is None:
        if "Smart Log for NVME device" not in reply.text:
            raise ValueError("neither JSON nor a SMART log listing")
        fields = dict(pairs(reply.text))
    if "critical_warning" not in fields:
        raise ValueError("no critical_warning in it")

    def fact(name: str, value: Scalar, text: str) -> Fact:
        return Fact(disk, name, known(value, text, COMMAND))

    warning = _warning(fields["critical_warning"])
    if warning is not None:
        text = f"critical_warning : {warning:#x}"
        yield fact("nvme_critical_warning", warning, text)
        for name, bit in BITS.items():
            yield fact(name, bool(warning >> bit & 1), text)
    for name, (in_json, in_text, limit) in NUMBERS.items():
        value = counter(fields.get(in_json if json else in_text))
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
