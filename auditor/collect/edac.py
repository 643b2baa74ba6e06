"""``/sys/devices/system/edac/mc``: memory controllers, what they correct, and the errors that they counted.

Without a controller nothing is known: its driver may be missing. Some drivers register memory without correction, so the
mode of every module counts. (Linux Documentation/admin-guide/RAS/main.rst, dimm_edac_mode; drivers/edac/edac_mc_sysfs.c)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, flag, known, number
from auditor.host.request import Files, Read, Request

PER = "host"
SUBJECT = "host"
FACTS = {
    "edac_corrects": flag("the kernel knows all memory modules to be corrected (ECC)"),
    "memory_uncorrected_errors": number("errors of memory since boot that could not be corrected"),
    "memory_corrected_errors": number("errors of memory since boot that were corrected"),
}
FOLDER = "/sys/devices/system/edac/mc"
CORRECTS = frozenset({"SECDED", "S2ECD2ED", "S4ECD4ED", "S8ECD8ED", "S16ECD16ED"})
DOES_NOT = frozenset({"None", "PARITY", "EC"})
COUNTERS = {"ue_count": "memory_uncorrected_errors", "ce_count": "memory_corrected_errors"}
PATTERNS = (
    *(f"{FOLDER}/mc*/{name}" for name in COUNTERS),
    *(f"{FOLDER}/mc*/{kind}*/dimm_edac_mode" for kind in ("dimm", "rank")),
)


def request(host: Subject, facts: Facts) -> Request:
    """A few small files a controller and module; a module is called dimm or rank."""
    return Read(PATTERNS)


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """The modes of all modules together, and sums over all controllers; nothing where there is none."""
    modes = {text.strip() for path, text in reply.text.items() if path.endswith("/dimm_edac_mode")}
    whole = reply.complete(*PATTERNS)
    if modes and whole and not modes - CORRECTS - DOES_NOT:
        text = f"dimm_edac_mode {', '.join(sorted(modes))}"
        seen = known(modes <= CORRECTS, text, f"grep . {FOLDER}/mc*/*/dimm_edac_mode")
        yield Fact(HOST, "edac_corrects", seen)
    for file, name in COUNTERS.items():
        values = [text for path, text in reply.text.items() if path.endswith(f"/{file}")]
        if values and whole and all(re.fullmatch(r"\d{1,15}\n", text) for text in values):
            count = sum(map(int, values))
            yield Fact(HOST, name, known(count, f"{file} {count}", f"grep . {FOLDER}/mc*/{file}"))
