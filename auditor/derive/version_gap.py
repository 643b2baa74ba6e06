"""How far apart the zfs commands and the loaded module are.

A patch release changes nothing between them, and what a minor release adds to the interface is backwards compatible: older
commands speak to a newer module as before, newer commands may ask an older module for what it does not have. A .99 is a
build of the development branch, for which nothing is promised. (openzfs/zfs RELEASES.md) A candidate for a release, and what
was built from git after it, count as that release here.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data.releases import DEVELOPMENT
from auditor.derive.combine import evidence, values
from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, unknown, word

SUBJECT = "host"
FACTS = {
    "zfs_version_gap": word("module beside commands", "none", "patch", "module newer", "module older", "unrelated"),
}


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Unknown where one of them is."""
    found = values(facts, HOST, "zfs_version", "zfs_userland_version")
    if isinstance(found, Unknown):
        yield Fact(HOST, "zfs_version_gap", found)
        return
    module, commands = map(_numbers, found)
    if not module or not commands:
        yield Fact(HOST, "zfs_version_gap", unknown("a release without numbers cannot be compared"))
        return
    gap = "none" if found[0].value == found[1].value else _gap(module, commands)
    yield Fact(HOST, "zfs_version_gap", Known(gap, evidence(*found)))


def _numbers(found: Known) -> tuple[int, ...]:
    return tuple(each for each in found.value if isinstance(each, int)) if isinstance(found.value, tuple) else ()


def _gap(module: tuple[int, ...], commands: tuple[int, ...]) -> str:
    if module[:1] != commands[:1] or DEVELOPMENT in (module[-1], commands[-1]):
        return "unrelated"
    if module[:2] == commands[:2]:
        return "patch"
    return "module newer" if module > commands else "module older"
