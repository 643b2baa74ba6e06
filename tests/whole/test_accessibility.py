"""The pages under axe-core in a browser: no violation, at a desk and on a phone, light and dark. Skipped without either."""

from __future__ import annotations

import html
import importlib.util
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auditor.checklist import checklist_page
from auditor.fleet import fleet_page
from auditor.report import audit_page
from auditor.verify import verify_page
from tests.checklist import worlds as listed
from tests.fleet.test_fleet_page import KEEPS, LOSES, fleet
from tests.golden import CANONICAL, GREEN, HOSTS, report_of
from tests.judge.test_policy import judged
from tests.judge.test_waivers_answers import GUEST, HYPERVISOR
from tests.verify import samples

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AXE = importlib.util.find_spec("axe_core_python")
PAGES: dict[str, Callable[[], str]] = {
    "lost": lambda: audit_page.write_html(report_of(HOSTS / CANONICAL), verbose=2),
    "kept": lambda: audit_page.write_html(report_of(HOSTS / GREEN)),
    "suspended": lambda: audit_page.write_html(report_of(HOSTS / "2.3-suspended-wait")),
    "answered for": lambda: audit_page.write_html(judged(HYPERVISOR, GUEST)),
    "fleet": lambda: fleet_page.write_html(fleet(LOSES, KEEPS, before=[]), lambda host: f"hosts/{host}.html"),
    "checklist": lambda: checklist_page.write("html", listed.listed(listed.slow())),
    "verify": lambda: verify_page.write("html", samples.contradicted(), report_of(HOSTS / CANONICAL)),
}
pytestmark = [
    pytest.mark.skipif(not BROWSER, reason="no chromium here"),
    pytest.mark.skipif(not AXE, reason="axe-core-python is not installed"),
]
RUN = """<script>axe.run(document, {resultTypes: ["violations"]}).then(found => {
const told = document.createElement("pre"); told.id = "told";
told.textContent = JSON.stringify(found.violations.map(each => [each.id, each.nodes.map(node => node.failureSummary)]));
document.body.append(told); })</script></body>"""


def violations(page: str, folder: Path, width: int = 1280, *, dark: bool = False) -> list[Any]:
    """What axe-core says of a page, whose own policy forbids every script."""
    assert BROWSER
    assert AXE
    assert AXE.origin
    axe = Path(AXE.origin).with_name("axe.min.js").read_text().replace("</script", "<\\/script")
    page, forbidden = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    assert forbidden == 1
    if dark:
        page = page.replace("(prefers-color-scheme: dark)", "all")
    file = folder / "page.html"
    file.write_text(page.replace("</body>", f"<script>{axe}</script>{RUN}"))
    options = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile")
    more = (f"--window-size={width},900", "--virtual-time-budget=30000", "--dump-dom", file.as_uri())
    done = subprocess.run((BROWSER, *options, *more), capture_output=True, text=True, timeout=180, check=True)
    told = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.DOTALL)
    assert told, done.stderr[-500:]
    found: list[Any] = json.loads(html.unescape(told[1]))
    return found


BRIEFLY = {("lost", 390, True)}  # before each commit: a start of the browser takes a second


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        pytest.param(name, width, dark, marks=() if (name, width, dark) in BRIEFLY else pytest.mark.slow)
        for name in PAGES
        for width, dark in ((1280, False), (390, True))
    ],
)
def test_no_violation(name: str, width: int, dark: bool, tmp_path: Path) -> None:
    assert violations(PAGES[name](), tmp_path, width, dark=dark) == []


@pytest.mark.slow
def test_a_violation_would_be_seen(tmp_path: Path) -> None:
    page = (
        PAGES["kept"]()
        .replace("<main>", '<main><p style="color: #ccc; background: #fff">pale</p>')
        .replace(' lang="en"', "")
    )
    assert {"color-contrast", "html-has-lang"} <= {each[0] for each in violations(page, tmp_path)}
