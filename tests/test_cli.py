"""The command line from end to end: exit codes, options, targets, formats, and errors in one line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from auditor import __version__, audit, cli, rulebook
from auditor.gather.walk import LOADERS
from auditor.host import live as seam
from auditor.host.request import Capture
from auditor.recording import recording
from auditor.report import audit_page, report_json, rule_page
from tests import shared
from tests.fake import CommandLine, FakeHost
from tests.golden import CANONICAL, EXPECTED, HOSTS, OLDER, cases, report_of
from tests.shared import name_of

REC = OLDER / CANONICAL
SEVERITIES = {"low": 11, "medium": 12, "high": 13, "critical": 14}
ZAUDIT = (sys.executable, "-m", "auditor")
RULE = """
title = "A rule of the user"
severity = "{severity}"
subject = "host"
harm = "hygiene"
expect = "{expect}"
impact = "Something."
why = "Because."
references = ["site policy"]
[fix]
text = "Mend it."
cost = "safe"
[[example]]
name = "pass"
given = {{ "host.memory_bytes" = {good} }}
verdict = "pass"
[[example]]
name = "fail"
given = {{ "host.memory_bytes" = {bad} }}
verdict = "fail"
[[example]]
name = "unknown"
given = {{}}
verdict = "unknown"
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder of rules that fail with each severity, one that passes and one that nobody can decide."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for severity in SEVERITIES:
        text = RULE.format(severity=severity, expect="host.memory_bytes < 1", good=0, bad=1)
        (folder / f"my-{severity}.toml").write_text(text)
    (folder / "my-pass.toml").write_text(RULE.format(severity="low", expect="host.memory_bytes > 1", good=2, bad=1))
    unknown = RULE.format(
        severity="high", expect="host.memory_bytes % (host.memory_bytes - host.memory_bytes) > 1", good=2, bad=1
    )
    (folder / "my-unknown.toml").write_text(unknown)
    return folder


def shell(*words: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LC_ALL")
    }
    return subprocess.run(
        [*ZAUDIT, *map(str, words)],
        capture_output=True,
        env={**clean, **environment},
        cwd=shared.ROOT,
        check=False,
    )


# -- exit codes -------------------------------------------------------------------------------------------------------


def of_each_exit_code() -> dict[int, Path]:
    """A recorded host each; tests/whole/test_hosts.py holds what every one of them comes to."""
    found = re.findall(r"^(.*): .*, exit code (\d+)$", EXPECTED.read_text(), re.MULTILINE)
    return {int(code): HOSTS / name for name, code in found}


@pytest.mark.parametrize(("code", "case"), of_each_exit_code().items())
def test_the_exit_code_is_that_of_the_report(code: int, case: Path, zaudit: CommandLine) -> None:
    done = zaudit("check", "--replay", case)
    assert done.code == code
    assert done.err == ""
    assert f"exit code {done.code}" in done.out


@pytest.mark.parametrize(
    ("rules", "threshold", "code"),
    [
        (["my-pass"], "low", 0),
        (["my-low"], "low", 11),
        (["my-medium"], "low", 12),
        (["my-high"], "low", 13),
        (["my-critical"], "low", 14),
        (["my-unknown"], "low", 13),
        (["my-unknown", "my-pass"], "low", 13),
        (["my-unknown", "my-low"], "low", 13),
        (["my-low", "my-critical", "my-unknown"], "low", 14),
        (["my-low"], "medium", 0),
        (["my-medium"], "high", 0),
        (["my-high"], "high", 13),
        (["my-high"], "critical", 0),
        (["my-unknown"], "high", 13),
        (["my-unknown"], "critical", 0),
        (["my-low", "my-unknown"], "medium", 13),
        (["my-critical"], "critical", 14),
    ],
)
def test_exit_codes(rules: list[str], threshold: str, code: int, mine: Path, zaudit: CommandLine) -> None:
    chosen = [word for rule in rules for word in ("--rule", rule)]
    for format_ in ("terminal", "json"):
        done = zaudit("check", "--replay", REC, "--rules", mine, *chosen, "--fail-on", threshold, "--format", format_)
        assert (done.code, done.err) == (code, "")
    document = json.loads(done.out)
    assert document["exit_code"] == code
    assert {each["rule"] for each in document["findings"]} == set(rules) - {"my-pass"}


@pytest.mark.parametrize(
    ("rules", "code"), [(["my-unknown"], 10), (["my-unknown", "my-low"], 11), (["my-critical", "my-unknown"], 14)]
)
def test_exit_codes_of_failures_alone(rules: list[str], code: int, mine: Path, zaudit: CommandLine) -> None:
    chosen = [word for rule in rules for word in ("--rule", rule)]
    assert zaudit("check", "--replay", REC, "--rules", mine, *chosen, "--failed-only").code == code


def test_what_is_left_out_is_said_with_its_severity(tmp_path: Path, zaudit: CommandLine) -> None:
    host = HOSTS / "2.3-sync-disabled-local"
    done = zaudit("check", "--replay", host, "--skip", "sync-disabled")
    assert "(1 RULE WAS LEFT OUT, THE MOST SEVERE CRITICAL)" in done.out
    assert "Left out by --skip: sync-disabled (critical)." in " ".join(done.out.split())
    (tmp_path / "p.toml").write_text('[rules]\nsync-disabled = "off"\nsync-ancestor-trap = "low"\n')
    words = ("check", "--replay", host, "--policy", tmp_path / "p.toml", "--format", "json")
    off, lowered = json.loads(zaudit(*words).out)["left_out"]
    assert (off["rule"], off["severity"], off["by"]) == ("sync-disabled", "critical", f"policy {tmp_path / 'p.toml'}")
    assert (lowered["rule"], lowered["counts_as"]) == ("sync-ancestor-trap", "low")
    done = zaudit("check", "--replay", host, "--rule", "sync-always")
    assert "RULES WERE LEFT OUT, THE MOST SEVERE CRITICAL)" in done.out
    assert re.search(r"Left out by --rule: .* and \d\d\d more", " ".join(done.out.split()))


def test_skip(mine: Path, zaudit: CommandLine) -> None:
    words = (
        "check",
        "--replay",
        REC,
        "--rules",
        mine,
        "--format",
        "json",
        "--skip",
        "my-critical",
        "--skip",
        "sync-disabled",
    )
    rules = {each["rule"] for each in json.loads(zaudit(*words).out)["findings"]}
    assert "my-high" in rules
    assert not rules & {"my-critical", "sync-disabled"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--rule", "no-such"], "no rule 'no-such'"),
        (["--skip", "no-such"], "no rule 'no-such'"),
        (["--rule", "sync-disabled", "--skip", "sync-disabled"], "no rule is left to run"),
        (["--rules", "/nonexistent"], "no such folder of rules"),
        (["--record", "x"], "--record needs a live check"),
        (["--frobnicate"], "No such option"),
        (["--format", "yaml"], "Invalid value"),
        (["--fail-on", "bad"], "Invalid value"),
        (["--timeout", "0"], "Invalid value"),
        (["--timeout", "nan"], "'nan' is not a number of seconds"),
        (["--deadline", "-1"], "Invalid value"),
        (["--deadline", "inf"], "Invalid value"),
        (["--timeout", "inf"], "Invalid value"),
        (["--db", "postgres=here"], "absolute path"),
        (["--db", "sqlite=/srv/x.db"], "not of SQLite"),
        (["--db", "oracle"], "NAME is one of postgres, mysql"),
        (["--db", "postgres="], "NAME is one of"),
        (["--db", "etcd=http://db1:2379"], "a DSN goes with postgres, mysql, mariadb only"),
        (["--db", "postgres=postgresql://u:hunter2@db1/app"], "no password here"),
        (["--db", "mysql=mysql://u@db1?password=hunter2"], "no password here"),
        (["--db", "postgres=service=x", "--verify"], "--verify"),
        (["--output", "/nonexistent/x"], "No such file"),
        (["--output", "/"], "directory"),
    ],
)
def test_usage(words: list[str], says: str, zaudit: CommandLine) -> None:
    done = zaudit("check", "--replay", REC, *words)
    assert done.code == 2
    assert says in done.err
    assert done.out == ""
    assert "Traceback" not in done.err
    assert "hunter2" not in done.err


@pytest.mark.parametrize(
    "words",
    [["frobnicate"], ["--frobnicate"], ["explain"], ["explain", "--event", "nothing"], ["record"], ["rules", "--x"]],
)
def test_usage_of_other_commands(words: list[str], zaudit: CommandLine) -> None:
    done = zaudit(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err


def test_a_broken_rule_of_the_user(tmp_path: Path, zaudit: CommandLine) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    for text, says in (
        (RULE.format(severity="low", expect="host.memory_byte > 1", good=2, bad=1), "host.memory_byte"),
        ("title = \x1b[31m", "my.toml"),
        ("", "needs"),
    ):
        (folder / "my.toml").write_text(text)
        done = zaudit("check", "--replay", REC, "--rules", folder)
        assert (done.code, done.out) == (2, "")
        assert says in done.err
        assert done.err.count("\n") == 1
        assert "\x1b" not in done.err
    (folder / "my.toml").rename(folder / "sync-disabled.toml")
    (folder / "sync-disabled.toml").write_text(
        RULE.format(severity="low", expect="host.memory_bytes > 1", good=2, bad=1)
    )
    assert "sync-disabled exists already" in zaudit("rules", "--rules", folder).err


def test_what_is_no_recording(tmp_path: Path, zaudit: CommandLine) -> None:
    (tmp_path / "x.tar.gz").write_bytes(b"x")
    for path, says in (
        (tmp_path, "not a zaudit recording"),
        (tmp_path / "none", "no such file"),
        (tmp_path / "x.tar.gz", "x.tar.gz"),
    ):
        done = zaudit("check", "--replay", path)
        assert (done.code, done.out) == (2, "")
        assert says in done.err
        assert done.err.count("\n") == 1


# -- output -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["terminal", "json"])
def test_output_is_what_would_have_been_printed(format_: str, tmp_path: Path, zaudit: CommandLine) -> None:
    printed = zaudit("check", "--replay", REC, "--format", format_)
    written = zaudit("check", "--replay", REC, "--format", format_, "-o", tmp_path / "out")
    assert written.out == ""
    assert written.code == printed.code
    assert "exit code" in written.err
    assert (tmp_path / "out").read_text(encoding="utf-8") == printed.out


def test_verbose(zaudit: CommandLine) -> None:
    """Evidence of what failed and is unknown, then of what passed as well."""
    brief, more, all_ = (zaudit("check", "--replay", REC, *words).out for words in ((), ("-v",), ("-vv",)))
    assert [bool(re.search("^ +Seen ", page, re.MULTILINE)) for page in (brief, more, all_)] == [False, True, True]
    assert ["passed " in page for page in (brief, more, all_)] == [False, False, True]
    documents = [
        json.loads(zaudit("check", "--replay", REC, *words, "--format", "json").out) for words in (("-v",), ("-vv",))
    ]
    assert ["passes" in each for each in documents] == [False, True]


def test_a_focus_on_a_part_of_a_recording(zaudit: CommandLine) -> None:
    whole = json.loads(zaudit("check", "--replay", REC, "--format", "json").out)
    names = {each["name"] for _, each in report_json.unfolded(whole) if each["kind"] == "dataset"}
    part = json.loads(zaudit("check", "tank/db", "--replay", REC, "--format", "json").out)
    inside = {each["name"] for _, each in report_json.unfolded(part) if each["kind"] == "dataset"}
    assert part["targets"] == ["tank/db"]
    assert inside
    assert all(name == "tank/db" or name.startswith("tank/db/") for name in inside)
    assert inside == {name for name in names if name == "tank/db" or name.startswith("tank/db/")}
    assert part["coverage"]["rules"] == whole["coverage"]["rules"]
    for target, says in (
        ("tank/none", "tank/none"),
        ("other", "other"),
        ("/nowhere", "/nowhere"),
        ("tank@x", "snapshot"),
    ):
        done = zaudit("check", target, "--replay", REC)
        assert (done.code, done.out) == (3, "")
        assert "in this recording" in done.err
        assert says in done.err


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(), ids=name_of)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_too_long(case: Path, width: int) -> None:
    out = audit_page.write_text(report_of(case), width=width, verbose=2)
    assert [line for line in out.splitlines() if len(line) > width] == []
    assert max(map(len, out.splitlines())) > width * 0.8


def test_the_width_is_that_of_the_terminal(zaudit: CommandLine) -> None:
    zaudit.patch.setenv("COLUMNS", "60")
    out = zaudit("check", "--replay", REC, "-v").out
    assert out == audit_page.write_text(report_of(REC), width=60, verbose=1)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_rules_and_pages_fit(width: int, zaudit: CommandLine) -> None:
    zaudit.patch.setenv("COLUMNS", str(width))
    everything = shared.rules()
    of_check = [rule for rule in everything if not rule.of_verify and rule.head is None]
    table = rule_page.as_table(of_check, width, sum(rule.of_verify for rule in everything))
    assert zaudit("rules").out == table
    assert zaudit("explain", "sync-disabled").out == rule_page.page(rulebook.find((), "sync-disabled"), width)
    assert [line for line in table.splitlines() if len(line) > width] == []
    for rule in everything:
        for line in rule_page.page(rule, width).splitlines():
            # only what cannot be broken, a path or a command to paste, may stick out
            assert len(line) <= width or len(line.split()) == 1 or line.startswith(" " * 12), line


def test_rules_of_verify_are_none_of_a_check(zaudit: CommandLine) -> None:
    """They are listed where they are asked for, have their page, and a check with nothing else to run says so."""
    of_verify = {rule.id for rule in shared.rules() if rule.of_verify}
    assert {"fio-no-sync", "fsync-not-followed", "commit-latency"} <= of_verify
    assert of_verify.isdisjoint(rule.id for rule in shared.audited())
    assert of_verify.isdisjoint(each["id"] for each in json.loads(zaudit("rules", "--format", "json").out))
    alone = json.loads(zaudit("rules", "--subject", "run", "--format", "json").out)
    assert {each["id"] for each in alone} == of_verify
    assert zaudit("rules", "fio-").out.splitlines()[0] == "17 more judge runs of zaudit verify: --subject run"
    assert zaudit("explain", "fio-no-sync").out.startswith("fio-no-sync: ")
    done = zaudit("check", "--replay", REC, "--rule", "fio-no-sync")
    assert (done.code, done.out) == (2, "")
    assert "these judge runs of zaudit verify" in done.err


def test_color(zaudit: CommandLine) -> None:
    plain = zaudit("check", "--replay", REC).out
    assert "\x1b" not in plain
    zaudit.patch.setenv("FORCE_COLOR", "1")
    colored = zaudit("check", "--replay", REC).out
    assert "\x1b[" in colored
    assert re.sub(r" +$", "", re.sub(r"\x1b\[[0-9;]*m", "", colored), flags=re.M) == plain
    assert "\x1b" not in zaudit("check", "--replay", REC, "--format", "json").out
    zaudit.patch.setenv("NO_COLOR", "1")
    assert zaudit("check", "--replay", REC).out == plain


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    shared.briefly([({"LC_ALL": "C"},), ({"PYTHONIOENCODING": "ascii"},), ({"PYTHONIOENCODING": "latin-1"},)], quick=1),
)
@pytest.mark.parametrize("words", [("check", "--replay", REC, "-v"), ("rules",), ("explain", "sync-disabled")])
def test_ascii(words: tuple[str, ...], environment: dict[str, str]) -> None:
    done = shell(*words, **environment)
    assert done.returncode in (0, *SEVERITIES.values())
    assert done.stderr == b""
    assert done.stdout.isascii()
    assert len(done.stdout) > 500


@pytest.mark.slow
def test_utf8() -> None:
    assert "·" in shell("check", "--replay", REC, PYTHONIOENCODING="utf-8").stdout.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("check", "--replay", REC, "-v"), ("rules", "--format", "json"), ("explain", "sync-disabled")]
)
def test_a_reader_that_goes_away(words: tuple[str, ...]) -> None:
    with subprocess.Popen(
        [*ZAUDIT, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=shared.ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(20) == 1


# -- targets ----------------------------------------------------------------------------------------------------------

MOUNTS = """25 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
40 25 0:35 / /tank/db rw shared:20 - zfs tank/db rw,xattr,posixacl
41 25 0:36 / /tmp rw shared:21 - tmpfs tmpfs rw
42 25 0:37 / /nfs rw shared:22 - nfs4 filer:/db rw,vers=4.2,soft,timeo=600
43 25 0:38 / /layer rw shared:23 - overlay overlay rw,lowerdir=/l,upperdir=/tank/docker/x/diff,workdir=/w
"""
LIST = b"tank\t1000\t100\t900\t10\t0\tONLINE\t123456789012\nbackup\t1000\t100\t900\t10\t0\tONLINE\t223456789012\n"
FILES = {"/sys/module/zfs/version": "2.3.9-1\n", "/proc/self/mountinfo": MOUNTS}


OWN = "kernel/fs/ext4/ext4.ko.xz:\n"
MODULES = {
    "/proc/filesystems": "nodev\tsysfs\n",
    "/proc/sys/kernel/osrelease": "6.12.57\n",
    "/usr/lib/modules/6.12.48/modules.dep": OWN + "updates/dkms/zfs.ko.xz: updates/dkms/spl.ko.xz\n",
    "/usr/lib/modules/6.12.57/modules.dep": OWN,
}


def with_pools() -> FakeHost:
    commands: dict[tuple[str, ...], Capture] = {
        ("zpool", "list"): Capture(0, LIST),
        ("zfs", "list"): Capture(0, b"tank\ntank/db\ntank/db/wal\n"),
        ("zfs", "get"): Capture(0, b"tank/db\tsync\tstandard\tdefault\n"),
    }
    paths = {path: path for path in ("/tank/db", "/tank/db/pgdata", "/tmp/x", "/usr", "/nfs/pg", "/layer")}
    return FakeHost(commands, FILES, {**paths, "/data": "/tank/db/pgdata"})


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("tonk", "no pool tonk; similar: tank"),
        ("zzz", "no pool zzz is imported; there are: tank, backup"),
        ("zzz/db", "no pool zzz is imported"),
        ("tank/db@monday", "is a snapshot; name its dataset tank/db"),
        ("tank/db#mark", "is a bookmark; name its dataset tank/db"),
        ("/usr", "/usr is not on ZFS: it is on ext4 (/dev/vda1, mounted at /)"),
        ("/tmp/x", "it is on tmpfs (tmpfs, mounted at /tmp): memory, which every restart empties"),
        ("/nfs/pg", "it is on nfs4 (filer:/db, mounted at /nfs): run zaudit on the server"),
        ("/nfs/pg", "mounted soft, so a server that is slow to answer costs writes"),
        (
            "/layer",
            "it is on overlay (overlay, mounted at /layer): a layer of a container, whose files lie in /tank/docker",
        ),
        ("/none", "/none: no such file or folder"),
        ("/dev/zvol/tonk/vol", "no pool tonk; similar: tank"),
        ("t\x1b[31m", r"no pool t\x1b[31m"),
    ],
)
def test_no_such_target(target: str, says: str, zaudit: CommandLine) -> None:
    zaudit.host = with_pools()
    done = zaudit("check", target)
    assert (done.code, done.out) == (3, "")
    assert says in done.err
    assert done.err.startswith("zaudit: ")
    assert done.err.count("\n") == 1
    assert "\x1b" not in done.err


@pytest.mark.parametrize(
    ("words", "place", "says"),
    [
        (("check", "--record"), "none/rec.tar.gz", "none: No such file or directory"),
        (("record", "-o"), "none/rec.tar.gz", "none: No such file or directory"),
        (("check", "--record"), "", "exists and is not a recording"),
        (("record", "-o"), "mine", "exists and is not a recording"),
    ],
)
def test_a_place_that_no_recording_can_have_is_known_before_anything_is_asked(
    words: tuple[str, ...], place: str, says: str, tmp_path: Path, zaudit: CommandLine
) -> None:
    (tmp_path / "mine").touch()
    zaudit.host = with_pools()
    done = zaudit(*words, tmp_path / place, "tank")
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert zaudit.host.ran == []
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_recording_that_cannot_be_written_costs_no_report(
    tmp_path: Path, zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    zaudit.host = with_pools()
    report = zaudit("check", "tank").out
    monkeypatch.setattr(recording, "write", full)
    done = zaudit("check", "tank", "--record", tmp_path / "rec")
    assert (done.code, done.out) == (1, report)
    assert done.err == "zaudit: No space left on device\n"


def test_no_such_dataset_names_those_near_it(zaudit: CommandLine) -> None:
    zaudit.host = with_pools()
    missing = Capture(1, b"", b"cannot open 'tank/dv': dataset does not exist\n")
    commands = {**zaudit.host.commands, ("zfs", "list", "-H", "-r"): missing, ("zfs", "get"): missing}
    zaudit.host = FakeHost(commands, FILES)
    done = zaudit("check", "tank/dv")
    assert (done.code, done.out) == (3, "")
    assert "no dataset tank/dv; similar: tank/db" in done.err


def test_a_replay_names_those_near_it_as_well(zaudit: CommandLine) -> None:
    done = zaudit("check", "--replay", REC, "tank/dbb")
    assert (done.code, done.out) == (3, "")
    assert done.err == "zaudit: in this recording: no dataset tank/dbb; similar: tank/db, tank/db/wal, tank\n"


@pytest.mark.parametrize("target", ["tank/db", "tank/db/", "/tank/db", "/tank/db/pgdata", "/data", "/dev/zvol/tank/db"])
def test_ways_to_name_a_dataset(target: str, zaudit: CommandLine) -> None:
    zaudit.host = with_pools()
    done = zaudit("check", target, "--format", "json", "--rule", "sync-disabled", "-vv")
    assert done.err == ""
    document = json.loads(done.out)
    assert document["targets"] == [target]
    assert [each["name"] for each in report_json.spread(document["passes"], document["names"])] == ["tank/db"]


def test_all_pools_when_none_is_named(zaudit: CommandLine) -> None:
    zaudit.host = with_pools()
    done = json.loads(zaudit("check", "--format", "json").out)
    assert set(done["targets"]) == {"tank", "backup"}


@pytest.mark.parametrize(
    "listed",
    [
        Capture(0, LIST.splitlines(True)[0]),
        Capture(0, b""),
        Capture(1, b"", b"internal error"),
        Capture(None, b"", b"", 30.0, "no answer within 30 s"),
    ],
)
def test_a_pool_that_zpool_list_leaves_out_is_not_missed(listed: Capture, zaudit: CommandLine) -> None:
    kernel = {f"/proc/spl/kstat/zfs/{pool}/state": "ONLINE\n" for pool in ("tank", "backup")}
    zaudit.host = FakeHost({**with_pools().commands, ("zpool", "list"): listed}, {**FILES, **kernel})
    done = json.loads(zaudit("check", "--format", "json").out)
    assert set(done["targets"]) == {"tank", "backup"}


def test_nothing_to_audit(zaudit: CommandLine) -> None:
    zaudit.host = FakeHost()
    done = zaudit("check")
    assert (done.code, done.out) == (3, "")
    assert "OpenZFS is not loaded here (/sys/module/zfs/version: no such file)" in done.err
    assert not LOADERS & {argv[0] for argv in zaudit.host.ran}, "zpool list would load the module"
    done = zaudit("check", "/usr")
    assert (done.code, done.out) == (3, "")
    zaudit.host = FakeHost({}, MODULES)
    done = zaudit("check")
    assert (done.code, done.out) == (3, "")
    assert "no zfs module for 6.12.57, which runs\n" in done.err
    assert "zfs among the modules of 6.12.48" in done.err
    assert done.err.endswith("no such file); of the host: high running-kernel-without-zfs\n")
    assert not LOADERS & {argv[0] for argv in zaudit.host.ran}
    assert "Fix" not in zaudit("check", "--quiet").err
    assert "running-kernel-without-zfs" in zaudit("check", "--format", "nagios").out
    assert "of the host" not in zaudit("check", "tank").err, "whoever names a pool asks about that"
    unmounted = {path: text for path, text in FILES.items() if "mountinfo" not in path}  # what is mounted is imported
    zaudit.host = FakeHost({("zpool", "list"): Capture(0, b"", b"no pools available\n")}, unmounted)
    done = zaudit("check")
    assert (done.code, done.out) == (3, "")
    assert "no pool is imported" in done.err
    done = zaudit("check", "tank")
    assert (done.code, done.out) == (3, "")
    assert "no pool tank" in done.err


def test_a_pool_that_nobody_could_look_for_is_unknown_not_fine(zaudit: CommandLine) -> None:
    denied = Capture(1, b"", b"Permission denied the ZFS utilities must be run as root.\n")
    zaudit.host = FakeHost({("zpool",): denied, ("zfs",): denied, ("zdb",): denied}, FILES, euid=1000)
    done = zaudit("check", "tank", "--format", "json", "-v")
    document = json.loads(done.out)
    assert done.code == 14
    assert document["standing"] == "cannot tell"
    assert "run as root" in [each["remedy"] for each in document["coverage"]["remedies"]]


def test_record_and_replay(tmp_path: Path, zaudit: CommandLine) -> None:
    zaudit.host = with_pools()
    live = zaudit("check", "tank/db", "--record", tmp_path / "rec", "--format", "json")
    assert zaudit("check", "--replay", tmp_path / "rec", "--format", "json").out == live.out
    done = zaudit("record", "tank/db", "-o", tmp_path / "rec.tar.gz")
    assert (done.code, done.out) == (0, "")
    assert "commands" in done.err
    assert zaudit("check", "--replay", tmp_path / "rec.tar.gz", "--format", "json").out == live.out
    assert recording.load(tmp_path / "rec").targets == ("tank/db",)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("x")
    done = zaudit("check", "tank/db", "--record", tmp_path / "mine")
    assert done.code == 2
    assert "does not overwrite" in done.err


def test_record_of_nothing_writes_nothing(tmp_path: Path, zaudit: CommandLine) -> None:
    zaudit.host = FakeHost()
    assert zaudit("record", "-o", tmp_path / "rec").code == 3
    assert list(tmp_path.iterdir()) == []


def test_redacted_record(tmp_path: Path, zaudit: CommandLine) -> None:
    zaudit.host = with_pools()
    zaudit.host = FakeHost(zaudit.host.commands, {**FILES, "/proc/sys/kernel/hostname": "secrethost\n"})
    assert zaudit("record", "tank/db", "--redact", "-o", tmp_path / "rec").code == 0
    assert not any(b"secrethost" in path.read_bytes() for path in (tmp_path / "rec").iterdir())


# -- the rest ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["boom", "two\nlines \x1b[31m"])
def test_an_internal_error_is_one_line(text: str, zaudit: CommandLine) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(text)

    zaudit.patch.setattr(audit, "judge", broken)
    done = zaudit("check", "--replay", REC)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("zaudit: internal error, please report it: RuntimeError: ")
    assert done.err.count("\n") == 1
    assert "\x1b" not in done.err
    zaudit.patch.setenv("ZAUDIT_DEBUG", "1")
    with pytest.raises(RuntimeError, match=text.split("\n")[0]):
        zaudit("check", "--replay", REC)


@pytest.mark.slow
def test_version_and_what_it_does_not_import() -> None:
    done = shell("--version")
    assert done.stdout.decode() == f"zaudit {__version__}\n"
    names = {"rich", "pyudev", "tomllib", "auditor.audit", "auditor.report.audit_page"}
    script = (
        "import sys\nfrom auditor import cli\nsys.argv = ['zaudit', {words}]\n"
        "try: cli.run()\nexcept SystemExit: pass\n"
        "print(sorted({names} & set(sys.modules)))"
    )
    heavy = {"--version": "[]", "rules": "['tomllib']"}
    for words, modules in heavy.items():
        code = script.format(words=repr(words), names=names)
        shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert shown.stdout.splitlines()[-1] == modules, words


@pytest.mark.parametrize(
    "words", [["--help"], ["-h"], ["check", "--help"], ["record", "-h"], ["rules", "-h"], ["explain", "-h"]]
)
def test_help(words: list[str], zaudit: CommandLine) -> None:
    done = zaudit(*words)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: ")
    assert max(map(len, done.out.splitlines())) <= 100


def test_rules(mine: Path, zaudit: CommandLine) -> None:
    listed = json.loads(zaudit("rules", "--format", "json", "--rules", mine).out)
    table = zaudit("rules", "--rules", mine)
    assert (table.code, table.err) == (0, "")
    ids = [rule["id"] for rule in listed]
    assert {"sync-disabled", "my-critical"} <= set(ids)
    assert len(ids) == len(set(ids)) >= 40
    for rule in listed:
        assert rule["title"]
        assert rule["severity"] in SEVERITIES
        assert len(rule["examples"]) >= 3
        assert re.search(rf"^{rule['severity']} +{rule['id']} ", table.out, re.M)


def test_explain(mine: Path, zaudit: CommandLine) -> None:
    done = zaudit("explain", "sync-disabled")
    assert (done.code, done.err) == (0, "")
    for words in ("sync-disabled: ", "Severity", "Why", "Fix", "zfs set sync=standard", "Sources", "Examples"):
        assert words in done.out
    assert "site policy" in zaudit("explain", "my-low", "--rules", mine).out
    done = zaudit("explain", "frobnicate")
    assert (done.code, done.out) == (2, "")
    assert "no rule 'frobnicate', and none speaks of it" in done.err


# -- policy -----------------------------------------------------------------------------------------------------------

WAIVER = """
[[waiver]]
rule = "sync-disabled"
dataset = "tank"
owner = "ann"
reason = "scratch"
expires = 2099-01-01
"""


def test_a_policy_is_followed_and_one_that_cannot_be_read_stops(tmp_path: Path, zaudit: CommandLine) -> None:
    path = tmp_path / "zaudit.toml"
    path.write_text(WAIVER)
    done = zaudit("check", "--replay", REC, "--policy", path, "--rule", "sync-disabled")
    assert (done.code, done.err) == (0, "")
    assert "WAIVED    sync-disabled" in done.out
    path.write_text(WAIVER.replace("owner", "onwer"))
    for words in (("check", "--replay", REC), ("verify", "tank"), ("record", "-o", tmp_path / "r")):
        done = zaudit(*words, "--policy", path)
        assert (done.code, done.out) == (2, "")
        assert done.err == f"zaudit: {path}, line 2: owner missing\n"
    done = zaudit("check", "--replay", REC, "--policy", tmp_path / "none.toml")
    assert (done.code, done.err) == (2, f"zaudit: {tmp_path / 'none.toml'}: No such file or directory\n")
    path.write_bytes(b"[rules]\n# caf\xe9\n")
    assert zaudit("check", "--replay", REC, "--policy", path).err == f"zaudit: {path}, line 2: not UTF-8\n"


def test_the_policy_of_a_recording_is_followed_and_another_replaces_it(tmp_path: Path, zaudit: CommandLine) -> None:
    from dataclasses import replace

    past = recording.load(REC)
    kept = {**past.options, "policy": WAIVER, "policy_path": "/etc/zaudit/zaudit.toml"}
    recording.write(replace(past, options=kept), tmp_path / "rec.tar.gz")
    first, second = (zaudit("check", "--replay", tmp_path / "rec.tar.gz", "--format", "json") for _ in range(2))
    assert first == second
    document = json.loads(first.out)
    assert document["policy"] == "/etc/zaudit/zaudit.toml"
    assert [finding["rule"] for finding in document["waived"]] == ["sync-disabled"]
    done = zaudit("check", "--replay", tmp_path / "rec.tar.gz", "--policy", "/dev/null", "--format", "json")
    assert json.loads(done.out)["waived"] == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"database": "oracle"}, "recorded with the database 'oracle'; this zaudit knows postgres, mysql"),
        ({"database": "oracle", "connection": "x"}, "the database 'oracle'"),
        ({"database": "sqlite", "connection": "x"}, "a connection to sqlite, which cannot be asked"),
        ({"connection": "x"}, "a connection to no database, which"),
        ({"policy_path": "p.toml", "policy": "a = " + "[" * 100_000}, "p.toml: nested too deeply"),
        ({"policy_path": "p.toml", "policy": "a = " + "9" * 5000}, "p.toml: a number with too many digits"),
    ],
)
def test_a_recording_with_options_that_there_are_not(
    options: dict[str, str], says: str, tmp_path: Path, zaudit: CommandLine
) -> None:
    from dataclasses import replace

    path = tmp_path / "rec.tar.gz"
    recording.write(replace(recording.load(REC), options=options), path)
    for words in (("check", "--replay", path), ("diff", path, path), ("policy", "init", "--replay", path)):
        done = zaudit(*words)
        assert (done.code, done.out) == (2, "")
        assert says in done.err
        assert done.err.count("\n") == 1


def test_the_latest_time_that_is_read_is_one_in_every_command(tmp_path: Path, zaudit: CommandLine) -> None:
    """policy init adds 90 days to it."""
    from dataclasses import replace

    path = tmp_path / "rec.tar.gz"
    recording.write(replace(recording.load(REC), taken=recording.LAST), path)
    for words in (("check", "--replay", path), ("diff", path, path), ("policy", "init", "--replay", path)):
        assert "internal error" not in zaudit(*words).err
    assert zaudit("policy", "init", "--replay", path, "-o", tmp_path / "policy").code == 0


# Runs zaudit where memory ends when the module of the first argument is imported, or when a thread is started.
WITHOUT_MEMORY = """
import sys, threading
import auditor.__main__ as entry
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            raise MemoryError
def start(self):
    raise RuntimeError("can't start new thread")
MODULE = sys.argv.pop(1)
if MODULE == "thread":
    threading.Thread.start = start
sys.meta_path.insert(0, Finder())
entry.main()
"""


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("auditor.cli", "not enough memory"),
        ("auditor.commands.golive", "not enough memory"),
        ("auditor.commands._auditing", "not enough memory"),
        ("thread", "no thread can be started"),
    ],
)
def test_without_memory_it_ends_with_one_sentence(module: str, says: str) -> None:
    words = [sys.executable, "-c", WITHOUT_MEMORY, module, "check", "--format", "nagios", "--replay", "/none"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stderr.startswith(f"zaudit: {says}")
    assert done.stderr.count("\n") == 1
    assert done.returncode in (2, 3)  # 3 where a plugin could still answer


def test_policy_init_writes_one_that_parses_and_decides_nothing(tmp_path: Path, zaudit: CommandLine) -> None:
    from auditor.judge.policy_file import parse

    path = tmp_path / "zaudit.toml"
    done = zaudit("policy", "init", "--replay", REC, "-o", path)
    assert done.code == 0
    text = path.read_text()
    policy = parse(text, "p")
    assert (policy.datasets, dict(policy.rules), policy.waivers) == ((), {}, ())
    assert '# [datasets."tank/db/wal"]' in text
    assert text.count('# rule = "sync-disabled"') == 1
    lines = text.splitlines()
    begin = lines.index("# [[waiver]]")
    waiver = "\n".join(line.removeprefix("# ").replace('""', '"x"') for line in lines[begin : begin + 6])
    (found,) = parse(waiver, "p").waivers
    assert (found.rule, found.scope, found.name) == ("sync-disabled", "dataset", "tank")
    assert zaudit("policy", "init", "--replay", REC, "-o", path).code == 2


@pytest.mark.parametrize("words", [["check"], ["record", "-o", "new"], ["policy", "init"]])
def test_a_machine_is_asked_with_a_deadline(words: list[str], zaudit: CommandLine, tmp_path: Path) -> None:
    asked: list[tuple[float, ...]] = []

    def live(*limits: float) -> FakeHost:
        asked.append(limits)
        return FakeHost()

    zaudit.patch.chdir(tmp_path)
    zaudit.patch.setattr(seam, "LiveHost", live)
    for more in ([], ["--deadline", "7", "--timeout", "3"], ["--deadline", "0"]):
        assert zaudit(*words, *more).code == 3
    assert asked == [(30.0, 900.0), (3.0, 7.0), (30.0, 0.0)]


def _commands() -> Iterator[str]:
    """Those of all modules, without those of a command."""
    for path in (Path(cli.__file__).parent / "commands").glob("[a-z]*.py"):
        module = import_module(f"auditor.commands.{path.stem}")
        every = {name: each for name, each in vars(module).items() if isinstance(each, click.Command)}
        below = [each for group in every.values() if isinstance(group, click.Group) for each in group.commands.values()]
        yield from (name for name, each in every.items() if each not in below)


def test_the_help_is_one_screen_and_names_every_command_by_when_it_is_needed(
    zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = zaudit("--help").out.splitlines()
    titles = [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith((" ", "Options"))]
    assert titles == list(cli.GROUPS)
    named = [line.split()[0] for line in lines if line.startswith("  ") and line.split()[0] in cli.COMMANDS]
    assert named == list(cli.COMMANDS)
    assert sorted(named) == sorted(_commands())
    assert len(lines) <= 40
