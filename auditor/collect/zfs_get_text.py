"""``zfs get -r`` of the properties whose values may hold lines of any kind: a mount point, where a key comes from, how it is
shared.

Asked apart from all others, so that no line that somebody has put into one of them stands next to a property that decides
(:mod:`.zfs_properties`). The last property is one that nobody chooses the text of: where its records end is seen by that.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import zfs_get, zfs_properties
from auditor.facts import Fact, Facts, Subject
from auditor.host.request import Output, Run, Skip

PER = "target"
AFTER = ("zfs_channel_program", "zfs_get", "zfs_list")
SUBJECT = "dataset"
FACTS = {name: spec for name, spec in zfs_properties.PROPERTIES.items() if name in zfs_properties.FREE_TEXT}
PART = True
ADDS = False  # a line that somebody has made up may name a dataset that is not there


def request(target: Subject, facts: Facts) -> Run | Skip:
    """target: as of ``zfs get`` of the others. With --consistent the channel program tells them."""
    if zfs_get.consistent(facts):
        return Skip("asked of the channel program, with --consistent", applies=False)
    names = [name for name in zfs_properties.known_to(facts, "zfs_userland_version") if name in FACTS]
    return zfs_get.question(target, [*names, zfs_properties.BEHIND], facts)._replace(free_text=True)


def parse(reply: Output, target: Subject) -> Iterator[Fact]:
    """These properties of the target and of what is below it."""
    return (fact for fact in zfs_get.of_subtree(reply, target) if fact.name in FACTS)
