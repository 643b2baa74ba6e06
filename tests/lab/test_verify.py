"""The lab of `zaudit verify` judges by what came back, and its outcomes stand in the table as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab import outcomes, tables
from tests.lab.machine import LINES
from tests.lab.verify import case as cases
from tests.lab.verify import pairs
from tests.lab.verify.case import Case, Returned, problems
from tests.lab.verify.run import PROGRAMS

pytestmark = pytest.mark.lab

EVERYTHING = cases.everything()
ROWS = outcomes.read(tables.VERIFY)
CONTRADICTED = Case("x", "", "CONTRADICTED", link="{N2}", says="no flushes")


def returned(
    outcome: str, *links: tuple[str, str, str], reasons: tuple[str, ...] = (), left: str = "", **more: Any
) -> Returned:
    chain = {
        "outcome": outcome,
        "links": [{"name": name, "status": status, "text": text} for name, status, text in links],
        "reasons": reasons,
    }
    report = {"verification": {"chain": chain}, **more}
    return {"json": json.dumps(report).encode(), "names": b"N0 nvme3n1\nN2 nvme0n1\n", "left": left.encode()}


def wrong(case: Case, out: Returned) -> str:
    return "; ".join(problems(case, out))


def test_what_is_as_the_case_says() -> None:
    assert wrong(Case("x", "", "TRACED"), returned("TRACED")) == ""
    assert wrong(CONTRADICTED, returned("CONTRADICTED", ("nvme0n1", "contradicts", "9 writes and no flushes"))) == ""
    case = Case("x", "", "INCONCLUSIVE", says="scrub")
    assert wrong(case, returned("INCONCLUSIVE", reasons=("a scrub ran",))) == ""
    assert wrong(Case("x", "", "TRACED", has="sweep.knee"), returned("TRACED", sweep={"knee": 1})) == ""


@pytest.mark.parametrize(
    ("case", "out", "says"),
    [
        (
            Case("x", "", "TRACED"),
            returned("INCONCLUSIVE", reasons=("a scrub ran",)),
            "INCONCLUSIVE, not TRACED: a scrub ran",
        ),
        (Case("x", "", "TRACED"), returned("TRACED", left=".zaudit-1\n"), "left behind: .zaudit-1"),
        (Case("x", "", "TRACED"), {"exit": b"3", "err": b"no such dataset"}, "no report: 3 | no such dataset"),
        (Case("x", "", "TRACED"), {"json": b"{"}, "no report"),
        (
            CONTRADICTED,
            returned("CONTRADICTED", ("nvme3n1", "contradicts", "no flushes")),
            "nvme3n1 contradicts, not nvme0n1",
        ),
        (CONTRADICTED, returned("CONTRADICTED", ("nvme0n1", "contradicts", "no write")), "no word of 'no flushes'"),
        (CONTRADICTED, returned("CONTRADICTED", ("nvme0n1", "accounts", "no flushes")), "contradicts, not nvme0n1"),
        (Case("x", "", "TRACED", has="sweep.knee"), returned("TRACED", sweep=None), "the report has no sweep.knee"),
    ],
    ids=range(8),
)
def test_what_is_not(case: Case, out: Returned, says: str) -> None:
    assert says in wrong(case, out)


def test_cases() -> None:
    names = [each.name for each in EVERYTHING]
    assert len(set(names)) == len(names)
    assert {each.outcome for each in EVERYTHING} == {"TRACED", "CONTRADICTED", "INCONCLUSIVE"}
    for each in EVERYTHING:
        assert set(each.lines) <= set(LINES)
        assert (each.outcome == "CONTRADICTED") == bool(each.link)
        assert (each.outcome == "TRACED") == (not each.says), "a verdict without its words can be right by accident"


def test_every_case_that_was_run_came_out_as_it_must() -> None:
    """What was not run stands in the table as "not run"."""
    there = {(line, each.name) for each in EVERYTHING for line in each.lines}
    ran = {(row["line"], row["scenario"]): row for row in ROWS}
    assert {(line, name) for line, name in ran if name not in PROGRAMS} <= there
    assert [key for key, row in ran.items() if row["outcome"] != "ok"] == []
    for row in ROWS:
        assert row["verdict"]
        assert row["said"] == []
        assert "+" not in row["version"] + row["judged"], "code that nobody else can look at"


def test_what_was_not_run_and_what_went_wrong_are_shown(tmp_path: Path) -> None:
    row: outcomes.Row = {
        "line": "2.3",
        "zfs": "2.3.9",
        "kernel": "6.12",
        "scenario": "zvol",
        "outcome": "wrong",
        "verdict": "",
    }
    row |= {"said": ["x"], "seconds": 1, "date": "2026-01-01", "version": "aaa", "judged": "bbb"}
    cells = [line for line in tables.verify_table([row]).splitlines() if line.startswith("| zvol ")]
    assert cells == ["| zvol | TRACED | not run | not run | WRONG (aaa, judged anew by bbb) | not run |"]
    special = [line for line in tables.verify_table([]).splitlines() if line.startswith("| special-as-log ")]
    assert special == ["| special-as-log | TRACED | not on this line | not on this line | not on this line | not run |"]
    there = sum("2.3" in each.lines for each in EVERYTHING)
    assert f"| 2.3 | 2.3.9 on Linux 6.12 | {there} | 1 | 0 | {there - 1} | 2026-01-01 |" in tables.case_lines(
        EVERYTHING, [row]
    )
    program = {**row, "scenario": "kill", "outcome": "ok", "verdict": "kill: 0 of 12", "judged": "aaa"}
    assert "| 2.3 | kill | kill: 0 of 12 | yes | 2026-01-01 | aaa |" in tables.verify_programs([row, program])
    assert "| 2.3 | kill | x | NO |" in tables.verify_programs([{**program, "verdict": "", "outcome": "wrong"}])


# -- pairs --------------------------------------------------------------------------------------------------------


def written(folder: Path, *ratios: float) -> Path:
    """Pairs in which zaudit reports so many times what bare fio measured."""
    for number, ratio in enumerate(ratios, 1):
        bins = {"1000": 40, "2000": 60, "9000": 1}
        bare = {"jobs": [{"sync": {"lat_ns": {"bins": bins}}}]}
        ours = {
            "purpose": "log",
            "jobs": [{"latency": {str(round(int(ns) * ratio)): count for ns, count in bins.items()}}],
        }
        (folder / f"bare-{number}.json").write_text(json.dumps(bare))
        (folder / f"zaudit-{number}.json").write_text(
            json.dumps({"verification": {"runs": [{"purpose": "calls"}, ours]}})
        )
    return folder


@pytest.mark.parametrize(
    ("ratios", "code", "says"),
    [
        ((1.0,) * 5, 0, "median of 5 pairs, zaudit to bare fio: p50 1.000, mean 1.000"),
        ((0.5, 1.0, 1.01, 0.99, 1.5, 1.0), 0, "p50 1.000 (95 % from 0.500 to 1.500)"),
        ((1.04,) * 7, 1, "p50 1.040 (95 % from 1.040 to 1.040)"),
        ((0.96,) * 5, 1, "p50 0.960"),
        ((1.0,) * 4, 1, "median of 4 pairs"),
    ],
)
def test_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ratios: tuple[float, ...], code: int, says: str
) -> None:
    assert pairs.main("ratio", [str(written(tmp_path, *ratios))]) == code
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("ratio: ")
    assert says in last


def test_several_series_are_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, ratio in (("a", 1.0), ("b", 1.02)):
        (tmp_path / name).mkdir()
        written(tmp_path / name, *(ratio,) * 3)
    assert pairs.main("turns", [str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert "turns: median of 6 pairs, zaudit to bare fio: p50 1.010" in capsys.readouterr().out


def test_the_interval_of_a_median() -> None:
    assert pairs.interval([1.0] * 5) is None
    assert pairs.interval([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]) == (1.0, 6.0)
    assert pairs.interval([float(i) for i in range(1, 16)]) == (4.0, 12.0)  # tables of the sign test: n = 15
