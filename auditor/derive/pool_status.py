"""What the status: paragraph of ``zpool status`` says of a pool beyond its devices.

It tells one thing at a time, the first of a fixed order: where it tells of something earlier, what comes later is not known
to be absent. (lib/libzfs/libzfs_status.c check_status(), the texts from cmd/zpool/zpool_main.c, the same in 2.1.11 and 2.4.4)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Fact, Facts, Judged, Known, Subject, Unknown, flag, unknown, word

SUBJECT = "pool"
FACTS = {
    "sequential_unverified": flag("a device was resilvered sequentially, and the pool was not scrubbed since"),
    "hostid_mismatch": flag("the pool bears another hostid than this host has now"),
    "unexplained_status": word("the status: paragraph, where no rule is about it; else empty"),
}
RESILVERING = "One or more devices is currently being resilvered"
SEQUENTIAL = "One or more devices have been sequentially resilvered"
HOSTID = "Mismatch between pool hostid and system hostid"
# paragraphs that a rule explains, or that are only an offer (print_status_reason() in cmd/zpool/zpool_main.c)
EXPLAINED = (
    *(RESILVERING, SEQUENTIAL, HOSTID),
    *("One or more devices has experienced an error resulting in data corruption", "The pool is suspended because"),
    *("One or more devices are faulted in response to IO failures", "The pool metadata is corrupted"),
    *("One or more devices are configured to use a non-native block size", "An intent log record could not be read"),
    *("The pool is formatted using a legacy on-disk format", "Some supported"),
    "One or more features are enabled on the pool despite",
)
OF_A_DEVICE = "One or more devices "  # all others that begin so are explained where a rule speaks of that device
COUNTS = ("read_errors", "write_errors", "checksum_errors")


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    status = facts.get(pool, "status_text")
    for name in FACTS:
        if isinstance(status, Unknown):
            yield Fact(pool, name, status)
        elif name == "unexplained_status":
            yield Fact(pool, name, _unexplained(str(status.value), pool, status, facts))
        else:
            yield Fact(pool, name, _of(name, str(status.value), status))


def _unexplained(text: str, pool: Subject, status: Known, facts: Facts) -> Judged:
    explained = not text or text.startswith(EXPLAINED)
    if not explained and text.startswith(OF_A_DEVICE):
        explained = any(_has_errors(leaf, facts) for leaf in facts.linked(pool, "leaves"))
    return Known("" if explained else text, status.evidence)


def _has_errors(leaf: Subject, facts: Facts) -> bool:
    """Or is not ONLINE: a rule says so."""
    state = facts.get(leaf, "state")
    counts = (facts.get(leaf, name) for name in COUNTS)
    return (isinstance(state, Known) and state.value != "ONLINE") or any(
        isinstance(each, Known) and each.value != 0 for each in counts
    )


def _of(name: str, text: str, status: Known) -> Judged:
    """Whether it tells of this. An empty text says that there is nothing."""
    match name:
        case "sequential_unverified":
            value, hidden = text.startswith(SEQUENTIAL), text.startswith(RESILVERING)
        case _:
            value, hidden = text.startswith(HOSTID), text.startswith((RESILVERING, SEQUENTIAL))
    if hidden:
        return unknown(
            f"zpool status tells one thing at a time, and this comes first: {text[:60]}",
            "look again when that is mended",
        )
    return Known(value, status.evidence)
