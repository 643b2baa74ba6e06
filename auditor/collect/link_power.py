"""``/sys/class/scsi_host/hostN/link_power_management_policy``: how SATA links save power. (Linux
Documentation/scsi/link_power_management_policy.rst; drivers/ata/libata-sata.c ata_lpm_policy_names. Hosts that are not of
libata have no such file.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, words
from auditor.host.request import WITNESS, Files, Read
from auditor.text import argument

PER = "host"
SUBJECT = "host"
FACTS = {"link_power": words("hostN=POLICY of each host adapter whose links can save power; one evidence each")}
PATTERN = "/sys/class/scsi_host/host*/link_power_management_policy"
_PATH = re.compile(r"/sys/class/scsi_host/(host\d{1,6})/link_power_management_policy")


def request(host: Subject, facts: Facts) -> Read:
    return Read((PATTERN, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """A word of each. Raises ValueError where it is none, or where one could not be read."""
    reply.witness()
    found: dict[str, Evidence] = {}
    for path, text in sorted(reply.text.items()):
        if at := _PATH.fullmatch(path):
            if not re.fullmatch(r"[a-z_]{1,40}\n", text):
                raise ValueError(f"{path} is no policy")
            found[f"{at[1]}={text.strip()}"] = Evidence(text.strip(), f"cat {argument(path)}")
    refused = [path for path, error in reply.errors.items() if path != WITNESS and not error.startswith("no such")]
    if refused:
        raise ValueError(f"{refused[0]}: {reply.errors[refused[0]]}")
    none = Evidence("no host adapter has a policy for its links", f"ls {PATTERN}")
    yield Fact(HOST, "link_power", Known(tuple(found), tuple(found.values()) or (none,)))
