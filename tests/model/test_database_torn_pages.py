"""Where a page may come apart: blocks that are smaller than it, and log blocks over which it is split (releases.toml)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from auditor.data import releases
from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, Value, known
from auditor.model.database import whole_pages, whole_write
from tests.lab.power import matrix, report, results

DATABASE, DATA, POOL = Subject("database", "mysql 7"), Subject("dataset", "tank/db"), Subject("pool", "tank")
LOGGED: Mapping[str, Value] = {
    "zfs_version": (2, 3, 9),
    "zil_class": "log",
    "recordsize": 16384,
    **releases.TORN_CONDITIONS,
}

HALF: Mapping[str, Value] = {
    "zil_class": "normal",
    "recordsize": 131072,
    "zfs_version": (2, 4, 4),
    "data_blocks": ("131072 3",),
}


def derived(page: int, given: Mapping[str, Value]) -> dict[str, bool | None]:
    """Of a database on one dataset of a pool; a value that is not given is not known."""
    facts = Facts()
    every: dict[str, Value] = {"logbias": "latency", "sync": "standard", "pool": POOL}
    every |= {"zfs_dio_enabled": 1, "direct": "standard", "engine": "mysql", "flush_method": "FSYNC"}
    every |= {**given, "page_bytes": page, "data_datasets": (DATA,)}
    where = dict.fromkeys(("logbias", "sync", "recordsize", "pool", "direct"), DATA) | {"zil_class": POOL}
    where |= dict.fromkeys(("page_bytes", "data_datasets", "data_blocks", "engine", "flush_method"), DATABASE)
    facts.put_all(Fact(where.get(name, HOST), name, known(value, f"{name} {value}")) for name, value in every.items())
    found = {each.name: each.value for each in whole_pages.derive(DATABASE, facts)}
    assert list(found) == list(whole_pages.facts)
    assert all(each.evidence for each in found.values() if isinstance(each, Known))
    return {name: bool(each.value) if isinstance(each, Known) else None for name, each in found.items()}


@pytest.mark.parametrize(
    ("version", "page", "split"),
    [
        ((2, 1, 0), 8192, False),
        ((2, 1, 11), 8192, False),
        ((2, 1, 11), 16384, True),
        ((2, 1, 17), 8192, None),  # no such release was tried, or is the same by its source
        ((2, 1, 99), 4096, None),  # of development: an eighth or a sixteenth
        ((2, 2, 4), 4096, False),
        ((2, 2, 11), 8192, True),
        ((2, 3, 9), 4096, False),
        ((2, 3, 9), 8192, True),
        ((2, 3, 9), 12288, None),
        ((2, 3, 9), 131072, None),
        ((2, 3, 0, "rc3"), 8192, None),
        ((2, 4, 4), 4096, False),
        ((2, 4, 4), 16384, True),
        ((2, 5, 0), 4096, None),
    ],
)
def test_what_the_log_splits_by_line_and_page(version: tuple[int | str, ...], page: int, split: bool | None) -> None:
    assert derived(page, {**LOGGED, "zfs_version": version, "recordsize": page})["log_splits_page"] is split


@pytest.mark.parametrize(
    ("values", "split"),
    [
        ({"logbias": "throughput"}, False),
        ({"sync": "disabled"}, False),
        ({"sync": "disabled", "zfs_version": (2, 5, 0)}, False),
        ({"sync": "always"}, True),
        ({"recordsize": 131072}, True),
        ({"recordsize": 1048576}, None),
        ({"zil_maxblocksize": 36864}, None),
        ({"zil_maxblocksize": 1048576}, None),
        ({"zil_class": "normal"}, False),
        ({"zil_class": "normal", "zfs_immediate_write_sz": 65536}, None),
        ({"zil_class": "special", "zfs_version": (2, 4, 4)}, None),
        # sync=always, 2.4: a page is less than half of a block, and so it is copied
        ({"zil_class": "normal", "recordsize": 131072}, False),
        ({"zil_class": "normal", "recordsize": 131072, "sync": "always"}, False),
        ({**HALF, "sync": "always"}, True),
        ({**HALF, "engine": "postgres"}, False),
        ({**HALF, "engine": "mariadb"}, True),  # which may write its files with O_DSYNC
        ({"zil_class": "normal", "zfs_version": (2, 4, 4), "data_blocks": ("0 7", "32768 4")}, False),
        (
            {"zil_class": "normal", "zfs_version": (2, 4, 4), "data_blocks": ("40960 4",)},
            False,
        ),  # between 32 and 64 KiB
        # a file that is older than the recordsize, of whose block a page is less than half
        ({"zil_class": "normal", "zfs_version": (2, 4, 4), "data_blocks": ("32768 4", "131072 1")}, True),
        ({"zil_class": "normal", "zfs_version": (2, 4, 4)}, None),
        ({"zil_class": "normal", "data_blocks": ("32768 4", "131072 1")}, False),  # 2.3 asks for no half
    ],
)
def test_what_else_decides_for_pages_of_32_kib(values: Mapping[str, Value], split: bool | None) -> None:
    assert derived(32768, {**LOGGED, "recordsize": 32768, **values})["log_splits_page"] is split


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
        ({"logbias": "throughput"}, False),
    ],
)
def test_direct_io_leaves_it_open(values: Mapping[str, Value], split: bool | None) -> None:
    assert derived(16384, {**LOGGED, "flush_method": "O_DIRECT", **values})["log_splits_page"] is split


@pytest.mark.parametrize("lacking", LOGGED)
def test_what_is_not_known_of_the_log_leaves_it_open(lacking: str) -> None:
    assert derived(16384, {name: value for name, value in LOGGED.items() if name != lacking})["log_splits_page"] is None


def test_outside_of_the_table_the_bound_of_the_source_is_the_reason() -> None:
    facts = Facts()
    every = {**LOGGED, "zfs_version": (2, 3, 42), "logbias": "latency", "sync": "standard", "page_bytes": 8192}
    where = dict.fromkeys(("logbias", "sync", "recordsize"), DATA) | {"zil_class": POOL, "page_bytes": DATABASE}
    facts.put_all(Fact(where.get(name, HOST), name, known(value, name)) for name, value in every.items())
    facts.put_all(
        Fact(subject, name, known(value, name))
        for subject, name, value in (
            (DATABASE, "data_datasets", (DATA,)),
            (DATABASE, "engine", "mysql"),
            (DATA, "pool", POOL),
        )
    )
    found = {each.name: each.value for each in whole_pages.derive(DATABASE, facts)}["log_splits_page"]
    assert isinstance(found, Unknown)
    assert "not tried on OpenZFS 2.3.42" in str(found.reasons)
    assert f"{whole_write((2, 3, 42)):,} bytes" in str(found.reasons)


@pytest.mark.parametrize(("version", "most"), [((2, 1, 11), 16152), ((2, 2, 0), 7976), ((2, 4, 4), 7976)])
def test_the_largest_write_that_no_log_block_splits(version: tuple[int, ...], most: int) -> None:
    assert whole_write(version) == most


def test_files_keep_the_blocks_with_which_they_were_written() -> None:
    assert derived(16384, {**LOGGED, "data_blocks": ("16384 40",)})["page_within_block"] is True
    assert derived(16384, {**LOGGED, "data_blocks": ("8192 1", "16384 40")})["page_within_block"] is False
    assert derived(16384, {**LOGGED, "data_blocks": ()})["page_within_block"] is True
    assert derived(16384, LOGGED)["page_within_block"] is None


def test_pages_of_no_known_size() -> None:
    facts = Facts()
    facts.put(Fact(DATABASE, "page_bytes", Unknown(())))
    assert [each.value for each in whole_pages.derive(DATABASE, facts)] == [Unknown(())] * 2


CUTS = report.lines(results.read(results.TORN), matrix.everything(matrix.PAGES_FILE))


@pytest.mark.parametrize("cuts", CUTS, ids=[f"{each.line} {each.setting.name}" for each in CUTS])
def test_what_power_cuts_tore_is_never_called_whole(cuts: report.Line) -> None:
    """Nothing else was lost or damaged: what tore is all that ZFS had promised nobody."""
    assert (cuts.lost, cuts.unimportable, cuts.otherwise) == (0, 0, False)
    options = dict(each.split("=") for each in cuts.setting.data.split() if "=" in each)
    page, record = cuts.setting.page_kib << 10, int(options.pop("recordsize").removesuffix("K")) << 10
    given: dict[str, Value] = {**options, **releases.TORN_CONDITIONS, "recordsize": record}
    given |= {"zil_class": "log" if "log" in cuts.setting.vdevs.split() else "normal", "data_blocks": (f"{record} 1",)}
    given |= {"zfs_version": tuple(map(int, cuts.rows[0]["zfs"].split("."))), "page_bytes": page}
    given |= {"flush_method": "O_DIRECT" if cuts.setting.workload.endswith("direct") else "FSYNC"}
    found = derived(page, given)
    whole = found["page_within_block"] and found["log_splits_page"] is False
    assert not (whole and cuts.damaged)
    torn = [text for row in cuts.rows for text in row["corruption"]]
    assert all(re.match(r"page \d+ is torn at byte \d+: generation \d+, then \d+$", each) for each in torn)
