"""The report of a verification on a terminal: the answer first, at any width, in ASCII, whatever the names are."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.report.model import Standing
from auditor.report.terminal import ASCII
from auditor.verify import charts, verify_page
from auditor.verify.result import CANNOT_EXCLUDE, Chain, Histogram, Link, Slice, Verification
from tests import edited, shared
from tests.golden import CANONICAL, HOSTS, OLDER, VERIFY_REPORTS, report_of, verify_reports
from tests.judge.test_policy import judged
from tests.report.test_report_json import HOSTILE, SGR
from tests.verify import samples, strategies
from tests.verify.samples import MADE, made

UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", sorted(path.name for path in VERIFY_REPORTS.iterdir()))
def test_golden(name: str) -> None:
    assert verify_reports()[name] == (VERIFY_REPORTS / name).read_text(), "run: python -m tests.golden"


def test_every_golden_file_is_there() -> None:
    assert {path.name for path in VERIFY_REPORTS.iterdir()} == set(verify_reports())


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("traced", "TRACED\nevery sync was followed to a flush that completed"),
        ("contradicted", "CONTRADICTED at dataset\nsync=disabled, inherited from tank"),
        ("inconclusive", "INCONCLUSIVE\nbecause a scrub of tank began during the run; nvme2n1 and"),
    ],
)
def test_the_answer_comes_first(name: str, first: str) -> None:
    lines = verify_page.write("terminal", made(name), width=120).splitlines()
    assert lines[0].startswith("zaudit ")
    assert "\n".join(lines[1:]).startswith(first)


def test_disks_that_lie_side_by_side_are_all_named() -> None:
    """Whoever reads one name at night exchanges one drive."""
    links = tuple(Link(name, "contradicts", f"{name}: no flushes") for name in ("nvme2n1", "nvme3n1"))
    assert verify_page.answer(Chain("CONTRADICTED", links)) == (
        "CONTRADICTED at nvme2n1, nvme3n1",
        "nvme2n1: no flushes",
    )
    above = Link("ZIL", "contradicts", "the ZIL saw 0")  # then nothing reached the disks: it is no fault of theirs
    assert verify_page.answer(Chain("CONTRADICTED", (above, *links))) == ("CONTRADICTED at ZIL", "the ZIL saw 0")


def test_green_is_only_what_is_traced_on_a_pool_with_nothing_against_it() -> None:
    found = report_of(HOSTS / CANONICAL)
    standings: dict[Standing, str] = {
        "kept": "good",
        "on the word": "open",
        "waived": "open",
        "cannot tell": "open",
        "lost": "bad",
    }
    standings["one failure away"] = "open"
    for standing, kind in standings.items():
        assert verify_page.kind(made("traced").chain, found._replace(standing=standing)) == kind
        assert verify_page.kind(made("contradicted").chain, found._replace(standing=standing)) == "bad"
        assert verify_page.kind(made("inconclusive").chain, found._replace(standing=standing)) != "good"
    assert verify_page.kind(made("traced").chain, None) == "good"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", MADE)
def test_everything_is_said_within_the_width(name: str, width: int) -> None:
    verification = made(name)
    text = verify_page.write("terminal", verification, width=width)
    assert max(map(len, text.splitlines())) <= width
    said = one_line(text)
    for link in verification.chain.links:
        assert link.name in said
        assert one_line(link.text) in re.sub(r" +", " ", said) or width == 80
        for what, number in link.figures:
            assert f"{what} {number:,}" in said
    assert CANNOT_EXCLUDE in said
    assert verification.proves in said
    assert verification.does_not in said
    for run in verification.runs:
        assert all(fault in said for fault in run.faults)


def test_percentiles_objectives_and_what_was_not_judged() -> None:
    text = one_line(verify_page.write("terminal", made("traced"), width=120))
    assert "together: p99 2.26 ms of 5 ms met, p99.9 41.9 ms of 25 ms MISSED" in text
    assert "97,644 1.11 ms 1.51 ms 2 ms met 19.7 ms met" in text
    assert "One session reaches 898 commits/s (1/p50)" in text
    assert "43 of the 50 slowest syncs ended while" in text
    short = one_line(verify_page.write("terminal", samples.traced((samples.run(seconds=3),)), width=120))
    assert "p99.9 is not judged: only 2 samples lie beyond it, 10 are needed." in short
    assert " - ?" in short


def test_what_is_not_judged_never_looks_judged() -> None:
    text = verify_page.write("terminal", made("contradicted"), width=120)
    assert "not judged: the chain is contradicted" in text
    assert not re.search(r"\bmet\b", text)
    assert "commits/s" not in text


def test_the_findings_of_the_audit_stand_in_it() -> None:
    report = report_of(HOSTS / CANONICAL)
    text = verify_page.write("terminal", made("traced"), report, width=100)
    assert "A CRASH OR POWER CUT LOSES ACKNOWLEDGED COMMITS   1 critical" in text.splitlines()[5]
    assert "CRITICAL  sync-disabled" in text
    assert "zfs set sync=standard tank" in one_line(text)
    assert f"exit code {report.exit_code}" in text
    assert "zlab" in text.splitlines()[0]


def test_the_commands_with_verbose() -> None:
    verification = made("traced")
    brief, whole = (
        one_line(verify_page.write("terminal", verification, width=100, verbose=each)) for each in (False, True)
    )
    command = " ".join(verification.runs[0].argv)
    assert command in whole
    assert command not in brief
    assert "When syncs were slow (together)" in whole
    assert "When syncs were slow (together)" not in brief


@pytest.mark.parametrize("name", MADE)
def test_ascii_and_colour(name: str) -> None:
    plain = verify_page.write("terminal", made(name), width=80)
    ascii_only = verify_page.write("terminal", made(name), width=80, ascii_only=True)
    assert ascii_only.isascii()
    assert "\\u" not in ascii_only
    assert max(map(len, ascii_only.splitlines())) <= 80
    assert "\x1b" not in plain
    color = verify_page.write("terminal", made(name), width=80, color=True)
    assert SGR.search(color)
    assert SGR.sub("", color).split() == plain.split()


@pytest.mark.slow
@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names(name: str, color: bool) -> None:
    text = SGR.sub("", verify_page.write("terminal", renamed(name), width=80, color=color, verbose=True))
    text.encode("utf-8")
    assert not UNSAFE.search(text)
    ascii_only = verify_page.write("terminal", renamed(name), width=80, ascii_only=True, verbose=True)
    assert ascii_only.isascii()
    assert not UNSAFE.search(ascii_only)


def renamed(name: str) -> Verification:
    """A verification in which everything that can be named bears this name."""
    verification = samples.traced((samples.run(seconds=3),))
    link = verification.chain.links[0]._replace(name=name, text=name, figures=((name, 1),))
    run = verification.runs[0]
    run = run._replace(name=name, argv=(name, name), faults=(name,))
    latency = verification.latencies[0]._replace(run=name, tail=name, bottleneck=name, why_not=name)
    return verification._replace(
        dataset=name,
        place=name,
        profile=name,
        length=name,
        chain=verification.chain._replace(outcome="INCONCLUSIVE", links=(link,), reasons=(name,)),
        runs=(run,),
        latencies=(latency,),
        proves=name,
        does_not=name,
        fio=name,
        job_file=name,
        target=name,
    )


@shared.examples(40, deadline=None)
@given(strategies.of(Verification), st.sampled_from((40, 80, 120)), st.booleans())
def test_any_verification_is_rendered(verification: Verification, width: int, ascii_only: bool) -> None:
    text = verify_page.write("terminal", verification, width=width, ascii_only=ascii_only, verbose=True)
    assert not UNSAFE.search(text)
    assert not ascii_only or text.isascii()


# -- pictures ------------------------------------------------------------------------------------------------------


def test_a_heat_map_shows_each_slow_sync_where_it_was() -> None:
    fast, slow = Histogram(((1_000_000, 1000),)), Histogram(((1_000_000, 999), (80_000_000, 1)))
    run = samples.run(seconds=3)._replace(
        timeline=tuple(Slice(float(i), i + 1.0, slow if i == 30 else fast) for i in range(60)), txgs=samples.txgs(60)
    )
    picture = charts.heat_map_lines(run, 70)
    assert picture is not None
    cells = [line[10:] for line in picture.lines if "│" in line and "TXG" not in line]
    assert [line.index("░") for line in cells if "░" in line] == [30]
    assert cells[-1] == "█" * 60
    assert picture.lines[0].startswith("   70 ms │")  # the row from 70 to 100 ms
    (strip,) = (line[10:] for line in picture.lines if line.startswith("TXG sync"))
    assert [i for i, mark in enumerate(strip) if mark == "█"] == list(range(0, 60, 5))


def test_a_picture_is_as_wide_as_it_may_be() -> None:
    run = samples.run()
    for width in (40, 80, 120, 200):
        for picture in (charts.heat_map_lines(run, width), charts.percentile_curve(run.log.latency, (), width)):
            assert picture is not None
            assert width * 0.5 < max(map(len, picture.lines)) <= width


def test_nothing_is_drawn_of_nothing() -> None:
    run = samples.run()._replace(timeline=())
    assert charts.heat_map_lines(run, 80) is None
    assert charts.percentile_curve(Histogram(), (), 80) is None


def test_a_curve_tells_what_is_judged_from_what_is_not() -> None:
    steady = Histogram(((1_000_000, 9_900), (2_000_000, 90), (9_000_000, 10)))
    percentiles = samples.latency(samples.run()).percentiles
    picture = charts.percentile_curve(steady, percentiles, 100)
    assert picture is not None
    marks = "".join(line[10:] for line in picture.lines if "│" in line)
    assert marks.count("●") == pytest.approx(3 / 4 * 90, abs=2)  # 99.9 % of a curve that ends at 99.99 %
    assert marks.count("○") == pytest.approx(1 / 4 * 90, abs=2)
    assert sum("┤" in line for line in picture.lines) == 2
    axis = picture.lines[-1]
    assert all(each in axis for each in ("50 %", "90 %", "99 %", "99.9 %", "99.99 %"))


def test_every_character_of_a_picture_has_one_in_ascii() -> None:
    drawn = "".join(chr(char) for char in ASCII if len(ASCII[char]) == 1)
    for verification in map(made, MADE):
        for line in verify_page.write("terminal", verification, width=80, verbose=True):
            assert all(char.isascii() or ord(char) in ASCII for char in line)
    assert set("░▒▓█▂│─└┤●○┊") <= set(drawn)


@pytest.mark.parametrize(
    ("verification", "audited", "says"),
    [
        (
            lambda: made("traced"),
            True,
            "fix what was found, then zaudit check tank/db/wal, then zaudit verify",
        ),
        (
            lambda: made("traced"),
            False,
            "remove the bottleneck, then zaudit verify tank/db/wal --profile postgres --compare",
        ),
        (lambda: made("contradicted"), False, "fix the link that is named, then zaudit check tank/db/wal, then"),
        (lambda: made("inconclusive"), False, "fix what kept it from being seen, then zaudit verify"),
        (lambda: samples.traced((samples.run(),)), False, "--standard before it goes live"),
        (
            lambda: samples.traced((samples.run(),))._replace(length="long"),
            False,
            "zaudit check tank/db/wal every night (seen",
        ),
        (lambda: made("traced")._replace(target="a b; c"), False, "zaudit verify 'a b; c' --profile"),
    ],
)
def test_what_to_do_next(verification: Callable[[], Verification], audited: bool, says: str) -> None:
    report = report_of(HOSTS / CANONICAL) if audited else None
    last = one_line(verify_page.write("terminal", verification(), report, width=120)).partition("Next: ")[2]
    assert says in last


TRACED = Chain("TRACED", ())


@pytest.mark.slow
def test_after_traced_it_says_what_is_left_to_believe() -> None:
    guest, losing = judged("", edited.unused(shared.earlier("2.4-healthy-mirrored-slog"))), report_of(HOSTS / CANONICAL)
    drives, protected = report_of(OLDER / "2.4-sata-cache-on"), report_of(HOSTS / "2.4-healthy-physical-no-cache")
    assert (
        verify_page.left_to_believe(TRACED, guest)
        == "What is left to rely on at a power cut: the QEMU hypervisor (not verified)."
    )
    assert "not known: " in verify_page.left_to_believe(TRACED, drives), "nobody saw whether there are databases"
    whole = verify_page.left_to_believe(TRACED, protected)
    assert whole == "At a power cut nothing else is relied on, in all that was seen."
    assert verify_page.left_to_believe(TRACED, losing) == "", "the headline says that it loses"
    assert verify_page.left_to_believe(TRACED, None) == ""
    assert verify_page.left_to_believe(Chain("INCONCLUSIVE", ()), guest) == ""
    page = verify_page.write("terminal", samples.traced(), guest)
    assert verify_page.left_to_believe(TRACED, guest) in " ".join(page.split())


def test_an_axis_of_time_is_marked_at_whole_seconds_in_equal_steps() -> None:
    for start, end in ((0.0, 10.0), (0.0, 120.0), (0.4, 7.9), (0.0, 1.0), (0.0, 30.0), (0.0, 3600.0), (5.0, 4e9)):
        marks = charts.moments(start, end)
        assert start <= marks[0] <= marks[-1] <= end, (start, end)
        assert len({after - before for before, after in pairwise(marks)}) <= 1, (start, end)
        assert len(marks) <= 8, (start, end)
