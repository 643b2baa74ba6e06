"""The collectors for disks against outputs of other people's drives. ``<file>.expect.json`` is what a careful reader takes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from auditor.facts import Subject
from tests.corpus import CORPUS
from tests.sources.test_sources_disks import COLLECTORS, NVME, parsed

FOLDERS = {
    "hdparm": "hdparm",
    "nvme_id_ctrl": "nvme_id_ctrl",
    "nvme_smart_log": "nvme_smart_log",
    "nvme_vendor_smart_add_log": "nvme_ocp_smart",
    "smartctl_json": "smartctl",
    "smartctl_json_issue_derived": "smartctl",
}
# what the reader noted -> the fact that must say the same; what stands in no table here is not asked of the collector
NOTED = {
    "nvme_id_ctrl": {"model": "nvme_model", "vwc_present": "nvme_vwc_present"},
    "nvme_smart_log": {
        "critical_warning": "nvme_critical_warning",
        "avail_spare": "nvme_available_spare_percent",
        "percent_used": "nvme_percent_used",
        "media_errors": "nvme_media_errors",
        "power_on_hours": "nvme_power_on_hours",
    },
    "hdparm": {"write_cache": "hdparm_write_cache"},
    "nvme_ocp_smart": {
        "capacitor_health": "ocp_capacitor_health",
        "incomplete_shutdowns": "ocp_incomplete_shutdowns",
    },
    "smartctl": {
        "model": "smart_model",
        "passed": "smart_passed",
        "smart_passed": "smart_passed",
        "write_cache": "smart_write_cache",
        "rotation": "smart_rotation_rpm",
        "plp_failed": "smart_nvme_backup_failed",
        "critical_warning": "smart_nvme_critical_warning",
    },
}
DELIBERATE = {
    "nvme_vendor_smart_add_log/cachelib-06.txt": "Samsung's plugin; the collector asks for the log of all makes",
    "nvme_vendor_smart_add_log/cachelib-16.txt": "SK hynix' plugin, which says nothing of capacitors",
    "hdparm/idx-04.txt": "an hdparm -I listing; the collector asks hdparm -W and takes nothing from its feature list",
    "hdparm/idx-10.txt": "an hdparm -I listing; the collector asks hdparm -W and takes nothing from its feature list",
}


def corpus() -> list[Path]:
    files = (path for folder in FOLDERS for path in sorted((CORPUS / folder).glob("*")))
    return [path for path in files if not path.name.endswith(".expect.json")]


def subject_of(name: str, text: str) -> Subject:
    """That which the answer is about: another one is refused."""
    if name == "smartctl" and (named := re.search(r'"name"\s*:\s*"/dev/([^"]+)"', text)):
        return Subject("disk", named[1])
    if name != "hdparm":
        return NVME
    device = next((line for line in text.splitlines() if line.startswith("/dev/")), "/dev/sda:")
    return Subject("disk", device.strip(":").removeprefix("/dev/"))


@pytest.mark.parametrize("path", corpus(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_corpus(path: Path) -> None:
    name = FOLDERS[path.parent.name]
    text = path.read_text("utf-8", "surrogateescape")
    noted = path.with_name(f"{path.name}.expect.json")
    expected: Mapping[str, Any] = json.loads(noted.read_text()) if noted.is_file() else {}
    disk = subject_of(name, text)
    try:
        found = parsed(COLLECTORS[name], text, disk)
    except ValueError:
        deliberate = f"{path.parent.name}/{path.name}" in DELIBERATE
        assert deliberate or "error" in expected or not expected, "a careful reader understands it"
        return
    assert "error" not in expected
    if f"{path.parent.name}/{path.name}" in DELIBERATE:
        assert not found
        return
    for key, fact in NOTED[name].items():
        if key in expected:
            value = {"on": True, "off": False}.get(expected[key], expected[key]) if name == "hdparm" else expected[key]
            assert found.get(f"{disk} {fact}") == value, f"{key}: {fact}"
