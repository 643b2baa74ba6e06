"""The units of systemd and the script for the event daemon of ZFS."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CONTRIB = Path(__file__).parents[2] / "contrib"
DOCUMENT = CONTRIB.parent / "docs" / "systemd.md"
UNITS, ZEDLET = CONTRIB / "systemd", CONTRIB / "zed" / "zaudit.sh"


def drop_in() -> str:
    """As docs/systemd.md has it."""
    found = re.search(r"```ini\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert found
    return found[1]


def test_what_the_sandbox_forbids_is_run_beside_it() -> None:
    """Without CAP_CHOWN nobody gives a file to a group that is not his: install would fail, and the service with it."""
    assert "CAP_CHOWN" not in (UNITS / "zaudit.service").read_text()
    commands = re.findall(r"^ExecStartPost=(\W*)(.*)", drop_in(), re.MULTILINE)
    assert commands
    assert all({"+", "-"} <= set(prefix) for prefix, words in commands if " -g " in words)


def test_the_sandbox_leaves_what_the_kernels_log_and_zdb_need() -> None:
    """Without them the kernel's log and the sizes of log vdevs are unknown every night (python -m tests.lab.service)."""
    unit = (UNITS / "zaudit.service").read_text()
    assert "DeviceAllow=/dev/kmsg r\n" in unit
    assert "CAP_SYSLOG" in unit
    assert int(re.findall(r"^TasksMax=(\d+)$", unit, re.MULTILINE)[0]) >= 4096


def test_the_sandbox_is_one() -> None:
    program = shutil.which("systemd-analyze")
    if not program:
        pytest.skip("systemd-analyze is not installed")
    words = ("security", "--offline=yes", "--no-pager", "--threshold=30", UNITS / "zaudit.service")
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze looks at no file")
    assert done.returncode == 0, done.stdout + done.stderr


def test_systemd_understands_the_units(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if not program:
        pytest.skip("systemd-analyze is not installed")
    for unit in UNITS.iterdir():
        (tmp_path / unit.name).write_text(unit.read_text().replace("/usr/bin/zaudit", "/bin/true"))
    paths = sorted(tmp_path.iterdir())
    (tmp_path / "zaudit.service.d").mkdir()
    (tmp_path / "zaudit.service.d" / "site.conf").write_text(drop_in().replace("/usr/bin/zaudit", "/bin/true"))
    done = subprocess.run([program, "verify", "--man=no", *paths], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_unit_that_is_started_is_there() -> None:
    names = {unit.name for unit in UNITS.iterdir()}
    for text in (*(unit.read_text() for unit in UNITS.iterdir()), ZEDLET.read_text()):
        assert set(re.findall(r"\b(?:Unit=|no-block )(zaudit\S+)", text)) <= names


@pytest.mark.parametrize(
    ("event", "name", "text", "pokes"),
    [
        ("history_event", "set", "sync=2", True),
        ("history_event", "inherit", "logbias=0", True),
        ("history_event", "set", "atime=0", False),
        ("history_event", "set", "$hasrecvd=", False),
        ("history_event", "snapshot", "", False),
        ("history_event", "create", "", False),
        ("history_event", "scan done", "errors=0", False),
        ("history_event", "finish receiving", "snap=a", True),
        ("history_event", "rename", "-> tank/x; sync=2", True),
        ("history_event", "set", "x;touch pwned=$(touch pwned)", False),
        ("config_sync", "", "", True),
        ("pool_import", "", "", True),
    ],
)
def test_what_leads_to_an_audit(event: str, name: str, text: str, pokes: bool, tmp_path: Path) -> None:
    fake = tmp_path / "systemctl"
    fake.write_text('#!/bin/sh\necho "$@" >> "$0.log"\n')
    fake.chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:{os.defpath}",
        "ZEVENT_SUBCLASS": event,
        "ZEVENT_HISTORY_INTERNAL_NAME": name,
        "ZEVENT_HISTORY_INTERNAL_STR": text,
    }
    subprocess.run([ZEDLET], env=environment, cwd=tmp_path, check=True, timeout=60)
    log = tmp_path / "systemctl.log"
    assert (log.read_text() if log.exists() else "") == ("start --no-block zaudit-soon.timer\n" if pokes else "")
    assert not (tmp_path / "pwned").exists()


def test_many_changes_lead_to_one_audit_within_15_seconds() -> None:
    """systemctl start does nothing to a timer that is active, and one that has elapsed is no longer (man 5 systemd.timer)."""
    timer = dict(re.findall(r"^(\w+)=(\w+)$", (UNITS / "zaudit-soon.timer").read_text(), re.MULTILINE))
    seconds = [int(timer[name].removesuffix("s")) for name in ("OnActiveSec", "AccuracySec")]
    assert sum(seconds) < 15
    assert timer["RemainAfterElapse"] == "no"


def test_a_change_during_an_audit_leads_to_the_next() -> None:
    """The timer starts what waits for the audit that runs: a start of what runs is none (contrib/debian/booted.sh)."""
    soon = (UNITS / "zaudit-soon.service").read_text()
    assert "\nAfter=zaudit.service\n" in soon
    assert "\nExecStart=/usr/bin/systemctl start --no-block zaudit.service\n" in soon
    assert "Unit=" not in (UNITS / "zaudit-soon.timer").read_text().replace("[Unit]", "")


def test_no_condition_keeps_the_alert_from_running() -> None:
    """Where a condition does not hold neither OnSuccess= nor OnFailure= follows (man 5 systemd.unit)."""
    unit = (UNITS / "zaudit.service").read_text()
    assert not re.search(r"^(Condition|Assert)", unit, re.MULTILINE)
    assert "3" in re.findall(r"^SuccessExitStatus=(.*)$", unit, re.MULTILINE)[0].split()
    assert {"OnSuccess=zaudit-alert.service", "OnFailure=zaudit-alert.service"} <= {*unit.splitlines()}
    assert re.findall(r"--max-age (\w+)", (UNITS / "zaudit-alert.service").read_text()) == ["1h"]


def test_the_script_is_for_root_to_run() -> None:
    """Who may write it is decided where it is installed: a checkout has the umask of its owner."""
    assert ZEDLET.stat().st_mode & 0o111
