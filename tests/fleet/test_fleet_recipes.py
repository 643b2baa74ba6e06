"""The lines of docs/fleet.md for Salt and for cron with object storage, as they stand there, but for the folders. In place of
zaudit.pyz is a program that has made its recording before. Skipped where Salt, or aws and a store, are not installed."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.fleets import CASES, fleet
from tests.fleet.servers import KEYS, KINDS, s3

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs/fleet.md").read_text()
ZAUDIT = f'zaudit() {{ PYTHONPATH={shlex.quote(str(ROOT))} {shlex.quote(sys.executable)} -m auditor "$@"; }}\n'
PROGRAM = """import shutil, sys
*words, place = sys.argv[1:]
assert words == ["record", "--redact", "-o"], words
shutil.copyfile({recording!r}, place)
"""
pytestmark = pytest.mark.slow


def recipe(title: str, instead: Mapping[str, object]) -> str:
    """The lines below a title, with other folders."""
    found = re.search(rf"^\*\*{title}\*\*.*?^```sh\n(.*?)^```", DOCS, re.M | re.S)
    assert found
    text = found[1]
    for folder, other in instead.items():
        assert folder in text
        text = text.replace(folder, str(other))
    return text


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """What is called in place of zaudit.pyz."""
    made = fleet(tmp_path / "made", {"db1": CASES[0]}) / "db1.tar.gz"
    (tmp_path / "zaudit.pyz").write_text(PROGRAM.format(recording=str(made)))
    return tmp_path / "zaudit.pyz"


def sh(text: str, folder: Path, more: Mapping[str, str]) -> str:
    """Run by the shell of the machine, with the zaudit of this Python; what it printed."""
    argv, around = ["sh", "-euc", ZAUDIT + text], {**os.environ, **more}
    done = subprocess.run(argv, cwd=folder, env=around, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def judged(path: Path) -> list[tuple[str, str]]:
    """(name, standing) of each host."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
    return [(row["name"], row.get("standing", row["kind"])) for row in rows if row["kind"] != "finding"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_cron_and_object_storage(kind: str, program: Path, tmp_path: Path) -> None:
    pytest.importorskip("s3fs")
    if not shutil.which("aws"):
        pytest.skip("no aws here (pip install awscli)")
    with s3(kind, tmp_path / "server") as url:
        own = {**KEYS, "AWS_ENDPOINT_URL": url, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
        sh("aws s3 mb s3://zaudit", tmp_path, own)
        before = set(tmp_path.iterdir())
        sh(recipe("cron and object storage", {"/usr/local/lib/zaudit.pyz": program}), tmp_path, own)
        assert set(tmp_path.iterdir()) == before
        (tmp_path / "hosts").write_text(f"{socket.gethostname()}\n")
        sh("zaudit fleet judge s3://zaudit --inventory hosts -o rows", tmp_path, own)
    assert judged(tmp_path / "rows") == [(socket.gethostname(), "lost")]


@pytest.fixture
def salt(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A master and the minion db1 of it; the environment in which salt is called."""
    if not shutil.which("salt-master"):
        pytest.skip("no Salt here (pip install salt)")
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        publish, back = one.getsockname()[1], other.getsockname()[1]
    master = {"interface": "127.0.0.1", "root_dir": f"{tmp_path}/m", "publish_port": publish, "ret_port": back,
              "auto_accept": True, "file_recv": True}  # fmt: skip
    minion = {
        "id": "db1",
        "master": "127.0.0.1",
        "root_dir": f"{tmp_path}/n",
        "publish_port": publish,
        "master_port": back,
    }
    around = {**os.environ, "SALT_MASTER_CONFIG": f"{tmp_path}/c/master"}
    with ExitStack() as left:
        for name, settings in (("master", master), ("minion", minion)):
            folder = tmp_path / "c"
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(json.dumps(settings))
            argv = [f"salt-{name}", "-c", str(folder), "-l", "critical"]
            process = subprocess.Popen(
                argv, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            left.callback(process.wait)
            left.callback(os.killpg, process.pid, 9)
        end = time.monotonic() + 180
        while (
            b"True"
            not in subprocess.run(["salt", "db1", "test.ping"], env=around, capture_output=True, check=False).stdout
        ):
            assert time.monotonic() < end
        yield around


def test_salt(salt: dict[str, str], program: Path, tmp_path: Path) -> None:
    minions, lib = tmp_path / "m/var/cache/salt/master/minions", tmp_path / "lib"
    folders = {"/usr/local/lib/zaudit.pyz": program, "/var/cache/salt/master/minions": minions, "/var/lib/zaudit": lib}
    text = recipe("Salt", folders)
    for _ in range(2):  # the second time over what the first one left
        sh(text, tmp_path, salt)
        assert judged(tmp_path / "findings.jsonl") == [("db1", "lost")]
    assert lib.stat().st_mode & 0o777 == 0o700
