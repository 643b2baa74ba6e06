"""``zfs get`` of the top dataset of the pool that GRUB reads: what keeps GRUB before 2.12 from reading it.

Since OpenZFS 2.2 the time of the last change of snapshots stands in the directory of the dataset, which becomes another kind of
object by it, and stays one when the snapshot is destroyed; a limit of file systems or snapshots does the same, and from then on
they are counted. (man 7 zfsprops, snapshots_changed, filesystem_count; module/zfs/dsl_dir.c dsl_dir_snap_cmtime_update,
dsl_dir_init_fs_ss_count, dsl_dir_zapify at zfs-2.2.0; GRUB commits 7ce5b4911, 444089eec)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.collect.zpool_get_boot import boots_from
from auditor.facts import HOST, Fact, Facts, Known, Subject, known, word
from auditor.host.request import Output, Run, Skip

PER = "pool"
SUBJECT = "pool"
FACTS = {"top_dataset_extended": word("what GRUB before 2.12 stumbles over in its top dataset; empty: nothing")}
# what is counted where there is, or was, a limit; nothing takes the mark away
CHANGED, COUNTS = "snapshots_changed", ("filesystem_count", "snapshot_count")
WORDS = dict.fromkeys((CHANGED, *COUNTS), "top_dataset_extended")
SINCE = (2, 2)
NONE = ("none", str(2**64 - 1), "-")  # the second of OpenZFS 2.1


def request(pool: Subject, facts: Facts) -> Run | Skip:
    """Of releases before the property, under which snapshots leave no mark, only the counts."""
    if why := boots_from(pool, facts):
        return why
    version = facts.get(HOST, "zfs_version")
    if not isinstance(version, Known) or not isinstance(version.value, tuple):
        return Skip("the release of OpenZFS is not known")
    number = tuple(each for each in version.value if isinstance(each, int))
    asked = (*([CHANGED] if number >= SINCE else []), *COUNTS)
    return Run(("zfs", "get", "-Hp", "-o", "name,property,value", ",".join(asked), pool.name), package="zfsutils-linux")


def parse(reply: Output, pool: Subject) -> Iterator[Fact]:
    """Raises ValueError where a property is missing or has another form."""
    *lines, rest = reply.text.split("\n")
    rows = [line.split("\t") for line in lines]
    if rest or any(len(row) != 3 or row[0] != pool.name for row in rows):
        raise ValueError(f"not the properties of {pool.name}, or cut off")
    said = {row[1]: row[2] for row in rows}
    if not set(COUNTS) <= set(said) <= {CHANGED, *COUNTS} or not all(
        each in NONE or re.fullmatch(r"\d{1,20}", each, re.ASCII) for each in said.values()
    ):
        raise ValueError("a property is missing, or not a number")
    found = ", ".join(f"{name}={each}" for name, each in said.items() if each not in NONE)
    none = "never a snapshot of it, and never a limit" if CHANGED in said else "never a limit, under this release"
    text = found or none
    yield Fact(pool, "top_dataset_extended", known(found, text, f"zfs get {','.join(said)} {{subject}}"))
