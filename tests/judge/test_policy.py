"""Policies: read strictly, followed exactly, and what is waived stays visible."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from auditor import audit, data, rulebook
from auditor import selftest as law
from auditor.fleet import workers
from auditor.gather.walk import LookOptions
from auditor.judge import policy
from auditor.judge.event import SEVERITIES
from auditor.judge.policy import NONE, PolicyError, vain
from auditor.judge.policy_file import bare, joined, parse
from auditor.judge.rule import Decided, RuleError, Threshold, is_number
from auditor.judge.rule_file import load
from auditor.recording import recording
from auditor.registry import registry
from auditor.report import audit_page, changes, html, report_reader
from auditor.report import report_json as json_report
from auditor.report.formats import exchange
from auditor.report.formats import pages as stored
from auditor.report.model import Report
from tests import shared
from tests.golden import HOSTS, OLDER
from tests.report.test_report_json import SCHEMA
from tests.whole.test_rules import MINIMAL

CASE = OLDER / "2.3-sync-disabled-inherited"  # seen 2026-11-21; pool tank, sync=disabled there and inherited
HEALTHY = OLDER / "2.3-healthy-mirrored-slog"
WAIVER = """
[[waiver]]
rule = "sync-disabled"
dataset = "tank"
owner = "ann"
reason = "scratch"
expires = 2026-11-21
"""


def judged(
    text: str, case: Path | recording.Recording = CASE, names: tuple[str, ...] = (), only: tuple[str, ...] = ()
) -> Report:
    past = recording.load(case) if isinstance(case, Path) else case
    host = recording.ReplayHost(past)
    options = audit.Options.from_words(past.options)._replace(policy=parse(text, "zaudit.toml"))
    seen = audit.look(host, past.targets, options)
    if names:
        seen = audit.focus(seen, host, names)
    return audit.judge(seen, rulebook.choose((), only, (), options.policy).rules, past.targets, "low")


def outcomes(report: Report, rule: str) -> dict[str, str]:
    return {verdict.subject.name: verdict.outcome for verdict in report.verdicts if verdict.rule.id == rule}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rules = 1", "line 1: rules must be a table"),
        ("\n\n[rules\n", "line 3"),
        ("[rules]\n\nsync-disabled = 'of'\n", "line 3: sync-disabled = 'of': it is one of on, off, low"),
        ("# a\n[rule]\nx = 'off'\n", "line 2: no table of a policy has this name"),
        ("[rules]\n[datasets.'tank/db']\nrole = 'wal'\n", "line 3: role = 'wal': it is one of log, data"),
        ("[datasets.\"tank/db\"]\nrole = 'rebuildable'\n", "line 2: rebuildable needs a reason"),
        ("[datasets.tank]\n\ndatabase = 'oracle'\n", "line 3: database = 'oracle': it is one of postgres"),
        ("[datasets.tank]\ndatabase = ['mysql']\n", "line 2: database = ['mysql']: it is one of postgres"),
        ("[datasets.tank]\ndatabase = {a = 1}\n", "line 2: database = {'a': 1}: it is one of postgres"),
        ("[datasets.tank]\nrol = 'log'\n", "line 2: there is no 'rol'"),
        ("[datasets.\"tank/db@now\"]\nrole = 'log'\n", "line 1: 'tank/db@now' is no dataset"),
        ("[[waiver]]\nrule = 'x'\n", "line 1: expires, owner, reason missing"),
        (WAIVER.replace("2026-11-21", "'2026-11-21'"), "line 7: expires = '2026-11-21': it must be a date"),
        (WAIVER.replace("2026-11-21", "2026-11-21T00:00:00"), "line 7: expires"),
        (
            WAIVER.replace('dataset = "tank"\n', ""),
            "line 2: a waiver needs exactly one of dataset, pool, device, database, host, class",
        ),
        (WAIVER + 'pool = "123"\n', "line 2: a waiver needs exactly one of"),
        (WAIVER.replace('dataset = "tank"', 'pool = "tank"'), "line 4: pool = 'tank': it must be the pool's GUID"),
        (WAIVER.replace('"ann"', '" "'), "line 5: owner must be text"),
        ("thresholds = 3", "line 1: thresholds must be a table"),
        ("[thresholds]\n\npool-nearly-full = 3", "line 3: pool-nearly-full: a threshold is RULE.NAME = NUMBER"),
        ("[thresholds]\nx.y = 1\nx.z = true", "line 3: x.z = True: it must be a number"),
        ("\n[thresholds.x]\ny = 1\nz = 'a'", "line 4: x.z = 'a': it must be a number"),
        (f"x = {'[' * 100_000}", "p.toml: nested too deeply"),
        (f"[thresholds]\nx.y = {'9' * 5000}", "p.toml: a number with too many digits"),
        ("[thresholds]\nx.y = nan", "line 2: x.y = nan: it must be a number"),
        # what stands elsewhere, too, is told where it is wrong
        ("[thresholds]\nsync-disabled.x = 1\n[rules]\nsync-disabled = 'of'", "line 4: sync-disabled = 'of'"),
        ("[thresholds]\na.x = 1\n[datasets.tank]\nrole = 'log'\n[datasets.fast]\nrole = 'wal'", "line 6: role = 'wal'"),
        ("# ours\n[thresholds]\na.b = 1\n[thresholds.x]\ny = 'a'", "line 5: x.y = 'a': it must be a number"),
        ("[rules]\nx = 'off'\n[thresholds]\n\nx = { y = 'a' }", "line 5: x.y = 'a': it must be a number"),
        ("\nthresholds.x.y = 'a'", "line 1: x.y = 'a': it must be a number"),  # which is found nowhere as such
        ("\nwaiver = [{ rule = 'x' }]", "line 1: expires, owner, reason missing"),
        ("waiver = [1]", "line 1: a waiver must be a table"),
        ("datasets.tank = 1", "line 1: datasets.'tank' must be a table"),
        ("\n[datasets.\"\"]\nrole = 'log'\n", "line 2: '' is no dataset"),
        ("\n[datasets.'tank/']\nrole = 'log'\n", "line 2: 'tank/' is no dataset"),
        (WAIVER + WAIVER, "line 9: waiver sync-disabled of dataset tank is also decided in"),
        (WAIVER + WAIVER.replace('"tank"', '"tank/a"').replace('"ann"', "3"), "line 12: owner must be text"),
    ],
)
def test_a_malformed_policy_stops_with_line_and_cause(text: str, says: str) -> None:
    with pytest.raises(PolicyError) as error:
        parse(text, "p.toml")
    assert str(error.value).startswith("p.toml")
    assert says in str(error.value)
    assert error.value.exit_code == 2


@pytest.mark.parametrize("head", ["[datasets.tank]", '[datasets."tank"]', "[datasets.'tank']"])
def test_each_entry_knows_its_line_although_its_words_stand_above_it(head: str) -> None:
    above = "[thresholds]\nx.y = 1\ntank.x = 1\n"
    seen = parse(f"{above}[rules]\nx = 'off'\n{head}\nrole = 'log'\n{WAIVER}{WAIVER.replace('sync', 'x')}", "p")
    assert seen.rules == {"x": ("off", 5)}
    assert [each.line for each in seen.datasets] == [6]
    assert [each.line for each in seen.waivers] == [9, 16]
    assert (seen.thresholds["x"]["y"].line, seen.thresholds["tank"]["x"].line) == (2, 3)
    assert [each.line for each in parse(f"\n{head}\nrole = 'log'", "p").datasets] == [2]


@pytest.mark.parametrize("text", ["[rules]\nsync-disabeld = 'off'\n", "\n" + WAIVER.replace("sync-disabled", "x-y")])
def test_a_rule_that_does_not_exist_is_an_error_with_its_line(text: str) -> None:
    with pytest.raises(PolicyError, match=r"p.toml, line [23]: no rule '(sync-disabeld|x-y)'"):
        rulebook.choose((), (), (), parse(text, "p.toml"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pool-full.nearly_full = 85", "line 3: no rule 'pool-full'"),
        ("sync-disabled.limit = 85", "line 3: rule sync-disabled has no threshold 'limit'; it has none"),
        (
            "pool-nearly-full.nearlyfull = 85",
            "line 3: rule pool-nearly-full has no threshold 'nearlyfull'; it has nearly_full",
        ),
        ("pool-nearly-full.nearly_full = 100", "line 3: pool-nearly-full.nearly_full = 100: it may be 50 % to 95 %"),
        ("pool-nearly-full.nearly_full = 49", "line 3: pool-nearly-full.nearly_full = 49: it may be 50 % to 95 %"),
        (
            "pool-nearly-full.nearly_full = 85.5",
            "line 3: pool-nearly-full.nearly_full = 85.5: it must be a whole number",
        ),
    ],
)
def test_a_threshold_that_a_rule_cannot_have_stops_with_line_and_cause(text: str, says: str) -> None:
    with pytest.raises(PolicyError) as error:
        rulebook.choose((), (), (), parse(f"[thresholds]\n\n{text}\n", "p.toml"))
    assert says in str(error.value)
    assert str(error.value).startswith("p.toml")


FULL = HOSTS / "2.1-full-81"
LAXER = "[thresholds]\npool-nearly-full.nearly_full = 90\n"
STRICTER = "[thresholds]\npool-nearly-full.nearly_full = 70\npool-nearly-full.full = 75\n"


def test_a_threshold_of_the_site_decides_and_is_shown_wherever_it_did() -> None:
    plain, laxer, stricter = (judged(text, FULL) for text in ("", LAXER, STRICTER))
    assert [outcomes(each, "pool-nearly-full")["tank"] for each in (plain, laxer, stricter)] == ["fail", "pass", "fail"]
    said = "site policy: nearly_full 90 %, default 80 %"
    (passed,) = (verdict for verdict in laxer.verdicts if verdict.rule.id == "pool-nearly-full")
    assert (said, "sed -n 2p zaudit.toml") in [(each.text, each.command) for each in passed.evidence]
    (found,) = (finding for finding in stricter.findings if finding.rule.id == "pool-nearly-full")
    assert found.severity == "high"
    texts = [each.text for each in found.verdicts[0].evidence]
    assert "site policy: nearly_full 70 %, default 80 %" in texts
    assert "site policy: full 75 %, default 90 %" in texts  # it made the finding as grave as it is
    assert "Site policy: pool-nearly-full.nearly_full 90 %, default 80 %" in " ".join(
        audit_page.write_text(laxer).split()
    )
    assert "Site policy" not in audit_page.write_text(plain)
    document = json.loads(json_report.render(laxer))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert document["coverage"]["thresholds"] == [
        {"rule": "pool-nearly-full", "name": "nearly_full", "value": 90, "default": 80, "unit": "%"}
    ]
    assert json.loads(json_report.render(plain))["coverage"]["thresholds"] == []


def test_a_default_that_is_spelt_out_is_no_change() -> None:
    same = judged("[thresholds]\npool-nearly-full.nearly_full = 80\n", FULL)
    assert same.coverage.thresholds == ()
    assert not any("site policy" in each.text for verdict in same.verdicts for each in verdict.evidence)


def test_what_another_threshold_hides_is_not_gone() -> None:
    plain, laxer, stricter = (json_report.document(judged(text, FULL)) for text in ("", LAXER, STRICTER))
    found = changes.compare(plain, laxer)
    (difference,) = (each for each in found.differences if each.shown.rule == "pool-nearly-full")
    assert (difference.change, difference.after) == ("changed", None)
    assert any("pool-nearly-full.nearly_full was 80 % and is now 90 %" in note for note in found.notes)
    back = changes.compare(laxer, plain)
    assert [each.change for each in back.differences if each.shown.rule == "pool-nearly-full"] == ["new"]
    graver = changes.compare(plain, stricter)
    assert [each.change for each in graver.differences if each.shown.rule == "pool-nearly-full"] == ["worse"]
    milder = changes.compare(stricter, plain)
    assert [each.change for each in milder.differences if each.shown.rule == "pool-nearly-full"] == ["changed"]
    older = {**plain, "coverage": {key: value for key, value in plain["coverage"].items() if key != "thresholds"}}
    assert changes.compare(older, plain).differences == ()


THRESHOLDS = [(rule, each) for rule in shared.rules() for each in rule.thresholds]


@pytest.mark.parametrize(("rule", "threshold"), THRESHOLDS, ids=[f"{rule.id}.{each.name}" for rule, each in THRESHOLDS])
@pytest.mark.parametrize("bound", ["least", "most"])
def test_no_threshold_makes_its_rule_vacuous(rule: Any, threshold: Any, bound: str) -> None:
    """At either bound the rule still finds something, and still lets something pass."""
    decided = {threshold.name: Decided(getattr(threshold, bound), 1, "")}
    data = Path(rule.path).read_bytes()
    moved = load(rule.id, rule.path, data, registry(), decided=decided)
    outcomes = {law.run_example(moved, each, registry()).outcome for each in rule.examples}
    assert outcomes >= {"pass", "fail"}


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('host = { default = 1, least = 0, most = 2, unit = "%", text = "t" }', "cannot be the name"),
        ('limit = { default = 1, least = 0, most = 2, unit = "%", text = "t" }', "used in no expression"),
        ('limit = { default = 1, least = 0, most = 2, unit = "%" }', "must be a table of default"),
        ('limit = { default = 3, least = 0, most = 2, unit = "%", text = "t" }', "in this order"),
        ('limit = { default = true, least = 0, most = 2, unit = "%", text = "t" }', "must be numbers"),
        ('limit = { default = 1, least = 0, most = 2, unit = "", text = "t" }', "unit and text must be text"),
        ('limit = { default = 1, least = 0, most = 2, unit = 3, text = "t" }', "unit and text must be text"),
        ('Limit = { default = 1, least = 0, most = 2, unit = "%", text = "t" }', "cannot be the name"),
        ("limit = 3", "threshold limit must be a table of default"),
    ],
)
def test_a_malformed_threshold_is_an_error_of_its_rule(table: str, says: str) -> None:
    text = MINIMAL.replace("example = [", f"thresholds = {{ {table} }}\nexample = [")
    with pytest.raises(RuleError, match=says):
        load("a-rule", "a-rule.toml", text.encode(), registry())


def test_a_number_is_said_as_it_is_written() -> None:
    whole = Threshold("limit", 80, 50, 95, "%", "t")
    part = whole._replace(default=0.5, least=0, most=1048576)
    assert [whole.spell(each) for each in (80, 1048576, 1.0, 0.1 + 0.2)] == ["80 %", "1048576 %", "1 %", "0.3 %"]
    assert [whole.refusal(each) for each in (50, 95)] == ["", ""]
    assert [part.refusal(each) for each in (0, 1, 0.7, 1048576.0)] == [""] * 4
    assert whole.refusal(60.0) == "it must be a whole number"
    assert (is_number(10**18 - 1), is_number(10**18), is_number(-(10**18))) == (True, False, False)


@pytest.mark.parametrize(
    ("scope", "waived"),
    [
        ('dataset = "tank"', True),
        ('dataset = "ta*"', True),
        ('dataset = "*"', True),
        ('dataset = "t?nk"', False),
        ('dataset = "[t]*"', False),
        ('class = "virtual machine"', True),
        ('class = "physical"', False),
    ],
)
def test_patterns_and_classes_in_waivers(scope: str, waived: bool) -> None:
    text = WAIVER.replace('dataset = "tank"', scope).replace("sync-disabled", "sync-dis*")
    report = judged(text)
    assert [each.rule.id for each in report.waived] == (["sync-disabled"] if waived else [])
    assert ("sync-disabled" in {each.rule.id for each in report.findings}) is not waived
    told = [each.rule.id for each in report.findings if each.failed and each.rule.subject == "waiver"]
    assert told == [], "a policy of many hosts has waivers that are not for this one"
    part = judged(WAIVER.replace('dataset = "tank"', 'dataset = "tank/*"'))
    assert "tank" not in {str(each.subject) for finding in part.waived for each in finding.verdicts}
    assert "tank" in {str(each.subject) for finding in part.findings for each in finding.verdicts}


def test_a_class_waives_nothing_where_it_is_not_known() -> None:
    text = WAIVER.replace('dataset = "tank"', 'class = "virtual machine"')
    past = recording.load(CASE)
    commands = {argv: each for argv, each in past.commands.items() if argv[0] != "systemd-detect-virt"}
    options = audit.Options.from_words(past.options)._replace(policy=parse(text, "zaudit.toml"))
    seen = audit.look(recording.ReplayHost(replace(past, commands=commands)), past.targets, options)
    report = audit.judge(seen, rulebook.choose((), (), (), options.policy).rules, past.targets, "low")
    assert not report.waived
    with pytest.raises(PolicyError, match="class = 'cloud': it is one of virtual machine, physical"):
        parse(WAIVER.replace('dataset = "tank"', 'class = "cloud"'), "p")


def test_patterns_in_rules() -> None:
    rules = shared.rules()
    many = sum(rule.id.startswith("advisory-") for rule in rules)
    assert many > 5
    some = policy.select(rules, (), (), parse('[rules]\n"advisory-*" = "off"', "p"))
    assert len(some) == len(rules) - many
    one = next(rule.id for rule in rules if rule.id.startswith("advisory-"))
    nearer = policy.select(rules, (), (), parse(f'[rules]\n"advisory-*" = "off"\n{one} = "low"', "p"))
    assert len(nearer) == len(some) + 1, "the name itself outranks a pattern"
    assert [rule.id for rule in policy.select(rules, ("sync-disab*",), ())] == ["sync-disabled"] + [
        rule.id for rule in rules if rule.id.startswith("sync-disabled-")
    ]
    assert len(policy.select(rules, (), ("advisory-*",))) == len(some)
    for pattern in ("nothing-*", "sync-disable?", "[s]ync-disabled", "*" * 200 + "x"):
        with pytest.raises(PolicyError, match="no rule"):
            policy.select(rules, (pattern,), ())


def test_what_is_misspelt_is_told_what_is_near() -> None:
    rules = shared.rules()
    with pytest.raises(PolicyError, match=r"no rule 'sync-disable'; similar: sync-disabled"):
        policy.select(rules, ("sync-disable",), ())
    with pytest.raises(PolicyError, match=r"p, line 2: no rule 'atime-onn'; similar: atime-on"):
        policy.select(rules, (), (), parse('[rules]\natime-onn = "off"', "p"))


def test_a_retired_rule_may_be_skipped_set_and_waived_but_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy of last year is followed tonight as well."""
    monkeypatch.setattr(data, "retired", lambda: {"disk-tired": "disk-tired is retired: use smartctl -x"})
    rules = shared.rules()
    text = '[rules]\ndisk-tired = "low"\natime-on = "off"\n[thresholds]\ndisk-tired.years = 4\ndisk-tired.x = 5\n'
    followed = parse(text + WAIVER.replace("sync-disabled", "disk-tir*"), "p")
    chosen = policy.select(rules, (), ("disk-tired",), followed)
    assert len(chosen) == len(rules) - 1
    says = "no effect, disk-tired is retired: use smartctl -x"
    ids = [rule.id for rule in rules]
    lines = policy.retired_names(ids, ("disk-tired", "disk-*"), followed)
    assert lines == [f"{where}: {says}" for where in ("--skip", "p, line 2", "p, line 5", "p, line 8")]
    with pytest.raises(PolicyError, match=r"^disk-tired is retired: use smartctl -x$"):
        policy.select(rules, ("disk-tired",), ())
    own = [*rules, rules[0]._replace(id="disk-tired")]  # a rule of the user may have the name
    assert policy.retired_names([rule.id for rule in own], ("disk-tired",), policy.NONE) == []
    assert [rule.id for rule in policy.select(own, ("disk-tired",), ())] == ["disk-tired"]


def test_a_pattern_is_no_name_of_a_threshold() -> None:
    with pytest.raises(PolicyError, match=r"line 2: no rule 'pool-nearly-\*'"):
        policy.select(shared.rules(), (), (), parse('[thresholds]\n"pool-nearly-*".nearly_full = 85', "p"))


def test_rules_off_and_as_grave_as_the_policy_says() -> None:
    followed = parse("[rules]\natime-on = 'off'\nno-redundancy = 'low'\nslog-unhealthy = 'on'\n", "p")
    before = {rule.id: rule for rule in shared.audited()}
    after = {rule.id: rule for rule in rulebook.choose((), (), (), followed).rules}
    assert set(before) - set(after) == {"atime-on"}
    assert after["no-redundancy"].gravest == "low"
    assert before["no-redundancy"].gravest == "high"
    assert after["slog-unhealthy"].severity == before["slog-unhealthy"].severity
    assert [rule.id for rule in rulebook.choose((), ("atime-on",), (), followed).rules] == ["atime-on"]


def test_a_rule_that_cannot_become_critical_any_more_counts_as_less() -> None:
    followed = parse("[rules]\nno-power-loss-protection = 'high'\nzil-nocacheflush = 'critical'\n", "p")
    rules = shared.audited()
    assert {rule.severity for rule in rules if rule.id == "no-power-loss-protection"} == {"medium"}
    assert {rule.gravest for rule in shared.rules() if rule.id == "no-power-loss-protection"} == {
        "critical"
    }  # in one case
    out = policy.left_out(rules, policy.select(rules, (), (), followed), (), (), followed)
    assert out == (policy.LeftOut("no-power-loss-protection", "critical", "policy p", "high"),)


def test_what_was_left_out_names_by_whom() -> None:
    rules = shared.audited()
    followed = parse("[rules]\natime-on = 'off'\n", "p")
    for only, skip, by in (
        ((), ("atime-on",), "--skip"),
        (("sync-disabled",), ("atime-on",), "--skip"),
        (("sync-disabled",), (), "--rule"),
        ((), (), "policy p"),
    ):
        out = policy.left_out(rules, policy.select(rules, only, skip, followed), only, skip, followed)
        assert {each.rule: each.by for each in out}["atime-on"] == by
        assert len(out) == (len(rules) - 1 if only else 1)
        ranks = [SEVERITIES.index(each.severity) for each in out]
        assert ranks == sorted(ranks, reverse=True)


def test_what_is_waived_is_shown_and_does_not_count() -> None:
    plain, report = judged(""), judged(WAIVER)
    assert (plain.exit_code, plain.standing) == (14, "lost")
    assert report.exit_code == plain.exit_code  # what is undecided may be as grave
    assert max(each.severity for each in report.findings if each.failed) != "critical"
    assert [finding.rule.id for finding in report.waived] == ["sync-disabled"]
    assert "sync-disabled" not in {finding.rule.id for finding in report.findings}
    assert set(outcomes(report, "sync-disabled").values()) == {"waived"}
    assert report.coverage.undecided == plain.coverage.undecided
    text = audit_page.write_text(report)
    assert "WAIVED    sync-disabled (critical), until" in text
    assert "until 2026-11-21 by ann: scratch" in text
    assert "1 waived" in text
    document = json.loads(json_report.render(report))
    jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).validate(document)
    (waived,) = document["waived"]
    assert (waived["outcome"], waived["was"], waived["severity"]) == ("waived", "fail", "critical")
    assert waived["waiver"] == {
        "scope": "dataset", "name": "tank", "owner": "ann", "reason": "scratch", "expires": "2026-11-21",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "scope", "why"),
    [
        ("sync-disabled", 'device = "S1"', "it is about a dataset; use dataset or pool or host or class"),
        ("pg-fsync-off", 'device = "S1"', "it is about a database; use dataset or pool or database or host or class"),
        ("host-faults", 'database = "postgres"', "it is about a host; use host or class"),
        ("waiver-*", 'host = "db1"', "it is about a waiver, and nothing waives it"),
        ("sync-*", 'host = "db1"', ""),
        ("pg-fsync-off", 'dataset = "tank/pg"', ""),
        ("known-bugs", 'host = "db1"', ""),
        ("advisory-*", 'class = "physical"', ""),
        ("pg-fsync-off", 'database = "postgres /srv/pg"', ""),
        ("pg-*", 'database = "post*"', ""),
    ],
)
def test_a_waiver_that_can_never_cover_anything_is_refused(rule: str, scope: str, why: str) -> None:
    found = parse(WAIVER.replace("sync-disabled", rule).replace('dataset = "tank"', scope), "p.toml")
    name = scope.partition(" ")[0]
    says = [f"p.toml, line 2: {rule} is never waived by {name} = ...: {why}"] if why else []
    assert list(vain(found, shared.rules())) == says


@pytest.mark.parametrize(
    ("rule", "scope", "why"),
    [
        ("sync-disabled", 'dataset = "/tank/pg"', "'/tank/pg': it is no dataset"),
        ("sync-disabled", 'dataset = "tank@daily"', "'tank@daily': it is no dataset"),
        ("pg-fsync-off", 'database = "oracle"', "'oracle': it begins with one of postgres, mysql"),
        ("pg-fsync-off", 'database = "PostgreSQL"', "'PostgreSQL': it begins with one of postgres, mysql"),
        ("pg-fsync-off", 'database = "postgres 362"', "a process has another number after a restart"),
        ("pg-fsync-off", 'database = "mariadb"', "'mariadb': pg-fsync-off is never about mariadb"),
        ("innodb-*", 'database = "postgres"', "'postgres': innodb-* is never about postgres"),
    ],
)
def test_a_waiver_of_what_no_host_has_is_refused(rule: str, scope: str, why: str) -> None:
    found = parse(WAIVER.replace("sync-disabled", rule).replace('dataset = "tank"', scope), "p.toml")
    (line,) = vain(found, shared.rules())
    assert line.startswith(f"p.toml, line 2: {scope.partition(' ')[0]} = ")
    assert why in line


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
    assert report.headline == "WHAT A POWER CUT CAN LOSE IS WAIVED"


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
    by_serial = WAIVER.replace("sync-disabled", "flush-failed-logged").replace(
        'dataset = "tank"', 'device = "LABNVME2"'
    )
    found = outcomes(judged(by_serial), "flush-failed-logged")
    assert sorted(found.values()) == ["unknown", "unknown", "unknown", "waived"]


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
    assert "Rebuildable data with sync=disabled" in audit_page.write_text(report, verbose=2)


def test_the_database_of_a_dataset_comes_before_that_of_the_command_line() -> None:
    past = recording.load(CASE)
    followed = parse('[datasets."tank/db"]\ndatabase = "mysql"\n', "p")
    facts = audit.look(
        recording.ReplayHost(past), past.targets, audit.Options(LookOptions(database="postgres"), followed)
    ).facts
    pages: dict[str, Any] = {each.name: facts.get(each, "db_page_bytes") for each in facts.subjects("dataset")}
    assert {name: each.value for name, each in pages.items()} == {
        "tank": 8192, "tank/db": 16384, "tank/db/wal": 16384, "tank/other": 8192,
    }  # fmt: skip


def test_a_recording_keeps_the_policy_and_replays_to_the_same_report() -> None:
    options = audit.Options(policy=parse(WAIVER, "/etc/zaudit/zaudit.toml"))
    again = audit.Options.from_words(json.loads(json.dumps(options.words())))
    assert again == options
    assert audit.Options.from_words(audit.Options().words()).policy == NONE


def test_what_leaves_the_house_names_nobody() -> None:
    text = (
        '[rules]\natime-on = "off"\n[thresholds]\na-rule.limit = 0.5\n'
        '[datasets."tank"]\nrole = "rebuildable"\nreason = "ask Ann"\n' + WAIVER
    )
    policy = parse(text, "p")
    short = parse(bare(policy), "p")
    assert "nn" not in short.text
    assert [(each.rule, each.scope, each.name, each.expires) for each in short.waivers] == [
        (each.rule, each.scope, each.name, each.expires) for each in policy.waivers
    ]
    assert {id: setting for id, (setting, _) in short.rules.items()} == {"atime-on": "off"}
    assert short.thresholds["a-rule"]["limit"].value == 0.5
    assert [(each.dataset, each.role) for each in short.datasets] == [("tank", "rebuildable")]


def test_reports_link_to_the_pages_that_the_site_has_published() -> None:
    """Without its word no address is made up."""
    site = "https://docs.example.org/zaudit"
    reports = []
    for text in (f'pages = "{site}/"', ""):
        report = judged(text)
        document = json_report.document(report)
        jsonschema.validate(document, SCHEMA)
        kept = report_reader.parse_report(document)
        (run,) = json.loads(exchange.render_whole(kept))["runs"]
        pages = {rule["id"]: rule.get("helpUri", "") for rule in run["tool"]["driver"]["rules"]}
        assert pages == {each.rule: each.url for each in kept.all}
        reports.append((pages, audit_page.write_html(report), html.write(stored.document(kept))))
    (linked, *shown), (bare_, *others) = reports
    assert linked["sync-disabled"] == f"{site}/docs/rules/sync-disabled.html"
    assert all(linked.values())
    assert not any(bare_.values())
    for page, other in zip(shown, others, strict=True):
        assert f'href="{linked["sync-disabled"]}"' in page
        assert "href" not in other


def test_only_one_file_names_the_pages_and_a_report_of_somebody_else_no_script() -> None:
    both = joined([("a", 'pages = "https://a.example.org"'), ("b", 'pages = "https://b.example.org"')])
    with pytest.raises(PolicyError, match=r"pages are at https:.* and at https:"):
        parse(both, "/etc/zaudit")
    report = judged('pages = "https://a.example.org"')
    document = json_report.document(report)
    rule, page = document["findings"][0]["rule"], document["findings"][0]["url"]
    strange = [page.replace("https://a.example.org", each) for each in STRANGE]
    for url in ("javascript:alert(1)", "https://b.org", f"{page}?x", f"{page}\n", page.replace(rule, "x"), *strange):
        document["findings"][0]["url"] = url
        assert report_reader.parse_report(document).findings[0].url == "", url
    for each in STRANGE:
        with pytest.raises(PolicyError, match="must be an address"):
            parse(f'pages = "{each}"', "p")
    document["findings"][0]["url"] = page
    shown = html.write(stored.document(report_reader.parse_report(document)))
    assert f'href="{page}" class="dim">{page}<' in shown, "where it leads is what is read"


# in place of the address: of somebody else, and what a reader of SARIF refuses as a whole
STRANGE = (
    *("https://a.example.org@b.org", "https://[a", "https://a]", "https://", "https:///"),
    *("https://a/%", "https://a/%0x", "https://a:b/", "https://a/[b]"),
)


def test_a_recording_of_somebody_else_links_nowhere() -> None:
    """It has its own policy; only that of whoever judges names pages."""
    text = 'pages = "https://evil.example.org"'
    words = audit.Options(policy=parse(text, "p")).words()
    assert words["policy"] == text
    found = audit.Options.from_words(words).policy
    assert (found.text, found.pages) == (text, "")
    rules = workers.chosen((), text, "p", found.pages).rules
    assert not any(each.url for each in rules)
    assert all(
        each.url.startswith("https://evil") for each in workers.chosen((), text, "p", parse(text, "p").pages).rules
    )
