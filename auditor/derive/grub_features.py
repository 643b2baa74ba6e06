"""Whether GRUB reads the pool at /boot: it takes one with a feature that it does not know for no file system at all.

What grub-probe says decides, which is GRUB's own code. Where it did not run, features that are in use and not in its list show
that GRUB does not; that there is none shows nothing: before 2.12 it reads no pool whose top dataset has a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data import grub
from auditor.derive.mounts_of_zfs import mounted_at
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, flag, known, unknown, word, words_of

SUBJECT = "pool"
FACTS = {
    "at_boot": flag("a file system of it is mounted at /boot or /boot/grub"),
    "features_beyond_grub": word("features in use that no GRUB before 2.14 reads, or empty"),
    "unread_by_grub": word("why GRUB does not read it, or empty"),
}
NEEDS = ("host.mount_table", "pool.active_features", "pool.grub_error")
SINCE_2_14 = "zstd_compress"


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """Of another pool than that at /boot nobody asks for features."""
    table = facts.get(HOST, "mount_table")
    on = [at for at in grub.PLACES for name in mounted_at(facts, at) if name.partition("/")[0] == pool.name]
    text = f"mounted at {' and '.join(on)}" if on else "nothing of it is mounted at /boot"
    yield Fact(pool, "at_boot", table if isinstance(table, Unknown) else known(bool(on), text, "findmnt -t zfs"))
    beyond = _beyond(facts.get(pool, "active_features"))
    yield Fact(pool, "features_beyond_grub", beyond)
    yield Fact(pool, "unread_by_grub", _unread(facts.get(pool, "grub_error"), beyond))


def _unread(error: Judged, beyond: Judged) -> Judged:
    """Whether it reads zstd depends on its release."""
    features = f"in use: {beyond.value}" if isinstance(beyond, Known) and beyond.value else ""
    if isinstance(error, Known):
        text = "; ".join(filter(None, (str(error.value), features))) if error.value else ""
        return Known(text, (*error.evidence, *(beyond.evidence if text and isinstance(beyond, Known) else ())))
    if isinstance(beyond, Known) and features and beyond.value != SINCE_2_14:
        return Known(features, beyond.evidence)
    return error


def _beyond(active: Judged) -> Judged:
    if isinstance(active, Unknown):
        return active
    names = set(words_of(active))
    beyond = ", ".join(sorted(names & grub.BEYOND))
    if not beyond and (strange := sorted(names - grub.READ - grub.READ_ONLY_COMPATIBLE)):
        return unknown(f"whether GRUB reads {', '.join(strange)[:80]} is not known here", "grub-probe /boot")
    return Known(beyond, active.evidence)
