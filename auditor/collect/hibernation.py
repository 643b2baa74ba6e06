"""``/sys/power``: whether this kernel can hibernate, and which device it would resume from. (Linux
Documentation/admin-guide/pm/sleep-states.rst; kernel/power/main.c state_show, kernel/power/hibernate.c resume_show)

"disk" in ``state`` is left out where hibernation is not available, as in a kernel that is locked down. ``resume`` is 0:0 until
the command line or the initramfs has named a device. A kernel without hibernation has no such files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, flag, known, word
from auditor.host.request import WITNESS, Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {
    "hibernation": flag("the kernel can hibernate"),
    "resume_device": word("MAJOR:MINOR of the device to resume from, or empty"),
}
STATE, RESUME = "/sys/power/state", "/sys/power/resume"


def request(host: Subject, facts: Facts) -> Read:
    return Read((STATE, RESUME, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """One line each."""
    reply.witness()
    if STATE in reply.text:
        states = reply.text[STATE]
        if states and not re.fullmatch(r"[a-z ]+\n", states):
            raise ValueError(f"{STATE} is not a line of words")
        yield Fact(HOST, "hibernation", known("disk" in states.split(), states.strip() or "none", f"cat {STATE}"))
    elif reply.absent(STATE):
        yield Fact(HOST, "hibernation", known(False, f"no {STATE}", f"ls {STATE}"))
    if RESUME in reply.text:
        device = re.fullmatch(r"(\d{1,4}:\d{1,7})\n", reply.text[RESUME])
        if not device:
            raise ValueError(f"{RESUME} is no device")
        text = "" if device[1] == "0:0" else device[1]
        yield Fact(HOST, "resume_device", known(text, device[1], f"cat {RESUME}"))
    elif reply.absent(RESUME):
        yield Fact(HOST, "resume_device", known("", f"no {RESUME}", f"ls {RESUME}"))
