"""Known bugs of a release are one finding, in which each bug keeps its condition, its severity and its name."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import jsonschema
import pytest

from auditor import audit, data, rulebook
from auditor.fleet import counting
from auditor.judge import baseline, known_bugs, policy
from auditor.judge.finding import Finding
from auditor.judge.policy import NONE, Policy
from auditor.judge.policy_file import parse
from auditor.recording.recording import Recording, ReplayHost
from auditor.report import audit_page, changes, phrases, report_json, report_reader
from auditor.report.formats import exchange
from auditor.report.model import Report
from tests import incidents, shared
from tests.fake import CommandLine
from tests.shared import ROOT

SPLIT = "2.1.5-1"  # as it was published: bugs that corrupt data on every host that has it
VOLUMES = "2.3-db-postgres-on-zvol"
FLUSHES, HOLES, READS = "advisory-zvol-flush-lost", "advisory-dirty-dnode-holes", "advisory-mmap-read-race"
WAIVER = """
[[waiver]]
rule = "{}"
host = "*"
owner = "ann"
reason = "no such program here"
expires = 2099-01-31
"""


@cache
def look(release: str, base: str = incidents.BASE) -> audit.Look:
    past = recorded(release, base)
    return audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))


def recorded(release: str, base: str = incidents.BASE) -> Recording:
    edits = ({"release": release},)
    return incidents.shown(incidents.Incident("", "release", "", "", "", "caught", base=base, edits=edits))


def report(
    release: str, base: str = incidents.BASE, *, rules: Any = None, followed: Policy = NONE, **how: Any
) -> Report:
    seen = look(release, base)._replace(policy=followed)
    return audit.judge(seen, rules or rulebook.choose((), (), (), followed).rules, (), "low", **how)


def about_bugs(found: Report) -> list[Finding]:
    return [each for each in found.findings if each.rule.id == known_bugs.ID]


def ids(finding: Finding) -> set[str]:
    return {bug.id for bug in finding.bugs}


def test_all_bugs_of_a_release_are_one_finding_with_the_worst_in_words() -> None:
    found = report(SPLIT)
    failed = [each for each in about_bugs(found) if each.failed]
    (one,) = failed
    failing = {each.rule.id for each in found.verdicts if each.rule.head and each.outcome == "fail"}
    assert ids(one) == failing > {HOLES, READS}
    assert {each.severity for each in one.bugs} == {"high", "medium", "low"}
    assert one.severity == "high" == one.bugs[0].severity
    counted = [bug for bug in one.bugs if bug.harm in known_bugs.DOES]
    assert one.message.startswith(f"OpenZFS {SPLIT} has {len(counted)} known bugs that this host can meet")
    corrupt = sum(bug.harm == "corruption" for bug in counted)
    worst = f"{counted[0].title[0].lower()}{counted[0].title[1:]}"
    assert f"can meet: {corrupt} corrupt data (the worst: {worst}), " in one.message
    for harm in {bug.harm for bug in counted}:
        title = next(bug.title for bug in counted if bug.harm == harm)
        assert title[1:] in one.message, "of each harm the worst is on the page"
    assert "release line without maintenance" in one.message
    assert phrases.statement(one) == one.message
    assert not [each for each in found.findings if each.rule.id.startswith(known_bugs.PREFIX)]


def test_the_rules_of_an_audit_are_counted_with_the_bugs_as_one() -> None:
    rules = rulebook.choose((), (), ()).rules
    bugs = [rule for rule in rules if rule.head]
    covered = report(SPLIT).coverage
    assert covered.rules == len(rules) - len(bugs)
    assert len(bugs) > 30


@pytest.mark.parametrize("release", ["2.1.5-1", "2.1.5-1ubuntu6~22.04.9", "2.4.4-1"])
def test_what_cannot_be_decided_may_be(release: str) -> None:
    """A build that nobody has read: each bug of its release may be there, as severe as it is, and is never counted as there."""
    found = report(release)
    undecided = {each.rule.id for each in found.verdicts if each.rule.head and each.outcome == "unknown"}
    open_ = [each for each in about_bugs(found) if not each.failed]
    assert set().union(*map(ids, open_)) == undecided
    for each in open_:
        assert not any(bug.fails for bug in each.bugs)
        assert each.severity == each.bugs[0].severity
        assert f"{sum(bug.harm in known_bugs.DOES for bug in each.bugs)} known bug" in each.message
        assert " may meet" in each.message
    for each in about_bugs(found):
        if each.failed and undecided:
            assert f"({len(undecided)} more may concern it)" in each.message, "none of them is about the line"


def test_a_failure_says_how_many_more_may_be() -> None:
    """Whether the volumes are synced was not seen."""
    past = recorded(SPLIT)
    commands = {argv: said for argv, said in past.commands.items() if argv[:2] != ("zfs", "get")}
    seen = audit.look(
        ReplayHost(replace(past, commands=commands)), past.targets, audit.Options.from_words(past.options)
    )
    found = audit.judge(seen, rulebook.choose((), (), ()).rules, (), "low")
    failed, open_ = sorted(about_bugs(found), key=lambda each: not each.failed)
    assert f"({len(open_.bugs)} more may concern it)" in failed.message


def test_bugs_of_the_release_come_after_signs_of_the_host() -> None:
    found = shared.report_of(shared.HOSTS / "2.1-degraded-mirror")
    order = [each.rule.id for each in found.findings if each.failed and each.severity == "high"]
    assert order[-1] == known_bugs.ID
    assert len(order) > 1
    step = phrases.first(found)
    assert step is not None
    assert step[1].rule.id != known_bugs.ID
    told = report_reader.parse_report(report_json.document(found))
    assert [
        each.rule for each in report_reader.worst(told.findings) if each.severity == "high" and each.outcome == "fail"
    ] == order


def test_a_bug_that_loses_commits_does_so_in_the_table_and_by_its_name() -> None:
    found = report("2.3.1-1", VOLUMES)
    (one,) = (each for each in about_bugs(found) if each.failed)
    assert (one.severity, one.bugs[0].id, one.rule.harm) == ("critical", FLUSHES, "commits")
    assert FLUSHES in {rule for column in found.columns for rule in column.cells["crash"].rules}
    assert found.exit_code == 14


@pytest.mark.parametrize(
    ("release", "bugs", "says"),
    [
        ((2, 1, 5), [HOLES, READS], "Upgrade to OpenZFS 2.1.14 or later and restart: it fixes all 2."),
        (
            (2, 1, 11),
            [HOLES, "advisory-redacted-send"],
            "Upgrade to OpenZFS 2.1.14 or later and restart: it fixes 1 of 2; 2.3.9",
        ),
        (
            (2, 3, 6),
            ["advisory-clone-after-truncate"],
            "Upgrade to OpenZFS 2.3.9 or later and restart: it fixes the bug.",
        ),
        ((2, 1, 16), ["advisory-redacted-send"], "Upgrade to OpenZFS 2.3.9 or later and restart: it fixes the bug."),
        ((2, 4, 4), ["advisory-zil-prune"], "No release is known to fix what this host can meet."),
        ((2, 1, 16), ["advisory-zil-prune", "advisory-redacted-send"], "it fixes 1 of 2."),
    ],
)
def test_the_upgrade_is_to_the_lowest_release_that_fixes_most(
    release: tuple[int, ...], bugs: list[str], says: str
) -> None:
    """2.3.7 fixes the bug of clones and has the opposite one."""
    from auditor.data.releases import ranges

    entries = data.table(rulebook.ADVISORIES)
    known = [
        known_bugs.Bug(id, "", "high", "corruption", True, ranges(entries[id.removeprefix("advisory-")]["affected"]),
                       "", (), "", "", ())
        for id in bugs
    ]  # fmt: skip
    assert says in known_bugs._upgrade(known, release)


def test_the_fix_names_the_upgrade_first_and_then_each_workaround() -> None:
    (one,) = (each for each in about_bugs(report(SPLIT)) if each.failed)
    assert one.fix.cost == "needs restart"
    first = phrases.first_sentences(one.fix.text)
    assert first.startswith("Upgrade to OpenZFS 2.1.")
    assert first.endswith("; 3 have a workaround (-v shows it).")
    assert f"({HOLES}) Setting zfs_dmu_offset_next_sync=0" in one.fix.text
    assert f"({READS})" not in one.fix.text, "nothing helps against it but the upgrade"
    assert "{" not in one.fix.text


def test_a_bug_says_what_it_needs_and_what_was_seen_of_it() -> None:
    (one,) = (each for each in about_bugs(report("2.3.1-1", VOLUMES)) if each.failed)
    bug = one.bugs[0]
    assert "dataset.type == 'volume'" in bug.needs
    assert any("volume" in each for each in bug.here)
    assert not any("2.3.1" in each for each in bug.here)
    assert (bug.releases, bug.fixed_in) == ("2.2.7, 2.3.0 to 2.3.1", ("2.2.8", "2.3.2"))
    line = next(each for each in phrases.bugs(one) if each.startswith(FLUSHES))
    assert "fixed in 2.2.8, 2.3.2" in line
    assert "zfs#17131" in line


def test_a_waiver_of_one_bug_takes_that_bug_out_and_no_other() -> None:
    before = report(SPLIT)
    after = report(SPLIT, followed=parse(WAIVER.format(HOLES), "p.toml"))
    (one,), (other,) = ([each for each in about_bugs(found) if each.failed] for found in (before, after))
    assert ids(one) - ids(other) == {HOLES}
    assert ids(one) > ids(other)
    (waived,) = after.waived
    assert (waived.rule.id, ids(waived), waived.waiver and waived.waiver.owner) == (known_bugs.ID, {HOLES}, "ann")
    assert HOLES in report_json.render(after)
    assert (other.severity, after.exit_code) == ("high", 13), "another one of that severity is left"


def test_a_waiver_of_the_rule_waives_none_of_the_table() -> None:
    """It would cover bugs that nobody knew when it was written."""
    before, after = report(SPLIT), report(SPLIT, followed=parse(WAIVER.format(known_bugs.ID), "p.toml"))
    (one,), (other,) = ([each for each in about_bugs(found) if each.failed] for found in (before, after))
    assert ids(other) == ids(one)


def test_the_rule_and_each_bug_can_be_turned_off_and_it_is_said() -> None:
    rules = rulebook.load(examples=False)
    bugs = {rule.id for rule in rules if rule.head}
    for text, off in ((f'{known_bugs.ID} = "off"', {known_bugs.ID, *bugs}), (f'{HOLES} = "off"', {HOLES})):
        followed = parse(f"[rules]\n{text}", "p.toml")
        chosen = policy.select(rules, (), (), followed)
        assert {rule.id for rule in rules} - {rule.id for rule in chosen} == off
        assert {each.rule for each in policy.left_out(rules, chosen, (), (), followed)} == off
    nearer = policy.select(rules, (), (), parse(f'[rules]\n{known_bugs.ID} = "off"\n{HOLES} = "high"', "p.toml"))
    assert [rule.id for rule in nearer if rule.id in {known_bugs.ID, *bugs}] == [HOLES]
    assert {rule.id for rule in policy.select(rules, (known_bugs.ID,), ())} == {known_bugs.ID, *bugs}
    assert [rule.id for rule in policy.select(rules, (HOLES,), ())] == [HOLES]


def test_a_bug_that_joins_is_new_to_a_baseline() -> None:
    rules = rulebook.choose((), (), ()).rules
    fewer = [rule for rule in rules if rule.id != READS]
    seen = look(SPLIT)
    first = audit.judge(seen, fewer, (), "low")
    _, night = baseline.apply(baseline.empty(seen.facts, ()), seen.facts, first.verdicts, fewer)
    known = baseline.updated(night, first.verdicts, seen.facts, accept=True)
    again = audit.judge(seen, fewer, (), "low", known=known)
    assert not [each for each in again.fresh if each.failed]
    joined = audit.judge(seen, rules, (), "low", known=known)
    (fresh,) = (each for each in joined.fresh if each.failed)
    assert (ids(fresh), fresh.severity, joined.exit_code) == ({READS}, "high", 13)
    (old,) = (each for each in about_bugs(joined) if each.failed and each.known)
    assert ids(old) == ids(next(each for each in about_bugs(first) if each.failed))
    assert fresh.id != old.id


def test_a_bug_that_joins_is_another_finding_to_whoever_compares_ids() -> None:
    rules = rulebook.choose((), (), ()).rules
    fewer = [rule for rule in rules if rule.id != READS]
    one, other = (
        next(each for each in about_bugs(report(SPLIT, rules=chosen)) if each.failed) for chosen in (fewer, rules)
    )
    assert one.id != other.id


def test_reports_for_programs_name_each_bug() -> None:
    found = report(SPLIT)
    document = json.loads(json.dumps(report_json.document(found)))
    schema = json.loads((ROOT / "auditor" / "report" / "schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    one = next(each for each in document["findings"] if each["rule"] == known_bugs.ID and each["outcome"] == "fail")
    assert {each["id"] for each in one["bugs"]} == {each["rule"] for each in one["verdicts"]} - {known_bugs.ID}
    assert one["message"].startswith(f"OpenZFS {SPLIT} has ")
    told = report_reader.parse_report(document)
    (line,) = (each for each in exchange.rows(told) if each.get("rule") == known_bugs.ID and each["outcome"] == "fail")
    assert {"id": HOLES, "severity": "high"} in line["bugs"]
    assert (line["total"], line["says"][0]) == (1, one["message"])
    assert f'zaudit_known_bug{{bug="{HOLES}",outcome="fail",severity="high"}} 1' in exchange.prometheus(told)
    results = json.loads(exchange.render_whole(told))["runs"][0]["results"]
    (result,) = (each for each in results if each["ruleId"] == known_bugs.ID and each["kind"] == "fail")
    assert len(result["locations"][0]["logicalLocations"]) == 1
    assert one["message"] in result["message"]["text"]


def test_a_comparison_names_the_bug_that_came_and_the_one_that_went() -> None:
    old, new = (report_json.document(report(release)) for release in ("2.1.11-1", "2.3.8-1"))
    found = {each.shown.rule: each for each in changes.compare(old, new).differences}
    assert found[READS].change == "gone"
    assert found[READS].shown.title.startswith("Wrong data from reads of memory-mapped")
    assert not any(each.shown.rule.startswith("advisory") for each in changes.compare(old, old).differences)


def test_a_fleet_counts_each_bug_with_its_own_severity() -> None:
    rows = [
        json.dumps(row).encode()
        for row in exchange.rows(report_reader.parse_report(report_json.document(report(SPLIT))))
    ]
    found = counting.fleet(lambda: rows, None, 2e9).advisories
    severities = {bug: line.severity for (_, bug), line in found.items() if line.failed}
    assert severities[HOLES] == "high"
    assert severities["advisory-redacted-send"] == "low"
    assert known_bugs.ID not in severities


def test_bugs_that_are_only_low_are_named_on_the_page() -> None:
    page = " ".join(audit_page.write_text(shared.report_of(shared.HOSTS / "2.2-special-as-log")).split())
    assert "(known-bugs, advisory-redacted-send, advisory-mapped-file-stall)" in page


def test_a_bug_that_fails_is_not_shown_among_what_passed() -> None:
    page = audit_page.write_text(report(SPLIT), verbose=2)
    assert f"passed    {known_bugs.ID}" not in page
    assert HOLES in page
    assert f"passed    {known_bugs.ID}" in audit_page.write_text(report("2.4.4-1"), verbose=2)


def test_what_is_listed_is_one_rule_and_explain_finds_each_bug(zaudit: CommandLine) -> None:
    listed = zaudit("rules").out
    assert known_bugs.ID in listed
    assert known_bugs.PREFIX not in listed
    assert HOLES in zaudit("rules", "dirty").out
    assert HOLES in zaudit("explain", known_bugs.ID).out
    assert zaudit("explain", HOLES).out.startswith(f"{HOLES}: ")
    assert "release-abandoned is retired: use rule known-bugs" in zaudit("explain", "release-abandoned").out
