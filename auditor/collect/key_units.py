"""``systemctl list-units --state=active``: the units that have loaded a key, as far as systemd knows. (man 1 systemctl)

A key that was loaded by hand is loaded for OpenZFS, and its unit is not active.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, Unknown, known, words, words_of
from auditor.host.mount_units import UNIT, encryption_root
from auditor.host.request import Output, Run, Skip

PER = "host"
SUBJECT = "host"
FACTS = {"key_units_active": words("encryption roots whose unit zfs-load-key@ is active")}
_ROW = re.compile(r"(\S{1,300}) +loaded +active +\w+( .*)?", re.ASCII)


def request(host: Subject, facts: Facts) -> Run | Skip:
    """Only where a mount is bound to such a unit."""
    bound = facts.get(HOST, "keys_bound")
    if isinstance(bound, Unknown):
        return Skip("which mounts are bound to the units of keys is not known")
    if not words_of(bound):
        return Skip("no mount is bound to a unit of a key", applies=False)
    command = ("systemctl", "list-units", "--state=active", "--plain", "--no-legend", "zfs-load-key@*")
    return Run(command, package="systemd")


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """Raises ValueError for another line than that of an active unit of a key."""
    rows = [_ROW.fullmatch(line.strip()) for line in reply.text.splitlines()]
    units = [UNIT.fullmatch(row[1]) if row else None for row in rows]
    roots = tuple(encryption_root(each[1]) for each in units if each)
    if len(roots) < len(rows):
        raise ValueError("a line that names no active unit of a key")
    text = ", ".join(roots) or "no unit of a key is active"
    yield Fact(HOST, "key_units_active", known(roots, text, "systemctl list-units 'zfs-load-key@*'"))
