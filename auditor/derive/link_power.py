"""How the link of each disk saves power, by the host adapter in its path in sysfs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, Unknown, pairs_of, word

SUBJECT = "disk"
FACTS = {"link_power": word("policy of its SATA link; empty where it has none")}
NEEDS = ("host.link_power", "disk.sysfs_path")
_HOST = re.compile(r"/(host\d+)/")


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    place, policies = facts.get(disk, "sysfs_path"), facts.get(HOST, "link_power")
    if isinstance(place, Unknown) or isinstance(policies, Unknown):
        yield Fact(disk, "link_power", place if isinstance(place, Unknown) else policies)
        return
    mine = _HOST.findall(str(place.value))[-1:]
    named = [
        (value, seen)
        for (name, value), seen in zip(pairs_of(policies), policies.evidence, strict=False)
        if name in mine
    ]
    none = Evidence(f"the link of {disk} has no policy", f"readlink /sys/block/{disk}")
    value, seen = named[0] if named else ("", none)
    yield Fact(disk, "link_power", Known(value, (seen,)))
