"""``nvme get-feature -f 6 -H``: whether the volatile write cache of an NVMe drive is switched on. (NVM Express Base
Specification, Features: Volatile Write Cache; nvme-cli src/nvme-print-stdout.c)

Only here does a cache that was switched off show: VWC and sysfs keep saying that there is one. Drives without a
volatile cache refuse the question (Invalid Field in Command).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from auditor.collect.device_reply import Document, document, only_nvme
from auditor.facts import Fact, Facts, Subject, flag, known
from auditor.host.request import Output, Run, Skip

PER = "disk"
SUBJECT = "disk"
FORM = "json"
FACTS = {"nvme_write_cache": flag("the volatile write cache is switched on (Feature 6, WCE)")}
COMMAND = "nvme get-feature -f 6 -H /dev/{subject}"

_VALUE = re.compile(
    r"^get-feature: ?(?:0x)?0*6 \(Volatile Write Cache\), Current value: ?(?:0x)?([0-9a-fA-F]{1,8})[ \t]*\n",
    re.MULTILINE,
)
_WORDS = re.compile(r"^[^\S\n]*+Volatile Write Cache Enable \(WCE\)\s*+: (Enabled|Disabled)[ \t]*\n", re.MULTILINE)
_KEY = re.compile(r"(?i)feature: ?(?:0x)?0*6")


def request(disk: Subject, facts: Facts) -> Run | Skip:
    argv = ("nvme", "get-feature", "-f", "6", "-H", f"/dev/{disk.name}")
    return only_nvme(disk, facts) or Run(argv, package="nvme-cli")


def parse(reply: Output, disk: Subject) -> Iterator[Fact]:
    fields = document(reply.text)
    if fields is not None:
        said = _from_json(fields)
    else:
        said = [bool(int(value, 16) & 1) for value in _VALUE.findall(reply.text)]
        said += [word == "Enabled" for word in _WORDS.findall(reply.text)] if said else []
    if not said:
        raise ValueError("no current value of feature 6 in it")
    if len(set(said)) > 1:
        raise ValueError("it says both Enabled and Disabled")
    yield Fact(disk, "nvme_write_cache", known(said[0], f"Volatile Write Cache Enable: {said[0]:d}", COMMAND))


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
