"""What ``--format json`` writes keeps to its schema, and ``--compare`` reads it; comparison and sweep as parts of reports."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
from hypothesis import given

from auditor.report import html, terminal
from auditor.report.document import Document, Section, Table, plain
from auditor.verify import verify_page
from auditor.verify.comparison import Comparison, Step, Sweep, compare, find, load
from auditor.verify.result import Verification
from tests import shared
from tests.golden import CANONICAL, HOSTS, VERIFY_SCHEMA, report_of
from tests.report.test_report_json import HOSTILE
from tests.verify import samples, strategies
from tests.verify.samples import MADE, made
from tests.verify.test_verify_page import UNSAFE, one_line, renamed
from tests.verify.test_verify_page_html import Reader

VALIDATOR = jsonschema.Draft202012Validator(json.loads(VERIFY_SCHEMA.read_text()))


def on_terminal(comparison: Comparison, width: int = 80) -> str:
    return terminal.fragment([verify_page.compared(comparison)], width=width)


def swept(sweep: Sweep, width: int = 80, ascii_only: bool = False) -> str:
    return terminal.fragment([verify_page.swept(sweep)], width=width, ascii_only=ascii_only)


def on_page(section: Section) -> str:
    return html.write(Document("", (), (section,)))


# -- JSON ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MADE)
def test_everything_together_keeps_to_the_schema(name: str) -> None:
    report = report_of(HOSTS / CANONICAL)
    comparison, sweep = compare(samples.traced(), made(name)), samples.sweep()
    text = verify_page.write("json", made(name), report, comparison=comparison, sweep=sweep)
    document = json.loads(text)
    VALIDATOR.validate(document)
    assert load(text) == made(name)
    assert document["zaudit"] == report.zaudit
    assert document["report"]["exit_code"] == report.exit_code
    assert document["sweep"]["knee"]["at"] == find(sweep).at
    assert len(document["comparison"]["rows"]) == len(comparison.rows)


@pytest.mark.slow
def test_nothing_that_was_not_asked_for() -> None:
    document = json.loads(verify_page.write("json", made("traced"), zaudit="0.2"))
    VALIDATOR.validate(document)
    assert document.keys() == {"schema", "verification", "zaudit"}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_in_json(name: str) -> None:
    text = verify_page.write("json", renamed(name))
    assert text.isascii()
    assert text.count("\n") == 1
    VALIDATOR.validate(json.loads(text))
    json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8")


@pytest.mark.slow
@shared.examples(30, deadline=None)
@given(strategies.of(Verification), strategies.of(Comparison), strategies.of(Sweep))
def test_any_document_keeps_to_the_schema(verification: Verification, comparison: Comparison, sweep: Sweep) -> None:
    text = verify_page.write("json", verification, comparison=comparison, sweep=sweep)
    VALIDATOR.validate(json.loads(text))
    assert load(text) == verification


# -- before and after ------------------------------------------------------------------------------------------------


def test_what_became_faster_stands_first() -> None:
    before, after = samples.traced((samples.run(spike_ms=40.0),)), samples.traced((samples.run(seed=3, spike_ms=2.0),))
    comparison = compare(before, after)
    text = on_terminal(comparison)
    assert re.search(r"^Before and after\n  .*[Ff]aster: .*log p99\.9", text, re.MULTILINE)
    (line,) = (line for line in text.splitlines() if " p99.9 " in line and " ms " in line)
    assert line.split()[-1] == "faster"
    page = Reader(on_page(verify_page.compared(comparison))).text
    assert "faster: log p99.9" in page
    (table,) = (each for each in verify_page.compared(comparison).blocks if isinstance(each, Table))
    assert len(table.rows) == len(comparison.rows)
    for row in table.rows:
        assert all(plain(cell) in page and plain(cell) in text for cell in row)


def test_what_differs_is_said_instead_of_a_comparison() -> None:
    comparison = compare(made("traced"), samples.traced()._replace(profile="etcd"))
    text = one_line(on_terminal(comparison))
    assert "Not compared: they answer different questions." in text
    assert "Differs: the profile: postgres before, etcd after." in text
    assert "ms" not in re.findall(r"\w+", text)
    assert "Differs: the profile" in Reader(on_page(verify_page.compared(comparison))).text


def test_why_nothing_can_be_told_is_said_once() -> None:
    blind = compare(samples.traced((samples.run(seconds=20),)), samples.traced((samples.run(seconds=20, seed=2),)))
    text = one_line(on_terminal(blind))
    assert text.count("pieces of a transaction group") == 1
    assert "Unknown: log p50, log p95, log p99, log p99.9: 4 pieces" in text


@pytest.mark.slow
@shared.examples(50, deadline=None)
@given(strategies.of(Comparison))
def test_any_comparison_is_rendered(comparison: Comparison) -> None:
    for width in (40, 120):
        assert not UNSAFE.search(on_terminal(comparison, width))
    assert not UNSAFE.search(on_page(verify_page.compared(comparison)))
    Reader(on_page(verify_page.compared(comparison)))


# -- sweep -----------------------------------------------------------------------------------------------------------


def test_a_sweep_says_the_knee_first_and_draws_each_step() -> None:
    sweep = samples.sweep()
    text = swept(sweep)
    assert "What a sync costs The knee lies between a sync every 1 MiB and every 256 KiB" in one_line(text)
    for name in ("never", "at the end", "every 100 MiB", "every 16 KiB"):
        assert name in text
    text = swept(sweep, 100)
    bars = [line.count("█") for line in text.splitlines() if re.match(r" *(never|at the end|every \d+ .iB) ", line)]
    assert len(bars) == 8
    assert bars == sorted(bars)
    assert bars[-1] == 20  # 33.7 times, four cells a doubling
    page = Reader(on_page(verify_page.swept(sweep))).text
    assert all(sentence in page for sentence in find(sweep).says)
    assert swept(sweep, ascii_only=True).isascii()


def test_a_sweep_without_a_knee_still_shows_its_figures() -> None:
    lost = Sweep(2**30, tuple(step for step in samples.sweep().steps if step.every != 0))
    text = one_line(swept(lost))
    assert "The knee cannot be named" in text
    assert "every 16 KiB" in text
    assert verify_page.spread(lost.steps[-1]) in text
    assert verify_page.spread(lost.steps[-1]) in Reader(on_page(verify_page.swept(lost))).text
    assert "not tried" in swept(Sweep(1, (Step(0, ()),)))


@shared.examples(50, deadline=None)
@given(strategies.of(Sweep))
def test_any_sweep_is_rendered(sweep: Sweep) -> None:
    for width in (40, 120):
        assert not UNSAFE.search(swept(sweep, width))
    Reader(on_page(verify_page.swept(sweep)))
    verify_page.write("json", samples.traced(), sweep=sweep)
