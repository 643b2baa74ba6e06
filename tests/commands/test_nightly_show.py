"""``--format`` of check, and ``zaudit show``: several at once, where they go, exit codes, and what monitors are told when
there is no report."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from auditor.report import formats
from tests.fake import CommandLine, FakeHost
from tests.golden import CANONICAL, GREEN, HOSTS, REPORTS
from tests.shared import briefly

REC = HOSTS / CANONICAL


@pytest.fixture
def kept(zaudit: CommandLine, tmp_path: Path) -> Path:
    """A report that was written by a check."""
    path = tmp_path / "report.json"
    assert zaudit("check", "--replay", REC, "--format", "json", "-o", path).code == 14
    return path


PAGES = ("terminal", "html")  # which have what the JSON has, and a check has more


@pytest.mark.parametrize("name", briefly([(name,) for name in formats.of_data() if name not in PAGES], quick=4))
def test_a_report_that_was_kept_is_told_as_by_the_check(name: str, zaudit: CommandLine, kept: Path) -> None:
    checked, shown = zaudit("check", "--replay", REC, "--format", name), zaudit("show", kept, "--format", name)
    assert shown == checked
    assert shown.code == {"nagios": 2, "npd": 1}.get(name, 14)


@pytest.mark.slow
def test_several_formats_at_once(zaudit: CommandLine, tmp_path: Path) -> None:
    files = {name: tmp_path / f"x.{name}" for name in formats.names() if name != "terminal"}
    words = [word for name, path in files.items() for word in ("--format", f"{name}={path}")]
    done = zaudit("check", "--replay", REC, *words, "--format", "terminal")
    assert done.code == 14, "no format in a file decides the exit code"
    assert done.out == zaudit("check", "--replay", REC).out
    assert done.err.count("(exit code 14)") == len(files)
    for name, path in files.items():
        assert path.read_text() == zaudit("check", "--replay", REC, "--format", name).out
        assert stat.S_IMODE(path.stat().st_mode) == (0o644 if name == "prometheus" else 0o600)


def test_output_is_of_the_format_that_names_no_file(zaudit: CommandLine, tmp_path: Path) -> None:
    words = ("--format", f"summary={tmp_path}/s", "--format", "nagios", "-o", tmp_path / "n")
    done = zaudit("check", "--replay", REC, *words)
    assert (done.code, done.out) == (14, "")
    assert (tmp_path / "n").read_text().startswith("ZAUDIT CRITICAL")
    assert (tmp_path / "s").read_text().startswith("zlab: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--format", "json", "--format", "html"], "two formats go to standard output"),
        (["--format", "json=/tmp/x", "--format", "html=/tmp/x"], "two formats go to /tmp/x"),
        (["--format", "json=/tmp/x", "-o", "/tmp/y"], "names a file already"),
        (["--format", "json="], "the name of a file is missing"),
        (["--format", "xml"], "'xml' is not one of"),
        (["--format", "_told"], "'_told' is not one of"),
        (["--verify", "tank", "--format", "jsonl"], "--verify: one format, of terminal, json, html"),
    ],
)
def test_what_cannot_be_wanted(words: list[str], said: str, zaudit: CommandLine) -> None:
    done = zaudit("check", *([] if "--verify" in words else ["--replay", REC]), *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.parametrize(
    ("case", "words", "code"), [(CANONICAL, [], 2), (GREEN, [], 0), (CANONICAL, ["--rule", "zed-not-running"], 3)]
)
def test_a_plugin_ends_with_its_own_codes(case: str, words: list[str], code: int, zaudit: CommandLine) -> None:
    done = zaudit("check", "--replay", HOSTS / case, "--format", "nagios", *words)
    assert done.code == code, done.out


@pytest.mark.parametrize("spelt", [("--format", "nagios"), ("--format=nagios",), ("--format", "nagios=-")])
@pytest.mark.parametrize(
    "wrong", [("--no-such-option",), ("nosuchpool",), ("--rule", "no-such-rule"), ("--policy", "/nonexistent")]
)
def test_a_plugin_that_ends_without_a_report_is_unknown(
    spelt: tuple[str, ...], wrong: tuple[str, ...], zaudit: CommandLine
) -> None:
    """1 and 2 are WARNING and CRITICAL to a monitor."""
    zaudit.host = FakeHost()
    done = zaudit("check", *spelt, *wrong)
    assert done.code == 3
    assert done.out.startswith("ZAUDIT UNKNOWN - ")
    assert done.out.count("\n") == 1
    assert done.err
    checkmk = zaudit("check", *(word.replace("nagios", "checkmk") for word in spelt), *wrong)
    assert checkmk.code in (2, 3)
    assert checkmk.out.startswith('3 "zaudit" - ZAUDIT UNKNOWN - ')


def test_a_file_of_old_figures_does_not_stay_when_there_are_no_new_ones(zaudit: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "zaudit.prom"
    assert zaudit("check", "--replay", REC, "--format", f"prometheus={path}").code == 14
    assert "zaudit_last_run_success 1" in path.read_text()
    zaudit.host = FakeHost()
    done = zaudit("check", "--format", f"prometheus={path}", "--format", "terminal")
    assert done.code == 3
    assert "zaudit_last_run_success 0" in path.read_text()
    assert "zaudit_findings" not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_one_that_cannot_be_written_keeps_none_back(zaudit: CommandLine, tmp_path: Path) -> None:
    words = ("--format", f"json={tmp_path}/none/x", "--format", f"jsonl={tmp_path}/lines", "--format", "summary")
    done = zaudit("check", "--replay", REC, *words)
    assert done.code == 2
    assert f"{tmp_path}/none" in done.err
    assert done.out.startswith("zlab: ")
    assert (tmp_path / "lines").exists()


@pytest.mark.parametrize(
    ("hours", "limit", "code"), [(1, "2h", 14), (3, "2h", 3), (1, "3600s", 3), (-1, "2h", 3), (47, "2d", 14)]
)
def test_an_old_report_is_none(
    hours: float, limit: str, code: int, zaudit: CommandLine, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import datetime

    taken = datetime.fromisoformat(json.loads(kept.read_text())["taken"]).timestamp()
    monkeypatch.setattr("auditor.commands.nightly.time.time", lambda: taken + hours * 3600 + 1)
    assert zaudit("show", kept, "--format", "summary", "--max-age", limit).code == code
    assert zaudit("show", kept, "--format", "nagios", "--max-age", limit).code == (3 if code == 3 else 2)


@pytest.mark.parametrize("limit", ["2", "h", "-1h", "1e3s", "２h", "9999999h", ""])
def test_what_is_no_span_of_time(limit: str, zaudit: CommandLine, kept: Path) -> None:
    assert zaudit("show", kept, "--max-age", limit).code == 2


def test_show_reads_the_first_edition_and_refuses_the_rest(zaudit: CommandLine, tmp_path: Path) -> None:
    done = zaudit("show", REPORTS / "json-1.json")
    assert done.code == 14
    assert done.out.startswith("## Acknowledged commits can be lost\n")
    for name, text in (
        ("a", "no JSON"),
        ("b", "[]"),
        ("c", "{}"),
        ("d", '{"schema": "zaudit-report/2"}'),
        ("e", "[" * 99999),
    ):
        (tmp_path / name).write_text(text)
        done = zaudit("show", tmp_path / name)
        assert (done.code, done.out) == (2, ""), name
        assert "Traceback" not in done.err
    assert "a recording (zaudit check --replay)" in zaudit("show", REC).err
    os.mkfifo(tmp_path / "fifo")
    assert zaudit("show", tmp_path / "fifo").code == 2
    assert zaudit("show", tmp_path / "none").code == 2


def test_show_offers_what_it_can_render(zaudit: CommandLine) -> None:
    text = zaudit("show", "--help").out
    assert "prometheus" in text


@pytest.mark.parametrize("name", PAGES)
def test_a_kept_report_is_a_page_for_a_person(name: str, zaudit: CommandLine, kept: Path) -> None:
    """The answer, each finding, its fix and the table are those of the report; a second look changes nothing."""
    report = json.loads(kept.read_text())
    done = zaudit("show", kept, "--format", name)
    assert done.code == 14
    assert done.out.startswith("<!DOCTYPE html>" if name == "html" else "zaudit ")
    page = " ".join(done.out.split())
    assert report["headline"] in page
    assert all(each["rule"] in page for each in report["findings"])
    assert "LOSES up to" in page
    assert "zfs set sync=standard tank/db" in page
    assert done == zaudit("show", kept, "--format", name)
