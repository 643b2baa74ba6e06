"""What a program of the site is handed, when, and which program is run at all."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.commands import nightly
from tests.fake import CommandLine
from tests.golden import CANONICAL, GREEN, HOSTS

CALLED = '#!/bin/sh\nprintf "%s\\n" "$#" >> "$0.calls"\ncp "$1" "$0.got"\nenv > "$0.env"\n'


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Path]:
    """A program that nobody else could have put there."""
    path = tmp_path / "hook"
    path.write_text(CALLED)
    path.chmod(0o755)
    before = os.umask(0o022)
    yield path
    os.umask(before)


def kept(zaudit: CommandLine, path: Path, host: str) -> Path:
    zaudit("check", "--replay", HOSTS / host, "--format", "json", "-o", path)
    return path


def got(hook: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(f"{hook}.got").read_text())
    return found


def calls(hook: Path) -> int:
    path = Path(f"{hook}.calls")
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_what_is_new_is_told_once(
    zaudit: CommandLine, hook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "of the caller")
    report = kept(zaudit, tmp_path / "report.json", CANONICAL)
    words = ("alert", report, "--hook", hook)
    assert zaudit(*words).code == 0
    first = got(hook)
    assert (first["schema"], first["difference"]) == ("zaudit-alert/1", None)
    assert "sync-disabled tank/db (critical)" in first["summary"]
    assert "SECRET" not in Path(f"{hook}.env").read_text()
    assert zaudit(*words).code == 0
    assert calls(hook) == 1
    document = json.loads(report.read_text())
    document["findings"] = []
    (tmp_path / "told.json").write_text(json.dumps(document))
    assert zaudit(*words).code == 0
    new = {each["rule"] for each in got(hook)["difference"]["changes"] if each["change"] == "new"}
    assert "sync-disabled" in new
    assert (tmp_path / "told.json").stat().st_mode & 0o077 == 0
    assert calls(hook) == 2


@pytest.mark.parametrize(("known", "told"), [(True, 0), (False, 1)])
def test_what_the_baseline_knows_is_no_news_on_the_night_on_which_it_is_seen_again(
    known: bool, told: int, zaudit: CommandLine, hook: Path, tmp_path: Path
) -> None:
    known_file = tmp_path / "known.json"
    words = (
        "--replay",
        HOSTS / CANONICAL,
        "--rule",
        "sync-disabled",
        "--format",
        "json",
        "-o",
        tmp_path / "report.json",
    )
    zaudit("baseline", "accept", known_file, *words)
    assert zaudit(*(("baseline", "update", known_file) if known else ("check",)), *words).code == (0 if known else 14)
    night = json.loads((tmp_path / "report.json").read_text())
    (blind,) = [each for each in night["findings"] if each["rule"] == "sync-disabled"]
    blind.pop("known", None)
    blind["outcome"] = "unknown"
    (tmp_path / "told.json").write_text(json.dumps(night))
    page = zaudit("diff", tmp_path / "told.json", tmp_path / "report.json")
    assert page.code == (0 if known else 14)
    assert f"{told} new or worse" in page.out
    assert ("critical, failed, known to the baseline" in " ".join(page.out.split())) is known
    assert zaudit("alert", tmp_path / "report.json", "--hook", hook).code == 0
    assert calls(hook) == told


def test_that_there_is_no_report_is_told(zaudit: CommandLine, hook: Path, tmp_path: Path) -> None:
    assert zaudit("alert", tmp_path / "none.json", "--hook", hook).code == 0
    assert got(hook)["summary"].startswith("no report: ")
    report = kept(zaudit, tmp_path / "report.json", GREEN)
    assert zaudit("alert", report, "--hook", hook, "--max-age", "1s").code == 0
    assert "hours old" in got(hook)["summary"]
    assert not (tmp_path / "told.json").exists()


@pytest.mark.parametrize("text", ["#!/bin/sh\necho away >&2; exit 3\n", "#!/bin/sh\nsleep 60\n"])
def test_what_was_not_told_is_told_again(text: str, zaudit: CommandLine, hook: Path, tmp_path: Path) -> None:
    report = kept(zaudit, tmp_path / "report.json", CANONICAL)
    hook.write_text(text)
    began = time.monotonic()
    done = zaudit("alert", report, "--hook", hook, "--timeout", "0.5")
    assert done.code == 1
    assert ("exit code 3: away" in done.err) is ("away" in text)
    assert time.monotonic() - began < 30
    assert not (tmp_path / "told.json").exists()


def test_without_a_program_nothing_is_done(zaudit: CommandLine, tmp_path: Path) -> None:
    done = zaudit("alert", tmp_path / "none.json", "--hook", tmp_path / "none")
    assert (done.code, done.out) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_others_could_have_changed_is_not_run(zaudit: CommandLine, hook: Path, tmp_path: Path) -> None:
    report = kept(zaudit, tmp_path / "report.json", CANONICAL)
    hook.chmod(0o777)
    done = zaudit("alert", report, "--hook", hook)
    assert done.code == 1
    assert "another user could have put it there" in done.err
    hook.chmod(0o644)
    assert "not a program" in zaudit("alert", report, "--hook", hook).err
    assert calls(hook) == 0
    assert os.fspath(nightly.HOOK) == "/etc/zaudit/alert"


def test_who_may_write_beside_the_report_has_no_say_what_was_told(
    zaudit: CommandLine, hook: Path, tmp_path: Path
) -> None:
    """As in /tmp."""
    (tmp_path / "shared").mkdir()
    report = kept(zaudit, tmp_path / "shared" / "report.json", CANONICAL)
    (tmp_path / "shared" / "told.json").write_bytes(report.read_bytes())
    (tmp_path / "shared").chmod(0o1777)
    done = zaudit("alert", report, "--hook", hook)
    assert done.code == 1
    assert "nothing is reported from there: another user could have put it there" in done.err
