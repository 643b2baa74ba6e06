"""The pure parts of the lab: scenario files, archives, the comparison. The lab itself is not run here: make lab-test."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests import shared
from tests.lab import cpio, fixed, machine, outcomes, provoked, scenario, tables, verdict
from tests.lab.guest import fixing
from tests.lab.machine import LINES
from tests.lab.scenario import Expected, PowerCut, Scenario, Step
from tests.lab.verdict import Outcome

pytestmark = pytest.mark.lab

TOOLS = ("mmdebstrap", "mke2fs", "xz", "unshare", "chroot", "apt-get")
SCENARIOS = scenario.everything()
RULES = {rule.id: rule for rule in shared.rules()}
REQUIRED = set(
    """
    healthy-mirrored-slog healthy-single-slog healthy-no-slog healthy-raidz1 healthy-draid special-as-log
    sync-disabled-local sync-disabled-inherited sync-disabled-received sync-ancestor-trap sync-apart-log-disabled
    sync-apart-data-disabled logbias-throughput-slog logbias-throughput-no-slog zfs-nocacheflush
    zfs-nocacheflush-modprobe zil-nocacheflush zil-nocacheflush-modprobe zil-replay-disabled
    zil-replay-disabled-modprobe write-through-before-import write-through-after-import sata-cache-on sata-cache-off
    slog-striped slog-legs-on-one-disk slog-shared-with-data slog-on-partition slog-on-luks slog-on-loop-file
    slog-on-ram-disk slog-removed degraded-mirror checksum-errors permanent-errors slog-missing-at-import
    suspended-wait suspended-continue ashift-9-on-512e ashift-mixed full-80 full-81 full-92 quota-tight
    refreservation-tight zvol-with-file-system encrypted-key-away unmounted odd-names datasets-500 no-pools
    module-not-loaded userland-older
    """.split()  # noqa: SIM905
)


def test_at_least_forty_and_every_state_that_was_asked_for() -> None:
    names = {each.name for each in SCENARIOS}
    assert len(names) >= 40
    assert names >= REQUIRED


@pytest.mark.parametrize("each", SCENARIOS, ids=lambda each: str(each.name))
def test_scenario_is_sound(each: Scenario) -> None:
    assert each.title[0].isupper() or each.title[0] in "'" or re.match(r"[a-z0-9_/=]", each.title)
    assert not each.title.endswith(".")
    assert subprocess.run(["bash", "-n"], input=each.setup.encode(), check=False).returncode == 0
    for rule in {*(one.rule for one in each.must), *each.may, *each.must_not, *each.undecided} - {verdict.ANY}:
        assert rule in RULES, rule
    for one in each.must:
        assert set(one.lines) <= set(LINES)
        kind = one.subject.split(" ")[0]
        assert kind in ("", RULES[one.rule].subject), one
        assert one.outcome in ("fail", "unknown")
    assert not {one.rule for one in each.must} & set(each.must_not)
    assert each.power_cut.because
    for step in each.fix:
        assert set(step.lines) <= set(each.lines) or step.lines == LINES
        assert {step.rule, *step.may} <= set(RULES), step
        said = RULES[step.rule].fix
        assert any(step.says in each.text for each in (said, *(case for case, _ in said.cases))), step
        assert step.says or said.command, step
        assert step.rule in {one.rule for one in each.must if one.outcome == "fail"} | set(each.may), step
        for text in (step.run, step.then):
            assert subprocess.run(["bash", "-n"], input=text.encode(), check=False).returncode == 0, text
    assert all(
        re.fullmatch(r"(nvme|sata|vblk):\d+G(!flush|!read)?(:[a-z_-]+=[\w -]+(,[a-z_-]+=\w+)*)?", disk)
        for disk in each.disks
    )


@pytest.mark.parametrize(
    "each", [each for each in SCENARIOS if each.power_cut.may_lose], ids=lambda each: str(each.name)
)
def test_what_may_lose_commits_is_a_finding_about_commits(each: Scenario) -> None:
    assert any(one.outcome == "fail" and RULES[one.rule].harm in ("commits", "corruption") for one in each.must)


def test_a_file_that_cannot_be_right_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    cut = '[power_cut]\ndrives = "honest"\nmay_lose = false\nbecause = "x"\n'
    for text, complaint in (
        ('title = "x"\nsetup = "true"\nwhat = 1\n' + cut, "unknown what"),
        ('title = "x"\nsetup = "true"\nlines = ["2.3"]\n' + cut, "either in lines or in not_on"),
        ('title = "x"\nsetup = "true"\n' + cut.replace("honest", "kind"), "drives 'kind'"),
        ('title = "x"\nsetup = "true"\n', "power_cut"),
    ):
        path.write_text(f"[one]\n{text}".replace("[power_cut]", "[one.power_cut]"))
        with pytest.raises(scenario.ScenarioError, match=f"^one: .*{re.escape(complaint)}"):
            list(scenario.load(path))


def test_scenarios_share_guests_but_not_those_that_spoil_them() -> None:
    groups = scenario.guests(SCENARIOS)
    assert sorted(each.name for group in groups for each in group) == sorted(each.name for each in SCENARIOS)
    assert len(groups) < len(SCENARIOS) / 2
    for group in groups:
        assert all(group[0].disks[: len(each.disks)] == each.disks for each in group)
        assert len(group) == 1 or not any(each.alone or each.module_of for each in group)


def test_a_line_from_source_is_left_out_where_it_was_not_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "CACHE", tmp_path)
    assert list(machine.available(None)) == [line for line in LINES if line not in machine.FROM_SOURCE]
    assert "OpenZFS 2.2 is not available" in capsys.readouterr().err
    assert machine.available(["2.2"]) == ["2.2"]
    with pytest.raises(machine.LabError, match=r"no guest for OpenZFS 2\.2"):
        machine.image("2.2")
    (tmp_path / "img" / "2.2").mkdir(parents=True)
    (tmp_path / "img" / "2.2" / "versions").write_text("zfs 2.2.11\nkernel 6.1\n")
    assert tuple(machine.available(None)) == LINES
    assert capsys.readouterr().err == ""


def build(cache: Path, *words: str, source: str = "") -> str:
    """What build.sh says on a host that has no tool to build with: it gets as far as that."""
    (cache / "bin").mkdir(exist_ok=True)
    for tool in ("bash", "dirname"):
        if not (cache / "bin" / tool).exists():
            (cache / "bin" / tool).symlink_to(str(shutil.which(tool)))
    done = subprocess.run(
        ["bash", str(Path(machine.__file__).with_name("build.sh")), *words],
        env={"PATH": str(cache / "bin"), "ZAUDIT_LAB": str(cache), "ZAUDIT_LAB_ZFS_SOURCE": source},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr


def test_what_builds_the_guests_knows_the_same_lines(tmp_path: Path) -> None:
    absent, next_question = "line 2.2 is not available", "missing on this host"
    for line in LINES:
        said = build(tmp_path, line)
        assert (absent in said) == (line in machine.FROM_SOURCE)
        assert (next_question in said) == (line not in machine.FROM_SOURCE)
        assert next_question in build(tmp_path, "--check", line, source="/a/repository")
    for words in ((), ("--check",)):
        assert re.fullmatch(rf".*{absent}.*\n.*{next_question}.*\n", build(tmp_path, *words))
        assert absent not in build(tmp_path, *words, source="/a/repository")
    assert "unknown line 2.5" in build(tmp_path, "2.5")
    (tmp_path / "root-2.2").mkdir()
    (tmp_path / "root-2.2" / "lab-zfs-version").write_text("2.2.11\n")
    assert absent not in build(tmp_path, "2.2")


META = "Meta:          1\nName:          zfs\nVersion:       {}\nRelease:       {}\n"


@pytest.mark.parametrize(
    ("version", "release", "said"),
    [
        ("2.2.9", "1", "build.sh: the Debian mirror file:///nowhere does not answer\n"),  # the next question
        ("2.2.0", "rc3", "has no release of line 2.2\n"),
        ("2.2.99", "1", "has no release of line 2.2\n"),
        ("2.3.1", "1", "has no release of line 2.2\n"),
        (
            "",
            "",
            "is neither a git repository of OpenZFS (git ls-remote refuses it) nor a folder with a release of it\n",
        ),
    ],
)
def test_the_source_of_a_guest_may_be_a_release_that_was_unpacked(
    version: str, release: str, said: str, tmp_path: Path
) -> None:
    for tool, output in {**dict.fromkeys(TOOLS, ""), "id": "0", "uname": "x86_64"}.items():
        stub = tmp_path / "bin" / tool
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(f"#!/bin/sh\necho {output}\n")
        stub.chmod(0o755)
    source = tmp_path / "zfs"
    source.mkdir()
    if version:
        (source / "META").write_text(META.format(version, release))
    done = subprocess.run(
        ["bash", str(Path(machine.__file__).with_name("build.sh")), "--check", "2.2"],
        env={
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
            "ZAUDIT_LAB": str(tmp_path / "cache"),
            "ZAUDIT_LAB_ZFS_SOURCE": str(source),
            "ZAUDIT_LAB_MIRROR": "file:///nowhere",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.endswith(said)
    assert done.stderr.count("\n") == 1


def test_archive_is_one_that_the_kernel_reads() -> None:
    archive = cpio.pack(cpio.files("in", {"a/b/file": b"content", "a/other": b""}))
    assert len(archive) % 512 == 0
    names: list[str] = []
    at = 0
    while not names or names[-1] != "TRAILER!!!":
        assert archive[at : at + 6] == b"070701"
        size, name = (int(archive[at + start : at + start + 8], 16) for start in (54, 94))
        names.append(archive[at + 110 : at + 110 + name - 1].decode())
        at += -(-(110 + name) // 4) * 4
        at += -(-size // 4) * 4
    assert names == ["in", "in/a", "in/a/b", "in/a/b/file", "in/a/other", "TRAILER!!!"]


def finding(rule: str, subject: str, outcome: str = "fail", severity: str = "high") -> dict[str, Any]:
    kind, name = subject.split(" ", 1)
    return {"rule": rule, "outcome": outcome, "severity": severity, "subjects": [{"kind": kind, "name": name}]}


def judged(root: list[dict[str, Any]], nobody: list[dict[str, Any]], **changes: Any) -> list[str]:
    cut = PowerCut("honest", may_lose=changes.pop("may_lose", True), because="x")
    standing = changes.pop("standing", "lost")
    must = (Expected("sync-disabled", "dataset tank/db"),)
    one = Scenario("name", "title", "true", cut, **{"must": must, **changes})
    reports = {"root": root, "nobody": nobody}
    files = {
        f"{user}/report.json": json.dumps({"standing": standing, "findings": each}).encode()
        for user, each in reports.items()
    }
    outcome = Outcome({"error": "", "checked": {"root": 14, "nobody": 14}, "disks": {"N0": "nvme7n1"}}, files)
    # no recording travels with these: every replay differs
    return [each for each in verdict.problems(one, "2.3", outcome, Path("/dev/null")) if "REPLAY" not in each]


def test_the_comparison() -> None:
    right = finding("sync-disabled", "dataset tank/db", severity="critical")
    assert judged([right], [right]) == []
    assert judged([right], [{**right, "outcome": "unknown"}]) == []
    assert judged([right], []) == ["NOBODY PASSED sync-disabled dataset tank/db"]
    assert judged([], [])[0].startswith("MISSING fail sync-disabled dataset tank/db")
    other = finding("slog-unhealthy", "pool tank")
    assert judged([right, other], [right, other]) == ["UNEXPECTED slog-unhealthy pool tank high"]
    assert judged([right, other], [right, other], may=("slog-unhealthy",)) == []
    assert judged([right, {**other, "severity": "low"}], [right, other]) == []
    assert judged([right, {**other, "severity": "low"}], [right, other], must_not=("slog-unhealthy",)) != []
    unsure = finding("usb-attached-vdev", "leaf x", "unknown")
    assert judged([right, unsure], [right]) == ["UNEXPECTED undecided usb-attached-vdev leaf x high"]
    assert judged([right, unsure], [right], undecided=(verdict.ANY,)) == []
    disk = finding("write-cache-forced-through", "disk nvme7n1")
    assert judged([disk], [disk], must=(Expected("write-cache-forced-through", "disk {N0}"),)) == []
    assert judged([right], [right], standing="kept")[0].startswith("MISS: ")
    assert judged([right], [right], standing="cannot tell") == []
    assert judged([right], [right], may_lose=False)[0].startswith("FALSE ALARM: ")


def test_outcomes_take_the_place_of_older_ones(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.json"
    outcomes.add([{"line": "2.3", "scenario": "b", "seconds": 1}, {"line": "2.1", "scenario": "b", "seconds": 2}], path)
    outcomes.add([{"line": "2.3", "scenario": "a", "seconds": 3}, {"line": "2.3", "scenario": "b", "seconds": 4}], path)
    assert [row["seconds"] for row in outcomes.read(path)] == [2, 3, 4]


def test_every_scenario_came_out_as_its_file_says() -> None:
    """Nearly all of them on 2.3. What a line has not run yet stands in README.md as "not run"."""
    rows, sound = outcomes.read(), {(line, each.name) for each in SCENARIOS for line in each.lines}
    ran = {(row["line"], row["scenario"]) for row in rows}
    assert ran <= sound
    assert sum(line == "2.3" for line, _ in ran) >= 55
    assert [row for row in rows if row["outcome"] != "ok"] == []
    assert [row for row in rows if row["may_lose"] and row["standing"] == "kept"] == []


@pytest.mark.parametrize("readme", tables.READMES, ids=lambda path: str(path.parent.name))
def test_the_tables_are_those_of_the_results(readme: Path) -> None:
    text = readme.read_text(encoding="utf-8")
    assert text.count("<!-- table: ") >= 1
    assert tables.filled(text) == text
    with pytest.raises(ValueError, match="no table 'dances'"):
        tables.filled("<!-- table: dances -->\n<!-- end -->")


def test_every_rule_is_provoked_or_it_is_said_why_not() -> None:
    states, hosts, why = provoked.by_scenario(), provoked.by_host(), provoked.reasons()
    seen = set(states) | set(hosts)
    assert set(provoked.rules()) - seen - set(why) == set(), "not provoked: say in the rule why (unprovoked = ...)"
    assert seen & set(why) == set(), "provoked: unprovoked must go from the rule"
    wrong = [rule for rule, reason in why.items() if len(reason) <= 20 or reason.endswith(".")]
    assert wrong == [], "unprovoked is a reason of more than 20 characters without a full stop"


def test_every_fix_of_a_rule_that_is_provoked_is_run_or_it_is_said_why_not() -> None:
    steps, why = set(fixed.by_scenario()), fixed.reasons()
    assert set(fixed.worth()) - steps - set(why) == set(), "neither run nor in unfixed.toml"
    assert steps & set(why) == set(), "run, and in unfixed.toml"
    assert steps | set(why) <= set(fixed.worth()), "of a rule that is not provoked, or is low"
    assert all(len(reason) > 20 and not reason.endswith(".") for reason in why.values())


def after_fix(
    before: list[dict[str, Any]], after: list[dict[str, Any]], ran: dict[str, Any], **changes: Any
) -> list[str]:
    cut = PowerCut("honest", may_lose=True, because="x")
    one = Scenario("name", "title", "true", cut, fix=(Step("sync-disabled", **changes),))
    reports = {"root/report.json": {"findings": before}, "fixed/report.json": {"findings": after}}
    ran = {"error": "", "before": {}, "after": {}, **ran}
    files = {name: json.dumps(each).encode() for name, each in {**reports, "fixed.json": ran}.items()}
    return list(fixed.problems(one, "2.3", Outcome({}, files)))


def test_whether_a_fix_fixed_it() -> None:
    failing, other = (
        finding("sync-disabled", "dataset tank/db"),
        finding("sync-always", "dataset tank/db", severity="low"),
    )
    unsure = finding("slog-virtual", "leaf x", "unknown")
    assert after_fix([failing], [], {}) == []
    assert after_fix([failing], [failing], {}) == ["NOT FIXED sync-disabled dataset tank/db fail"]
    assert after_fix([failing], [{**failing, "outcome": "unknown"}], {}) != []
    assert after_fix([failing], [other], {}) == ["THE FIX BROUGHT sync-always dataset tank/db low"]
    assert after_fix([failing, other], [other], {}) == []
    assert after_fix([failing], [other], {}, may=("sync-always",)) == []
    assert after_fix([failing], [unsure], {}) == ["THE FIX BROUGHT undecided slog-virtual leaf x high"]
    assert after_fix([failing, unsure], [unsure], {}) == []
    assert after_fix([failing, {**other, "outcome": "unknown"}], [other], {}) == []
    there = {"/tank/db/log": "1"}
    slow = [finding("log-on-data-dataset", f"database mariadb {process}", severity="low") for process in (962, 1083)]
    assert after_fix([failing, slow[0]], [slow[1]], {}) == []
    assert after_fix([failing], [], {"before": there, "after": there}) == []
    assert after_fix([failing], [], {"before": there}) == ["THE FIX TOOK /tank/db/log"]
    assert after_fix([failing], [], {"before": there, "after": {"/tank/db/log": "2"}}) == [
        "THE FIX CHANGED /tank/db/log"
    ]
    assert after_fix([failing], [], {"before": {"/tank/db/log": ""}, "after": {"/tank/db/log": ""}}) != []
    assert after_fix([failing], [], {"error": "'zfs' ended with 2"}) == ["FIX 'zfs' ended with 2: "]
    assert after_fix([failing], [], {}, lines=("2.1",)) == []


def test_what_is_run_is_what_the_report_prints() -> None:
    text = "Set it back, with zfs set sync=standard ANCESTOR."
    report = {
        "findings": [
            {
                "rule": "sync-disabled",
                "outcome": "fail",
                "fix": {"text": text},
                "verdicts": [{"kind": "dataset", "names": "0-1", "command": "zpool replace tank {subject} NEW_DEVICE"}],
            }
        ],
        "names": ["a b", "c"],
    }

    def commands(**changes: Any) -> list[str]:
        return list(fixing.commands(report, asdict(Step("sync-disabled", **changes))))

    both = commands(put={"NEW_DEVICE": ["$N2", "$N3"]}, then="zpool wait tank")
    assert both == ["zpool replace tank 'a b' $N2", "zpool replace tank c $N3", "zpool wait tank"]
    assert commands(says="sync=standard", run="zfs set {} tank") == ["zfs set sync=standard tank"]
    assert commands(says="sync=standard ANCESTOR", put={"ANCESTOR": "tank"}) == ["sync=standard tank"]
    with pytest.raises(fixing.Wrong, match="does not say 'sync=always'"):
        commands(says="sync=always")
    with pytest.raises(fixing.Wrong, match="slog-unhealthy does not fail"):
        list(fixing.commands(report, asdict(Step("slog-unhealthy"))))


def test_a_scenario_provokes_only_where_it_came_out_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "outcomes.json"
    rows = [
        {"line": "2.3", "scenario": "sync-disabled-local", "outcome": "wrong"},
        {"line": "2.3", "scenario": "special-consumer-ssd", "outcome": "ok"},
    ]
    outcomes.add(rows, path)
    monkeypatch.setattr(outcomes.read, "__defaults__", (path,))
    assert provoked.by_scenario() == {
        "no-power-loss-protection": ["special-consumer-ssd"]
    }  # as the log they count on 2.4 only
