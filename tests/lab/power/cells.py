"""Each cell of zaudit's table of events against what the event took.

right     kept and nothing gone; lost and something gone; unknown and word are no such answers
word      kept on somebody's word: every lying drive is named (or who shows it), and where something is gone there is one;
          or who shows the drives is said to keep a copy of each, and a drive that is taken away shows that QEMU keeps none
unknown   zaudit says that it does not know
wrong     kept and something gone, or a lying drive not named; lost, and nothing was ever gone
not asked no report of this setting has a table

Gone is an acknowledged commit, or anything damaged, or a pool that comes back not at all or rewound (-F). A pool that needs -m
and has all commits lost nothing. The power cuts of powercut.json.gz count as what they are: with ``lose`` a second failure.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from .matrix import EVENTS, Setting

Outcome = Literal["right", "word", "unknown", "wrong", "not asked"]
DECIDED = 0.8  # of all cells; the bar
WHOEVER = ("hypervisor", "controller", "target", "layer")  # who answers for all drives that it shows


class Cell(NamedTuple):
    """One event for one setting on one line. said: outcome and parties or rules, as guest.py writes them; empty: not asked."""

    line: str
    setting: Setting
    event: str
    said: str
    rows: tuple[dict[str, Any], ...]

    @property
    def answer(self) -> str:
        """kept, word, unknown, lost, or nothing."""
        return self.said.partition(":")[0]

    @property
    def names(self) -> list[str]:
        """Whose word it is, or which rules say so."""
        return self.said.partition(": ")[2].split(", ")

    @property
    def gone(self) -> int:
        """How many times something went."""
        return sum(_harmed(row, self.setting) for row in self.rows)

    @property
    def unnamed(self) -> list[str]:
        """The lying drives that the answer does not rest on, where a cache goes with the power."""
        if not self.event.startswith("power") or set(self.names) & set(WHOEVER):
            return []
        away = self.setting.away(self.event)
        lying = [f"drive {i}" for i, model in enumerate(self.setting.drives) if model == "lying" and i != away]
        return [each for each in lying if self.answer != "word" or each not in self.names]

    @property
    def _may_be_gone(self) -> bool:
        """Whether commits went that the application does not ask for: nobody can tell whether others would have gone, too."""
        return self.setting.application and any(row["lost"] for row in self.rows)

    @property
    def _broken(self) -> bool:
        """Whether somebody on whose word the answer rests did not keep it: a lying drive, or the layer above a drive."""
        return "lying" in self.setting.drives or ("layer" in self.names and self.event in ("drive", "power+drive"))

    @property
    def outcome(self) -> Outcome:
        """What was said against what went."""
        match self.answer:
            case "":
                return "not asked"
            case "lost":
                return "right" if self.gone or self._may_be_gone else "wrong"
            case "kept":
                return "wrong" if self.gone or self.unnamed else "right"
            case "word":
                return "wrong" if self.unnamed or (self.gone and not self._broken) else "word"
            case _:
                return "unknown"


def _harmed(row: dict[str, Any], setting: Setting) -> bool:
    damaged = bool(row["corruption"]) or row["import"] == "failed" or "-F" in row["import"]
    return damaged or (row["lost"] > 0 and not setting.application)


def cells(cuts: Sequence[dict[str, Any]], events: Sequence[dict[str, Any]], settings: Sequence[Setting]) -> list[Cell]:
    """All that were brought about, by line, setting and event."""
    found = []
    for line in sorted({row["line"] for row in events}):
        for setting in settings:
            mine = [row for row in events if (row["line"], row["setting"]) == (line, setting.name)]
            cut = [
                {**row, "event": setting.lost_at}
                for row in cuts
                if (row["line"], row["setting"]) == (line, setting.name)
            ]
            asked = [row["zaudit"]["events"] for row in mine if row["zaudit"]]
            for event in setting.events:
                rows = tuple(row for row in (*cut, *mine) if row["event"] == event)
                if mine and rows:
                    found.append(Cell(line, setting, event, asked[-1].get(event, "") if asked else "", rows))
    return found


def broken(table: Sequence[Cell]) -> list[str]:
    """Where the bar is missed."""
    wrong = [f"{each.line} {each.setting.name} at {each.event}: {each.said}, {_truth(each)}" for each in table
             if each.outcome == "wrong"]  # fmt: skip
    decided = sum(each.outcome in ("right", "word", "wrong") for each in table)
    if table and decided < DECIDED * len(table):
        wrong.append(f"{decided} of {len(table)} cells are decided")
    return wrong


def _truth(cell: Cell) -> str:
    commits, lost = (sum(row[name] for row in cell.rows) for name in ("acknowledged", "lost"))
    went = [f"{lost:,} of {commits:,}"] if lost else []
    failed = sum(row["import"] == "failed" for row in cell.rows)
    damaged = sum(bool(row["corruption"]) or "-F" in row["import"] for row in cell.rows)
    went += [f"{failed} of {len(cell.rows)} without the pool"] if failed else []
    went += [f"{damaged} of {len(cell.rows)} damaged"] if damaged else []
    return f"lost {', '.join(went)}" if went else f"kept {commits:,}"


def words(cell: Cell) -> str:
    """A cell for a table: what was said, what went, and what that makes."""
    said = {"lost": "LOST", "word": f"word of {', '.join(cell.names)}", "": "not asked"}.get(cell.answer, cell.answer)
    return f"{said}; {_truth(cell)}" + (": WRONG" if cell.outcome == "wrong" else "")


def rows(table: Sequence[Cell]) -> list[tuple[str, ...]]:
    """A line for each setting, a column for each event."""
    at = {(cell.line, cell.setting.name, cell.event): words(cell) for cell in table}
    keys = {(cell.line, cell.setting.name): cell.setting for cell in table}
    return [
        (line, setting.name, " ".join(setting.drives), setting.workload,
         *(at.get((line, setting.name, event), "") for event in EVENTS))
        for (line, _), setting in keys.items()
    ]  # fmt: skip


def sums(table: Sequence[Cell]) -> list[tuple[str, ...]]:
    """A line for each event: how many cells came out how."""
    found = []
    for event in EVENTS:
        mine = [cell for cell in table if cell.event == event]
        count = Counter(cell.outcome for cell in mine)
        found.append((event, *map(str, (sum(len(cell.rows) for cell in mine), len(mine), count["right"], count["word"],
                                        count["unknown"], count["wrong"]))))  # fmt: skip
    return found


SUM_HEAD = ("event", "times", "cells", "right", "on the word of", "unknown", "wrong")
