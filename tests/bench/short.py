"""The short form of the bench, in CI: processor seconds against a base that is frozen in base.json.

Seconds are the machine's. So each is in units of a workload of plain Python that is measured in turn with it: what slows one
down slows the other. A row is the median of five such pairs; a quarter more than its base is a miss. Wall time is printed.

    python -m tests.bench.short            fails on a miss
    python -m tests.bench.short --freeze   writes the base: after a change that is meant to cost, or to save
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from auditor.recording import recording
from tests.bench import measure, synthetic, tools
from tests.bench.__main__ import NATIVE, RECORDING, replayed, zaudit
from tests.bench.measure import Cost

BASE = Path(__file__).with_name("base.json")
MISS = 1.25
PAIRS = 5
PLAIN = """
found = {}
for number in range(200_000):
    name, _, value = f"{number % 997}\\t{number}".partition("\\t")
    found.setdefault(name, []).append((value, number))
"""


class Row(NamedTuple):
    """units: of the plain workload."""

    what: str
    units: float
    cpu_s: float
    wall_s: float


def rows(folder: Path) -> Iterator[Row]:
    small = recording.load(RECORDING)
    for command in (("--version",), ("rules",), ("explain", "sync-disabled")):
        yield row(f"zaudit {command[0]}", partial(measure.run, (zaudit(), *command)))
    tools.lay_out(small, folder / "host", NATIVE)
    yield row("live check, 4 drives, native commands", partial(measure.host, folder / "host", small.taken))
    for drives, datasets in ((24, 100), (100, 20), (4, 2000)):
        large = folder / f"{drives}-{datasets}"
        recording.write(synthetic.large(small, drives, datasets), large)
        yield row(f"replay, {drives} drives, {datasets} datasets", partial(measure.run, replayed(large, "terminal")))


def row(what: str, cost: Callable[[], Cost], pairs: int = PAIRS) -> Row:
    """Raises RuntimeError where it does not run."""
    costs: list[tuple[Cost, Cost]] = []
    for _ in range(pairs):
        costs.append((cost(), measure.run((sys.executable, "-c", PLAIN))))
        if costs[-1][0].exit not in (0, *range(10, 15)):
            raise RuntimeError(f"{what}: exit code {costs[-1][0].exit}: {costs[-1][0].stderr}")
    return Row(
        what,
        median(one.cpu_s / plain.cpu_s for one, plain in costs),
        median(one.cpu_s for one, _ in costs),
        median(one.wall_s for one, _ in costs),
    )


def told(each: Row, base: float | None) -> str:
    """One line; without a base it is a miss: a row that nobody has frozen guards nothing."""
    figures = f"{each.what:44}{each.cpu_s * 1000:7.0f} ms CPU {each.wall_s * 1000:7.0f} ms wall {each.units:8.2f} units"
    return f"{figures}, base {base:.2f}{'  MISSED' * missed(each, base)}" if base else f"{figures}, no base  MISSED"


def missed(each: Row, base: float | None) -> bool:
    return base is None or each.units > MISS * base


def main(words: Sequence[str]) -> int:
    found: dict[str, Row] = {}
    base: dict[str, float] = json.loads(BASE.read_text())
    with tempfile.TemporaryDirectory(prefix="zaudit-bench-") as folder:
        for each in rows(Path(folder)):
            found[each.what] = each
            print(told(each, base.get(each.what)), flush=True)
    if "--freeze" in words:
        BASE.write_text(json.dumps({what: round(each.units, 2) for what, each in found.items()}, indent=1) + "\n")
        return 0
    gone = base.keys() - found.keys()
    print("".join(f"{what}: was not measured  MISSED\n" for what in sorted(gone)), end="")
    return int(bool(gone) or any(missed(each, base.get(what)) for what, each in found.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
