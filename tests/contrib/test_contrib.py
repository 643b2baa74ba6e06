"""What is shipped beside the program: its metrics are those that zaudit writes, and the programs that read it take it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import get_args

import click
import pytest

from auditor import __version__
from auditor.cli import main
from auditor.judge.finding import EXIT_CODES, EXIT_UNDECIDED
from auditor.report.model import Standing
from tests.golden import format_files

CONTRIB = Path(__file__).parents[2] / "contrib"
RULES, TESTS = (CONTRIB / "prometheus" / name for name in ("zaudit.rules.yml", "zaudit.rules.test.yml"))
DASHBOARD = CONTRIB / "grafana" / "zaudit.json"


def metrics(text: str) -> set[str]:
    return set(re.findall(r"\bzaudit_[a-z_]+\b", text))


def test_packages_have_the_version_of_the_program_and_no_document_says_one() -> None:
    spec = (CONTRIB / "rpm" / "zaudit.spec").read_text()
    assert re.findall(r"^Version: +(\S+)$", spec, re.MULTILINE) == [__version__]
    assert (CONTRIB / "debian" / "changelog").read_text().startswith(f"zaudit ({__version__}-")
    galaxy = (CONTRIB / "ansible" / "zaudit" / "galaxy.yml").read_text()
    assert re.findall(r"^version: (\S+)$", galaxy, re.MULTILINE) == [__version__]
    for path in (CONTRIB / "kubernetes" / "daemonset.yaml", CONTRIB / "container" / "Containerfile"):
        assert set(re.findall(r"zaudit:(\d\S+)", path.read_text())) == {__version__}
    documents = (CONTRIB.parent / "docs").glob("*.md")
    assert [each.name for each in documents if re.search(r"zaudit[-_]\d+\.\d", each.read_text())] == []


def test_packages_have_what_the_documents_name() -> None:
    """But what a package is built with; units and the script of zed are installed in their own places."""
    root = CONTRIB.parent
    documents = (root / "README.md", *(root / "docs").glob("*.md"), CONTRIB / "ansible" / "zaudit" / "README.md")
    named = {each for path in documents for each in re.findall(r"\bcontrib/([a-z]+)/", path.read_text() + "/")}
    for path in (CONTRIB / "debian" / "rules", CONTRIB / "rpm" / "zaudit.spec"):
        text = path.read_text()
        (copied,) = re.findall(r"cp -r ((?:contrib/\w+\s+(?:\\\s+)?)+)", text)
        shipped = set(re.findall(r"contrib/(\w+)", copied))
        assert named - {"debian", "rpm"} <= shipped | {"systemd", "zed"}, path
        assert all(f"contrib/{each}" in text for each in ("systemd/zaudit*", "zed/zaudit.sh"))


def test_the_site_has_every_file_that_its_pages_link_to() -> None:
    """mkdocs says so, too, but only when CI has run for half an hour."""
    root = CONTRIB.parent
    taken = re.search(r"^cp --parents (.*) ", (CONTRIB / "site" / "build.sh").read_text(), re.MULTILINE)
    assert taken
    pages = {page.resolve() for pattern in taken[1].split() for page in root.glob(pattern)}
    assert len(pages) >= 40
    for page in pages:
        for link in re.findall(r"\]\(([^)#:\s]+)[#)]", page.read_text() if page.suffix == ".md" else ""):
            target = (page.parent / link).resolve()
            assert target in pages or target.is_relative_to(root / "fixtures" / "hosts"), (page, link)


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


ANSIBLE = CONTRIB / "ansible" / "zaudit"
PLAYS = {path: path.read_text() for path in sorted(ANSIBLE.rglob("*.yml"))}


def test_the_roles_say_what_zaudit_understands() -> None:
    words = re.findall(r"\['(check|record)', (.*?)\]", "\n".join(PLAYS.values()))
    assert {name for name, _ in words} == {"check", "record"}
    for name, rest in words:
        command = main.get_command(click.Context(main), name)
        assert command
        known = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"'(--?[a-z-]+)'", rest)) <= known
    codes = re.search(r"zaudit_run\.rc not in \[([\d, ]+)\]", PLAYS[ANSIBLE / "roles/audit/tasks/main.yml"])
    assert codes
    assert set(map(int, codes[1].split(","))) == {0, EXIT_UNDECIDED, *EXIT_CODES.values()}


def test_nothing_is_brought_into_the_collection_which_an_upgrade_replaces() -> None:
    """playbook_dir of a playbook of a collection is in the collection."""
    files = [each for each in (CONTRIB / "ansible").rglob("*.yml") if each.is_file()]
    assert [each.name for each in files if "playbook_dir" in each.read_text()] == []


def test_a_silent_host_is_one_alert() -> None:
    """node_exporter serves seven states of each pool (promtool runs the test where it is installed)."""
    (expression,) = re.findall(r"alert: ZauditSilent\n +expr: (.*)", RULES.read_text())
    assert expression.startswith("group by (instance) (")
    assert len(re.findall(r'node_zfs_zpool_state\{instance="db2",zpool="(tank|logs)"', TESTS.read_text())) == 14


def test_the_gate_lets_nobody_through_who_may_lose_commits() -> None:
    allows = re.search(r"zaudit_gate_allows: \[(.*)\]", PLAYS[ANSIBLE / "roles/gate/defaults/main.yml"])
    assert allows
    through = set(allows[1].split(", "))
    assert through < set(get_args(Standing))
    assert through.isdisjoint({"lost", "corrupted", "stalled", "cannot tell", "waived"})


def test_ansible_lint_takes_the_collection(tmp_path: Path) -> None:
    lint = shutil.which("ansible-lint")
    if not lint:
        pytest.skip("ansible-lint is not installed (pip install ansible-lint)")
    collection = tmp_path / "ansible_collections/zaudit/zaudit"  # where Ansible looks for the roles that the plays name
    shutil.copytree(ANSIBLE, collection)
    words = (lint, "--offline", "--profile", "production")
    around = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(tmp_path), "NO_COLOR": "1"}
    done = subprocess.run(words, cwd=collection, env=around, capture_output=True, text=True, check=False)
    assert "Passed: 0 failure(s), 0 warning(s)" in done.stdout + done.stderr
    assert done.returncode == 0
