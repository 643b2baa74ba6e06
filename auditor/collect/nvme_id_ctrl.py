"""``nvme id-ctrl``: what an NVMe controller is, and whether it has a volatile write cache. (NVM Express Base
Specification, Identify Controller; nvme-cli src/nvme-print-json.c, nvme-print-stdout.c)

VWC bit 0: a volatile write cache is present. Bits 2:1 only say whether FLUSH takes the broadcast namespace, so 0x6 is
"no cache". A cache that survives a power cut does not count as volatile. QEMU's controller always reports 0x7.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect.device_reply import document, non_negative, only_nvme, pairs
from auditor.facts import Fact, Facts, Scalar, Subject, flag, known, number, word
from auditor.host.request import Output, Run, Skip

PER = "disk"
SUBJECT = "disk"
FORM = "json"
FACTS = {
    "nvme_vwc_present": flag("the controller has a volatile write cache (VWC bit 0)"),
    "nvme_model": word("model number"),
    "nvme_serial": word("serial number"),
    "nvme_firmware": word("firmware revision"),
    "nvme_subsystem_nqn": word("name of the NVM subsystem"),
    "nvme_awupf": number("largest write that is atomic across a power cut, in logical blocks, counted from 0 (AWUPF)"),
}
TEXTS = {"nvme_model": "mn", "nvme_serial": "sn", "nvme_firmware": "fr", "nvme_subsystem_nqn": "subnqn"}
COMMAND = "nvme id-ctrl /dev/{subject}"


def request(disk: Subject, facts: Facts) -> Run | Skip:
    return only_nvme(disk, facts) or Run(("nvme", "id-ctrl", f"/dev/{disk.name}", "-o", "json"), package="nvme-cli")


def parse(reply: Output, disk: Subject) -> Iterator[Fact]:
    fields = document(reply.text)
    if fields is None:
        if "NVME Identify Controller" not in reply.text:
            raise ValueError("neither JSON nor an Identify Controller listing")
        fields = dict(pairs(reply.text))
    if not any(isinstance(fields.get(key), str) for key in TEXTS.values()):
        raise ValueError("no Identify Controller data in it")

    def fact(name: str, value: Scalar, key: str) -> Fact:
        return Fact(disk, name, known(value, f"{key} : {str(fields[key]).strip()}", COMMAND))

    vwc = non_negative(fields.get("vwc"))
    if vwc is not None and vwc <= 0xFF:
        yield fact("nvme_vwc_present", bool(vwc & 1), "vwc")
    awupf = non_negative(fields.get("awupf"))
    if awupf is not None and awupf <= 0xFFFF:
        yield fact("nvme_awupf", awupf, "awupf")
    for name, key in TEXTS.items():
        if isinstance(text := fields.get(key), str) and text.strip():
            yield fact(name, text.strip(), key)
