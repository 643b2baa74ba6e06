"""A restart is no news, another drive is: what is compared between two nights goes by what it is, not by what it is called."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from auditor import audit
from auditor.facts import HOST, Fact, Facts, Subject, known
from auditor.judge import baseline
from auditor.judge.baseline import Baseline, Entry
from auditor.judge.verdict import Carries, Identities, Verdict
from auditor.recording.recording import Recording, ReplayHost
from auditor.report import audit_page, changes
from auditor.report import report_json as json_report
from auditor.report.formats import exchange
from auditor.report.model import Report
from auditor.report.report_reader import parse_report
from tests import renamed, shared
from tests.shared import HOSTS

QUICK = ("2.3-db-postgres-fsync-off", "2.3-drives-that-warn", "composed-proxmox-ve-9")
NAMES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in HOSTS.names()]
RULES = {rule.id: rule for rule in shared.rules()}


def look(past: Recording) -> audit.Look:
    return audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))


@cache
def looks(name: str) -> tuple[audit.Look, audit.Look, audit.Look]:
    """As it was recorded, after a restart, and with other drives in its slots."""
    past = shared.host(name)
    return look(past), look(renamed.renamed(past)), look(renamed.other_drives(past))


@cache
def reports(name: str) -> tuple[Report, ...]:
    return tuple(judged(each) for each in looks(name))


def judged(seen: audit.Look, of: Baseline | None = None) -> Report:
    return audit.judge(seen, shared.audited(), (), "low", known=of)


def accepted(seen: audit.Look) -> Baseline:
    report = judged(seen, baseline.empty(seen.facts, ()))
    assert report.night
    return baseline.updated(report.night, report.verdicts, seen.facts, accept=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_restart_changes_nothing(name: str) -> None:
    """Other kernel names and numbers of processes: no difference, the same ids, places and series, and a quiet night."""
    before, after, _ = reports(name)
    found = changes.compare(json_report.document(before), json_report.document(after))
    assert found.differences == ()
    told = [parse_report(json_report.document(each)) for each in (before, after)]
    ids = [sorted(each.id for each in one.all) for one in told]
    assert ids[0] == ids[1]
    lines = [{(row["id"], row["place"]) for row in exchange.rows(one) if row["kind"] == "finding"} for one in told]
    assert lines[0] == lines[1]
    prints = [
        {
            each["partialFingerprints"]["zauditFinding/v1"]
            for each in json.loads(exchange.render_whole(one))["runs"][0]["results"]
        }
        for one in told
    ]
    assert prints[0] == prints[1]
    series = [
        {line for line in exchange.prometheus(one).splitlines() if line.startswith("zaudit_finding{")} for one in told
    ]
    assert series[0] == series[1]


@pytest.mark.parametrize("name", NAMES)
def test_the_night_after_a_restart_is_as_quiet_as_the_one_before(name: str) -> None:
    """What is accepted stays accepted; what counts the night after is what has no answer yet."""
    seen, restarted, _ = looks(name)
    of = accepted(seen)
    same, again = judged(seen, of), judged(restarted, of)
    for report in (same, again):
        assert report.night
        assert (report.night.worse, report.night.gone, report.night.unseen) == ((), (), ())
        assert not [each for each in report.fresh if each.failed]
        open_ = [verdict for each in report.fresh for verdict in each.verdicts]
        assert all(baseline.refusal(each) for each in open_)
    assert again.exit_code == same.exit_code


@pytest.mark.parametrize("name", NAMES)
def test_another_drive_in_the_slot_is_new(name: str) -> None:
    """With the same fault, at the same kernel name."""
    seen, _, swapped = looks(name)
    before, _, after = reports(name)
    faults = {
        (each.rule.id, each.subject)
        for each in before.verdicts
        if each.outcome == "fail" and each.subject.kind == "disk" and is_swapped(seen.facts, each.subject)
    }
    found = changes.compare(json_report.document(before), json_report.document(after)).differences
    news = {(each.shown.rule, each.shown.subject) for each in found if each.change == "new"}
    assert {(rule, f"disk {subject}") for rule, subject in faults} <= news
    night = judged(swapped, accepted(seen))
    fresh = {(each.rule.id, each.subject) for finding in night.fresh if finding.failed for each in finding.verdicts}
    assert faults <= fresh


def is_swapped(facts: Facts, disk: Subject) -> bool:
    serial = str(getattr(facts.get(disk, "serial"), "value", ""))
    return serial.startswith(("LAB", "PHLJ", "2118E5"))


def test_a_drive_that_fails_is_not_the_one_that_was_accepted() -> None:
    """The case that opened this: a fault of sda was accepted, another drive with the same fault is sda now."""
    seen, restarted, swapped = looks("2.3-drives-that-warn")
    of = accepted(seen)
    ids = [{each.place for each in judged(one, of).fresh if each.failed} for one in (restarted, swapped)]
    assert (ids[0], "disks" in ids[1]) == (set(), True)


def test_what_each_kind_goes_by() -> None:
    facts = Facts()
    pool, leaf, disk = Subject("pool", "tank"), Subject("leaf", "sda1", "tank"), Subject("disk", "sda")
    vdev, mirror = Subject("vdev", "sda1", "tank"), Subject("vdev", "mirror-1", "tank")
    server, group = Subject("database", "postgres 7"), Subject("database", "postgres of user x")
    names = Identities(facts)
    nothing = [names.of(each).text for each in (pool, leaf, disk, vdev, server)]
    assert nothing == ["tank", "", "", "", ""], "a name that does not last is no identity"
    facts.put_all(
        [
            Fact(pool, "guid", known("4711", "")),
            Fact(leaf, "disks", known((disk,), "")),
            Fact(leaf, "path", known("/dev/sda1", "")),
            Fact(leaf, "guid", known("99", "")),
            Fact(vdev, "leaves", known((leaf,), "")),
            Fact(disk, "used_by", known((leaf,), "")),
            Fact(server, "engine", known("postgres", "")),
            Fact(server, "data_directory", known("/srv/pg", "")),
            Fact(server, "data_datasets", known((Subject("dataset", "tank/pg"),), "")),
        ]
    )
    names = Identities(facts)
    assert [names.of(each).text for each in (pool, leaf, disk, vdev, mirror, server, group)] == [
        "4711", "4711 99", "99", "4711 99", "4711 mirror-1", "postgres /srv/pg on tank/pg", "postgres of user x"
    ]  # fmt: skip
    assert names.of(server).label == "postgres /srv/pg"
    facts.put_all([Fact(disk, "serial", known("S1", "")), Fact(disk, "wwn", known("0x5", ""))])
    names = Identities(facts)
    assert [names.of(each).text for each in (leaf, disk, vdev)] == ["4711 S1 part 1", "S1", "4711 S1 part 1"]
    facts.replace(Fact(disk, "serial", known("0000", "")))
    assert Identities(facts).of(disk).text == "0x5", "a number that says nothing is none"


def verdict(subject: Subject, rule: str = "disk-worn", outcome: Any = "fail", **more: Any) -> Verdict:
    return Verdict(RULES[rule], subject, outcome, "medium", **more)


def one(facts: Facts, *found: Verdict, of: Baseline | None = None, accept: bool = True) -> Baseline:
    rules = list({each.rule.id: each.rule for each in found}.values())
    _, night = baseline.apply(of or baseline.empty(facts, ()), facts, found, rules)
    return baseline.updated(night, found, facts, accept=accept)


def drive(name: str, serial: str, facts: Facts) -> Subject:
    disk = Subject("disk", name)
    if serial:
        facts.put(Fact(disk, "serial", known(serial, "")))
    return disk


def test_two_drives_that_give_one_serial_number_are_not_one() -> None:
    """An adapter gives both the same: that one was accepted covers the one, and not the other."""
    facts = Facts()
    first, second = (drive(name, "0123456789", facts) for name in ("sda", "sdb"))
    of = one(facts, verdict(first))
    judged_, night = baseline.apply(of, facts, (verdict(first), verdict(second)), [RULES["disk-worn"]])
    assert ([each.known for each in judged_], [why for _, why in night.worse]) == (
        ["", ""], ["2 of them now, 1 when it was accepted"]
    )  # fmt: skip
    both = one(facts, verdict(first), verdict(second))
    assert all(each.known for each in baseline.apply(both, facts, (verdict(second),), [RULES["disk-worn"]])[0])


def test_what_the_host_does_not_tell_apart_is_never_accepted() -> None:
    facts = Facts()
    nameless = verdict(drive("sda", "", facts))
    of = one(facts, nameless)
    assert (of.entries, baseline.nameless([nameless], facts)) == ({}, [nameless.subject])


def test_worse_is_a_cell_that_got_worse_and_the_line_names_it() -> None:
    facts = Facts()
    disk = drive("sda", "S1", facts)
    rule = next(rule for rule in shared.rules() if rule.elements and rule.subject == "disk")

    def found(*cells: Carries, severity: Any = "medium") -> Verdict:
        return Verdict(rule, disk, "fail", severity, cells=cells)

    relies, lost = Carries("power", "commits", "relies"), Carries("power", "commits", "lost")
    of = one(facts, found(relies))
    for now, why in (
        (found(relies), ""),
        (found(), ""),
        (found(relies, severity="critical"), ""),  # no cell is worse: another rule's doubt is not this one's fault
        (found(lost), "the power fails: acknowledged commits: lost now, relies when it was accepted"),
        (
            found(relies, Carries("drive", "pool", "unknown")),
            "a data drive dies: the pool: unknown now, no loss when it was accepted",
        ),
    ):  # fmt: skip
        (after,), night = baseline.apply(of, facts, (now,), [rule])
        assert ([text for _, text in night.worse], bool(after.known)) == ([why] * bool(why), not why)
        kept = baseline.updated(night, (now,), facts)
        assert next(iter(kept.entries.values())).cells == (relies,), "an update accepts nothing"


OLD = """{"schema": "zaudit-baseline/1", "host": "zlab", "targets": [], "pools": ["tank"], "made": "2026-11-21", "known": [
%s
]}
"""


def old(*rows: tuple[str, str, str, str]) -> Baseline:
    same = {"outcome": "fail", "severity": "medium", "first": "2026-11-01", "last": "2026-11-21"}
    lines = (
        json.dumps({"rule": rule, "kind": kind, "pool": pool, "name": name, **same}) for rule, kind, pool, name in rows
    )
    return baseline.parse((OLD % ",\n".join(lines)).encode(), "b")


def test_an_older_file_migrates_where_its_names_last_and_is_never_quieter() -> None:
    facts = Facts(1.9e9)
    pool, disk = Subject("pool", "tank"), drive("sda", "S1", facts)
    facts.put_all([Fact(pool, "guid", known("4711", "")), Fact(HOST, "pools", known((pool,), ""))])
    of = old(
        ("pool-nearly-full", "pool", "", "tank"), ("disk-worn", "disk", "", "sda"), ("sync-disabled", "dataset", "", "tank/db")
    )  # fmt: skip
    found = (
        verdict(pool, "pool-nearly-full"),
        verdict(disk),
        verdict(Subject("dataset", "tank/db"), "sync-disabled"),
    )
    rules = [each.rule for each in found]
    after, night = baseline.apply(of, facts, found, rules)
    assert [each.known for each in after] == ["2026-11-01", "", "2026-11-01"]
    assert [str(each.subject) for each in night.nameless] == ["sda"]
    new = baseline.updated(night, found, facts)
    assert {key: each.first for key, each in new.entries.items()} == {
        ("pool-nearly-full", "pool", "4711"): "2026-11-01",
        ("sync-disabled", "dataset", "tank/db"): "2026-11-01",
    }
    text = baseline.text(new)
    assert '"zaudit-baseline/2"' in text
    assert baseline.parse(text.encode(), "b") == new


def test_a_pool_that_was_made_again_is_not_the_one_that_was_accepted() -> None:
    before, after = Facts(), Facts()
    pool = Subject("pool", "tank")
    for facts, guid in ((before, "1"), (after, "2")):
        facts.put_all([Fact(pool, "guid", known(guid, "")), Fact(HOST, "pools", known((pool,), ""))])
    of = one(before, verdict(pool, "pool-nearly-full"))
    (now,), night = baseline.apply(of, after, (verdict(pool, "pool-nearly-full"),), [RULES["pool-nearly-full"]])
    assert (now.known, len(night.gone)) == ("", 1)


def test_a_server_that_is_stopped_is_known_when_it_is_back() -> None:
    facts = Facts()
    server = Subject("database", "postgres 7")
    facts.put_all([Fact(server, "engine", known("postgres", "")), Fact(server, "data_directory", known("/srv/pg", ""))])
    of = one(facts, verdict(server, "pg-fsync-off"))
    _, night = baseline.apply(of, Facts(), (), [RULES["pg-fsync-off"]])
    assert (night.gone, len(night.kept)) == ((), 1)
    assert baseline.updated(night, (), Facts()).entries == of.entries


def test_a_clock_that_went_back_forgets_nothing() -> None:
    later, earlier = Facts(1.8e9), Facts(1.7e9)
    for facts in (later, earlier):
        facts.put(Fact(Subject("disk", "sda"), "serial", known("S1", "")))
    found = verdict(Subject("disk", "sda"))
    of = one(later, found)
    after = one(earlier, found, of=of, accept=False)
    assert after.entries == of.entries
    assert of.newest > baseline.day(earlier)


def test_an_entry_without_identity_has_its_name_for_a_key() -> None:
    entry = Entry("disk-worn", Subject("disk", "sda"), "", "fail", "low", None, 1, "2026-11-01", "2026-11-01")
    assert entry.key == ("disk-worn", "disk", "name sda")


def test_a_reader_may_call_a_server_as_reports_do() -> None:
    facts = Facts()
    server, home = Subject("database", "postgres 7"), Subject("dataset", "tank/pg")
    for name, value in (("engine", "postgres"), ("data_directory", "/srv/pg"), ("data_datasets", (home,))):
        facts.put(Fact(server, name, known(value, "")))
    (entry,) = one(facts, verdict(server, "pg-fsync-off")).entries.values()
    assert {"postgres 7", "postgres /srv/pg", "postgres /srv/pg on tank/pg"} <= {*entry.called}


def without_a_drive(past: Recording) -> Recording:
    """The night on which sda has left the bus, and zpool status knows it."""
    leg, name = "ata-Samsung_SSD_980_PRO_2TB_LABSATA0", re.compile(r"\bsda\d?\b")
    commands = dict(past.commands)
    for run, answer in past.commands.items():
        if run[:2] == ("zpool", "status") and run[-1] == "tank":
            document = json.loads(answer.stdout)
            pool = document["pools"]["tank"]
            root = pool["vdevs"]["tank"]
            mirror = root["vdevs"]["mirror-0"]
            mirror["vdevs"][leg]["state"] = "REMOVED"
            pool["state"] = root["state"] = mirror["state"] = "DEGRADED"
            commands[run] = answer._replace(stdout=json.dumps(document).encode())
        elif run[0] == "udevadm":
            records = answer.stdout.decode().split("\n\n")
            commands[run] = answer._replace(stdout="\n\n".join(r for r in records if not name.search(r)).encode())
    files = {
        each: was._replace(
            text={path: text for path, text in was.text.items() if not name.search(path)},
            links={path: to for path, to in was.links.items() if not name.search(f"{path} {to}")},
        )
        for each, was in past.files.items()
    }
    return replace(past, commands=commands, files=files)


def test_a_baseline_that_lost_its_drive_says_so_and_is_never_quieter() -> None:
    past = shared.host("2.3-drives-that-warn")
    seen, lost = look(past), look(without_a_drive(past))
    of = accepted(seen)
    names = ("sda", "ata-Samsung_SSD_980_PRO_2TB_LABSATA0")
    mine = {each for each in of.entries.values() if each.subject.name in names}
    assert {each.rule for each in mine} == {"disk-firmware-blocklist", "no-power-loss-protection"}
    report = judged(lost, of)
    assert report.night
    assert report.exit_code > judged(seen, of).exit_code
    assert "pool-degraded" in {each.rule.id for each in report.fresh if each.failed}
    assert mine <= {*report.night.unseen}
    notes = [line for line in audit_page.write_html(report).splitlines() if "NOT SEEN" in line]
    assert any(each.rule in line for each in mine for line in notes)
    after = baseline.updated(report.night, report.verdicts, lost.facts)
    assert {key: each.first for key, each in after.entries.items()} == {k: e.first for k, e in of.entries.items()}
    assert [each.rule.id for each in judged(seen, after).fresh if each.failed] == []
