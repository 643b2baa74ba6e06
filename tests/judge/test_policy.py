"""Policies: read strictly, followed exactly, and what is waived stays visible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from auditor import audit, rulebook
from auditor.collect import recording
from auditor.judge.policy import NONE, PolicyError
from auditor.judge.policy_file import bare, parse
from auditor.report import json as json_report
from auditor.report import terminal
from auditor.report.model import Report
from tests.golden import HOSTS
from tests.report.test_json import SCHEMA

CASE = HOSTS / "2.3-sync-disabled-inherited"  # seen 2026-11-21; pool tank, sync=disabled there and inherited
HEALTHY = HOSTS / "2.3-healthy-mirrored-slog"
WAIVER = """
[[waiver]]
rule = "sync-disabled"
dataset = "tank"
owner = "ann"
reason = "scratch"
expires = 2026-11-21
"""


def judged(text: str, case: Path = CASE, names: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> Report:
    past = recording.load(case)
    host = recording.ReplayHost(past)
    options = audit.Options.from_words(past.options)._replace(policy=parse(text, "zaudit.toml"))
    seen = audit.look(host, past.targets, options)
    if names:
        seen = audit.focus(seen, host, names)
    return audit.judge(seen, rulebook.select((), only, (), options.policy), past.targets, "low")


def outcomes(report: Report, rule: str) -> dict[str, str]:
    return {verdict.subject.name: verdict.outcome for verdict in report.verdicts if verdict.rule.id == rule}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rules = 1", "line 1: rules must be a table"),
        ("\n\n[rules\n", "line 3"),
        ("[rules]\n\nsync-disabled = 'of'\n", "line 3: sync-disabled = 'of': it is one of on, off, low"),
        ("# a\n[rule]\nx = 'off'\n", "line 2: there is no 'rule'"),
        ("[rules]\n[datasets.'tank/db']\nrole = 'wal'\n", "line 3: role = 'wal': it is one of log, data"),
        ("[datasets.\"tank/db\"]\nrole = 'rebuildable'\n", "line 2: rebuildable needs a reason"),
        ("[datasets.tank]\n\ndatabase = 'oracle'\n", "line 3: database = 'oracle': it is one of postgres"),
        ("[datasets.tank]\nrol = 'log'\n", "line 2: there is no 'rol'"),
        ("[datasets.\"tank/db@now\"]\nrole = 'log'\n", "line 1: 'tank/db@now' is no dataset"),
        ("[[waiver]]\nrule = 'x'\n", "line 1: expires, owner, reason missing"),
        (WAIVER.replace("2026-11-21", "'2026-11-21'"), "line 7: expires = '2026-11-21': it must be a date"),
        (WAIVER.replace("2026-11-21", "2026-11-21T00:00:00"), "line 7: expires"),
        (WAIVER.replace('dataset = "tank"\n', ""), "line 2: a waiver needs exactly one of dataset, pool, device, host"),
        (WAIVER + 'pool = "123"\n', "line 2: a waiver needs exactly one of"),
        (WAIVER.replace('dataset = "tank"', 'pool = "tank"'), "line 4: pool = 'tank': it must be the pool's GUID"),
        (WAIVER.replace('"ann"', '" "'), "line 5: owner must be text"),
        (WAIVER + WAIVER, "line 9: sync-disabled of dataset tank is waived twice"),
        (WAIVER + WAIVER.replace('"tank"', '"tank/a"').replace('"ann"', "3"), "line 12: owner must be text"),
    ],
)
def test_a_malformed_policy_stops_with_line_and_cause(text: str, says: str) -> None:
    with pytest.raises(PolicyError) as error:
        parse(text, "p.toml")
    assert str(error.value).startswith("p.toml")
    assert says in str(error.value)
    assert error.value.exit_code == 2


@pytest.mark.parametrize("text", ["[rules]\nsync-disabeld = 'off'\n", "\n" + WAIVER.replace("sync-disabled", "x-y")])
def test_a_rule_that_does_not_exist_is_an_error_with_its_line(text: str) -> None:
    with pytest.raises(PolicyError, match=r"p.toml, line [23]: no rule '(sync-disabeld|x-y)'"):
        rulebook.select((), (), (), parse(text, "p.toml"))


def test_rules_off_and_as_grave_as_the_policy_says() -> None:
    followed = parse("[rules]\natime-on = 'off'\nno-redundancy = 'low'\nslog-striped = 'on'\n", "p")
    before = {rule.id: rule for rule in rulebook.select((), (), ())}
    after = {rule.id: rule for rule in rulebook.select((), (), (), followed)}
    assert set(before) - set(after) == {"atime-on"}
    assert (after["no-redundancy"].severity, after["no-redundancy"].severity_if) == ("low", ())
    assert before["no-redundancy"].severity != "low"
    assert after["slog-striped"].severity == before["slog-striped"].severity
    assert [rule.id for rule in rulebook.select((), ("atime-on",), (), followed)] == ["atime-on"]


def test_what_is_waived_is_shown_and_does_not_count() -> None:
    plain, report = judged(""), judged(WAIVER)
    assert (plain.exit_code, plain.standing) == (14, "lost")
    assert report.exit_code == 13  # slog-virtual is left
    assert [finding.rule.id for finding in report.waived] == ["sync-disabled"]
    assert "sync-disabled" not in {finding.rule.id for finding in report.findings}
    assert set(outcomes(report, "sync-disabled").values()) == {"waived"}
    assert report.coverage.undecided == plain.coverage.undecided
    text = terminal.render(report)
    assert "WAIVED    sync-disabled  tank" in text
    assert "until 2026-11-21 by ann: scratch" in text
    assert "1 waived" in text
    document = json.loads(json_report.render(report))
    jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).validate(document)
    (waived,) = document["waived"]
    assert (waived["outcome"], waived["was"], waived["severity"]) == ("waived", "fail", "critical")
    assert waived["waiver"] == {
        "scope": "dataset", "name": "tank", "owner": "ann", "reason": "scratch", "expires": "2026-11-21",
    }  # fmt: skip


def test_a_waiver_holds_for_its_scope_alone() -> None:
    report = judged(WAIVER.replace('"tank"', '"tank/db"'))
    assert outcomes(report, "sync-disabled") == {
        "tank": "fail", "tank/db": "waived", "tank/db/wal": "waived", "tank/other": "fail",
    }  # fmt: skip
    assert report.exit_code == 14
    assert outcomes(judged(WAIVER.replace('"tank"', '"tan"')), "sync-disabled")["tank"] == "fail"


def test_the_headline_does_not_say_that_nothing_was_found() -> None:
    only = ("sync-disabled",)
    assert judged("", only=only).standing == "lost"
    report = judged(WAIVER, only=only)
    assert (report.standing, report.exit_code) == ("waived", 0)
    assert report.headline == "WHAT CAN LOSE COMMITS IS WAIVED"


def test_an_expired_waiver_waives_nothing_and_is_a_finding() -> None:
    report = judged(WAIVER.replace("2026-11-21", "2026-11-20"))
    assert report.exit_code == 14
    assert report.waived == ()
    assert [finding.severity for finding in report.findings if finding.rule.id == "waiver-expired"] == ["low"]
    assert outcomes(report, "waiver-unused") == {"sync-disabled of dataset tank": "pass"}


def test_an_unused_waiver_is_a_finding_where_it_can_be_told() -> None:
    name = "sync-disabled of dataset tank"
    assert outcomes(judged(WAIVER, HEALTHY), "waiver-unused") == {name: "fail"}
    assert outcomes(judged(WAIVER), "waiver-unused") == {name: "pass"}
    gone = WAIVER.replace('"tank"', '"tank/gone"')
    assert set(outcomes(judged(gone), "waiver-unused").values()) == {"fail"}
    assert set(outcomes(judged(gone, names=("tank/db",)), "waiver-unused").values()) == {"not applicable"}
    other = WAIVER.replace("sync-disabled", "boot-option-loses-commits").replace(
        'dataset = "tank"', 'host = "elsewhere"'
    )
    assert set(outcomes(judged(other), "waiver-unused").values()) == {"not applicable"}  # undecided on this recording


def test_pools_by_guid_and_devices_by_serial() -> None:
    past = recording.load(CASE)
    facts = audit.look(recording.ReplayHost(past), past.targets, audit.Options()).facts
    pool = next(facts.subjects("pool"))
    guid = facts.get(pool, "guid")
    by_guid = WAIVER.replace('dataset = "tank"', f'pool = "{guid.value}"')  # type: ignore[union-attr]
    assert set(outcomes(judged(by_guid), "sync-disabled").values()) == {"waived"}
    assert "waived" not in outcomes(judged(by_guid.replace('pool = "', 'pool = "1')), "sync-disabled").values()
    by_serial = WAIVER.replace("sync-disabled", "slog-virtual").replace('dataset = "tank"', 'device = "LABNVME2"')
    found = outcomes(judged(by_serial), "slog-virtual")
    assert sorted(each for each in found.values() if each != "not applicable") == ["fail", "waived"]


def test_what_is_declared_rebuildable_is_judged_as_that() -> None:
    text = '[datasets."tank"]\nrole = "rebuildable"\nreason = "two replicas in other rooms"\n'
    report = judged(text + '[datasets."tank/db"]\nrole = "both"\ndatabase = "mysql"\n')
    assert outcomes(report, "sync-disabled") == {
        "tank": "not applicable", "tank/db": "fail", "tank/db/wal": "fail", "tank/other": "not applicable",
    }  # fmt: skip
    told = outcomes(report, "sync-disabled-rebuildable")
    assert told == {"tank": "fail", "tank/db": "not applicable", "tank/db/wal": "not applicable", "tank/other": "fail"}
    (finding,) = (each for each in report.findings if each.rule.id == "sync-disabled-rebuildable")
    assert finding.severity == "low"
    assert (
        "A power cut that hits all replicas takes the last seconds of what is declared rebuildable"
        in terminal.render(report)
    )


def test_the_database_of_a_dataset_comes_before_that_of_the_command_line() -> None:
    past = recording.load(CASE)
    followed = parse('[datasets."tank/db"]\ndatabase = "mysql"\n', "p")
    facts = audit.look(recording.ReplayHost(past), past.targets, audit.Options(False, "postgres", "", followed)).facts
    pages: dict[str, Any] = {each.name: facts.get(each, "db_page_bytes") for each in facts.subjects("dataset")}
    assert {name: each.value for name, each in pages.items()} == {
        "tank": 8192, "tank/db": 16384, "tank/db/wal": 16384, "tank/other": 8192,
    }  # fmt: skip


def test_a_recording_keeps_the_policy_and_replays_to_the_same_report() -> None:
    options = audit.Options(False, "", "", parse(WAIVER, "/etc/zaudit/zaudit.toml"))
    again = audit.Options.from_words(json.loads(json.dumps(options.words())))
    assert again == options
    assert audit.Options.from_words(audit.Options().words()).policy == NONE


def test_what_leaves_the_house_names_nobody() -> None:
    text = '[rules]\natime-on = "off"\n[datasets."tank"]\nrole = "rebuildable"\nreason = "ask Ann"\n' + WAIVER
    policy = parse(text, "p")
    short = parse(bare(policy), "p")
    assert "nn" not in short.text
    assert [(each.rule, each.scope, each.name, each.expires) for each in short.waivers] == [
        (each.rule, each.scope, each.name, each.expires) for each in policy.waivers
    ]
    assert {id: setting for id, (setting, _) in short.rules.items()} == {"atime-on": "off"}
    assert [(each.dataset, each.role) for each in short.datasets] == [("tank", "rebuildable")]
