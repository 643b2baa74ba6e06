"""What reads alike is told once, reads back as it was, and what the first edition said is read for ever."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor import audit
from auditor.facts import HOST, Fact, Facts, Judged, Subject, known, unknown
from auditor.report import changes, report_json
from auditor.report import report_json as json_report
from auditor.report.model import Report
from auditor.sources import zfs
from tests import shared
from tests.fake import CommandLine
from tests.golden import CANONICAL, HOSTS, OLDER, REPORTS, SCHEMAS, report_of

FIRST = json.loads((REPORTS / "json-1.json").read_text())


@given(st.sets(st.integers(0, 500), min_size=1))
def test_places_read_back(numbers: set[int]) -> None:
    assert list(report_json.places(report_json.spelt(numbers), 501)) == sorted(numbers)


@pytest.mark.parametrize("text", ["", "x", "1-", "-1", "3-2", "0-9", "9", "1,,2", "1.5", "٣"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="names"):
        list(report_json.places(text, 9))


def test_equal_verdicts_are_one() -> None:
    names = dict[str, int]()
    verdicts = [
        {"kind": "dataset", "name": "tank/a", "message": "{subject}: off", "command": "zfs set x {subject}"},
        {"kind": "dataset", "name": "tank/b c", "message": "{subject}: off", "command": "zfs set x {subject}"},
        {"kind": "dataset", "name": "tank/d", "message": "{subject}: on", "command": "zfs set x {subject}"},
    ]
    found = report_json.folded(verdicts, names)
    assert found == [
        {"kind": "dataset", "names": "0-1", "message": "{subject}: off", "command": "zfs set x {subject}"},
        {"kind": "dataset", "names": "2", "message": "tank/d: on", "command": "zfs set x tank/d"},
    ]
    assert [(each["name"], each["message"], each["command"]) for each in report_json.spread(found, list(names))] == [
        ("tank/a", "tank/a: off", "zfs set x tank/a"),
        ("tank/b c", "tank/b c: off", "zfs set x 'tank/b c'"),
        ("tank/d", "tank/d: on", "zfs set x tank/d"),
    ]


@pytest.mark.parametrize(
    ("evidence", "names"),
    [([{"text": "{subject}" * 10}], ["a" * 1_000_000]), ([{"text": ""}] * 500, ["a"] * 1000)],
)
def test_a_small_report_does_not_become_a_large_one(
    evidence: list[dict[str, str]], names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_json, "ROOM", 1 << 23)
    verdict = {"kind": "dataset", "names": f"0-{len(names) - 1}", "evidence": evidence}
    with pytest.raises(ValueError, match="more than a report does"):
        sum(1 for _ in report_json.spread([verdict], names))
    finding = {"rule": "R", "title": "t", "severity": "low", "outcome": "fail", "verdicts": [verdict]}
    document = {"schema": json_report.SCHEMA, "names": names, "findings": [finding]}
    with pytest.raises(changes.CompareError, match="more than a report does"):
        changes.compare(document, document)


def test_every_verdict_reads_back_with_its_words() -> None:
    report = report_of(HOSTS / CANONICAL)
    document = json.loads(json_report.render(report))
    told = {
        (finding["rule"], each["kind"], each["name"], each.get("message", ""))
        for finding, each in report_json.unfolded(document)
    }
    meant = {
        (finding.rule.id, each.subject.kind, each.subject.name, each.message)
        for finding in report.findings
        for each in finding.verdicts
    }
    assert told == meant


def many(count: int) -> Report:
    """A pool with so many datasets, on each of which the same is wrong and the same is not known."""
    facts, pool = Facts(1.7e9), Subject("pool", "tank")
    datasets = tuple(Subject("dataset", f"tank/app{i % 100:03d}/db{i:05d}") for i in range(count))
    for subject, name, value in ((HOST, "pools", (pool,)), (pool, "datasets", datasets)):
        facts.put(Fact(subject, name, known(value, "seen")))
    off = known("disabled", "sync=disabled, inherited from tank", "zfs get sync {subject}", origin="tank")
    common = {name: known(value, name) for name, value in (("pool", pool), ("type", "filesystem"), ("readonly", "off"))}
    unseen = dict.fromkeys(zfs.FACTS, unknown("zfs get -Hp -r tank: no answer in 30 s", "--timeout"))
    alike: dict[str, Judged] = {**unseen, **common, "sync": off}
    for dataset in datasets:
        facts.put_all(Fact(dataset, name, value) for name, value in alike.items())
    return audit.judge(audit.Look(facts, datasets[:1]), shared.audited(), ("tank",), "low")


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_report_of_ten_thousand_datasets_is_small(count: int) -> None:
    """Under a megabyte: 100 characters a dataset, whatever is told of it."""
    report, few = many(count), len(json_report.render(many(1)))
    told = sum(len(finding.verdicts) for finding in report.findings)
    assert told > 10 * count
    length = len(json_report.render(report))
    assert length < 1_000_000
    assert length - few < 100 * count


def test_ranges_that_mean_too_much_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_json, "MOST", 40_000)
    document = json.loads(json_report.render(many(2)))
    document["names"] = ["x"] * 1_000
    for finding in document["findings"]:
        finding["verdicts"] = [{"kind": "dataset", "names": "0-999"}] * 50
    with pytest.raises(changes.CompareError, match="more than 40,000 verdicts"):
        changes.compare(document, document)


# -- the promise ----------------------------------------------------------------------------------------------------


def schema(name: str) -> Any:
    content = json.loads((SCHEMAS / name).read_text())
    jsonschema.Draft202012Validator.check_schema(content)
    return jsonschema.Draft202012Validator(content, format_checker=jsonschema.FormatChecker())


def test_a_report_of_the_first_edition_is_valid_and_read() -> None:
    schema("schema-1.json").validate(FIRST)
    same = changes.compare(FIRST, FIRST)
    assert (same.differences, same.notes) == ((), ())
    assert same.same > 10
    now = json.loads(json_report.render(report_of(HOSTS / CANONICAL)))
    found = changes.compare(FIRST, now)
    assert any("rules" in note for note in found.notes), "other rules judged: they rank by events now"
    assert found.same > 0


@pytest.mark.parametrize(("name", "document"), [("schema-1.json", FIRST), ("schema.json", None)])
def test_keys_that_came_later_are_ignored(name: str, document: Any) -> None:
    document = (
        json.loads(json.dumps(document)) if document else json.loads(json_report.render(report_of(HOSTS / CANONICAL)))
    )
    before = changes.compare(document, document)
    document["later"] = document["coverage"]["later"] = 1
    for finding, verdict in [
        (each, one) for each in document["findings"] for one in each.get("verdicts", each.get("subjects"))
    ]:
        finding["later"] = verdict["later"] = {"deep": []}
    schema(name).validate(document)
    assert changes.compare(document, document) == before


def closed(node: Any) -> Any:
    """A schema that allows no key which it does not name: of what zaudit writes each is described."""
    if isinstance(node, list):
        return [closed(each) for each in node]
    if not isinstance(node, dict):
        return node
    shut = {key: closed(value) for key, value in node.items()}
    return {**shut, "additionalProperties": False} if node.get("type") == "object" and "properties" in node else shut


@pytest.mark.parametrize("passed", [False, True])
def test_every_key_that_is_written_is_described(passed: bool) -> None:
    content = closed(json.loads((SCHEMAS / "schema.json").read_text()))
    document = json.loads(json_report.render(report_of(HOSTS / CANONICAL), passed=passed))
    jsonschema.Draft202012Validator(content).validate(document)


def test_who_judged_is_told_with_each_finding() -> None:
    report = report_of(OLDER / CANONICAL)
    document = json.loads(json_report.render(report))
    assert document["recording"]["zaudit"] == "0.1.0"
    assert document["recording"]["lacks"] == list(report.unasked)
    assert len(document["rules"]) == 16
    assert {each["judged_by"] for each in document["findings"]} == {f"zaudit {report.zaudit}, rules {report.rules}"}


def test_a_diff_keeps_to_its_schema(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    zaudit = CommandLine(monkeypatch, capsys)
    bad, good = OLDER / "2.3-sync-disabled-inherited", OLDER / "2.4-healthy-mirrored-slog"
    for old, new in ((bad, good), (good, bad)):
        document = json.loads(zaudit("diff", old, new, "--format", "json").out)
        content = json.loads((SCHEMAS / "diff_schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(content)
        jsonschema.Draft202012Validator(closed(content)).validate(document)
        assert document["before"]["recording"]["zaudit"] == "0.1.0"
        assert document["before"]["rules"] == document["after"]["rules"]
        assert document["changes"]
