"""Witnesses: kstats of real hosts, counters that fall or are absent, transaction groups in each state, disks of each kernel."""

from __future__ import annotations

import json
import re

import pytest

from auditor.facts import Fact, Facts, Subject, known
from auditor.verify import trial
from auditor.verify.result import Device, Txg
from auditor.verify.trial import ZIL_PATH, Reading
from tests import shared
from tests.verify.worlds import LEG_A, MIRRORED, Disk, facts

POOL = Subject("pool", "tank")
STAT = "123 4 5 6 1000 8 9000 700 0 10 11 12 13 14 15 400 90"


def recorded(case: str) -> dict[str, str]:
    """All files of a recorded host."""
    past = shared.host(case)
    return {path: text for files in past.files.values() for path, text in files.text.items()}


def reading(text: dict[str, str]) -> Reading:
    return Reading(1e9, 100.0, text, {})


def objsets(case: str) -> dict[str, str]:
    return {path: text for path, text in recorded(case).items() if "/objset-" in path and "/tank/" in path}


def grown(text: str, row: str, by: int) -> str:
    """The kstat with a row that grew."""
    changed, count = re.subn(rf"^({row} +\d +)(\d+)$", lambda m: f"{m[1]}{int(m[2]) + by}", text, flags=re.MULTILINE)
    assert count == 1
    return changed


NEW = objsets("2.3-healthy-mirrored-slog")
OLD = {path: text for path, text in recorded("2.1-healthy-mirrored-slog").items() if path == ZIL_PATH}
NAMES = {trial.objsets(reading({path: text})).popitem()[0]: path for path, text in NEW.items()}
HERE, OTHER = sorted(NAMES)[:2]
COMMITS = "zil_commit_count"


def test_the_recordings_have_what_is_tested() -> None:
    assert len(NAMES) >= 2
    assert OLD
    assert not any("zil_commit_count" in text for text in objsets("2.1-healthy-mirrored-slog").values())


def test_a_release_that_counts_datasets_apart() -> None:
    later = {
        **NEW,
        NAMES[HERE]: grown(NEW[NAMES[HERE]], COMMITS, 99),
        NAMES[OTHER]: grown(NEW[NAMES[OTHER]], COMMITS, 7),
    }
    zil, others = trial.zil(reading(NEW), reading(later), HERE)
    assert zil is not None
    assert (zil.commits, zil.slog_blocks, zil.normal_blocks, zil.errors) == (99, 0, 0, 0)
    assert others == {OTHER: 7}
    assert trial.commits(reading(NEW), reading(later)) == 106


def test_a_release_that_counts_all_pools_together() -> None:
    later = {ZIL_PATH: grown(grown(OLD[ZIL_PATH], COMMITS, 99), "zil_itx_metaslab_slog_count", 98)}
    zil, others = trial.zil(reading(OLD), reading(later), "tank/db")
    assert zil is not None
    assert (zil.commits, zil.slog_blocks) == (99, 98)
    assert zil.errors is None, "2.1 does not count it; that is not 0"
    assert others is None
    assert trial.commits(reading(OLD), reading(later)) == 99


def test_a_counter_that_falls_is_no_witness() -> None:
    later = {**NEW, NAMES[HERE]: grown(NEW[NAMES[HERE]], COMMITS, 5)}
    assert trial.zil(reading(later), reading(NEW), HERE) == (None, None)
    assert trial.commits(reading({ZIL_PATH: grown(OLD[ZIL_PATH], COMMITS, 9)}), reading(OLD)) is None


def test_a_dataset_that_was_mounted_anew_counts_from_nothing() -> None:
    many = {**NEW, NAMES[OTHER]: grown(NEW[NAMES[OTHER]], COMMITS, 10**6)}
    fewer = {**NEW, NAMES[OTHER]: grown(NEW[NAMES[OTHER]], COMMITS, 55)}
    since = trial.objsets(reading(fewer))[OTHER][COMMITS]
    _, others = trial.zil(reading(many), reading(fewer), HERE)
    assert others == {OTHER: since}
    assert (trial.commits(reading(many), reading(fewer)) or 0) >= since
    appeared = {path: text for path, text in NEW.items() if path != NAMES[OTHER]}
    _, others = trial.zil(reading(appeared), reading(fewer), HERE)
    assert others == {OTHER: since}


def test_what_is_absent_is_not_nothing() -> None:
    blind = reading({})
    assert trial.zil(blind, blind, HERE) == (None, None)
    assert trial.commits(blind, blind) is None
    assert trial.commits(blind, reading(NEW)) is None
    without = {path: text for path, text in NEW.items() if path != NAMES[HERE]}
    assert trial.zil(reading(without), reading(NEW), HERE) == (None, None)
    assert trial.zil(reading(NEW), reading(without), HERE) == (None, None)
    both = {**without, ZIL_PATH: OLD[ZIL_PATH]}  # the other datasets are counted apart: all together would be a lie
    assert trial.zil(reading(both), reading(both), HERE) == (None, None)


@pytest.mark.parametrize("cut", [0, 1, 40, 200, -1])
def test_a_kstat_that_is_cut_off_is_an_error(cut: int) -> None:
    short = {**NEW, NAMES[HERE]: NEW[NAMES[HERE]][:cut]}
    with pytest.raises(ValueError, match="objset"):
        trial.zil(reading(NEW), reading(short), HERE)


# -- devices ------------------------------------------------------------------------------------------------------


def devices(before: str, after: str) -> list[Device]:
    seen = facts(MIRRORED, "log", "standard", {})
    texts = [{f"/sys/block/{disk.name}/stat": text for disk in MIRRORED} for text in (before, after)]
    return list(trial.devices(reading(texts[0]), reading(texts[1]), POOL, seen))


def fields(count: int, by: int = 0) -> str:
    return " ".join(str(int(each) + by) for each in STAT.split()[:count]) + "\n"


def test_seventeen_fields() -> None:
    after = "0 0 0 0 1100 0 9016 710 0 0 0 0 0 0 0 450 95\n"
    found = devices(fields(17), after)
    assert [each.disk for each in found] == [disk.name for disk in MIRRORED]
    leg = found[2]
    assert (leg.writes, leg.bytes, leg.write_ms, leg.flushes, leg.flush_ms) == (100, 16 * 512, 10, 50, 5)
    assert (leg.leaves, leg.top, leg.allocation_class, leg.zil, leg.volatile) == (
        ("nvme2n1",), "mirror-1", "log", True, True,
    )  # fmt: skip
    assert not found[0].zil


@pytest.mark.parametrize("count", [11, 15])
def test_kernels_that_do_not_count_flushes(count: int) -> None:
    found = devices(fields(count), fields(count, 5))
    assert {(each.writes, each.flushes, each.flush_ms) for each in found} == {(5, None, None)}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", fields(17)),
        (fields(17), ""),
        (fields(10), fields(10)),
        ("not a number\n", fields(17)),
        *((fields(17), f"{odd} {fields(17, 5)}") for odd in ("-1", "x", "9" * 5000, "\u00b2")),
        (fields(17, 5), fields(17)),
    ],
)
def test_a_disk_that_cannot_be_counted_is_left_out(before: str, after: str) -> None:
    assert devices(before, after) == []


def test_a_disk_of_two_leaves_is_counted_once() -> None:
    shared = MIRRORED[0]._replace(leaves=(("p1", "mirror-0", "normal"), ("p2", "mirror-1", "log")))
    seen = facts((shared,), "log", "standard", {})
    texts = [{"/sys/block/nvme0n1/stat": fields(17, by)} for by in (0, 3)]
    (found,) = trial.devices(reading(texts[0]), reading(texts[1]), POOL, seen)
    assert (found.leaves, found.zil, found.writes) == (("p1", "p2"), True, 3)


def stat(writes: int, flushes: int) -> str:
    return f"0 0 0 0 {writes} 0 {8 * writes} 10 0 0 0 0 0 0 0 {flushes} 5\n"


def counted(seen: Facts, before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[int, int | None]]:
    """Disk -> writes and flushes. before, after: device -> its counters."""
    texts = [{f"/sys/block/{name}/stat": text for name, text in each.items()} for each in (before, after)]
    found = trial.devices(reading(texts[0]), reading(texts[1]), POOL, seen)
    return {each.disk: (each.writes, each.flushes) for each in found}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ({"nvme2c0n1": (3000, 1500), "nvme2c1n1": (3000, 1500)}, (6000, 3000)),
        ({"nvme2c0n1": (6000, 0), "nvme2c1n1": (0, 0)}, (6000, 0)),
        ({}, (3000, 0)),  # the head alone: no flush is counted there
    ],
)
def test_an_nvme_multipath_disk_is_counted_at_its_paths(
    paths: dict[str, tuple[int, int]], expected: tuple[int, int]
) -> None:
    seen = facts((LEG_A,), "log", "standard", {})
    path = "/devices/virtual/nvme-subsystem/nvme-subsys2/nvme2n1"
    seen.put(Fact(Subject("disk", "nvme2n1"), "sysfs_path", known(path, "")))
    others = {"nvme2c0n2": (7, 7), "nvme21c0n1": (7, 7)}
    before = dict.fromkeys(("nvme2n1", *paths, *others), stat(5, 5))
    after = {"nvme2n1": stat(3005, 5), **{name: stat(5 + w, 5 + f) for name, (w, f) in (paths | others).items()}}
    assert counted(seen, before, after) == {"nvme2n1": expected}
    if paths:
        assert counted(seen, {**before, "nvme2c9n1": stat(0, 0)}, after) == {"nvme2n1": (3000, 0)}, (
            "a path came or went"
        )
    assert trial.elsewhere(POOL, seen) == ["/sys/block/nvme2c*n1/stat"]


def test_flushes_of_dm_multipath_are_counted_at_the_map() -> None:
    on = (("mpatha", "mpatha", "log"),)
    seen = facts([Disk(name, "mpatha", "log", leaves=on) for name in ("sdb", "sdc")], "log", "standard", {})
    leaf = Subject("leaf", "mpatha", "tank")
    seen.put(Fact(leaf, "layers", known(("partition", "multipath"), "")))
    seen.put(Fact(leaf, "nodes", known(("dm-4", "dm-3"), "")))
    before = dict.fromkeys(("sdb", "sdc", "dm-3", "dm-4"), stat(5, 5))
    after = {"sdb": stat(3005, 5), "sdc": stat(5, 5), "dm-3": stat(6005, 3005), "dm-4": stat(6005, 5)}
    assert counted(seen, before, after) == {"sdb": (6000, 3000), "sdc": (3000, 3000)}
    assert trial.elsewhere(POOL, seen) == ["/sys/block/dm-3/stat"]
    unread = [{name: text for name, text in each.items() if name != "dm-3"} for each in (before, after)]
    assert counted(seen, *unread) == {"sdb": (3000, 0), "sdc": (0, 0)}


def test_other_disks_are_counted_where_they_are() -> None:
    assert trial.elsewhere(POOL, facts(MIRRORED, "log", "standard", {})) == []


def test_a_name_with_a_slash() -> None:
    assert "/sys/block/cciss!c0d0/stat" in trial.patterns("tank", ["cciss/c0d0"])


def heat(**changes: int) -> str:
    return json.dumps({**dict.fromkeys(trial.HEAT, 3), **changes})


def test_heat() -> None:
    key = f"{trial.SMART}nvme2n1"
    before, after = reading({key: heat()}), reading({key: heat(thm_temp1_trans_count=5, warning_temp_time=4)})
    assert trial.heat(before, before) == {"nvme2n1": 0}
    assert trial.heat(before, after) == {"nvme2n1": 3}
    assert trial.heat(reading({}), after) == {}
    for wrong in ("", "{", "[]", "{}", "Permission denied", heat(warning_temp_time=1)):
        assert trial.heat(before, reading({key: wrong})) == {}


# -- transaction groups -------------------------------------------------------------------------------------------

HEAD = (
    "12 0 0x01 4 448 1 2\ntxg      birth            state ndirty nread nwritten reads writes otime qtime wtime stime\n"
)
BOOT = 1_000.0


def row(number: int, birth_s: float, state: str, open_s: float = 5.0, sync_s: float = 0.0) -> str:
    times = " ".join(str(int(each * 1e9)) for each in (open_s, 0.0, 0.0, sync_s))
    return f"{number} {int(birth_s * 1e9)} {state} 4096 0 8192 1 2 {times}\n"


@pytest.mark.parametrize("cell", [2, 3, 4, 6, 8, 9, 11])
@pytest.mark.parametrize("odd", ["-1", "x", "9" * 400, "9" * 5000, "\u00b2", "1e9"])
def test_a_transaction_group_with_a_cell_that_is_no_number_is_left_out(cell: int, odd: str) -> None:
    cells = row(1, 9, "C").split()
    cells[cell - 1 if cell < 3 else cell] = odd
    texts = [f"{HEAD}{' '.join(cells)}\n{row(2, 9, 'C')}"]
    assert [txg.number for txg in trial.txgs(texts, BOOT, BOOT, BOOT + 30)] == [2]


def test_transaction_groups_in_each_state() -> None:
    text = (
        HEAD
        + row(1, 0, "C", 5, 1)
        + row(2, 5, "C", 5, 1)
        + row(3, 10, "S", 5, 0)
        + row(4, 15, "Q", 2)
        + row(5, 17, "O", 0)
    )
    found = trial.txgs([text], BOOT, BOOT + 8, BOOT + 16)
    assert [each.number for each in found] == [2, 3, 4], "1 was synced before, 5 was born after"
    assert found[0] == Txg(2, -3.0, 5.0, 1.0, 4096, 8192)
    assert found[1].at_s == 2.0


def test_the_newest_text_knows_more() -> None:
    texts = [HEAD + row(7, 10, "O", 0), HEAD + row(7, 10, "C", 5, 1)]
    assert trial.txgs(texts, BOOT, BOOT + 9, BOOT + 30) == (Txg(7, 1.0, 5.0, 1.0, 4096, 8192),)


def test_what_is_no_row_is_left_out() -> None:
    assert trial.txgs(["", HEAD, "txg x\n", row(1, 9, "C")[:-9]], BOOT, BOOT, BOOT + 30) == ()


@pytest.mark.parametrize("line", ["2.1", "2.2", "2.3", "2.4"])
def test_those_of_a_real_host(line: str) -> None:
    texts = [text for path, text in recorded(f"{line}-healthy-mirrored-slog").items() if path.endswith("tank/txgs")]
    assert texts
    found = trial.txgs(texts, 0.0, 0.0, 1e12)
    assert len(found) == sum(text.count("\n") - 1 for text in texts) > 1
    assert all(each.open_s >= 0 and each.written >= 0 for each in found)
