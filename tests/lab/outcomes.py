"""tests/lab/outcomes.json: how the scenarios came out, one row a line of OpenZFS and scenario.

python -m tests.lab.outcomes          the tables of README.md, section "What came out"
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from . import scenario as scenarios
from .machine import LINES
from .scenario import Scenario
from .verdict import Outcome

FILE = Path(__file__).with_name("outcomes.json")
Row = dict[str, Any]


def row(scenario: Scenario, line: str, release: dict[str, str], outcome: Outcome, wrong: Sequence[str]) -> Row:
    """One row: the seconds are those of the whole scenario in the guest (setup, two runs of zaudit, taking down)."""
    root = outcome.report("root")
    return {
        "line": line,
        **release,
        "scenario": scenario.name,
        "outcome": "wrong" if wrong else "ok",
        "seconds": outcome.facts["seconds"],
        "setup_s": outcome.facts["setup_s"],
        "check_s": outcome.facts.get("check_s", 0.0),
        "standing": root["standing"] if root else "no report",
        "may_lose": scenario.power_cut.may_lose,
    }


def read(path: Path = FILE) -> list[Row]:
    """All rows, none when there is no file yet."""
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return rows


def add(rows: Sequence[Row], path: Path) -> None:
    """Write rows in place of older ones of the same line and scenario; the file is complete at every moment."""
    found = {(each["line"], each["scenario"]): each for each in (*read(path), *rows)}
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text("[\n" + ",\n".join(json.dumps(found[key]) for key in sorted(found)) + "\n]\n", encoding="utf-8")
    part.replace(path)


def by_line(rows: Sequence[Row]) -> str:
    """A table: what came out on each line."""
    table = [
        "| line | OpenZFS, kernel | scenarios | as expected | not on this line | median s | longest s |",
        "|---|---|---|---|---|---|---|",
    ]
    known = scenarios.everything()
    for line in LINES:
        mine = [each for each in rows if each["line"] == line]
        if mine:
            seconds, right = [each["seconds"] for each in mine], sum(each["outcome"] == "ok" for each in mine)
            away = sum(line in each.not_on for each in known)
            where = f"{mine[-1]['zfs']}, {mine[-1]['kernel']}"
            table.append(
                f"| {line} | {where} | {len(mine)} | {right} | {away} | {median(seconds):.1f} | {max(seconds):.1f} |"
            )
    return "\n".join(table)


def by_scenario(rows: Sequence[Row]) -> str:
    """A table: each scenario with its seconds on each line, what a power cut may do, and what zaudit says."""
    found = {(each["line"], each["scenario"]): each for each in rows}
    table = [
        f"| scenario | a power cut may take commits | zaudit says | {' s | '.join(LINES)} s |",
        "|---" * (3 + len(LINES)) + "|",
    ]
    for each in scenarios.everything():
        mine = [found.get((line, each.name)) for line in LINES]
        standings = ", ".join(dict.fromkeys(one["standing"] for one in mine if one))
        cells = [
            f"{one['seconds']:.1f}{'' if one['outcome'] == 'ok' else ' WRONG'}"
            if one
            else ("not there" if line in each.not_on else "not run")
            for line, one in zip(LINES, mine, strict=True)
        ]
        table.append(
            f"| {each.name} | {'yes' if each.power_cut.may_lose else 'no'} | {standings} | {' | '.join(cells)} |"
        )
    return "\n".join(table)


if __name__ == "__main__":
    print(f"{by_line(read())}\n\n{by_scenario(read())}")
