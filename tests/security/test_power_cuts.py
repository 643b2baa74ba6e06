"""Records of power cuts: only root's count, and whatever stands in one is bounded, harmless or refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auditor.facts import HOST, Known
from auditor.host.live import read_files
from auditor.host.request import WITNESS, Files, Read
from auditor.sources import machine
from auditor.sources.machine import DriveCuts
from auditor.text import VALUES
from auditor.verify import ledger
from tests.folded import for_each

root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file away")
ROW: dict[str, Any] = {
    "layer": "drive",
    "verdict": "HELD",
    "cuts": 28,
    "lost": 0,
    "model": "MODEL",
    "firmware": "F1",
    "serial": "SERIAL01",
}
PATH = "/var/lib/zaudit/cuts/0.json"
READABLE = {WITNESS: "nodev\tsysfs\n"}


def record(**other: Any) -> str:
    return json.dumps({"schema": machine.CUTS_SCHEMA, "evidence": [ROW | other]})


@pytest.fixture(autouse=True)
def umask() -> Any:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "cuts"
    found.mkdir(mode=0o700)
    (found / "1.json").write_text("{}")
    return found


def read(folder: Path) -> Files:
    return read_files((f"{folder}/*.json",), trusted=True)


def test_records_of_this_user_are_read(folder: Path) -> None:
    assert read(folder) == Files({f"{folder}/1.json": "{}"})
    (folder / "1.json").unlink()
    assert read(folder).absent(f"{folder}/*.json")


def _writable_folder(folder: Path) -> None:
    folder.chmod(0o777)


def _writable_file(folder: Path) -> None:
    (folder / "1.json").chmod(0o666)


def _writable_above(folder: Path) -> None:
    folder.parent.chmod(0o777)


@for_each("open_", [_writable_folder, _writable_file, _writable_above])
def test_what_others_may_write_does_not_count(
    open_: Callable[[Path], None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("host") / "cuts"
    folder.mkdir()
    (folder / "1.json").write_text("{}")
    open_(folder)
    found = read(folder)
    assert not found.text
    assert not found.complete(f"{folder}/*.json")
    assert all(each.startswith("another user could have put it there") for each in found.errors.values()), found.errors


def test_a_folder_that_others_could_have_taken_away_is_not_absent(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    found = read(tmp_path / "cuts")
    assert not found.absent(f"{tmp_path}/cuts/*.json")
    assert not found.complete(f"{tmp_path}/cuts/*.json")


@root
def test_a_record_or_a_folder_of_somebody_else_does_not_count(folder: Path) -> None:
    (folder / "2.json").write_text("{}")
    os.chown(folder / "2.json", 65534, 65534)
    found = read(folder)
    assert list(found.text) == [f"{folder}/1.json"]
    assert "belongs to uid 65534" in found.errors[f"{folder}/2.json"]
    os.chown(folder, 65534, 65534)
    assert not read(folder).text


@root
def test_a_link_into_the_folder_of_somebody_else_leads_to_no_record(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "2.json").write_text("{}")
    os.chown(other, 65534, 65534)
    (folder / "2.json").symlink_to(other / "2.json")
    found = read(folder)
    assert list(found.text) == [f"{folder}/1.json"]
    assert f"{folder}/2.json" in found.errors


def test_the_source_asks_so() -> None:
    assert machine.power_cuts.ask == Read((machine.RECORDS, WITNESS), trusted=True)
    assert Path(machine.RECORDS).parent.parent == ledger.OF_ROOT


def test_that_there_is_no_record_counts_where_files_could_be_read() -> None:
    absent = {machine.RECORDS: "no such file"}
    facts = {each.name: each.value for each in machine.power_cuts.parse(Files(READABLE, errors=absent), HOST)}
    assert [each.value for each in facts.values() if isinstance(each, Known)] == [(), True]
    with pytest.raises(ValueError, match="was not read"):
        list(machine.power_cuts.parse(Files({}, errors=absent), HOST))


HOSTILE = [
    "", "{", "[]", "null", '"x"', "[" * 100_000, '{"a":' * 100_000, '{"schema": "zaudit-cuts/2", "evidence": []}',
    '{"schema": "zaudit-cuts/1"}', '{"schema": "zaudit-cuts/1", "evidence": {}}',
    '{"schema": "zaudit-cuts/1", "evidence": [1]}',
    json.dumps({"schema": machine.CUTS_SCHEMA, "evidence": [ROW] * 65}),
    json.dumps({"schema": machine.CUTS_SCHEMA, "evidence": [], "more": [0] * (VALUES + 1)}),
    record(cuts=-1), record(cuts=1 << 21), record(cuts=1 << 70), record(cuts=True), record(cuts=28.0), record(cuts="28"),
    record(lost=29), record(lost=-1), record(cuts=float("nan")), record(serial=None), record(serial=["A"]),
    record(model="M" * 201), record(model="\x1b[2J"), record(model="\u202eLEDOM"), record(serial="\ud800"),
    record(layer="drive\n"),
]  # fmt: skip


@for_each("text", HOSTILE)
def test_a_record_that_cannot_be_one_is_refused_as_a_whole(text: str) -> None:
    """What it hides may be a loss, so it is not skipped either."""
    assert machine.keep_cuts(text) == ""
    for said in (text, machine.keep_cuts(text)):
        facts = list(machine.power_cuts.parse(Files({**READABLE, PATH: said, PATH + "1": record()}), HOST))
        found = {each.name: each.value for each in facts}
        assert isinstance(found["power_cuts_read"], Known)
        assert found["power_cuts_read"].value is False
        assert isinstance(found["power_cuts"], Known)
        assert found["power_cuts"].value == (DriveCuts(**ROW),)


def test_more_records_than_a_host_has() -> None:
    with pytest.raises(ValueError, match="more than 10000 records"):
        list(machine.power_cuts.parse(Files(READABLE | {f"{PATH}{number}": "" for number in range(10_001)}), HOST))


def test_nothing_but_the_evidence_is_kept() -> None:
    whole = json.loads(record()) | {"campaign": {"machine": "secret", "subject": "/dev/secret"}, "tried": []}
    assert "secret" not in machine.keep_cuts(json.dumps(whole))
    assert (
        machine.keep_cuts(json.dumps(whole))
        == machine.keep_cuts(record())
        == machine.keep_cuts(machine.keep_cuts(record()))
    )
