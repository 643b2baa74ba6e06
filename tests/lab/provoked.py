"""Which rules the lab provokes: by a scenario that came out right, or on a host that was recorded; and why the others are
not. Rules about a run of `zaudit verify` are left out: the cases of verify/ and the tests of verify provoke them.
"""

import json
from collections import defaultdict
from pathlib import Path

from auditor import rulebook
from auditor.judge import advisory

from . import outcomes
from . import scenario as scenarios

HOSTS = Path(__file__).resolve().parents[2] / "fixtures" / "hosts"
NO_SUCH_BUILD = "no build of a guest has it, or no state what exposes to it"


def rules() -> list[str]:
    """The ids of all rules but those about a run of verify."""
    return sorted(rule.id for rule in rulebook.load() if rule.subject != "run")


def by_scenario() -> dict[str, list[str]]:
    """rule -> scenarios in which it must fail, and did on a line where it must."""
    ran = {(row["line"], row["scenario"]) for row in outcomes.read() if row["outcome"] == "ok"}
    found: dict[str, list[str]] = defaultdict(list)
    for each in scenarios.everything():
        there = {
            one.rule
            for one in each.must
            if one.outcome == "fail" and any((line, each.name) in ran for line in set(each.lines) & set(one.lines))
        }
        for rule in sorted(there):
            found[rule].append(each.name)
    return dict(found)


def by_host() -> dict[str, list[str]]:
    """rule -> recorded hosts on which it fails."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(HOSTS.glob("*/expected.json")):
        findings = json.loads(path.read_text(encoding="utf-8"))["findings"]
        for rule in sorted({each["rule"] for each in findings if each["outcome"] == "fail"}):
            found[rule].append(path.parent.name)
    return dict(found)


def reasons() -> dict[str, str]:
    """rule -> why no scenario and no recorded host provokes it: the rule says it itself. Of most bugs of releases it is the
    same."""
    seen = {*by_scenario(), *by_host()}
    return {
        rule.id: rule.said().unprovoked or NO_SUCH_BUILD
        for rule in rulebook.load()
        if rule.said().unprovoked or (rule.id.startswith(advisory.PREFIX) and rule.id not in seen)
    }
