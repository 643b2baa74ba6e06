"""No format prints the sentence of an unknown finding as if it held."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from auditor.fleet import counting, fleet_page
from auditor.report import audit_page, changes, formats, phrases, report_json, sides
from auditor.report.report_reader import parse_report
from auditor.text import UNKNOWN, unknown_headline
from tests.report.test_phrases import RULES
from tests.shared import HOSTS, report_of

HOST = HOSTS / "2.3-suspended-wait"
TITLED = {"nagios", "checkmk", "sarif", "sarif-github", "junit", "jsonl", "json", "terminal", "html"}


def older(document: Mapping[str, Any]) -> Any:
    """The report as an older release wrote it: with the title of the rule, whatever came of it."""
    other = json.loads(json.dumps(document))
    for each in other["findings"]:
        each["title"] = RULES[each["rule"]].title
    return other


REPORT = report_of(HOST)
DOCUMENT = report_json.document(REPORT, passed=False)
FAILED = {each.rule.title for each in REPORT.findings if each.failed}
OPEN = {each.rule.title for each in REPORT.findings if not each.failed} - FAILED


def said(text: str) -> set[str]:
    """The titles of unknown findings that stand in a text as they are."""
    plain = " ".join(re.sub(r"<[^>]+>", " ", text).replace("&#x27;", "'").split())
    return {title for title in OPEN if title in plain and unknown_headline(title) not in plain}


def test_the_host_has_unknown_findings_of_many_rules() -> None:
    assert len(OPEN) > 30


@pytest.mark.parametrize("name", sorted(set(formats.of_data()) - {"json"}))
@pytest.mark.parametrize("edition", [dict, older])
def test_each_format_of_a_report(name: str, edition: Callable[[Mapping[str, Any]], Any]) -> None:
    text = formats.named(name).render(parse_report(edition(DOCUMENT)))
    assert not said(text)
    assert (UNKNOWN in text) is (name in TITLED)


def test_json_terminal_and_html() -> None:
    unknown = [each for each in DOCUMENT["findings"] if each["outcome"] == "unknown"]
    assert all(each["title"].startswith(UNKNOWN) for each in unknown)
    assert not said(audit_page.write_text(REPORT, verbose=2))
    assert not said(audit_page.write_text(REPORT))
    assert not said(audit_page.write_html(REPORT))


@pytest.mark.parametrize("edition", [dict, older])
def test_pages_of_a_fleet(edition: Callable[[Mapping[str, Any]], Any]) -> None:
    lines = formats.named("jsonl").render(parse_report(edition(DOCUMENT))).encode().splitlines()
    if edition is older:
        rows = [json.loads(line) for line in lines]
        lines = [
            json.dumps(row | ({"title": RULES[row["rule"]].title} if "rule" in row else {})).encode() for row in rows
        ]
    fleet = counting.fleet(lambda: lines, None, 0.0)
    pages = [fleet_page.write_text(fleet, width=400), fleet_page.write_html(fleet)]
    assert not [title for page in pages for title in said(page)]
    assert UNKNOWN in pages[-1]


def test_a_line_of_a_fleet_has_the_title_of_a_failure_where_there_is_one() -> None:
    rows = [json.loads(line) for line in formats.named("jsonl").render(parse_report(DOCUMENT)).splitlines()]
    known = next(row for row in rows if row.get("outcome") == "unknown")
    bare = RULES[known["rule"]].title
    other = [row | {"host": "other"} for row in (rows[0], known | {"outcome": "fail", "was": "fail", "title": bare})]
    lines = [json.dumps(row).encode() for row in (*rows, *other)]
    assert counting.fleet(lambda: lines, None, 0.0).rules[known["rule"]].title == bare


@pytest.mark.parametrize("edition", [dict, older])
def test_what_two_reports_are_compared_by(edition: Callable[[Mapping[str, Any]], Any]) -> None:
    document = edition(DOCUMENT)
    calm = document | {"findings": [], "host": "other"}
    new = [each.shown.title for each in changes.compare(calm, document).differences if each.shown.outcome == "unknown"]
    worse = [each.standby.title for each in sides.compare(calm, document).differences if not each.standby.least]
    assert new
    assert worse
    assert all(title.startswith(UNKNOWN) for title in (*new, *worse))


def test_an_unknown_title_says_so_once() -> None:
    """A title is a noun phrase, so that it can stand behind "Unknown: " (tests/whole/test_prose.py)."""
    assert unknown_headline("Degraded pool") == "Unknown: Degraded pool"
    assert unknown_headline(unknown_headline("Degraded pool")) == "Unknown: Degraded pool"
    assert all(phrases.question(each).startswith((UNKNOWN, "OpenZFS ")) for each in REPORT.findings if not each.failed)
