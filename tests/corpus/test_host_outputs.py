"""Outputs of other people's hosts, each beside what a careful reader takes from it: the collectors must take the same.

What the corpus expects and we do not take has its reason here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from auditor.facts import HOST, Fact, Known, Subject
from auditor.host.request import Files, Output
from auditor.sources import kstat, zfs, zpool
from auditor.sources.source import Source
from auditor.sources.zfs import PROPERTIES
from tests.corpus import CORPUS

KSTAT = "/proc/spl/kstat/zfs"
FOLDERS = ("zfs_get", "zpool_list", "kstat", "arcstat")
NOT_OURS = {
    "zfs_get/fbsdhb-m02.txt": "a table for people; zfs get is asked with -H",
    "zfs_get/fbsdhb-m03.txt": "a table for people, and user properties are not asked for",
    "zfs_get/fbsdhb-m04.txt": "a table for people, and user properties are not asked for",
    "zfs_get/fbsdhb-m07.txt": "a table for people; zfs get is asked with -H",
    "arcstat/idx-01.txt": "arcstat renames and rounds; the kstat below it is read instead",
    "arcstat/idx-02.txt": "arcstat renames and rounds; the kstat below it is read instead",
    "arcstat/idx-05.txt": "arcstat renames and rounds; the kstat below it is read instead",
}
TAKEN = {  # expectation file -> the test below that holds us to it
    "zfs_get/rootzfs-01.txt",
    "zfs_get/rootzfs-02.txt",
    "kstat/nodeexp/zil",
    "kstat/nodeexp/dmu_tx",
    "kstat/nodeexp/arcstats",
    "kstat/nodeexp/pool1/state",
    "kstat/nodeexp/pool2/state",
    "kstat/nodeexp/pool1/objset-1",
}


def text(name: str) -> str:
    return (CORPUS / name).read_text(encoding="utf-8", errors="surrogateescape")


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text(f"{name}.expect.json"))
    return found


def values(facts: Iterable[Fact]) -> dict[str, object]:
    return {fact.name: fact.value.value for fact in facts if isinstance(fact.value, Known)}


def read(source: Source, subject: Subject, path: str, content: str) -> dict[str, object]:
    return values(source.parse(Files({path: content}), subject))


def agree(found: Mapping[str, object], wanted: Mapping[str, object], names: Mapping[str, str]) -> None:
    assert {row: found[fact] for row, fact in names.items()} == {row: wanted[row] for row in names}


def test_every_expectation_is_taken_or_has_a_reason() -> None:
    there = {
        str(path.relative_to(CORPUS)).removesuffix(".expect.json")
        for folder in FOLDERS
        for path in (CORPUS / folder).rglob("*.expect.json")
    }
    assert there == TAKEN | set(NOT_OURS)


@pytest.mark.parametrize("path", sorted((CORPUS / "zfs_get").glob("fbsdhb-*.txt")), ids=lambda path: str(path.name))
def test_a_table_for_people_is_refused(path: Path) -> None:
    for target in ("mypool", "tank", "camino", "zroot", "NAME"):
        with pytest.raises(ValueError, match="is not a property"):
            list(zfs.properties.parse(Output(text(f"zfs_get/{path.name}"), ""), Subject("dataset", target)))


def test_zfs_get_with_sizes_for_people() -> None:
    """Asked without -p and for all properties: cut to what we ask for, and the sizes are not taken."""
    name = "zfs_get/rootzfs-01.txt"
    lines = [line for line in text(name).splitlines() if line.split("\t")[1] in PROPERTIES]
    facts = [*zfs.properties.parse(Output("\n".join(lines) + "\n", ""), Subject("dataset", "tank/myds"))]
    found = values(facts)
    sources = {fact.name: fact.value.evidence[0].text for fact in facts if isinstance(fact.value, Known)}
    for row, wanted in expected(name).items():
        match row, wanted:
            case ("recordsize", _):
                assert row not in found  # 128K is a rounded number
            case ("copies" | "special_small_blocks", [value, source]):
                assert found[row] == int(value)
                assert sources[row] == f"{row}={value} ({source})"
            case (_, [value, source]):
                shown = f", {source}" if source.startswith("inherited") else f" ({source})"
                assert (found[row], sources[row]) == (value, f"{row}={value}{shown}")
    assert found["type"] == expected(name)["type"]
    with pytest.raises(ValueError, match="contradict each other"):
        list(zfs.properties.parse(Output(text(name), ""), Subject("dataset", "tank/myds")))


def test_usage_text_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a property"):
        list(zfs.properties.parse(Output(text("zfs_get/rootzfs-02.txt"), ""), Subject("dataset", "tank")))


@pytest.mark.parametrize("path", sorted((CORPUS / "zpool_list").glob("*.txt")), ids=lambda path: str(path.name))
def test_zpool_list_of_other_columns_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match=r"columns|cut off|not the state"):
        list(zpool.pools.parse(Output(text(f"zpool_list/{path.name}"), ""), HOST))


@pytest.mark.parametrize("name", ["telegraf-01", "telegraf-05", "telegraf-08"])
def test_zpool_list_of_freebsd(name: str) -> None:
    """name, health, size, alloc, free, fragmentation, capacity, dedupratio, brought into our order."""
    rows = [line.split("\t") for line in text(f"zpool_list/{name}.txt").splitlines()]
    ours = "".join("\t".join((r[0], r[2], r[3], r[4], r[6], r[5], r[1], "-")) + "\n" for r in rows)
    facts = [*zpool.pools.parse(Output(ours, ""), HOST)]
    for row in rows:
        found = values(fact for fact in facts if fact.subject == Subject("pool", row[0]))
        wanted = {
            "list_health": row[1],
            "list_size_bytes": row[2],
            "list_allocated_bytes": row[3],
            "list_free_bytes": row[4],
            "list_fragmentation_percent": row[5].rstrip("%"),
            "list_capacity_percent": row[6].rstrip("%"),
        }
        assert {name: str(value) for name, value in found.items()} == {n: v for n, v in wanted.items() if v != "-"}


def test_kstat_zil() -> None:
    name = "kstat/nodeexp/zil"
    found = read(kstat.zil, HOST, kstat.ZIL_PATH, text(name))
    agree(found, expected(name), {row: row for row in ("zil_commit_count", "zil_itx_indirect_bytes")})
    assert "zil_itx_needcopy_bytes" not in found  # 18446744073709537686: went below 0


def test_kstat_dmu_tx() -> None:
    name = "kstat/nodeexp/dmu_tx"
    found = read(kstat.dmu_tx, HOST, kstat.DMU_TX_PATH, text(name))
    agree(found, expected(name), {row: row for row in ("dmu_tx_assigned", "dmu_tx_dirty_delay")})


def test_kstat_arcstats() -> None:
    """arc_meta_used is expected too; it went with 2.2 and is not a fact."""
    name = "kstat/nodeexp/arcstats"
    found = read(kstat.arcstats, HOST, kstat.PATH, text(name))
    agree(found, expected(name), {row: kstat.ROWS[row] for row in ("hits", "misses", "size", "c", "c_max")})


@pytest.mark.parametrize("pool", ["pool1", "pool2"])
def test_kstat_state(pool: str) -> None:
    name = f"kstat/nodeexp/{pool}/state"
    found = read(kstat.state, Subject("pool", pool), f"{KSTAT}/{pool}/state", text(name))
    assert found == {"kstat_state": expected(name)["state"]}


def test_kstat_objset() -> None:
    name = "kstat/nodeexp/pool1/objset-1"
    found = read(kstat.objset, Subject("dataset", "pool1"), f"{KSTAT}/pool1/objset-1", text(name))
    agree(found, expected(name), {row: row for row in ("writes", "nwritten", "reads")})
    assert not any(fact.startswith("zil_") for fact in found)
