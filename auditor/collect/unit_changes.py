"""``/etc/systemd/system``: the units for ZFS of which an administrator or a platform has said something there.

Such a file counts in place of the one of the package, and one in the folder NAME.d besides it. Only names are read; links to
/dev/null, which mask a unit, are those of ``boot_units``. A question of its own, as the recordings of that one do not answer
it. (man 5 systemd.unit, "Unit File Load Path")
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, known, words
from auditor.host.request import WITNESS, Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {"zfs_units_changed": words("units for ZFS of which something stands in /etc/systemd/system, masks left out")}
UNITS, PARTS = "/etc/systemd/system/zfs*", "/etc/systemd/system/zfs*.d/*"
_UNIT = re.compile(r"/etc/systemd/system/(zfs[^/]*?)(?:\.d/[^/]+)?")


def request(host: Subject, facts: Facts) -> Read:
    return Read((UNITS, PARTS, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Where all names could be seen."""
    reply.witness()
    if reply.complete(UNITS, PARTS):
        paths = [path for path in (*reply.text, *reply.links) if reply.links.get(path) != "/dev/null"]
        changed = tuple(sorted({found[1] for path in paths if (found := _UNIT.fullmatch(path))}))
        text = f"{', '.join(changed) or 'nothing'} of ZFS in /etc/systemd/system"
        yield Fact(HOST, "zfs_units_changed", known(changed, text, f"ls -d {UNITS} {PARTS}"))
