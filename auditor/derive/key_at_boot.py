"""Whether something loads the key of an encryption root when the host starts.

zfs-mount.service mounts without -l, so that it loads no key. The initramfs loads that of the root file system; where
/etc/zfs/zfs-list.cache has a list of a pool, zfs-mount-generator makes a unit for each key; a site may have a unit of its own,
which is found by its name (zfs...key...): what it loads is not read, so that then it is not known. (OpenZFS
etc/systemd/system-generators/zfs-mount-generator.c, etc/systemd/system/zfs-mount.service.in, contrib/initramfs/scripts/zfs)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.next_boot import reached, root_source
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, flag, join, unknown, words_of

SUBJECT = "dataset"
FACTS = {
    "key_loaded_at_boot": flag("something that is enabled loads its key when the host starts; of encryption roots")
}


def derive(dataset: Subject, facts: Facts) -> Iterator[Fact]:
    """Unknown of datasets that are not encrypted, or have no keylocation of their own."""
    cipher, location = facts.get(dataset, "encryption"), facts.get(dataset, "keylocation")
    if not (isinstance(cipher, Known) and isinstance(location, Known)):
        found: Judged = join([each for each in (cipher, location) if isinstance(each, Unknown)])
    elif cipher.value == "off" or location.value == "none":
        found = unknown(f"{dataset.name} has no key of its own")
    else:
        found = _loaded(dataset, facts)
    yield Fact(dataset, "key_loaded_at_boot", found)


def _loaded(dataset: Subject, facts: Facts) -> Judged:
    root = root_source(facts)
    if root and f"{root.value}/".startswith(f"{dataset.name}/"):
        return Known(True, root.evidence)
    lists = facts.get(HOST, "generated_pools")
    if isinstance(lists, Known) and dataset.name.partition("/")[0] in words_of(lists):
        return Known(True, lists.evidence)
    units = reached(facts)
    if isinstance(units, Unknown):
        return units
    if loading := [unit for unit in words_of(units) if "key" in unit]:
        return unknown(f"{loading[0]} is enabled, and of which datasets it loads the key is not looked at")
    return lists if isinstance(lists, Unknown) else Known(False, (*units.evidence, *lists.evidence))
