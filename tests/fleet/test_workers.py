"""Recordings judged in other processes: the same rows in the same order, also when a process is killed, hangs or dies."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.fleet import workers
from auditor.fleet.workers import OURS, Bounds, judge_all, judge_lines
from tests.fleet.children import LITTLE, kill, of_this_process
from tests.fleet.fleets import CASES, hungry, spoilt, three
from tests.shared import HOSTS


@pytest.fixture
def names(tmp_path: Path) -> list[str]:
    """Of three hosts, each of them twice, and of files that are no recordings."""
    folder = three(tmp_path)
    good = [str(folder / f"db{number}.tar.gz") for number in (1, 2, 3)]
    return [*good, *map(str, spoilt(folder, folder / "db1.tar.gz").values()), *good]


@pytest.mark.slow
def test_rows_are_equal_in_this_process_in_one_and_in_two(names: list[str]) -> None:
    here = [judge_lines(name, OURS) for name in names]
    assert list(judge_all(names, OURS, Bounds(1))) == here
    assert list(judge_all(names, OURS, Bounds(2))) == here
    assert not of_this_process()


@pytest.mark.slow
def test_a_process_that_is_killed_loses_nothing(names: list[str]) -> None:
    here = [judge_lines(name, OURS) for name in names]
    rows = judge_all(names, OURS, Bounds(2))
    found = [next(rows)]
    for number in of_this_process():
        kill(number)
    assert [*found, *rows] == here


@pytest.mark.slow
def test_one_that_takes_long_does_not_end_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While all wait for it, nothing is under way, and there are more."""
    monkeypatch.setattr(workers, "AHEAD", 1)
    names = [str(hungry(tmp_path)), *(str(tmp_path / f"none{number}") for number in range(5))]
    assert len(list(judge_all(names, OURS, Bounds(2)))) == len(names)


def test_what_takes_too_long_is_a_row(names: list[str]) -> None:
    rows = list(judge_all(names[:2], OURS, Bounds(1, seconds=0.001)))
    assert ["not judged within 0.001 s" in each for each in rows] == [True, True]
    assert not of_this_process()


def test_a_recording_that_kills_each_process_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_CODE", "raise SystemExit(7)")
    (row,) = judge_all([str(HOSTS / CASES[0])], OURS, Bounds(1))
    assert "the process that judged it died 2 times (exit code 7)" in row


@pytest.mark.slow
def test_processes_end_with_whoever_asked_for_them(names: list[str]) -> None:
    rows = judge_all(names, OURS, Bounds(2))
    next(rows)
    assert of_this_process()
    rows.close()  # type: ignore[attr-defined]
    assert not of_this_process()


@pytest.mark.slow
def test_one_process_is_bounded_and_begun_anew(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As a worker of Dask has one."""
    one = workers.Child(OURS)
    whole = judge_lines(names[0], OURS)
    try:
        assert one.judge(names[0], 60) == whole
        assert "not judged within 0.001 s" in one.judge(names[0], 0.001)
        assert one.judge(names[0], 60) == whole
        kill(*of_this_process())
        assert one.judge(names[0], 60) == whole
        one.end()
        monkeypatch.setattr(workers, "_CODE", "raise SystemExit(7)")
        assert "died 2 times (exit code 7)" in one.judge(names[0], 60)
    finally:
        one.end()
    assert not of_this_process()


@pytest.mark.slow
def test_a_recording_that_asks_for_more_memory_than_there_is_is_a_row(
    tmp_path: Path, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_CODE", LITTLE)
    one = workers.Child(OURS)
    try:
        assert "not enough memory to judge it" in one.judge(str(hungry(tmp_path)), 60)
        (same,) = of_this_process()
        assert one.judge(names[0], 60) == judge_lines(names[0], OURS)
        assert of_this_process() == [same]
    finally:
        one.end()
