"""The page: whole, self-contained, silent when opened offline, and no name in it is more than text."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given

from auditor.report.html import POLICY, STYLE, Element
from auditor.verify import charts, verify_page
from auditor.verify.comparison import Comparison, Sweep, compare
from auditor.verify.result import CANNOT_EXCLUDE, Histogram, Verification
from tests import shared
from tests.golden import CANONICAL, HOSTS, OLDER, report_of
from tests.report.test_report_json import HOSTILE
from tests.verify import samples, strategies
from tests.verify.samples import MADE, made
from tests.verify.test_verify_page import UNSAFE, renamed

VOID = {"meta"}
# what a page may consist of: nothing that loads, runs, links or sends
TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "section",
        "h1",
        "h2",
        "h3",
        "p",
        "b",
        "div",
        "span",
        "i",
    ),
    *("ol", "ul", "li", "table", "tr", "th", "td", "dl", "dt", "dd", "pre", "code", "footer"),
    *("svg", "path", "rect", "text"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "scope"),
    *("viewbox", "role", "aria-label", "tabindex", "d", "x", "y", "width", "height", "text-anchor"),
}


class Reader(HTMLParser):
    """What a browser makes of a page: every tag, closed where it was opened, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.classes: set[str] = set()
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.classes.update(word for name, value in attrs if name == "class" for word in (value or "").split())
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def read(verification: Verification, **more: object) -> Reader:
    page = verify_page.write("html", verification, **more)  # type: ignore[arg-type]
    reader = Reader(page)
    assert reader.tags <= TAGS, reader.tags - TAGS
    assert reader.attributes <= ATTRIBUTES, reader.attributes - ATTRIBUTES
    assert not re.search(r"url\(|@import|https?://|javascript:", page.replace(CANNOT_EXCLUDE, "")), (
        "something is loaded"
    )
    assert f'content="{POLICY}"' in page
    for drawing in re.findall("<svg .*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(drawing)
        assert not re.search(r' (d|x|y|width)="[^"]*(nan|inf)', drawing)
    return reader


@pytest.mark.parametrize("name", MADE)
def test_everything_is_on_the_page(name: str) -> None:
    verification = made(name)
    reader = read(verification, zaudit="0.0")
    for link in verification.chain.links:
        assert link.name in reader.text
        assert link.text in reader.text
        for what, number in link.figures:
            assert f"{number:,}{what}" in reader.text
    for words in (*verification.chain.reasons, verification.proves, verification.does_not, CANNOT_EXCLUDE):
        assert words in reader.text
    assert verification.chain.outcome in reader.text
    assert "Next: " in reader.text


def test_figures_of_the_table() -> None:
    text = read(made("traced")).text
    assert "together74,7681.41 ms1.9 ms2.26 ms met41.9 ms MISSED" in text
    assert "objective5 ms25 ms" in text
    assert "not judged" not in text
    assert "32.8 µs ?" in read(made("contradicted")).text


def test_the_commands_can_be_pasted() -> None:
    run = samples.run(seconds=3)
    odd = run._replace(argv=(*run.argv, "--description=it's <b>odd</b> & \\ old", "--name=$(reboot)"))
    job_file, shown = re.findall("<pre>(.*?)</pre>", verify_page.write("html", samples.traced((odd,))), re.DOTALL)
    assert "".join(Reader(f"<pre>{job_file}</pre>").words) == samples.JOB_FILE.rstrip()
    reader = Reader(f"<pre>{shown}</pre>")
    script = "fio() { printf '%s\\0' fio \"$@\"; }; " + "".join(reader.words)
    pasted = subprocess.run(["bash", "-c", script], capture_output=True, check=True, text=True).stdout
    assert tuple(pasted.split("\0")[:-1]) == odd.argv


def test_findings_of_the_audit() -> None:
    reader = read(made("contradicted"), report=report_of(OLDER / CANONICAL))
    assert "A CRASH OR POWER CUT LOSES ACKNOWLEDGED COMMITS 1 critical" in reader.text
    assert "CRITICAL sync-disabled tank, inherited by tank/db, tank/db/wal" in reader.text
    assert "zfs set sync=standard tank" in reader.text
    assert "UNKNOWN zed-not-running host medium if it fails" in reader.text
    assert "Unknown: ZFS Event Daemon not running" in reader.text


def test_every_class_has_a_style() -> None:
    more = {"comparison": compare(samples.traced(), samples.traced()), "sweep": samples.sweep()}
    for verification in map(made, MADE):
        reader = read(verification, report=report_of(HOSTS / CANONICAL), **more)
        missing = {name for name in reader.classes if f".{name}" not in STYLE}
        assert missing == set()


def test_colours_are_defined_in_every_light() -> None:
    light, dark, paper = (dict(re.findall(r"(--\w+): (#\w+)", part)) for part in re.split(r"@media", STYLE)[:3])
    assert light.keys() == dark.keys() == paper.keys()
    used = set(re.findall(r"var\((--\w+)\)", STYLE))
    assert used <= light.keys()


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names(name: str) -> None:
    page = verify_page.write("html", renamed(name))
    page.encode("utf-8")
    assert not UNSAFE.search(page)
    read(renamed(name))


@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)</script>", "</style><img src=x onerror=alert(1)>", '" onload="alert(1)', "--><svg/onload=1>"],
)
def test_a_name_is_never_a_tag(name: str) -> None:
    assert name in read(renamed(name)).text


@shared.examples(40, deadline=None)
@given(strategies.of(Verification), strategies.of(Comparison), strategies.of(Sweep))
def test_any_verification_is_a_page(verification: Verification, comparison: Comparison, sweep: Sweep) -> None:
    read(verification, comparison=comparison, sweep=sweep)


# -- drawings ------------------------------------------------------------------------------------------------------


def picture(drawn: Element | None) -> str:
    assert drawn
    return drawn.html


def test_a_map_shows_the_transaction_groups_and_the_objectives() -> None:
    run = samples.run()
    drawn = picture(charts.latency_map(run, samples.latency(run).percentiles))
    (strip,) = re.findall('class="txg" d="([^"]*)"', drawn)
    assert strip.count("M") == 24  # the one that was synced as the run began, and 23 in it
    assert drawn.count('class="limit"') == 2
    assert "p99.9 objective 25 ms" in drawn
    shades = {int(level): path.count("M") for level, path in re.findall('class="h([0-5])" d="([^"]*)"', drawn)}
    assert shades[0] > 100  # single slow syncs
    assert len(shades) >= 5
    assert len(drawn) < 100_000


@pytest.mark.slow
def test_a_map_stays_small_over_hours() -> None:
    run = samples.run()
    hours = run._replace(
        timeline=tuple(each._replace(at_s=float(i), to_s=i + 1.0) for i, each in enumerate(run.timeline * 60)),
        txgs=samples.txgs(7200),
    )
    drawn = picture(charts.latency_map(hours, ()))
    assert len(drawn) < 250_000
    assert "txgline" not in drawn


def test_a_curve_for_each_run_dotted_where_it_is_not_judged() -> None:
    verification = made("traced")
    runs = [(run, latency.percentiles) for run, latency in zip(verification.runs, verification.latencies, strict=True)]
    drawn = picture(charts.percentile_curves([charts.Curve(run.name, run.latency, each) for run, each in runs]))
    assert re.findall('class="(c[0-9] beyond|c[0-9])"', drawn) == ["c0", "c0 beyond", "c1", "c1 beyond", "c0", "c1"]
    assert drawn.count('class="limit"') == 2
    assert charts.percentile_curves([]) is None
    assert charts.latency_map(verification.runs[0]._replace(timeline=()), ()) is None


def test_a_histogram_is_drawn_by_powers_of_two_and_told_in_words() -> None:
    latency = Histogram.of({900: 5, 1001: 3, 2000: 2, 4_100_000: 1_000_000})
    drawn = picture(charts.histogram(latency, "commits"))
    told = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    assert told[:6] == ["≤ 1 µs", "5 (0.0005 %)", "≤ 2 µs", "5 (0.0005 %)", "≤ 4 µs", "0 (0 %)"]
    assert told[-2:] == ["≤ 8.19 ms", "1,000,000 (100 %)"]
    assert 'aria-label="Commits by latency: 5 up to 1 µs, 5 up to 2 µs, 0 up to 4 µs' in drawn
    assert len(told) == 2 * drawn.count("<rect") == 28
    assert charts.histogram(Histogram(), "commits") is None
