"""A run of every night: ``zaudit baseline update FILE`` from end to end, and what every format makes of it."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from auditor.commands import nightly as command
from auditor.facts import Facts
from auditor.host.request import Capture
from auditor.judge import baseline
from auditor.judge.finding import RANK
from auditor.recording import recording
from auditor.report import formats
from tests.fake import CommandLine
from tests.golden import CANONICAL, HOSTS, OLDER, SCHEMAS, report_of

REC = OLDER / CANONICAL
STABLE = 2  # of these: what will have no answer tomorrow, either
UNDECIDED = report_of(REC).coverage.undecided  # rules on that host: grows with rules whose facts it was not asked for


@pytest.fixture
def known(zaudit: CommandLine, tmp_path: Path) -> Path:
    """A baseline with the failures of the recorded host."""
    path = tmp_path / "known.json"
    done = zaudit("baseline", "accept", path, "--replay", REC)
    assert done.code == 14, "as tomorrow: what may have an answer then is not accepted"
    assert done.out.startswith(f"zlab: {UNDECIDED - STABLE} unknown, {2 + STABLE} known; unknown: ")
    assert "2 failures and 2 unknowns are known" in done.err
    assert (
        f"{UNDECIDED - STABLE} unknown rules are not accepted: they may have an answer tomorrow, and count" in done.err
    )
    assert "not in the recording (record again)" in done.err
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
    done = zaudit("baseline", "update", known, "--replay", blind)
    assert done.code == 14, "what cannot be seen is not fixed"
    assert done.out.count("timed out after 30 s") == 1
    assert len(done.out) < 600
    assert "0 new" not in done.out
    was, now = ({each["rule"]: each for each in json.loads(text)["known"]} for text in (before, known.read_bytes()))
    assert now["sync-disabled"] == was["sync-disabled"]
    page = zaudit("baseline", "update", known, "--replay", blind, "--format", "terminal").out
    unseen = " ".join(page.partition("\nNOT SEEN ")[2].split())
    assert unseen.startswith("sync-disabled tank (critical, last seen 2026-11-21) ")
    again = zaudit("baseline", "update", known, "--replay", REC).out
    assert " new" not in again.partition(";")[0], "it does not come back as new"


def test_a_diff_tells_one_cause_once(zaudit: CommandLine, blind: Path) -> None:
    gone, back = zaudit("diff", REC, blind), zaudit("diff", blind, REC)
    for done in (gone, back):
        assert done.code == 14
        assert done.out.count("timed out after 30 s") < 8
        assert len(done.out.splitlines()) < 60
    assert "sync-disabled dataset tank had failed: it may not be fixed." in " ".join(gone.out.split())
    assert re.search(r"^NOT SEEN  \d\d rules on \d\d+ subjects, may be critical: ", gone.out, re.M)
    assert re.search(r"^SEEN      \d\d rules on \d\d+ subjects, would have been ", back.out, re.M)


def test_the_night_after(zaudit: CommandLine, known: Path) -> None:
    done = zaudit("baseline", "update", known, "--replay", REC, "--format", "terminal")
    assert done.code == 14
    assert f"{UNDECIDED - STABLE} unknown · {2 + STABLE} known" in done.out
    assert "KNOWN     sync-disabled tank (critical, since 2026-11-21)" in done.out
    assert "Fix first" not in done.out
    assert "LOSES up to" in done.out, "what a power cut takes is not changed by knowing it"
    assert zaudit("baseline", "update", known, "--replay", REC, "--failed-only").code == 10


@pytest.mark.slow
def test_every_format_says_what_is_known(zaudit: CommandLine, known: Path) -> None:
    texts = {}
    for name in formats.names():
        done = zaudit("baseline", "update", known, "--replay", REC, "--format", name)
        assert "known" in done.out.lower() or name in ("sarif", "sarif-github", "npd"), name
        texts[name] = done.out
    schema = json.loads((SCHEMAS / "schema.json").read_text())
    document = json.loads(texts["json"])
    jsonschema.Draft202012Validator(schema).validate(document)
    assert [each["rule"] for each in document["findings"] if "known" in each and each["outcome"] == "fail"] == [
        "sync-disabled",
        "container-or-vm-blind",
    ]
    assert document["baseline"] == {"made": "2026-11-21", "known": 4, "unseen": [], "gone": []}
    states = [each["baselineState"] for each in json.loads(texts["sarif"])["runs"][0]["results"]]
    assert sorted(states) == ["new"] * (UNDECIDED - STABLE) + ["unchanged"] * (2 + STABLE)
    assert 'zaudit_findings{outcome="known",severity="critical"} 1' in texts["prometheus"]
    assert 'zaudit_findings{outcome="fail",severity="critical"} 0' in texts["prometheus"]
    assert texts["nagios"].startswith("ZAUDIT UNKNOWN - ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["update", "{}"], "there is no baseline yet; zaudit baseline accept {} makes one"),
        (["show", "{}"], "there is no baseline yet"),
        (["remove", "{}", "sync-disabled"], "there is no baseline yet"),
        (["accept", "{}/known.json"], "{}: No such file or directory"),
        (["update", "{0.parent}/other"], "not a baseline of zaudit"),
        (["update", "/dev/zero"], "zaudit writes plain files only"),
        (["accept", "/dev/zero"], "zaudit writes plain files only"),
    ],
)
def test_what_cannot_be(words: list[str], said: str, zaudit: CommandLine, tmp_path: Path) -> None:
    """Before the audit, which may take minutes."""
    (tmp_path / "other").write_text("db1\n")
    replay = [] if words[0] in ("show", "remove") else ["--replay", REC]
    done = zaudit("baseline", *(word.format(tmp_path / "none") for word in words), *replay)
    assert (done.code, done.out) == (2, "")
    assert said.format(tmp_path / "none") in done.err


@pytest.mark.slow
def test_a_baseline_of_another_host_is_refused(zaudit: CommandLine, known: Path) -> None:
    done = zaudit("baseline", "update", known, "--replay", HOSTS / "2.4-healthy-physical-no-cache")
    assert done.code == 2
    assert "another host: zlab, not db1" in done.err


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    """The same recording, whose host is called db7 today."""
    past = recording.load(REC)
    name = "/proc/sys/kernel/hostname"
    files = {
        each: was._replace(text={**was.text, name: "db7\n"} if name in was.text else was.text)
        for each, was in past.files.items()
    }
    assert files != past.files
    path = tmp_path / "db7"
    recording.write(replace(past, files=files), path)
    return path


def test_a_host_that_was_renamed_keeps_what_it_knows(zaudit: CommandLine, known: Path, renamed: Path) -> None:
    before = known.read_bytes()
    done = zaudit("baseline", "update", known, "--replay", renamed)
    assert (done.code, known.read_bytes()) == (2, before)
    assert "zaudit baseline accept --was zlab" in done.err
    assert zaudit("baseline", "accept", known, "--replay", renamed, "--was", "zlab").code == 14
    was, now = (json.loads(each) for each in (before, known.read_bytes()))
    assert (now["host"], now["known"]) == ("db7", was["known"])


def test_two_hosts_with_the_drives_of_one_know_nothing_of_each_other(
    zaudit: CommandLine, known: Path, renamed: Path
) -> None:
    done = zaudit("baseline", "accept", known, "--replay", renamed)
    assert done.code == 2
    rows = [json.loads(line) for line in zaudit("fleet", "judge", REC, renamed).out.splitlines()]
    hosts = {each["host"] for each in rows if each["kind"] == "finding" and each["rule"] == "sync-disabled"}
    assert len(hosts) == 2


def test_the_file_is_for_its_owner_and_replaced_as_a_whole(zaudit: CommandLine, known: Path) -> None:
    before = known.read_bytes()
    assert known.stat().st_mode & 0o777 == 0o600
    assert zaudit("baseline", "update", known, "--replay", REC).code == 14
    assert known.read_bytes() == before
    assert os.listdir(known.parent) == [known.name]


def test_a_quiet_night_is_quiet(zaudit: CommandLine, known: Path) -> None:
    words = ("baseline", "update", known, "--replay", REC)
    assert "are known" in zaudit(*words).err
    assert zaudit(*words, "--quiet").err == ""


def test_what_is_below_min_severity_is_counted_and_not_shown(zaudit: CommandLine) -> None:
    low = HOSTS / "2.2-sync-disabled-local"  # which has findings of every severity
    whole = zaudit("check", "--replay", low)
    part = zaudit("check", "--replay", low, "--min-severity", "high")
    assert part.code == whole.code == 14
    severities = [RANK[each.severity] for each in report_of(low).findings]
    below = sum(each < RANK["high"] for each in severities)
    assert "LOW  " in whole.out
    assert "LOW  " not in part.out
    assert f"{below} findings are below high and not shown (--min-severity)." in part.out
    page = zaudit("check", "--replay", low, "--min-severity", "critical", "--format", "html").out
    lower = sum(each < RANK["critical"] for each in severities)
    assert f"{lower} findings are below critical and not shown (--min-severity)." in page
    words = ("--format", "json")
    assert (
        zaudit("check", "--replay", low, *words, "--min-severity", "high").out
        == zaudit("check", "--replay", low, *words).out
    )


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o620, 0o602])
def test_a_live_check_follows_no_baseline_that_others_could_have_written(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "known.json"
    path.write_text(baseline.text(baseline.empty(Facts(), ())))
    path.chmod(mode)
    assert command._read(path, trusted=False) is not None
    # the group is that of the one who runs the tests, which for an ordinary user is himself
    if mode & 0o002 or (mode & 0o020 and os.geteuid() == 0):
        with pytest.raises(OSError, match="another user could have"):
            command._read(path, trusted=True)
    else:
        assert command._read(path, trusted=True) is not None


def test_what_a_baseline_knows_of_a_retired_rule_is_named_and_covers_nothing(
    zaudit: CommandLine, tmp_path: Path
) -> None:
    host, path = HOSTS / "2.3-healthy-single-slog", tmp_path / "known.json"
    words = (path, "--replay", host, "--rule", "slog-no-redundancy")
    assert zaudit("baseline", "accept", *words).code == 0
    path.write_text(path.read_text().replace('"slog-no-redundancy"', '"slog-unmirrored"'))
    done = zaudit("baseline", "update", *words)
    assert done.code == 13
    assert f"{path}: no effect, slog-unmirrored is retired: use rule slog-no-redundancy" in done.err
    assert "slog-no-redundancy" in done.out
    assert zaudit("baseline", "update", *words, "--quiet").err == ""
