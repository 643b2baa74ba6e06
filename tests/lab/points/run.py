"""Crash points of OpenZFS in user space: make points LINE=2.3 (README.md).

Exit codes: 0: nothing is lost, and each control lost something. 1: something acknowledged is lost, or the durability model
disagrees. 3: void: a control that must fail did not, or the recorder is not exact; then nothing is said of the line.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Literal

from auditor.durability.answers import Rank
from auditor.durability.host import Dataset, EventName, Host, Leg, Pool, Question, Store, Use, Vdev
from auditor.durability.host import Program as Database
from auditor.durability.table import Judge
from tests.lab import rows as table
from tests.lab.points.explore import SIZE, Points, Program, Tally, UserSpace, is_exact, to_device
from tests.lab.points.recording import MARKS, Entry, Kind, log_blocks
from tests.lab.points.workload import HARM, PLANS, QUICK, Plan

HERE = Path(__file__).parent
RESULTS = HERE.parent / "points.json"
VOID, BAD = 3, 1
NOTICED = 0.99  # of the writes that a commit depends on
Control = Literal["", "lying drives", "zil_nocacheflush", "zfs_nocacheflush"]
CHAINS = [each for each in PLANS if each.name in ("log", "no log", "throughput")]  # one device holds the log
CONTROLS: tuple[Control, ...] = ("lying drives", "zil_nocacheflush", "zfs_nocacheflush")


def build(line: str, folder: Path) -> Program:
    done = subprocess.run([str(HERE / "build.sh"), line, str(folder)], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"NOT RUN: crash points of OpenZFS {line}", file=sys.stderr)
        sys.exit(done.returncode)
    return Program(line, done.stdout.strip(), folder / "run")


def host(plan: Plan, control: Control = "") -> Host:
    """The state of a plan as the durability model sees it: drives with a volatile cache that honour flushes."""
    tops: dict[str, list[Vdev]] = {"d": [], "l": []}
    words = iter(plan.layout.split())
    for word in words:
        names = (next(words), next(words)) if word == "mirror" else (word,)
        tops[names[0][0]].append(Vdev(names[0], tuple(Leg(name, (name,)) for name in names)))
    devices = tuple(leg.name for vdevs in tops.values() for vdev in vdevs for leg in vdev.legs)
    stores = {name: Store(name, cache="volatile", honours=control != "lying drives") for name in devices}
    flushes = control != "zfs_nocacheflush"
    pool = Pool(
        "p",
        tuple(tops["d"]),
        log=tuple(tops["l"]),
        zil_flush=flushes and control != "zil_nocacheflush",
        txg_flush=flushes,
    )
    pointed = plan.logbias == "throughput" or (not tops["l"] and plan.page >= 32 << 10)
    sync: Literal["always", "standard"] = "always" if plan.how == "always" else "standard"
    datasets = {name: Dataset(name, "p", sync, indirect=pointed) for name in plan.datasets}
    uses = tuple(map(Use, plan.datasets))
    database = Database("db", uses[0], uses, guard=False, page_in_block=plan.record >= plan.page, splits=not pointed)
    return Host({"p": pool}, datasets, {"db": database}, stores)


def foretold(plan: Plan, event: EventName, question: Question, control: Control = "") -> Rank | None:
    """None: the question does not arise."""
    found = host(plan, control)
    cell = Judge(found).cell(found.programs["db"], event, question)
    return cell.rank if cell else None


def disagreements(plan: Plan, tally: Tally, control: Control = "") -> Iterator[str]:
    """A cell that promises what a point lost, or of a control one that loses what no point lost."""
    cells: tuple[tuple[Question, str], ...] = (("commits", "lost"), ("pool", "import"), ("consistency", "torn"))
    events: tuple[tuple[EventName, Counter[str]], ...] = (("crash", tally.at_prefix), ("power", tally.found))
    for event, found in events:
        for question, what in cells:
            if found[what] and foretold(plan, event, question, control) is Rank.SAFE:
                yield f"{plan.name}: the model promises {question} at {event}, {found[what]} points are {what}"
    if control and foretold(plan, "power", "commits", control) is not Rank.LOST:
        yield f"{plan.name}, {control}: the model does not say that commits are lost"


def omissions(explorer: UserSpace, entries: Sequence[Entry]) -> tuple[int, int]:
    """Leaves out each write that the last acknowledgement needs: how many, and of how many it is noticed."""
    last = max(number for number, each in enumerate(entries) if each.device == MARKS)
    since = _chain_start(entries, last)
    needed = sorted(_needed(entries, since, last))
    return len(needed), explorer.omit(entries, since, needed)


def _needed(entries: Sequence[Entry], since: int, last: int) -> set[int]:
    """Since the last transaction group the log is one chain: what lies behind a gap is not found. Needed are the bytes that
    the checksum of a block covers, not its padding, and the blocks to which it points; no zeros where nothing was written yet,
    which change nothing (2.1 pads blocks with them)."""
    found = set[int]()
    for block in log_blocks(entries[:last]):
        if block.entries[0] < since or not block.records:
            continue
        found.update(number for number in block.entries if entries[number].offset < block.offset + block.used)
        for start, length in (each.block for each in block.records):
            found.update(
                number
                for number, each in enumerate(entries[since:last], since)
                if to_device(each) and each.device == "d0" and each.offset < start + length and start < each.end
            )
    return {number for number in found if _changes(entries, number)}


def _changes(entries: Sequence[Entry], number: int) -> bool:
    """Is the device other after this write? It held zeros in the beginning."""
    write = entries[number]
    before = (each for each in entries[:number] if to_device(each) and each.device == write.device)
    return any(write.data) or any(each.offset < write.end and write.offset < each.end for each in before)


def _chain_start(entries: Sequence[Entry], last: int) -> int:
    """After the newest transaction group before the last acknowledgement: what follows the last write of the labels."""
    labels = [
        n
        for n, each in enumerate(entries[:last])
        if each.kind == Kind.WRITE and each.device == "d0" and each.offset < 256 << 10
    ]
    return labels[-1] + 1


class Results:
    """One line, in user space or in the kernel. rows: what was found; bad: contradictions; void: why nothing is said."""

    where = "user"

    def __init__(self, line: str, release: str) -> None:
        self.line, self.release = line, release
        self.rows: list[dict[str, Any]] = []
        self.bad: list[str] = []
        self.void: list[str] = []
        self.begun = time.monotonic()

    def add(self, plan: Plan, control: Control, tally: Tally, replay: Tally | None = None) -> None:
        row = {"line": self.line, "release": self.release, "where": self.where, "plan": plan.name, "control": control}
        row |= tally.row()
        self.rows.append(row | ({"replay": replay.row()} if replay else {}))
        words = (
            ", ".join(f"{count} {what}" for what, count in sorted(tally.found.items())) or "nothing lost, nothing torn"
        )
        more = f"; crash in replay {replay.points} points {dict(replay.found)}" if replay else ""
        title = f"{self.line} {self.where}: {plan.name}{f' ({control})' if control else ''}"
        print(
            f"{title}: {tally.points} points, {tally.pruned} pruned, {words}, {tally.seconds:.0f} s{more}", flush=True
        )
        if not tally.points:
            self.void.append(f"{plan.name}: no point")
        if control and not tally.found["lost"] and not tally.found["import"]:
            self.void.append(f"control {control} lost nothing at {tally.points} points")
        for each in () if control else filter(None, (tally, replay)):
            self.bad += [f"{plan.name}: {words}" for words in each.examples if words.split(":")[0] in HARM]
        self.bad += disagreements(plan, tally, control)

    def add_omissions(self, name: str, needed: int, noticed: int) -> None:
        print(f"{self.line} {name}: {noticed} of {needed} writes that were left out are noticed", flush=True)
        row = {"line": self.line, "where": self.where, "check": "omissions", "plan": name}
        self.rows.append(row | {"needed": needed, "noticed": noticed})
        if not needed or noticed < NOTICED * needed:
            missed = f"of {needed} writes that a commit depends on {needed - noticed} were missed when left out"
            self.void.append(f"{name}: {missed}")

    def report(self) -> int:
        """Prints what is wrong; the exit code."""
        for words in self.bad:
            print(f"{self.line} BAD {words}")
        for words in self.void:
            print(f"{self.line} VOID {words}")
        verdict = "VOID" if self.void else "BAD" if self.bad else "good"
        print(f"{self.line} {verdict}, {time.monotonic() - self.begun:.0f} s", flush=True)
        return VOID if self.void else BAD if self.bad else 0


def keep(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """In place of those of the same runs."""
    merged = {_key(each): each for each in (*table.read(path), *rows)}
    table.write((each for _, each in sorted(merged.items())), path)


class Run(Results):
    """One line in user space."""

    def __init__(self, program: Program) -> None:
        super().__init__(program.line, program.release)
        self.program = program

    def plan(self, plan: Plan, work: Path, *, width: int, stride: int) -> None:
        """stride: of the writes of the replay, where a crash is tried within it."""
        script = plan.script()
        explorer = UserSpace(self.program, work, script)
        entries = self.program.run(work / "pool", work / "run.log", script)
        written = {name: (work / "pool" / name).read_bytes() for name in script.devices}
        if not is_exact(entries, dict.fromkeys(written, bytes(SIZE)), written):
            self.void.append(f"{plan.name}: the recording is not what is on the devices")
        tally = explorer.explore(entries, Points(entries, width=width, cut=1))
        last = max(number + 1 for number, each in enumerate(entries) if each.device == MARKS)
        again = explorer.replay(entries, last, width=width, stride=stride)
        self.add(plan, "", tally, again)

    def control(self, plan: Plan, control: Control, work: Path, *, width: int) -> None:
        lines = plan.script().lines
        if control == "zfs_nocacheflush":
            begun = lines.index("txg")  # after the pool is made: else no point can be imported
            lines = (*lines[: begun + 1], "nocacheflush", *lines[begun + 1 :])
        script = plan.script()._replace(lines=lines)
        explorer = UserSpace(self.program, work, script)
        environment = {"ZIL_NOCACHEFLUSH": "1"} if control == "zil_nocacheflush" else {}
        entries = self.program.run(work / "pool", work / "run.log", script, **environment)
        points = Points(entries, width=width, cut=0, lying=control == "lying drives", stride=control != "lying drives")
        tally = explorer.explore(entries, points)
        self.add(plan, control, tally)

    def omissions(self, plan: Plan, work: Path) -> None:
        script = plan.script()
        explorer = UserSpace(self.program, work, script)
        entries = self.program.run(work / "pool", work / "run.log", script)
        self.add_omissions(plan.name, *omissions(explorer, entries))

    def pruning(self, plan: Plan, work: Path) -> None:
        """The same points with and without pruning."""
        script = plan.script()
        entries = self.program.run(work / "pool", work / "run.log", script)
        found = []
        for prune in (True, False):
            explorer = UserSpace(self.program, work, script, prune=prune)
            tally = explorer.explore(entries, Points(entries, width=2, cut=1))
            found.append((tally.points, tally.kinds, tally.found, tally.torn_at))
        print(f"{self.line} pruning held against none: {found[0] == found[1]}, {found[0][0]} points", flush=True)
        row = {"line": self.line, "where": self.where, "check": "pruning", "plan": plan.name}
        self.rows.append(row | {"points": found[0][0], "same": found[0] == found[1]})
        if found[0] != found[1]:
            self.void.append(f"pruning changes what is found: {found[0]} with, {found[1]} without")


def run(program: Program, folder: Path, *, quick: bool, only: Sequence[str] = (), jobs: int = 2) -> Run:
    """Side by side, for a check waits more than it computes."""
    found = Run(program)
    small = QUICK._replace(name="quick", burst=10, pages=16, steps=("burst", "burst"))
    tasks: list[Callable[[Path], None]] = []
    if not only:
        tasks += [partial(found.control, small, each, width=8) for each in CONTROLS]
        tasks += [partial(found.omissions, each._replace(steps=("txg", "burst", "burst"))) for each in CHAINS]
        tasks.append(partial(found.pruning, small))
    chosen = [small] if quick else [each for each in PLANS if not only or each.name in only]
    width, stride = (4, 16) if quick else (8, 8)
    tasks += [partial(found.plan, each, width=width, stride=stride) for each in chosen]
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(task, folder / f"work-{number}") for number, task in enumerate(tasks)]
        for number, each in enumerate(waiting):
            try:
                each.result()
            except (subprocess.TimeoutExpired, RuntimeError) as error:  # what the others found is kept
                found.void.append(f"task {number} was not recorded: {error}")
    return found


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row.get(name) or "") for name in ("line", "where", "plan", "control", "check"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.points.run", description=__doc__)
    parser.add_argument("--line", action="append", choices=("2.1", "2.2", "2.3", "2.4"))
    parser.add_argument("--quick", action="store_true", help="five minutes: one workload with its controls")
    parser.add_argument(
        "--results", type=Path, help=f"JSON of all rows, in place of those of the same runs: {RESULTS.name}"
    )
    parser.add_argument("plan", nargs="*", help="these workloads alone, without controls")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    status, rows = 0, list[dict[str, Any]]()
    # a file system in memory: a point rewrites some MiB
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        for line in options.line or ["2.1", "2.2", "2.3", "2.4"]:
            found = run(
                build(line, Path(folder) / line / "build"),
                Path(folder) / line,
                quick=options.quick,
                only=options.plan,
                jobs=options.jobs,
            )
            rows += found.rows
            status = max(status, found.report())
    if options.results:
        keep(rows, options.results)
    return status


if __name__ == "__main__":
    sys.exit(main())
