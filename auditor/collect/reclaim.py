"""``/sys/kernel/mm/lru_gen/enabled``: whether the kernel reclaims memory by the multi-generational LRU. (Linux
Documentation/admin-guide/mm/multigen_lru.rst: a mask, of which bit 0 is the main switch; from 6.1 on, and not in every build)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, flag, known
from auditor.host.request import WITNESS, Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {"multigen_lru": flag("the kernel reclaims memory by the multi-generational LRU")}
PATH = "/sys/kernel/mm/lru_gen/enabled"


def request(host: Subject, facts: Facts) -> Read:
    return Read((PATH, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """One mask. Raises ValueError for anything else."""
    reply.witness()
    if PATH in reply.text:
        mask = re.fullmatch(r"0x([0-9a-f]{1,8})\n", reply.text[PATH])
        if not mask:
            raise ValueError(f"{PATH} is no mask")
        yield Fact(HOST, "multigen_lru", known(bool(int(mask[1], 16) & 1), reply.text[PATH].strip(), f"cat {PATH}"))
    elif reply.absent(PATH):
        yield Fact(HOST, "multigen_lru", known(False, f"no {PATH}", f"ls {PATH}"))
