"""In the guest: sets up each state of /lab/plan.json, lets zaudit look at it as root and as nobody, and takes it down.

For each scenario /lab/out/NAME/ gets outcome.json (seconds, error, kernel names of the disks, exit codes) and, below root/
and nobody/, report.json, recording/, stderr. Where it has fixes they are run (fixing.py), and zaudit looks once more: fixed/.
What cannot be taken down ends the run: the host boots another guest for what is left.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

OUT = Path("/lab/out")
PARAMETERS = Path("/sys/module/zfs/parameters")
BY_ID = Path("/dev/disk/by-id")
SETUP_S, CHECK_S, TRACE_S, FIX_S = 300, 180, 900, 300
NOT_RUN = 77  # what a setup ends with where this guest lacks what it needs
ARCHIVE, UNPACKED = "/lab/zaudit.pyz", "/lab/zaudit"
NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "env", "HOME=/nonexistent")
TAKE_DOWN = r"""
cd /
for p in $(pgrep -x 'postgres|mariadbd|sqlite3'); do kill -9 $p; done
while pgrep -x 'postgres|mariadbd|sqlite3' >/dev/null; do sleep 0.1; done
rm -rf /etc/postgresql/lab /etc/mysql/conf.d/lab.cnf
mount | awk '$3 ~ "^/mnt/" { print $3 }' | sort -r | while read -r d; do umount "$d"; done
zpool list -Ho name 2>/dev/null | while read -r p; do timeout 60 zpool destroy -f "$p" || timeout 60 zpool export -f "$p"; done
for vg in $(vgs --noheadings -o vg_name 2>/dev/null); do vgremove -ff -y $vg; done
for m in $(dmsetup ls --target crypt 2>/dev/null | awk '!/No devices/ { print $1 }'); do cryptsetup close $m; done
for m in /dev/md[0-9]*; do [ ! -b $m ] || mdadm --stop $m; done
losetup -D 2>/dev/null; modprobe -r brd 2>/dev/null
rm -rf /etc/modprobe.d/lab-*.conf /lab/scratch; mkdir -p /lab/scratch
"""

BLANK = """
blkdiscard -f DISK >/dev/null 2>&1 || { wipefs -qaf DISK; dd if=/dev/zero of=DISK bs=1M oflag=direct status=none; }
for i in 1 2 3; do udevadm settle -t 10; ! blockdev --rereadpt DISK || break; sleep 1; done
"""


def shell(command: str, log: Path, seconds: float) -> int:
    """Run bash, all that it prints into a file: nothing waits for a pipe that a hanging child keeps open."""
    with log.open("ab") as out:
        child = subprocess.Popen(
            ["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
        return finish(child, seconds)


def finish(child: "subprocess.Popen[bytes]", seconds: float) -> int:
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        return 124


def disks() -> dict[str, str]:
    """N0 -> nvme3n1, S0 -> sda, V0 -> vdb"""
    found = {}
    for letter, pattern in (("N", "nvme-*_LABNVME"), ("S", "ata-*_LABSATA"), ("V", "virtio-LABVBLK")):
        for number in range(8):
            for path in BY_ID.glob(f"{pattern}{number}"):
                found[f"{letter}{number}"] = path.resolve().name
    return found


def settings() -> dict[Path, str]:
    """What a scenario may change and take_down() puts back: parameters of zfs, the kernel's idea of the caches."""
    files = [*PARAMETERS.iterdir(), *(Path("/sys/block", name, "queue/write_cache") for name in disks().values())]
    return {
        path: path.read_text()
        for path in files
        if path.exists() and path.stat().st_mode & 0o200 and path.stat().st_mode & 0o400
    }


def put_back(before: dict[Path, str]) -> None:
    for path, text in before.items():
        try:
            if path.exists() and path.read_text() != text:
                path.write_text(text)
        except OSError:
            pass  # some parameters take no value twice


def take_down(before: dict[Path, str], log: Path) -> bool:
    """True when the guest is as it was: no pool, blank disks."""
    shell(TAKE_DOWN, log, 150)
    put_back(before)
    for name in disks().values():
        shell(BLANK.replace("DISK", f"/dev/{name}"), log, 40)
    shell("[ -d /sys/module/zfs ] || modprobe zfs; udevadm settle -t 20", log, 40)
    left = subprocess.run(["zpool", "list", "-Ho", "name"], capture_output=True, text=True, timeout=60, check=False)
    partitions = [name for name in disks().values() if len(list(Path("/sys/block", name).glob(f"{name}*"))) > 0]
    return left.returncode == 0 and not left.stdout.strip() and not partitions


def program() -> str:
    """Where zaudit is."""
    return UNPACKED if Path(UNPACKED).exists() else ARCHIVE


def check(folder: Path, as_user: tuple[str, ...], scenario: dict[str, Any], scratch: Path) -> "subprocess.Popen[bytes]":
    """Start zaudit; the report and the recording go to a folder that the user may write to."""
    scratch.mkdir(parents=True)
    scratch.chmod(0o777)
    folder.mkdir(parents=True)
    argv = ["python3", program(), "check", *scenario["targets"], *scenario["options"]]
    argv += ["--record", str(scratch / "recording"), "--format", "json", "-o", str(scratch / "report.json")]
    with (folder / "stderr").open("wb") as errors:
        return subprocess.Popen(
            [*as_user, *argv],
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            cwd="/",
            env={**os.environ, "ZAUDIT_DEBUG": ""},
            start_new_session=True,
        )


def bring(source: Path, folder: Path) -> None:
    """What a look wrote, to what is sent to the host."""
    for path in source.iterdir():
        shutil.copytree(path, folder / path.name) if path.is_dir() else shutil.copy(path, folder)


def fix(scenario: dict[str, Any], folder: Path, log: Path) -> int:
    """Run the fixes, look again; the exit code of that look."""
    steps, scratch = shlex.quote(json.dumps(scenario["fix"])), Path("/tmp/looks", scenario["name"], "fixed")
    shell(f"PYTHONPATH={program()} python3 /lab/fixing.py {folder} {steps}", log, FIX_S)
    code = finish(check(folder / "fixed", (), scenario, scratch), CHECK_S)
    bring(scratch, folder / "fixed")
    return code


def trace(scenario: dict[str, Any], folder: Path, scratch: Path) -> int:
    """One more run as root, under strace; what it wrote is in scratch, and each system call in folder/traced."""
    (folder / "traced").mkdir()
    scratch.mkdir(parents=True)
    argv = [
        *scenario["strace"],
        "/usr/bin/python3",
        "-I",
        program(),
        "check",
        *scenario["targets"],
        *scenario["options"],
    ]
    argv += ["--record", str(scratch / "recording"), "-o", str(scratch / "report")]
    with (folder / "traced" / "stderr").open("wb") as errors:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, cwd="/", start_new_session=True
        )
    return finish(child, TRACE_S)


def stage(scenario: dict[str, Any], before: dict[Path, str]) -> bool:
    """One scenario from blank disks to blank disks. False when the guest must not be used again."""
    started, folder = time.monotonic(), OUT / scenario["name"]
    folder.mkdir()
    outcome: dict[str, Any] = {"disks": disks(), "error": "", "checked": {}}
    log = folder / "log"
    status = shell(f"set -euo pipefail; . /lab/state.sh; cd /lab/scratch\n{scenario['setup']}", log, SETUP_S)
    outcome["setup_s"] = round(time.monotonic() - started, 1)
    if status == NOT_RUN:
        outcome["not_run"] = log.read_text(errors="replace").strip().splitlines()[-1]
    elif status:
        outcome["error"] = f"the setup ended with {status}: {log.read_text(errors='replace')[-600:].strip()}"
    else:
        looking, users = time.monotonic(), {"root": (), "nobody": NOBODY}
        children = {}
        for user, words in users.items():
            children[user] = check(folder / user, words, scenario, Path("/tmp/looks", scenario["name"], user))
        for user, child in children.items():
            outcome["checked"][user] = finish(child, CHECK_S)
            bring(Path("/tmp/looks", scenario["name"], user), folder / user)
        outcome["check_s"] = round(time.monotonic() - looking, 1)
        if scenario["strace"]:
            outcome["traced"] = trace(scenario, folder, Path("/tmp/looks", scenario["name"], "traced"))
        if scenario["fix"]:
            outcome["fixed"] = fix(scenario, folder, log)
    clean = not scenario["alone"] and take_down(before, log)
    outcome["seconds"] = round(time.monotonic() - started, 1)
    outcome["clean"] = clean
    (folder / "outcome.json").write_text(json.dumps(outcome, indent=1))
    # at once: what has been sent is safe, whatever becomes of the guest
    if shell(f"tar -C {OUT} -cf /dev/virtio-ports/lab.out {scenario['name']}", log, 60) == 0:
        shutil.rmtree(folder)
    print(f"{scenario['name']}: {outcome['seconds']} s {outcome['checked']} {outcome['error'][:200]}", flush=True)
    return clean


def main() -> None:
    Path("/lab/scratch").mkdir()
    plan, before = json.loads(Path("/lab/plan.json").read_text()), settings()
    if len(plan) > 2:  # in software emulation, half of the time of a run from the archive goes into compiling
        subprocess.run(["python3", "-m", "zipfile", "-e", ARCHIVE, UNPACKED], check=True)
        subprocess.run(["python3", "-m", "compileall", "-q", "-j", "0", UNPACKED], check=True)
    for scenario in plan:
        if not stage(scenario, before):
            sys.exit(0)


if __name__ == "__main__":
    main()
