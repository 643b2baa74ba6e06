"""``systemd-detect-virt``: the hypervisor or container that we run in; "none" (with exit code 1) on bare metal.

Prints the innermost: inside a container on a virtual machine it names the container.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, flag, known, word
from auditor.host.request import Output, Request, Run

PER = "host"
SUBJECT = "host"
FACTS = {
    "virtualization": word("none, or the hypervisor or container as systemd calls it (kvm, qemu, vmware, lxc, ...)"),
    "container": flag("the innermost is a container"),
}
CONTAINERS = frozenset(
    {
        "container-other",
        "docker",
        "lxc",
        "lxc-libvirt",
        "openvz",
        "podman",
        "pouch",
        "proot",
        "rkt",
        "systemd-nspawn",
        "wsl",
    }
)


def request(host: Subject, facts: Facts) -> Request:
    """No argument: both kinds."""
    return Run(("systemd-detect-virt",), package="systemd", accept=frozenset({0, 1}))


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """One word on one line."""
    if re.fullmatch(r"[a-z][a-z0-9-]*\n", reply.text) is None:
        raise ValueError("it is not one word")
    word = reply.text.rstrip("\n")
    yield Fact(HOST, "virtualization", known(word, word, "systemd-detect-virt"))
    yield Fact(HOST, "container", known(word in CONTAINERS, word, "systemd-detect-virt"))
