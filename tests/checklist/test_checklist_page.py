"""A checklist in every format: as kept, within its width, and harmless whatever names come from the host."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from auditor.checklist import checklist_page
from auditor.checklist.lists import ANSWERS, Checklist, Statement
from auditor.commands import _schemas as schemas
from tests.checklist import worlds
from tests.golden import CHECKLIST_SCHEMA, CHECKLISTS, checklist_reports

VALIDATOR = jsonschema.Draft202012Validator(schemas.checklist())
HOSTILE = "\x1b]0;x\x07<script>‮"


def hostile() -> Checklist:
    """Names that others choose, wherever a checklist has any."""
    found = worlds.listed(worlds.slow())
    evil = [
        each._replace(
            said=tuple(Statement(one.answer, one.by, HOSTILE, HOSTILE, one.rule, one.severity) for one in each.said)
        )
        for each in found.lines
    ]
    return found._replace(target=HOSTILE, hostname=HOSTILE, release=HOSTILE, lines=tuple(evil), next=HOSTILE)


@pytest.mark.parametrize("name", sorted(path.name for path in CHECKLISTS.iterdir()))
def test_each_format_is_as_it_is_kept(name: str) -> None:
    assert checklist_reports()[name] == (CHECKLISTS / name).read_text(), "run: python -m tests.golden"


def test_fixtures_are_all_of_some_format() -> None:
    assert {path.name for path in CHECKLISTS.iterdir()} == set(checklist_reports())


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_longer_than_the_terminal(width: int, verbose: bool) -> None:
    for found in (worlds.listed(worlds.slow()), worlds.listed(worlds.seen()), hostile()):
        text = checklist_page.write("terminal", found, width=width, verbose=verbose)
        assert max(map(len, text.splitlines())) <= width


def test_lc_all_c_gets_ascii() -> None:
    assert checklist_page.write("terminal", hostile(), ascii_only=True).isascii()


def test_names_of_others_are_harmless() -> None:
    found = hostile()
    for text in (
        checklist_page.write("terminal", found),
        checklist_page.write("markdown", found),
        checklist_page.write("html", found),
    ):
        assert "\x1b" not in text
        assert "‮" not in text
    assert "<script" not in checklist_page.write("html", found)
    assert "<script" not in checklist_page.write("markdown", found).replace("\\<script", "").replace(
        "`\\x1b]0;x\\x07<script>", ""
    )


def test_json_is_what_its_schema_says() -> None:
    assert json.loads(CHECKLIST_SCHEMA.read_text()) == json.loads(json.dumps(schemas.checklist()))
    for found in (worlds.listed(worlds.slow()), worlds.listed(worlds.seen()), hostile()):
        document = json.loads(checklist_page.write("json", found, zaudit="0.1.0"))
        VALIDATOR.validate(document)
        assert [each["answer"] for each in document["checklist"]["lines"]] == [each.answer for each in found.lines]


def test_the_second_line_says_how_many_are_what_and_what_is_no_comes_first() -> None:
    lines = checklist_page.write("terminal", worlds.listed(worlds.slow()), width=120).splitlines()
    assert lines[0].startswith("tank/db/wal on db1 · ")
    assert lines[1] == "3 no, 3 open (2 for a person), 2 accepted, 12 yes"
    heads = [line for line in lines if re.fullmatch(r"[A-Z][a-z ]+: \d+", line)]
    assert heads == ["No: 3", "Open: 3", "Accepted: 2", "Yes: 12"]
    assert lines[-1] == (
        "Next: Replace sdd, its cable or its controller; until then, with one copy less: zpool offline tank sdd   "
        "(exit code 12)"
    )


def test_only_a_yes_is_ticked() -> None:
    found = worlds.listed(worlds.slow())
    shown = checklist_page.write("markdown", found)
    assert shown.count("- [x]") == len(found.of("yes"))
    assert shown.count("- [ ]") == sum(len(found.of(each)) for each in ("no", "open", "accepted"))
    assert checklist_page.write("html", found).count("✓") == len(found.of("yes"))
    assert checklist_page.write("terminal", found).count("[x]") == len(found.of("yes"))


@pytest.mark.parametrize("format_", ["terminal", "markdown", "html"])
def test_each_line_stands_once(format_: str) -> None:
    for found in (worlds.listed(worlds.slow()), worlds.listed(worlds.seen())):
        shown = checklist_page.write(format_, found)
        for each in found.lines:
            assert shown.count(each.text.replace("'", "&#x27;") if format_ == "html" else each.text) == 1


def test_what_rests_on_an_old_look_says_how_old() -> None:
    found = worlds.listed(worlds.whole())
    steady = next(each for each in found.lines if each.id == "log-steady")
    assert checklist_page.rests_on(found, steady).startswith("21 days old: the run of the log lasted 600 s")
    load = next(each for each in found.lines if each.id == "log-keeps-up")
    assert checklist_page.rests_on(found, load).startswith("2 threads")


def test_evidence_of_the_future_is_named() -> None:
    found = worlds.listed(worlds.whole())._replace(made=worlds.MADE - 86400)
    assert "of the future" in dict(checklist_page.evidence(found))["zaudit check"]


def test_the_next_step_says_how_its_result_gets_into_the_list() -> None:
    found = worlds.listed(worlds.seen())
    assert checklist_page.then(found).endswith(
        "--record verify.tar.gz, then zaudit checklist tank/db/wal --replay verify.tar.gz"
    )


def test_counts_name_every_answer_that_there_is() -> None:
    found = worlds.listed(worlds.seen(known_=worlds.facts(log=False)))
    assert "6 do not apply" in checklist_page.counts(found)
    assert {each.answer for each in found.lines} <= {*ANSWERS}
