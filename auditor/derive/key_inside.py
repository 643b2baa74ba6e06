"""Whether the file of a dataset's key lies where only that key leads: after a restart nobody can load it.

The key of a dataset is that of its encryption root: of the nearest one from it upwards that has a keylocation (those below an
encryption root say "none"). (man 7 zfsprops, encryptionroot, keylocation; man 8 zfs-load-key)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from auditor.derive.combine import about
from auditor.facts import Evidence, Fact, Facts, Judged, Known, Subject, Unknown, flag, unknown

SUBJECT = "dataset"
FACTS = {"key_inside": flag("the file of its key lies on a dataset that cannot be mounted without this key")}


def derive(dataset: Subject, facts: Facts) -> Iterator[Fact]:
    """False where the way from the file to the next key ends: not on ZFS, not encrypted, a key that somebody types."""
    yield Fact(dataset, "key_inside", _leads_to(dataset, dataset, facts, set()))


def _leads_to(root: Subject, wanted: Subject, facts: Facts, passed: set[Subject]) -> Judged:
    """Whether the file of the root's key cannot be reached without the key that is wanted."""
    passed.add(root)
    on = facts.get(root, "key_lies_on")
    if isinstance(on, Unknown):
        return on
    unsure: Unknown | None = None
    for holder in facts.linked(root, "key_lies_on"):
        next_root = _root_of(holder, root, facts)
        if isinstance(next_root, Unknown):
            unsure = next_root
        elif next_root == wanted:
            return Known(True, (*on.evidence, *_ciphers(holder, facts)))
        elif next_root and next_root not in passed:
            found = _leads_to(next_root, wanted, facts, passed)
            if isinstance(found, Unknown):
                unsure = found
            elif found.value is True:
                return Known(True, (*on.evidence, *found.evidence))
    return unsure or _no(on.evidence)


@lru_cache(maxsize=256)
def _no(evidence: tuple[Evidence, ...]) -> Known:
    """Shared, for thousands of datasets."""
    return Known(False, evidence)


def _root_of(holder: Subject, from_: Subject, facts: Facts) -> Subject | Unknown | None:
    """The encryption root of a dataset; None where it needs no key, or where it is in another pool that was not looked at."""
    if holder.name.partition("/")[0] != from_.name.partition("/")[0] and not facts.of(holder):
        return None
    parts = holder.name.split("/")
    for end in range(len(parts), 0, -1):
        above = Subject("dataset", "/".join(parts[:end]))
        cipher, location = facts.get(above, "encryption"), facts.get(above, "keylocation")
        if isinstance(cipher, Unknown):
            return cipher
        if cipher.value == "off":
            return (
                None
                if above == holder
                else unknown(f"{holder.name} is encrypted; which dataset has its key is not clear")
            )
        if isinstance(location, Unknown):
            return location
        if location.value != "none":
            return above
    return unknown(f"{holder.name} is encrypted; which dataset has its key is not clear")


def _ciphers(holder: Subject, facts: Facts) -> tuple[Evidence, ...]:
    cipher = facts.get(holder, "encryption")
    return about(holder, cipher) if isinstance(cipher, Known) else ()
