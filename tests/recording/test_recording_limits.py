"""A recording that was written can be read back, always: the limits of writing are those of reading."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auditor import codec
from auditor.host.request import Capture, Files, Read, Run
from auditor.recording import archive, recording
from auditor.recording.recording import Recording, RecordingError, ReplayHost
from auditor.verify import trial
from tests.recording.test_recording import RECORDINGS

GET = ("zfs", "get", "-Hp", "-r", "-o", "name,property,value,source", "sync", "tank")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that small recordings reach."""
    for module in (archive, recording):
        monkeypatch.setattr(module, "MEMBER_LIMIT", 400)
        monkeypatch.setattr(module, "TOTAL_LIMIT", 1500)
        monkeypatch.setattr(module, "COUNT_LIMIT", 8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RECORDINGS, st.booleans(), st.binary(max_size=600))
def test_what_is_written_is_read(
    tiny: None, tmp_path_factory: pytest.TempPathFactory, past: Recording, packed: bool, more: bytes
) -> None:
    past = replace(past, commands={**past.commands, ("more",): Capture(0, more)})
    path = tmp_path_factory.mktemp("rec") / ("rec.tar.gz" if packed else "rec")
    try:
        left_out = recording.write(past, path)
    except RecordingError:
        assert not path.exists()
        return
    found = recording.load(path)
    assert (found == past) == (not left_out)
    assert (found.commands.keys(), found.files.keys()) == (past.commands.keys(), past.files.keys())
    kept = [found.commands[each] == past.commands[each] for each in past.commands]
    kept += [found.files[each] == past.files[each] for each in past.files]
    assert kept.count(False) == len(left_out)


@pytest.mark.slow
def test_a_hundred_thousand_datasets(tmp_path: Path) -> None:
    """Their properties are more than a recording holds. All else is kept; what they say is unknown, with the reason."""
    line = "{}\tsync\tstandard\tdefault\n" * 12
    rows = "".join(
        line.replace("{}", f"tank/customers/of-the-north-{number:07d}/database") for number in range(100_000)
    )
    answer = rows.encode()
    assert len(answer) > 50 << 20
    several: dict[tuple[str, ...], Capture] = {(*GET, str(number)): Capture(0, answer) for number in range(6)}
    past = Recording(1.0, 0, ("tank",), commands={**several, ("zpool", "status"): Capture(0, b"pool: tank")})
    left_out = recording.write(past, tmp_path / "rec")
    found = recording.load(tmp_path / "rec")
    lost = [argv for argv, capture in found.commands.items() if capture.fault]
    assert 0 < len(lost) == len(left_out) < 6
    size = -(-len(answer) >> 20)
    assert all(said.startswith(f"not kept in the recording, {size} MiB: zfs get -Hp -r") for said in left_out)
    assert ReplayHost(found).run(Run(("zpool", "status"))).stdout == b"pool: tank"
    fault = Capture(None, fault=f"{size} MiB, more than is kept in a recording")
    assert {ReplayHost(found).run(Run(argv)) for argv in lost} == {fault}


@pytest.mark.slow
def test_one_answer_that_is_too_large(tmp_path: Path) -> None:
    large = bytes(archive.MEMBER_LIMIT + 1)
    pattern = "/proc/spl/kstat/zfs/dbgmsg*"
    past = Recording(
        1.0,
        0,
        (),
        commands={("zpool", "history"): Capture(0, large)},
        files={(pattern,): Files({"/proc/spl/kstat/zfs/dbgmsg": "x" * len(large)})},
    )
    assert len(recording.write(past, tmp_path / "rec.tar.gz")) == 2
    found = ReplayHost(recording.load(tmp_path / "rec.tar.gz"))
    assert found.run(Run(("zpool", "history"))).fault == "129 MiB, more than is kept in a recording"
    answer = found.read(Read((pattern,)))
    assert answer.text == {}
    assert answer.errors == {pattern: "129 MiB, more than is kept in a recording"}
    assert not answer.complete(pattern)
    assert not answer.absent(pattern)


def test_what_cannot_be_left_out_is_refused(tmp_path: Path) -> None:
    past = Recording(1.0, 0, (), trial=bytes(archive.MEMBER_LIMIT + 1))
    with pytest.raises(RecordingError, match="larger than a recording may be"):
        recording.write(past, tmp_path / "rec")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("member", ["recording.json", "a.json", "trial.json"])
def test_a_small_recording_with_very_many_values(tmp_path: Path, member: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive of 100 KB can spell 40 million empty lists, which would take 3 GB of memory."""
    monkeypatch.setattr("auditor.text.VALUES", 1000)
    read = '{"read": ["/etc/a"], "files": "a.json"}'
    captures = read if member == "a.json" else ""
    start = f'"schema": "zaudit-recording/1", "zaudit": "", "taken": 1, "euid": 0, "captures": [{captures}]'
    manifest = f'{{{start}, "targets": [], "options": {{}}, "paths": {{}}'
    content = {
        "recording.json": manifest,
        "a.json": '{"text": {}, "links": {}, "errors": {}',
        "trial.json": '{"schema": 1',
    }
    for more in ('"]' + "[]," * 2000 + '"', "[" + "[]," * 2000 + "0]"):  # in a string they are none
        content_ = {name: f'{text}, "x": {more if name == member else 0}}}' for name, text in content.items()}
        packed = {name: text.encode() for name, text in content_.items()}
        crowded = not more.startswith('"')
        if member == "trial.json":
            with pytest.raises(codec.CodecError, match="values" if crowded else "schema"):
                trial.from_text(content_[member])
        elif crowded:
            with pytest.raises(RecordingError, match=r"malformed|not a zaudit recording"):
                recording.parse("rec", packed)
        else:
            recording.parse("rec", packed)


def test_files_of_very_many_lines_are_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of their lines would be a value."""
    monkeypatch.setattr("auditor.text.VALUES", 1000)
    monkeypatch.setattr(recording, "PARTED", 500)
    answer = Files({"/proc/a": "a\n" * 3000, "/proc/b": "b"})
    past = Recording(1.0, 0, ("tank",), files={("/proc/*",): answer})
    assert recording.write(past, tmp_path / "rec") == []
    assert recording.load(tmp_path / "rec") == past


ANSWER = b'{"text": {}, "links": {}, "errors": {}, "x": [%s0]}' % (b"0, " * 300)


def recorded(*names: str, **more: bytes) -> dict[str, bytes]:
    """A recording whose captures name these members."""
    captures = [{"read": [f"/etc/{number}"], "files": name} for number, name in enumerate(names)]
    manifest = {"schema": recording.SCHEMA, "zaudit": "", "taken": 1, "euid": 0, "targets": [], "options": {}}
    return {**more, "recording.json": json.dumps({**manifest, "paths": {}, "captures": captures}).encode()}


def test_no_member_answers_two_questions() -> None:
    """One of 100,000 values that 400 captures name took 6.5 GB."""
    assert len(recording.parse("rec", recorded("a", "b", a=ANSWER, b=ANSWER)).files) == 2
    with pytest.raises(RecordingError, match="named twice"):
        recording.parse("rec", recorded("a", "a", a=ANSWER))


def test_the_values_of_all_members_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.text.VALUES", 1000)
    recording.parse("rec", recorded("a", "b", a=ANSWER, b=ANSWER))
    with pytest.raises(RecordingError, match="more than 1,000 values"):
        recording.parse("rec", recorded("a", "b", "c", "d", a=ANSWER, b=ANSWER, c=ANSWER, d=ANSWER))


def test_several_answers_of_many_lines_are_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.text.VALUES", 1000)
    monkeypatch.setattr(recording, "PARTED", 500)
    files: dict[tuple[str, ...], Files] = {(f"/proc/{name}",): Files({f"/proc/{name}": "a\n" * 400}) for name in "abc"}
    past = Recording(1.0, 0, ("tank",), files=files)
    assert recording.write(past, tmp_path / "rec") == []
    assert recording.load(tmp_path / "rec") == past
