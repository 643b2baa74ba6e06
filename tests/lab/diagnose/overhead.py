"""overhead.py FOLDER: what a program's syncs took alone, with the probes in the kernel, and while zaudit looked, in turns.

FOLDER holds alone-N.json, probes-N.json and looked-N.json (load.py), cpu-N (clock ticks of zaudit itself, ticks a second,
nanoseconds) and nothing-alone-N.json, nothing-probes-N.json (syncs that return at once). The exit code is 0 when the median of
the ratios of looked to alone is at most 1.03.
"""

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from pairs import interval  # type: ignore[import-not-found]  # beside this file in the guest

MOST = 1.03


def times_us(path: Path) -> list[float]:
    """Of all syncs of a load."""
    return [us for each in json.loads(path.read_text())["syncs"].values() for _, us in each]


def said(what: str, ratios: Sequence[float]) -> str:
    """The median of some ratios and where it may lie."""
    around = interval(ratios)
    text = f" (95 % from {around[0]:.3f} to {around[1]:.3f})" if around else ""
    return f"{what}: median of {len(ratios)} pairs {statistics.median(ratios):.3f}{text}"


def main(folder: Path) -> int:
    """Print them."""
    numbers = sorted(int(path.stem.partition("-")[2]) for path in folder.glob("alone-*.json"))
    means: dict[str, list[float]] = {}
    for what in ("alone", "probes", "looked"):
        means[what] = [statistics.fmean(times_us(folder / f"{what}-{number}.json")) for number in numbers]
    for number, row in zip(numbers, zip(*means.values(), strict=True), strict=True):
        print(f"{number}: " + ", ".join(f"{what} {us / 1e3:.3f} ms" for what, us in zip(means, row, strict=True)))
    cpu = [list(map(int, path.read_text().split())) for path in folder.glob("cpu-*")]
    print(
        f"zaudit itself: {sum(each[0] for each in cpu) / cpu[0][1] / sum(each[2] for each in cpu) * 1e9:.1%} of a CPU"
    )
    alone, probed = (
        statistics.median(us for path in folder.glob(f"nothing-{what}-*.json") for us in times_us(path))
        for what in ("alone", "probes")
    )
    print(f"a sync that does nothing: {alone:.0f} us, with the probes {probed:.0f} us (medians)")
    for one, other in (("probes", "alone"), ("looked", "probes"), ("looked", "alone")):
        ratios = [first / second for first, second in zip(means[one], means[other], strict=True)]
        print(said(f"{one} to {other}", ratios))
    return 0 if statistics.median(ratios) <= MOST else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
