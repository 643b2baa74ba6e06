"""tests/lab/outcomes.json: how the scenarios came out, one row a line of OpenZFS and scenario.

python -m tests.lab.outcomes          the tables of README.md, section "What came out"
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
        "rules": root["coverage"]["rules"] if root else 0,
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
