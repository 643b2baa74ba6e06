"""Was zaudit right? Compares what came out of a guest with what the scenario says must come out."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor.report import report_json

from . import read_only
from .scenario import Expected, Scenario

TRUE_OF_EVERY_GUEST = {"container-or-vm-blind", "no-redundancy"}
"""QEMU's disks are no physical drives; most states are built on as few disks as show them."""
UNDECIDED_ON_EVERY_GUEST = {
    *("ashift-too-small", "zed-not-running", "mounts-not-at-next-boot", "pool-not-at-next-boot", "fstab-before-mounts"),
}
"""What lies below an emulated disk cannot be seen from the guest; and it has no systemd to ask."""
COUNTED_SINCE_LOAD = {"space-refused"}
"""What an earlier state of the same guest left in counters that only loading the module resets."""
RELEASE = "advisory-"
"""What a guest's build of OpenZFS has of known bugs is no part of the state that a scenario makes."""
ANY = "*"
"""For a state in which next to nothing can be asked."""
LINE_OF = {"low": 0, "medium": 1, "high": 2, "critical": 3}


@dataclass(frozen=True)
class Outcome:
    """What the guest brought back of one scenario: stage.py's outcome, and the files of each user's run."""

    facts: dict[str, Any]
    files: dict[str, bytes]

    def report(self, user: str) -> dict[str, Any] | None:
        """The JSON report, None where there is none."""
        content = self.files.get(f"{user}/report.json")
        return dict(json.loads(content)) if content else None


def problems(scenario: Scenario, line: str, outcome: Outcome, zaudit: Path) -> Iterator[str]:
    """Everything that is not as it must be, in a sentence each; nothing when zaudit was right."""
    if error := outcome.facts["error"]:
        yield f"SETUP {error}"
        return
    errors = {user: outcome.files.get(f"{user}/stderr", b"").decode(errors="replace") for user in ("root", "nobody")}
    for user, code in outcome.facts["checked"].items():
        if code not in ((scenario.exit_code,) if scenario.exit_code == 3 else (0, 10, 11, 12, 13, 14)):
            yield f"EXIT {user}: {code}: {errors[user][-400:].strip()}"
    if scenario.exit_code is not None and outcome.facts["checked"]["root"] != scenario.exit_code:
        yield f"EXIT root: {outcome.facts['checked']['root']} and not {scenario.exit_code}"
    if scenario.says and scenario.says not in errors["root"]:
        yield f"MISSING text {scenario.says!r}: {errors['root'].strip()}"
    root, nobody = outcome.report("root"), outcome.report("nobody")
    if scenario.strace:
        yield from (f"NOT READ-ONLY {each}" for each in read_only.problems(scenario.name, outcome.facts, outcome.files))
    if scenario.exit_code == 3:
        return
    if root is None or nobody is None:
        yield "MISSING report"
        return
    yield from _expected(scenario, line, root, outcome.facts["disks"])
    yield from _truth(scenario, root["standing"])
    yield from _unprivileged(root, nobody)
    for user in ("root", "nobody"):
        yield from _replayed(user, outcome, zaudit)


def _truth(scenario: Scenario, standing: str) -> Iterator[str]:
    """The report as a whole against what a power cut does."""
    cut = scenario.power_cut
    if cut.may_lose and standing == "kept":
        yield f"MISS: a power cut may lose commits ({cut.because}), and zaudit says: {standing}"
    if not cut.may_lose and standing == "lost":
        yield f"FALSE ALARM: a power cut loses nothing ({cut.because}), and zaudit says: {standing}"


def found(report: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """rule, subject, outcome, severity of every finding; of known bugs each, by its own name"""
    for finding, subject in report_json.unfolded(report):
        if finding["outcome"] != "waived":
            rule, severity = (subject.get(key, finding[key]) for key in ("rule", "severity"))
            yield rule, f"{subject['kind']} {subject['name']}", finding["outcome"], severity


def _expected(scenario: Scenario, line: str, report: dict[str, Any], disks: dict[str, str]) -> Iterator[str]:
    every = list(found(report))
    must = [each for each in scenario.must if line in each.lines]
    for each in must:
        if not any(_is(each, one, disks) for one in every):
            near = [one for one in every if one[0] == each.rule]
            yield f"MISSING {each.outcome} {each.rule} {each.subject} {each.severity}: {near or 'no such finding'}"
    failing = {each.rule for each in must if each.outcome == "fail"} | set(scenario.may)
    failing |= TRUE_OF_EVERY_GUEST | COUNTED_SINCE_LOAD
    unsure = {each.rule for each in must if each.outcome == "unknown"} | set(scenario.undecided)
    unsure |= UNDECIDED_ON_EVERY_GUEST
    for rule, subject, result, severity in every:
        if (rule in scenario.must_not and result == "fail") or (
            result == "fail" and LINE_OF[severity] > 0 and rule not in failing and not rule.startswith(RELEASE)
        ):
            yield f"UNEXPECTED {rule} {subject} {severity}"
        elif (
            result == "unknown" and LINE_OF[severity] > 0 and not unsure & {rule, ANY} and not rule.startswith(RELEASE)
        ):
            yield f"UNEXPECTED undecided {rule} {subject} {severity}"


def _is(each: Expected, found: tuple[str, str, str, str], disks: dict[str, str]) -> bool:
    rule, subject, outcome, severity = found
    wanted = each.subject.format(**disks) if "{" in each.subject else each.subject
    return (
        rule == each.rule
        and outcome == each.outcome
        and wanted in ("", subject)
        and each.severity in ("", severity)
    )  # fmt: skip


def _unprivileged(root: dict[str, Any], nobody: dict[str, Any]) -> Iterator[str]:
    """Who sees less may know less; but nothing that root's run failed may have passed."""
    seen = {(rule, subject) for rule, subject, _, _ in found(nobody)}
    for rule, subject, result, _ in found(root):
        # one leaf whose disk cannot be seen stands for its disks
        if result == "fail" and (rule, subject) not in seen and not any(rule == each for each, _ in seen):
            yield f"NOBODY PASSED {rule} {subject}"


def _replayed(user: str, outcome: Outcome, zaudit: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        write(outcome.files, f"{user}/recording/", Path(folder, "recording"))
        argv = [sys.executable, str(zaudit), "check", "--replay", f"{folder}/recording", "--format", "json"]
        done = subprocess.run(argv, capture_output=True, check=False)
    if done.stdout != outcome.files[f"{user}/report.json"]:
        yield f"REPLAY DIFFERS ({user}) {done.stderr.decode(errors='replace')[-200:]}"


def write(files: dict[str, bytes], prefix: str, folder: Path) -> None:
    """The files below a prefix into a folder."""
    for name, content in files.items():
        if name.startswith(prefix):
            path = folder / name.removeprefix(prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
