"""What a shell is offered, asked of the shells themselves where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from auditor import cli
from auditor.commands import _options
from auditor.commands.reference import SHELLS
from auditor.data import text
from auditor.host.live import LiveHost
from auditor.host.request import Capture, Run
from auditor.judge.finding import EXIT_CODES
from tests.golden import CANONICAL, HOSTS


def offered(*words: str) -> dict[str, str]:
    """Value -> kind, for the last of the words."""
    done = CliRunner().invoke(cli.main, ["completion", "bash", "--answer", "--", *words])
    assert done.exit_code == 0, done.output
    rows = [line.split("\t") for line in done.output.splitlines()]
    assert all(len(row) == 3 for row in rows)
    return {value: kind for kind, value, _ in rows}


@pytest.mark.parametrize(
    ("words", "value", "kind"),
    [
        (("che",), "check", "plain"),
        (("check", "--repl"), "--replay", "plain"),
        (("pla",), "plan", "plain"),
        (("check", "--suppose", "host"), "host release=", "plain"),
        (("check", "--rule", "slog-no-r"), "slog-no-redundancy", "plain"),
        (("check", "--skip", "advisory-zero"), "advisory-zero-range", "plain"),
        (("explain", "sync-dis"), "sync-disabled", "plain"),
        (("check", "--replay", "fix"), "fix", "file"),
        (("diff", "a.tar.gz", "b"), "b", "file"),
        (("show", "r.json", "--format", "prom"), "prometheus", "plain"),
        (("check", "--format", "json=r"), "json=r", "file"),
        (("check", "--db", "post"), "postgres", "plain"),
        (("check", "/var/l"), "/var/l", "file"),
        (("advise", "db", "mys"), "mysql", "plain"),
        (("policy", "ch"), "check", "plain"),
        (("schema", "pol"), "policy", "plain"),
        (("drives", "Samsung SSD 983 DCT 9"), "Samsung SSD 983 DCT 960GB", "plain"),
        (("fleet", "judge", "rec"), "rec", "file"),
        (("fleet", "report", "rows"), "rows", "file"),
        (("fleet", "check", "--cluster", "post"), "postgres", "plain"),
        (("diagnose", "/var/l"), "/var/l", "file"),
        (("powercut", "plan", "/var/l"), "/var/l", "file"),
    ],
)
def test_a_word_is_completed(words: tuple[str, ...], value: str, kind: str) -> None:
    assert offered(*words).get(value) == kind


def test_a_format_that_a_command_cannot_write_is_not_offered() -> None:
    assert "sarif" in offered("check", "--format", "")
    assert "sarif" not in offered("checklist", "--format", "")


def test_datasets_are_those_that_zfs_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Run] = []

    def run(host: LiveHost, request: Run) -> Capture:
        asked.append(request)
        return Capture(0, b"tank\ntank/db\ntank/a b\nother\n")

    monkeypatch.setattr(LiveHost, "run", run)
    assert offered("check", "ta") == {"tank": "plain", "tank/db": "plain", "tank/a b": "plain"}
    assert [each.argv[:2] for each in asked] == [("zfs", "list")]
    monkeypatch.setattr(LiveHost, "run", lambda *_: Capture(None, fault="timed out"))
    assert offered("check", "ta") == {}
    assert _options.ASK_S <= 1


def test_no_variable_turns_a_check_into_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """click would print a script and end with 0."""
    monkeypatch.setenv("_ZAUDIT_COMPLETE", "bash_source")
    done = CliRunner().invoke(cli.main, ["check", "--replay", str(HOSTS / CANONICAL)], prog_name="zaudit")
    assert done.exit_code == EXIT_CODES["critical"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_understands_its_script(shell: str, tmp_path: Path) -> None:
    printed = CliRunner().invoke(cli.main, ["completion", shell]).output
    assert printed == text(f"completion.{shell}")
    program = shutil.which(shell)
    if not program:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(printed)
    done = subprocess.run([program, "-n", tmp_path / "script"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


ASK = {
    "bash": 'source "$1"; COMP_WORDS=(zaudit LINE); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _zaudit zaudit; '
    'printf "%s\\n" "${COMPREPLY[@]}"',
    "zsh": 'compdef() { :; }; _describe() { print -l -- "${(@)${(@P)3}%%:*}" }; source "$1"; '
    "words=(zaudit LINE); CURRENT=${#words}; _zaudit",
    "fish": 'source $argv[1]; complete --do-complete "zaudit LINE"',
}
# of each the last word is completed, which may be empty
LINES = (
    ("drives", "INTEL", "SSDPE2KX010T"),
    ("explain", "slog-no-r"),
    ("explain", "--event", ""),
    ("check", "--fail-on", ""),
)


@pytest.mark.parametrize("line", LINES, ids=" ".join)
@pytest.mark.parametrize("shell", ASK)
def test_a_shell_completes_a_word(shell: str, line: tuple[str, ...], tmp_path: Path) -> None:
    program = shutil.which(shell)
    if not program:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "zaudit").write_text(f'#!/bin/sh\nexec {sys.executable} -m auditor "$@"\n')
    (tmp_path / "zaudit").chmod(0o755)
    (tmp_path / "script").write_text(text(f"completion.{shell}"))
    path = f"{tmp_path}:{os.environ.get('PATH', os.defpath)}"
    home = {**os.environ, "PATH": path, "HOME": str(tmp_path), "PYTHONPATH": str(Path(cli.__file__).parent.parent)}
    typed = " ".join(line) if shell == "fish" else " ".join(map(repr, line))
    words = [
        program,
        "-c",
        ASK[shell].replace("LINE", typed),
        *(["-"] if shell != "fish" else []),
        str(tmp_path / "script"),
    ]
    done = subprocess.run(words, env=home, capture_output=True, text=True, check=False, timeout=120)
    assert sorted(each.split("\t")[0].strip() for each in done.stdout.splitlines()) == sorted(offered(*line)), (
        done.stderr
    )
