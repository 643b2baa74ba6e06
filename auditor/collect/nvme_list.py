"""``nvme list``: model, serial number and firmware of every NVMe namespace, from sysfs, without root. (man nvme-list;
nvme-cli src/nvme-print-json.c json_simple_list, json_detail_list)

Three shapes: a flat list of devices, one nested by host, subsystem, controller and namespace (2.x with -v, and early
2.x without), and a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from auditor.collect.device_reply import document
from auditor.facts import Fact, Facts, Subject, known, word
from auditor.host.request import Output, Run

PER = "host"
SUBJECT = "disk"
FORM = "json"
FACTS = {
    "nvme_list_model": word("model number"),
    "nvme_list_serial": word("serial number"),
    "nvme_list_firmware": word("firmware revision"),
}
KEYS = {"nvme_list_model": "ModelNumber", "nvme_list_serial": "SerialNumber", "nvme_list_firmware": "Firmware"}
COLUMNS = {"Model": "ModelNumber", "SN": "SerialNumber", "FW Rev": "Firmware"}
NODE = re.compile(r"nvme\d+n\d+")


def request(host: Subject, facts: Facts) -> Run:
    return Run(("nvme", "list", "-o", "json"), package="nvme-cli")


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    text = reply.text.strip()
    if not text or text.startswith("No NVMe devices detected"):
        return
    fields = document(reply.text)
    found = list(_table(reply.text) if fields is None else _devices(_objects(fields, "Devices")))
    for node, device in found:
        for name, key in KEYS.items():
            value = device.get(key)
            if NODE.fullmatch(node) and isinstance(value, str) and value.strip():
                yield Fact(Subject("disk", node), name, known(value.strip(), f"{key}: {value.strip()}", "nvme list"))


def _objects(parent: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    """The list of objects under a key; raises ValueError when there is none."""
    listed = parent.get(key)
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise ValueError(f"no list of {key} in it")
    return listed


def _devices(listed: Sequence[Mapping[str, object]]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """(node name, what is said of it) of either JSON shape."""
    for device in listed:
        if isinstance(path := device.get("DevicePath"), str):
            yield path.removeprefix("/dev/"), device
            continue
        for subsystem in _objects(device, "Subsystems"):
            controllers = _objects(subsystem, "Controllers")
            for controller in controllers:
                for namespace in _objects(controller, "Namespaces"):
                    yield str(namespace.get("NameSpace")), controller
            # a namespace behind several controllers stands beside them; it has what all of them agree on
            shared = {
                key: values.pop()
                for key in KEYS.values()
                if len(values := {said if isinstance(said := each.get(key), str) else None for each in controllers})
                == 1
            }
            for namespace in _objects(subsystem, "Namespaces") if "Namespaces" in subsystem else ():
                yield str(namespace.get("NameSpace")), shared


def _table(text: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The rows of the table, cut where the dashes under its head are."""
    lines = text.split("\n")[:-1]
    head = next((at for at, line in enumerate(lines) if line.startswith("Node ")), None)
    if head is None or head + 1 >= len(lines) or not re.fullmatch(r"-+( +-+)+ *", lines[head + 1]):
        raise ValueError("neither JSON nor a table of devices")
    spans = [match.span() for match in re.finditer(r"-+", lines[head + 1])]
    titles = [lines[head][start:end].strip() for start, end in spans]
    if not {"Node", *COLUMNS} <= set(titles):
        raise ValueError("the table has no Node, SN, Model and FW Rev")
    for line in lines[head + 2 :]:
        if not line.strip():
            break
        if any(line[end : end + 1].strip() for _, end in spans):
            raise ValueError("a row does not fit the table's head")
        row = {title: line[start:end].strip() for title, (start, end) in zip(titles, spans, strict=True)}
        yield row["Node"].removeprefix("/dev/"), {key: row[title] for title, key in COLUMNS.items()}
