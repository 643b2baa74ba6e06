"""``systemctl list-units --state=failed``: programs that make snapshots and replicas or scrub, and failed when they ran last.

Each is known by the names of its units: sanoid and syncoid (jimsalterjrs/sanoid packages), zrepl, znapzend, pyznap, zettarepl
(TrueNAS), pvesr (Proxmox VE storage replication), zpool-* (NixOS zpool-trim, Ubuntu's scrubs).
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import failed_units
from auditor.facts import HOST, Fact, Facts, Subject, known, words
from auditor.host.request import Output, Run

PER = "host"
SUBJECT = "host"
FACTS = {"upkeep_tools_failed": words("units of programs for snapshots, replicas and scrubs whose last run failed")}
NAMES = ("sanoid*", "syncoid*", "zrepl*", "znapzend*", "pyznap*", "zettarepl*", "zpool-*", "pvesr*")


def request(host: Subject, facts: Facts) -> Run:
    return failed_units.asked(*NAMES)


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """Raises ValueError for a unit that was not asked for."""
    units = failed_units.rows(reply)
    if strange := [each for each in units if not each.startswith(tuple(name[:-1] for name in NAMES))]:
        raise ValueError(f"{strange[0][:40]} was not asked for")
    said = ", ".join(units) or "none of these units failed"
    yield Fact(HOST, "upkeep_tools_failed", known(units, said, "systemctl --failed"))
