"""What is shipped beside the program: its metrics are those that zaudit writes, and the programs that read it take it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.golden import format_files

CONTRIB = Path(__file__).parent.parent / "contrib"
RULES, TESTS = (CONTRIB / "prometheus" / name for name in ("zaudit.rules.yml", "zaudit.rules.test.yml"))
DASHBOARD = CONTRIB / "grafana" / "zaudit.json"


def metrics(text: str) -> set[str]:
    return set(re.findall(r"\bzaudit_[a-z_]+\b", text))


@pytest.mark.parametrize("path", [RULES, DASHBOARD], ids=lambda path: str(path.name))
def test_every_metric_is_one_that_zaudit_writes(path: Path) -> None:
    written = metrics(format_files()["prometheus.prom"]) | {"zaudit_waiver_expires_timestamp_seconds"}
    used = metrics(path.read_text())
    assert len(used) >= 5
    assert used <= written


def test_every_alert_has_a_test() -> None:
    alerts = re.findall(r"alert: (\w+)", RULES.read_text())
    assert len(alerts) >= 8
    assert set(alerts) == set(re.findall(r"alertname: (\w+)", TESTS.read_text()))


@pytest.mark.parametrize("words", [("check", "rules", RULES), ("test", "rules", TESTS)], ids=["rules", "their tests"])
def test_promtool_takes_the_alerts(words: tuple[object, ...]) -> None:
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("promtool is not installed (apt install prometheus)")
    done = subprocess.run([promtool, *map(str, words)], capture_output=True, text=True, check=False)
    assert "SUCCESS" in done.stdout + done.stderr
    assert done.returncode == 0


def test_the_dashboard_is_one() -> None:
    board = json.loads(DASHBOARD.read_text())
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids)) >= 6
    for panel in board["panels"]:
        assert panel["description"], panel["title"]
        assert panel["datasource"]["uid"] == "${source}", "that of whoever imports it"
        assert all(target["expr"] for target in panel["targets"])
