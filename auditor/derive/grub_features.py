"""Whether GRUB reads the pool at /boot: it takes one with a feature that it does not know for no file system at all, and before
2.12 it stumbles over a top dataset that has, or had, a snapshot under OpenZFS 2.2 or later.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data import grub
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, flag, join, known, unknown, word, words_of

SUBJECT = "pool"
FACTS = {
    "at_boot": flag("a file system of it is mounted at /boot or /boot/grub"),
    "unread_by_grub": word("why GRUB does not read it, or empty"),
}
NEEDS = ("host.mount_table", "host.grub_version", "pool.active_features", "pool.top_dataset_extended")
ZSTD, ZSTD_SINCE = "zstd_compress", (2, 14)
EXTENDED, EXTENDED_SINCE = "extensible_dataset", (2, 12)
PROBE = "grub-probe /boot"


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """Of another pool than that at /boot nobody asks for features."""
    table = facts.get(HOST, "mount_table")
    pools = grub.pools_of(words_of(table))
    if isinstance(table, Known) and pools is not None:
        text = (
            f"it is mounted at {' or '.join(grub.PLACES)}"
            if pool.name in pools
            else "nothing of it is mounted at /boot"
        )
        yield Fact(pool, "at_boot", known(pool.name in pools, text, "findmnt -t zfs"))
    else:
        later = unknown("/boot is mounted when somebody looks at it", "ls /boot")
        yield Fact(pool, "at_boot", table if isinstance(table, Unknown) else later)
    yield Fact(pool, "unread_by_grub", _unread(pool, facts))


def _unread(pool: Subject, facts: Facts) -> Judged:
    """Not where no GRUB is installed: then something else starts the host, which may know all features."""
    active, version = facts.get(pool, "active_features"), facts.get(HOST, "grub_version")
    if unseen := [each for each in (active, version) if isinstance(each, Unknown)]:
        return join(unseen)
    names, release = {*words_of(active)}, _release(version)
    seen = tuple(piece for each in (active, version) if isinstance(each, Known) for piece in each.evidence)
    beyond = names & grub.BEYOND - {ZSTD}
    if ZSTD in names and release < ZSTD_SINCE:
        beyond |= {ZSTD}
    if beyond:
        return Known(f"it uses {', '.join(sorted(beyond))}", seen)
    if strange := sorted(names - grub.READ - grub.READ_ONLY_COMPATIBLE - {ZSTD}):
        return unknown(f"whether GRUB reads {', '.join(strange)[:80]} is not known here", PROBE)
    if EXTENDED not in names or release >= EXTENDED_SINCE:
        return Known("", seen)
    extended = facts.get(pool, "top_dataset_extended")
    if isinstance(extended, Unknown):
        return extended
    text = f"before GRUB 2.12 its top dataset is none with {extended.value}" if extended.value else ""
    return Known(text, (*extended.evidence, *seen))


def _release(version: Judged) -> tuple[int, ...]:
    """None: empty."""
    value = version.value if isinstance(version, Known) else ()
    return tuple(each for each in value if isinstance(each, int)) if isinstance(value, tuple) else ()
