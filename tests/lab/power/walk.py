"""In the guest of the crash points: makes a pool and commits while the host writes down every request, then says of each crash
that the host lays over the drives what is left.

Lines of JSON come over the port lab.ack, and each is answered by one: {"do": "record", ...plan} when the last commit is
acknowledged, {"do": "export"}, {"do": "check", ...plan}.
"""

import fcntl
import json
import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from .commit import Workload
from .stage import BLKFLSBUF, ranges, say, shell
from .workloads import workload

Plan = dict[str, Any]
DISKS = Path("/dev/disk/by-id")
MARKS = DISKS / "virtio-LABVBLK0"
VOLUME = "/dev/zvol/p/volume"
SECTOR = 4096


class Enough(Exception):
    """The last commit is acknowledged."""


def part(plan: Plan, name: str) -> str:
    return f"{DISKS}/virtio-LABVBLK{plan['disks'].index(name) + 1}-part1"


def job(plan: Plan) -> Workload:
    folder = Path("/p/db")
    return workload(plan["workload"], folder, folder)


def marks() -> Callable[[int], None]:
    """An acknowledgement is a write to a drive that is in the same order as all others."""
    file, memory = os.open(MARKS, os.O_RDWR | os.O_DIRECT), mmap.mmap(-1, SECTOR)

    def mark(number: int) -> None:
        memory[:] = str(number).encode().ljust(SECTOR)
        os.pwrite(file, memory, 0)

    return mark


def record(plan: Plan) -> dict[str, Any]:
    for name, value in plan["parameters"].items():
        Path("/sys/module/zfs/parameters", name).write_text(str(value))
    words = " ".join(part(plan, word) if word in plan["disks"] else word for word in plan["vdevs"].split())
    shell(f"zpool create -f -o ashift=12 -o cachefile=none {plan['pool']} -O atime=off p {words}")
    if plan["volume"]:
        shell(
            f"zfs create -b 16K {plan['data']} -V {plan['volume']} p/volume; udevadm settle; mkfs.ext4 -q -E nodiscard {VOLUME}"
        )
        shell(f"mkdir -p /p/db; mount {VOLUME} /p/db")
    else:
        shell(f"zfs create -o compression=lz4 {plan['data']} p/db")
    here, mark = job(plan), marks()
    here.prepare()
    shell("sync; zpool sync p")

    def acknowledge(number: int) -> None:
        mark(number)
        if number + 1 == plan["commits"]:
            raise Enough
        if number + 1 == plan["commits"] // 2:
            shell("zpool sync p")

    if (child := os.fork()) == 0:  # what it has open ends with it
        try:
            here.run(acknowledge)
        except Enough:
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(child, 0)[1]:
        raise SystemExit(f"{plan['workload']} failed")
    here.stop(killed=True)
    return {"commits": plan["commits"]}


def export(_plan: Plan) -> dict[str, Any]:
    for _ in range(20):
        shell("cd /; mountpoint -q /p/db && umount /p/db; zpool export -f p", strict=False)
        if not shell("zpool list -Ho name")[1]:
            return {}
        time.sleep(0.2)
    raise SystemExit("the pool is not exported")


def check(plan: Plan) -> dict[str, Any]:
    """imported: what the import printed where it failed; have: commits; damage; checksum: errors that zpool status counts."""
    for name in ("", *plan["disks"]):
        device = os.open(part(plan, name) if name else MARKS, os.O_RDONLY)
        fcntl.ioctl(device, BLKFLSBUF, 0)
        os.close(device)
    places = " ".join(f"-d {part(plan, word)}" for word in plan["vdevs"].split() if word in plan["disks"])
    status, text = shell(f"zpool import -o cachefile=none {places} p", strict=False)
    if status:
        return {"imported": text[-400:]}
    found: dict[str, Any] = {"imported": ""}
    try:
        if plan["volume"]:
            shell(
                f"for i in $(seq 100); do [ -b {VOLUME} ] && break; sleep 0.1; done; mkdir -p /p/db; mount {VOLUME} /p/db"
            )
        left = job(plan).check()
        found |= {"have": ranges(left.have), "damage": left.damage[:5]}
    except (Exception, SystemExit) as error:
        found |= {"have": [], "damage": [f"not readable: {error!r}"]}
    rows = [line.split() for line in shell("zpool status -p p")[1].splitlines()]
    found["checksum"] = sum(int(row[4]) for row in rows if len(row) == 5 and row[4].isdigit())
    export(plan)
    return found


DO: dict[str, Callable[[Plan], dict[str, Any]]] = {"record": record, "check": check, "export": export}


def main() -> NoReturn:
    port = os.open("/dev/virtio-ports/lab.ack", os.O_RDWR)
    say(port, {"booted": time.monotonic()})
    line = b""
    while True:
        line += os.read(port, 1 << 16)
        if not line.endswith(b"\n"):
            time.sleep(0.005)
            continue
        plan, line = json.loads(line), b""
        say(port, DO[plan["do"]](plan))


if __name__ == "__main__":
    main()
