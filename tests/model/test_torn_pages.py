"""Where a page may come apart: blocks that are smaller than it, and log blocks over which it is split."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, Value, known
from auditor.model.database_settings import torn_pages
from tests.lab.power import matrix, report, results

DATABASE, DATA, POOL = Subject("database", "mysql 7"), Subject("dataset", "tank/db"), Subject("pool", "tank")
LOGGED: Mapping[str, Value] = {"zfs_version": (2, 3, 9), "zil_class": "log"}


def derived(page: int, given: Mapping[str, Value]) -> dict[str, bool | None]:
    """Of a database on one dataset of a pool; a value that is not given is not known."""
    facts = Facts()
    every: dict[str, Value] = {"zil_maxblocksize": 131072, "logbias": "latency", "sync": "standard", "pool": POOL}
    every |= {"zfs_dio_enabled": 1, "direct": "standard", "engine": "mysql", "flush_method": "FSYNC"}
    every |= {**given, "page_bytes": page, "data_datasets": (DATA,)}
    where = dict.fromkeys(("logbias", "sync", "recordsize", "pool", "direct"), DATA) | {"zil_class": POOL}
    where |= dict.fromkeys(("page_bytes", "data_datasets", "data_blocks", "engine", "flush_method"), DATABASE)
    facts.put_all(Fact(where.get(name, HOST), name, known(value, f"{name} {value}")) for name, value in every.items())
    found = {each.name: each.value for each in torn_pages.derive(DATABASE, facts)}
    assert list(found) == list(torn_pages.facts)
    assert all(each.evidence for each in found.values() if isinstance(each, Known))
    return {name: bool(each.value) if isinstance(each, Known) else None for name, each in found.items()}


@pytest.mark.parametrize(
    ("version", "page", "split"),
    [
        ((2, 1, 11), 8192, False),
        ((2, 1, 11), 16152, False),  # no page has this size: 16,152 bytes and their header fill what is not wasted
        ((2, 1, 11), 16160, True),
        ((2, 1, 11), 16384, True),
        ((2, 2, 0), 4096, False),
        ((2, 2, 0), 7976, False),
        ((2, 2, 0), 7984, True),
        ((2, 2, 0), 8192, True),
        ((2, 3, 9), 4096, False),
        ((2, 3, 9), 8192, True),
        ((2, 4, 4), 4096, False),
        ((2, 4, 4), 16384, True),
        ((2, 1, 99), 4096, None),  # of development: an eighth or a sixteenth
        ((2, 2, 99), 4096, False),
        ((2, 3, 0, "rc3"), 8192, True),
    ],
)
def test_what_the_log_splits_by_line_and_page(version: tuple[int | str, ...], page: int, split: bool | None) -> None:
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
        ({"zil_class": "normal", "zfs_version": (2, 4, 4), "data_blocks": ("0 7", "32768 4")}, False),
        # a file that is older than the recordsize, of whose block a page is less than half
        ({"zil_class": "normal", "zfs_version": (2, 4, 4), "data_blocks": ("32768 4", "131072 1")}, True),
        ({"zil_class": "normal", "zfs_version": (2, 4, 4)}, None),
        ({"zil_class": "normal", "data_blocks": ("32768 4", "131072 1")}, False),  # 2.3 asks for no half
    ],
)
def test_what_else_decides_for_pages_of_32_kib(values: Mapping[str, Value], split: bool | None) -> None:
    every: dict[str, Value] = {**LOGGED, "zfs_immediate_write_sz": 32768, "recordsize": 32768, **values}
    assert derived(32768, every)["log_splits_page"] is split


@pytest.mark.parametrize(
    ("values", "split"),
    [
        ({}, None),
        ({"flush_method": "default"}, None),
        ({"flush_method": "FSYNC"}, True),
        ({"flush_method": "FSYNC", "direct": "always"}, None),
        ({"engine": "postgres"}, True),
        ({"direct": "disabled"}, True),
        ({"zfs_dio_enabled": 0}, True),
        ({"zfs_version": (2, 2, 9)}, True),
        ({"zfs_version": (2, 2, 99)}, None),
        ({"zil_class": "normal", "zfs_immediate_write_sz": 8192}, False),
    ],
)
def test_direct_io_leaves_it_open(values: Mapping[str, Value], split: bool | None) -> None:
    more: dict[str, Value] = {"zfs_immediate_write_sz": 32768, "recordsize": 16384, "flush_method": "O_DIRECT"}
    assert derived(16384, {**LOGGED, **more, **values})["log_splits_page"] is split


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


CUTS = report.lines(results.read(results.TORN), matrix.everything(matrix.PAGES_FILE))


@pytest.mark.parametrize("cuts", CUTS, ids=[f"{each.line} {each.setting.name}" for each in CUTS])
def test_what_power_cuts_tore_is_never_called_whole(cuts: report.Line) -> None:
    """Nothing else was lost or damaged: what tore is all that ZFS had promised nobody."""
    assert (cuts.lost, cuts.unimportable, cuts.otherwise) == (0, 0, False)
    options = dict(each.split("=") for each in cuts.setting.data.split() if "=" in each)
    page, record = cuts.setting.page_kib << 10, int(options.pop("recordsize").removesuffix("K")) << 10
    given: dict[str, Value] = {**options, "zfs_immediate_write_sz": 32768, "recordsize": record}
    given |= {"zil_class": "log" if "log" in cuts.setting.vdevs.split() else "normal", "data_blocks": (f"{record} 1",)}
    given |= {"zfs_version": tuple(map(int, cuts.rows[0]["zfs"].split("."))), "page_bytes": page}
    given |= {"flush_method": "O_DIRECT" if cuts.setting.workload.endswith("direct") else "FSYNC"}
    found = derived(page, given)
    whole = found["page_within_block"] and found["log_splits_page"] is False
    assert not (whole and cuts.damaged)
    torn = [text for row in cuts.rows for text in row["corruption"]]
    assert all(re.match(r"page \d+ is torn at byte \d+: generation \d+, then \d+$", each) for each in torn)
