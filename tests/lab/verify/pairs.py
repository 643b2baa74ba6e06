"""pairs.py NAME FOLDER...: latency as bare fio printed it beside what zaudit reported of the same job, pair by pair.

FOLDER holds bare-N.json (fio) and zaudit-N.json (zaudit verify --format json). The last line is the verdict, the exit code is 0
when the median of the ratios is within 0.97 and 1.03. Of a longer series the median moves less: its 95 % interval, from the
order statistics of the ratios, says whether a bias could hide in the noise.
"""

import json
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

LEAST, MOST = 0.97, 1.03
PAIRS_LEAST = 5


def measures(bins: Mapping[str, int]) -> dict[str, float]:
    """Median and mean in nanoseconds of a histogram (bucket -> samples)."""
    counts = {int(ns): count for ns, count in bins.items()}
    total, seen = sum(counts.values()), 0
    found = {"mean": sum(ns * count for ns, count in counts.items()) / total}
    for ns in sorted(counts):
        seen += counts[ns]
        if seen >= total / 2:
            return {"p50": ns, **found}
    raise ValueError("no samples")


def pair(folder: Path, number: str) -> dict[str, tuple[float, float]]:
    """measure -> (bare fio, zaudit)."""
    bare = json.loads((folder / f"bare-{number}.json").read_text())["jobs"][0]["sync"]["lat_ns"]["bins"]
    runs = json.loads((folder / f"zaudit-{number}.json").read_text())["verification"]["runs"]
    ours = next(run for run in runs if run["purpose"] == "log")["jobs"][0]["latency"]
    one, other = measures(bare), measures(ours)
    return {name: (one[name], other[name]) for name in one}


def interval(ratios: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of their median, by order statistics (binomial, p = 1/2); None where there are too few."""
    n = len(ratios)
    below, k = 0.0, 0
    while (step := math.comb(n, k) / 2**n) + below <= 0.025:
        below, k = below + step, k + 1
    return (sorted(ratios)[k - 1], sorted(ratios)[n - k]) if k else None


def main(name: str, folders: Sequence[str]) -> int:
    """Print them; 0 when they are the same within the limits. name: of the series, for its last line."""
    pairs = [
        pair(folder, path.stem.partition("-")[2])
        for folder in map(Path, folders)
        for path in sorted(folder.glob("bare-*.json"), key=lambda path: int(path.stem.partition("-")[2]))
    ]
    for number, each in enumerate(pairs, 1):
        shown = (f"{what} {one / 1e6:.3f} and {other / 1e6:.3f} ms" for what, (one, other) in each.items())
        print(f"pair {number}, bare fio and zaudit: {'; '.join(shown)}")
    parts, good = [], len(pairs) >= PAIRS_LEAST
    for what in ("p50", "mean"):
        ratios = [other / one for each in pairs for one, other in [each[what]]]
        middle, around = statistics.median(ratios), interval(ratios)
        parts.append(f"{what} {middle:.3f}" + (f" (95 % from {around[0]:.3f} to {around[1]:.3f})" if around else ""))
        good = good and LEAST <= middle <= MOST
    print(f"{name}: median of {len(pairs)} pairs, zaudit to bare fio: {', '.join(parts)}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
