"""The report for programs keeps to its schema, and no name of a device, dataset or host breaks either report."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from auditor import audit
from auditor.facts import HOST, Fact, Facts, Known, Subject, known, unknown
from auditor.report import audit_page
from auditor.report import report_json as json_report
from auditor.report.model import Report
from tests import shared
from tests.golden import SCHEMAS, cases, report_anew, report_of
from tests.shared import name_of

SCHEMA = json.loads((SCHEMAS / "schema.json").read_text())
CASES = cases()
HOSTILE = {
    "escape": "\x1b]0;owned\x07\x1b[2J\x1b[31mred",
    "C1": "\x9b31mred\x85next",
    "bidi": "\u202e\u2066live\u2069\u200b\ufeff",
    "newline": "one\ntwo\r\nthree\x0b\x0c\x1c\u2028four",
    "tab": "a\tb\bc\x7f",
    "NUL": "a\x00b",
    "percent": "%s%n%d {0} {subject} {origin} ${HOME} `id` $(id)",
    "quotes": 'it\'s "quoted" \\ back; rm -rf / #',
    "markup": "[bold red]x[/bold red] [link=file:///etc/passwd]y[/link] :smile:",
    "not UTF-8": "caf\udce9 \udcff\udcfe",
    "surrogates": "\ud83d lone \udc00",
    "wide": "\u6f22\u5b57" * 40,
    "combining": "e\u0301" * 50,
    "long": "x" * 500,
    "blank": "   ",
    "emoji": "\U0001f469\u200d\U0001f4bb",
}
SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def validator() -> Any:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    return jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker())


@pytest.mark.parametrize("passed", shared.briefly([(True,), (False,)], quick=1))
@pytest.mark.parametrize(
    "case", shared.briefly([(case,) for case in CASES], quick=15), ids=[name_of(case) for case in CASES]
)
def test_every_report_keeps_to_the_schema(case: Path, passed: bool, validator: Any) -> None:
    report = report_of(case)
    document = json.loads(json_report.render(report, passed=passed))
    validator.validate(document)
    assert ("passes" in document) is passed
    assert document["exit_code"] == report.exit_code
    assert len(document["findings"]) == len(report.findings)
    assert (document["exit_code"] == 0) is (not report.findings)
    assert document["coverage"]["decided"] + document["coverage"]["undecided"] == document["coverage"]["rules"]


@pytest.mark.parametrize(
    "case", shared.briefly(((case,) for case in CASES), quick=6), ids=[name_of(case) for case in CASES]
)
def test_ids_are_unique_and_stay(case: Path) -> None:
    first, second = (json.loads(json_report.render(each(case))) for each in (report_of, report_anew))
    ids = [finding["id"] for finding in first["findings"]]
    assert len(set(ids)) == len(ids)
    assert ids == [finding["id"] for finding in second["findings"]]


def test_an_id_does_not_depend_on_the_host_or_on_other_findings() -> None:
    one = {each.id for each in judged("tank", "hostA").findings}
    two = {each.id for each in judged("tank", "hostB").findings}
    few = {each.id for each in judged("tank", "hostA", "sync-disabled").findings}
    assert one == two
    assert few
    assert few < one


@cache
def judged(name: str, host: str = "db1", only: str = "") -> Report:
    """A host where everything that can be named bears this name. only: the rule by which it is judged; all."""
    facts = Facts(1.7e9)
    pool, disk = Subject("pool", name), Subject("disk", name)
    vdev, leaf = Subject("vdev", name, name), Subject("leaf", name, name)
    datasets = (Subject("dataset", name), Subject("dataset", f"{name}/{name}"))
    text, command = f"is {name}", "zfs get sync {subject}"

    def put(subject: Subject, **values: Any) -> None:
        for fact, value in values.items():
            facts.put(Fact(subject, fact, known(value, text, command)))

    put(HOST, hostname=host, zfs_version_text=name, pools=(pool,))
    put(pool, vdevs=(vdev,), leaves=(leaf,), datasets=datasets, state="DEGRADED", status_text=name, capacity_percent=97)
    put(vdev, pool=pool, leaves=(leaf,), allocation_class="log", type="disk", state="DEGRADED")
    put(leaf, pool=pool, vdev=vdev, disks=(disk,), allocation_class="log", type="file", state="FAULTED", path=name)
    put(disk, model=name, serial=name, transport="usb", nvme_critical_warning=4)
    for dataset in datasets:
        facts.put(
            Fact(dataset, "sync", known("disabled", f"sync=disabled, inherited from {name}", command, origin=name))
        )
        facts.put(Fact(dataset, "checksum", unknown(f"zfs get {name}: {name}", "run as root")))
        put(dataset, pool=pool, type="filesystem", logbias=name, role="undeclared", readonly="off")
    return audit.judge(
        audit.Look(facts, datasets), [rule for rule in shared.rules() if only in ("", rule.id)], (name,), "low"
    )


@pytest.mark.slow
@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("width", [60, 100])
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_on_a_terminal(name: str, width: int, color: bool) -> None:
    report = judged(name, host=name)
    assert sum(finding.failed for finding in report.findings) >= 4
    text = audit_page.write_text(report, width=width, color=color, verbose=2)
    text.encode("utf-8")
    if color:
        assert SGR.search(text)
        text = SGR.sub("", text)
    unsafe = re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]", text)
    assert not unsafe
    assert "CRITICAL" in text


@pytest.mark.parametrize("width", shared.briefly([(60,), (100,)], quick=1))
@pytest.mark.parametrize("name", shared.briefly(((name,) for name in HOSTILE.values()), quick=4))
def test_hostile_names_where_only_ascii_is_shown(name: str, width: int) -> None:
    ascii_only = audit_page.write_text(judged(name, host=name), width=width, ascii_only=True, verbose=2)
    assert ascii_only.isascii()
    assert all(char == "\n" or char.isprintable() for char in ascii_only)


@pytest.mark.parametrize("name", shared.briefly(((name,) for name in HOSTILE.values()), quick=4))
def test_hostile_names_in_json(name: str, validator: Any) -> None:
    text = json_report.render(judged(name, host=name), passed=True)
    assert text.isascii()
    document = json.loads(text.encode())
    validator.validate(document)
    json.dumps(document, ensure_ascii=False).encode("utf-8")  # no lone surrogates, for those who decode it
    if name.isprintable():
        assert document["host"] == name


@pytest.mark.parametrize("name", shared.briefly(((name,) for name in HOSTILE.values()), quick=4), ids=HOSTILE)
def test_a_command_can_be_pasted(name: str) -> None:
    """What the report offers to paste is one word for the shell, wherever a name stands in it."""
    import subprocess

    report = judged(name)
    commands = {verdict.command for finding in report.findings for verdict in finding.verdicts if verdict.command}
    mine = [command for command in commands if command.startswith("zfs set sync=standard ")]
    assert mine
    if "\x00" in name or name == HOSTILE["surrogates"]:
        return  # no file system and no pool can bear it
    shown = subprocess.run(
        ["bash", "-c", "zfs() { printf '%s' \"$3\"; }; " + mine[0]],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8"},
    )
    assert shown.stdout.decode("utf-8", "surrogateescape") == name


def test_every_known_outcome_is_in_the_schema() -> None:
    finding = SCHEMA["$defs"]["finding"]["properties"]
    report = judged("tank")
    assert {("fail" if each.failed else "unknown") for each in report.findings} | {"waived"} == set(
        finding["outcome"]["enum"]
    )
    assert {rule.harm for rule in shared.rules()} <= set(finding["harm"]["enum"])
    assert {rule.fix.cost for rule in shared.rules()} <= set(finding["fix"]["properties"]["cost"]["enum"])
    assert isinstance(Known("x", ()), Known)
