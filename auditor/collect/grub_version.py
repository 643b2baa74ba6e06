"""``grub-probe --version``: of which release the GRUB is that is installed as a package. (man 8 grub-probe)

The boot loader on the drives may be older: nothing writes it there but grub-install, which some upgrades run. To ask that GRUB
what it reads (``grub-probe /boot``) is left to the administrator: it flushes the buffers of the drives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.data.grub import pools_of
from auditor.facts import HOST, Fact, Facts, Known, Subject, known, words, words_of
from auditor.host.request import Output, Run, Skip

PER = "host"
SUBJECT = "host"
FACTS = {"grub_version": words("release of GRUB: 2, 6 of 2.06; 2, 11 of 2.12~rc1")}
# a candidate of a release comes before it: 2.12~rc1 lacks what 2.12 has
_SAID = re.compile(
    r"[\w./-]*grub2?-probe \(GRUB\) (?:\d+:)?(\d{1,4})\.(\d{1,4})(?!\d)([~.-]?(?:rc|beta|git)|~)?[ -~]*\n", re.ASCII
)


def pools_of_boot(facts: Facts) -> tuple[str, ...] | Skip:
    """The pools in which GRUB looks for its files."""
    table = facts.get(HOST, "mount_table")
    if not isinstance(table, Known):
        return Skip("what is mounted at /boot is not known")
    found = pools_of(words_of(table))
    return Skip("/boot is mounted when somebody looks at it") if found is None else found


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
    release = (int(found[1]), int(found[2]) - bool(found[3]))
    yield Fact(HOST, "grub_version", known(release, reply.text.strip(), reply.command))
