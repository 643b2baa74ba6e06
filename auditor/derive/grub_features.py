"""Which features in use on a pool GRUB does not read: it takes such a pool for no file system at all."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data import grub
from auditor.derive.mounts_of_zfs import mounted_at
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, flag, known, unknown, word, words_of

SUBJECT = "pool"
FACTS = {
    "at_boot": flag("a file system of it is mounted at /boot or /boot/grub"),
    "features_beyond_grub": word("features in use that no GRUB before 2.14 reads, or empty"),
}
NEEDS = ("host.mount_table", "pool.active_features")


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """Both facts; of another pool than that at /boot nobody asks for features."""
    table = facts.get(HOST, "mount_table")
    on = [at for at in grub.PLACES for name in mounted_at(facts, at) if name.partition("/")[0] == pool.name]
    text = f"mounted at {' and '.join(on)}" if on else "nothing of it is mounted at /boot"
    yield Fact(pool, "at_boot", table if isinstance(table, Unknown) else known(bool(on), text, "findmnt -t zfs"))
    yield Fact(pool, "features_beyond_grub", _beyond(facts.get(pool, "active_features")))


def _beyond(active: Judged) -> Judged:
    if isinstance(active, Unknown):
        return active
    names = set(words_of(active))
    beyond = ", ".join(sorted(names & grub.BEYOND))
    if not beyond and (strange := sorted(names - grub.READ - grub.READ_ONLY_COMPATIBLE)):
        return unknown(f"whether GRUB reads {', '.join(strange)[:80]} is not known here", "grub-probe /boot")
    return Known(beyond, active.evidence)
