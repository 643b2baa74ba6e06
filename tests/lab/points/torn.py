"""The table of torn pages: can a page of a database that was fsynced come back in parts, at which byte, for which lengths of
the writes next to it? make points-torn LINE=2.3.

A page comes apart where its records lie in more than one block of the intent log: a crash between the two leaves the first. So
one run of all lengths is enough, without a crash: the blocks themselves say it. Then a sample is confirmed by crash points.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from auditor.facts import HOST, Fact, Facts, Known, Subject, Value, known
from auditor.model.database_settings import torn_pages
from tests.lab.points.explore import Explorer, Points, Program
from tests.lab.points.recording import MARKS, Entry, log_blocks
from tests.lab.points.run import HERE, build
from tests.lab.points.workload import APART, FIRST, NEIGHBOURS, Plan, Script

TABLE = HERE / "torn_pages.toml"
KIB = 1024
LENGTHS = (0, 152, 1936, *range(8, 16 * KIB, 1096))  # of what is written before each page
MEDIUM = 16  # pages of a burst that 2.3 divides evenly over log blocks
LARGE = 1300 * KIB  # bytes of one that it does not: more than eight log blocks (zil.c zil_lwb_plan())
ALONE = (
    9  # commits before each page that is committed by itself: 2.3 sizes a block by the last eight (zil_lwb_predict())
)
GROUP = 4  # lengths to a transaction group, which frees the log


class Setting(NamedTuple):
    page: int
    record: int
    logbias: str
    how: str  # fsync, or always: sync=always
    slog: bool

    @property
    def layout(self) -> str:
        return "d0 l0" if self.slog else "d0"

    @property
    def pages(self) -> int:
        return max(MEDIUM, LARGE // self.page) if self.how == "fsync" else MEDIUM // 4

    def sweep(self) -> Script:
        """For each length a large burst of pages, and one of medium size."""
        lines = [f"create {self.layout}", f"dataset a {self.record} {self.logbias}"]
        lines += [f"write a {number * self.page} {self.page} 1 fsync" for number in range(self.pages)]
        lines += ["txg", f"write a {FIRST} 512 1 fsync", "commit a start"]
        for turn, length in enumerate(LENGTHS):
            for part, burst in enumerate((self.pages, MEDIUM) if self.how == "fsync" else (self.pages,)):
                for number in range(burst):
                    if length:
                        times = ALONE if self.how == "always" else 1
                        lines += self._write(NEIGHBOURS + number * APART, length, turn + 2) * times
                    lines += self._write(number * self.page, self.page, turn + 2)
                lines.append(f"commit a {length}.{part}")
            lines += ["txg"] * (turn % GROUP == 0)
        return Script(tuple(lines))

    def _write(self, offset: int, length: int, generation: int) -> list[str]:
        alone = ["commit a part"] if self.how == "always" else []
        return [f"write a {offset} {length} {generation} {self.how}", *alone]

    def plan(self, neighbour: int) -> Plan:
        """One length, for crash points."""
        plan = Plan("torn", self.layout, self.page, self.record, self.logbias, neighbour, self.how)
        return plan._replace(burst=self.pages, pages=self.pages, steps=("burst",))


def settings() -> Iterator[Setting]:
    """Those that a database has first: records of the page with a SLOG and without, each write committed by itself, pointers in
    the log; then records of other sizes."""
    pages = (16, 8, 32, 64, 4)
    for slog in (True, False):
        yield from (Setting(page * KIB, page * KIB, "latency", "fsync", slog) for page in pages)
    yield from (Setting(page * KIB, page * KIB, "latency", "always", True) for page in pages)
    for page, record in ((16, 8), (16, 128), (16, 16), (64, 8), (64, 64)):
        yield Setting(page * KIB, record * KIB, "throughput", "fsync", True)
    for slog in (True, False):
        for page, record in ((16, 8), (16, 128), (8, 128), (32, 16), (32, 128), (64, 128), (64, 8)):
            yield Setting(page * KIB, record * KIB, "latency", "fsync", slog)
    yield from (Setting(page * KIB, page * KIB, "latency", "always", False) for page in pages)


def apart(entries: Sequence[Entry], page: int) -> dict[int, Counter[int]]:
    """Length of the neighbours -> the bytes at which pages lie in more than one log block, and how many do."""
    marks = [(number, each.data.decode()) for number, each in enumerate(entries) if each.device == MARKS]
    bursts = [(number, words) for number, words in marks if words not in ("start", "part")]
    places: dict[tuple[str, int], list[tuple[int, int]]] = {}
    started = next(number for number, words in marks if words == "start")
    for which, block in enumerate(log_blocks(entries)):
        if block.entries[0] < started:
            continue
        burst = next(words for number, words in bursts if number > block.entries[0])
        for record in block.records:
            if record.offset < FIRST:
                places.setdefault((burst, record.offset // page), []).append((record.offset % page, which))
    found: dict[int, Counter[int]] = {int(words.partition(".")[0]): Counter() for _, words in bursts}
    for (burst, _), parts in places.items():
        parts.sort()
        length = int(burst.partition(".")[0])
        found[length].update(at for (at, block), (_, before) in zip(parts[1:], parts, strict=False) if block != before)
    return found


def formula(setting: Setting, release: str) -> tuple[bool | None, bool | None]:
    """What auditor/model/database_settings.py says: each page lies within a block; the log may split it."""
    database, dataset, pool = Subject("database", "postgres 7"), Subject("dataset", "p/a"), Subject("pool", "p")
    values: list[tuple[Subject, str, Value]] = [
        (database, "page_bytes", setting.page),
        (database, "data_datasets", (dataset,)),
        (database, "data_blocks", (f"{setting.record} 1",)),
        (database, "engine", "postgres"),
        (dataset, "logbias", setting.logbias),
        (dataset, "sync", "always" if setting.how == "always" else "standard"),
        (dataset, "recordsize", setting.record),
        (dataset, "direct", "standard"),
        (dataset, "pool", pool),
        (pool, "zil_class", "log" if setting.slog else "normal"),
        (HOST, "zfs_version", tuple(map(int, release.split(".")))),
        (HOST, "zil_maxblocksize", 131072),
        (HOST, "zfs_immediate_write_sz", 32768),
        (HOST, "zfs_dio_enabled", 1),
    ]
    facts = Facts()
    facts.put_all(Fact(subject, name, known(value, name)) for subject, name, value in values)
    found = {each.name: each.value for each in torn_pages.derive(database, facts)}
    within, split = (found[name] for name in ("page_within_block", "log_splits_page"))
    return (
        bool(within.value) if isinstance(within, Known) else None,
        bool(split.value) if isinstance(split, Known) else None,
    )


def row(program: Program, work: Path, setting: Setting, confirm: bool) -> dict[str, Any]:
    entries = program.run(work / "pool", work / "run.log", setting.sweep(), RECORD_LOG_BLOCKS="1", RECORD_LAG="0")
    found = apart(entries, setting.page)
    assert len(found) == len(set(LENGTHS)), "a burst has no acknowledgement"
    splitting = [length for length, places in found.items() if places]
    places = sum(found.values(), Counter[int]())
    within, split = formula(setting, program.release)
    result: dict[str, Any] = {
        "page": setting.page // KIB,
        "recordsize": setting.record // KIB,
        "logbias": setting.logbias,
        "sync": "always" if setting.how == "always" else "standard",
        "slog": setting.slog,
        "lengths": len(found),
        "apart": len(splitting),
        "alone": bool(found[0]),
        "bytes": len(places),
        "first": min(places, default=0),
        "usual": places.most_common(1)[0][0] if places else 0,
        "within_block": within,
        "log_splits": split,
    }
    if confirm:
        length = splitting[0] if splitting else 1936
        result |= confirmed(program, work, setting.plan(length))
        result["at_length"] = length
    return result


def confirmed(program: Program, work: Path, plan: Plan) -> dict[str, Any]:
    """Every prefix of a burst: at how many points is a page torn, at which bytes, and is something lost?"""
    explorer = Explorer(program, work, plan.script())
    entries = program.run(work / "pool", work / "run.log", explorer.script)
    tally = explorer.explore(entries, Points(entries, width=1, cut=0))
    harm = sum(count for what, count in tally.found.items() if what != "torn")
    return {"points": tally.points, "torn": tally.found["torn"], "torn_at": sorted(tally.torn_at), "harm": harm}


def differences(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """safe: the formula says whole, and a page came apart: it is wrong. loose: it says that one may, and none did."""
    for each in rows:
        name = f"page {each['page']}K recordsize {each['recordsize']}K {each['logbias']}"
        name += f" sync={each['sync']} slog={each['slog']}"
        whole = each["within_block"] and each["log_splits"] is False
        if whole and (each["apart"] or each.get("torn")):
            yield f"WRONG {name}: the formula says whole, {each['apart']} of {each['lengths']} lengths come apart"
        if not whole and not each["apart"]:
            yield f"loose {name}: the formula says that it may come apart, no length of {each['lengths']} does"


def tables(path: Path = TABLE) -> dict[str, Any]:
    return tomllib.loads(path.read_text()) if path.exists() else {}


def written(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """TOML, a row a line. digest: of the rows of a line, so that a change by hand shows."""
    text = "# Made by make points-torn (tests/lab/points/torn.py); README.md says what the columns are. KiB, but for bytes.\n"
    for line, table in sorted(tables.items()):
        rows = [
            f"    {{ {', '.join(f'{name} = {_toml(value)}' for name, value in each.items())} }},"
            for each in table["rows"]
        ]
        text += f'\n["{line}"]\nfirst = "{table["first"]}"\nlast = "{table["last"]}"\n'
        text += f'digest = "{digest(table["rows"])}"\nrows = [\n' + "\n".join(rows) + "\n]\n"
    return text


def digest(rows: Sequence[Mapping[str, Any]]) -> str:
    return hashlib.sha256(repr([sorted(each.items()) for each in rows]).encode()).hexdigest()[:16]


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.points.torn", description=__doc__)
    parser.add_argument("--line", required=True, choices=("2.1", "2.2", "2.3", "2.4"))
    parser.add_argument(
        "--confirm", choices=("all", "own", "none"), default="own", help="own: records as large as pages"
    )
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--jobs", type=int, default=4)
    options = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        program = build(options.line, Path(folder) / "build")

        done: dict[int, dict[str, Any]] = {}
        writing = Lock()

        def one(number: int, setting: Setting) -> None:
            confirm = options.confirm == "all" or (options.confirm == "own" and setting.page == setting.record)
            work = Path(folder) / f"work-{number}"
            work.mkdir()
            found = row(program, work, setting, confirm)
            shutil.rmtree(work)
            print(" ".join(f"{name}={value}" for name, value in found.items()), flush=True)
            with writing:  # a run that ends early leaves what it has
                done[number] = found
                rows = [each for _, each in sorted(done.items())]
                table = {"first": program.release, "last": program.release, "rows": rows}
                options.table.write_text(written(tables(options.table) | {options.line: table}))

        # a run waits more than it computes
        with ThreadPoolExecutor(options.jobs) as pool:
            for each in [pool.submit(one, *each) for each in enumerate(settings())]:
                each.result()
    rows = tables(options.table)[options.line]["rows"]
    for words in differences(rows):
        print(words)
    print(f"{options.line}: {len(rows)} settings, {time.monotonic() - begun:.0f} s")
    return any(words.startswith("WRONG") for words in differences(rows)) or any(each.get("harm") for each in rows)


if __name__ == "__main__":
    sys.exit(main())
