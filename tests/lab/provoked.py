"""Which rules the lab provokes: by a scenario that came out right, or on a host that was recorded; and why the others are
not. Rules about a run of `zaudit verify` are left out: the cases of verify/ and the tests of verify provoke them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from auditor.judge.rule import Rule
from tests import shared

from . import outcomes
from . import scenario as scenarios

NO_SUCH_BUILD = "no build of a guest has it, or no state what exposes to it"


def rules() -> list[str]:
    """The ids of all rules but those about a run of verify."""
    return sorted(rule.id for rule in shared.rules() if not rule.of_verify)


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
    for name in shared.HOSTS.names():
        failed = (each.verdicts for each in shared.report_of(shared.HOSTS / name).findings if each.failed)
        for rule in sorted({verdict.rule.id for verdicts in failed for verdict in verdicts}):
            found[rule].append(name)
    return dict(found)


def shown(rules: Sequence[Rule]) -> dict[str, str]:
    """rule -> what its page says of the lab, in Markdown."""
    scenarios_of, hosts, why = by_scenario(), by_host(), reasons()
    pages = {each.name: f"../../tests/lab/scenarios/{each.file}" for each in scenarios.everything()}

    def one(rule: Rule) -> str:
        if rule.of_verify:
            return "judges runs of `zaudit verify`: [cases](../../tests/lab/verify/README.md)"
        if found := scenarios_of.get(rule.id):
            return f"fails as it must in {_listed(found, pages)}"
        if found := hosts.get(rule.id):
            return f"fails on a recorded host: {_listed(found, {})}"
        return f"not provoked: {why.get(rule.id, 'nothing says why not')}"

    return {rule.id: one(rule) for rule in rules}


def _listed(names: Sequence[str], pages: Mapping[str, str]) -> str:
    """pages: name -> what a link is to."""
    links = ", ".join(f"[{name}]({pages[name]})" if name in pages else name for name in names[:4])
    return links + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def reasons() -> dict[str, str]:
    """rule -> why no scenario and no recorded host provokes it: the rule says it itself. Of most bugs of releases it is the
    same."""
    seen = {*by_scenario(), *by_host()}
    return {
        rule.id: rule.said(rule.platform).unprovoked or NO_SUCH_BUILD
        for rule in shared.rules()
        if rule.said(rule.platform).unprovoked or (rule.head and rule.id not in seen)
    }
