"""One recording as rows: those of a check, and one row for whatever is no recording."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor import audit
from auditor.fleet import workers
from auditor.fleet.workers import How, judge_recording
from auditor.judge import policy_file
from tests.fake import CommandLine
from tests.fleet.fleets import CASES, HOSTNAME, fleet, spoilt, three
from tests.shared import HOSTS, host

BAD, HEALTHY = (HOSTS / case for case in CASES[:2])
MORE = {"recording", "openzfs", "models", "remedies", "digest", "findings"}


@pytest.mark.parametrize("case", CASES)
def test_the_rows_are_the_lines_of_a_check(case: str, zaudit: CommandLine) -> None:
    lines = [
        json.loads(line) for line in zaudit("check", "--replay", HOSTS / case, "--format", "jsonl").out.splitlines()
    ]
    rows = judge_recording(str(HOSTS / case))
    assert [{key: row[key] for key in line} for row, line in zip(rows, lines, strict=True)] == lines
    assert all(row.keys() - line.keys() <= MORE for row, line in zip(rows, lines, strict=True))
    assert rows[0]["findings"] == len(rows) - 1


def test_a_row_names_drives_and_what_would_decide_it() -> None:
    rows = judge_recording(str(HOSTS / "2.3-drives-that-warn"))
    assert any(row["models"] for row in rows[1:] if row["outcome"] == "fail")
    assert any(row["remedies"] for row in rows[1:] if row["outcome"] == "unknown")
    assert all(row["openzfs"] == rows[0]["openzfs"] for row in rows)


def test_a_folder_and_its_archive_have_one_digest(tmp_path: Path) -> None:
    from auditor.recording import recording

    recording.write(host(CASES[1]), tmp_path / "a.tar.gz")
    recording.write(host(CASES[1]), tmp_path / "b")
    digests = {judge_recording(str(tmp_path / name))[0]["digest"] for name in ("a.tar.gz", "b")}
    assert len(digests) == 1
    assert judge_recording(str(HOSTS / CASES[0]))[0]["digest"] not in digests


def test_what_is_no_recording_is_one_row_with_the_reason(tmp_path: Path) -> None:
    whole = three(tmp_path) / "db1.tar.gz"
    files = spoilt(tmp_path, whole) | {"absent": tmp_path / "absent.tar.gz", "folder": tmp_path}
    rows = {name: judge_recording(str(path)) for name, path in files.items()}
    assert {len(each) for each in rows.values()} == {1}
    assert {row["kind"] for each in rows.values() for row in each} == {"unjudged"}
    assert all(row["recording"] == str(files[name]) and row["error"] for name, (row,) in rows.items())
    assert "too large" in rows["bomb"][0]["error"]
    assert "one of a newer release" in rows["other"][0]["error"]
    assert "no such file" in rows["absent"][0]["error"]


def test_a_name_that_is_hostile_is_spelt_out(tmp_path: Path) -> None:
    (row,) = judge_recording(f"{tmp_path}/\x1b[2J\u202e\udcff")
    assert row["recording"].endswith("\\x1b[2J\\u202e\\xff")
    assert workers.lines([row]).isascii()


def test_hosts_of_whom_nothing_is_there_to_audit_are_undecided(tmp_path: Path) -> None:
    from dataclasses import replace

    from auditor.recording import recording

    recording.write(replace(host(CASES[1]), commands={}, files={}), tmp_path / "bare")
    (row,) = judge_recording(str(tmp_path / "bare"))
    assert row["kind"] == "unjudged"
    assert "pool" in row["error"]


def test_a_flood_of_findings_is_refused_and_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "ROWS", 3)
    (row,) = judge_recording(str(BAD))
    assert (row["kind"], row["error"]) == ("unjudged", "more than 3 findings")


def test_a_policy_of_all_hosts_stands_for_those_of_the_recordings(tmp_path: Path) -> None:
    text = '[rules]\nsync-disabled = "off"\n'
    ours = [row.get("rule") for row in judge_recording(str(BAD))]
    rows = judge_recording(str(BAD), How(policy=text, policy_path="/etc/fleet.toml"))
    assert "sync-disabled" in ours
    assert "sync-disabled" not in [row.get("rule") for row in rows]
    assert rows[0]["left_out"] == ["sync-disabled"]
    (row,) = judge_recording(str(BAD), How(policy="[nonsense]\n", policy_path="/etc/fleet.toml"))
    assert row["kind"] == "unjudged"


def test_an_internal_error_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(audit, "look", broken)
    (row,) = judge_recording(str(BAD))
    assert "internal error" in row["error"]
    monkeypatch.setattr(audit, "look", lambda *_, **__: (_ for _ in ()).throw(MemoryError()))
    (row,) = judge_recording(str(BAD))
    assert "memory" in row["error"]


def test_a_host_by_another_name(tmp_path: Path) -> None:
    assert any(HOSTNAME in files.text for files in host(CASES[0]).files.values())
    fleet(tmp_path, {"db7": CASES[0]}, days=1)
    rows = judge_recording(str(tmp_path / "db7.tar.gz"))
    assert {row["host"] for row in rows} == {"db7"}


@pytest.mark.slow
def test_no_row_is_longer_than_the_report_reads(tmp_path: Path) -> None:
    """Else one host could keep the report from all others."""
    from auditor.recording import recording

    recording.write(host(CASES[0]), tmp_path / "r")
    manifest = tmp_path / "r" / "recording.json"
    long = {**json.loads(manifest.read_text()), "targets": ["tank", f"tank/{'a' * (5 << 20)}"]}
    manifest.write_text(json.dumps(long))
    (row,) = judge_recording(str(tmp_path / "r"))
    assert (row["kind"], row["error"][:23]) == ("unjudged", "rows that are too long:")


def test_a_policy_of_several_files_is_followed() -> None:
    files = (("/etc/zaudit/zaudit.toml", "atime-on"), ("/etc/zaudit/conf.d/a.toml", "sync-disabled"))
    text = policy_file.joined([(path, f'[rules]\n{rule} = "off"\n') for path, rule in files])
    assert {each.rule for each in workers.chosen((), text, policy_file.HOME).left_out} == {rule for _, rule in files}
