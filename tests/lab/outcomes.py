"""tests/lab/outcomes.json: how the scenarios came out, one row a line of OpenZFS and scenario.

python -m tests.lab.outcomes          the tables of README.md, section "What came out"
"""

from collections.abc import Sequence
from pathlib import Path

from . import rows as table
from .rows import Row as Row
from .scenario import Scenario
from .verdict import Outcome

FILE = Path(__file__).with_name("outcomes.json")


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
    return table.read(path)


def add(rows: Sequence[Row], path: Path) -> None:
    """Write rows in place of older ones of the same line and scenario."""
    found = {(each["line"], each["scenario"]): each for each in (*read(path), *rows)}
    table.write((found[key] for key in sorted(found)), path)
