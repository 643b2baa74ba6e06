"""``python -m tests.fuzz --minutes 2``: half of the time for whole audits (damaged answers, hostile names), half for readers.

The same --seed tries the same cases in the same order. Where atheris is installed, half of the readers' time is its. Ends
with 1 when something was found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.fuzz import found, guided, readers
from tests.fuzz.found import Kept
from tests.fuzz.loss import Loss
from tests.fuzz.names import Names
from tests.fuzz.target import Case, Target, smallest, tried

ROUND = 8  # cases of one target before the next one has its turn


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], metavar="TARGET", help="may be given several times")
    parser.add_argument("--keep", type=Path, default=found.FILE, metavar="FILE", help="for what is found")
    given = parser.parse_args()
    chosen = [each for each in everything() if not given.only or each.name in given.only]
    if not chosen:
        parser.error(f"there are {', '.join(each.name for each in everything())}")
    seconds = given.minutes * 60
    guide = guided.there() and not given.only
    code = report(*hunt(chosen, given.seed, seconds * (0.75 if guide else 1), given.keep))
    if guide:
        print("\nwith atheris:")
        code = max(code, guided.hunt(seconds / 4, given.seed, given.keep))
    return code


def everything() -> list[Target]:
    """All targets: the readers, and those that audit a whole host."""
    return [*readers.targets(), Loss(), Loss(2), Names()]


def hunt(targets: list[Target], seed: int, seconds: float, file: Path) -> tuple[Counter[tuple[str, str]], list[Kept]]:
    """(target, kind) -> cases, and what was found, the first of each sign. seconds: of CPU time."""
    chance, counts, kept = Random(seed), Counter[tuple[str, str]](), dict[str, Kept]()
    audits = [each for each in targets if isinstance(each, Loss | Names)]
    others = [each for each in targets if each not in audits]
    began, of_audits = time.process_time(), 0.0
    while (passed := time.process_time() - began) < seconds:
        turn = audits if audits and (not others or of_audits * 2 < passed) else others
        target = chance.choice(turn)
        for _ in range(ROUND):
            attempt(target, target.make(chance), counts, kept, file)
        if turn is audits:
            of_audits += time.process_time() - began - passed
    return counts, list(kept.values())


def attempt(target: Target, case: Case, counts: Counter[tuple[str, str]], kept: dict[str, Kept], file: Path) -> None:
    """Try one case, count how it came out, and keep the first of each mistake, as small as it can be made."""
    outcome = tried(target, case)
    counts[target.name, outcome.kind] += 1
    if outcome.found and outcome.sign not in kept:
        small = case if outcome.kind == "hang" else smallest(target, case, outcome.sign)
        kept[outcome.sign] = Kept(target.name, outcome.sign, small)
        found.keep(kept[outcome.sign], file)
        print(f"{target.name}: {outcome.sign}", flush=True)


def report(counts: Counter[tuple[str, str]], kept: list[Kept]) -> int:
    """The figures, by target; 1 when something was found."""
    kinds = ["read", "refused", *sorted({kind for _, kind in counts} - {"read", "refused"})]
    print(f"\n{'target':24}" + "".join(f"{kind[:14]:>15}" for kind in kinds))
    names = sorted({name for name, _ in counts})
    for name in names:
        print(f"{name:24}" + "".join(f"{counts[name, kind]:15}" for kind in kinds))
    print(f"{'all':24}" + "".join(f"{sum(counts[name, kind] for name in names):15}" for kind in kinds))
    print(
        f"{counts.total()} cases; {len(kept)} different mistakes found"
        + (", see tests/fuzz/found.jsonl" if kept else "")
    )
    return 1 if kept else 0


if __name__ == "__main__":
    sys.exit(main())
