"""``dmidecode -t memory``: whether the firmware says that memory is ECC memory. Needs root. (SMBIOS, types 16 and 17)

Type 16 is an array of memory with its "Error Correction Type", type 17 a module: with ECC its total width is more than its
data width.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, flag, known
from auditor.host.request import Output, Request, Run

PER = "host"
SUBJECT = "host"
FACTS = {"dmi_memory_ecc": flag("the firmware says of all system memory that its errors are corrected")}
CORRECTED = frozenset({"Single-bit ECC", "Multi-bit ECC"})
NOT_CORRECTED = frozenset({"None", "Parity", "CRC"})
_BITS = re.compile(r"\d+ bits")


def request(host: Subject, facts: Facts) -> Request:
    """Arrays and modules."""
    return Run(("dmidecode", "-t", "memory"), package="dmidecode")


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """True when array and modules agree; nothing where the firmware does not say it of all of them."""
    arrays = [each for each in _records(reply.text, "Physical Memory Array") if each.get("Use") == "System Memory"]
    types = {each.get("Error Correction Type", "") for each in arrays}
    widths = [
        (each.get("Total Width", ""), each.get("Data Width", ""))
        for each in _records(reply.text, "Memory Device")
        if each.get("Size", "") != "No Module Installed"
    ]
    if (
        not types
        or types - CORRECTED - NOT_CORRECTED
        or not all(_BITS.fullmatch(bits) for pair in widths for bits in pair)
    ):
        return
    wider = [int(total.split()[0]) > int(data.split()[0]) for total, data in widths]
    if not wider:
        return
    text = f"Error Correction Type: {', '.join(sorted(types))}; Total Width {widths[0][0]}, Data Width {widths[0][1]}"
    yield Fact(HOST, "dmi_memory_ecc", known(types <= CORRECTED and all(wider), text, "dmidecode -t memory"))


def _records(text: str, title: str) -> Iterator[dict[str, str]]:
    """The fields of each structure with this title that is whole: an empty line ends it."""
    for body in re.findall(rf"^{title}\n((?:\t.*\n)+)\n", text, re.M):
        yield dict(re.findall(r"^\t([^\t:][^:]*): (.*)\n", body, re.M))
