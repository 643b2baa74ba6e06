"""What runs zaudit elsewhere: on the nodes of a cluster, from a container, in the CI of a repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from auditor.cli import main
from auditor.report.formats import exchange
from tests.golden import CANONICAL, GREEN, HOSTS

CONTRIB = Path(__file__).parents[2] / "contrib"
CI = CONTRIB / "ci" / "zaudit-judge-recordings"
FAKE = f'#!/bin/sh\nexec {sys.executable} -P -m auditor "$@"\n'


def surroundings(folder: Path) -> dict[str, str]:
    """With a zaudit in the PATH."""
    (folder / "zaudit").write_text(FAKE)
    (folder / "zaudit").chmod(0o755)
    home = str(Path(__file__).parents[2])
    return {**os.environ, "PATH": f"{folder}:{os.environ.get('PATH', os.defpath)}", "PYTHONPATH": home}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "lines"),
    [
        ((HOSTS / CANONICAL,), 14, 1),
        (("--fail-on", "critical", HOSTS / GREEN), 0, 1),
        (("--fail-on", "critical", HOSTS / CANONICAL, HOSTS / GREEN), 14, 2),
        (("/nonexistent",), 2, 0),
        ((), 2, 0),
        (("--fail-on", "critical"), 2, 0),
    ],
)
def test_recordings_are_judged_and_the_worst_counts(
    words: tuple[Any, ...], code: int, lines: int, tmp_path: Path
) -> None:
    done = subprocess.run([CI, *words], env=surroundings(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert len(done.stdout.splitlines()) == lines


def test_node_problem_detector_asks_what_zaudit_has() -> None:
    config = json.loads((CONTRIB / "kubernetes" / "zaudit-problem.json").read_text())
    (rule,) = config["rules"]
    words = rule["args"][rule["args"].index("show") :]
    command = main.get_command(click.Context(main), "show")
    assert command
    assert command.make_context("show", list(words[1:])).params["wanted"][0].name == "npd"
    assert config["pluginConfig"]["max_output_length"] == exchange.NPD_LINE
    assert {rule["condition"]} == {each["type"] for each in config["conditions"]}


def test_the_container_runs_it_in_the_root_of_the_host(tmp_path: Path) -> None:
    """With a chroot that only says what it was asked for."""
    for name, text in (("chroot", 'echo "$@"\nexit 14'), ("zaudit.pyz", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    shutil.copy(CONTRIB / "container" / "zaudit-host", tmp_path)
    host = tmp_path / "host"
    home = {"PATH": f"{tmp_path}:{os.defpath}", "ZAUDIT_HOST_ROOT": str(host)}
    asked: list[Any] = [tmp_path / "zaudit-host", "check", "tank/a b"]
    done = subprocess.run(asked, env=home, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == f"{host} /usr/bin/python3 -I /var/lib/zaudit/zaudit.pyz check tank/a b\n"
    assert done.returncode == 14
    assert (host / "var/lib/zaudit/zaudit.pyz").stat().st_mode & 0o777 == 0o755


def test_kubernetes_takes_the_manifest() -> None:
    manifest = CONTRIB / "kubernetes" / "daemonset.yaml"
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    document = import_module("yaml").safe_load(manifest.read_text())
    validate.validate(document, validate.latest_version(), strict=True)
    (pod,) = document["spec"]["template"]["spec"]["containers"]
    assert not any(mount.get("readOnly") for mount in pod["volumeMounts"])


@pytest.mark.slow
def test_github_takes_the_action() -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    words: list[Any] = ["--builtin-schema", "vendor.github-actions", CONTRIB / "ci" / "action.yml"]
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_what_the_document_asks_of_the_action_and_the_hook_they_have() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    document = (CONTRIB.parent / "docs" / "ci.md").read_text()
    step, _, repository = (
        each for block in re.findall(r"```yaml\n(.*?)```", document, re.DOTALL) for each in yaml.safe_load(block)
    )
    action = yaml.safe_load((CONTRIB / "ci" / "action.yml").read_text())
    assert "/zaudit/contrib/ci@" in step["uses"]
    assert {name for name, each in action["inputs"].items() if each["required"]} <= step["with"].keys()
    assert step["with"].keys() <= action["inputs"].keys()
    (wanted,) = repository["hooks"]
    (hook,) = yaml.safe_load((CONTRIB.parent / ".pre-commit-hooks.yaml").read_text())
    assert wanted["id"] == hook["id"]
    assert wanted["args"][0] in CI.read_text()


def test_pre_commit_takes_the_hook_and_installs_what_it_runs() -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    manifest, home = CONTRIB.parent / ".pre-commit-hooks.yaml", ConfigParser()
    (hook,) = import_module("yaml").safe_load(manifest.read_text())
    home.read(CONTRIB.parent / "setup.cfg")
    assert (CONTRIB.parent / home["options"]["scripts"], hook["language"]) == (CI, "python")
    assert hook["entry"] == CI.name
    assert re.search(hook["files"], "hosts/db1.tar.gz")
    if program := shutil.which("pre-commit"):
        done = subprocess.run([program, "validate-manifest", manifest], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", [CI, CONTRIB / "container" / "zaudit-host", CONTRIB / "debian" / "build.sh"], ids=str)
def test_a_script_is_one(path: Path) -> None:
    assert subprocess.run(["sh", "-n", path], check=False).returncode == 0
    assert path.stat().st_mode & 0o111


def test_nrpe_and_icinga_ask_what_zaudit_has() -> None:
    """The blocks of the document; nrpe 4.1, nagios 4.4.6 and icinga 2.13.6 have run them as printed."""
    text = (CONTRIB.parent / "docs" / "formats.md").read_text()
    nrpe = re.findall(r"^command\[check_zaudit\]=/usr/bin/zaudit (.*)$", text, re.MULTILINE)
    icinga = re.findall(r'command = \[ "/usr/bin/zaudit", (.*) \]', text)
    age = re.findall(r'vars\.zaudit_max_age = "(.*)"', text)
    lines = [nrpe[0].split(), [each.replace("$zaudit_max_age$", age[0]) for each in re.findall(r'"(.*?)"', icinga[0])]]
    command = main.get_command(click.Context(main), "show")
    assert command
    for name, *words in lines:
        assert name == "show"
        given = command.make_context("show", words).params
        assert (given["wanted"][0].name, str(given["report"])) == ("nagios", "/run/zaudit-report.json")
    assert "-c check_zaudit" in text
