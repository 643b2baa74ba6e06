"""``/sys/class/dmi/id``: who made this machine, as its firmware says; a second witness of virtualization.

The names are those that systemd matches too (systemd src/basic/virt.c, detect_vm_dmi_vendor).
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, known, word
from auditor.host.request import Files, Read, Request

PER = "host"
SUBJECT = "host"
FACTS = {
    "dmi_sys_vendor": word("maker of the machine"),
    "dmi_product_name": word("model of the machine"),
    "dmi_bios_vendor": word("maker of the firmware"),
    "virtual_machine_hint": word("the hypervisor that the three names betray, or none"),
}
FOLDER = "/sys/class/dmi/id"
FILES = ("sys_vendor", "product_name", "bios_vendor")
HYPERVISORS = (  # beginning of any of the three names -> hypervisor
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "amazon"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "oracle"),
    ("VirtualBox", "oracle"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "microsoft"),
    ("Virtual Machine", "microsoft"),
    ("Apple Virtualization", "apple"),
    ("Google Compute Engine", "google"),
)


def request(host: Subject, facts: Facts) -> Request:
    """Three small files that everyone may read."""
    return Read(tuple(f"{FOLDER}/{name}" for name in FILES))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """The names as they are, and what they betray once all three are there."""
    names = {}
    for name in FILES:
        path = f"{FOLDER}/{name}"
        if path in reply.text:
            if not reply.text[path].endswith("\n"):
                raise ValueError(f"{path} is cut off")
            names[name] = reply.text[path].strip()
            yield Fact(HOST, f"dmi_{name}", known(names[name], names[name], f"cat {path}"))
    hint = next((vm for start, vm in HYPERVISORS for each in names.values() if each.startswith(start)), "none")
    if hint != "none" or len(names) == len(FILES):
        yield Fact(HOST, "virtual_machine_hint", known(hint, ", ".join(names.values()), f"grep . {FOLDER}/*"))
