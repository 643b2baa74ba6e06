"""A diagnosis in every format: as kept, within its width, and harmless whatever names come from the host."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from auditor.commands import _schemas as schemas
from auditor.diagnose import diagnose_page
from auditor.diagnose.causes import growing
from auditor.diagnose.conclusion import diagnose
from auditor.diagnose.diagnosis import Diagnosis
from auditor.diagnose.observation import KERNEL, NamedProcess, Process
from auditor.text import quoted
from tests.diagnose import databases, worlds
from tests.golden import DIAGNOSE_REPORTS, DIAGNOSIS_SCHEMA, diagnosis_reports

VALIDATOR = jsonschema.Draft202012Validator(schemas.diagnosis())
HOSTILE = "\x1b]0;x\x07<script>‮"


def hostile() -> Diagnosis:
    """Names that others choose: of a process and of its control group."""
    files = worlds.load(block_ms={"sdd": (1, 24)})
    who = (Process(100, HOSTILE, "", HOSTILE, None),)
    trace = worlds.traced({(100, HOSTILE, 1): (400, 400 * 25300)})
    seen = worlds.observation(files, trace, who)
    named = NamedProcess(100, HOSTILE, (HOSTILE,), 2, (100,), (), 99, (HOSTILE,))
    return diagnose(seen._replace(named=named), worlds.facts())


@pytest.mark.parametrize(
    "name",
    [
        "terminal.txt",
        "narrow.txt",
        "wide.txt",
        "ascii.txt",
        "page.html",
        "json.json",
        "database.txt",
        "several.txt",
        "several.html",
    ],
)
def test_each_format_is_as_it_is_kept(name: str) -> None:
    assert diagnosis_reports()[name] == (DIAGNOSE_REPORTS / name).read_text()


@pytest.mark.parametrize("width", [40, 80, 100, 120])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    for found in (worlds.canonical(), hostile(), databases.canonical(), worlds.several()):
        text = diagnose_page.write("terminal", found, width=width, verbose=True)
        assert max(map(len, text.splitlines())) <= width


def test_lc_all_c_gets_ascii() -> None:
    assert diagnose_page.write("terminal", hostile(), ascii_only=True).isascii()


def test_names_of_others_are_harmless() -> None:
    found = hostile()
    assert "\x1b" not in diagnose_page.write("terminal", found)
    page = diagnose_page.write("html", found)
    assert "<script" not in page
    assert "\x1b" not in page
    assert "‮" not in page


def test_what_a_database_says_is_harmless() -> None:
    text = databases.answer(
        waits={HOSTILE: [9, 1]}, settings={"fsync": HOSTILE}, more={"ended": HOSTILE, "unseen": HOSTILE}
    )
    found = diagnose(databases.observed(text), databases.facts())
    assert "\x1b" not in diagnose_page.write("terminal", found)
    page = diagnose_page.write("html", found)
    assert "<h2>The database" in page
    assert "<script" not in page
    assert "\x1b" not in page
    VALIDATOR.validate(json.loads(diagnose_page.write("json", found, zaudit="0.1.0")))


def test_json_is_what_its_schema_says() -> None:
    assert json.loads(DIAGNOSIS_SCHEMA.read_text()) == json.loads(json.dumps(schemas.diagnosis()))
    for found in (
        worlds.canonical(),
        hostile(),
        databases.canonical(),
        worlds.several(),
        diagnose(worlds.observation(worlds.load(), None), worlds.facts()),
    ):
        document = json.loads(diagnose_page.write("json", found, zaudit="0.1.0"))
        VALIDATOR.validate(document)
        assert document["diagnosis"]["outcome"] == found.outcome


def test_the_first_words_are_the_answer_and_the_last_what_to_do() -> None:
    lines = diagnose_page.write("terminal", worlds.canonical(), width=120).splitlines()
    assert lines[1] == "CAUSE"
    assert lines[2].startswith(
        "postgres waits 24 ms of each 25.3 ms commit for the flush of sdd: sdd is the slower leg"
    )
    assert lines[-1] == (
        "Next: Replace sdd, its cable or its controller; until then, with one copy less: zpool offline tank sdd"
    )


def test_a_percentile_needs_ten_samples_beyond_it() -> None:
    text = diagnose_page.write("terminal", worlds.canonical(), width=120)
    assert "p50 ≤ 32.8 ms, p90 ≤ 32.8 ms, p99 needs 1,000 commits, p99.9 needs 10,000 commits" in text


def test_a_reason_that_the_answer_gives_is_not_told_again() -> None:
    found = diagnose(
        worlds.observation(worlds.load(), worlds.traced({(100, "postgres", 1): (900, 900 * 5300)})), worlds.facts()
    )
    for text in (diagnose_page.write("terminal", found, width=300), diagnose_page.write("html", found)):
        assert text.count("the kernel traced 900 commits") == 1


def test_fixtures_are_all_of_some_format() -> None:
    assert {path.name for path in Path(DIAGNOSE_REPORTS).iterdir()} == set(diagnosis_reports())


def test_a_terminal_is_not_flooded() -> None:
    rows = {(pid, "postgres", 1): (1, 5300) for pid in range(1000, 1400)}
    found = diagnose(worlds.observation(worlds.load(), worlds.traced(rows)), worlds.facts())
    assert len(found.committers) == 400
    assert "and 392 more (--verbose, --format json)" in diagnose_page.write("terminal", found)
    assert "and 200 more (--verbose, --format json)" in diagnose_page.write("terminal", found, verbose=True)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_threads_of_the_kernel_are_one_row_for_each_volume(width: int) -> None:
    text = " ".join(diagnose_page.write("terminal", worlds.several(), width=width).split())
    assert text.count("zvol") == 1
    assert "zvol_tq" not in text
    page = diagnose_page.write("html", worlds.several())
    rows = [re.findall("<td[^>]*>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", page)]
    found = {row[0]: row[1:] for row in rows if row}
    assert found["zvol (3 threads of the kernel)"] == ["240", "5.3 ms", "27%", "tank/vm/disk-1"]
    assert found["nfsd (2 threads of the kernel)"][0] == "55"
    document = json.loads(diagnose_page.write("json", worlds.several()))
    assert {each["pid"] for each in document["diagnosis"]["committers"] if each["service"] == "zvol"} == {120, 121, 122}


def test_a_thread_of_the_kernel_tells_for_whom_it_commits() -> None:
    rows = {
        (50, "zvol_tq-0", 1): (200, 1),
        (51, "nfsd", 2): (100, 1),
        (52, "zvol", 3): (50, 1),
        (53, "sync", 4): (25, 1),
    }
    who = tuple(
        Process(pid, name, KERNEL if pid != 52 else "", "", None)
        for pid, name in ((50, "zvol_tq-0"), (51, "nfsd"), (52, "zvol"))
    )
    found = diagnose(worlds.observation(worlds.load(), worlds.traced(rows), who), worlds.facts())
    assert {each.pid: each.service for each in found.committers} == {50: "zvol", 51: "nfsd", 52: "", 53: ""}


def test_a_page_draws_the_distribution_as_a_histogram_and_a_curve() -> None:
    page = diagnose_page.write("html", worlds.canonical())
    drawn = page.split("<h2>How many were slow</h2>")[1].split("</section>")[0]
    assert drawn.count("<svg") == 2
    assert 'aria-label="Commits by latency: 150 up to 16.4 ms, 250 up to 32.8 ms"' in drawn
    assert "dotted where too few samples lie beyond it" in drawn
    assert "p99 needs 1,000 commits" in drawn
    assert "<svg" not in diagnose_page.write("html", diagnose(worlds.observation(worlds.load(), None), worlds.facts()))


def test_a_name_in_a_command_ends_no_word_in_the_shell_that_watch_starts() -> None:
    assert growing("cat /sys/block/sda/stat") == "watch -d 'cat /sys/block/sda/stat'"
    assert growing("cat " + quoted("/sys/block/\x1b'; id #/stat")) == r"cat $'/sys/block/\x1b\'; id #/stat'"
