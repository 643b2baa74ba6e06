"""``/etc/target/saveconfig.json``, ``/etc/rtslib-fb-target/saveconfig.json``, ``/etc/nvmet/config.json``: what is offered again
when the host starts. The kernel keeps nothing of its targets. (man 8 targetctl, man 5 saveconfig.json, nvmetcli restore)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect.target_units import none_offered
from auditor.facts import HOST, Fact, Facts, Subject, known, words
from auditor.host.request import WITNESS, Files, Read, Skip
from auditor.host.target_settings import DAMAGED, LIO, NVME, PATHS

PER = "host"
SUBJECT = "host"
FACTS = {
    "lio_saved": words("devices and files that targets of LIO are made of when the host starts"),
    "nvme_saved": words("devices and files that namespaces of NVMe over Fabrics are made of when the host starts"),
}


def request(host: Subject, facts: Facts) -> Read | Skip:
    """Only where something is offered."""
    return none_offered(facts) or Read((*PATHS, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Raises ValueError for a file in another form."""
    reply.witness()
    if damaged := next((path for path in PATHS if reply.text.get(path) == DAMAGED), ""):
        raise ValueError(f"{damaged} has no form that is known here")
    for fact, paths in (("lio_saved", LIO), ("nvme_saved", NVME)):
        if reply.complete(*paths):
            found = tuple(dict.fromkeys(each for path in paths for each in reply.text.get(path, "").splitlines()))
            there = [path for path in paths if path in reply.text]
            text = f"{len(found)} devices or files in {there[0]}" if there else f"there is no {' and no '.join(paths)}"
            yield Fact(HOST, fact, known(found, text, f"cat {' '.join(there or paths)}"))
