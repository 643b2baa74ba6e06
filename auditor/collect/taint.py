"""``/proc/sys/kernel/tainted``: what has befallen the kernel since it started, which stays when its log is overwritten.

A mask. Only what says that memory, a processor or the kernel itself has failed is told; modules that are not the kernel's own,
OpenZFS among them, set bits as well. (Linux Documentation/admin-guide/tainted-kernels.rst)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, known, words
from auditor.host.request import Files, Read

PER = "host"
SUBJECT = "host"
PATH = "/proc/sys/kernel/tainted"
BITS = {4: "a machine check (M)", 5: "memory in a bad state, or misused (B)", 7: "an oops or BUG (D)"}
FACTS = {"kernel_failures": words("what has failed in the kernel since it started")}


def request(host: Subject, facts: Facts) -> Read:
    return Read((PATH,))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """One mask, in decimal. Raises ValueError for anything else."""
    if PATH in reply.text:
        if not re.fullmatch(r"\d{1,19}\n", reply.text[PATH], re.ASCII):
            raise ValueError(f"{PATH} is no mask")
        mask = int(reply.text[PATH])
        found = tuple(text for bit, text in BITS.items() if mask >> bit & 1)
        yield Fact(
            HOST, "kernel_failures", known(found, f"{mask}: {', '.join(found) or 'none of these'}", f"cat {PATH}")
        )
