"""``zpool get feature@...``: features that came to use, which zpool_get does not ask for. (man 7 zpool-features)

A question of its own, because recordings of the first edition hold two answers, and an answer serves one question.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect._pool_tree import zpool
from auditor.facts import Fact, Facts, Subject, known, word
from auditor.host.request import Output, Run

PER = "pool"
SUBJECT = "pool"
FACTS = {
    "feature_device_removal": word(
        "a vdev was removed, its blocks are found through a map", "disabled", "enabled", "active"
    )
}
PROPERTIES = {"feature@device_removal": "feature_device_removal"}
WORDS = PROPERTIES


def request(pool: Subject, facts: Facts) -> Run:
    return zpool("get", "-Hp", "-o", "name,property,value", ",".join(PROPERTIES), pool.name)


def parse(reply: Output, pool: Subject) -> Iterator[Fact]:
    """One feature a line."""
    *lines, rest = reply.text.split("\n")
    if not lines or rest:
        raise ValueError("no feature in it, or cut off")
    for line in lines:
        name, _, pair = line.partition("\t")
        feature, _, value = pair.partition("\t")
        if name != pool.name or feature not in PROPERTIES or value not in ("disabled", "enabled", "active"):
            raise ValueError(f"not a feature of {pool.name}: {line[:80]}")
        fact = PROPERTIES[feature]
        yield Fact(pool, fact, known(value, f"{feature}={value}", f"zpool get {feature} {{subject}}"))
