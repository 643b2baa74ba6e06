"""Crash points of OpenZFS in the kernel: make points-kernel LINE=2.3 (README.md).

One guest commits on drives that this process serves and writes down; then it imports, mounts and reads what each crash would
have left. Exit codes as of run.py.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab.machine import available, release
from tests.lab.points import run as user
from tests.lab.points import workload as modelled
from tests.lab.points.drives import LAG_S, Drives
from tests.lab.points.explore import Disks, Explorer, Points, is_exact, to_device
from tests.lab.points.recording import MARKS, Entry, Kind, log_blocks
from tests.lab.points.workload import Finding, Slot
from tests.lab.power.guest import one_partition
from tests.lab.vm import VM, clean_up_on_signals, scratch

HERE = Path(__file__).parent
SIZE = 192 << 20
BLANK = one_partition(SIZE) + bytes(SIZE - 512)
DISKS = ("d0", "d1", "l0")
GUEST_FILES = ("__init__.py", "commit.py", "databases.py", "stage.py", "walk.py", "workloads.py")
BOOT_S, RECORD_S, CHECK_S = 600.0, 600.0, 300.0
BOOTS = 5  # in a row: on a busy machine an emulated kernel may find no clock
LABELS = (1 << 20) + (512 << 10)  # the first two lie behind the start of the partition
NOWHERE = Slot("", 0, 0)


class Plan(NamedTuple):
    """workload: of power/workloads.py; vdevs, pool, data: words of zpool create and zfs create; volume: of so many MiB, with
    ext4. stride: a prefix after each nth write. torn: the lines on which these pages come apart."""

    name: str
    workload: str
    vdevs: str = "d0 log l0"
    data: str = "-o recordsize=16K"
    pool: str = ""
    volume: int = 0
    commits: int = 8
    stride: int = 1
    width: int = 6
    cut: int = 2
    torn: tuple[str, ...] = ()

    def model(self) -> modelled.Plan:
        """The same state, as run.py shows it to the durability model."""
        layout = self.vdevs.replace("log ", "")
        bias = "throughput" if "throughput" in self.data else "latency"
        return modelled.Plan(self.name, layout, logbias=bias, how="always" if "sync=always" in self.data else "fsync")

    def words(self, control: str = "") -> dict[str, Any]:
        volume = f"{self.volume}M" if self.volume else ""
        parameters = {name: int(name == control) for name in PARAMETERS}
        return {**self._asdict(), "volume": volume, "disks": DISKS, "parameters": parameters}


THROUGHPUT = "-o recordsize=16K -o logbias=throughput"
PLANS = (
    Plan("fsync", "fsync"),
    Plan("O_DSYNC", "dsync"),
    Plan("O_DIRECT", "direct"),
    Plan("mmap and msync", "mmap"),
    Plan("no log device", "fsync", "d0"),
    Plan("mirror", "fsync", "mirror d0 d1", commits=6),
    Plan("rename and fsync of the folder", "rename"),
    Plan("unlink, create, write, fsync", "recreate", "d0", data=THROUGHPUT, pool="-o autotrim=on"),
    Plan("truncate", "truncate"),
    Plan("punched holes", "punch"),
    Plan("sequences of operations, 1", "sequence1"),
    Plan("sequences of operations, 2", "sequence2", "d0", data=THROUGHPUT),
    Plan("SQLite", "sqlite-full"),
    Plan("a log and pages with checkpoints", "pair", commits=30, stride=4),
    Plan("zvol with ext4", "fsync", data="", volume=64),
    Plan("PostgreSQL with a checkpoint", "postgres", commits=44, stride=16, width=2),
    Plan("InnoDB with a checkpoint", "innodb", commits=44, stride=16, width=2),
    Plan("pages of 16 KiB", "pages16", commits=3, stride=4, torn=("2.2", "2.3", "2.4")),
    Plan("pages of 16 KiB, throughput", "pages16", data=THROUGHPUT, commits=3, stride=4),
)
QUICK = PLANS[0]
PARAMETERS = {"zil_nocacheflush": 0, "zfs_nocacheflush": 0}  # a control sets its own to 1


class Dead(Exception):
    """The guest hangs, or is gone."""


class Guest:
    """Of one line, booted when it is needed and again when it is gone. ask(): a line of JSON there, one back."""

    def __init__(self, line: str, drives: Drives) -> None:
        self.line, self.drives = line, drives
        self.vm: VM | None = None
        self.port: socket.socket | None = None
        self.left = b""

    def _boot(self) -> None:
        """Raises Dead."""
        self.vm = VM(zfs=self.line, disks=[f"vblk:nbd={self.drives.sockets[name]}" for name in (MARKS, *DISKS)])
        power = HERE.parent / "power"
        files: dict[str, str | bytes] = {f"power/{name}": (power / name).read_bytes() for name in GUEST_FILES}
        self.vm.start("cd /lab && exec python3 -m power.walk", {**files, "plan.json": '{"settings": []}'})
        self.port = self.vm.connect("ack")
        self._line(BOOT_S)

    def boot(self) -> None:
        """Unless it runs. Raises Dead."""
        for attempt in range(BOOTS):
            if self.vm is not None:
                return
            try:
                self._boot()
            except Dead:
                self.close()
                if attempt == BOOTS - 1:
                    raise

    def ask(self, seconds: float, **words: Any) -> dict[str, Any]:
        """Raises Dead; then it is gone."""
        self.boot()
        assert self.port
        try:
            self.port.sendall(json.dumps(words).encode() + b"\n")
            return self._line(seconds)
        except (OSError, Dead) as error:
            self.close()
            raise Dead(str(error)) from None

    def _line(self, seconds: float) -> dict[str, Any]:
        assert self.vm
        assert self.port
        end = time.monotonic() + seconds
        while b"\n" not in self.left:
            self.port.settimeout(max(end - time.monotonic(), 0.01))
            try:
                part = self.port.recv(1 << 16)
            except OSError as error:
                raise Dead(f"no answer in {seconds:.0f} s: {error}") from None
            if not part:
                found = self.vm.wait(10)
                raise Dead(found.log[-400:] + found.console[-400:])
            self.left += part
        line, _, self.left = self.left.partition(b"\n")
        found_line: dict[str, Any] = json.loads(line)
        return found_line

    def close(self) -> None:
        if self.port:
            self.port.close()
        if self.vm:
            self.vm.close()
        self.vm, self.port, self.left = None, None, b""


class Kernel(Explorer):
    """One plan in a guest."""

    def __init__(self, guest: Guest, plan: Plan, *, prune: bool = True) -> None:
        super().__init__(DISKS, prune=prune)
        self.guest, self.drives, self.plan = guest, guest.drives, plan
        self.images: dict[str, bytes] = {}

    def record(self, control: str = "") -> list[Entry]:
        """All requests until the last commit. Raises Dead."""
        for name in DISKS:
            self.drives.write(name, 0, BLANK)
        self.guest.boot()
        self.drives.take()
        self.drives.lag = LAG_S
        self.guest.ask(RECORD_S, do="record", **self.plan.words(control))
        entries = [each for each in self.drives.take() if each.kind != Kind.READ]
        self.drives.lag = 0.0
        self.images = {name: bytes(self.drives.images[name]) for name in DISKS}
        self.guest.ask(RECORD_S, do="export")
        return entries

    def disks(self, durable: Mapping[str, bytes | bytearray] | None = None) -> Disks:
        return Disks(self.drives.write, durable or dict.fromkeys(DISKS, BLANK))

    def check(self) -> tuple[dict[str, Any], list[Entry]]:
        self.guest.boot()
        self.drives.take()
        try:
            seen = self.guest.ask(CHECK_S, do="check", **self.plan.words())
        except Dead as error:
            seen = {"dead": str(error)}
        return seen, [each for each in self.drives.take() if each.kind != Kind.FLUSH and each.device != MARKS]

    def findings(self, seen: dict[str, Any], entries: Sequence[Entry], at: int) -> list[Finding]:
        return list(judge(seen, acknowledged(entries[:at])))


def acknowledged(entries: Sequence[Entry]) -> int:
    """So many commits are promised."""
    marks = [each for each in entries if each.kind == Kind.WRITE and each.device == MARKS]
    return int(marks[-1].data) + 1 if marks else 0


def judge(seen: Mapping[str, Any], promised: int) -> Iterator[Finding]:
    if "dead" in seen:
        yield Finding("dead", NOWHERE, words=seen["dead"])
    elif seen["imported"]:
        yield Finding("import", NOWHERE, words=seen["imported"])
    else:
        have = {number for first, last in seen["have"] for number in range(first, last + 1)}
        if missing := sorted(set(range(promised)) - have):
            yield Finding("lost", NOWHERE, words=f"{len(missing)} of {promised}: {missing[0]} to {missing[-1]}")
        for words in seen["damage"]:
            torn = re.search(r" is torn at byte (\d+)", words)
            yield Finding("torn" if torn else "unreadable", NOWHERE, int(torn[1]) if torn else 0, words)
        if seen["checksum"]:
            yield Finding("checksum", NOWHERE, words=f"{seen['checksum']} checksum errors")


def omissions(kernel: Kernel, entries: Sequence[Entry]) -> tuple[int, int]:
    """Leaves out each log block since the last transaction group: how many, and of how many it is noticed."""
    last = max(number for number, each in enumerate(entries) if each.device == MARKS)
    since = 1 + max(n for n, each in enumerate(entries[:last]) if to_device(each) and each.offset < LABELS)
    needed = [each.entries[-1] for each in log_blocks(entries[:last]) if each.entries[0] >= since and each.records]
    return len(needed), kernel.omit(entries, since, needed)


class Run(user.Results):
    """One line in the kernel."""

    where = "kernel"

    def __init__(self, line: str, release: str, folder: Path) -> None:
        super().__init__(line, release)
        self.guest = Guest(line, Drives(folder, {MARKS: bytes(1 << 20), **dict.fromkeys(DISKS, BLANK)}))

    def walk(self, plan: Plan, control: user.Control = "", *, thorough: bool = False) -> None:
        kernel = Kernel(self.guest, plan)
        try:
            entries = kernel.record(control)
        except Dead as error:
            self.void.append(f"{plan.name}{f' ({control})' if control else ''}: not recorded: {error}")
            print(self.line, self.void[-1], flush=True)
            return
        if not is_exact(entries, dict.fromkeys(DISKS, BLANK), kernel.images):
            self.void.append(f"{plan.name}: the recording is not what is on the drives")
        lying = control == "lying drives"
        points = Points(entries, width=8 if lying else plan.width, cut=0 if control else plan.cut, lying=lying,
                        stride=0 if lying else plan.stride)  # fmt: skip
        tally = kernel.explore(entries, points)
        self.add(plan.model(), control, tally)
        if self.line in plan.torn and not control and not tally.found["torn"]:
            self.bad.append(f"{plan.name}: at no point one came apart")
        if thorough:
            self.add_omissions(plan.name, *omissions(kernel, entries))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.points.kernel", description=__doc__)
    parser.add_argument("--line", action="append", choices=("2.1", "2.2", "2.3", "2.4"))
    parser.add_argument("--results", type=Path, help="JSON of all rows, in place of those of the same runs")
    parser.add_argument("plan", nargs="*", help="these workloads alone, without controls")
    options = parser.parse_args()
    clean_up_on_signals()
    status = 0
    for line in available(options.line):
        folder = scratch("points")
        found = Run(line, release(line)["zfs"], folder)
        chosen = [each for each in PLANS if not options.plan or each.name in options.plan]
        tasks: list[tuple[Plan, user.Control]] = [(each, "") for each in chosen]
        if not options.plan:
            tasks = [(QUICK, control) for control in user.CONTROLS] + tasks
        for plan, control in tasks:
            found.walk(plan, control, thorough=plan is QUICK and not control)
            if options.results:  # hours: what is known is kept
                user.keep(found.rows, options.results)
        found.guest.close()
        shutil.rmtree(folder, ignore_errors=True)
        status = max(status, found.report())
    return status


if __name__ == "__main__":
    sys.exit(main())
