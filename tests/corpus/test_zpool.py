"""Outputs of other people's pools against what a careful reader sees in them."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from auditor.facts import Fact, Known, Subject
from auditor.host.request import Output
from auditor.sources import zpool, zpool_status
from auditor.sources.pool_tree import PoolStatus, Row, count
from tests.corpus import CORPUS

FOLDERS = ("zpool_status", "zpool_status_issue_derived", "zpool_status_json", "zpool_status_json_issue_derived")
EXPECTED = sorted(path for folder in FOLDERS for path in (CORPUS / folder).glob("*.expect.json"))
ZDB = sorted(path for folder in ("zdb", "zdb_issue_derived") for path in (CORPUS / folder).glob("*.expect.json"))

# where we read otherwise, and why
DIFFERENT = {
    "zpool_status/idx-16.txt": "its last row is cut off: refused, not read in part",
}
SCANS = {
    "scrub_done": ("scrub", "finished"),
    "scrub_running": ("scrub", "in progress"),
    "scrub_canceled": ("scrub", "canceled"),
    "resilver_done": ("resilver", "finished"),
    "resilver_running": ("resilver", "in progress"),
}
COUNTS = {"read": "read", "write": "write", "cksum": "checksum", "slow": "slow"}


def document(expected: Path) -> tuple[str, dict[str, Any]]:
    """The output and what is to be read from it."""
    return expected.with_suffix("").with_suffix("").read_text(), json.loads(expected.read_text())


@pytest.mark.parametrize("path", EXPECTED, ids=lambda path: f"{path.parent.name}/{path.name.split('.')[0]}")
def test_status(path: Path) -> None:
    text, expected = document(path)
    if expected["file"] in DIFFERENT:
        with pytest.raises(ValueError, match="cut off"):
            zpool_status.pools(text)
        return
    found = zpool_status.pools(text)
    assert [pool.name or None for pool in found] == [pool["pool"] for pool in expected["pools"]]
    for pool, want in zip(found, expected["pools"], strict=True):
        for key, value in want.items():
            assert CHECKS[key](pool, value), (key, value)


def test_every_output_is_read_or_refused() -> None:
    for folder in (*FOLDERS, "zpool_list", "zpool_get"):
        for path in (CORPUS / folder).glob("*"):
            if not path.name.endswith(".expect.json"):
                with contextlib.suppress(ValueError):
                    zpool_status.pools(path.read_text())


def rows(pool: PoolStatus) -> list[Row]:
    """All rows, parents first."""
    todo = [*([pool.root] if pool.root else []), *(row for name, row in pool.tops if name != "normal")]
    todo += [*pool.cache, *pool.spares]
    return [each for row in todo for each in (row, *descendants(row))]


def descendants(row: Row) -> list[Row]:
    return [each for child in row.children for each in (child, *descendants(child))]


def row_is(row: Row, want: dict[str, Any]) -> bool:
    assert (row.name, row.state) == (want["name"], want["state"])
    kind = {"leaf": ("disk", "file"), "draid1": ("draid",)}.get(want["type"], (want["type"],))
    assert row.type in kind, (row.name, row.type)
    assert row.note == want.get("note", ""), row.note
    for name, value in want.get("errors", {}).items():
        assert row.counts.get(COUNTS[name], -1) == count(value), (row.name, name)
    return tree_is(row.children, want.get("children", []))


def tree_is(found: tuple[Row, ...], want: list[dict[str, Any]]) -> bool:
    assert [row.name for row in found] == [row["name"] for row in want]
    return all(row_is(row, each) for row, each in zip(found, want, strict=True))


def sections_are(pool: PoolStatus, want: dict[str, Any]) -> bool:
    found = {"cache": pool.cache, "spares": pool.spares}
    for key, name in (("logs", "log"), ("special", "special"), ("dedup", "dedup")):
        found[key] = tuple(row for each, row in pool.tops if each == name)
    assert {key for key, value in found.items() if value} == set(want)
    return all(tree_is(found[key], each if isinstance(each, list) else each["children"]) for key, each in want.items())


def scan_is(pool: PoolStatus, want: str) -> bool:
    if want in ("none_requested", "no_scan_line"):
        return pool.scans == () and ("scan" in pool.headers) == (want == "none_requested")
    assert pool.scans is not None
    return (pool.scans[0].function, pool.scans[0].state) == SCANS[want]


def errors_are(pool: PoolStatus, want: str | list[str]) -> bool:
    if isinstance(want, list):
        return pool.complete and listed(pool, want)
    match want.split(":")[0]:
        case "none" | "No known errors":
            return pool.complete and pool.data_errors == 0
        case "absent" | "truncated":
            return not pool.complete and pool.data_errors == -1
        case "count":
            return pool.complete and pool.data_errors == int(want[6:])
        case "permanent, list EMPTY":
            return pool.complete and pool.data_errors == -1
        case "unavailable":
            return pool.complete and pool.data_errors == -1 and want[13:] in pool.errors
    return False


def mirrored(name: str) -> Any:
    def check(pool: PoolStatus, want: bool | None) -> bool:
        tops = [row for each, row in pool.tops if each == name]
        return (all(row.type == "mirror" for row in tops) if tops else None) == want

    return check


def header_has(name: str) -> Any:
    return lambda pool, want: all(word in pool.headers[name] for word in re.split(", | ", want))


def facts(pool: PoolStatus, text: str) -> list[Fact]:
    return list(zpool_status.status.parse(Output(text, "zpool status"), Subject("pool", pool.name)))


def suspended(pool: PoolStatus, want: object) -> bool:
    found = {fact.name: fact.value for fact in zpool_status._of_pool(pool, Subject("pool", pool.name), "")}
    value = found["suspended"]
    return isinstance(value, Known) and value.value is True


def row_named(pool: PoolStatus, name: str) -> Row:
    return next(row for row in rows(pool) if row.name == name)


def listed(pool: PoolStatus, want: list[str]) -> bool:
    """The list stands at the end of the text, where it may be cut off: not concluded from, but not taken for none."""
    assert pool.data_errors == -1
    assert pool.errors.startswith("Permanent")
    return bool(want)


def top_is(pool: PoolStatus, want: list[dict[str, Any]]) -> bool:
    found = [
        {"name": row.name, "children": [each.name for each in row.children]} | ({"note": row.note} if row.note else {})
        for _, row in pool.tops
    ]
    return found == want


CHECKS: dict[str, Any] = {
    "pool": lambda pool, want: (pool.name or None) == want,
    "state": lambda pool, want: (pool.state or None) == want,
    "scan": scan_is,
    "scan_pct": lambda pool, want: want in pool.scans[0].text,
    "scan_repaired": lambda pool, want: pool.scans[0].repaired == 69730304 and want == "66.5M",
    "scan_errors": lambda pool, want: pool.scans[0].errors == want,
    "scan_kind": lambda pool, want: want.rpartition(" ")[2] in pool.scans[0].text,
    "errors": errors_are,
    "root": lambda pool, want: row_is(pool.root, want),
    "sections": sections_are,
    "log_mirrored": mirrored("log"),
    "special_mirrored": mirrored("special"),
    "dedup_mirrored": mirrored("dedup"),
    "remove": header_has("remove"),
    "expand": header_has("expand"),
    "extra_header": lambda pool, want: want in pool.headers,
    "non_native_block_size": lambda pool, want: any(row.ashifts for row in rows(pool)) == want,
    "block_size": lambda pool, want: (
        {row.name: [1 << each for each in row.ashifts] for row in rows(pool) if row.ashifts} == want
    ),
    "status_is": lambda pool, want: "status" in pool.headers,
    "dedup_ddt_entries": lambda pool, want: f"DDT entries {want}" in pool.headers["dedup"],
    "ddt_on_disk_each": lambda pool, want: f"size {want} on disk" in pool.headers["dedup"],
    "ddt_in_core_each": lambda pool, want: f"{want} in core" in pool.headers["dedup"],
    "io_suspended_hint": suspended,
    "actually": suspended,
    "leaves": lambda pool, want: [leaf.name for _, top in pool.tops for leaf, _ in top.leaves()] == want,
    "draid": lambda pool, want: pool.tops[0][1].name.startswith(want.replace(" ", ":").replace(":6c", ":6c")),
    "draid_vdev": lambda pool, want: (pool.tops[0][1].name, pool.tops[0][1].type) == (want, "draid"),
    "missing_keys": lambda pool, want: pool.tops[0][1].state == "",
    "spare_in_use_but_online": lambda pool, want: (
        pool.state == "ONLINE" and any(row.state == "INUSE" for row in pool.spares)
    ),
    "top": top_is,
    "leaf_note": lambda pool, want: all(row_named(pool, name).note == note for name, note in want.items()),
    "file_vdevs": lambda pool, want: (
        all(leaf.type == "file" for _, top in pool.tops for leaf, _ in top.leaves()) == want
    ),
    "root_errors": lambda pool, want: "/".join(str(each) for each in list(pool.root.counts.values())[:3]) == want,
    "error_files": listed,
    "log_state": lambda pool, want: [row.state for name, row in pool.tops if name == "log"] == [want],
    "spare_used_twice": lambda pool, want: (
        sum(leaf.name == want for _, top in pool.tops for leaf, _ in top.leaves()) == 2
    ),
    "slow_column": lambda pool, want: any("slow" in row.counts for row in rows(pool)) == want,
    "root_state": lambda pool, want: pool.root.state == want,
    "all_leaves_online": lambda pool, want: (
        all(leaf.state == "ONLINE" for _, top in pool.tops for leaf, _ in top.leaves()) == want
    ),
    "leaf_cksum": lambda pool, want: [leaf.counts["checksum"] for leaf, _ in pool.tops[0][1].leaves()] == [want],
}


@pytest.mark.parametrize("path", ZDB, ids=lambda path: path.name.split(".")[0])
def test_zdb(path: Path) -> None:
    text, expected = document(path)
    wanted = expected.get("pools") or expected["zdb"]
    for config, want in zip(zpool.configs(text), wanted, strict=True):
        assert config.values["name"] == want.get("name", want.get("pool"))
        tops = config.lists["vdev_tree"][0].children
        for top, each in zip(tops, want["top"], strict=True):
            assert top.values["type"] == each["type"]
            assert (top.number("ashift"), top.number("is_log")) == (each["ashift"], each["is_log"])
            assert top.values.get("alloc_bias") == each.get("alloc_bias")
            assert "path" not in each or top.values["path"] == each["path"]
            leaves = [leaf.values["path"] for leaf in zpool._leaves(top)]
            assert "leaves" not in each or leaves == each["leaves"]
        pool = Subject("pool", config.values["name"])
        given = list(zpool.config.parse(Output(text, "zdb -C"), pool))
        ashifts = [fact.value.value for fact in given if fact.name == "ashift" and isinstance(fact.value, Known)]
        assert ashifts == [each["ashift"] for each in want["top"] if each["type"] != "hole"]


def test_zpool_get_for_people_is_refused() -> None:
    for path in (CORPUS / "zpool_get").iterdir():
        with pytest.raises(ValueError, match=r"no source|not a property"):
            list(zpool.properties.parse(Output(path.read_text(), "zpool get"), Subject("pool", "tank")))
