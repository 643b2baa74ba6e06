"""Two releases' worth of bugs that made zvols drop flushes: whether the loaded module has them.

Flushes that come as a flag on a write (REQ_PREFLUSH) were missed by bio_is_flush() of 2.2.7, 2.3.0 and 2.3.1 (openzfs/zfs
#17131; read in include/os/linux/kernel/linux/blkdev_compat.h of these tags and their neighbours). With
zvol_use_blk_mq=1, flushes went down the read path from 2.2.0 on, until 2.2.9 and 2.3.5 (#17761, #17765; read in
module/os/linux/zfs/zvol_os.c of the tags). A distribution may have mended its build without changing these numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, flag, unknown

SUBJECT = "host"
FACTS = {
    "zvol_drops_flushes": flag("this module takes the flushes that a zvol is sent for ordinary writes"),
    "zvol_blk_mq_drops_flushes": flag("the same, where zvol_use_blk_mq=1"),
}
NEEDS = ("host.zfs_version", "host.zfs_version_text")

Release = tuple[int, ...]
# fact -> (from, first release without the bug) of each affected line, and where the fix can be found
BUGS: dict[str, tuple[tuple[tuple[Release, Release], ...], str]] = {
    "zvol_drops_flushes": ((((2, 2, 7), (2, 2, 8)), ((2, 3, 0), (2, 3, 2))), "#17131"),
    "zvol_blk_mq_drops_flushes": ((((2, 2, 0), (2, 2, 9)), ((2, 3, 0), (2, 3, 5))), "#17765"),
}
_UPSTREAM = re.compile(r"\d+\.\d+\.\d+(-1)?")  # META's Release is 1


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Both facts."""
    for name, (lines, fix) in BUGS.items():
        yield Fact(host, name, _affected(lines, fix, facts))


def _affected(lines: tuple[tuple[Release, Release], ...], fix: str, facts: Facts) -> Judged:
    release, text = facts.get(HOST, "zfs_version"), facts.get(HOST, "zfs_version_text")
    if isinstance(release, Unknown):
        return release
    if isinstance(text, Unknown):
        return text
    version = tuple(part for part in release.value if isinstance(part, int)) if isinstance(release.value, tuple) else ()
    affected = any(first <= version < fixed for first, fixed in lines)
    if _UPSTREAM.fullmatch(str(text.value)) or not (affected or "-rc" in str(text.value)):
        return Known(affected, text.evidence)
    return unknown(
        f"OpenZFS {text.value}: whether this build has the fix of openzfs/zfs {fix} is in its changelog only"
    )
