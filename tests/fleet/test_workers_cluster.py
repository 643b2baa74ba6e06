"""The workers of Dask make the same rows, also when one of them is killed. Skipped where it is not installed."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from auditor import Stop, __version__
from auditor.fleet import workers
from auditor.fleet.workers import OURS, Bounds, How, judge_lines
from tests.fleet.children import LITTLE, of_this_process
from tests.fleet.fleets import hungry, spoilt, three


@pytest.fixture
def names(tmp_path: Path) -> list[str]:
    folder = three(tmp_path)
    good = [str(folder / f"db{number}.tar.gz") for number in (1, 2, 3)]
    return [*good, *map(str, spoilt(folder, folder / "db1.tar.gz").values()), *good]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_rows_are_those_of_one_process_though_a_worker_is_killed(names: list[str]) -> None:
    pytest.importorskip("distributed")
    here = [judge_lines(name, OURS) for name in names]
    rows = workers.judge_by_dask(names, OURS, Bounds(2))
    found = [next(rows)]
    worker = multiprocessing.active_children()[0]
    worker.kill()
    assert [*found, *rows] == here


@pytest.mark.filterwarnings("ignore")
def test_nobody_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "PATIENCE", 1.0)
    with pytest.raises(Stop, match="Dask at"):
        list(workers.judge_by_dask(["a"], OURS, Bounds(1), "tcp://127.0.0.1:9"))


@contextmanager
def running(*words: object) -> Iterator[subprocess.Popen[bytes]]:
    """A part of a cluster, in a process of its own."""
    argv = [sys.executable, "-W", "ignore", "-m", *map(str, words), "--no-dashboard"]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_ends_is_no_row(names: list[str], tmp_path: Path) -> None:
    """Of what was not judged nothing is said, so that a run that goes on judges it."""
    pytest.importorskip("distributed")
    told = tmp_path / "scheduler"
    scheduler = running(
        "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", told
    )
    worker = running("distributed.cli.dask_worker", "--scheduler-file", told, "--nthreads", "1", "--no-nanny")
    with pytest.importorskip("dask").config.set({"distributed.comm.timeouts.connect": "1s"}), scheduler as one, worker:
        while not (told.exists() and told.read_text().endswith("}")):  # it is written in steps
            assert one.poll() is None
            time.sleep(0.05)
        rows = workers.judge_by_dask(names * 50, OURS, Bounds(1), json.loads(told.read_text())["address"])
        assert next(rows) == judge_lines(names[0], OURS)
        one.kill()
        with pytest.raises(workers.NoCluster, match="Dask at"):
            list(rows)


@pytest.mark.filterwarnings("ignore")
def test_a_worker_with_another_zaudit_judges_nothing(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, processes=False) as here:
        submit = distributed.Client.submit

        def older(self: object, call: object, name: str, how: object, seconds: float, _: str, **more: object) -> object:
            return submit(self, call, name, how, seconds, "0.0.1", **more)

        monkeypatch.setattr(distributed.Client, "submit", older)
        with pytest.raises(workers.NoCluster, match=r"a worker has zaudit .*, and not 0\.0\.1"):
            list(workers.judge_by_dask(names, OURS, Bounds(1), here.scheduler_address))


@pytest.mark.slow
def test_no_recording_takes_the_memory_of_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is judged in a process of ours; the worker, which is this process here, reads no recording."""
    monkeypatch.setattr(workers, "_CODE", LITTLE)
    bad, good = str(hungry(tmp_path)), str(three(tmp_path) / "db1.tar.gz")
    try:
        assert "not enough memory to judge it" in workers.on_a_worker(bad, OURS, 60, __version__)
        assert workers.on_a_worker(good, OURS, 60, __version__) == judge_lines(good, OURS)
        other = How(policy="[rules]\n", policy_path="/etc/fleet.toml")
        assert workers.on_a_worker(good, other, 60, __version__) == judge_lines(good, other)
        assert len(of_this_process()) == 1
    finally:
        workers._OWN.child.end()
        del workers._OWN.child, workers._OWN.how


def test_without_dask_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(Stop, match="pip install"):
        list(workers.judge_by_dask(["a"], OURS, Bounds(1)))
