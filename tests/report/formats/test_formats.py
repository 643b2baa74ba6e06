"""Every format: from the folder, of this report and an older one, of a hostile one; and nothing undecided looks good in any."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from auditor.report import formats, report_json, report_reader
from auditor.report.formats import exchange, pages
from auditor.report.report_reader import NoReport, ReportDocument, parse_report
from tests.golden import FORMATS, format_files
from tests.report.formats import documents
from tests.report.test_report_json import HOSTILE, judged
from tests.shared import briefly, some

SCHEMA = json.loads((FORMATS.parent.parent.parent / "auditor/report/formats/jsonl_schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
OF_DATA = formats.of_data()


def rendered(name: str, document: Any) -> str:
    return formats.named(name).render(parse_report(document))


def test_each_name_has_a_format() -> None:
    assert {"terminal", "html", "json", "prometheus", "nagios", "sarif-github"} <= set(formats.names())
    for name in formats.names():
        found = formats.named(name)
        assert found.text or found.page, name
    assert formats.names() == OF_DATA, "zaudit show has them all"


@pytest.mark.parametrize("name", sorted(format_files()))
def test_the_golden_files_are_what_is_said(name: str) -> None:
    assert (FORMATS / name).read_text() == format_files()[name], "run: python -m tests.golden"


def test_every_format_of_data_has_a_golden_file() -> None:
    assert set(format_files()) == {path.name for path in FORMATS.iterdir()}
    assert {name.rpartition(".")[0] for name in format_files()} == set(OF_DATA) - {"json"}


@pytest.mark.parametrize("name", OF_DATA)
def test_a_report_of_the_first_edition_is_told(name: str) -> None:
    text = rendered(name, documents.first_edition())
    assert "zlab" in text or name in ("prometheus", "nagios", "checkmk", "npd")
    assert "sync-disabled" in text


@pytest.mark.parametrize("name", ["json", "markdown", "junit", "sarif", "sarif-github"])
def test_a_finding_names_what_prints_its_rule(name: str) -> None:
    document = documents.recorded()
    failed = {each["rule"] for each in document["findings"] if each["outcome"] == "fail"}
    text = rendered(name, document)
    assert failed
    assert failed <= set(
        re.findall(r"zaudit explain ([a-z0-9-]+)" if name != "json" else r"docs/rules/([a-z0-9-]+)\.md", text)
    )
    document["next"] = "zaudit verify tank"
    for each in document["findings"]:
        del each["page"]
    assert not re.search(r"docs/rules/|zaudit explain [a-z]", rendered(name, document)), "one of a site has none"


@pytest.mark.parametrize(
    ("rule", "page"),
    [
        ("sync-disabled", "https://example.org/sync-disabled.md"),
        ("sync-disabled", "docs/rules/other.md"),
        ("x; reboot", "docs/rules/x; reboot.md"),
        ("../../x", "docs/rules/../../x.md"),
    ],
)
def test_a_page_that_is_none_of_the_rule_is_not_named(rule: str, page: str) -> None:
    document = documents.recorded()
    document["findings"][0] |= {"rule": rule, "page": page}
    assert parse_report(document).findings[0].more == ""


def test_json_is_the_report_as_it_was() -> None:
    document = documents.recorded() | {"later": {"key": [1]}}
    assert json.loads(rendered("json", document)) == document


# -- nothing undecided looks good -----------------------------------------------------------------------------------


def _junit_good(text: str) -> bool:
    suite = ElementTree.fromstring(text.encode())[0]
    return not suite.findall("testcase/error") or suite.get("errors") == "0"


def _lines_good(text: str) -> bool:
    rows = list(map(json.loads, text.splitlines()))
    return not any(row.get("was") == "unknown" for row in rows)


def _sarif_good(text: str) -> bool:
    results = json.loads(text)["runs"][0]["results"]
    return not any(each["message"]["text"].startswith("Unknown: ") and each["kind"] == "open" for each in results)


def _github_good(text: str) -> bool:
    results = json.loads(text)["runs"][0]["results"]
    return not any(each["message"]["text"].startswith("Unknown: ") and each["level"] != "none" for each in results)


GOOD: dict[str, Callable[[str], bool]] = {  # does a reader of the format take it for good news?
    "prometheus": lambda text: not re.search(r'zaudit_findings\{outcome="unknown",severity="\w+"\} [1-9]', text),
    "nagios": lambda text: not re.match(r"ZAUDIT UNKNOWN - .*unknown: rule-0", text),
    "checkmk": lambda text: not re.match(r'3 "zaudit" .*unknown: rule-0', text),
    "npd": lambda text: not text.startswith("unknown: rule-0"),
    "summary": lambda text: "1 unknown" not in text,
    "markdown": lambda text: "### Could not be told\n\n- `rule-0`" not in text,
    "terminal": lambda text: not re.search(r"^UNKNOWN +rule-0 ", text, re.MULTILINE),
    "html": lambda text: ">UNKNOWN<" not in text or " rule-0</h3>" not in text,
    "junit": _junit_good,
    "jsonl": _lines_good,
    "sarif": _sarif_good,
    "sarif-github": _github_good,
    "json": lambda text: not any(each["outcome"] == "unknown" for each in json.loads(text)["findings"]),
}


@pytest.mark.parametrize("name", OF_DATA)
@pytest.mark.parametrize("severity", ["low", "medium", "high", "critical"])
def test_what_is_undecided_is_never_good(name: str, severity: str) -> None:
    assert not GOOD[name](rendered(name, documents.with_findings(("unknown", severity))))
    assert GOOD[name](rendered(name, documents.with_findings()))


@pytest.mark.parametrize("name", OF_DATA)
def test_a_host_of_which_nobody_can_tell_is_not_good(name: str) -> None:
    """The rules that decide it were left out: there is no finding."""
    document = documents.with_findings() | {
        "standing": "cannot tell",
        "headline": "UNKNOWN WHETHER A POWER CUT LOSES COMMITS (9 RULES WERE LEFT OUT)",
    }
    text = rendered(name, document)
    assert re.search(r"unknown\s+whether|cannot tell", text.lower())  # the headline, or the standing
    match name:
        case "nagios" | "checkmk":
            assert "UNKNOWN - " in text
        case "junit":
            assert ElementTree.fromstring(text.encode())[0].get("errors") == "1"
        case "summary":
            assert "nothing found" not in text


@pytest.mark.parametrize(
    ("findings", "threshold", "state"),
    [
        ([], "low", 0),
        ([("fail", "critical")], "low", 2),
        ([("fail", "high"), ("unknown", "critical")], "low", 2),
        ([("fail", "medium")], "low", 1),
        ([("fail", "low")], "low", 1),
        ([("unknown", "low")], "low", 3),
        ([("fail", "medium"), ("unknown", "low")], "low", 1),
        ([("fail", "medium"), ("unknown", "critical")], "low", 3),
        ([("fail", "medium"), ("unknown", "high")], "medium", 3),
        ([("waived", "critical")], "low", 0),
        ([("unknown", "low"), ("fail", "medium")], "high", 0),
    ],
)
def test_the_state_of_a_monitor(findings: list[tuple[str, str]], threshold: str, state: int) -> None:
    document = documents.with_findings(*findings, threshold=threshold)
    nagios = rendered("nagios", document)
    assert exchange.state(parse_report(document)) == state
    assert exchange.npd_status(parse_report(document)) == (0, 1, 1, 2)[state]
    assert nagios.startswith(f"ZAUDIT {('OK', 'WARNING', 'CRITICAL', 'UNKNOWN')[state]} - ")
    assert rendered("checkmk", document).startswith(f'{state} "zaudit" ')
    waived = sum(outcome == "waived" for outcome, _ in findings)
    assert (f"{waived} waived" in nagios.partition(" | ")[0]) is bool(waived)
    assert (f"{len(findings)} below {threshold}" in nagios) is (threshold == "high")


# -- hostile --------------------------------------------------------------------------------------------------------


@cache
def named(name: str) -> str:
    return report_json.render(judged(name, host=name))


@pytest.mark.parametrize("name", OF_DATA)
@pytest.mark.parametrize("hostile", briefly([(each,) for each in HOSTILE.values()], quick=1), ids=HOSTILE)
def test_no_name_breaks_a_format(name: str, hostile: str) -> None:
    text = rendered(name, json.loads(named(hostile)))
    assert text.replace("\n", "").isprintable()
    text.encode()
    match name:
        case "junit":
            assert len(ElementTree.fromstring(text.encode())[0].findall("testcase")) > 4
        case "json" | "sarif" | "sarif-github":
            json.loads(text)
        case "jsonl":
            for line in text.splitlines():
                VALIDATOR.validate(json.loads(line))
        case "checkmk" | "summary":
            assert text.count("\n") == 1
        case "npd":
            assert text.count("\n") == 1
            assert len(text) <= 81
        case "nagios":
            assert len(text.encode()) < 4096
            assert text.count("|") == 1
        case "prometheus":
            pattern = r'(# (HELP|TYPE) zaudit_\w+ .*|zaudit_\w+(\{(\w+="([^"\\]|\\[\\"n])*",?)+\})? -?\d+)'
            assert all(re.fullmatch(pattern, line) for line in text.splitlines())


def test_no_mark_of_markdown_has_an_effect() -> None:
    assert pages.code("a`b``c") == "```a`b``c```"
    assert pages.code("`a") == "`` `a ``"
    assert pages.text("![x](http://y) <img> @ops #12 a|b *c* www.x.org") == (
        r"!\[x\](http`://`y) \<img\> `@`ops `#`12 a\|b \*c\* www`.`x.org"
    )


def _with(document: Any, hostile: str) -> Iterator[Any]:
    """The document, each time with another of its texts behind which this stands."""
    for key in document if isinstance(document, dict) else range(len(document)):
        old = document[key]
        if isinstance(old, str):
            document[key] = old + hostile
            yield document
        elif isinstance(old, dict | list):
            for _ in _with(old, hostile):
                yield document
        document[key] = old


def test_no_text_of_a_report_is_a_mark_of_markdown() -> None:
    """Outside of code nothing of it means anything, whichever text it is."""
    document = documents.recorded()
    document["findings"] = document["findings"][:1]
    document["waived"] = document.get("waived", [])[:1]
    told_of = 0
    for changed in _with(document, " <i>[x](y)"):
        with suppress(NoReport):
            page = re.sub(r"(?<![\\`])(`+)(?!`).+?(?<!`)\1(?!`)", "", rendered("markdown", changed))
            assert not re.search(r"(?<!\\)<i>|(?<!\\)\[x", page)
            told_of += "<i" in page
    assert told_of > 4


@pytest.mark.parametrize("edition", briefly([("now",), ("first",)], quick=1))
def test_a_broken_report_is_refused_or_told(edition: str) -> None:
    """Whatever stands in a file: an answer or one sentence, no traceback, no control character and no page without end."""
    document = documents.recorded() if edition == "now" else documents.first_edition()
    document["findings"] = (
        document["findings"][:1] + [each for each in document["findings"] if each["outcome"] == "unknown"][:1]
    )
    tried = refused = 0
    for what, changed in some(documents.broken(document), 5):
        tried += 1
        try:
            read: ReportDocument = parse_report(changed)
        except NoReport:
            refused += 1
            continue
        for name in OF_DATA:
            text = formats.named(name).render(read)
            assert text.replace("\n", "").isprintable(), what
            assert len(text) < 1_000_000, what
    assert refused > tried / 2


def test_a_short_report_does_not_keep_us_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    document = documents.recorded()
    document["names"] = ["x" * 1000] * 100_000
    verdict = {"kind": "dataset", "names": ",".join(["0-99999"] * 1000), "message": "{subject}"}
    document["findings"][0]["verdicts"] = [verdict]
    found = parse_report(document).findings[0]
    assert found.total == 100_000_000
    assert len(found.subjects) == report_reader.SUBJECTS


@pytest.mark.slow
def test_many_findings_are_bounded() -> None:
    document = documents.with_findings(*[("fail", "low")] * 6000, ("fail", "critical"), ("waived", "high"))
    read = parse_report(document)
    text = {name: str(formats.named(name).render(read)) for name in OF_DATA}
    metrics = text["prometheus"]
    assert metrics.count("\nzaudit_finding{") == 200
    assert "\nzaudit_finding_left_out 5802\n" in metrics
    assert 'zaudit_findings{outcome="fail",severity="low"} 6000' in metrics
    assert 'rule="rule-6000",outcome="fail",severity="critical"' in metrics
    assert len(text["nagios"].encode()) < 4096
    assert len(text["checkmk"]) < 20_000
    assert len(text["summary"]) < 500
    assert len(text["markdown"]) < 100_000
    github = json.loads(text["sarif-github"])["runs"][0]["results"]
    assert len(github) == 5000
    assert github[0]["ruleId"] == "rule-6000"


def test_no_two_series_are_the_same() -> None:
    document = documents.with_findings(("fail", "low"), ("fail", "low"))
    document["findings"][1] |= {"rule": "rule-0", "place": "place-0"}
    assert rendered("prometheus", document).count("\nzaudit_finding{") == 1


def test_a_line_is_as_its_schema_says() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    document = documents.with_findings(("fail", "low"), ("waived", "high"))
    rows = [json.loads(line) for line in rendered("jsonl", document).splitlines()]
    assert [row["kind"] for row in rows] == ["report", "finding", "finding"]
    for row in rows:
        VALIDATOR.validate(row)
    nothing = rendered("jsonl", documents.with_findings()).splitlines()
    assert len(nothing) == 1, "a host that found nothing is not one that was never asked"
    row = json.loads(nothing[0])
    for key in row:
        with pytest.raises(jsonschema.ValidationError):
            VALIDATOR.validate({name: value for name, value in row.items() if name != key})


def test_the_event_of_a_finding_is_the_mildest_that_it_decides() -> None:
    rows = [json.loads(line) for line in rendered("jsonl", documents.recorded()).splitlines()]
    assert {row["rule"]: row["event"] for row in rows[1:]}["sync-disabled"] == "crash"
