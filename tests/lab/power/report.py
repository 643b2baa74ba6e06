"""Verdict against truth: what zaudit said of each setting, and what power cuts took; and each cell of its table of events
against what that event took (cells.py).

    python -m tests.lab.power.report [--line 2.3] [--results FILE] [NAME...]

The level of zaudit's verdict comes from its findings about commits and corruption alone: *critical* (one of them failed
with severity critical), *unproven* (one of severity medium or high failed, or could not be decided), *fine*. The truth of
a setting is all of its cuts together: something acknowledged is gone, or something is damaged, or not.

hit          critical and harm; fine and none; a second failure (a drive that is gone too) that was warned of, and harm
miss         harm, and zaudit called it fine
false alarm  critical, and no harm in any cut
undecided    unproven: zaudit says that it cannot know (a lying drive cannot be told from an honest one), or that one more
             failure is needed
application  the application itself does not ask for durability; a loss without damage is no loss of OpenZFS
torn, whole  a program that rewrites pages without a guard of its own, as a database does with the doublewrite buffer or
             full_page_writes turned off: whether a cut left a page half old, half new. zaudit sees no database there; these
             settings decide what torn-page-guard-off may pass

Exit code 1 when the bar is missed: no miss, no false alarm, and no lying drive whose setting was called fine; no cell wrong,
and four of five decided.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..machine import LINES
from . import cells, matrix
from .matrix import EVENTS, Setting
from .results import EVENTS as EVENT_RESULTS
from .results import read

Level = Literal["critical", "unproven", "fine", "not asked"]
Outcome = Literal["hit", "miss", "false alarm", "undecided", "application", "torn", "whole", "not asked"]
HARMS = {"commits", "corruption"}


@dataclass(frozen=True)
class Line:
    """One setting on one OpenZFS line."""

    line: str
    setting: Setting
    rows: tuple[dict[str, Any], ...]

    @property
    def acknowledged(self) -> int:
        """Commits that the host was told of."""
        return sum(int(row["acknowledged"]) for row in self.rows)

    @property
    def lost(self) -> int:
        """Of those, the ones that are not there."""
        return sum(int(row["lost"]) for row in self.rows)

    @property
    def losing(self) -> int:
        """Cuts that lost something."""
        return sum(row["lost"] > 0 for row in self.rows)

    @property
    def damaged(self) -> int:
        """Cuts that left damage of any kind: a torn record, an inconsistent database, an error of the pool."""
        return sum(bool(row["corruption"]) for row in self.rows)

    @property
    def otherwise(self) -> bool:
        """Was anything damaged but pages that are torn?"""
        return any(not text.startswith("page ") for row in self.rows for text in row["corruption"])

    @property
    def imports(self) -> str:
        """How the pools came back: plain, -m, -F, failed."""
        return " ".join(f"{how}:{count}" for how, count in sorted(Counter(row["import"] for row in self.rows).items()))

    @property
    def unimportable(self) -> int:
        """Cuts after which the pool did not come back by itself."""
        return sum(row["import"] != "plain" for row in self.rows)

    @property
    def harm(self) -> bool:
        """Did any cut take something?"""
        return bool(self.lost or self.damaged or self.unimportable)

    @property
    def causes(self) -> tuple[str, ...]:
        """The findings that decide the level, worst first."""
        asked = [row["zaudit"]["findings"] for row in self.rows if row["zaudit"]]
        found = set(asked[-1]) if asked else set()  # the newest: rules change
        words = [text.split() for text in found]
        worst = {"critical": 0, "high": 1, "medium": 2}
        about = [each for each in words if each[3] in HARMS and each[2] in worst]
        return tuple(
            " ".join(each[:3]) for each in sorted(about, key=lambda each: (each[1] != "fail", worst[each[2]], each))
        )

    @property
    def level(self) -> Level:
        """What zaudit said."""
        if not any(row["zaudit"] for row in self.rows):
            return "not asked"
        if any(cause.endswith("fail critical") for cause in self.causes):
            return "critical"
        return "unproven" if self.causes else "fine"

    @property
    def outcome(self) -> Outcome:
        """The verdict against the truth."""
        level, harm = self.level, self.harm
        if self.setting.pages and not self.lost and not self.unimportable and not self.otherwise:
            return "torn" if self.damaged else "whole"
        if level == "not asked":
            return "not asked"
        if self.setting.application and not self.damaged and not self.unimportable:
            return "application"
        if level == "critical":
            return "hit" if harm else "false alarm"
        if level == "fine":
            return "miss" if harm else "hit"
        return "hit" if harm and self.setting.lose else "undecided"


def lines(rows: Sequence[dict[str, Any]], settings: Sequence[Setting]) -> list[Line]:
    """The rows of each setting of the matrix, by OpenZFS line."""
    found = []
    for name in sorted({line for setting in settings for line in setting.lines}):
        for setting in settings:
            mine = tuple(row for row in rows if (row["line"], row["setting"]) == (name, setting.name))
            if mine:
                found.append(Line(name, setting, mine))
    return found


def missing(rows: Sequence[dict[str, Any]], settings: Sequence[Setting], chosen: Sequence[str] = LINES) -> list[str]:
    """What the matrix asks for and the results do not have."""
    count = Counter((row["line"], row["setting"]) for row in rows)
    wanted = [(line, setting.name, setting.cuts) for setting in settings for line in setting.lines if line in chosen]
    return [
        f"{line} {name}: {count[line, name]} of {cuts} cuts"
        for line, name, cuts in sorted(wanted)
        if count[line, name] < cuts
    ]


def broken(table: Sequence[Line]) -> list[str]:
    """Where the bar is missed."""
    return [
        f"{each.line} {each.setting.name}: {each.outcome}" for each in table if each.outcome in ("miss", "false alarm")
    ]


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest text."""
    width = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(text.ljust(width[at]) for at, text in enumerate(row)).rstrip() for row in rows)


def show(table: Sequence[Line]) -> str:
    """The table, as text."""
    head = (
        "line",
        "setting",
        "drives",
        "workload",
        "cuts",
        "acked",
        "lost",
        "in",
        "damaged",
        "import",
        "zaudit",
        "",
        "by",
    )
    body = [
        (
            each.line,
            each.setting.name,
            " ".join(each.setting.drives),
            each.setting.workload,
            str(len(each.rows)),
            str(each.acknowledged),
            str(each.lost),
            str(each.losing),
            str(each.damaged),
            each.imports,
            each.level,
            each.outcome,
            each.causes[0] if each.causes else "",
        )
        for each in table
    ]
    return aligned((head, *body))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="settings of matrix.toml (default: all)")
    parser.add_argument("--line", action="append", choices=LINES, help="OpenZFS line (repeat for more; default: all)")
    parser.add_argument("--matrix", type=Path, default=matrix.FILE, metavar="FILE", help="other settings")
    parser.add_argument("--results", type=Path, metavar="FILE", help="default: tests/lab/powercut.json.gz")
    parser.add_argument(
        "--events", type=Path, default=EVENT_RESULTS, metavar="FILE", help="default: tests/lab/events.json.gz"
    )
    arguments = parser.parse_args()
    settings = [
        each for each in matrix.everything(arguments.matrix) if not arguments.names or each.name in arguments.names
    ]
    known, chosen = {each.name for each in settings}, arguments.line or LINES
    rows = [row for row in read(arguments.results) if row["line"] in chosen and row["setting"] in known]
    table = lines(rows, settings)
    print(show(table))
    for each in table:
        if each.setting.disputed:
            print(f"{each.line} {each.setting.name}: {each.setting.disputed} {each.lost} of {each.acknowledged} lost")
    for text in missing(rows, settings, chosen):
        print(f"not run: {text}")
    events = [row for row in read(arguments.events) if row["line"] in chosen and row["setting"] in known]
    judged = cells.cells(rows, events, settings)
    if judged:
        print(aligned((("line", "setting", "drives", "workload", *EVENTS), *cells.rows(judged))))
        print(aligned((cells.SUM_HEAD, *cells.sums(judged))))
    wrong = broken(table) + cells.broken(judged)
    print(
        f"{len(rows)} cuts: "
        + ", ".join(f"{count} {name}" for name, count in Counter(e.outcome for e in table).items())
    )
    print("the bar holds" if not wrong else "THE BAR IS MISSED: " + "; ".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
