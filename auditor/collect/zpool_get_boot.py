"""``zpool get all`` of the pool that GRUB reads: which features are in use that it has to know. (man 7 zpool-features)

All properties, since a release refuses the whole question where it does not know one feature by name. Of no other pool: a list
of a hundred lines each tells nothing there.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect._pool_tree import zpool
from auditor.collect.grub_version import pools_of_boot
from auditor.facts import Fact, Facts, Subject, known, words
from auditor.host.request import Output, Run, Skip

PER = "pool"
SUBJECT = "pool"
FACTS = {"active_features": words("features that its contents use: lz4_compress, head_errlog")}
WORDS = {"all": "active_features"}
KEEP = r"\tfeature@"
_STATES = ("disabled", "enabled", "active")


def boots_from(pool: Subject, facts: Facts) -> Skip | None:
    """Why it is not asked what GRUB reads of it; none where it is."""
    pools = pools_of_boot(facts)
    if isinstance(pools, Skip):
        return pools
    if pool.name not in pools:
        return Skip("no file system of it is mounted at /boot or /boot/grub", applies=False)
    return None


def request(pool: Subject, facts: Facts) -> Run | Skip:
    """Its features alone are kept: comments and properties of users are theirs."""
    if why := boots_from(pool, facts):
        return why
    return zpool("get", "-Hp", "-o", "name,property,value", "all", pool.name)._replace(keep=KEEP)


def parse(reply: Output, pool: Subject) -> Iterator[Fact]:
    """Those that are active. Raises ValueError for other lines than those of this pool, and where there is no feature."""
    *lines, rest = reply.text.split("\n")
    rows = [line.split("\t") for line in lines]
    if rest or any(len(row) != 3 or row[0] != pool.name for row in rows):
        raise ValueError(f"not the properties of {pool.name}, or cut off")
    features = {row[1].removeprefix("feature@"): row[2] for row in rows if row[1].startswith("feature@")}
    if not features or not set(features.values()) <= set(_STATES):
        raise ValueError("no feature in it, or one in a state that is not known")
    active = tuple(sorted(name for name, state in features.items() if state == "active"))
    text = ", ".join(active) or "none"
    yield Fact(pool, "active_features", known(active, f"active: {text}", "zpool get all {subject}"))
