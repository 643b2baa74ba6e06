"""``zaudit check --suppose``: the table and the findings after a change, on a recorded host."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest

from auditor import audit
from auditor.commands._schemas import SCHEMAS
from auditor.facts import HOST, Fact, Facts, Known, Subject, known, unknown
from auditor.judge import rule_file, supposition
from auditor.judge.rule import RuleError
from auditor.judge.supposition import SuppositionError, parse
from auditor.recording.recording import ReplayHost
from auditor.registry import registry
from auditor.report import phrases
from auditor.report import supposed as comparison
from auditor.report.model import Report
from auditor.report.supposed import Difference, Side
from tests.fake import CommandLine
from tests.golden import HOSTS
from tests.shared import audited, each_host, host, rules

DISABLED, PROTECTED = "2.3-sync-disabled-local", "2.4-healthy-physical-protected-cache"
POSTGRES = "2.3-db-postgres-fsync-off"
GOOD, BAD = "INTEL SSDPE2KX010T8", "Samsung SSD 980 PRO 1TB"  # with and without power-loss protection
FIXABLE = (HOSTS.folder.parent.parent / "rules" / "sync-disabled.toml").read_text()


def look(name: str) -> audit.Look:
    past = host(name)
    return audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))


def judged(seen: audit.Look) -> Side:
    return Side(audit.judge(seen, audited(), ("tank",), "low"), seen.facts)


def supposed(name: str, *changes: str) -> tuple[Side, Side, Difference]:
    """The host now, supposed, and what differs."""
    seen = look(name)
    now, then = judged(seen), judged(audit.suppose(seen, list(map(parse, changes))))
    return now, then, comparison.difference(now, then)


def cell(report: Report, dataset: str, event: str) -> str:
    return next(str(column.cells[event].outcome) for column in report.columns if dataset in column.names)  # type: ignore[index]


def value(facts: Facts, subject: Subject, name: str) -> object:
    found = facts.get(subject, name)
    return found.value if isinstance(found, Known) else None


# -- the files of a database -------------------------------------------------------------------------------------------

MARIADB = "2.3-db-mariadb-doublewrite-off"


def test_a_restart_takes_up_what_the_files_say() -> None:
    _, then, changed = supposed(MARIADB, "mariadb restart")
    (server,) = then.facts.subjects("database")
    assert value(then.facts, server, "sync_binlog") == 0
    assert value(then.facts, server, "changes_at_restart") == ()
    assert ("tank/db", "crash", "commits") in changed.worse
    assert not any(column.next_boot for column in then.report.columns)


def test_files_that_agree_change_nothing_at_the_next_restart() -> None:
    _, then, changed = supposed(MARIADB, "mariadb files agree", "mariadb restart")
    (server,) = then.facts.subjects("database")
    assert value(then.facts, server, "sync_binlog") == 1
    assert changed.worse == ()
    assert not any(column.next_boot for column in then.report.columns)


def test_what_a_restart_brings_is_unknown_where_nobody_read_the_files() -> None:
    seen = look(MARIADB)
    (server,) = seen.facts.subjects("database")
    seen.facts.replace(Fact(server, "configured", unknown("permission denied")))
    then = audit.suppose(seen, [parse("mariadb restart")])
    for name in ("sync_binlog", "flush_log_at_commit", "in_force", "changes_at_restart"):
        assert then.facts.get(server, name) == unknown("permission denied"), name
    then = audit.suppose(seen, [parse("mariadb sync_binlog=1"), parse("mariadb restart")])
    assert value(then.facts, server, "sync_binlog") == 1
    assert value(then.facts, server, "flush_log_at_commit") is None


@pytest.mark.parametrize("words", ["tank restart", "mariadb 1 restart", "sda files agree"])
def test_what_is_no_database_cannot_restart(words: str) -> None:
    with pytest.raises(SuppositionError, match="no database"):
        supposed(MARIADB, words)


# -- lines 2 and 3 of the page -------------------------------------------------------------------------------------------

HEALTHY_POSTGRES = "2.3-db-postgres-healthy"
CRASH = "A CRASH OR POWER CUT LOSES ACKNOWLEDGED COMMITS"
PAGES: dict[str, tuple[str, tuple[str, ...], str, str]] = {
    "fsync off": (HEALTHY_POSTGRES, ("postgres fsync=off",), CRASH, "pg-fsync-off"),
    "fsync off, and sync=always keeps it": (
        *(HEALTHY_POSTGRES, ("postgres fsync=off", "tank sync=always", "tank/pg sync=always")),
        *("NO LOSS FOUND, BUT SURVIVING A POWER CUT", "container-or-vm-blind"),
    ),
    "pages torn": (
        *(HEALTHY_POSTGRES, ("postgres full_page_writes=off",), "A CRASH OR POWER CUT CORRUPTS THE DATABASE"),
        "torn-page-guard-off",
    ),
    "pages whole by pointers": (
        *(HEALTHY_POSTGRES, ("postgres full_page_writes=off", "tank/pg logbias=throughput")),
        *("NO LOSS FOUND, BUT SURVIVING A POWER CUT", "container-or-vm-blind"),
    ),
    "replay disabled until the next boot": (
        *(HEALTHY_POSTGRES, ("zfs zil_replay_disable=1",), "NO LOSS FOUND, BUT SURVIVING A POWER CUT"),
        "container-or-vm-blind",
    ),
    "no flush behind a hypervisor": (
        *(HEALTHY_POSTGRES, ("zfs zil_nocacheflush=1",)),
        *("A POWER CUT OF THE PHYSICAL HOST OR STORAGE LOSES ACKNOWLEDGED COMMITS AND CORRUPTS", "zil-nocacheflush"),
    ),
    "log of InnoDB unflushed": (
        *(MARIADB, ("mariadb innodb_flush_log_at_trx_commit=2",), f"{CRASH} AND CORRUPTS THE DATABASE"),
        "innodb-flush-log",
    ),
    "a degraded mirror comes before a crash, and not its step": (
        *("2.1-degraded-mirror", ("tank/db sync=disabled",), f"DEGRADED POOL (tank). {CRASH}", "sync-disabled"),
    ),
    "damage comes before a crash": (
        *("2.3-permanent-errors", ("tank sync=disabled",), f"UNRECOVERABLE DATA ERRORS IN THE POOL (tank). {CRASH}"),
        "pool-data-errors",
    ),
}


@pytest.mark.parametrize(("name", "changes", "headline", "first"), PAGES.values(), ids=PAGES)
def test_the_page_opens_with_the_worst_and_the_step_that_helps(
    name: str, changes: tuple[str, ...], headline: str, first: str
) -> None:
    report = judged(audit.suppose(look(name), list(map(parse, changes)))).report
    assert report.headline.startswith(headline)
    assert (found := phrases.first(report)) is not None
    assert found[1].rule.id == first


# -- the facts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", each_host())
def test_supposing_nothing_changes_nothing(name: str) -> None:
    first = look(name)
    again = audit.suppose(first, ())
    assert {(each.subject, each.name): each.value for each in again.facts} == {
        (each.subject, each.name): each.value for each in first.facts
    }


def test_what_was_seen_is_not_changed_by_what_is_supposed() -> None:
    first = look(DISABLED)
    audit.suppose(first, [parse("tank/db sync=standard"), parse("host release=2.4.4")])
    assert first.facts.get(Subject("dataset", "tank/db"), "sync").word() == "disabled"
    assert judged(first).report.exit_code == 14


def family(*values: tuple[str, Known | None]) -> Facts:
    """Datasets below a pool with what is known of their sync."""
    facts = Facts(0.0)
    for name, value in values:
        dataset = Subject("dataset", name)
        facts.put(Fact(dataset, "type", known("filesystem", "type=filesystem")))
        facts.put(Fact(dataset, "sync", value or unknown("zfs get failed")))
    return facts


def test_children_inherit_what_they_have_no_value_of_their_own_for() -> None:
    facts = family(
        ("tank", known("standard", "sync=standard (default)")),
        ("tank/db", known("standard", "sync=standard (default)")),
        ("tank/db/own", known("always", "sync=always (local)")),
        ("tank/db/own/below", known("always", "sync=always, inherited from tank/db/own", "", "tank/db/own")),
        ("tank/db/got", known("always", "sync=always (received)")),
        ("tank/db/heir", known("standard", "sync=standard (default)")),
        ("tank/db/unread", None),
        ("tank/db2", known("standard", "sync=standard (default)")),
    )
    after = supposition.suppose(facts, [parse("tank/db sync=disabled")], registry(), ())
    assert {each.name: value(after, each, "sync") for each in after.subjects("dataset")} == {
        "tank": "standard",
        "tank/db": "disabled",
        "tank/db/own": "always",
        "tank/db/own/below": "always",
        "tank/db/got": "always",
        "tank/db/heir": "disabled",
        "tank/db/unread": None,
        "tank/db2": "standard",
    }
    heir = after.get(Subject("dataset", "tank/db/heir"), "sync")
    assert isinstance(heir, Known)
    assert heir.evidence[0].origin == "tank/db"


def test_a_nearer_value_comes_before_one_further_up() -> None:
    facts = family(
        ("tank", known("disabled", "sync=disabled (local)")),
        ("tank/a", known("disabled", "sync=disabled, inherited from tank", "", "tank")),
        ("tank/a/b", known("disabled", "sync=disabled, inherited from tank", "", "tank")),
    )
    both = [parse("tank/a sync=always"), parse("tank sync=standard")]
    after = supposition.suppose(facts, both, registry(), ())
    assert [value(after, each, "sync") for each in after.subjects("dataset")] == ["standard", "always", "always"]


def test_changes_are_made_from_left_to_right() -> None:
    _, then, _ = supposed(DISABLED, "tank/db sync=standard", "tank/db sync=disabled")
    assert cell(then.report, "tank/db", "crash") == "lost"


# -- what follows from it ----------------------------------------------------------------------------------------------


def test_sync_standard_keeps_what_sync_disabled_loses() -> None:
    now, then, changed = supposed(DISABLED, "tank/db sync=standard")
    assert (cell(now.report, "tank/db", "crash"), cell(then.report, "tank/db", "crash")) == ("lost", "kept")
    assert [each.rule for each in changed.gone] == ["sync-disabled"]
    assert (changed.new, changed.worse) == ((), ())
    assert (now.report.exit_code, then.report.exit_code) == (14, 13)


def test_what_is_not_known_stays_unknown_in_both() -> None:
    now, then, _ = supposed(DISABLED, "tank/db sync=standard")
    unknowns = [{each.rule.id for each in side.report.findings if not each.failed} for side in (now, then)]
    assert unknowns[0] == unknowns[1] != set()


def test_sync_disabled_loses_what_is_kept() -> None:
    _, then, changed = supposed(PROTECTED, "tank sync=disabled")
    assert {cell(then.report, name, "crash") for name in ("tank", "tank/db", "tank/db/wal")} == {"lost"}
    assert "sync-disabled" in [each.rule for each in changed.new]


def test_a_parameter_of_the_module() -> None:
    _, then, changed = supposed("2.2-zil-nocacheflush", "zfs zil_nocacheflush=0")
    assert "zil-nocacheflush" in [each.rule for each in changed.gone]
    assert changed.worse == ()
    assert value(then.facts, HOST, "zil_nocacheflush") == 0


def test_counters_of_the_time_before_say_nothing_of_flushes_that_are_supposed() -> None:
    """No flush was counted while they were off: that is neither a failure afterwards, nor does it prove that they arrive."""
    _, then, changed = supposed("2.4-zfs-nocacheflush", "zfs zfs_nocacheflush=0")
    assert "zfs-nocacheflush" in [each.rule for each in changed.gone]
    leaves = [each for each in then.facts.subjects("leaf") if isinstance(then.facts.get(each, "disks"), Known)]
    assert leaves
    assert {value(then.facts, leaf, "flushes_reach_disk") for leaf in leaves} == {None}


def test_a_setting_of_a_database_by_its_engine_or_its_name() -> None:
    for who in ("postgres", "postgres 362"):
        _, then, changed = supposed(POSTGRES, f"{who} fsync=on")
        assert "pg-fsync-off" in [each.rule for each in changed.gone]
        assert "fsync = on" in value(then.facts, Subject("database", "postgres 362"), "configured")  # type: ignore[operator]
        assert changed.new == ()


def test_doublewrite_guards_pages() -> None:
    _, _, changed = supposed("2.3-db-mariadb-doublewrite-off", "mariadb innodb_doublewrite=ON")
    assert "torn-page-guard-off" in [each.rule for each in changed.gone]


def test_a_drive_of_the_log_is_gone() -> None:
    now, then, changed = supposed(PROTECTED, "nvme2n1 gone")
    assert {"slog-unhealthy", "pool-degraded"} <= {each.rule for each in changed.new}
    assert cell(now.report, "tank/db", "power+log") == "kept" != cell(then.report, "tank/db", "power+log")


def test_a_pool_that_lost_both_legs_does_not_work() -> None:
    _, then, _ = supposed(PROTECTED, "nvme0n1 gone", "/dev/nvme3n1 gone")
    assert "pool-suspended" in {each.rule.id for each in then.report.findings if each.failed}
    _, then, changed = supposed(PROTECTED, "nvme0n1 gone")
    assert "pool-suspended" not in {each.rule.id for each in then.report.findings if each.failed}
    assert "pool-degraded" in [each.rule for each in changed.new]


def test_another_drive_is_judged_by_its_model() -> None:
    worse = supposed(PROTECTED, f"nvme2n1 model={BAD}")[2]
    assert "no-power-loss-protection" in [each.rule for each in worse.new]
    same = supposed(PROTECTED, f"nvme2n1 model={GOOD}")[2]
    assert (same.new, same.worse, same.open) == ((), (), ())


def test_a_log_mirror_of_drives_that_keep_what_they_acknowledged() -> None:
    now, then, changed = supposed("2.3-full-92", f'tank add log mirror "{GOOD}" "{GOOD}"')
    assert "power+log" not in now.report.events
    assert "power+log" in then.report.events
    assert changed.worse == ()
    assert {each.rule for each in changed.new} == set()
    (log,) = then.facts.linked(Subject("pool", "tank"), "log_vdevs")
    assert [value(then.facts, log, name) for name in ("type", "failures_tolerated")] == ["mirror", 1]
    unguarded = supposed("2.3-full-92", f"tank add log mirror {BAD} {BAD}")[2]
    assert "no-power-loss-protection" in [each.rule for each in unguarded.new]


def test_a_drive_of_a_log_that_was_supposed_can_be_supposed_gone() -> None:
    then = supposed("2.3-full-92", f'tank add log mirror "{GOOD}" "{GOOD}"', "new1 gone")[1]
    assert "slog-unhealthy" in {each.rule.id for each in then.report.findings if each.failed}


# -- releases ----------------------------------------------------------------------------------------------------------


def test_an_upgrade_brings_bugs_of_its_own() -> None:
    _, then, changed = supposed(DISABLED, "host release=2.4.1")
    assert "advisory-clone-after-truncate" in [each.rule for each in changed.new]
    assert not any(each.rule.startswith("advisory-") for each in changed.gone)
    assert then.report.release == "2.4.1"


def test_an_upgrade_takes_bugs_away() -> None:
    changed = supposed("2.1-sync-disabled-inherited", "host release=2.4.4")[2]
    assert {"advisory-mmap-read-race", "advisory-line-not-maintained"} <= {each.rule for each in changed.gone}
    bugs = [each.text for each in changed.new if each.rule == "known-bugs"]
    assert all("no release up to 2.4.4 fixes it" in text for text in bugs), "what newer lines brought, and still have"


def test_bugs_without_a_rule_of_their_own_are_named_too() -> None:
    changed = supposed("2.1-sync-disabled-inherited", "host release=2.3.4")[2]
    reclaims = "panics on Linux 6.7 and later when memory is reclaimed from a dataset that is being unmounted (2.2.7)"
    assert f"OpenZFS 2.1.11-1+deb12u1 {reclaims}" in [each.text for each in changed.gone]
    assert any("panics on a pool with damaged space maps" in each.text for each in changed.new)
    assert any("systemd-udev-settle" in each.text for each in changed.stays)


def test_the_same_release_changes_nothing() -> None:
    changed = supposed("2.4-healthy-physical-no-cache", "host release=2.4.4")[2]
    assert (changed.gone, changed.new) == ((), ())


def test_what_nobody_set_has_the_defaults_of_the_release() -> None:
    changed = supposed("2.1-sync-disabled-inherited", "host release=2.3.4")[2]
    assert not {"tunables-changed", "modprobe-drift"} & {each.rule for each in changed.new}


def test_of_a_release_after_the_table_nothing_is_called_clean() -> None:
    changed = supposed("2.4-healthy-physical-no-cache", "host release=2.4.9")[2]
    assert "known-bugs" in [each.rule for each in changed.open]


def test_a_kernel_that_is_too_new_for_the_release_is_found() -> None:
    changed = supposed("2.4-healthy-physical-no-cache", "host release=2.2.0")[2]
    assert "untested-combination" in [each.rule for each in changed.new]


def test_every_entry_names_a_rule_that_explain_takes() -> None:
    changed = supposed("2.1-sync-disabled-inherited", "host release=2.2.0")[2]
    names = {rule.id for rule in rules()}
    assert {each.rule for each in (*changed.gone, *changed.new, *changed.open, *changed.stays)} <= names


# -- what is not understood --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("tank/db", "SUBJECT PROPERTY=VALUE"),
        ("=standard", "SUBJECT PROPERTY=VALUE"),
        ("sync=standard", "SUBJECT PROPERTY=VALUE"),
        ("tank/db sync=", "SUBJECT PROPERTY=VALUE"),
        ("tank/pgg sync=standard", "similar: tank/pg"),
        ("tank synk=standard", "similar: sync"),
        ("tank mountpoint=/x", "cannot be supposed of tank"),
        ("tank sync=allways", "similar: always"),
        ("tank recordsize=17K", "recordsize cannot be 17K"),
        ("tank recordsize=many", "no number"),
        ("tank copies=4", "copies cannot be 4"),
        ("tank compression=lz5", "never lz5"),
        ("tank volsize=1G", "a filesystem has no volsize"),
        ("tank failmode=wat", "similar: wait"),
        ("zfs zil_nocacheflus=0", "similar: zil_nocacheflush"),
        ("zfs zil_nocacheflush=x", "no number"),
        ("postgre fsync=on", "similar: postgres 362"),
        ("postgres fsink=on", "similar: fsync"),
        ("postgres fsync=perhaps", "fsync is never perhaps"),
        ("postgres synchronous_commit=never", "synchronous_commit is never never"),
        ("nvme1n gone", "similar: nvme1n1"),
        ("nvme1n1 model=Micron 73OO", "drives.toml knows no model"),
        ("nvme1n1 write_cache=on", "write back, write through"),
        ("tank add log mirror", "SUBJECT PROPERTY=VALUE"),
        (f"tank add log mirror '{GOOD}'", "name two models"),
        (f"tank add log mirror '{GOOD}' 'no such'", "drives.toml knows no model no such"),
        ("tank/pg add log mirror a b", "no pool tank/pg"),
        ("host release=2.4", "host release=2.4.4"),
        ("host release=2.4.x", "host release=2.4.4"),
        ("host release=2.4.99", "is no release, but a snapshot"),
        ("host release=7.1.2", "OpenZFS has no line 7.1"),
    ],
)
def test_what_is_not_there_or_not_possible_is_an_error_with_near_matches(words: str, says: str) -> None:
    with pytest.raises(SuppositionError) as error:
        audit.suppose(look(POSTGRES), [parse(words)])
    assert says in str(error.value)
    assert error.value.exit_code == 2


def test_several_databases_of_an_engine_are_named() -> None:
    facts = Facts(0.0)
    for name in ("postgres 1", "postgres 2"):
        facts.put(Fact(Subject("database", name), "fsync", known(False, "fsync = off")))
    with pytest.raises(SuppositionError, match="which postgres\\? There are postgres 1, postgres 2"):
        supposition.suppose(facts, [parse("postgres fsync=on")], registry(), ())
    after = supposition.suppose(facts, [parse("postgres 2 fsync=on")], registry(), ())
    assert [value(after, each, "fsync") for each in after.subjects("database")] == [False, True]


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ('sets    = ["{origin} synk=standard"]', "similar: sync"),
        ('sets    = ["{origin} sync=allways"]', "similar: always"),
        ('sets    = ["tank sync=standard"]', "begins with one of"),
        ('sets    = ["{origin} sync"]', "is no supposition"),
        ('sets    = ["{origin} gone"]', "begins with one of"),
        ('sets    = "{origin} sync=standard"', "must be a list"),
        ('sets    = ["{origin} sync={dataset.nothing}"]', "dataset.nothing"),
        ("sets    = [" + '"{origin} sync=standard", ' * 11 + "]", "at most 10"),
    ],
)
def test_what_a_rule_sets_is_read_strictly(written: str, says: str) -> None:
    text = FIXABLE.replace('sets    = ["{origin} sync=standard"]', written, 1)
    assert text != FIXABLE
    with pytest.raises(RuleError, match=says.replace("{", "\\{")):
        rule_file.load("sync-disabled", "sync-disabled.toml", text.encode(), registry())


# -- the command -------------------------------------------------------------------------------------------------------


def check(zaudit: CommandLine, name: str, *words: str) -> Any:
    return zaudit("check", "--replay", str(HOSTS / name), *words)


def test_the_page_has_both_tables_and_the_exit_code_of_the_supposed_one(zaudit: CommandLine) -> None:
    done = check(zaudit, DISABLED, "--suppose", "tank/db sync=standard")
    first, *lines = done.out.splitlines()
    assert first.startswith("SUPPOSED: tank/db sync=standard · tank on zlab")
    assert lines.index("Now: A CRASH OR POWER CUT LOSES ACKNOWLEDGED COMMITS") < next(
        i for i, line in enumerate(lines) if line.startswith("Supposed: ")
    )
    assert any(line.startswith("gone      critical  sync-disabled") for line in lines)
    assert (done.code, done.err) == (13, "")


def test_known_bugs_of_a_release_are_one_line_with_the_worst(zaudit: CommandLine) -> None:
    page = " ".join(check(zaudit, DISABLED, "--suppose", "host release=2.1.5").out.split())
    assert re.search(
        r"new high known-bugs \d+ known bugs of OpenZFS 2\.1\.5; the worst: [^;]+ \(advisory-[a-z-]+\) open", page
    )
    assert page.count("known bugs of OpenZFS 2.3.9") == 1


def test_a_target_of_the_recording_alone(zaudit: CommandLine) -> None:
    done = check(zaudit, DISABLED, "tank/wal", "--suppose", "tank/db sync=standard", "--format", "json")
    found = json.loads(done.out)
    assert [each["datasets"] for each in found["now"]["events"]] == [["tank/wal"]]
    assert (found["gone"], found["better"], found["worse"]) == ([], [], [])


def test_a_live_host_is_supposed_like_its_recording(zaudit: CommandLine) -> None:
    recorded = check(zaudit, DISABLED, "--suppose", "tank/db sync=standard")
    zaudit.host = ReplayHost(host(DISABLED))  # type: ignore[assignment]
    live = zaudit("check", *host(DISABLED).targets, "--suppose", "tank/db sync=standard")
    assert (live.code, live.out) == (recorded.code, recorded.out)


def test_programs_read_it_as_json(zaudit: CommandLine) -> None:
    done = check(zaudit, DISABLED, "--suppose", "host release=2.4.1", "--format", "json")
    found = json.loads(done.out)
    assert (found["schema"], found["supposed"]) == ("zaudit-supposed/2", ["host release=2.4.1"])
    jsonschema.Draft202012Validator(SCHEMAS["supposed"]()).validate(found)
    assert [found[side]["openzfs"] for side in ("now", "then")] == ["2.3.9-0+deb13u1", "2.4.1"]
    assert done.code == found["exit_code"] == found["then"]["exit_code"]
    assert {
        "rule": "advisory-clone-after-truncate",
        "where": "",
        "severity": "high",
        "text": "Zeros from blocks cloned over a truncation",
        "outcome": "fail",
    } in found["new"]


@pytest.mark.parametrize("command", ["show", "alert", "diff"])
def test_no_command_takes_it_for_a_report(command: str, zaudit: CommandLine, tmp_path: Any) -> None:
    file = tmp_path / "supposed.json"
    check(zaudit, DISABLED, "--suppose", "tank/db sync=standard", "--format", f"json={file}")
    assert json.loads(file.read_text())["schema"] == "zaudit-supposed/2"
    more = {"show": (), "alert": ("--hook", "/bin/echo"), "diff": (file,)}[command]
    done = zaudit(command, file, *more)
    assert "not a report of zaudit: its schema is neither" in done.out + done.err


@pytest.mark.parametrize(
    "words",
    [
        ("--record", "r.zaudit"),
        ("--verify",),
        ("--format", "sarif"),
        ("--format", "prometheus=x.prom"),
    ],
)
def test_it_is_no_state_of_the_host(words: tuple[str, ...], zaudit: CommandLine, tmp_path: Any) -> None:
    files = [str(tmp_path / word) if word.endswith((".json", ".zaudit")) else word for word in words]
    done = check(zaudit, DISABLED, "--suppose", "tank/db sync=standard", *files)
    assert done.code == 2
    assert "--suppose cannot be combined" in " ".join(done.err.split())
    assert list(tmp_path.iterdir()) == []


def test_an_error_is_a_usage_error_in_one_line(zaudit: CommandLine) -> None:
    done = check(zaudit, DISABLED, "--suppose", "tank/dbb sync=standard")
    assert done.code == 2
    assert done.err == (
        "zaudit: tank/dbb sync=standard: no dataset or pool or disk or database tank/dbb was seen; similar: tank/db, "
        "tank, tank/wal\n"
    )
