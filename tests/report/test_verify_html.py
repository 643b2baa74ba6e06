"""The page: whole, self-contained, silent when opened offline, and no name in it is more than text."""

from __future__ import annotations

import html
import re
import subprocess
from html.parser import HTMLParser

import pytest
from hypothesis import given

from auditor.report.html import WIDE
from auditor.report.markup import POLICY, STYLE
from auditor.verify import charts
from auditor.verify import page as verify_page
from auditor.verify.comparison import Comparison, Sweep, compare
from auditor.verify.result import CANNOT_EXCLUDE, Verification
from tests import shared
from tests.golden import CANONICAL, HOSTS, OLDER, report_of
from tests.report.test_json import HOSTILE
from tests.report.test_verify_terminal import UNSAFE, renamed
from tests.verify import samples, strategies
from tests.verify.samples import MADE, made

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
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "scope"),
    *("role", "aria-label", "tabindex"),
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
    page = verify_page.write_html(verification, **more)  # type: ignore[arg-type]
    reader = Reader(page)
    assert reader.tags <= TAGS, reader.tags - TAGS
    assert reader.attributes <= ATTRIBUTES, reader.attributes - ATTRIBUTES
    assert not re.search(r"url\(|@import|https?://|javascript:", page.replace(CANNOT_EXCLUDE, "")), (
        "something is loaded"
    )
    assert f'content="{POLICY}"' in page
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
    job_file, shown = re.findall("<pre>(.*?)</pre>", verify_page.write_html(samples.traced((odd,))), re.DOTALL)
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
    assert "UNKNOWN ashift-too-small tank mirror-0, tank mirror-1 medium if it fails" in reader.text
    assert "Unknown: Too small ashift for the drives" in reader.text


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
    page = verify_page.write_html(renamed(name))
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


def test_the_page_draws_what_a_terminal_draws() -> None:
    verification = made("traced")
    page = html.unescape(verify_page.write_html(verification))
    for run, latency in zip(verification.runs, verification.latencies, strict=True):
        for drawn in (
            charts.heat_map_lines(run, WIDE),
            charts.percentile_curve(run.latency, latency.percentiles, WIDE),
        ):
            assert drawn
            assert "\n".join(drawn.lines) in page
            assert drawn.says in page


def test_a_map_stays_small_over_hours() -> None:
    run = samples.run()
    hours = run._replace(
        timeline=tuple(each._replace(at_s=float(i), to_s=i + 1.0) for i, each in enumerate(run.timeline * 60)),
        txgs=samples.txgs(7200),
    )
    drawn = charts.heat_map_lines(hours, WIDE)
    assert drawn
    assert max(map(len, drawn.lines)) <= WIDE
