"""``/etc/target/saveconfig.json``, ``/etc/rtslib-fb-target/saveconfig.json``, ``/etc/nvmet/config.json``: what is offered again
when the host starts. The kernel keeps nothing of its targets. (man 8 targetctl, man 5 saveconfig.json, nvmetcli restore)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect.target_units import none_offered
from auditor.facts import HOST, Fact, Facts, Subject, known, words
from auditor.host.request import WITNESS, Files, Read, Skip
from auditor.host.target_settings import DAMAGED, LIO, LIO_OF_DEBIAN, NVME, PATHS

PER = "host"
SUBJECT = "host"
FACTS = {
    "lio_saved": words("devices and files that initiators of LIO are given by /etc/target/saveconfig.json"),
    "lio_saved_by_debian": words("the same of /etc/rtslib-fb-target/saveconfig.json"),
    "nvme_saved": words("devices and files of namespaces of NVMe over Fabrics in /etc/nvmet/config.json"),
}


def request(host: Subject, facts: Facts) -> Read | Skip:
    """Only where something is offered."""
    return none_offered(facts) or Read((*PATHS, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Raises ValueError for a file in another form."""
    reply.witness()
    if damaged := next((path for path in PATHS if reply.text.get(path) == DAMAGED), ""):
        raise ValueError(f"{damaged} has no form that is known here")
    for fact, path in zip(FACTS, (LIO, LIO_OF_DEBIAN, NVME), strict=True):
        if reply.complete(path):
            found = tuple(each for each in reply.text.get(path, "").split("\n") if each)
            text = f"{len(found)} devices or files in {path}" if path in reply.text else f"there is no {path}"
            yield Fact(HOST, fact, known(found, text, f"cat {path}"))
