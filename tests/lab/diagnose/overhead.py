"""overhead.py FOLDER: what a program's syncs took alone and while it was looked at, pair by pair.

FOLDER holds alone-N.json and looked-N.json (load.py). The last line is the verdict, the exit code is 0 when the median of the
ratios of the means is at most 1.03.
"""

import json
import statistics
import sys
from pathlib import Path

from pairs import interval  # type: ignore[import-not-found]  # beside this file in the guest

MOST = 1.03


def mean_us(path: Path) -> float:
    """Of all syncs of a load."""
    syncs = json.loads(path.read_text())["syncs"].values()
    return statistics.fmean(us for each in syncs for _, us in each)


def main(folder: Path) -> int:
    """Print them."""
    ratios = []
    for path in sorted(folder.glob("alone-*.json"), key=lambda path: int(path.stem.partition("-")[2])):
        alone, looked = map(mean_us, (path, folder / path.name.replace("alone", "looked")))
        print(f"{path.stem.partition('-')[2]}: alone {alone / 1e3:.3f} ms, looked at {looked / 1e3:.3f} ms")
        ratios.append(looked / alone)
    around = interval(ratios)
    text = f" (95 % from {around[0]:.3f} to {around[1]:.3f})" if around else ""
    print(f"overhead: median of {len(ratios)} pairs {statistics.median(ratios):.3f}{text}")
    return 0 if statistics.median(ratios) <= MOST else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
