"""The power-cut lab without guests: the matrix, the arithmetic of the report, and the bar over the checked-in results."""

import json
import socket
import struct
import time
from pathlib import Path
from typing import Any, cast

import pytest

from auditor import data
from auditor.rulebook import load
from tests.lab import rows
from tests.lab.machine import LINES
from tests.lab.power import matrix, report
from tests.lab.power.cut import _counts, cut
from tests.lab.power.disks import GONE, MODELS, Server
from tests.lab.power.guest import one_partition
from tests.lab.power.matrix import Setting
from tests.lab.power.results import lost, read, write
from tests.lab.vm import VM

pytestmark = pytest.mark.lab


def test_acknowledgements_are_counted_from_complete_lines() -> None:
    data = bytearray(b"GO\n0 0\n1 0\n0 1\n1 1\n1 2\n0 1")
    assert _counts(data, 3) == {0: 2, 1: 3}


class Guest:
    """Two programs that commit; each stop of the drives takes a while, in which the second commits again."""

    proc = None

    def __init__(self) -> None:
        self.here, self.there = socket.socketpair()
        self.here.sendall(b"GO\n0 0\n1 0\n")
        self.asked: list[str] = []

    def connect(self, _name: str) -> socket.socket:
        return self.there

    def stats(self) -> list[dict[str, int]]:
        return []

    def snapshot(self, name: str, traps: list[str]) -> list[float]:
        self.asked.append(" ".join((name, *traps)))
        moment = time.monotonic()
        self.here.sendall(b"1 %d\n" % len(self.asked))
        time.sleep(0.1)
        return [moment, moment, time.monotonic()]


def test_what_is_reported_after_its_drives_had_stopped_does_not_count() -> None:
    guest = Guest()
    done = cut(cast(VM, guest), cast(Server, guest), ["a", "a", "b"], [(0.01, ["0-1:1:3"]), (0.01, [])])
    assert guest.asked == ["cut0 0-1:1:3", GONE]
    assert [each.commits for each in done] == [[1, 2], [1, 3]]
    guest.here.close()


def test_the_partition_table() -> None:
    table = one_partition(512 << 20)
    assert len(table) == 512
    assert table[510:] == b"\x55\xaa"
    assert struct.unpack("<II", table[454:462]) == (2048, (1 << 20) - 2048)


def test_lost_counts_what_is_in_no_range() -> None:
    assert lost(10, [(0, 4), (7, 30)]) == 2
    assert lost(10, []) == 10
    assert lost(0, [(0, 9)]) == 0
    assert lost(5, [(0, 9)]) == 0


def test_results_are_added_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    first, second, other = row(0, (HIGH,)), row(1, (CRITICAL,)), row(2, (HIGH,), line="2.4")
    write([first], path)
    write([other, second, row(3, zaudit=None)], path)
    assert read(path) == [{**first, "zaudit": None}, other, second, row(3, zaudit=None)]
    assert len(path.read_text().splitlines()) == 10  # with one line for each change of the release


def test_a_row_without_a_column_of_others_has_none_there(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    rows.write([{"cut": 0}, {"cut": 1, "killed": True}], path)
    assert rows.read(path) == [{"cut": 0, "killed": None}, {"cut": 1, "killed": True}]
    assert rows.read(tmp_path / "missing.json") == []


def row(loses: int = 0, findings: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    zaudit = {"version": "1", "standing": "lost", "findings": list(findings)}
    base = {"line": "2.3", "setting": "s", "acknowledged": 100, "lost": loses, "import": "plain", "corruption": []}
    return {**base, "zaudit": zaudit, **more}


CRITICAL, HIGH = "sync-disabled fail critical commits", "no-power-loss-protection unknown high commits"
LATE, AWAY = "sync-always fail medium latency", "no-redundancy fail critical availability"


@pytest.mark.parametrize(
    ("rows", "more", "outcome"),
    [
        ([row(0, (CRITICAL,)), row(5, (CRITICAL,))], {}, "hit"),
        ([row(0, (CRITICAL,)), row(0, (CRITICAL,))], {}, "false alarm"),
        ([row(0, (LATE, AWAY))], {}, "hit"),
        ([row(1, (LATE, AWAY))], {}, "miss"),
        ([row(0, (), corruption=["torn"])], {}, "miss"),
        ([row(0, (), **{"import": "-F"})], {}, "miss"),
        ([row(7, (HIGH,))], {}, "undecided"),
        ([row(0, (HIGH,))], {}, "undecided"),
        ([row(7, (HIGH,))], {"lose": (0,)}, "hit"),
        ([row(7, ())], {"lose": (0,)}, "miss"),
        ([row(7, ())], {"application": True}, "application"),
        ([row(7, (), corruption=["torn"])], {"application": True}, "miss"),
        ([row(7, (CRITICAL,)), row(7, (HIGH,))], {}, "undecided"),
        ([row(7, (), zaudit=None)], {}, "not asked"),
        ([row(7, (), zaudit=None), row(0, (CRITICAL,))], {}, "hit"),
    ],
)
def test_the_outcome_of_a_setting(rows: list[dict[str, Any]], more: dict[str, Any], outcome: str) -> None:
    setting = Setting("s", "plp", "fsync", **more)
    table = report.lines(rows, [setting])
    assert [each.outcome for each in table] == [outcome]
    assert report.broken(table) == ([f"2.3 s: {outcome}"] if outcome in ("miss", "false alarm") else [])
    assert outcome in report.show(table)
    assert report.missing(rows, [setting]) == [f"2.3 s: {len(rows)} of 5 cuts"]


def test_the_matrix() -> None:
    settings = matrix.everything()
    by_line = {line: [each for each in settings if line in each.lines] for line in LINES}
    assert len(by_line["2.3"]) >= 24
    assert len(by_line["2.1"]) >= 8
    assert len(by_line["2.2"]) >= 8
    assert len(by_line["2.4"]) >= 8
    pages = matrix.everything(matrix.PAGES_FILE)
    assert {each.workload for each in (*settings, *pages)} == set(matrix.WORKLOADS)
    assert all(each.within is not None for each in pages)
    flushing = {"half", "late", "first"}  # which tests/powercut tries without a guest
    assert {model for each in settings for model in each.drives} == set(MODELS) - flushing
    assert sum(bool(each.disputed) for each in settings) >= 12


def test_settings_share_a_guest_only_with_the_same_parameters() -> None:
    settings = matrix.everything()
    groups = matrix.guests(settings)
    assert sorted(each.name for group in groups for each in group) == sorted(each.name for each in settings)
    for group in groups:
        assert all(each.parameters == group[0].parameters and each.needs == group[0].needs for each in group)
        assert sum(len(each.drives) for each in group) <= matrix.DISKS_PER_GUEST
        if group[0].parameters:
            assert len({set(each.drives) == {"plp"} for each in group}) == 1, "a host parameter is judged by all drives"


@pytest.mark.parametrize(
    "text",
    [
        "vdevs='plp'\nworkload='dance'",
        "vdevs='mirror'\nworkload='fsync'",
        "vdevs='plp'\nworkload='fsync'\nlose=[1]",
        "vdevs='plp'\nworkload='fsync'\nlines=['1.0']",
        "vdevs='plp'\nworkload='fsync'\nwhatever=1",
    ],
)
def test_a_matrix_that_cannot_be_right(text: str) -> None:
    with pytest.raises(matrix.MatrixError):
        matrix.load(f"[[setting]]\nname='s'\n{text}\n")


def test_the_bar_holds_for_the_results() -> None:
    """No loss that zaudit called fine, no critical finding where nothing can be lost, no lying drive called fine."""
    rows = read()
    assert rows
    table = report.lines(rows, matrix.everything())
    assert report.broken(table) == []
    assert [each.setting.name for each in table if "lying" in each.setting.drives and each.level == "fine"] == []
    assert sum(each.acknowledged for each in table) > 1000


@pytest.mark.parametrize(("line", "settings"), [("2.1", 8), ("2.2", 9), ("2.3", 24), ("2.4", 8)])
def test_the_results_are_complete(line: str, settings: int) -> None:
    rows = [each for each in read() if each["line"] == line]
    assert report.missing(rows, matrix.everything(), [line]) == []
    assert len({each["setting"] for each in rows}) >= settings


def test_the_results_are_of_this_matrix_and_these_rules() -> None:
    settings = {each.name: each for each in matrix.everything()}
    rules = {rule.id for rule in load()} | data.retired().keys()  # what a release said of a guest stays as it was said
    for each in read():
        setting = settings[each["setting"]]
        assert each["line"] in setting.lines
        assert each["drives"].split() == list(setting.drives)
        assert 0 <= each["lost"] <= each["acknowledged"]
        assert json.dumps(each["seed"]).isdigit()
        assert {text.split()[0] for text in (each["zaudit"] or {"findings": []})["findings"]} <= rules
