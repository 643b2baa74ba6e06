"""The collection for Ansible on hosts that replay recordings, and one that does not answer: who passes the gate. Over ssh it is
played in test_fleet_ansible_ssh.py, and with OpenZFS in the lab (tests/lab/ansible.py). Skipped where Ansible is not installed
(pip install ansible-core)."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import pytest

from tests import shared
from tests.fleet.fleets import DAY, fleet
from tests.lab.ansible import UNREACHABLE, Site
from tests.lab.run import ROOT

STAND = {"2.4-healthy-physical-no-cache": "kept", "2.3-sync-disabled-local": "lost", "2.3-network-attached": "one failure away",
         "2.3-suspended-path-failed": "stalled", "2.3-healthy-mirrored-slog": "on the word"}  # fmt: skip
HOSTS = {f"db{number}": case for number, case in enumerate(STAND, 1)}
SAID = {name: STAND[case] for name, case in HOSTS.items()}  # host -> what its report says
REFUSED = {"db2": 1, "db4": 1}
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("ansible-playbook"), reason="no Ansible here")]


def of_today(folder: Path) -> Path:
    """The recordings of all hosts, as if they were made now."""
    for name, case in HOSTS.items():
        fleet(folder, {name: case}, (time.time() - shared.host(case).taken) / DAY)
    return folder


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = of_today(tmp_path / "made")
    hosts: dict[str, dict[str, object]] = {
        name: {"ansible_connection": "local", "zaudit_options": ["--replay", f"{made}/{name}.tar.gz"]} for name in HOSTS
    }
    hosts["db9"] = {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_retries": 0}
    everywhere = {
        "ansible_become": False, "ansible_python_interpreter": sys.executable, "zaudit_fact": False,
        "zaudit_command": ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "auditor"],
    }  # fmt: skip
    return Site(tmp_path, hosts, everywhere)


def test_who_goes_through_the_gate(site: Site) -> None:
    done = site.play("gate")
    assert done.code == UNREACHABLE  # which Ansible says rather than that some failed
    assert done.all("failed") == REFUSED
    assert done.all("unreachable") == {"db9": 1}
    assert site.standings() == SAID
    assert "A CRASH OR POWER CUT LOSES ACKNOWLEDGED COMMITS (lost; the report is " in done.text


def test_an_old_report_opens_no_gate(site: Site) -> None:
    assert "(kept; the report is " in site.play("gate", "-l", "db1", "-e", "zaudit_gate_max_age=-1").text


def test_a_second_audit_changes_nothing(site: Site) -> None:
    site.play("audit")
    done = site.play("audit")
    assert site.standings() == SAID
    assert done.all("failed") == done.all("changed") == {}
