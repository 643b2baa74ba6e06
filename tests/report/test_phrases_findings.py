"""What a page tells to do: with its condition on the line of the step, and nothing that does harm as printed."""

from __future__ import annotations

import re

import pytest

from auditor.facts import HOST, Fact, Facts, Subject, Value, known
from auditor.judge.finding import findings
from auditor.judge.rule import Fix
from auditor.judge.verdict import Verdict, judge
from auditor.report import audit_page, phrases, report_json
from auditor.report.formats import exchange, pages
from auditor.report.report_reader import parse_report
from tests import incidents, shared
from tests.renamed import passed_through
from tests.report.test_phrases import RULES
from tests.shared import HOSTS, report_of

CONDITION = re.compile(r"\b(first|unless|needs?|before)\b", re.IGNORECASE)
# commands whose text has such a word and that need no condition
FREE = {
    "key-not-at-next-boot": "what the boot needs is the reason, not a condition",
    "sync-disabled-replica": "what makes it last, not a condition",
    "volatile-vdev": "the text is another way, not a condition",
}
TANK = Subject("pool", "tank")


def fixes(fix: Fix) -> list[Fix]:
    return [fix, *(each for each, _ in fix.cases)]


def test_a_command_whose_text_has_a_condition_says_what_it_needs() -> None:
    bare = {
        rule.id
        for rule in RULES.values()
        for fix in fixes(rule.fix)
        if fix.command
        and not fix.needs
        and CONDITION.search(fix.text)
        and not fix.command.source.startswith(phrases.LOOKS)
    }
    assert bare == set(FREE)


@pytest.mark.parametrize("host", ["2.1-degraded-mirror", "2.3-sync-disabled-local"])
def test_every_format_prints_the_condition_before_the_command(host: str) -> None:
    report = report_of(HOSTS / next(each for each in HOSTS.names() if each.startswith(host)))
    _, first = phrases.first(report) or pytest.fail("no first step")
    needs, command = first.fix.needs, phrases.commands(first)[0]
    assert needs
    assert report.next_step != command
    document = report_json.document(report, passed=False)
    data = parse_report(document)
    assert next(each for each in document["findings"] if each["rule"] == first.rule.id)["fix"]["needs"] == needs
    texts = [
        audit_page.write_text(report, width=400),
        audit_page.write_html(report),
        pages.markdown(data),
        exchange.junit(data),
    ]
    texts.append(audit_page.write_text(report, width=400, verbose=2))
    for text in texts:
        plain = re.sub(r"<[^>]+>|[`\\]", "", text)
        assert f"{needs}: {command}" in plain
    assert f'"needs": "{needs}"' in exchange.jsonl(data)


def host_with(*facts: tuple[Subject, str, Value]) -> Facts:
    found = Facts()
    for subject, name, value in facts:
        found.put(Fact(subject, name, known(value, name)))
    return found


def verdict(rule: str, facts: Facts) -> Verdict:
    return next(iter(judge([RULES[rule]], facts)))


DB, DATA = Subject("database", "mariadb"), Subject("dataset", "tank/db")


@pytest.mark.parametrize(
    ("guard", "cost", "ahead"),
    [(True, "safe", ""), (False, "safe", "After "), (None, "safe", "If neither ")],
)
@pytest.mark.parametrize("rule", ["sync-disabled", "logbias-throughput-log"])
def test_a_log_that_may_tear_pages_is_not_turned_on_as_safe(
    rule: str, guard: bool | None, cost: str, ahead: str
) -> None:
    guards = [(DB, "torn_page_guard", guard)] if guard is not None else []
    facts = host_with((HOST, "databases", (DB,)), *guards, (DATA, "sync", "disabled"))
    case = next((each for each, condition in RULES[rule].fix.cases if holds(condition, facts)), RULES[rule].fix)
    assert case.cost == cost
    assert case.needs.startswith(ahead)
    assert bool(case.needs) is bool(ahead)


def holds(condition: object, facts: Facts) -> bool:
    from auditor.judge.expression import Expression, Scope

    assert isinstance(condition, Expression)
    return getattr(condition.evaluate(Scope(facts, DATA)), "value", None) is True


LEGS = [Subject("leaf", name, "tank") for name in ("sda", "sdb")]


@pytest.mark.parametrize(
    ("states", "step", "pool"),
    [
        (("ONLINE", "OFFLINE"), "zpool online tank sdb", "ONLINE"),
        (("ONLINE", "UNAVAIL"), "zpool replace tank sdb NEW_DEVICE", "ONLINE"),
        (("ONLINE", "FAULTED"), "zpool replace tank sdb NEW_DEVICE", "DEGRADED"),
        (("OFFLINE", "OFFLINE"), "zpool online tank sda sdb", "DEGRADED"),
        (("DEGRADED", "DEGRADED"), "zpool status -v tank", "DEGRADED"),
        (("ONLINE", "ONLINE"), "", "ONLINE"),
    ],
)
def test_a_leg_out_of_use_is_named_whatever_the_pool_says(states: tuple[str, str], step: str, pool: str) -> None:
    from auditor.model.pool import legs_in_use

    facts = host_with(
        (HOST, "pools", (TANK,)),
        (TANK, "state", pool),
        (TANK, "leaves", tuple(LEGS)),
        *((leg, "state", state) for leg, state in zip(LEGS, states, strict=True)),
        *((leg, "allocation_class", "normal") for leg in LEGS),
    )
    for fact in list(legs_in_use.derive(TANK, facts)):
        facts.put(fact)
    found = verdict("pool-degraded", facts)
    assert found.outcome == ("fail" if step else "pass")
    assert found.command == step
    bad = [f"{leg.name} ({state})" for leg, state in zip(LEGS, states, strict=True) if state != "ONLINE"]
    assert all(each in found.message for each in bad)


@pytest.mark.parametrize(("errors", "command"), [(0, "zpool replace tank log NEW_DEVICE"), (7, "zpool status -v tank")])
def test_a_log_device_is_not_replaced_while_other_drives_err_alike(errors: int, command: str) -> None:
    log, data = Subject("leaf", "log", "tank"), Subject("leaf", "sda", "tank")
    counts = [
        (leaf, name, count)
        for leaf, count in ((log, 3), (data, errors))
        for name in ("read_errors", "write_errors", "checksum_errors")
    ]
    facts = host_with(
        (HOST, "pools", (TANK,)),
        (TANK, "leaves", (log, data)),
        (log, "pool", TANK),
        (log, "state", "ONLINE"),
        (log, "allocation_class", "log"),
        (data, "allocation_class", "normal"),
        *counts,
    )
    found = verdict("slog-unhealthy", facts)
    assert found.outcome == "fail"
    assert found.command == command
    assert findings([found], facts)[0].fix.needs == (
        "" if errors else "If zpool online tank log does not bring it back"
    )


@pytest.mark.parametrize("bar", phrases.BAR_RESTART)
@pytest.mark.parametrize("known", ["", "2026-11-01"])
def test_no_first_step_restarts_a_host_that_may_not_come_up(bar: str, known: str) -> None:
    report = report_of(HOSTS / "2.1-degraded-mirror")
    upgrade = next(each for each in report.findings if each.rule.id == "known-bugs")
    degraded = next(each for each in report.findings if each.rule.id == "pool-degraded")
    assert upgrade.fix.cost == "needs restart"
    other = degraded._replace(rule=RULES[bar], known=known)
    alone = report._replace(lead=None, findings=(upgrade,))
    assert phrases.first(alone) == ("Fix first", upgrade)
    found = phrases.first(alone._replace(findings=(upgrade, other)))
    assert (found[1] if found else None) == (None if known else other)


@pytest.mark.parametrize("host", ["2.3-suspended-wait", "2.3-suspended-path-failed"])
def test_what_changes_a_pool_waits_until_it_is_no_longer_suspended(host: str) -> None:
    report = report_of(HOSTS / host)
    changing = [
        each
        for each in report.findings
        if any(command.startswith(("zpool attach", "zpool replace")) for command in phrases.commands(each))
    ]
    assert changing
    assert all(each.fix.needs.startswith("Once the pool is no longer suspended") for each in changing)


@pytest.mark.parametrize(
    ("name", "rule", "fixed", "other"),
    [
        ("2.3-db-mariadb-doublewrite-off", "torn-page-guard-off", "innodb_doublewrite", "sync_binlog"),
        ("2.3-db-postgres-fsync-off", "pg-fsync-off", "fsync", "full_page_writes"),
    ],
)
def test_a_database_reads_its_files_once_they_agree_with_it(name: str, rule: str, fixed: str, other: str) -> None:
    found = next(each for each in report_of(HOSTS / name).findings if each.rule.id == rule)
    assert found.fix.needs.startswith(f"Once its files say {other} = ")
    assert fixed not in found.fix.needs.split()  # which the fix itself writes


@pytest.mark.parametrize(
    ("changes", "needs"),
    [
        (
            ("sync_binlog is 1 now but 0 in its files",),
            "Once its files say sync_binlog = 1 (0 there now, 1 in the server)",
        ),
        (("sync_binlog is 0 now but 1 in its files",), ""),
        (("sync_binlog is 0 now but 100 in its files",), "Once its files say the sync_binlog that you want (100 there"),
        (
            ("sync_binlog is 1 now but 0 in its files", "innodb_flush_log_at_trx_commit is 1 now but 2 in its files"),
            "in the server) and innodb_flush_log_at_trx_commit = 1 (2 there now, 1 in the server), as a restart loads",
        ),
    ],
)
def test_what_its_files_have_to_say_first_loses_no_commit(changes: tuple[str, ...], needs: str) -> None:
    engine = (
        (HOST, "databases", (DB,)),
        (DB, "engine", "mysql"),
        (DB, "flush_method", "O_DIRECT_NO_FSYNC"),
        (DB, "doublewrite", "ON"),
    )
    found = verdict("innodb-flush-method", host_with(*engine, (DB, "changes_at_restart", changes))).fix.needs
    assert needs in found
    assert bool(found) is bool(needs)


def test_what_neither_restarts_nor_reloads_a_database_waits_for_nothing() -> None:
    findings = report_of(HOSTS / "2.3-db-postgres-fsync-off").findings
    roles = next(each for each in findings if each.rule.id == "pg-synchronous-commit-roles")
    assert roles.fix.needs == ""


def test_a_pool_without_its_log_device_is_not_suspended() -> None:
    report = report_of(HOSTS / "2.3-slog-missing-at-import")
    replaces = next(each for each in report.findings if each.rule.id == "slog-unhealthy")
    assert "no longer suspended" not in replaces.fix.needs
    assert replaces.fix.needs


@pytest.mark.parametrize("host", ["2.3-drives-that-warn", "2.1-slog-striped"])
def test_a_finding_about_several_subjects_shows_the_message_of_the_first(host: str) -> None:
    found = [each for each in report_of(HOSTS / host).findings if each.failed and not each.message]
    several = [each for each in found if len({one.message for one in each.verdicts}) > 1]
    assert several
    assert all(each.verdicts[0].message.partition(": ")[2] in phrases.shortly(each) for each in several)


def test_the_rule_of_what_is_relied_on_is_a_step_while_it_is_unknown() -> None:
    """Models that drives.toml does not know: whether they are emulated is not known, and the headline rests on it."""
    report = incidents.report_of(passed_through(shared.host("2.3-ashift-9-on-512e")))
    assert report.standing == "on the word"
    word, step = phrases.first(report) or pytest.fail("no first step")
    assert (word, step.rule.id, step.failed) == ("Look first", "container-or-vm-blind", False)
    assert phrases.severity(step) == "MEDIUM?"
    assert [each.rule.id for each in phrases.worst_first(report)] == ["container-or-vm-blind", "ashift-too-small"]


def test_the_next_step_explains_what_the_page_names() -> None:
    assert report_of(HOSTS / "2.1-special-as-log").next_step == "zaudit explain known-bugs"


def test_the_headline_names_the_pools_where_others_lose_nothing() -> None:
    report = report_of(HOSTS / "2.3-stacked-devices")
    assert report.headline == "A RESTART LOSES ACKNOWLEDGED COMMITS AND THE POOL (tfile and tloop)"
