"""What the guests of a power cut are made of, and what zaudit says of the live one."""

import json
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..vm import Result
from .disks import ROOT
from .matrix import Setting

ZAUDIT = ROOT / "zaudit.pyz"
GUEST_FILES = ("__init__.py", "commit.py", "postgres.py", "stage.py", "workloads.py")
PROTECTED, CONSUMER = "SAMSUNG MZ7L3240HCHQ-00A07", "Samsung SSD 860 EVO 500GB"
"""Names from zaudit's table of drives: with and without power-loss protection. A lying drive has an honest one's name."""


def one_partition(size: int) -> bytes:
    """A partition table. zpool would make one on a whole disk, and udev needs seconds for each of many in a busy guest."""
    start, end = 2048, size // 512
    return bytes(446) + struct.pack("<B3xB3xII", 0, 0xBF, start, end - start) + bytes(48) + b"\x55\xaa"


def device(line: str, source: str, model: str) -> str:
    """A disk for VM: a SATA drive with a name that zaudit knows; NVMe where the kernel has no AHCI."""
    if line == "2.1":
        return f"nvme:{source}"
    return f"sata:{source}:model={PROTECTED if model == 'plp' else CONSUMER},rotation_rate=1"


def guest_plan(line: str, settings: Sequence[Setting]) -> dict[str, Any]:
    """/lab/plan.json"""
    kind, used, plans = ("LABNVME" if line == "2.1" else "LABSATA"), 0, []
    for number, setting in enumerate(settings):
        serials = [f"{kind}{used + index}" for index in range(len(setting.drives))]
        used += len(serials)
        plans.append(setting.plan(f"p{number}", serials))
    return {"settings": plans, "parameters": dict(settings[0].parameters)}


def guest_files(plan: dict[str, Any]) -> dict[str, str | bytes]:
    """What goes into the guest."""
    here = Path(__file__).parent
    files: dict[str, str | bytes] = {f"power/{name}": (here / name).read_bytes() for name in GUEST_FILES}
    return {**files, "plan.json": json.dumps(plan), "zaudit.pyz": ZAUDIT.read_bytes()}


def predict(guest: Result, settings: Sequence[Setting], folder: Path) -> dict[str, Any]:
    """What zaudit says of each setting: the recording that it made in the live guest, asked for one setting's datasets."""
    recording = folder / "out" / "recording"
    for name, content in guest.out.items():
        path = folder / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    found = {}
    for number, setting in enumerate(settings):
        targets = [f"p{number}/db"] + ([f"p{number}/log"] if setting.log is not None else [])
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            command = [sys.executable, str(ZAUDIT), "check", *targets, "--replay", str(recording)]
            done = subprocess.run(
                [*command, "--format", "json", "-o", file.name], capture_output=True, text=True, check=False
            )
            if done.returncode and done.returncode < 10:
                print(f"zaudit: {done.stderr[-800:]} {guest.out.get('look.json', b'').decode()[-800:]}")
                continue
            report = json.loads(Path(file.name).read_text())
        lines = [f"{each['rule']} {each['outcome']} {each['severity']} {each['harm']}" for each in report["findings"]]
        found[setting.name] = {"version": report["zaudit"], "standing": report["standing"], "findings": lines}
    return found
