"""``zpool list -Hp``: which pools are imported, and size, fill and health of each in one cheap line.

Prints nothing when no pool is imported. (man 8 zpool-list, man 7 zpoolprops)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import zfs_properties
from auditor.collect._pool_tree import before
from auditor.facts import HOST, Fact, Facts, Known, Subject, known, links, number, word
from auditor.host.request import Output, Request, Run

PER = "host"
SUBJECT = "pool"
STATES = ("ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "REMOVED", "UNAVAIL", "SUSPENDED")
FACTS = {
    "host.imported_pools": links("pool", "the imported pools"),
    "list_health": word("its state", *STATES),
    "list_size_bytes": number("raw size"),
    "list_allocated_bytes": number("raw space taken"),
    "list_free_bytes": number("raw space free"),
    "list_capacity_percent": number("how full it is"),
    "list_fragmentation_percent": number("how fragmented its free space is"),
    "list_guid": word("its GUID in decimal"),
}
COLUMNS = {  # property -> fact, in the order in which they are asked for, after the name
    "size": "list_size_bytes",
    "allocated": "list_allocated_bytes",
    "free": "list_free_bytes",
    "capacity": "list_capacity_percent",
    "fragmentation": "list_fragmentation_percent",
    "health": "list_health",
    "guid": "list_guid",
}
WORDS = COLUMNS


def request(host: Subject, facts: Facts) -> Request:
    """All pools of the host; before 0.7 there is no -p, and sizes are rounded (1.81T), which are not taken for numbers."""
    exact = "-H" if before(facts, 0, 7) else "-Hp"
    return Run(("zpool", "list", exact, "-o", ",".join(("name", *COLUMNS))), package="zfsutils-linux")


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """One line a pool. "-": the pool does not know (it is unavailable)."""
    text = "" if reply.text == "no pools available\n" else reply.text
    if text and not text.endswith("\n"):
        raise ValueError("the last line is cut off")
    columns = reply.columns or ("name", *COLUMNS)
    rows = [line.split("\t") for line in text.split("\n")[:-1]]
    if columns[0] != "name" or not all(len(row) == len(columns) and row[0] for row in rows):
        raise ValueError(f"a line has not {len(columns)} columns, the name first")
    if (longest := max((len(row[0]) for row in rows), default=0)) > zfs_properties.LONGEST_NAME:
        raise ValueError(f"a name of {longest} characters; OpenZFS allows {zfs_properties.LONGEST_NAME}")
    pools = tuple(Subject("pool", name) for name, *_ in rows)
    names = ", ".join(pool.name for pool in pools) or "no pool"
    yield Fact(HOST, "imported_pools", known(pools, names, "zpool list -o name"))
    for pool, (_, *values) in zip(pools, rows, strict=True):
        for column, value in zip(columns[1:], values, strict=True):
            name = COLUMNS.get(column, "")
            if name and (found := _known(column, name, value)) is not None:
                yield Fact(pool, name, found)


def _known(column: str, name: str, value: str) -> Known | None:
    text, command = f"{column} {value}", f"zpool list -p -o name,{column} {{subject}}"
    number_of = value.removesuffix("%")
    match name:
        case "list_health":
            if value not in STATES:
                raise ValueError(f"{value!r} is not the state of a pool")
            return known(value, text, command)
        case "list_guid":
            return known(value, text, command) if value.isascii() and value.isdigit() else None
        case _ if number_of.isascii() and number_of.isdigit() and int(number_of) < 1 << 63:
            return known(int(number_of), text, command)
        case _:
            return None
