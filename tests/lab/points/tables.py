"""Tables of the crash points, for the README and docs/torn-pages.md (tests/lab/tables.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from auditor.data import releases
from tests.lab.points.run import CONTROLS
from tests.lab.points.workload import HARM

Row = Mapping[str, Any]
HEAD = {
    "user": (
        "OpenZFS",
        "workload",
        "points",
        "pruned",
        "lost",
        "other damage",
        "seconds",
        "torn",
        "points in the replay",
    ),
    "kernel": ("OpenZFS", "workload", "points", "pruned", "lost", "other damage", "seconds", "torn"),
}
NOTHING: Row = {"found": {}, "seconds": 0, "points": 0}


def points(rows: Sequence[Row], where: str) -> Iterator[tuple[object, ...]]:
    """Each workload of each line, in user space or in the kernel."""
    yield HEAD[where]
    for each in rows:
        if each["where"] != where or each.get("points") is None or each.get("check") or each["control"]:
            continue
        found, replay = each["found"], each.get("replay") or NOTHING
        other = sum(found.get(name, 0) + replay["found"].get(name, 0) for name in HARM if name != "lost")
        lost = found.get("lost", 0) + replay["found"].get("lost", 0)
        cells = (
            *(each["release"], each["plan"], f"{each['points']:,}", f"{each['pruned']:,}", lost, other),
            *(f"{each['seconds'] + replay['seconds']:.0f}", found.get("torn", 0), f"{replay['points']:,}"),
        )
        yield cells[: len(HEAD[where])]


def controls(every: Sequence[Row], where: str) -> Iterator[tuple[object, ...]]:
    """What must fail, and the recorder's own checks, on each line."""
    rows = [each for each in every if each["where"] == where]
    lines = sorted({each["line"] for each in rows})
    yield ("", *lines)
    for control in CONTROLS:
        found = {each["line"]: each for each in rows if each.get("control") == control}
        yield (control, *(_lost(found.get(line)) for line in lines))
    omissions = {(each["line"], each["plan"]): each for each in rows if each.get("check") == "omissions"}
    for plan in sorted({plan for _, plan in omissions}):
        cells = (omissions.get((line, plan)) for line in lines)
        words = (f"{each['noticed']} of {each['needed']} noticed" if each else "not run" for each in cells)
        yield (f"a write left out, {plan}", *words)
    pruning = {each["line"]: each for each in rows if each.get("check") == "pruning"}
    cells = (pruning.get(line) for line in lines)
    words = (
        f"{'the same' if each['same'] else 'NOT THE SAME'}, {each['points']} points" if each else "not run"
        for each in cells
    )
    if pruning:
        yield ("pruning against none", *words)


def _lost(row: Row | None) -> str:
    if row is None:
        return "not run"
    more = f", {row['found']['import']} not imported" if row["found"].get("import") else ""
    return f"{row['found'].get('lost', 0)} of {row['points']} lost{more}"


def torn(tables: Mapping[str, releases.TornPages]) -> Iterator[tuple[object, ...]]:
    """At how many of the lengths pages came apart, in blocks that are no smaller than a page."""
    yield ("page, KiB", "committed by", "log", *(each.tried for each in tables.values()))
    keys = dict.fromkeys(key for each in tables.values() for key in each.apart)
    for key in sorted(keys, key=lambda each: (each.page, each.write == "always", not each.slog)):
        if key.logbias == "latency":
            cells = [_apart(key, each) for each in tables.values()]
            way = "fsync" if key.write == "fsync" else "its own write"
            yield (key.page // releases.KIB, way, "SLOG" if key.slog else "data vdevs", *cells)
    pointed = [key for key in keys if key.logbias == "throughput"]
    sums = [sum(count for key in pointed for count in _counts(key, each).values()) for each in tables.values()]
    yield ("all, logbias=throughput", "both", "both", *sums)


def _apart(key: releases.TornSetting, table: releases.TornPages) -> str:
    counts = _counts(key, table)
    if len(set(counts.values())) == 1:
        return f"{next(iter(counts.values()))} of {table.lengths}"
    return ", ".join(f"{count} in {record // releases.KIB}K" for record, count in sorted(counts.items()))


def _counts(key: releases.TornSetting, table: releases.TornPages) -> dict[int, int]:
    return {record: count for record, count in table.apart.get(key, {}).items() if record >= key.page}
