"""udev's database of block devices through pyudev, in the record form of ``udevadm info --export-db``.

One form for both ways, so that one parser reads them and a recording does not depend on which was there.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

ARGV = ("udevadm", "info", "--export-db")


def context() -> Any | None:
    """pyudev's Context, or None where pyudev or libudev is missing (pyudev needs libudev.so.1 of the host)."""
    try:
        return import_module("pyudev").Context()
    except Exception:  # ImportError, or whatever ctypes raises for a missing or foreign libudev
        return None


def export(udev: Any) -> str:
    """``P: path``, ``N: name``, ``S: link`` and ``E: KEY=value`` lines of every block device, a blank line after each."""
    records = []
    for device in udev.list_devices(subsystem="block"):
        lines = [f"P: {device.device_path}", f"N: {device.sys_name.replace('!', '/')}"]
        lines += [f"S: {name.removeprefix('/dev/')}" for name in sorted(device.device_links)]
        lines += [f"E: {key}={value}" for key, value in sorted(device.properties.items())]
        records.append("\n".join(lines))
    return "\n\n".join(sorted(records)) + "\n\n"
