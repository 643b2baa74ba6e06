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
from typing import Any, NamedTuple

from auditor.data import releases
from auditor.data.releases import KIB, Way
from auditor.model.database import HALF_A_BLOCK, whole_write
from tests.lab.points.explore import Points, Program, UserSpace
from tests.lab.points.recording import MARKS, Entry, log_blocks
from tests.lab.points.run import build
from tests.lab.points.workload import FIRST, NEIGHBOURS, Plan, Script

TABLE = Path(releases.__file__).with_name(releases.TORN_PAGES)
# of what is written before each page: odd ones, blocks of InnoDB's redo log, pages of a log
LENGTHS = (0, 152, 512, 1936, 4 * KIB, 8 * KIB, *range(8, 16 * KIB, 1096))
NEAR = 16 * KIB  # from one of them to the next
MEDIUM = 16  # pages of a burst that 2.3 divides evenly over log blocks
LARGE = 1100 * KIB  # bytes of one that it does not: more than eight log blocks (zil.c zil_lwb_plan())
ALONE = 17  # commits before each page that is committed by itself: 2.1 sizes a block by the last 16, 2.3 by the last 8
USUAL = 1936  # what is confirmed where no length tears
# releases whose zil.c, zfs_log.c and zfs_write() differ in nothing that decides where a record ends
SAME = {"2.1": ("2.1.0", "2.1.16"), "2.2": ("2.2.4", "2.2.11"), "2.3": ("2.3.0", "2.3.9"), "2.4": ("2.4.0", "2.4.4")}
HEAD = """\
# Made by make points-torn (tests/lab/points/torn.py): a change by hand shows in the digest.
#
# first, last: the releases that it holds for, tried: the one that was; lengths: how many lengths of the writes next to a page.
# rows: page and recordsizes in KiB; write: a page is committed by a later fsync, or always, with its write; slog: a log vdev;
# apart: at how many of the lengths a page lay in two blocks of the intent log; alone: one did without anything next to it;
# first: the smallest byte at which one came apart. With zil_maxblocksize and zfs_immediate_write_sz at their defaults.
# confirmed: crash points with one length: points tried, with a torn page, at which bytes, with any other damage.
"""
WAYS: tuple[Way, ...] = ("fsync", "always")


class Setting(NamedTuple):
    page: int
    record: int
    logbias: str
    how: Way
    slog: bool

    @property
    def layout(self) -> str:
        return "d0 l0" if self.slog else "d0"

    @property
    def pages(self) -> int:
        return max(MEDIUM, LARGE // self.page)

    def sweep(self) -> Script:
        """For each length a large burst of pages, and one of medium size: an fsync, or what writers at the same time commit
        together. Then pages of which each is committed by itself, each after small ones that were."""
        lines = [f"create {self.layout}", f"dataset a {self.record} {self.logbias}"]
        lines += [f"write a {number * self.page} {self.page} 1 fsync" for number in range(self.pages)]
        lines += ["txg", f"write a {FIRST} 512 1 fsync", "commit a start"]
        for turn, length in enumerate(LENGTHS):
            for part, burst in enumerate((self.pages, MEDIUM)):
                for number in range(burst):
                    lines += self._neighbour(number, length, turn + 2)
                    lines.append(self._page(number, turn + 2))
                lines.append(f"commit a {length}.{part}")
            if self.how != "fsync":
                for number in range(ALONE if length else 0):
                    lines += [*self._neighbour(number, length, turn + 2), "commit a part"]
                lines += [self._page(0, turn + 2), f"commit a {length}.alone"]
            lines.append("txg")  # which frees the log
        return Script(tuple(lines))

    def _page(self, number: int, generation: int) -> str:
        return f"write a {number * self.page} {self.page} {generation} {self.how}"

    def _neighbour(self, number: int, length: int, generation: int) -> list[str]:
        return [f"write a {NEIGHBOURS + number * NEAR} {length} {generation} {self.how}"] * bool(length)

    def plan(self, neighbour: int) -> Plan:
        """One length, for crash points."""
        plan = Plan("torn", self.layout, self.page, self.record, self.logbias, neighbour, self.how, together=True)
        return plan._replace(burst=self.pages, pages=self.pages, steps=("burst",))


def settings() -> Iterator[Setting]:
    """Each page in records of its size and in the largest, two in smaller ones; in all where the log lies on the data vdevs:
    there the record decides to what the log holds a pointer. Records of the size of the page first."""
    sizes = (4, 8, 16, 32, 64, 128)
    pairs = sorted(((page, record) for page in sizes[:-1] for record in sizes), key=lambda each: each[0] != each[1])
    for page, record in pairs:
        smaller = (page, record) in ((16, 8), (64, 8))
        ends = smaller or record in (page, sizes[-1])
        for slog, logbias in ((True, "latency"), (False, "latency"), (True, "throughput"), (False, "throughput")):
            if ends or (record > page and not slog and logbias == "latency"):
                yield from (Setting(page * KIB, record * KIB, logbias, how, slog) for how in WAYS)


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


def formula(setting: Setting, version: tuple[int, ...]) -> bool:
    """What the source says: may the log split a page? zil.c zil_lwb_commit() of 2.1, zil_lwb_assign() since 2.2: a record that
    is no longer than the rest of a block that the log would rather waste (zil_max_waste_space()) is never split;
    zfs_log.c zfs_log_write(), zil_write_state() of 2.4: of some the log holds a pointer."""
    pointed = not setting.slog and setting.page >= releases.TORN_CONDITIONS["zfs_immediate_write_sz"]
    if version >= HALF_A_BLOCK and setting.how != "fsync":
        pointed = pointed and setting.page >= setting.record // 2
    return setting.logbias == "latency" and not pointed and setting.page > whole_write(version)


def row(program: Program, work: Path, setting: Setting) -> tuple[dict[str, Any], int]:
    """And a length at which a page comes apart, where one does."""
    entries = program.run(work / "pool", work / "run.log", setting.sweep(), RECORD_LOG_BLOCKS="1", RECORD_LAG="0")
    found = apart(entries, setting.page)
    assert len(found) == len(set(LENGTHS)), "a burst has no acknowledgement"
    splitting = [length for length, places in found.items() if places]
    found_row = {
        "page": setting.page // KIB,
        "recordsizes": [setting.record // KIB],
        "logbias": setting.logbias,
        "write": setting.how,
        "slog": setting.slog,
        "apart": len(splitting),
        "alone": bool(found[0]),
        "first": min((at for places in found.values() for at in places), default=0),
    }
    return found_row, splitting[0] if splitting else USUAL


def confirmed(program: Program, work: Path, setting: Setting, length: int) -> dict[str, Any]:
    """Crash points of one burst: at how many is a page torn, at which bytes, and is something lost?"""
    plan = setting.plan(length)
    explorer = UserSpace(program, work, plan.script())
    entries = program.run(work / "pool", work / "run.log", explorer.script)
    tally = explorer.explore(entries, Points(entries, width=2, cut=0))
    harm = sum(count for what, count in tally.found.items() if what != "torn")
    return {
        "page": setting.page // KIB,
        "logbias": setting.logbias,
        "write": setting.how,
        "slog": setting.slog,
        "length": length,
        "points": tally.points,
        "torn": tally.found["torn"],
        "torn_at": sorted(tally.torn_at),
        "harm": harm,
    }


def merge(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row of records that differ in nothing else."""
    found: dict[str, dict[str, Any]] = {}
    for each in rows:
        key = repr([(name, value) for name, value in each.items() if name != "recordsizes"])
        first = found.setdefault(key, {**each, "recordsizes": []})
        first["recordsizes"] = sorted([*first["recordsizes"], *each["recordsizes"]])
    return list(found.values())


def digest(rows: Sequence[Mapping[str, Any]]) -> str:
    """Of the rows and those that are confirmed: no hand changes them."""
    return hashlib.sha256(repr([sorted(each.items()) for each in rows]).encode()).hexdigest()[:16]


def differences(line: str, table: releases.TornPages) -> Iterator[str]:
    """wrong: the formula says whole, and a page came apart. loose: it says that one may, and none did."""
    for key, records in table.apart.items():
        for record, count in records.items():
            setting = Setting(key.page, record, key.logbias, key.write, key.slog)
            may = formula(setting, tuple(map(int, line.split("."))))
            name = (
                f"{line}: page {key.page} record {record} {key.logbias} {key.write} {'SLOG' if key.slog else 'no SLOG'}"
            )
            if count and not may and record >= key.page:
                yield f"wrong {name}: the formula says whole, {count} of {table.lengths} lengths come apart"
            if may and not count:
                yield f"loose {name}: the formula says that it may come apart, no length of {table.lengths} does"


def written(documents: Mapping[str, Mapping[str, Any]]) -> str:
    """TOML, a row a line."""
    text = HEAD
    for line, table in sorted(documents.items()):
        rows, sample = table["rows"], table["confirmed"]
        text += f'\n["{line}"]\n' + "".join(
            f"{name} = {_toml(table[name])}\n" for name in ("first", "last", "tried", "lengths")
        )
        text += f'digest = "{digest([*rows, *sample])}"\n'
        for name in ("rows", "confirmed"):
            lines = (", ".join(f"{key} = {_toml(value)}" for key, value in each.items()) for each in table[name])
            text += f"{name} = [\n" + "".join(f"    {{ {each} }},\n" for each in lines) + "]\n"
    return text


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.points.torn", description=__doc__)
    parser.add_argument("--line", required=True, choices=sorted(SAME))
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        program = build(options.line, Path(folder) / "build")

        def one(number: int, setting: Setting) -> tuple[dict[str, Any], dict[str, Any] | None]:
            work = Path(folder) / f"work-{number}"
            work.mkdir()
            found, length = row(program, work, setting)
            own = setting.page == setting.record and setting.logbias == "latency"
            sample = confirmed(program, work, setting, length) if own else None
            shutil.rmtree(work)
            print(*found.values(), *((sample or {}).values()), flush=True)
            return found, sample

        # a run waits more than it computes
        with ThreadPoolExecutor(options.jobs) as pool:
            done = list(pool.map(one, *zip(*enumerate(settings()), strict=True)))
    first, last = SAME[options.line]
    table = {"first": first, "last": last, "tried": program.release, "lengths": len(LENGTHS)}
    documents = tomllib.loads(options.table.read_text()) if options.table.exists() else {}
    order = ("page", "logbias", "write", "slog")
    lines: dict[str, Any] = {
        "rows": merge(sorted((each for each, _ in done), key=lambda each: [each[name] for name in order])),
        "confirmed": [each for _, each in done if each],
    }
    text = written(documents | {options.line: {**table, **lines}})
    options.table.write_text(text)
    found = list(differences(options.line, releases.parse_torn_pages(tomllib.loads(text))[options.line]))
    print(*found, f"{options.line}: {len(done)} settings, {time.monotonic() - begun:.0f} s", sep="\n")
    return any(words.startswith("wrong") for words in found) or any(each["harm"] for each in lines["confirmed"])


if __name__ == "__main__":
    sys.exit(main())
