"""A cluster of two machines, each a network namespace on one bridge: the same rows, also when one of them dies in mid-run, and
with recordings and rows in a store. Skipped without root, iproute2, namespaces or Dask."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path

import pytest

from tests.fleet.fleets import CASES, fleet
from tests.fleet.network import HUB, NEEDS, NET, end, ended, inside, network, until
from tests.fleet.servers import KEYS

ROOT = Path(__file__).parents[2]
SCHEDULER, STORE = f"tcp://{NET}.1:8786", f"http://{NET}.1:5000"
HOSTS = 40
pytestmark = [pytest.mark.slow, NEEDS]


@pytest.fixture
def workers() -> Iterator[list[str]]:
    """The names of two machines."""
    with network(2) as names:
        yield names


def python(name: str, *words: object, more: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Python in a namespace."""
    argv = inside(name, sys.executable, "-W", "ignore", *words)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE if "auditor" in words else subprocess.DEVNULL}
    return subprocess.Popen(argv, cwd=ROOT, env={**os.environ, **(more or {})}, start_new_session=True, **streams)  # type: ignore[call-overload, no-any-return]


@contextmanager
def cluster(
    names: list[str], folder: Path, more: Mapping[str, str] | None = None
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The workers of a scheduler that runs on the bridge."""
    pytest.importorskip("distributed")
    said = "distributed.cli.dask_scheduler"
    with ended(
        python(
            HUB, "-m", said, "--host", f"{NET}.1", "--port", "8786", "--no-dashboard", "--scheduler-file", folder / "s"
        )
    ) as one:
        until((folder / "s").exists, one)
        with ExitStack() as left:
            yield [
                left.enter_context(ended(python(
                    name, "-m", "distributed.cli.dask_worker", SCHEDULER, "--nthreads", "1", "--no-dashboard",
                    "--local-directory", folder / name, more=more,
                ))) for name in names
            ]  # fmt: skip


def judged(*words: object, more: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """``zaudit fleet judge`` on the bridge."""
    return python(HUB, "-m", "auditor", "fleet", "judge", *words, more=more)


def said(run: subprocess.Popen[bytes]) -> str:
    """On standard error, once it has ended well."""
    text = run.communicate()[1].decode()
    assert run.returncode == 0, text
    return text


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    return fleet(
        tmp_path / "recordings",
        {f"db{number:02}": case for number, case in zip(range(HOSTS), cycle(CASES), strict=False)},
    )


def test_a_machine_that_dies_in_mid_run_loses_nothing(workers: list[str], recordings: Path, tmp_path: Path) -> None:
    part = tmp_path / "there.part"
    said(judged(recordings, "-q", "-o", tmp_path / "here", "--jobs", "1"))
    with cluster(workers, tmp_path) as started:
        run = judged(recordings, "--engine", f"dask={SCHEDULER}", "-o", tmp_path / "there")
        until(lambda: part.exists() and part.read_bytes().count(b"\n") > 5, run)
        end(started[0])
        assert part.exists(), "it was over before the machine died"
        assert started[1].poll() is None
        assert f"{HOSTS} recordings: {HOSTS} judged, 0 could not be judged" in said(run)
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_recordings_and_rows_in_a_store(workers: list[str], recordings: Path, tmp_path: Path) -> None:
    """Every machine reads the recordings itself, from a server on the bridge."""
    pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    own = {**KEYS, "AWS_ENDPOINT_URL": STORE}
    fill = "import s3fs, sys; s = s3fs.S3FileSystem(); s.mkdir('fleet'); s.put(sys.argv[1] + '/', 'fleet/r/', recursive=True)"
    take = "import s3fs, sys; s3fs.S3FileSystem().get('fleet/rows', sys.argv[1])"
    with ended(python(HUB, "-m", "moto.server", "-H", f"{NET}.1", "-p", "5000")) as server:
        ready = ("-c", f"import urllib.request; urllib.request.urlopen('{STORE}/moto-api/')")
        until(lambda: python(HUB, *ready).wait() == 0, server)
        assert python(HUB, "-c", fill, recordings, more=own).wait() == 0
        with cluster(workers, tmp_path, own):
            said(judged("s3://fleet/r", "--engine", f"dask={SCHEDULER}", "-o", "s3://fleet/rows", more=own))
        assert python(HUB, "-c", take, tmp_path / "there", more=own).wait() == 0
    said(judged(recordings, "-q", "-o", tmp_path / "here", "--jobs", "1"))
    ours = (tmp_path / "here").read_text().replace(f"{recordings}/", "s3://fleet/r/")
    assert (tmp_path / "there").read_text() == ours
