"""In the guest: ``run`` makes the pools of /lab/plan.json, lets zaudit look and commits until the power is gone;
``verify`` imports them again and says what is left.

What goes to the host over the port lab.ack, a line each: SLOT NUMBER for a commit, GO when the workloads run and what is done
to them is done; what is left, in JSON. What comes from there: GO and the slots to look at, when the media are in place; DIE,
when a drive of each pool shall.
Where the plan asks for events the programs are first killed in folders of their own, which needs no power cut.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from .commit import Workload
from .workloads import workload

Plan = dict[str, Any]
PLAN: Plan = json.loads(Path("/lab/plan.json").read_text())
OUT = Path("/lab/out")
BY_ID = Path("/dev/disk/by-id")
KILLED_AFTER_S, DYING_S = 4, 4
ENDING_S, REDUNDANT_ENDS_S = 10.0, 120.0  # in which programs end that were asked to
GROUPS = 14
BLKFLSBUF = 0x1261  # what blockdev --flushbufs does (linux/fs.h)


def shell(command: str, seconds: float = 120, strict: bool = True) -> tuple[int, str]:
    """Run bash: exit status and all that it printed. Strict: a failure ends this guest."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)
    try:
        out, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()  # and never waited for: on a suspended pool it stays
        return 124, f"{command}: no answer in {seconds} s"
    if process.returncode and strict:
        print(f"{command}: {process.returncode} {out[-500:]} {errors[-500:]}", flush=True)
        raise SystemExit(f"failed: {command}")
    return process.returncode, (out + errors).strip()


def disk(serial: str) -> Path | None:
    """By serial number: kernel names come up in any order."""
    return next(iter(sorted(path for path in BY_ID.glob(f"*_{serial}") if not path.name.startswith("wwn"))), None)


def remove(serial: str) -> None:
    """Take a drive out."""
    name = (disk(serial) or Path("none")).resolve().name
    switch = Path("/sys/block", name, "device/device/remove" if name.startswith("nvme") else "device/delete")
    switch.write_text("1")


def place(setting: Plan, serial: str) -> str:
    """What the pool lies on: the partition of a drive, or what the layer on it offers."""
    folder = Path("/lab", serial)
    if setting["layer"] == "loop":
        return shell(f"losetup -nO NAME -j {folder}/file")[1]
    return f"{folder}/file" if setting["layer"] else f"{disk(serial)}-part1"


def lay(setting: Plan, *, make: bool) -> None:
    """The layer between drives and pool, if any: a file of ext4, or a loop device over it."""
    for serial in setting["serials"] if setting["layer"] else ():
        part, folder = f"{disk(serial)}-part1", f"/lab/{serial}"
        if make:
            shell(f"mkfs.ext4 -q -F {part}")
        shell(f"mkdir -p {folder}; mount {part} {folder} && truncate -s 400M {folder}/file")
        if setting["layer"] == "loop":
            shell(f"modprobe loop; losetup -f {folder}/file")


def hook(setting: Plan, name: str, program: int = 0) -> None:
    """A shell script of the matrix; $DISKS are the kernel names of the setting's disks, $VDEVS what zpool calls them, $PROGRAM
    is the process that commits."""
    if script := setting.get(name):
        pool = setting["pool"]
        names = " ".join(path.resolve().name for path in map(disk, setting["serials"]) if path)
        vdevs = f"$(zpool list -vHP -o name {pool} | grep -o '/[^[:space:]]*')"
        print(shell(f"POOL={pool}; PROGRAM={program}; DISKS=({names}); VDEVS=({vdevs}); {script}")[1], flush=True)


def parameters() -> None:
    """Module parameters of the whole guest."""
    for name, value in PLAN["parameters"].items():
        Path("/sys/module/zfs/parameters", name).write_text(str(value))


def at_once(function: Callable[[Plan], object], settings: Sequence[Plan] = PLAN["settings"]) -> None:
    """For every setting in a thread of its own; one that fails ends the guest."""
    failed: list[str] = []

    def guarded(setting: Plan) -> None:
        try:
            function(setting)
        except (SystemExit, Exception) as error:
            failed.append(f"{setting['name']}: {error!r}")

    threads = [threading.Thread(target=guarded, args=(setting,)) for setting in settings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        print("\n".join(failed), flush=True)
        os._exit(9)


def job(setting: Plan, folder: str = "") -> Workload:
    """Its program, in its datasets or in a folder of them."""
    data = Path("/", setting["pool"], "db", folder)
    return workload(setting["workload"], data, Path("/", setting["pool"], "log", folder) if "log" in setting else data)


def make(setting: Plan) -> None:
    """Pool, datasets, what the program needs; the hooks around the import."""
    pool = setting["pool"]
    lay(setting, make=True)
    words = " ".join(place(setting, word) if word in setting["serials"] else word for word in setting["vdevs"].split())
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
    # as on a host that is not new: so many groups and log blocks that the counters show whether flushes get through
    warm = f"dd if=/dev/urandom of=/{pool}/db/warm bs=8k count=3 oflag=dsync; zpool sync {pool}"
    shell(f"for i in $(seq {GROUPS}); do {warm}; done", 300)
    hook(setting, "after_import")


def look() -> None:
    """zaudit, live, for the whole host; the report and the recording go to the host at once."""
    command = (
        "python3 /lab/zaudit.pyz check --record /lab/out/recording --format json -o /lab/out/report.json --timeout 90"
    )
    started = time.monotonic()
    status, text = shell(command, 600, strict=False)
    (OUT / "look.json").write_text(json.dumps({"rc": status, "text": text[-2000:], "s": time.monotonic() - started}))
    serials = [serial for setting in PLAN["settings"] for serial in setting["serials"]]
    names = {serial: there.resolve().name for serial in serials if (there := disk(serial))}
    (OUT / "disks.json").write_text(json.dumps(names))
    shell(f"tar -C {OUT} -cf /dev/virtio-ports/lab.out .")


class Told(Exception):
    """A program was told to end, and does so before its next commit."""


def commit(port: int, slot: int, setting: Plan) -> None:
    """The program, each of its commits reported before the next."""
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())

    def report(number: int) -> None:
        os.write(port, b"%d %d\n" % (slot, number))
        if told.is_set():
            raise Told

    job(setting).run(report)


def start(port: int, slot: int, setting: Plan) -> int:
    """The program as a process of its own: its number."""
    if (child := os.fork()) == 0:
        try:
            commit(port, slot, setting)
        except (Exception, SystemExit) as error:
            print(f"{setting['name']} ended: {error!r}", flush=True)
        os._exit(0)
    return child


def killed() -> dict[str, dict[str, Any]]:
    """The programs run in folders of their own and are killed while they commit; what they say of it afterwards."""

    def prepare(setting: Plan) -> None:
        for name in ("db", *(("log",) if "log" in setting else ())):
            Path("/", setting["pool"], name, "killed").mkdir()
        job(setting, "killed").prepare()

    at_once(prepare)
    children = []
    for setting in PLAN["settings"]:
        if (child := os.fork()) == 0:
            told = os.open(f"/lab/{setting['pool']}.told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.setsid()  # a client of a database goes with it
            job(setting, "killed").run(partial(_tell, told))
        children.append(child)
    time.sleep(KILLED_AFTER_S)
    for setting, child in zip(PLAN["settings"], children, strict=True):
        job(setting, "killed").stop(killed=True)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    results: dict[str, dict[str, Any]] = {}

    def check(setting: Plan) -> None:
        told = Path(f"/lab/{setting['pool']}.told").read_bytes().split(b"\n")[:-1]
        left = job(setting, "killed").check()
        acknowledged = int(told[-1]) + 1 if told else 0
        results[setting["name"]] = {
            "acknowledged": acknowledged, "have": ranges(left.have), "damage": left.damage[:20], "import": "", "words": [],
        }  # fmt: skip

    at_once(check)
    return results


def _tell(file: int, number: int) -> None:
    os.write(file, b"%d\n" % number)


def dying(children: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    """One drive of each pool is taken away while its program commits, which then ends in order, and so does the pool: export
    and import from what is left. children: the processes of the programs, by setting."""
    mortal = [setting for setting in PLAN["settings"] if "dies" in setting]
    for setting in mortal:
        remove(setting["dies"])
    time.sleep(DYING_S)
    ended: set[int] = set()
    for child in children.values():
        os.kill(child, signal.SIGTERM)
    _until_ended({*children.values()}, ended, ENDING_S)
    # a program on a pool that goes on does end, on a slow machine later; on one that is suspended it never does
    _until_ended({children[each["name"]] for each in mortal if each["redundant"]}, ended, REDUNDANT_ENDS_S)
    results: dict[str, dict[str, Any]] = {setting["name"]: {} for setting in mortal}

    def check(setting: Plan) -> None:
        result = results[setting["name"]]
        if children[setting["name"]] in ended:
            job(setting).stop(killed=False)
        status, text = shell(f"cd /; zpool export {setting['pool']}", 40, strict=False)
        if status:
            _, state = shell(
                f"zpool status {setting['pool']}; cat /proc/{children[setting['name']]}/stack", 20, strict=False
            )
            result |= {"import": "failed", "words": [text[:600], state[:3000]], "have": [], "damage": []}
        else:
            verify_one(setting, result, there=False)

    for redundant in (True, False):  # a pool that is suspended may hold up all commands
        at_once(check, [setting for setting in mortal if setting["redundant"] is redundant])
    return results


def _until_ended(children: set[int], ended: set[int], seconds: float) -> None:
    """Wait for processes so long; those that have ended are added."""
    until = time.monotonic() + seconds
    while (rest := children - ended) and time.monotonic() < until:
        ended |= {child for child in rest if os.waitpid(child, os.WNOHANG)[0]}
        time.sleep(0.1)


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
    if PLAN.get("events"):
        say(port, killed())
        print(f"killed after {time.monotonic():.0f} s", flush=True)
    children = {setting["name"]: start(port, slot, setting) for slot, setting in enumerate(PLAN["settings"])}
    time.sleep(1.5)
    for setting in PLAN["settings"]:
        hook(setting, "running", children[setting["name"]])
    os.write(port, b"GO\n")
    if PLAN.get("events"):
        while b"DIE" not in os.read(port, 100):
            time.sleep(0.05)
        say(port, dying(children))
        print(f"died after {time.monotonic():.0f} s", flush=True)
    time.sleep(900)


def say(port: int, answer: object) -> None:
    """A line of JSON for the host. A port takes a few KiB at once."""
    data = json.dumps(answer).encode() + b"\n"
    for at in range(0, len(data), 4096):
        os.write(port, data[at : at + 4096])


def bring_back(setting: Plan) -> tuple[str, list[str]]:
    """Import as an administrator would, then with what the error message asks for. How it went, and what it printed."""
    words: list[str] = []
    places = " ".join(f"-d {place(setting, serial)}" for serial in setting["serials"] if disk(serial))
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
    for setting in PLAN["settings"]:
        for serial in setting.get("absent", ()):
            remove(serial)
    port = os.open("/dev/virtio-ports/lab.ack", os.O_RDWR)
    for _ in range(PLAN["cuts"]):
        os.write(port, b"NEXT\n")
        word = b""
        while not (word.startswith(b"GO") and word.endswith(b"\n")):
            time.sleep(0.05)
            word += os.read(port, 100)
        slots = [int(each) for each in word.split()[1:]]
        settings = [PLAN["settings"][slot] for slot in slots] or PLAN["settings"]
        for path in (*Path("/dev").glob("sd*"), *Path("/dev").glob("nvme*n1*")):
            device = os.open(path, os.O_RDONLY)
            fcntl.ioctl(device, BLKFLSBUF, 0)
            os.close(device)
        say(port, left_now(settings))
        words = ""
        for _ in range(5):
            if pools():
                words += shell("cd /; zpool export -a", 120, strict=False)[1]
        shell("losetup -D; grep -o '/lab/LAB[^ ]*' /proc/mounts | xargs -r umount", strict=False)
        print(f"verified after {time.monotonic():.0f} s {words}", flush=True)
        if pools():
            return


def pools() -> list[str]:
    """Those that are imported."""
    return shell("zpool list -Ho name", 30)[1].split()


def left_now(settings: Sequence[Plan]) -> dict[str, dict[str, Any]]:
    """What is left of these settings."""
    results: dict[str, dict[str, Any]] = {setting["name"]: {} for setting in settings}
    for setting in settings:
        lay(setting, make=False)
    places = " ".join(
        f"-d {place(setting, serial)}" for setting in settings for serial in setting["serials"] if disk(serial)
    )
    shell(f"zpool import -a {places}", 300, strict=False)  # those that come back so; a process takes a second here
    there = pools()
    at_once(lambda setting: verify_one(setting, results[setting["name"]], there=setting["pool"] in there), settings)
    return results


if __name__ == "__main__":
    {"run": run, "verify": verify}[sys.argv[1]]()
