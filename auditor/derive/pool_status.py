"""What the status: paragraph of ``zpool status`` says of a pool beyond its devices.

It tells one thing at a time, the first of a fixed order: where it tells of something earlier, what comes later is not known
to be absent. (lib/libzfs/libzfs_status.c check_status(), the texts from cmd/zpool/zpool_main.c, the same in 2.1.11 and 2.4.4)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import Fact, Facts, Judged, Known, Subject, Unknown, flag, number, unknown

SUBJECT = "pool"
FACTS = {
    "sequential_unverified": flag("a device was resilvered sequentially, and the pool was not scrubbed since"),
    "hostid_mismatch": flag("the pool bears another hostid than this host has now"),
    "errata": number("the erratum of its on-disk format that OpenZFS detected; 0 is none"),
}
NEEDS = ("pool.status_text",)
RESILVERING = "One or more devices is currently being resilvered"
SEQUENTIAL = "One or more devices have been sequentially resilvered"
HOSTID = "Mismatch between pool hostid and system hostid"
ERRATUM = re.compile(r"Errata #(\d{1,9}) detected")
# what is told only where there is no erratum
AFTER_ERRATA = (
    "The pool is formatted using a legacy on-disk format",
    "Some supported and requested features are not enabled",
    "Some supported features are not enabled",
    "This pool has a compatibility list specified",
    "One or more features are enabled on the pool despite",
)


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    status = facts.get(pool, "status_text")
    for name in FACTS:
        yield Fact(pool, name, status if isinstance(status, Unknown) else _of(name, str(status.value), status))


def _of(name: str, text: str, status: Known) -> Judged:
    """One of FACTS. An empty text says that there is nothing."""
    erratum = ERRATUM.match(text)
    value: bool | int
    match name:
        case "sequential_unverified":
            value, hidden = text.startswith(SEQUENTIAL), text.startswith(RESILVERING)
        case "hostid_mismatch":
            value, hidden = text.startswith(HOSTID), text.startswith((RESILVERING, SEQUENTIAL))
        case _:
            hidden = bool(text) and not erratum and not text.startswith(AFTER_ERRATA)
            value = int(erratum[1]) if erratum else 0
    if hidden:
        return unknown(
            f"zpool status tells one thing at a time, and this comes first: {text[:60]}",
            "look again when that is mended",
        )
    return Known(value, status.evidence)
