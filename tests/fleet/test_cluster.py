"""The workers of Dask make the same rows, also when one of them is killed. Skipped where it is not installed."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from auditor.errors import Stop
from auditor.fleet import cluster
from auditor.fleet.judging import OURS, judged_lines
from auditor.fleet.workers import Bounds
from tests.fleet.fleets import spoilt, three


@pytest.fixture
def names(tmp_path: Path) -> list[str]:
    folder = three(tmp_path)
    good = [str(folder / f"db{number}.tar.gz") for number in (1, 2, 3)]
    return [*good, *map(str, spoilt(folder, folder / "db1.tar.gz").values()), *good]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_rows_are_those_of_one_process_though_a_worker_is_killed(names: list[str]) -> None:
    pytest.importorskip("distributed")
    here = [judged_lines(name, OURS) for name in names]
    rows = cluster.judged(names, OURS, Bounds(2))
    found = [next(rows)]
    worker = multiprocessing.active_children()[0]
    worker.kill()
    assert [*found, *rows] == here


@pytest.mark.filterwarnings("ignore")
def test_nobody_at_the_address() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(Stop, match="Dask at"):
        list(cluster.judged(["a"], OURS, Bounds(1), "tcp://127.0.0.1:9"))


def test_without_dask_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(Stop, match="pip install"):
        list(cluster.judged(["a"], OURS, Bounds(1)))
