"""Cuts the power of guests that commit, and writes down what is gone.

    python -m tests.lab.power.cut [--line 2.3] [--cuts 5] [--minutes N] [--seed 1] [--results FILE] [--list] [NAME...]

A trial: pools on drives of disks.py; zaudit looks at the live guest; the workloads report each commit to the host before
they begin the next. At moments that follow from the seed the power is cut. For the last cut all drives stop for good, and the
disk server and the machine are killed. For the others the host stops all drives at one moment and copies their media without
their caches, which is what is left when both die at that moment. Only commits that were reported before that moment count. A
second guest gets the media of one cut after the other, imports the pools and says what is there. One row a setting and cut is
added to powercut.json.gz (killed: whether it was the last one); settings that have their cuts are not run again.
"""

import argparse
import json
import os
import random
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from ..machine import LINES, available, release
from ..vm import VM, Result, clean_up_on_signals
from . import matrix
from .disks import GONE, TRAP_S, Server, copy
from .guest import ZAUDIT, device, guest_files, guest_plan, one_partition, predict
from .matrix import Setting
from .results import RESULTS, lost, read, write

DRIVE_MIB = 512
RUN_S, RUN_WITHIN_S = (1.0, 8.0), (0.5, 2.0)  # until the next cut; until its writes are counted
WITHIN = 12  # writes: more than one checkpoint makes on a log device
SETUP_TIMEOUT, VERIFY_TIMEOUT, FIRST_COMMIT_S, SNAPSHOT_S = 900, 600, 20, 60


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--line", action="append", choices=LINES, help="OpenZFS line (repeat for more; default: all)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="settings of matrix.toml (default: all)")
    parser.add_argument("--cuts", type=int, default=matrix.CUTS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="start no trial after so many minutes")
    parser.add_argument(
        "--again", action="store_true", help="more cuts, and ask zaudit again: after a rule has changed"
    )
    parser.add_argument(
        "--results", type=Path, default=RESULTS, metavar="FILE", help="default: tests/lab/powercut.json.gz"
    )
    parser.add_argument("--matrix", type=Path, default=matrix.FILE, metavar="FILE", help="other settings")
    parser.add_argument("--list", action="store_true", help="show the guests, run nothing")
    arguments = parser.parse_args()
    clean_up_on_signals()
    if unknown := set(arguments.names) - {each.name for each in matrix.everything(arguments.matrix)}:
        parser.error(f"no setting {', '.join(sorted(unknown))}")
    settings = [
        each for each in matrix.everything(arguments.matrix) if not arguments.names or each.name in arguments.names
    ]
    print(f"results: {arguments.results}")
    end, complete = time.monotonic() + 60 * arguments.minutes, True
    for line in available(arguments.line):
        wanted = [
            each
            for each in settings
            if line in each.lines and each.cuts
            if arguments.again or have(arguments.results, line, each.name) < arguments.cuts
        ]
        for group in matrix.guests(wanted):
            names = ", ".join(each.name for each in group)
            if arguments.list:
                print(f"{line}: {names}")
            elif not matrix.offers(line, group[0].needs):
                print(f"{line}: not run, {group[0].needs} is not in this image: {names}")
            elif time.monotonic() > end:
                complete = False
                print(f"{line}: not run, no time left: {names}")
            else:
                known = 0 if arguments.again else min(have(arguments.results, line, each.name) for each in group)
                cuts = arguments.cuts - known
                complete &= trial(line, group, arguments.seed, cuts, arguments.results, again=arguments.again)
    return 0 if complete else 1


def have(results: Path, line: str, name: str) -> int:
    """Cuts of a setting that are among the results."""
    return sum((row["line"], row["setting"]) == (line, name) for row in read(results))


def asked(results: Path, line: str, name: str) -> bool:
    """Is zaudit's verdict on a setting among the results? It does not depend on the cut, and costs a minute."""
    return any((row["line"], row["setting"]) == (line, name) and row["zaudit"] for row in read(results))


@contextmanager
def bench(line: str, settings: Sequence[Setting], seed: str) -> Iterator[tuple[VM, Server, list[Path]]]:
    """A machine that is not yet started, on drives of these settings: with their server and the files of their media."""
    with VM(zfs=line, mem="3G", cpus=2, cache="none") as vm:
        models = [model for setting in settings for model in setting.drives]
        files = [vm.dir / f"d{index}" for index in range(len(models))]
        for path in files:
            with path.open("wb") as file:
                file.write(one_partition(DRIVE_MIB << 20))
                file.truncate(DRIVE_MIB << 20)
        server = Server(vm.dir, list(zip(files, models, strict=True)), seed)
        try:
            sockets = zip(server.sockets, models, strict=True)
            vm.disks = [device(line, f"nbd={path}", model) for path, model in sockets]
            yield vm, server, files
        finally:
            server.kill()


def trial(
    line: str, settings: Sequence[Setting], seed: int, cuts: int, results: Path = RESULTS, *, again: bool = False
) -> bool:
    """All cuts of these settings, added to the results; False when they came to nothing."""
    started, first = time.monotonic(), max(have(results, line, each.name) for each in settings)
    names = " ".join(each.name for each in settings)
    chance = random.Random(f"{seed}/{line}/{first}/{names}")
    owners = [setting.name for setting in settings for _ in setting.drives]
    with bench(line, settings, f"{seed}/{first}") as (vm, server, files):
        plan = {
            **guest_plan(line, settings),
            "cuts": cuts,
            "look": again
            or not all(each.pages or not each.ask or asked(results, line, each.name) for each in settings),
        }
        vm.start("python3 -m power.stage run", guest_files(plan))
        within = all(each.within is not None for each in settings)
        moments = [(chance.uniform(*(RUN_WITHIN_S if within else RUN_S)), traps(settings, chance)) for _ in range(cuts)]
        done = cut(vm, server, owners, moments)
        server.kill()
        before = vm.result()
        if not done:
            print(f"{line}: no commit from {names}\n{before.log[-1500:]}{before.console[-800:]}")
            return False
        gone = frozenset(drive for each, base in zip(settings, bases(settings), strict=True)
                         for drive in (base + number for number in each.lose))  # fmt: skip
        states = [State(f"cut{number}" if number < len(done) - 1 else "", gone) for number in range(len(done))]
        left, after = verify(line, settings, plan, files, states)
        predictions = predict(line, before, settings, vm.dir, "findings") if plan["look"] else {}
    for number, (state, now) in enumerate(zip(left, done, strict=False), first):
        rows = []
        for slot, setting in enumerate(settings):
            rows.append(
                {
                    **row(line, setting, seed, state[setting.name], now.commits[slot]),
                    "cut": number,
                    "killed": now is done[-1],
                    "seconds": round(now.seconds, 2),
                    "disks": [
                        [*each.values()] for each, owner in zip(now.disks, owners, strict=True) if owner == setting.name
                    ],
                    "zaudit": predictions.get(setting.name) if setting.ask else None,
                }
            )
            show(rows[-1], state[setting.name]["words"])
        write(rows, results)
    steps = " ".join(re.findall(r"^\w+ after \d+ s", before.log + after.log, re.MULTILINE))
    print(f"{line}: {len(left)} of {cuts} cuts in {time.monotonic() - started:.0f} s ({steps})", flush=True)
    if len(left) < cuts:
        print(f"{after.log[-1500:]}{after.console[-800:]}")
    return len(left) == cuts


def bases(settings: Sequence[Setting]) -> list[int]:
    """The number of the first drive of each setting."""
    return list(accumulate((len(each.drives) for each in settings[:-1]), initial=0))


def row(line: str, setting: Setting, seed: int, left: dict[str, Any], acknowledged: int) -> dict[str, Any]:
    """What every row of the results begins with. left: what the second guest says."""
    return {
        "line": line,
        **release(line),
        "setting": setting.name,
        "drives": " ".join(setting.drives),
        "workload": setting.workload,
        "seed": seed,
        "acknowledged": acknowledged,
        "lost": lost(acknowledged, left["have"]),
        "import": left["import"],
        "corruption": left["damage"],
    }


def show(row: dict[str, Any], words: Sequence[str]) -> None:
    """One row, and what the guest said where its pool did not come back by itself."""
    what = f"{row['setting']} {row.get('event', '')}".strip()
    counts = f"{row['acknowledged']} acknowledged, {row['lost']} lost"
    print(f"{row['line']} {what}: {counts}, import {row['import']}, {row['corruption']}", flush=True)
    for each in words:
        print(f"       {each}", flush=True)


@dataclass(frozen=True)
class Cut:
    """One moment: seconds since all programs had committed, commits by then, counters of the drives."""

    seconds: float
    commits: list[int]
    disks: list[dict[str, int]]


def traps(settings: Sequence[Setting], chance: random.Random) -> list[str]:
    """For the settings whose power is cut within a write: their drives, the drive whose writes are counted, how many."""
    found, first = [], 0
    for setting in settings:
        last = first + len(setting.drives) - 1
        if setting.within is not None:
            found.append(f"{first}-{last}:{first + setting.within}:{chance.randint(1, WITHIN)}")
        first = last + 1
    return found


class Listener:
    """What a guest tells over its port, and when how much of it was there. owners: the setting of each drive."""

    def __init__(self, vm: VM, port: socket.socket, owners: Sequence[str]) -> None:
        self.vm, self.port, self.owners, self.slots = vm, port, owners, list(dict.fromkeys(owners))
        self.data, self.arrivals = bytearray(), list[tuple[float, int]]()
        self.begin = 0.0

    def listen(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """For so long at most; False where the guest is gone."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not until():
            self.port.settimeout(min(left, 0.2))
            try:
                part = self.port.recv(1 << 16)
            except TimeoutError:
                part = b""
            except OSError:
                return False
            self.data.extend(part)
            self.arrivals.append((time.monotonic(), len(self.data)))
            if not part and (self.vm.proc is None or self.vm.proc.poll() is not None):
                return False
        return True

    def until_commits(self) -> bool:
        """Every program has committed, or had the time to; False where the guest never came so far."""
        if not self.listen(SETUP_TIMEOUT, lambda: b"GO\n" in self.data) or b"GO\n" not in self.data:
            return False
        self.listen(FIRST_COMMIT_S, lambda: len(_counts(self.data, len(self.slots))) == len(self.slots))
        self.begin = time.monotonic()
        return True

    def stop(self, server: Server, name: str, traps: Sequence[str] = ()) -> "Cut":
        """One moment at which the drives stop: see Server.snapshot."""
        seconds, stats = time.monotonic() - self.begin, server.stats()
        with ThreadPoolExecutor(1) as other:
            asked = other.submit(server.snapshot, name, traps)
            self.listen(TRAP_S + SNAPSHOT_S, asked.done)
            moment = dict(zip(self.owners, asked.result(), strict=True))
        sizes = [max((size for when, size in self.arrivals if when < moment[owner]), default=0) for owner in self.slots]
        return Cut(seconds, [self.commits(size)[slot] for slot, size in enumerate(sizes)], stats)

    def commits(self, size: int | None = None) -> list[int]:
        """Of each program, in so many bytes of what was told; in all of it."""
        counts = _counts(self.data[:size], len(self.slots))
        return [counts.get(slot, 0) for slot in range(len(self.slots))]


def cut(vm: VM, server: Server, owners: Sequence[str], moments: Sequence[tuple[float, Sequence[str]]]) -> list[Cut]:
    """Read what the guest commits and cut the power after each pause, within a write where there are traps; empty when the
    guest never came so far. owners: the setting of each drive. The last cut leaves drives that write no more."""
    cuts: list[Cut] = []
    with vm.connect("ack") as port:
        heard = Listener(vm, port, owners)
        if not heard.until_commits():
            return []
        for number, (pause, traps) in enumerate(moments):
            heard.listen(pause)
            cuts.append(heard.stop(server, f"cut{number}" if number < len(moments) - 1 else GONE, traps))
    return cuts


def _counts(data: bytearray, slots: int) -> dict[int, int]:
    """Commits by slot, from the last complete line of each."""
    found = {}
    for slot in range(slots):
        at = data.rfind(b"\n%d " % slot)
        while at >= 0 and (line := re.match(rb"\n\d+ (\d+)\n", data[at : at + 40])) is None:
            at = data.rfind(b"\n%d " % slot, 0, at)
        if at >= 0 and line:
            found[slot] = int(line[1]) + 1
    return found


class State(NamedTuple):
    """Media to look at. taken: the name of the snapshot, or empty: the drives as they are. gone: drives without content.
    slots: of the settings that it is about, or none: all."""

    taken: str
    gone: frozenset[int] = frozenset()
    slots: tuple[int, ...] = ()


def verify(
    line: str, settings: Sequence[Setting], plan: dict[str, Any], files: Sequence[Path], states: Sequence[State]
) -> tuple[list[dict[str, Any]], Result]:
    """What the second guest finds in each state."""
    models = [model for setting in settings for model in setting.drives]
    left: list[dict[str, Any]] = []
    with VM(zfs=line, mem="3G", cpus=2, cache="unsafe") as vm:
        media = [vm.dir / f"m{index}" for index in range(len(files))]
        for source, medium in zip(files, media, strict=True):
            copy(source, medium)  # of the right size, before the guest sees it
        vm.disks = [device(line, f"@{medium}", model) for medium, model in zip(media, models, strict=True)]
        vm.start("python3 -m power.stage verify", guest_files({**plan, "cuts": len(states)}))
        with vm.connect("ack") as port, port.makefile("rb") as answers:
            port.settimeout(VERIFY_TIMEOUT)
            try:
                for state in states:
                    if answers.readline() != b"NEXT\n":
                        break
                    for number, (source, medium) in enumerate(zip(files, media, strict=True)):
                        copy(source.with_suffix(f".{state.taken}") if state.taken else source, medium)
                        if number in state.gone:
                            os.truncate(medium, 0)
                            os.truncate(medium, DRIVE_MIB << 20)
                    port.sendall(" ".join(("GO", *map(str, state.slots))).encode() + b"\n")
                    left.append(json.loads(answers.readline()))
            except (OSError, ValueError) as error:
                print(f"{line}: state {len(left)}: {error!r}")
        return left, vm.wait(60)


if __name__ == "__main__":
    if not ZAUDIT.exists():
        sys.exit(f"{ZAUDIT.name} is missing: run make zipapp")
    sys.exit(main())
