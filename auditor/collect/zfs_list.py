"""``zfs list``: which datasets exist, to notice one of which ``zfs get`` says nothing. (man 8 zfs-list)

Only the name is asked for, and to be sorted by: then zfs reads no properties at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import zfs_get, zfs_properties
from auditor.facts import Fact, Facts, Subject, flag, known
from auditor.host.request import Output, Request, Run

PER = "target"
SUBJECT = "dataset"
FACTS = {"listed": flag("zfs list names it")}


def request(target: Subject, facts: Facts) -> Request:
    """target: the dataset at the top of the subtree."""
    return Run(
        (
            "zfs",
            "list",
            "-H",
            *zfs_get.below(target, facts),
            "-t",
            "filesystem,volume",
            "-o",
            "name",
            "-s",
            "name",
            target.name,
        ),
        package="zfsutils-linux",
    )


def parse(reply: Output, target: Subject) -> Iterator[Fact]:
    """One fact a dataset; what is cut off in mid-line is left out."""
    listed = known(True, "listed", "zfs list {subject}")
    names = reply.text.split("\n")[:-1]
    if not names:
        raise ValueError("no dataset in it")
    for name in names:
        if name != target.name and not name.startswith(target.name + "/"):
            raise ValueError(f"{name!r} is not {target.name} or below it")
        if len(name) > zfs_properties.LONGEST_NAME:
            raise ValueError(f"a name of {len(name)} characters; OpenZFS allows {zfs_properties.LONGEST_NAME}")
        yield Fact(Subject("dataset", name), "listed", listed)
