"""``zfs version``: the release of the zfs command (first line) and of the loaded module (second line)."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect.zfs_version import versions
from auditor.facts import Fact, Facts, Subject, word, words
from auditor.host.request import Output, Request, Run

PER = "host"
SUBJECT = "host"
FACTS = {
    "zfs_userland_version": words("version of the zfs command: three numbers, and a mark where it is no release"),
    "zfs_userland_version_text": word("the same with the distribution's suffix"),
}


def request(host: Subject, facts: Facts) -> Request:
    """Ends with 1 after the first line when the module is not loaded."""
    return Run(("zfs", "version"), package="zfsutils-linux", accept=frozenset({0, 1}))


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """The first line only: the module speaks for itself in /sys."""
    first, newline, _ = reply.text.partition("\n")
    if not newline or not first.startswith("zfs-"):
        raise ValueError("it does not begin with the version of zfs")
    yield from versions("zfs_userland_version", first.removeprefix("zfs-"), "zfs version")
