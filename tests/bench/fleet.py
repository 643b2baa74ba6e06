"""``make bench-fleet HOSTS=10000``: a fleet from recordings to page; figures, and no test of them.

Recorded hosts of the lab under other names, with other serial numbers, drive models and times, and among them files that are
cut off, empty, hostile or there twice, are judged in each way (``1``, ``2``: processes; ``dask``: its workers here) and told as
a page. What is compared are the rows: those of each way are the same bytes.

    python -m tests.bench.fleet HOSTS [WAY...]
"""

from __future__ import annotations

import hashlib
import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from auditor.recording import recording
from tests.bench.measure import Cost, run
from tests.fleet.fleets import GUEST, SERIAL, named, respelt, spoilt
from tests.shared import HOSTS

MODELS = (
    *("SAMSUNG MZQL23T8HCLS-00A07", "KIOXIA KCD61LUL3T84", "Micron_7450_MTFDKCC3T8TFS", "SOLIDIGM SSDPF2KX038T1"),
    *("Samsung SSD 990 PRO 2TB", "WD_BLACK SN850X 2000GB", "CT2000T500SSD8", "INTEL SSDPE2KX040T8"),
)
SILENT = 100  # one in so many hosts is expected and did not come


def main(count: int, ways: list[str]) -> int:
    """0 where the rows of all ways are the same."""
    zaudit = str(Path(sys.executable).parent / "zaudit")
    with tempfile.TemporaryDirectory(prefix="zaudit-fleet-") as name:
        folder = Path(name)
        began = time.monotonic()
        files = made(folder / "recordings", folder / "inventory", count)
        size = sum(each.stat().st_size for each in (folder / "recordings").iterdir()) >> 20
        print(
            f"{files:,} files, {size:,} MiB, of {count:,} hosts: made in {time.monotonic() - began:.0f} s", flush=True
        )
        digests = set()
        for way in ways:
            rows = folder / f"{way}.jsonl"
            how = ("--engine", "dask", "--jobs", "2") if way == "dask" else ("--jobs", way)
            cost = run((zaudit, "fleet", "judge", str(folder / "recordings"), *how, "-o", str(rows),
                        "--inventory", str(folder / "inventory")))  # fmt: skip
            name = "2 workers of Dask" if way == "dask" else f"{way} process{'es' * (way != '1')}"
            print(told(f"judge, {name}", cost, f", {files / cost.wall_s:.1f} recordings/s"), flush=True)
            print("".join(f"    {line}\n" for line in cost.stderr.splitlines()[:3]), end="")
            digests.add(hashlib.sha256(rows.read_bytes()).hexdigest())
        same = "the same bytes" if len(digests) == 1 else "NOT THE SAME"
        print(f"rows: {rows.stat().st_size >> 20:,} MiB, {same} in every way")
        for format_ in ("terminal", "html"):
            page = folder / f"fleet.{format_}"
            cost = run((zaudit, "fleet", "report", str(rows), "--format", format_, "-o", str(page)))
            print(told(f"report, {format_}", cost, f", {page.stat().st_size >> 10:,} KiB"), flush=True)
    return len(digests) - 1


def told(what: str, cost: Cost, more: str) -> str:
    """One line. The memory is that of the largest process."""
    figures = f"{cost.wall_s:.1f} s, CPU {cost.cpu_s:.1f} s, {cost.memory_mib:.0f} MiB at most"
    return f"{what}: {figures}{more}, exit code {cost.exit}"


def made(folder: Path, inventory: Path, count: int) -> int:
    """So many hosts, with what is no recording among them; how many files that is."""
    folder.mkdir(parents=True)
    cases = HOSTS.names()
    hosts = [f"db{number:05}" for number in range(count)]
    for number, (host, case, model) in enumerate(zip(hosts, itertools.cycle(cases), models(), strict=False)):
        past = respelt(named(case, host, number % 5 / 2), {GUEST: model, SERIAL: f"{number:0{len(SERIAL)}}"})
        recording.write(past, folder / f"{host}.tar.gz")
    first = folder / f"{hosts[0]}.tar.gz"
    spoilt(folder, first)
    shutil.copy(first, folder / "again.tar.gz")
    silent = [f"{host}x" for host in hosts[::SILENT]]
    inventory.write_text("".join(f"{host}\n" for host in (*hosts, *silent)))
    return sum(1 for _ in folder.iterdir())


def models() -> Iterator[str]:
    """One for each host; not in step with the recordings, so that each is seen with each."""
    for turn in itertools.count():
        yield from MODELS[turn % len(MODELS) :]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:] or ["1", "2"]))
