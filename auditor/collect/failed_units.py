"""``systemctl list-units --state=failed``: units of ZFS that failed since the host started: an import, or a mount over files
that somebody wrote first. (man 1 systemctl; OpenZFS etc/systemd/system)"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, known, words
from auditor.host.request import Output, Run

PER = "host"
SUBJECT = "host"
FACTS = {"zfs_units_failed": words("units of ZFS that failed, and were not started again")}
COMMAND = "systemctl --failed 'zfs*'"
_ROW = re.compile(r"(zfs\S*) +loaded +failed +failed( .*)?")


def request(host: Subject, facts: Facts) -> Run:
    return Run(("systemctl", "list-units", "--state=failed", "--plain", "--no-legend", "zfs*"), package="systemd")


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """A line for each; nothing where none failed. Raises ValueError for another line."""
    rows = [line.strip() for line in reply.text.splitlines()]
    found = [_ROW.fullmatch(row) for row in rows]
    if not all(found):
        raise ValueError("a line that names no failed unit of ZFS")
    units = tuple(row[1] for row in found if row)
    yield Fact(HOST, "zfs_units_failed", known(units, ", ".join(units) or "no unit of ZFS failed", COMMAND))
