"""``grub-probe --version``: of which release the GRUB is that is installed as a package. (man 8 grub-probe)

The boot loader on the drives may be older: nothing writes it there but grub-install, which some upgrades run. To ask that GRUB
what it reads (``grub-probe /boot``) is left to the administrator: it flushes the buffers of the drives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from auditor.collect import mounts
from auditor.data.grub import PLACES
from auditor.facts import HOST, Fact, Facts, Known, Subject, known, words, words_of
from auditor.host.request import Output, Run, Skip

PER = "host"
SUBJECT = "host"
FACTS = {"grub_version": words("release of GRUB: 2, 6 of 2.06")}
_SAID = re.compile(r"[\w./-]*grub2?-probe \(GRUB\) (\d{1,4})\.(\d{1,4})\b[ -~]*\n", re.ASCII)


def pools_of_boot(facts: Facts) -> tuple[str, ...] | Skip:
    """The pools in which GRUB looks for its files: what is mounted at those places last."""
    table = facts.get(HOST, "mount_table")
    if not isinstance(table, Known):
        return Skip("what is mounted at /boot is not known")
    found = _at_boot(words_of(table))
    return Skip("/boot is mounted when somebody looks at it") if found is None else found


@lru_cache(maxsize=8)  # asked for each pool, of a table with all datasets
def _at_boot(table: tuple[str, ...]) -> tuple[str, ...] | None:
    """None where one of the places is mounted on demand."""
    rows = [line for line in table if line.split(" ", 5)[4:5] and line.split(" ", 5)[4] in PLACES]
    last = {each.mount_point: each for each in mounts.mounts("".join(f"{line}\n" for line in rows))}
    if any(each.fstype == "autofs" for each in last.values()):
        return None
    return tuple(dict.fromkeys(each.source.partition("/")[0] for each in last.values() if each.fstype == "zfs"))


def request(host: Subject, facts: Facts) -> Run | Skip:
    """Only with a file system of ZFS at /boot."""
    pools = pools_of_boot(facts)
    if isinstance(pools, Skip):
        return pools
    if not pools:
        return Skip("no file system of ZFS is mounted at /boot", applies=False)
    return Run(("grub-probe", "--version"), package="grub-common", also=("grub2-probe",))


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """Raises ValueError for anything else than its name and release."""
    if not (found := _SAID.fullmatch(reply.text)):
        raise ValueError(f"no release of GRUB: {reply.text[:80]!r}")
    yield Fact(HOST, "grub_version", known((int(found[1]), int(found[2])), reply.text.strip(), reply.command))
