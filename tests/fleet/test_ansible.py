"""The collection for Ansible on hosts that replay recordings, and one that does not answer: who passes the gate. Over ssh,
and with OpenZFS, it is played in the lab (tests/lab/ansible.py). Skipped where Ansible is not installed (pip install
ansible-core)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import shared
from tests.fleet.fleets import DAY, fleet
from tests.lab.ansible import recap

ROOT = Path(__file__).parents[2]
STAND = {"2.4-healthy-physical-no-cache": "kept", "2.3-sync-disabled-local": "lost", "2.3-healthy-mirrored-slog": "cannot tell",
         "2.3-suspended-path-failed": "stalled"}  # fmt: skip
HOSTS = {f"db{number}": case for number, case in enumerate(STAND, 1)}
Play = Callable[..., str]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("ansible-playbook"), reason="no Ansible here")]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """A function that plays one of the collection, and gives what Ansible said."""
    shutil.copytree(ROOT / "contrib/ansible/zaudit", tmp_path / "ansible_collections/zaudit/zaudit")
    hosts = {}
    for name, case in HOSTS.items():
        fleet(tmp_path / "made", {name: case}, (time.time() - shared.host(case).taken) / DAY)
        hosts[name] = {"ansible_connection": "local", "zaudit_options": ["--replay", f"{tmp_path}/made/{name}.tar.gz"]}
    everywhere = {
        "ansible_become": False, "ansible_python_interpreter": sys.executable, "zaudit_reports": f"{tmp_path}/reports",
        "zaudit_command": ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "auditor"], "zaudit_fact": False,
    }  # fmt: skip
    away = {"db9": {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_retries": 0}}
    inventory = {"all": {"hosts": hosts | away, "vars": everywhere}}
    (tmp_path / "hosts.json").write_text(json.dumps(inventory))
    around = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(tmp_path), "HOME": str(tmp_path), "ANSIBLE_NOCOLOR": "1"}

    def played(name: str, *words: str) -> str:
        argv = ["ansible-playbook", "-i", "hosts.json", f"zaudit.zaudit.{name}", *words]
        return subprocess.run(argv, cwd=tmp_path, env=around, capture_output=True, text=True, check=False).stdout

    return played


def test_who_goes_through_the_gate(play: Play, tmp_path: Path) -> None:
    said = play("gate")
    counted = recap(said)
    assert {host: each["failed"] for host, each in counted.items()} == {
        "db1": 0,
        "db2": 1,
        "db3": 1,
        "db4": 1,
        "db9": 0,
    }
    assert {host: each["unreachable"] for host, each in counted.items() if each["unreachable"]} == {"db9": 1}
    reports = {path.stem: json.loads(path.read_text())["standing"] for path in (tmp_path / "reports").iterdir()}
    assert reports == {name: STAND[case] for name, case in HOSTS.items()}
    assert "A CRASH OR POWER CUT LOSES ACKNOWLEDGED COMMITS (lost; the report is " in said


def test_an_old_report_opens_no_gate(play: Play) -> None:
    assert "(kept; the report is " in play("gate", "-l", "db1", "-e", "zaudit_gate_max_age=-1")


def test_a_second_audit_changes_nothing(play: Play) -> None:
    play("audit")
    counted = recap(play("audit"))
    assert not any(each["failed"] for each in counted.values())
    assert {host: each["changed"] for host, each in counted.items()} == dict.fromkeys([*HOSTS, "db9"], 0)
