"""In the guest: ``run`` makes the pools of /lab/plan.json, lets zaudit look and commits until the power is gone;
``verify`` imports them again and writes what is left to /lab/out/left.json.

What goes to the host over the port lab.ack, a line each: SLOT NUMBER for a commit, GO when the workloads start.
"""

import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .commit import Workload
from .workloads import workload

Plan = dict[str, Any]
PLAN: Plan = json.loads(Path("/lab/plan.json").read_text())
OUT = Path("/lab/out")
BY_ID = Path("/dev/disk/by-id")
BLKFLSBUF = 0x1261  # what blockdev --flushbufs does (linux/fs.h)


def shell(command: str, seconds: float = 120, strict: bool = True) -> tuple[int, str]:
    """Run bash: exit status and all that it printed. Strict: a failure ends this guest."""
    try:
        done = subprocess.run(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, f"{command}: no answer in {seconds} s"
    if done.returncode and strict:
        print(f"{command}: {done.returncode} {done.stdout[-500:]} {done.stderr[-500:]}", flush=True)
        raise SystemExit(f"failed: {command}")
    return done.returncode, (done.stdout + done.stderr).strip()


def disk(serial: str) -> Path | None:
    """By serial number: kernel names come up in any order."""
    return next(iter(sorted(path for path in BY_ID.glob(f"*_{serial}") if not path.name.startswith("wwn"))), None)


def hook(setting: Plan, name: str) -> None:
    """A shell script of the matrix; $DISKS are the kernel names of the setting's disks."""
    if script := setting.get(name):
        names = " ".join(path.resolve().name for path in map(disk, setting["serials"]) if path)
        shell(f"POOL={setting['pool']}; DISKS=({names}); {script}")


def parameters() -> None:
    """Module parameters of the whole guest."""
    for name, value in PLAN["parameters"].items():
        Path("/sys/module/zfs/parameters", name).write_text(str(value))


def at_once(function: Callable[[Plan], None]) -> None:
    """For every setting in a thread of its own; one that fails ends the guest."""
    failed: list[str] = []

    def guarded(setting: Plan) -> None:
        try:
            function(setting)
        except (SystemExit, Exception) as error:
            failed.append(f"{setting['name']}: {error!r}")

    threads = [threading.Thread(target=guarded, args=(setting,)) for setting in PLAN["settings"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        print("\n".join(failed), flush=True)
        os._exit(9)


def job(setting: Plan) -> Workload:
    """Its program, in its datasets."""
    data = Path("/", setting["pool"], "db")
    return workload(setting["workload"], data, Path("/", setting["pool"], "log") if "log" in setting else data)


def make(setting: Plan) -> None:
    """Pool, datasets, what the program needs; the hooks around the import."""
    pool = setting["pool"]
    words = " ".join(f"{disk(word)}-part1" if word in setting["serials"] else word for word in setting["vdevs"].split())
    shell(f"zpool create -f -o ashift=12 {setting.get('pool_options', '')} -O atime=off {pool} {words}")
    options = setting.get("data", "")
    records = "" if "recordsize=" in options else "-o recordsize=16K"  # zfs takes no property twice
    shell(f"zfs create {records} -o compression=lz4 {options} {pool}/db")
    if "log" in setting:
        shell(f"zfs create {setting['log']} {pool}/log")
    if setting.get("before_import") or setting.get("after_import"):
        shell(f"zpool export {pool}")
        hook(setting, "before_import")
        shell(f"zpool import -d {BY_ID} {pool}")
    job(setting).prepare()
    shell(f"dd if=/dev/urandom of=/{pool}/db/warm bs=8k count=20 oflag=dsync; zpool sync {pool}")
    hook(setting, "after_import")


def look() -> None:
    """zaudit, live, for the whole host; the report and the recording go to the host at once."""
    command = (
        "python3 /lab/zaudit.pyz check --record /lab/out/recording --format json -o /lab/out/report.json --timeout 90"
    )
    started = time.monotonic()
    status, text = shell(command, 600, strict=False)
    (OUT / "look.json").write_text(json.dumps({"rc": status, "text": text[-2000:], "s": time.monotonic() - started}))
    shell(f"tar -C {OUT} -cf /dev/virtio-ports/lab.out .")


def commit(port: int, slot: int, setting: Plan) -> None:
    """The program, each of its commits reported before the next."""
    job(setting).run(lambda number: os.write(port, b"%d %d\n" % (slot, number)))


def run() -> None:
    """Until the power is gone."""
    print(f"booted after {time.monotonic():.0f} s", flush=True)
    parameters()
    at_once(make)
    print(f"made after {time.monotonic():.0f} s", flush=True)
    if PLAN["look"]:
        look()
    print(f"looked after {time.monotonic():.0f} s", flush=True)
    port = os.open("/dev/virtio-ports/lab.ack", os.O_RDWR)
    os.write(port, b"GO\n")
    for slot, setting in enumerate(PLAN["settings"]):
        if os.fork() == 0:
            try:
                commit(port, slot, setting)
            except Exception as error:
                print(f"{setting['name']} ended: {error!r}", flush=True)
            os._exit(0)
    time.sleep(1.5)
    for setting in PLAN["settings"]:
        hook(setting, "running")
    time.sleep(900)


def bring_back(setting: Plan) -> tuple[str, list[str]]:
    """Import as an administrator would, then with what the error message asks for. How it went, and what it printed."""
    words: list[str] = []
    places = " ".join(f"-d {disk(serial)}-part1" for serial in setting["serials"])
    for option in ("", "-m", "-F", "-F -m"):
        status, text = shell(f"zpool import {option} {places} {setting['pool']}", 300, strict=False)
        if status == 0:
            return option or "plain", words
        words.append(f"import {option}: {text}"[:600])
    return "failed", words


def verify_one(setting: Plan, result: dict[str, Any], *, there: bool) -> None:
    """Import it unless it is there, read, scrub; what ZFS says of it then."""
    pool = setting["pool"]
    result["import"], result["words"] = ("plain", []) if there else bring_back(setting)
    result["have"], result["damage"] = [], []
    if result["import"] == "failed":
        return
    try:
        left = job(setting).check()
        result["have"], result["damage"] = ranges(left.have), left.damage[:20]
    except Exception as error:
        result["damage"] = [f"cannot read: {error!r}"]
    if setting["workload"].startswith("pages"):  # which has read all that there is
        return
    shell(f"zpool scrub -w {pool} || zpool scrub {pool}", 60, strict=False)
    _, status = shell(f"zpool status -v {pool}", 30, strict=False)
    if "errors: No known data errors" not in status:
        result["damage"].append("after a scrub: " + status[status.find("errors:") :][:300])


def ranges(numbers: set[int]) -> list[list[int]]:
    """{0, 1, 2, 5} -> [[0, 2], [5, 5]]"""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def verify() -> None:
    """What is left after each cut: the host puts the media in place, says GO, and gets a line of JSON."""
    print(f"booted after {time.monotonic():.0f} s", flush=True)
    parameters()
    port = os.open("/dev/virtio-ports/lab.ack", os.O_RDWR)
    for _ in range(PLAN["cuts"]):
        os.write(port, b"NEXT\n")
        while b"GO" not in os.read(port, 100):
            time.sleep(0.05)
        for path in (*Path("/dev").glob("sd*"), *Path("/dev").glob("nvme*n1*")):
            device = os.open(path, os.O_RDONLY)
            fcntl.ioctl(device, BLKFLSBUF, 0)
            os.close(device)
        answer = json.dumps(left_now()).encode() + b"\n"
        for at in range(0, len(answer), 4096):
            os.write(port, answer[at : at + 4096])
        words = ""
        for _ in range(5):
            if pools():
                words += shell("cd /; zpool export -a", 120, strict=False)[1]
        print(f"verified after {time.monotonic():.0f} s {words}", flush=True)
        if pools():
            return


def pools() -> list[str]:
    """Those that are imported."""
    return shell("zpool list -Ho name", 30)[1].split()


def left_now() -> dict[str, dict[str, Any]]:
    """What is left of each setting."""
    results: dict[str, dict[str, Any]] = {setting["name"]: {} for setting in PLAN["settings"]}
    places = " ".join(f"-d {disk(serial)}-part1" for setting in PLAN["settings"] for serial in setting["serials"])
    shell(f"zpool import -a {places}", 300, strict=False)  # those that come back so; a process takes a second here
    there = pools()
    at_once(lambda setting: verify_one(setting, results[setting["name"]], there=setting["pool"] in there))
    return results


if __name__ == "__main__":
    {"run": run, "verify": verify}[sys.argv[1]]()
