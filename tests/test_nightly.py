"""A run of every night: ``zaudit check --baseline FILE`` from end to end, and what every format makes of it."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from auditor.commands import _baseline
from auditor.facts import Facts
from auditor.host.request import Capture
from auditor.judge import baseline, baseline_file
from auditor.judge.finding import RANK
from auditor.recording import recording
from auditor.report import formats
from tests.fake import CommandLine
from tests.golden import CANONICAL, HOSTS, OLDER, SCHEMAS, report_of

REC = OLDER / CANONICAL
UNDECIDED = report_of(REC).coverage.undecided  # rules on that host: grows with rules whose facts it was not asked for


@pytest.fixture
def known(zaudit: CommandLine, tmp_path: Path) -> Path:
    """A baseline with the failures of the recorded host."""
    path = tmp_path / "known.json"
    done = zaudit("check", "--replay", REC, "--baseline", path, "--write-baseline", "--format", "summary")
    assert done.code == 14, "what is accepted tonight counts from tomorrow on no more"
    assert done.out.startswith(f"zlab: 3 new, {UNDECIDED} undecided; sync-disabled tank (critical), ")
    assert "3 failures and 0 undecided are known" in done.err
    return path


@pytest.fixture
def blind(tmp_path: Path) -> Path:
    """The same host in a night in which zfs get gave no answer."""
    past = recording.load(REC)
    silent = Capture(None, fault="timed out after 30 s")
    commands = {argv: silent if argv[:2] == ("zfs", "get") else answer for argv, answer in past.commands.items()}
    assert commands != past.commands
    path = tmp_path / "blind"
    recording.write(replace(past, commands=commands), path)
    return path


def test_a_night_without_zfs_get_is_one_line(zaudit: CommandLine, known: Path, blind: Path) -> None:
    before = known.read_bytes()
    done = zaudit("check", "--replay", blind, "--baseline", known, "--update", "--format", "summary")
    assert done.code == 14, "what cannot be seen is not fixed"
    assert done.out.count("timed out after 30 s") == 1
    assert len(done.out) < 600
    assert "0 new" not in done.out
    assert json.loads(known.read_bytes())["known"][1] == json.loads(before)["known"][1]
    page = zaudit("check", "--replay", blind, "--baseline", known).out
    unseen = " ".join(page.partition("\nNOT SEEN ")[2].split())
    assert unseen.startswith("sync-disabled tank (critical, last seen 2026-11-21), "), "the gravest first"
    again = zaudit("check", "--replay", REC, "--baseline", known, "--format", "summary").out
    assert again.startswith(f"zlab: {UNDECIDED} undecided, 3 known; "), "it does not come back as new"


def test_a_diff_tells_one_cause_once(zaudit: CommandLine, blind: Path) -> None:
    gone, back = zaudit("diff", REC, blind), zaudit("diff", blind, REC)
    for done in (gone, back):
        assert done.code == 14
        assert done.out.count("timed out after 30 s") < 8
        assert len(done.out.splitlines()) < 60
    assert "sync-disabled dataset tank had failed: that does not mean that it is fixed." in " ".join(gone.out.split())
    assert re.search(r"^NOT SEEN  \d\d rules on \d\d+ subjects, may be critical: ", gone.out, re.M)
    assert re.search(r"^SEEN      \d\d rules on \d\d+ subjects, would have been ", back.out, re.M)


def test_the_night_after(zaudit: CommandLine, known: Path) -> None:
    done = zaudit("check", "--replay", REC, "--baseline", known)
    assert done.code == 14
    assert f"{UNDECIDED} undecided · 3 known" in done.out
    assert "KNOWN     sync-disabled tank (critical, since 2026-11-21)" in done.out
    assert "Fix first" not in done.out
    assert "LOSES commits" in done.out, "what a power cut takes is not changed by knowing it"
    assert zaudit("check", "--replay", REC, "--baseline", known, "--failed-only").code == 10


def test_all_of_it_accepted(zaudit: CommandLine, known: Path) -> None:
    accept = ("--write-baseline", "--accept-undecided")
    zaudit("check", "--replay", REC, "--baseline", known, *accept)
    done = zaudit("check", "--replay", REC, "--baseline", known, "--format", "summary")
    assert (done.code, done.out) == (0, f"zlab: nothing new; {UNDECIDED + 3} known   (exit code 0)\n")
    assert zaudit("check", "--replay", REC, "--baseline", known, "--skip", "sync-disabled").code == 0


@pytest.mark.slow
def test_every_format_says_what_is_known(zaudit: CommandLine, known: Path) -> None:
    texts = {}
    for name in formats.names():
        done = zaudit("check", "--replay", REC, "--baseline", known, "--format", name)
        assert "known" in done.out.lower() or name in ("sarif", "sarif-github", "npd"), name
        texts[name] = done.out
    schema = json.loads((SCHEMAS / "schema.json").read_text())
    document = json.loads(texts["json"])
    jsonschema.Draft202012Validator(schema).validate(document)
    assert [each["rule"] for each in document["findings"] if "known" in each] == [
        "sync-disabled",
        "container-or-vm-blind",
        "known-bugs",
    ]
    assert document["baseline"] == {"made": "2026-11-21", "known": 3, "unseen": [], "gone": []}
    states = [each["baselineState"] for each in json.loads(texts["sarif"])["runs"][0]["results"]]
    assert sorted(states) == ["new"] * UNDECIDED + ["unchanged"] * 3
    assert 'zaudit_findings{outcome="known",severity="critical"} 1' in texts["prometheus"]
    assert 'zaudit_findings{outcome="fail",severity="critical"} 0' in texts["prometheus"]
    assert texts["nagios"].startswith("ZAUDIT UNKNOWN - ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--update"], "need --baseline FILE"),
        (["--write-baseline"], "need --baseline FILE"),
        (["--baseline", "{}", "--accept-undecided"], "needs --write-baseline"),
        (["--baseline", "{}", "--update"], "there is no baseline yet"),
        (["--baseline", "{}"], "there is no baseline yet"),
        (["--baseline", "/etc/hostname"], "not a baseline of zaudit"),
        (["--baseline", "/dev/zero"], "not a regular file"),
    ],
)
def test_what_cannot_be(words: list[str], said: str, zaudit: CommandLine, tmp_path: Path) -> None:
    done = zaudit("check", "--replay", REC, *(word.format(tmp_path / "none") for word in words))
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.slow
def test_a_baseline_of_another_host_is_refused(zaudit: CommandLine, known: Path) -> None:
    done = zaudit("check", "--replay", HOSTS / "2.4-healthy-physical-no-cache", "--baseline", known)
    assert done.code == 2
    assert "another host: zlab, not db1" in done.err


def test_the_file_is_for_its_owner_and_replaced_as_a_whole(zaudit: CommandLine, known: Path) -> None:
    before = known.read_bytes()
    assert known.stat().st_mode & 0o777 == 0o600
    assert zaudit("check", "--replay", REC, "--baseline", known, "--update").code == 14
    assert known.read_bytes() == before
    assert os.listdir(known.parent) == [known.name]


def test_a_quiet_night_is_quiet(zaudit: CommandLine, known: Path) -> None:
    words = ("check", "--replay", REC, "--baseline", known, "--update", "--format", "summary")
    assert "are known" in zaudit(*words).err
    assert zaudit(*words, "--quiet").err == ""


def test_what_is_below_min_severity_is_counted_and_not_shown(zaudit: CommandLine) -> None:
    whole = zaudit("check", "--replay", REC)
    part = zaudit("check", "--replay", REC, "--min-severity", "high")
    assert part.code == whole.code == 14
    severities = [RANK[each.severity] for each in report_of(REC).findings]
    below = sum(each < RANK["high"] for each in severities)
    assert "LOW  " in whole.out
    assert "LOW  " not in part.out
    assert f"{below} findings are below high and not shown (--min-severity)." in part.out
    page = zaudit("check", "--replay", REC, "--min-severity", "critical", "--format", "html").out
    lower = sum(each < RANK["critical"] for each in severities)
    assert f"{lower} findings are below critical and not shown (--min-severity)." in page
    words = ("--format", "json")
    assert (
        zaudit("check", "--replay", REC, *words, "--min-severity", "high").out
        == zaudit("check", "--replay", REC, *words).out
    )


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o620, 0o602])
def test_a_live_check_follows_no_baseline_that_others_could_have_written(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "known.json"
    path.write_text(baseline_file.text(baseline.empty(Facts(), ())))
    path.chmod(mode)
    wish = _baseline.wish(path, False, False, False)
    assert _baseline.read(wish, Facts(), (), trusted=False) is not None
    # the group is that of the one who runs the tests, which for an ordinary user is himself
    if mode & 0o002 or (mode & 0o020 and os.geteuid() == 0):
        with pytest.raises(OSError, match="another user could have"):
            _baseline.read(wish, Facts(), (), trusted=True)
    else:
        assert _baseline.read(wish, Facts(), (), trusted=True) is not None


def test_what_a_baseline_knows_of_a_retired_rule_is_named_and_covers_nothing(
    zaudit: CommandLine, tmp_path: Path
) -> None:
    host, path = HOSTS / "2.3-healthy-single-slog", tmp_path / "known.json"
    words = ("check", "--replay", host, "--baseline", path, "--format", "summary")
    zaudit(*words, "--write-baseline", "--accept-undecided")
    assert zaudit(*words).code == 0
    path.write_text(path.read_text().replace('"slog-no-redundancy"', '"slog-unmirrored"'))
    done = zaudit(*words)
    assert done.code == 13
    assert f"{path}: no effect, slog-unmirrored is retired: use rule slog-no-redundancy" in done.err
    assert "slog-no-redundancy" in done.out
    assert zaudit(*words, "--quiet").err == ""
