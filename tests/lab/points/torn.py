"""The table of torn pages: can a page of a database that was fsynced come back in parts, at which byte, for which lengths of
the writes next to it? make points-torn LINE=2.3.

A page comes apart where its records lie in more than one block of the intent log: a crash between the two leaves the first. So
one run of all lengths is enough, without a crash: the blocks themselves say it. Then a sample is confirmed by crash points.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from auditor.derive import torn_pages
from auditor.facts import HOST, Fact, Facts, Known, Subject, Value, known
from tests.lab.points.explore import Explorer, Points, Program
from tests.lab.points.recording import MARKS, Entry, log_blocks
from tests.lab.points.run import HERE, build
from tests.lab.points.workload import APART, NEIGHBOURS, Plan, Script

TABLE = HERE / "torn_pages.toml"
KIB = 1024
LENGTHS = (0, 152, 1936, *range(8, 16 * KIB, 520))  # of what is written before each page
PAGES = 16
GROUP = 6  # bursts to a transaction group, which frees the log


class Setting(NamedTuple):
    page: int
    record: int
    logbias: str
    how: str  # fsync, or always: sync=always
    slog: bool

    @property
    def layout(self) -> str:
        return "d0 l0" if self.slog else "d0"

    def sweep(self) -> Script:
        """A burst of pages for each length."""
        lines = [f"create {self.layout}", f"dataset a {self.record} {self.logbias}"]
        lines += [f"write a {number * self.page} {self.page} 1 fsync" for number in range(PAGES)]
        lines += ["txg", "commit a start"]
        burst = PAGES if self.how == "fsync" else PAGES // 4
        for generation, length in enumerate(LENGTHS, 2):
            for number in range(burst):
                if length:
                    lines.append(f"write a {NEIGHBOURS + number * APART} {length} {generation} {self.how}")
                    lines += ["commit a part"] if self.how == "always" else []
                lines.append(f"write a {number * self.page} {self.page} {generation} {self.how}")
                lines += ["commit a part"] if self.how == "always" else []
            lines += [f"commit a {length}"] + ["txg"] * (generation % GROUP == 0)
        return Script(tuple(lines))

    def plan(self, neighbour: int) -> Plan:
        """One length, for crash points."""
        burst = 12 if self.how == "fsync" else 3
        plan = Plan("torn", self.layout, self.page, self.record, self.logbias, neighbour, self.how)
        return plan._replace(burst=burst, pages=PAGES, steps=("burst",))


def settings() -> Iterator[Setting]:
    for page in (4, 8, 16, 32, 64):
        for record in sorted({page, 8, 128}):
            for slog in (True, False):
                yield Setting(page * KIB, record * KIB, "latency", "fsync", slog)
                yield Setting(page * KIB, record * KIB, "latency", "always", slog)
                yield Setting(page * KIB, record * KIB, "throughput", "fsync", slog)


def apart(entries: Sequence[Entry], page: int) -> dict[int, Counter[int]]:
    """Length of the neighbours -> the bytes at which pages lie in more than one log block, and how many do."""
    marks = [(number, each.data.decode()) for number, each in enumerate(entries) if each.device == MARKS]
    ends = [(number, int(words)) for number, words in marks if words.isdigit()]
    found: dict[int, Counter[int]] = {length: Counter() for _, length in ends}
    places: dict[int, dict[int, list[tuple[int, int]]]] = {length: {} for _, length in ends}
    started = next(number for number, words in marks if words == "start")
    for which, block in enumerate(log_blocks(entries)):
        if block.entries[0] < started:
            continue
        length = next(length for number, length in ends if number > block.entries[0])
        for record in block.records:
            if record.offset < NEIGHBOURS:
                places[length].setdefault(record.offset // page, []).append((record.offset % page, which))
    for length, pages in places.items():
        for parts in pages.values():
            parts.sort()
            found[length].update(
                at for (at, block), (_, before) in zip(parts[1:], parts, strict=False) if block != before
            )
    return found


def formula(setting: Setting, release: str) -> tuple[bool | None, bool | None]:
    """What auditor/derive/torn_pages.py says: each page lies within a block; the log may split it."""
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


def tables() -> dict[str, Any]:
    return tomllib.loads(TABLE.read_text()) if TABLE.exists() else {}


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
    options = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        program, rows = build(options.line, Path(folder) / "build"), []
        work = Path(folder) / "work"
        work.mkdir()
        for each in settings():
            confirm = options.confirm == "all" or (options.confirm == "own" and each.page == each.record)
            rows.append(row(program, work, each, confirm))
            print(" ".join(f"{name}={value}" for name, value in rows[-1].items()), flush=True)
    found = tables() | {options.line: {"first": program.release, "last": program.release, "rows": rows}}
    TABLE.write_text(written(found))
    for words in differences(rows):
        print(words)
    print(f"{options.line}: {len(rows)} settings, {time.monotonic() - begun:.0f} s")
    return any(words.startswith("WRONG") for words in differences(rows)) or any(each.get("harm") for each in rows)


if __name__ == "__main__":
    sys.exit(main())
