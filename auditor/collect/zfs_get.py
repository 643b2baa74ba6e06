"""``zfs get -r``: the properties of a dataset and of all below it, in one call; those whose values may hold lines of any kind
are asked for apart (:mod:`.zfs_get_text`). (man 8 zfs-get)

Text, not ``-j``: the JSON of 10,000 datasets is many times larger, and 2.1 and 2.2 have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from auditor.collect import zfs_properties
from auditor.facts import HOST, Fact, Facts, Known, Subject
from auditor.host import libraries
from auditor.host.request import Output, Request, Run

PER = "target"
AFTER = ("zfs_channel_program",)  # which reads all datasets in one transaction group
SUBJECT = "dataset"
FACTS = {name: spec for name, spec in zfs_properties.FACTS.items() if name not in zfs_properties.FREE_TEXT}
PART = True  # of thousands of datasets some are known when the time is over: see gather/by_name.py
COLUMNS = "name,property,value,source"


def request(target: Subject, facts: Facts) -> Request:
    """target: the dataset at the top of the subtree; a pool's name is its root dataset. One that was not named stands alone.

    With --consistent only what the channel program cannot say: nothing else may come from another moment.
    """
    names = [name for name in zfs_properties.known_to(facts, "zfs_userland_version") if name in FACTS]
    if consistent(facts):
        names = [name for name in names if name in libraries.LZC_CANNOT_SAY]
    return question(target, names, facts)._replace(part=True)


def consistent(facts: Facts) -> bool:
    """Whether what the channel program can say is left to it (--consistent)."""
    wanted = facts.get(HOST, "consistent")
    return isinstance(wanted, Known) and wanted.value is True


def question(target: Subject, names: Iterable[str], facts: Facts) -> Run:
    """These properties of the target, and of what is below it."""
    deep = below(target, facts)
    words = ("zfs", "get", "-Hp", *deep, "-t", "filesystem,volume", "-o", COLUMNS, ",".join(names), target.name)
    return Run(words, package="zfsutils-linux", halved=bool(deep))


def below(target: Subject, facts: Facts) -> tuple[str, ...]:
    """The option that asks for all below a target: of what a database brought along nobody asked for that."""
    return () if isinstance(facts.get(target, "brought"), Known) else ("-r",)


def parse(reply: Output, target: Subject) -> Iterator[Fact]:
    """All facts of the target and of what is below it."""
    return (fact for fact in of_subtree(reply, target) if fact.name in FACTS)


def of_subtree(reply: Output, target: Subject) -> Iterator[Fact]:
    """The same, of any properties."""
    top, below = target.name, target.name + "/"
    return zfs_properties.parse(reply.text, lambda name: name == top or name.startswith(below))
