"""``zaudit verify`` on the command line: errors in one line, a dry run that does nothing, and a replay that says the same."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from auditor.host.live import Host
from auditor.host.request import UNASKED, Capture, Files
from auditor.recording import recording
from auditor.verify import execution, fio, ledger, trial, verification
from auditor.verify.fio import Plan
from auditor.verify.ledger import Actor, PlaceError
from tests import shared
from tests.fake import CommandLine
from tests.golden import HOSTS, VERIFICATIONS
from tests.shared import ROOT

TRACED = VERIFICATIONS / "2.3-mirrored-slog.tar.gz"


class Answering(recording.ReplayHost):
    """A live host with the answers of a recording: what that lacks is not there, and nobody says "record again"."""

    def __init__(self, past: recording.Recording) -> None:
        super().__init__(past)
        self.recorder = ""
        run, read = self.run, self.read
        self.run = lambda request: _there(run(request))
        self.read = lambda request: _found(read(request))


def _there(answer: Capture) -> Capture:
    return Capture(None, fault="not installed") if answer.fault == UNASKED else answer._replace(lacks=(), columns=())


def _found(answer: Files) -> Files:
    errors = {path: "no such file" if error == UNASKED else error for path, error in answer.errors.items()}
    return answer._replace(errors=errors)


@pytest.fixture
def zaudit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    """On the host that was recorded; nothing can be run there."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "ZAUDIT_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(ledger, "name", lambda: tmp_path / "state")
    past = recording.load(TRACED)
    monkeypatch.setattr(verification, "LiveHost", lambda timeout, deadline=0.0: Answering(past))
    monkeypatch.setattr(execution, "run_trial", never)
    monkeypatch.setattr(execution, "actor_for", lambda host, planned: Actor("26", "27"))
    return CommandLine(monkeypatch, capsys)


def never(*_: object, **__: object) -> Any:
    raise AssertionError("something was run")


@pytest.fixture
def runs(zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The same, where the run comes out as it did then."""
    past = trial.from_text(recording.load(TRACED).trial.decode())
    monkeypatch.setattr(execution, "ready", lambda asked, facts: None)
    monkeypatch.setattr(execution, "run_trial", lambda *_, **__: past)
    return zaudit


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), 2, "name a TARGET, or --replay"),
        (("tank/db", "--replay", TRACED), 2, "name a TARGET, or --replay"),
        (("tank/db", "--profile", "oracle"), 2, "no profile oracle; there are etcd"),
        (("tank/db", "--profile", "/nonexistent/x.fio"), 2, "no profile /nonexistent/x.fio"),
        (("tank/db", "--slo", "p99"), 2, "an objective is a percentile and a time"),
        (("tank/db", "--slo", "p99=5"), 2, "is not a time"),
        (("tank/db", "--size", "big"), 2, "'big' is not a size"),
        (("tank/db", "--limit", "big"), 2, "'big' is not a size"),
        (("tank/db", "--despite", "suspended"), 2, "'suspended' is not one of"),
        (("tank/db", "--format", "pdf"), 2, "'pdf' is not one of"),
        (("tank/db", "--sweep-size", "16m"), 2, "--sweep-size says how much --sweep writes: it needs --sweep"),
        (("tank/db", "--sweep", "--sweep-size", "1m"), 2, "a sweep of 1 MiB: at least 4 MiB are needed"),
        (("tank/away",), 2, "not run: tank/away may not be mounted"),
        (("--replay", "/nonexistent.tar.gz"), 2, "/nonexistent.tar.gz"),
        (("--replay", HOSTS / "2.3-healthy-mirrored-slog"), 2, "no verification is recorded there"),
        (("tank/db", "--compare", HOSTS / "2.3-healthy-mirrored-slog"), 2, "no verification is recorded there"),
    ],
    ids=range(16),
)
def test_errors_are_one_line(
    zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch, words: tuple[object, ...], code: int, says: str
) -> None:
    monkeypatch.setattr(execution, "ready", lambda asked, facts: None)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    done = zaudit("verify", *words)
    assert done.code == code, done.err
    assert says in done.err
    assert done.out == ""
    assert done.err.splitlines()[-1].startswith(("zaudit: ", "Error: "))


def test_without_fio(zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.verify.ledger.PATH", ())
    done = zaudit("verify", "tank/db")
    assert (done.code, done.err) == (3, "zaudit: fio is not installed (apt install fio)\n")


def test_a_refusal_says_what_overrides_it(zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = [
        fio.Refusal("pool tank is DEGRADED", "degraded"),
        fio.Refusal("it hangs"),
    ]
    monkeypatch.setattr(fio, "refusals", lambda planned, facts: refusals)
    done = zaudit("verify", "tank/db", "--despite", "degraded")
    assert (done.code, done.err) == (2, "zaudit: not run: it hangs\n")
    done = zaudit("verify", "tank/db")
    assert "pool tank is DEGRADED (--despite degraded overrides it); it hangs" in done.err


def test_a_dry_run_says_what_would_be_done(zaudit: CommandLine, tmp_path: Path) -> None:
    done = zaudit("verify", "tank/db", "--dry-run", "--limit", "3g")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("tank/db: postgres, quick, about 0 min ")
    assert "at most 3 GiB written." in done.out
    commands = [line for line in lines if line.startswith("cd PLACE && ") and " env ZAUDIT_DIRECTORY=. " in line]
    assert [line.startswith("# ") for line in lines if line.startswith("# ")] == [True] * 3
    assert all(line.startswith("cd PLACE && setpriv --pdeathsig KILL --no-new-privs --reuid 26 ") for line in commands)
    assert all(line.endswith(" - <zaudit.job.fio") for line in commands)
    assert len(commands) == 3
    assert "Wear: at most this share" in done.out
    assert "refused" not in done.out
    assert not (tmp_path / "state").exists()


def test_where_fio_cannot_be_run_as_anybody_nothing_is_run(
    zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(host: Host, planned: Plan) -> Actor:
        raise PlaceError("/tank/db belongs to root and can be written by others")

    monkeypatch.setattr(execution, "actor_for", nobody)
    done = zaudit("verify", "tank/db", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert "Would be refused: /tank/db belongs to root and can be written by others" in done.out
    assert " --reuid UID --regid GID " in done.out
    done = zaudit("verify", "tank/db")
    assert (done.code, done.err) == (2, "zaudit: not run: /tank/db belongs to root and can be written by others\n")


def test_a_dry_run_says_what_would_be_refused(zaudit: CommandLine) -> None:
    done = zaudit("verify", "tank/db", "--dry-run", "--size", "900g", "--standard", "--despite", "space")
    assert done.code == 0
    assert "Despite: tank/db has " in done.out
    assert (
        "Would be refused: tank/db has " in zaudit("verify", "tank/db", "--dry-run", "--size", "900g", "--standard").out
    )


@pytest.mark.parametrize("format_", shared.briefly([("json",), ("terminal",), ("html",)], quick=1))
def test_a_replay_says_what_was_said_live(runs: CommandLine, tmp_path: Path, format_: str) -> None:
    for name in ("rec", "rec.tar.gz"):
        live = runs("verify", "tank/db", "--record", tmp_path / name, "--format", format_)
        again = runs("verify", "--replay", tmp_path / name, "--format", format_)
        assert live.out == again.out
        assert (live.code, again.code) == (14, 14)
        assert len(live.out) > 1000


@pytest.mark.slow
def test_what_a_policy_turns_off_and_failures_alone_are_as_in_check(runs: CommandLine, tmp_path: Path) -> None:
    undecided = runs("verify", "tank/db", "--format", "json")
    policy = tmp_path / "zaudit.toml"
    failing = {each["rule"] for each in json.loads(undecided.out)["report"]["findings"] if each["outcome"] == "fail"}
    policy.write_text("[rules]\n" + "".join(f'{rule} = "off"\n' for rule in sorted(failing)))
    for words in (("tank/db",), ("--replay", TRACED)):
        done = runs("verify", *words, "--policy", policy, "--failed-only", "--format", "json")
        out = {each["rule"] for each in json.loads(done.out)["report"]["left_out"]}
        assert {"known-bugs" if rule.startswith("advisory-") else rule for rule in out} == failing
        for format_ in ("terminal", "html"):
            shown = runs("verify", *words, "--policy", policy, "--format", format_)
            assert shown.code > done.code  # what is undecided counts there
            said = " ".join(shown.out.split())
            assert any(f"{policy}: {rule} (" in said for rule in out)


def test_the_deadline_is_of_the_audit_and_not_of_the_run(runs: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    past, made = recording.load(TRACED), []

    def live(timeout: float, deadline: float = 0.0) -> Host:
        made.append((timeout, deadline))
        return Answering(past)

    monkeypatch.setattr(verification, "LiveHost", live)
    runs("verify", "tank/db", "--timeout", "7", "--deadline", "40")
    runs("check", "tank/db", "--verify", "--deadline", "50")
    assert made == [(7.0, 0.0), (7.0, 40.0), (30.0, 0.0), (30.0, 50.0)]


def test_what_was_left_there_is_said(runs: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    past = trial.from_text(recording.load(TRACED).trial.decode())
    monkeypatch.setattr(execution, "run_trial", lambda *_, **__: past._replace(notes=("/tank/x was kept\x1b",)))
    assert "zaudit: /tank/x was kept\\x1b\n" in runs("verify", "tank/db").err


@pytest.mark.slow
@pytest.mark.parametrize("encoding", shared.briefly([("ascii",), ("utf-8",), ("latin-1",)], quick=1))
def test_a_page_is_the_same_bytes_whatever_standard_output_is(encoding: str, tmp_path: Path) -> None:
    def page(*words: object) -> bytes:
        line = [
            sys.executable,
            "-m",
            "auditor",
            "verify",
            "--replay",
            str(TRACED),
            "--format",
            "html",
            *map(str, words),
        ]
        cwd = ROOT
        done = subprocess.run(
            line, capture_output=True, cwd=cwd, env={**os.environ, "PYTHONIOENCODING": encoding}, check=False
        )
        assert (done.returncode, b"Traceback" in done.stderr) == (14, False)
        return done.stdout

    page("-o", tmp_path / "page")
    assert page() == (tmp_path / "page").read_bytes()
    assert not page().isascii()


def test_a_recording_that_cannot_be_written_costs_no_report(
    runs: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    report = runs("verify", "tank/db").out
    monkeypatch.setattr(recording, "write", full)
    done = runs("verify", "tank/db", "--record", tmp_path / "rec")
    assert (done.code, done.out, done.err) == (1, report, "zaudit: No space left on device\n")


def test_a_place_that_no_recording_can_have_is_known_before_anything_is_written(
    zaudit: CommandLine, tmp_path: Path
) -> None:
    done = zaudit("verify", "tank/db", "--record", tmp_path / "none" / "rec.tar.gz")
    assert (done.code, done.out, done.err) == (2, "", f"zaudit: {tmp_path / 'none'}: No such file or directory\n")


def test_what_is_said(runs: CommandLine, tmp_path: Path) -> None:
    text = runs("verify", "tank/db").out
    assert "TRACED" in text
    assert "only a power cut" in " ".join(text.split()).lower()
    file = tmp_path / "report.json"
    done = runs("verify", "tank/db", "--format", "json", "-o", file)
    assert (done.code, done.out) == (14, ""), "the recording does not say who uses the datasets"
    assert "TRACED (exit code 14)" in done.err
    assert json.loads(file.read_text())["verification"]["chain"]["outcome"] == "TRACED"
    compared = runs("verify", "tank/db", "--compare", file)
    assert compared.code == 14
    assert len(compared.out) > len(text)


def test_clean(zaudit: CommandLine, tmp_path: Path) -> None:
    assert (zaudit("clean").code, zaudit("clean").out) == (0, "")
    (tmp_path / "state").mkdir()
    record = tmp_path / "state" / "place-x.json"
    record.write_text("{")
    done = zaudit("clean")
    assert done.code == 1
    assert "the record is damaged" in done.out
    assert record.exists()
