"""``zfs get -r``: the properties of a dataset and of all below it, in one call. (man 8 zfs-get)

Text, not ``-j``: the JSON of 10,000 datasets is many times larger, and 2.1 and 2.2 have none.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import zfs_properties
from auditor.facts import HOST, Fact, Facts, Known, Subject
from auditor.host import lzc
from auditor.host.request import Output, Request, Run

PER = "target"
AFTER = ("zfs_channel_program",)  # which reads all datasets in one transaction group
SUBJECT = "dataset"
FACTS = zfs_properties.FACTS
PART = True  # of thousands of datasets some are known when the time is over: see gather/by_name.py
COLUMNS = "name,property,value,source"


def request(target: Subject, facts: Facts) -> Request:
    """target: the dataset at the top of the subtree; a pool's name is its root dataset. One that was not named stands alone.

    With --consistent only what the channel program cannot say: nothing else may come from another moment.
    """
    names = zfs_properties.known_to(facts, "zfs_userland_version")
    if isinstance(wanted := facts.get(HOST, "consistent"), Known) and wanted.value is True:
        names = tuple(name for name in names if name in lzc.CANNOT_SAY)
    deep = below(target, facts)
    return Run(
        (
            "zfs",
            "get",
            "-Hp",
            *deep,
            "-t",
            "filesystem,volume",
            "-o",
            COLUMNS,
            ",".join(names),
            target.name,
        ),
        package="zfsutils-linux",
        part=True,
        halved=bool(deep),
    )


def below(target: Subject, facts: Facts) -> tuple[str, ...]:
    """The option that asks for all below a target: of what a database brought along nobody asked for that."""
    return () if isinstance(facts.get(target, "brought"), Known) else ("-r",)


def parse(reply: Output, target: Subject) -> Iterator[Fact]:
    """All facts of the target and of what is below it."""
    top, below = target.name, target.name + "/"
    return zfs_properties.parse(reply.text, lambda name: name == top or name.startswith(below))
