"""Did the fixes that the report prints fix what they are printed for? And which rules that a scenario provokes have no fix that
the lab can run: unfixed.toml says why.
"""

import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from auditor import rulebook
from auditor.judge.rule import SEVERITIES

from . import outcomes
from . import scenario as scenarios
from .scenario import Scenario
from .verdict import ANY, UNDECIDED_ON_EVERY_GUEST, Outcome, found

REASONS = Path(__file__).with_name("unfixed.toml")


def problems(scenario: Scenario, line: str, outcome: Outcome) -> Iterator[str]:
    """What is not as it must be after the fixes, in a sentence each."""
    steps = scenario.fixes(line)
    before = outcome.report("root")
    if not steps or before is None:
        return
    after = outcome.report("fixed")
    ran = json.loads(outcome.files.get("fixed.json", b"{}"))
    if after is None or not ran or ran["error"]:
        said = outcome.files.get("log", b"").decode(errors="replace")[-600:].strip()
        yield f"FIX {ran.get('error') or 'no report after it'}: {said}"
        return
    yield from _verdicts(scenario, line, list(found(before)), list(found(after)))
    yield from _data(ran["before"], ran["after"])


Found = tuple[str, str, str, str]


def _verdicts(scenario: Scenario, line: str, before: list[Found], after: list[Found]) -> Iterator[str]:
    """Nothing is left of the rules, and nothing came that was not there."""
    steps = scenario.fixes(line)
    may = {rule for step in steps for rule in step.may}
    unsure = {rule for rule, _, outcome, _ in before if outcome == "unknown"} | set(scenario.undecided) | may
    unsure |= UNDECIDED_ON_EVERY_GUEST
    if any(step.put for step in steps):  # a device that was just put in was not written to for long
        unsure.add("flush-latched-off")
    failed = {(rule, _named(subject)) for rule, subject, outcome, _ in before if outcome == "fail"}
    apart = {(rule, _named(subject)) for rule, subject, outcome, _ in before if outcome == "unknown"}
    for rule, subject, outcome, severity in after:
        if rule in {step.rule for step in steps}:
            if (
                outcome == "fail" or (rule, _named(subject)) not in apart
            ):  # what was undecided before, it was not run for
                yield f"NOT FIXED {rule} {subject} {outcome}"
        elif outcome == "fail" and (rule, _named(subject)) not in failed | apart and rule not in may:
            yield f"THE FIX BROUGHT {rule} {subject} {severity}"
        elif outcome == "unknown" and severity != "low" and not unsure & {rule, ANY}:
            yield f"THE FIX BROUGHT undecided {rule} {subject} {severity}"


def _named(subject: str) -> str:
    """Without the number of the process: that of a server that was restarted is another."""
    return re.sub(r"^(database \S+) \d+$", r"\1", subject)


def _data(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    """What could be read before it is there, and the same."""
    for path, digest in before.items():
        if digest and after.get(path) != digest:
            yield f"THE FIX {'CHANGED' if after.get(path) else 'TOOK'} {path}"
    if not all(after.values()):
        yield f"CANNOT BE READ after the fix: {', '.join(path for path, digest in after.items() if not digest)}"


def worth() -> list[str]:
    """The rules of medium or above that must fail in a scenario: their fixes are to be run."""
    grave = {rule.id for rule in rulebook.load() if SEVERITIES.index(rule.gravest) >= SEVERITIES.index("medium")}
    failing = {one.rule for each in scenarios.everything() for one in each.must if one.outcome == "fail"}
    return sorted(grave & failing)


def by_scenario() -> dict[str, dict[str, list[str]]]:
    """rule -> scenario with a step for it -> the lines on which it came out right, none where it was not run."""
    ran: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in outcomes.read():
        if row["outcome"] == "ok":
            for rule in row["fixed"] or ():
                ran[rule, row["scenario"]].append(row["line"])
    made: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for each in scenarios.everything():
        for step in each.fix:
            made[step.rule][each.name] = sorted(ran[step.rule, each.name])
    return dict(made)


def reasons() -> dict[str, str]:
    """rule -> why the lab cannot run its fix."""
    return {str(rule): str(why) for rule, why in tomllib.loads(REASONS.read_text(encoding="utf-8")).items()}


def rules_of(scenario: Scenario, line: str, outcome: Outcome) -> list[str]:
    """The rules whose fixes were run, for a row of outcomes.json."""
    return sorted({step.rule for step in scenario.fixes(line)}) if "fixed.json" in outcome.files else []
