"""``nvme cmdset-ind-id-ns``: whether a namespace has no volatile write cache though its controller has one. (NVM
Express Base Specification, I/O Command Set Independent Identify Namespace, NSFEAT bit 5 VWCNP; Linux
drivers/nvme/host/core.c nvme_ns_info_from_id_cs_indep; nvme-cli 2.0 and later)

Only controllers of NVMe 2.0 and later know the question; others refuse it (Invalid Field in Command). nvme-cli's ``-v``
text for the bit is the wrong way round ("is Present" when it is set): only the number counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect.device_reply import document, non_negative, only_nvme, pairs
from auditor.facts import Fact, Facts, Subject, flag, known
from auditor.host.request import Output, Run, Skip

PER = "disk"
SUBJECT = "disk"
FORM = "json"
FACTS = {"nvme_ns_vwc_absent": flag("this namespace has no volatile write cache, whatever its controller says (VWCNP)")}


def request(disk: Subject, facts: Facts) -> Run | Skip:
    argv = ("nvme", "cmdset-ind-id-ns", f"/dev/{disk.name}", "-o", "json")
    return only_nvme(disk, facts) or Run(argv, package="nvme-cli")


def parse(reply: Output, disk: Subject) -> Iterator[Fact]:
    fields = document(reply.text)
    if fields is None:
        if "NVME Identify Command Set Independent Namespace" not in reply.text:
            raise ValueError("neither JSON nor a Command Set Independent Namespace listing")
        fields = dict(pairs(reply.text))
    features = non_negative(fields.get("nsfeat"))
    # nstat tells this structure from Identify Namespace, whose NSFEAT bit 5 means something else
    if features is None or features > 0xFF or "nstat" not in fields:
        raise ValueError("no Command Set Independent Namespace data in it")
    command = "nvme cmdset-ind-id-ns /dev/{subject}"
    yield Fact(disk, "nvme_ns_vwc_absent", known(bool(features & 0x20), f"nsfeat : {features:#x}", command))
