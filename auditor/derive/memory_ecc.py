"""Whether errors of memory are corrected: the kernel's driver for the memory controller knows, the firmware's tables say so.

In a virtual machine neither says anything: QEMU's tables claim "Multi-bit ECC" whatever its host has.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, flag, join, unknown

SUBJECT = "host"
FACTS = {"memory_ecc": flag("errors of memory are corrected and noticed (ECC)")}


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    machine = facts.get(HOST, "virtualization")
    edac, dmi = facts.get(HOST, "edac_corrects"), facts.get(HOST, "dmi_memory_ecc")
    if isinstance(machine, Unknown):
        yield Fact(HOST, "memory_ecc", machine)
    elif machine.value != "none":
        yield Fact(HOST, "memory_ecc", unknown(f"in {machine.value}: what memory the machine below has is not seen"))
    elif isinstance(edac, Known):
        yield Fact(HOST, "memory_ecc", edac)
    elif isinstance(dmi, Known):
        yield Fact(HOST, "memory_ecc", dmi)
    else:
        yield Fact(HOST, "memory_ecc", join([edac, dmi]))
