"""``zpool get``: the properties of a pool. (man 7 zpoolprops, man 7 zpool-features)

-p prints exact numbers; "-" is "no value", and the only value that most properties of an unavailable pool have.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect._pool_tree import GUID, POOL_STATES, before, count, speaks, zpool
from auditor.facts import Fact, Facts, Subject, Value, known, number, word
from auditor.host.request import Output, Request

PER = "pool"
AFTER = ("zdb_config",)
SUBJECT = "pool"

_FEATURE = ("disabled", "enabled", "active")
_PROPERTIES = {  # property -> fact, where they are not called the same
    "size": "size_bytes",
    "capacity": "capacity_percent",
    "allocated": "allocated_bytes",
    "free": "free_bytes",
    "fragmentation": "fragmentation_percent",
    "ashift": "ashift_property",
    "checkpoint": "checkpoint_bytes",
    "freeing": "freeing_bytes",
    "bcloneused": "bcloneused_bytes",
    "feature@block_cloning": "feature_block_cloning",
}
WORDS = _PROPERTIES
_PLAIN = ("health", "guid", "failmode", "multihost", "autotrim", "autoreplace", "readonly", "cachefile")
_SINCE_2_2 = ("bcloneused", "feature@block_cloning")  # an unknown property makes the whole command fail
# of those of all releases from 2.1 on (module/zcommon/zpool_prop.c); -o came with 0.7, for the columns that are the usual ones
_OLD = {"multihost": (0, 7), "autotrim": (0, 8), "checkpoint": (0, 8)}

CACHED = ("default", "none", "other")

FACTS = {
    "size_bytes": number("size of the pool"),
    "capacity_percent": number("how much of it is allocated"),
    "allocated_bytes": number("space that is allocated"),
    "free_bytes": number("space that is not"),
    "fragmentation_percent": number("fragmentation of the free space"),
    "health": word("state of the pool", *POOL_STATES),
    "guid": GUID,
    "failmode": word("what happens when no vdev can be reached", "wait", "continue", "panic"),
    "multihost": word("guard against import on two hosts (MMP)", "on", "off"),
    "autotrim": word("TRIM of freed space", "on", "off"),
    "autoreplace": word("a new disk in an old slot is used at once", "on", "off"),
    "readonly": word("imported read-only", "on", "off"),
    "cachefile": word("where it is written down for the next import: the usual file, nowhere, or elsewhere", *CACHED),
    "ashift_property": number("ashift for vdevs that are added; 0 asks the disk"),
    "checkpoint_bytes": number("space held by the checkpoint; 0 without one"),
    "freeing_bytes": number("space that is still being freed"),
    "bcloneused_bytes": number("space in cloned blocks"),
    "feature_block_cloning": word("the feature block_cloning", *_FEATURE),
}


def request(pool: Subject, facts: Facts) -> Request:
    """Only properties that this release knows."""
    names = [name for name in (*_PROPERTIES, *_PLAIN) if name not in _SINCE_2_2 or speaks(facts, 2, 2)]
    names = [name for name in names if not before(facts, *_OLD.get(name, (0, 0)))]
    columns = () if before(facts, 0, 7) else ("-o", "name,property,value,source")
    return zpool("get", "-Hp", *columns, ",".join(names), pool.name)


def parse(reply: Output, pool: Subject) -> Iterator[Fact]:
    """One property a line, name TAB property TAB value TAB source; properties that we do not use are passed over."""
    if not reply.text:
        raise ValueError("no property in it")
    measured = False
    for line in reply.text.split("\n")[:-1]:
        name, found, rest = line.partition("\t")
        if not found or name != pool.name:
            raise ValueError(f"not a property of {pool.name}: {line[:80]}")
        key, _, rest = rest.partition("\t")
        value, separator, source = rest.rpartition("\t")
        if not separator or not source:
            raise ValueError(f"no source: {line[:80]}")
        measured = measured or (key == "size" and count(value) >= 0)
        fact = _PROPERTIES.get(key, key if key in _PLAIN else "")
        if fact and (read := _value(fact, value, measured)) is not None:
            yield Fact(pool, fact, known(read, f"{key}={value}", f"zpool get -p {key} {{subject}}"))


def _value(fact: str, text: str, measured: bool) -> Value | None:
    spec = FACTS[fact]
    if (
        fact == "cachefile"
    ):  # zpool_get_prop(): "-" where spa_prop_get_config() names none, which it does of the usual one
        return {"-": "default", "none": "none"}.get(text, "other") if measured else None
    if spec.type is int:
        if text == "-" and fact == "checkpoint_bytes" and measured:
            return 0  # zpool_get_prop(): "-" is 0 here, in a pool that can be asked
        value = count(text.removesuffix("%"))
        return value if value >= 0 else None
    if spec.values:
        return text if text in spec.values else None
    return text if text.isdigit() else None
