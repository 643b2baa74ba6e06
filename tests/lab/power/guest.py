"""What the guests of a power cut are made of, and what zaudit says of the live one."""

import json
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from ..machine import NO_AHCI
from ..vm import Result
from .disks import ROOT
from .matrix import Setting

ZAUDIT = ROOT / "zaudit.pyz"
GUEST_FILES = ("__init__.py", "commit.py", "databases.py", "stage.py", "workloads.py")
ORDER = ("kept", "word", "unknown", "lost")
PROTECTED, CONSUMER = "SAMSUNG MZ7L3240HCHQ-00A07", "Samsung SSD 860 EVO 500GB"
"""Names from zaudit's table of drives: with and without power-loss protection. A lying drive has an honest one's name."""


def one_partition(size: int) -> bytes:
    """A partition table. zpool would make one on a whole disk, and udev needs seconds for each of many in a busy guest."""
    start, end = 2048, size // 512
    return bytes(446) + struct.pack("<B3xB3xII", 0, 0xBF, start, end - start) + bytes(48) + b"\x55\xaa"


def device(line: str, source: str, model: str) -> str:
    """A disk for VM: a SATA drive with a name that zaudit knows; NVMe where the kernel has no AHCI."""
    if line in NO_AHCI:
        return f"nvme:{source}"
    return f"sata:{source}:model={PROTECTED if model == 'plp' else CONSUMER},rotation_rate=1"


def guest_plan(line: str, settings: Sequence[Setting]) -> dict[str, Any]:
    """/lab/plan.json"""
    kind, used, plans = ("LABNVME" if line in NO_AHCI else "LABSATA"), 0, []
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


def predict(
    line: str, guest: Result, settings: Sequence[Setting], folder: Path, what: Literal["findings", "events"]
) -> dict[str, Any]:
    """What zaudit says of each setting: the recording that it made in the live guest, asked for one setting's datasets."""
    recording = folder / "out" / "recording"
    for name, content in guest.out.items():
        path = folder / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    found = {}
    plans = guest_plan(line, settings)["settings"]
    for number, (setting, plan) in enumerate(zip(settings, plans, strict=True)):
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
        said = events(report, json.loads(guest.out.get("disks.json", b"{}")), plan["serials"])
        found[setting.name] = {"version": report["zaudit"], what: {"findings": lines, "events": said}[what]}
    return found


def events(report: dict[str, Any], names: dict[str, str], serials: Sequence[str]) -> dict[str, str]:
    """The table of a report, the worst of its datasets: "word of drive 0, drive 1", "lost", "unknown: RULE", "kept". The drives
    of the setting by number. names: kernel name by serial number."""
    number = {names[serial]: f"drive {index}" for index, serial in enumerate(serials) if serial in names}
    worst: dict[str, list[dict[str, Any]]] = {}
    for column in report["events"]:
        for event, cell in column["events"].items():
            known = worst.setdefault(event, [cell])
            if cell["outcome"] == known[0]["outcome"]:
                known.append(cell)
            elif ORDER.index(cell["outcome"]) > ORDER.index(known[0]["outcome"]):
                worst[event] = [cell]
    said = {}
    for event, cells in worst.items():
        words = [
            number.get(name, name)
            for cell in cells
            for each in cell.get("word", ())
            for name in (each["names"] or [each["party"]])
        ]
        rules = [rule for cell in cells for rule in cell.get("rules", ())]
        why = sorted(set(words)) or sorted(set(rules))
        said[event] = ": ".join((cells[0]["outcome"], ", ".join(why))) if why else cells[0]["outcome"]
    return said
