"""``make bench``: how fast zaudit is, beside how fast it has to be."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from auditor.collect import recording
from auditor.collect.recording import Recording
from tests.bench import measure, synthetic, tools

RECORDING = measure.ROOT / "fixtures" / "hosts" / "2.4-healthy-mirrored-slog"
Row = tuple[str, str, str, bool]  # what, figure, target, met


def main(path: Path) -> int:
    small = recording.load(path)
    widths = (62, 14, 14)
    print(f"{'':{widths[0]}}{'figure':>{widths[1]}}{'target':>{widths[2]}}")
    missed = 0
    with tempfile.TemporaryDirectory(prefix="zaudit-bench-") as folder:
        for what, figure, target, met in rows(small, Path(folder)):
            print(
                f"{what:{widths[0]}}{figure:>{widths[1]}}{target:>{widths[2]}}{'' if met else '  MISSED'}", flush=True
            )
            missed += not met
    return min(missed, 1)


def rows(small: Recording, folder: Path) -> Iterator[Row]:
    yield from live("a live check, 4 drives", small, folder / "small")
    yield from live("a live check, 24 drives, 100 datasets", synthetic.large(small, 24, 100), folder / "large")
    yield from own_time(synthetic.large(small, 24, 100), folder / "own")
    yield from replay("replay, 10,000 datasets", synthetic.large(small, 4, 10_000), folder / "10000", 2.0, 300)
    yield from replay("replay, 400 drives", synthetic.large(small, 400, 10), folder / "400", 2.0, 300)
    yield from start()


def live(what: str, host: Recording, folder: Path) -> Iterator[Row]:
    """How much longer a check takes than the slowest commands that must wait for each other."""
    tools.lay_out(host, folder, scale=1.0)
    chain = tools.longest_chain(host)
    wall = measure.best_host(folder, host.taken, repeats=2)["wall_s"]
    yield f"{what}: {wall:.2f} s of {chain:.2f} s", f"{wall / chain:.2f} x", "<= 1.25 x", wall <= 1.25 * chain


def own_time(host: Recording, folder: Path) -> Iterator[Row]:
    """zaudit's own processor time where the commands take none."""
    tools.lay_out(host, folder, scale=0.0)
    cost = measure.best_host(folder, host.taken)
    own, begin = cost["cpu_s"], cost["start_s"]
    yield "zaudit's own CPU time, 24 drives, 100 datasets", f"{own * 1000:.0f} ms", "< 250 ms", own < 0.250
    yield "  of it, start of Python and all imports", f"{begin * 1000:.0f} ms", "", True


def replay(what: str, host: Recording, folder: Path, seconds: float, mib: float) -> Iterator[Row]:
    recording.write(host, folder)
    for format_ in ("terminal", "json"):
        cost = measure.best((zaudit(), "check", "--replay", str(folder), "--format", format_), repeats=3)
        if cost.exit < 10:
            raise RuntimeError(f"exit code {cost.exit}: {cost.stderr}")
        yield f"{what}, {format_}", f"{cost.wall_s:.2f} s", f"< {seconds:.1f} s", cost.wall_s < seconds
        yield "  memory at most", f"{cost.memory_mib:.0f} MiB", f"< {mib:.0f} MiB", cost.memory_mib < mib


def start() -> Iterator[Row]:
    """How long a command takes that needs no host."""
    pyz = measure.ROOT / "zaudit.pyz"
    programs = [("zaudit", (zaudit(),))] + ([("zaudit.pyz", (sys.executable, str(pyz)))] if pyz.is_file() else [])
    for name, argv in programs:
        for word, limit in (("--version", 0.150), ("rules", 0.200)):
            cost = measure.best((*argv, word), repeats=10)
            yield f"{name} {word}", f"{cost.wall_s * 1000:.0f} ms", f"< {limit * 1000:.0f} ms", cost.wall_s < limit
    imported = measure.run((sys.executable, "-X", "importtime", zaudit(), "--version")).stderr
    loaded = "| rich" in imported.replace("|   ", "| ")
    yield "zaudit --version imports rich", "yes" if loaded else "no", "no", not loaded


def zaudit() -> str:
    """The installed command of this environment."""
    beside = Path(sys.executable).parent / "zaudit"
    return str(beside) if beside.is_file() else str(shutil.which("zaudit"))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDING))
