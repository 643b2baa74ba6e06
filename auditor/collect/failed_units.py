"""``systemctl list-units --state=failed``: units of ZFS that failed since the host started: an import, a mount over files that
somebody wrote first, a scrub or a snapshot. (man 1 systemctl; OpenZFS etc/systemd/system)"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, known, words
from auditor.host.request import Output, Run

PER = "host"
SUBJECT = "host"
FACTS = {
    "zfs_units_failed": words("units of ZFS that failed at the start of the host, and were not started again"),
    "zfs_upkeep_failed": words("units zfs* for scrubs, trims, snapshots or replicas whose last run failed"),
}
COMMAND = "systemctl --failed 'zfs*'"
_ROW = re.compile(r"([\w@.:\\-]{1,255}) +loaded +failed +failed( .*)?", re.ASCII)
# of OpenZFS (zfs-scrub-weekly@POOL), Debian and Ubuntu, zfs-auto-snapshot, zfs_autobackup, NixOS
_UPKEEP = re.compile(r"zfs[-_](?:scrub|trim|auto|snap|repl|backup|prune|send|sync)")


def asked(*names: str) -> Run:
    """The question for failed units of these names."""
    return Run(("systemctl", "list-units", "--state=failed", "--plain", "--no-legend", *names), package="systemd")


def rows(reply: Output) -> tuple[str, ...]:
    """The names; none where none failed. Raises ValueError for another line."""
    found = [_ROW.fullmatch(line.strip()) for line in reply.text.splitlines()]
    if not all(found):
        raise ValueError("a line that names no failed unit")
    return tuple(row[1] for row in found if row)


def request(host: Subject, facts: Facts) -> Run:
    return asked("zfs*")


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    units = rows(reply)
    if strange := [each for each in units if not each.startswith("zfs")]:
        raise ValueError(f"{strange[0][:40]} is no unit of ZFS")
    upkeep = tuple(each for each in units if _UPKEEP.match(each))
    start = tuple(each for each in units if each not in upkeep)
    for name, found in (("zfs_units_failed", start), ("zfs_upkeep_failed", upkeep)):
        yield Fact(HOST, name, known(found, ", ".join(found) or "none of these units failed", COMMAND))
