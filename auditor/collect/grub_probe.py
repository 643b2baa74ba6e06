"""``grub-probe --target=fs``: whether GRUB's own code reads the pool at /boot. (man 8 grub-probe)

It reads the drives as GRUB does at the start, and prints ``zfs``, or on stderr why it reads no file system there: ``unknown
filesystem`` with a feature that it does not know, or what it stumbled over. It is of the package that is installed; the boot
loader on the drives may be older. What it prints was seen in the lab. (util/grub-probe.c, grub-core/kern/fs.c grub_fs_probe,
grub-core/fs/zfs/zfs.c at grub-2.06 and grub-2.12)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.collect import mounts
from auditor.data.grub import PLACES
from auditor.facts import HOST, Fact, Facts, Known, Subject, known, word, words_of
from auditor.host.request import Output, Run, Skip

PER = "pool"
SUBJECT = "pool"
FACTS = {"grub_error": word("why GRUB reads no file system there; empty where it reads one of ZFS")}
PROBE = ("grub-probe", "--target=fs")
_ERRORS = (
    "unknown filesystem",
    r"compression algorithm \w+ not supported",
    r"check_pool_label missing feature '[\w.:-]+' for read",
)
_ERROR = re.compile(rf"[\w./-]+: error: ?({'|'.join(_ERRORS)})\s*\.")


def place(pool: Subject, facts: Facts) -> str | Skip:
    """Where GRUB looks for its files on this pool."""
    table = facts.get(HOST, "mount_table")
    if not isinstance(table, Known):
        return Skip("what is mounted at /boot is not known")
    mounted = mounts.mounts("".join(f"{line}\n" for line in words_of(table))).at
    there = {at: mounted[at][-1] for at in PLACES if at in mounted}
    if any(each.fstype == "autofs" for each in there.values()):
        return Skip("/boot is mounted when somebody looks at it")
    for at, each in there.items():
        if each.fstype == "zfs" and each.source.partition("/")[0] == pool.name:
            return at
    return Skip("no file system of it is mounted at /boot or /boot/grub", applies=False)


def request(pool: Subject, facts: Facts) -> Run | Skip:
    """Only of the pool that GRUB reads."""
    at = place(pool, facts)
    if isinstance(at, Skip):
        return at
    return Run((*PROBE, at), package="grub-common", also=("grub2-probe",), accept=frozenset({0, 1}))


def parse(reply: Output, pool: Subject) -> Iterator[Fact]:
    """Raises ValueError for any other answer: it could not read the drives, or found another file system."""
    said, wrong = reply.text.strip(), reply.stderr.strip()
    if (said, reply.exit) == ("zfs", 0):
        yield Fact(pool, "grub_error", known("", "zfs", reply.command))
    elif not said and (error := _ERROR.fullmatch(wrong)):
        yield Fact(pool, "grub_error", known(error[1], error[1], reply.command))
    else:
        raise ValueError(f"not whether GRUB reads it: {(wrong or said)[:120]}")
