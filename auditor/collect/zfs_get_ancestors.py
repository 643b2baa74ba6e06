"""``zfs get``: the properties of the datasets above a target, from which their new children inherit. (man 8 zfs-get)"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import zfs_properties
from auditor.collect.zfs_get import COLUMNS
from auditor.facts import Fact, Facts, Subject
from auditor.host.request import Output, Request, Run, Skip

PER = "target"
AFTER = ("zfs_get", "zfs_get_text")
SUBJECT = "dataset"
FACTS = zfs_properties.FACTS
PART = True


def request(target: Subject, facts: Facts) -> Request:
    """Nothing is above the root dataset of a pool."""
    above = zfs_properties.above(target.name)
    if not above:
        return Skip(f"{target.name} is the root dataset of its pool", applies=False)
    names = ",".join(zfs_properties.known_to(facts, "zfs_userland_version"))
    return Run(("zfs", "get", "-Hp", "-o", COLUMNS, names, *above), package="zfsutils-linux", free_text=True)


def parse(reply: Output, target: Subject) -> Iterator[Fact]:
    """All facts of the ancestors."""
    return zfs_properties.parse(reply.text, frozenset(zfs_properties.above(target.name)).__contains__)
