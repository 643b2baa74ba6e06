"""What this machine offers to run a guest with: the cache folder of the lab, a QEMU that works, KVM or TCG.

``python -m tests.lab.machine`` prints it; exit code 1 when the host has no QEMU of its own that will do.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

LINES = ("2.1", "2.2", "2.3", "2.4")
FROM_SOURCE = ("2.2",)
"""No Debian package has them: build.sh builds them where it is given OpenZFS's own source."""
NO_AHCI = ("2.1", "2.2")
"""Their kernel, Debian 12's for clouds, has no AHCI, so that their guests have no SATA disks."""
CACHE = Path(os.environ.get("ZAUDIT_LAB") or Path.home() / ".cache" / "zaudit-lab").absolute()
MIN_QEMU = 9
"""QEMU 7.2 (Debian 12) corrupts the guest under TCG; 10 is what was tested."""
KVM_PROBE_S = 20


class LabError(SystemExit):
    """Something that the lab needs is missing. Uncaught, it ends the program with its message."""


def built(line: str) -> bool:
    """Is there a guest of this line?"""
    return (CACHE / "img" / line / "versions").exists()


def available(named: Sequence[str] | None) -> Sequence[str]:
    """The lines that were named; where none was, all, but those from source that were not built here: which it says."""
    if named:
        return named
    absent = [line for line in FROM_SOURCE if not built(line)]
    for line in absent:
        print(
            f"lab: OpenZFS {line} is not available: it is built from source, and was not (tests/lab/README.md)",
            file=sys.stderr,
        )
    return [line for line in LINES if line not in absent]


def image(line: str) -> Path:
    """The folder with vmlinuz, initrd.cpio, root.img and versions of one OpenZFS line."""
    folder = CACHE / "img" / line
    if not built(line):
        raise LabError(f"lab: there is no guest for OpenZFS {line} in {CACHE}: run make lab LINE={line}")
    return folder


def release(line: str) -> dict[str, str]:
    """{"zfs": "2.3.9", "kernel": "6.12..."} of the guest."""
    return dict(pair.split(maxsplit=1) for pair in (image(line) / "versions").read_text().splitlines())


def host_qemu() -> str | None:
    """The host's own qemu-system-x86_64, when it is recent enough."""
    if path := shutil.which("qemu-system-x86_64"):
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
        found = re.search(r"version (\d+)", version)
        if found and int(found[1]) >= MIN_QEMU:
            return path
    return None


def qemu() -> tuple[list[str], dict[str, str]]:
    """The start of the argv of QEMU, and what its environment needs beside ours."""
    if path := os.environ.get("ZAUDIT_LAB_QEMU") or host_qemu():
        return [path], {}
    # Debian's QEMU 10, unpacked by build.sh, runs with its own loader and libraries: no chroot, no root rights
    root = CACHE / "qemu" / "usr"
    libraries = root / "lib" / "x86_64-linux-gnu"
    if not (root / "bin" / "qemu-system-x86_64").exists():
        raise LabError(f"lab: this host has no QEMU >= {MIN_QEMU} and {root.parent} is missing: run make lab")
    firmware = [word for folder in ("qemu", "seabios") for word in ("-L", str(root / "share" / folder))]
    loader = [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries)]
    return [*loader, str(root / "bin" / "qemu-system-x86_64"), *firmware], {"QEMU_MODULE_DIR": str(libraries / "qemu")}


def accelerator(boots_with_kvm: Callable[[float], bool]) -> str:
    """``kvm`` or ``tcg``. Some /dev/kvm cannot boot a Debian kernel, so KVM has to prove itself: one boot, once.

    The answer is kept for this kernel and this QEMU; ZAUDIT_LAB_ACCEL overrides it.
    """
    if chosen := os.environ.get("ZAUDIT_LAB_ACCEL"):
        return chosen
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    memo, host = CACHE / "accel.json", [os.uname().release, *qemu()[0]]
    try:
        known = json.loads(memo.read_text())
        if known["host"] == host:
            return str(known["accel"])
    except (OSError, ValueError, KeyError):
        pass
    print(f"lab: trying KVM (once, at most {KVM_PROBE_S} s)", file=sys.stderr)
    answer = "kvm" if boots_with_kvm(KVM_PROBE_S) else "tcg"
    print(f"lab: {'KVM works' if answer == 'kvm' else 'KVM does not boot the guest, using TCG'}", file=sys.stderr)
    memo.write_text(json.dumps({"host": host, "accel": answer}))
    return answer


if __name__ == "__main__":
    print(f"cache {CACHE}\nQEMU  {host_qemu() or 'none of its own that is recent enough'}")
    sys.exit(0 if host_qemu() else 1)
