"""The properties of a whole subtree as they were at one moment (``--consistent``).

Asked only when the host fact ``consistent`` is true; what it answers reads like ``zfs get``. See :mod:`.lzc`.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import zfs_get, zfs_properties
from auditor.facts import HOST, Fact, Facts, Known, Subject
from auditor.host import libraries
from auditor.host.request import Output, Request, Run, Skip

PER = "target"
SUBJECT = "dataset"
FACTS = {name: spec for name, spec in zfs_properties.FACTS.items() if name not in libraries.LZC_CANNOT_SAY}


def request(target: Subject, facts: Facts) -> Request:
    """The kernel must know every property, so its release decides what to ask for."""
    match facts.get(HOST, "consistent"):
        case Known(True):
            names = [name for name in zfs_properties.known_to(facts, "zfs_version") if name in FACTS]
            pool = target.name.partition("/")[0]
            return Run((libraries.LZC_NAME, pool, target.name, *names), package="python3-pyzfs")
        case _:
            return Skip("asked only with --consistent", "--consistent", applies=False)


def parse(reply: Output, target: Subject) -> Iterator[Fact]:
    """The same lines as those of ``zfs get``; a property that a program cannot tell is none of its own."""
    return (fact for fact in zfs_get.of_subtree(reply, target) if fact.name in FACTS)
