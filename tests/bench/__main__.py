"""``make bench``: how fast zaudit is, beside what the same machine needs for the same work in the same run.

What is judged are ratios: a check against its commands, a replay against Python that splits the same recording and holds it, a
start against bare Python, 2,000 drives against 1,000. Seconds are printed, and judged by nobody: they are the machine's.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from auditor.recording import recording
from auditor.recording.recording import Recording
from tests.bench import commands as commands_
from tests.bench import measure, pools, synthetic, tools
from tests.first_rules import THE_FIRST
from tests.shared import HOSTS

RECORDING = HOSTS / "2.4-healthy-mirrored-slog"
WIDTHS = (64, 9, 12)
NATIVE = 0.02  # of the recorded seconds of commands: what they take where nobody emulates the host


class Row(NamedTuple):
    """One line of the table; met: whether the figure is within its target."""

    what: str
    figure: str
    target: str = ""
    met: bool = True


def main(path: Path) -> int:
    missed = 0
    print(
        f"{os.cpu_count()} processors, load {' '.join(f'{each:.1f}' for each in os.getloadavg())} before the first run"
    )
    print(f"{'':{WIDTHS[0]}}{'figure':>{WIDTHS[1]}}{'target':>{WIDTHS[2]}}")
    with tempfile.TemporaryDirectory(prefix="zaudit-bench-") as folder:
        for what, figure, target, met in rows(path, Path(folder)):
            missed += not met
            mark = "" if met else "  missed"
            print(f"{what:{WIDTHS[0]}}{figure:>{WIDTHS[1]}}{target:>{WIDTHS[2]}}{mark}", flush=True)
    return min(missed, 1)


def rows(path: Path, folder: Path) -> Iterator[Row]:
    small = recording.load(path)
    many = synthetic.large(small, 24, 100)
    yield from live("live check, 4 drives, 4 datasets", small, folder / "small")
    yield from live("live check, 24 drives, 100 datasets", many, folder / "many")
    yield from native(small, folder / "native")
    yield from own_time("own CPU time, 24 drives, 100 datasets", many, folder / "instant")
    yield from replay("replay, 10,000 datasets", path, 4, 10_000, folder / "datasets")
    yield from once("replay, 100,000 datasets", path, 4, 100_000, folder / "most")
    yield from replay("replay, 400 drives", path, 400, 100, folder / "drives")
    yield from in_proportion(path, folder)
    yield from many_pools(path, folder / "pools")
    for loops in (0, 4 * (os.cpu_count() or 1)):
        yield commands(loops)
    yield from platforms()
    yield from start()


def live(what: str, host: Recording, folder: Path) -> Iterator[Row]:
    """How much longer a check takes than the slowest commands that must wait for each other."""
    tools.lay_out(host, folder, scale=1.0)
    chain, wall = tools.longest_chain(host), measure.best_host(folder, host.taken, repeats=2)["wall_s"]
    yield Row(
        f"{what}: {wall:.2f} s, longest chain {chain:.2f} s", f"{wall / chain:.2f} x", "<= 1.25 x", wall <= 1.25 * chain
    )


def native(host: Recording, folder: Path) -> Iterator[Row]:
    """How much longer a check takes than the barest runner of its commands, where these are as short as on a real host."""
    tools.lay_out(host, folder, NATIVE)
    bare = (sys.executable, "-m", "tests.bench.commands", "scripts", str(folder))
    for loops, most in ((0, 1.6), (8, 3.0)):
        with commands_.busy(loops):
            runs = [(measure.host(folder, host.taken), measure.run(bare)) for _ in range(measure.REPEATS)]
        ours, theirs = (median(each.wall_s for each in side) for side in zip(*runs, strict=True))
        cpu = milliseconds(median(each.cpu_s for each, _ in runs))
        said = f"native commands, {loops} busy loops: {ours:.2f} s (CPU {cpu}), bare {theirs:.2f} s"
        yield Row(said, f"{ours / theirs:.2f} x", f"<= {most:.2f} x", ours <= most * theirs)


def own_time(what: str, host: Recording, folder: Path) -> Iterator[Row]:
    """Processor time of zaudit itself, where the commands take no time; what more rules add to it."""
    tools.lay_out(host, folder, scale=0.0)
    cost = measure.best_host(folder, host.taken, repeats=12)
    yield Row(what, milliseconds(cost["cpu_s"]))
    yield Row("    of it to start: Python and all imports", milliseconds(cost["start_s"]))
    first = folder / "rules"
    first.mkdir()
    for id in THE_FIRST:
        shutil.copy(measure.ROOT / "rules" / f"{id}.toml", first)
    few = measure.best_host(folder, host.taken, repeats=12, rules=first)
    ratio = cost["cpu_s"] / few["cpu_s"]
    yield Row(f"    beside the {len(THE_FIRST)} first rules alone", f"{ratio:.2f} x", "<= 1.50 x", ratio <= 1.5)


def commands(loops: int) -> Row:
    """How much longer many short commands take than with the barest runner, beside so many busy loops."""
    wall, bare, cpu = commands_.compared(loops)
    what = (
        f"{commands_.COMMANDS} commands, {loops} busy loops: {wall:.2f} s (CPU {milliseconds(cpu)}), bare {bare:.2f} s"
    )
    return Row(what, f"{wall / bare:.2f} x", "<= 1.30 x", wall <= 1.3 * bare)


def replay(what: str, path: Path, drives: int, datasets: int, folder: Path) -> Iterator[Row]:
    """How much longer a replay takes than Python needs to split what it reads and to hold it; by processor time, in turn."""
    made(path, drives, datasets, folder)
    for format_ in ("terminal", "json"):
        cost, bare = measure.side_by_side(
            replayed(folder, format_), (sys.executable, "-m", "tests.bench.bare", str(folder))
        )
        ratio, size = cost.cpu_s / bare.cpu_s, cost.memory_mib / bare.memory_mib
        said = f"{what}, {format_}: CPU {cost.cpu_s:.2f} s, bare {bare.cpu_s:.2f} s"
        yield Row(said, f"{ratio:.2f} x", "<= 3.00 x", ratio <= 3.0)
        said = f"    memory: {cost.memory_mib:.0f} MiB, bare {bare.memory_mib:.0f} MiB"
        yield Row(said, f"{size:.2f} x", "<= 2.00 x", size <= 2.0)


def once(what: str, path: Path, drives: int, datasets: int, folder: Path) -> Iterator[Row]:
    """One run of the largest host, of which nothing is promised but that it ends."""
    made(path, drives, datasets, folder)
    cost = measure.run(replayed(folder, "terminal"))
    yield Row(f"{what}: CPU {cost.cpu_s:.1f} s, {cost.memory_mib:.0f} MiB", f"{cost.wall_s:.1f} s")


def platforms() -> Iterator[Row]:
    """How long a user waits for the report of a host of each platform: the shortest of five, on the clock."""
    for name in (each for each in HOSTS.names() if each.startswith("composed-")):
        runs = [measure.run((zaudit(), "check", "--replay", str(HOSTS / name))) for _ in range(5)]
        least = min(runs, key=lambda each: each.wall_s)
        yield Row(f"zaudit check --replay {name}: CPU {milliseconds(least.cpu_s)}", f"{least.wall_s:.2f} s")


def in_proportion(path: Path, folder: Path) -> Iterator[Row]:
    """What twice as many drives cost."""
    for drives in (1000, 2000):
        made(path, drives, 20, folder / f"drives-{drives}")
    many, few = measure.side_by_side(replayed(folder / "drives-2000", "json"), replayed(folder / "drives-1000", "json"))
    ratio, size = many.cpu_s / few.cpu_s, many.memory_mib / few.memory_mib
    said = f"replay, 2,000 drives: CPU {many.cpu_s:.2f} s, 1,000 drives {few.cpu_s:.2f} s"
    yield Row(said, f"{ratio:.2f} x", "<= 2.30 x", ratio <= 2.3)
    said = f"    memory: {many.memory_mib:.0f} MiB, 1,000 drives {few.memory_mib:.0f} MiB"
    yield Row(said, f"{size:.2f} x", "<= 2.10 x", size <= 2.1)


def many_pools(path: Path, folder: Path) -> Iterator[Row]:
    """A live host of 60 pools with 1,080 drives; and the same where commands take a second and the deadline is early."""
    size = ("60", "18", "100")
    measure.run((sys.executable, "-m", "tests.bench.pools", str(path), *size, str(folder)))
    said = f"60 pools, 1,080 drives, 6,000 datasets, {60 * pools.SNAPSHOTS:,} snapshots"
    for pause, words in (("0", ()), ("1", ("--deadline", "12"))):
        cost = measure.run((sys.executable, "-m", "tests.bench.pools", "check", str(folder), pause, *words))
        yield Row(" ".join((said, *words)), "")
        yield Row(
            f"    on the clock; of it own processor time, peak: {cost.stderr.splitlines()[-1]}", f"{cost.wall_s:.1f} s"
        )


def made(path: Path, drives: int, datasets: int, folder: Path) -> None:
    # written by a child: a process that starts others passes its own peak of memory on to them (Linux, exec_mmap())
    measure.run((sys.executable, "-m", "tests.bench.synthetic", str(path), str(drives), str(datasets), str(folder)))


def replayed(folder: Path, format_: str) -> tuple[str, ...]:
    return zaudit(), "check", "--replay", str(folder), "--format", format_


def start() -> Iterator[Row]:
    """Commands that need no host, against Python that does nothing."""
    pyz, bare = measure.ROOT / "zaudit.pyz", (sys.executable, "-I", "-c", "pass")
    for name, argv in (("zaudit", (zaudit(),)), ("zaudit.pyz", (sys.executable, str(pyz)))):
        if name == "zaudit.pyz" and not pyz.is_file():
            continue
        for command, most in (("--version", 2.0), ("rules", 5.0)):
            cost, nothing = measure.side_by_side((*argv, command), bare, repeats=10)
            said = f"{name} {command}: CPU {milliseconds(cost.cpu_s)}, bare Python {milliseconds(nothing.cpu_s)}"
            yield Row(
                said, f"{cost.cpu_s / nothing.cpu_s:.2f} x", f"<= {most:.2f} x", cost.cpu_s <= most * nothing.cpu_s
            )
    imports = measure.run((sys.executable, "-X", "importtime", zaudit(), "--version")).stderr.splitlines()
    rich = any(line.rpartition("|")[2].strip().partition(".")[0] == "rich" for line in imports)
    yield Row("zaudit --version imports rich", "yes" if rich else "no", "no", not rich)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def zaudit() -> str:
    """The installed command of this environment."""
    beside = Path(sys.executable).parent / "zaudit"
    return str(beside) if beside.is_file() else str(shutil.which("zaudit"))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDING))
