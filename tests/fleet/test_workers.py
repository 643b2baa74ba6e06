"""Recordings judged in other processes: the same rows in the same order, also when a process is killed, hangs or dies."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from auditor.fleet import workers
from auditor.fleet.judging import OURS, How, judged_lines
from auditor.fleet.workers import Bounds, judged
from tests.fleet.fleets import CASES, spoilt, three
from tests.shared import HOSTS


@pytest.fixture
def names(tmp_path: Path) -> list[str]:
    """Of three hosts, each of them twice, and of files that are no recordings."""
    folder = three(tmp_path)
    good = [str(folder / f"db{number}.tar.gz") for number in (1, 2, 3)]
    return [*good, *map(str, spoilt(folder, folder / "db1.tar.gz").values()), *good]


@pytest.mark.slow
def test_rows_are_equal_in_this_process_in_one_and_in_two(names: list[str]) -> None:
    here = [judged_lines(name, OURS) for name in names]
    assert list(judged(names, OURS, Bounds(1))) == here
    assert list(judged(names, OURS, Bounds(2))) == here
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_a_process_that_is_killed_loses_nothing(names: list[str]) -> None:
    here = [judged_lines(name, OURS) for name in names]
    rows = judged(names, OURS, Bounds(2))
    found = [next(rows)]
    for child in multiprocessing.active_children():
        child.kill()
        child.join()
    assert [*found, *rows] == here


def test_what_takes_too_long_is_a_row(names: list[str]) -> None:
    rows = list(judged(names[:2], OURS, Bounds(1, seconds=0.001)))
    assert ["not judged within 0.001 s" in each for each in rows] == [True, True]
    assert not multiprocessing.active_children()


def _dies(pipe: Connection, how: How) -> None:
    pipe.recv_bytes()
    os._exit(7)


def test_a_recording_that_kills_each_process_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_work", _dies)
    (row,) = judged([str(HOSTS / CASES[0])], OURS, Bounds(1))
    assert "the process that judged it died 2 times (exit code 7)" in row


def test_processes_end_with_whoever_asked_for_them(names: list[str]) -> None:
    rows = judged(names, OURS, Bounds(2))
    next(rows)
    assert multiprocessing.active_children()
    rows.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()
