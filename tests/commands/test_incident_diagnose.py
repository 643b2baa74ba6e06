"""``zaudit diagnose`` on the command line: a replay says what was said, what is wrong is said in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from auditor.diagnose import observation, tracing
from auditor.diagnose.observation import Observation
from auditor.recording import recording
from auditor.verify import ledger, trial
from tests.fake import CommandLine
from tests.golden import VERIFICATIONS


def observed(name: str, to: Path) -> Path:
    """A verification of the lab as if its log run had been looked at by counters alone: they are the same files."""
    past = recording.load(VERIFICATIONS / f"{name}.tar.gz")
    done = trial.from_text(past.trial.decode())
    log = next(ran for ran in done.runs if ran.purpose == "log")
    made = Observation("tank/db", "tank", log.before, log.after, None, "only root may trace", (), None, log.logged)
    path = to / f"{name}.tar.gz"
    recording.write(replace(past, trial=observation.to_text(made).encode()), path)
    return path


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("2.3-mirrored-slog", 10, "58 commits/s; nothing that is counted stands out"),
        ("2.3-sync-disabled", 14, "tank/db is written to, and a sync there returns without writing anything."),
        ("2.3-foreign-load-other-dataset", 10, "tank/other    3,087"),
    ],
)
def test_what_a_real_host_counted(zaudit: CommandLine, tmp_path: Path, name: str, code: int, says: str) -> None:
    done = zaudit("diagnose", "--replay", observed(name, tmp_path))
    assert done.code == code
    assert says in done.out
    again = zaudit("diagnose", "--replay", observed(name, tmp_path), "--format", "json")
    document = json.loads(again.out)
    assert (again.code, document["schema"]) == (code, "zaudit-diagnosis/1")
    assert document["report"]["schema"] == "zaudit-report/2"
    assert document["diagnosis"]["shares"] == []


def test_a_recording_of_something_else_is_refused(zaudit: CommandLine) -> None:
    done = zaudit("diagnose", "--replay", VERIFICATIONS / "2.3-mirrored-slog.tar.gz")
    assert done.code == 2
    assert "no diagnosis is recorded there" in done.err


@pytest.mark.parametrize("words", [(), ("tank", "--replay", "x")])
def test_a_target_or_a_recording(zaudit: CommandLine, words: tuple[str, ...]) -> None:
    done = zaudit("diagnose", *words)
    assert done.code == 2
    assert "name a TARGET, or --replay a recording" in done.err


def test_help_says_what_it_changes_while_it_runs(zaudit: CommandLine) -> None:
    said = " ".join(zaudit("diagnose", "--help").out.split())
    assert "it adds its own events to the kernel's tracefs while it runs" in said
    assert "zaudit clean does so after a kill -9" in said


def test_clean_takes_back_events_and_says_so(
    zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ledger, "name", lambda: tmp_path / "state")
    monkeypatch.setattr(tracing, "clean", lambda: iter([("zaudit_7_7", ""), ("zaudit_8_8", "busy")]))
    done = zaudit("clean")
    assert done.code == 1
    assert "/sys/kernel/tracing: zaudit_7_7: removed" in done.out
    assert "/sys/kernel/tracing: zaudit_8_8: busy" in done.out
