"""A cluster of two machines, each a network namespace on one bridge: the same rows, also when one of them dies in mid-run, and
with recordings and rows in a store. Skipped without root, iproute2, namespaces or Dask."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path

import pytest

from tests.fleet.fleets import CASES, fleet
from tests.fleet.servers import KEYS

ROOT = Path(__file__).parents[2]
NET, SCHEDULER, STORE = "10.213.77", "tcp://10.213.77.1:8786", "http://10.213.77.1:5000"
HUB, WORKERS = f"zf{os.getpid()}h", (f"zf{os.getpid()}a", f"zf{os.getpid()}b")
HOSTS = 40
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="needs root and ip (apt install iproute2)"),
]


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no network namespaces here: {done.stderr.strip()}")


@pytest.fixture
def network() -> Iterator[None]:
    """A bridge in a namespace of its own, and two more namespaces on it."""
    with ExitStack() as left:
        for name in (HUB, *WORKERS):
            ip("netns", "add", name)
            left.callback(subprocess.run, ["ip", "netns", "delete", name], check=False)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", HUB, "link", "add", "bridge0", "type", "bridge")
        ip("-n", HUB, "address", "add", f"{NET}.1/24", "dev", "bridge0")
        ip("-n", HUB, "link", "set", "bridge0", "up")
        for number, name in enumerate(WORKERS):
            ip("link", "add", f"port{number}", "netns", HUB, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", HUB, "link", "set", f"port{number}", "master", "bridge0", "up")
            ip("-n", name, "address", "add", f"{NET}.{number + 2}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
        yield


def inside(name: str, *words: object, more: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Python in a namespace."""
    argv = ["ip", "netns", "exec", name, sys.executable, "-W", "ignore", *map(str, words)]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE if "auditor" in words else subprocess.DEVNULL}
    return subprocess.Popen(argv, cwd=ROOT, env={**os.environ, **(more or {})}, start_new_session=True, **streams)  # type: ignore[call-overload, no-any-return]


@contextmanager
def running(name: str, *words: object, more: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    process = inside(name, *words, more=more)
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """With all that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def until(true: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait for it, as long as the process runs that is to make it so."""
    while not true():
        assert process.poll() is None
        time.sleep(0.02)


@contextmanager
def cluster(folder: Path, more: Mapping[str, str] | None = None) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The workers of a scheduler that runs on the bridge."""
    pytest.importorskip("distributed")
    said = "distributed.cli.dask_scheduler"
    with running(
        HUB, "-m", said, "--host", f"{NET}.1", "--port", "8786", "--no-dashboard", "--scheduler-file", folder / "s"
    ) as one:
        until((folder / "s").exists, one)
        with ExitStack() as left:
            yield [
                left.enter_context(running(
                    name, "-m", "distributed.cli.dask_worker", SCHEDULER, "--nthreads", "1", "--no-dashboard",
                    "--local-directory", folder / name, more=more,
                )) for name in WORKERS
            ]  # fmt: skip


def judged(*words: object, more: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """``zaudit fleet judge`` on the bridge."""
    return inside(HUB, "-m", "auditor", "fleet", "judge", *words, more=more)


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


def test_a_machine_that_dies_in_mid_run_loses_nothing(network: None, recordings: Path, tmp_path: Path) -> None:
    part = tmp_path / "there.part"
    said(judged(recordings, "-q", "-o", tmp_path / "here", "--jobs", "1"))
    with cluster(tmp_path) as workers:
        run = judged(recordings, "--engine", f"dask={SCHEDULER}", "-o", tmp_path / "there")
        until(lambda: part.exists() and part.read_bytes().count(b"\n") > 5, run)
        end(workers[0])
        assert part.exists(), "it was over before the machine died"
        assert workers[1].poll() is None
        assert f"{HOSTS} recordings: {HOSTS} judged, 0 could not be judged" in said(run)
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_recordings_and_rows_in_a_store(network: None, recordings: Path, tmp_path: Path) -> None:
    """Every machine reads the recordings itself, from a server on the bridge."""
    pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    own = {**KEYS, "AWS_ENDPOINT_URL": STORE}
    fill = "import s3fs, sys; s = s3fs.S3FileSystem(); s.mkdir('fleet'); s.put(sys.argv[1] + '/', 'fleet/r/', recursive=True)"
    take = "import s3fs, sys; s3fs.S3FileSystem().get('fleet/rows', sys.argv[1])"
    with running(HUB, "-m", "moto.server", "-H", f"{NET}.1", "-p", "5000") as server:
        ready = ("-c", f"import urllib.request; urllib.request.urlopen('{STORE}/moto-api/')")
        until(lambda: inside(HUB, *ready).wait() == 0, server)
        assert inside(HUB, "-c", fill, recordings, more=own).wait() == 0
        with cluster(tmp_path, own):
            said(judged("s3://fleet/r", "--engine", f"dask={SCHEDULER}", "-o", "s3://fleet/rows", more=own))
        assert inside(HUB, "-c", take, tmp_path / "there", more=own).wait() == 0
    said(judged(recordings, "-q", "-o", tmp_path / "here", "--jobs", "1"))
    ours = (tmp_path / "here").read_text().replace(f"{recordings}/", "s3://fleet/r/")
    assert (tmp_path / "there").read_text() == ours
