"""``nvme ocp smart-add-log``: the extended SMART log (C0h) of datacenter NVMe drives: their capacitors, and power cuts that
they did not finish. (nvme-cli plugins/ocp/ocp-smart-extended-log.h, ocp-print-json.c, from 2.3 on)

A drive that does not know the log answers with an error, and many count it and the kernel logs it. So only drives are asked
whose model the table calls protected; the plugins of single vendors read nothing of capacitors that this does not (Intel's
has none). Two ways of naming the fields are in use: "Capacitor health", and capacitor_health in the second output format.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect.device_reply import document, non_negative, only_nvme
from auditor.data import drives
from auditor.facts import Fact, Facts, Known, Subject, known, number
from auditor.host.request import Output, Run, Skip

PER = "disk"
SUBJECT = "disk"
FORM = "json"
FACTS = {
    "ocp_capacitor_health": number("what its capacitors can hold, in percent; drives that are well say 100 and more"),
    "ocp_incomplete_shutdowns": number("times that it lost power before it had written everything"),
}
FIELDS = {"ocp_capacitor_health": "Capacitor health", "ocp_incomplete_shutdowns": "Incomplete shutdowns"}
ABSENT = {"ocp_capacitor_health": 0xFFFF, "ocp_incomplete_shutdowns": 0xFFFFFFFF}  # all ones: not kept
COMMAND = "nvme ocp smart-add-log /dev/{subject}"


def request(disk: Subject, facts: Facts) -> Run | Skip:
    """Only of a drive that the table knows to have capacitors."""
    if skip := only_nvme(disk, facts):
        return skip
    match facts.get(disk, "sysfs_model"):
        case Known(str() as model) if (entry := drives.match(model)) and entry.plp == "plp-full":
            return Run(("nvme", "ocp", "smart-add-log", f"/dev/{disk.name}", "-o", "json"), package="nvme-cli")
        case Known(str() as model):
            return Skip(f"{disk.name}: {model.strip()} is not known to have capacitors to ask about", applies=False)
        case _:
            return Skip(f"{disk.name}: its model is not known, so it is not asked for a log that it may not have")


def parse(reply: Output, disk: Subject) -> Iterator[Fact]:
    """What it keeps of the two; raises ValueError for anything that is not this log."""
    fields = document(reply.text)
    if fields is None:  # releases that print text whatever they are asked for
        fields = dict(_named(reply.text))
    named = {"_".join(key.lower().split()): value for key, value in fields.items()}
    if "log_page_version" not in named or "capacitor_health" not in named:
        raise ValueError("not an extended SMART log")
    for name, field in FIELDS.items():
        value = non_negative(named.get("_".join(field.lower().split())))
        if value is not None and value < ABSENT[name]:
            yield Fact(disk, name, known(value, f"{field}: {value}", COMMAND))


def _named(text: str) -> Iterator[tuple[str, str]]:
    """Name and number of each whole line, with blanks or a colon between them."""
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
