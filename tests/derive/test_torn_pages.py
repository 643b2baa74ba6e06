"""Where a page may come apart: blocks that are smaller than it, and log blocks over which it is split."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from auditor.derive import torn_pages
from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, Value, known

DATABASE, DATA, POOL = Subject("database", "mysql 7"), Subject("dataset", "tank/db"), Subject("pool", "tank")
LOGGED: Mapping[str, Value] = {"zfs_version": (2, 3, 9), "zil_class": "log"}


def derived(page: int, given: Mapping[str, Value]) -> dict[str, bool | None]:
    """Of a database on one dataset of a pool; a value that is not given is not known."""
    facts = Facts()
    every: dict[str, Value] = {
        "zil_maxblocksize": 131072,
        "logbias": "latency",
        "sync": "standard",
        "pool": POOL,
        **given,
    }
    every |= {"page_bytes": page, "data_datasets": (DATA,)}
    where = dict.fromkeys(("logbias", "sync", "recordsize", "pool"), DATA) | {"zil_class": POOL}
    where |= dict.fromkeys(("page_bytes", "data_datasets", "data_blocks"), DATABASE)
    facts.put_all(Fact(where.get(name, HOST), name, known(value, f"{name} {value}")) for name, value in every.items())
    found = {each.name: each.value for each in torn_pages.derive(DATABASE, facts)}
    assert list(found) == list(torn_pages.FACTS)
    assert all(each.evidence for each in found.values() if isinstance(each, Known))
    return {name: bool(each.value) if isinstance(each, Known) else None for name, each in found.items()}


@pytest.mark.parametrize(
    ("version", "page", "split"),
    [
        ((2, 1, 11), 8192, False),
        ((2, 1, 11), 16384, True),
        ((2, 2, 0), 4096, False),
        ((2, 2, 0), 8192, True),
        ((2, 3, 9), 4096, False),
        ((2, 3, 9), 8192, True),
        ((2, 4, 4), 4096, False),
        ((2, 4, 4), 16384, True),
    ],
)
def test_what_the_log_splits_by_line_and_page(version: tuple[int, ...], page: int, split: bool) -> None:
    given: Mapping[str, Value] = {
        "zfs_version": version,
        "zil_class": "log",
        "recordsize": page,
        "zfs_immediate_write_sz": 32768,
    }
    assert derived(page, given)["log_splits_page"] is split


@pytest.mark.parametrize(
    ("values", "split"),
    [
        ({"logbias": "throughput"}, False),
        ({"sync": "disabled"}, False),
        ({"sync": "always"}, True),
        ({"zil_maxblocksize": 36864}, True),
        ({"zil_maxblocksize": 1048576}, True),
        ({"zil_class": "normal"}, False),
        ({"zil_class": "normal", "zfs_immediate_write_sz": 65536}, True),
        ({"zil_class": "normal", "recordsize": 131072}, False),
        ({"zil_class": "normal", "recordsize": 131072, "zfs_version": (2, 4, 4)}, True),
        ({"zil_class": "special", "zfs_version": (2, 4, 4)}, True),
    ],
)
def test_what_else_decides_for_pages_of_32_kib(values: Mapping[str, Value], split: bool) -> None:
    every: dict[str, Value] = {**LOGGED, "zfs_immediate_write_sz": 32768, "recordsize": 32768, **values}
    assert derived(32768, every)["log_splits_page"] is split


@pytest.mark.parametrize("lacking", ["zfs_version", "zil_class", "zfs_immediate_write_sz"])
def test_what_is_not_known_of_the_log_leaves_it_open(lacking: str) -> None:
    every: dict[str, Value] = {**LOGGED, "zfs_immediate_write_sz": 32768, "recordsize": 16384}
    del every[lacking]
    assert derived(16384, every)["log_splits_page"] is None


def test_files_keep_the_blocks_with_which_they_were_written() -> None:
    assert derived(16384, {**LOGGED, "data_blocks": ("16384 40",)})["page_within_block"] is True
    assert derived(16384, {**LOGGED, "data_blocks": ("8192 1", "16384 40")})["page_within_block"] is False
    assert derived(16384, {**LOGGED, "data_blocks": ()})["page_within_block"] is True
    assert derived(16384, LOGGED)["page_within_block"] is None


def test_pages_of_no_known_size() -> None:
    facts = Facts()
    facts.put(Fact(DATABASE, "page_bytes", Unknown(())))
    assert [each.value for each in torn_pages.derive(DATABASE, facts)] == [Unknown(())] * 2
