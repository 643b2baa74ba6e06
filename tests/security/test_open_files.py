"""What a process has open is told by what it is, and not by what that process calls it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from auditor.host.live import LiveHost
from auditor.host.request import Files, Read

IN_MOUNTS_OF_HIS_OWN = ("unshare", "--user", "--map-root-user", "--mount")


@contextmanager
def running(code: str, *words: str, before: tuple[str, ...] = ()) -> Iterator[int]:
    """A process that runs this, once it has said so; its number."""
    with subprocess.Popen(
        [*before, sys.executable, "-c", code, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            if not process.stdout.readline().startswith("ready"):
                pytest.skip("a user may have no mounts of his own here")
            yield process.pid
        finally:
            process.kill()


def opened(number: int) -> Files:
    return LiveHost(30.0).read(Read((f"/proc/{number}/fd/*",)))


def device(path: Path | str) -> str:
    number = os.stat(path).st_dev
    return f"{os.major(number)}:{os.minor(number)}"


def test_how_it_is_open_and_what_it_is(tmp_path: Path) -> None:
    code = """
import os, sys
path = sys.argv[1]
for at, flags in enumerate((os.O_RDWR, os.O_RDONLY, os.O_WRONLY | os.O_APPEND, os.O_PATH), 10):
    os.dup2(os.open(path, flags), at)
os.dup2(os.memfd_create("ram"), 14)
os.dup2(os.open(os.path.dirname(path), os.O_RDONLY), 15)
os.dup2(os.open("/dev/null", os.O_RDWR), 16)
print("ready", flush=True)
sys.stdin.read()
"""
    path = tmp_path / "disk.img"
    path.touch()
    with running(code, str(path)) as number:
        found = opened(number)
    said = {at: found.devices[f"/proc/{number}/fd/{at}"] for at in range(10, 17)}
    assert not found.errors
    here = device(path)
    assert [said[at].rpartition(" ")[0] for at in (10, 11, 12)] == [f"{how} file {here}" for how in "wrw"]
    assert said[14].endswith(" -")
    assert {said[at] for at in (13, 15, 16)} == {"neither"}


def test_a_file_that_is_mounted_over_a_device_is_a_file(tmp_path: Path) -> None:
    code = """
import os, subprocess, sys
if subprocess.run(["mount", "--bind", sys.argv[1], "/dev/null"]).returncode == 0:
    os.dup2(os.open("/dev/null", os.O_RDWR), 10)
    print("ready", flush=True)
    sys.stdin.read()
print("no")
"""
    path = tmp_path / "mine"
    path.touch()
    with running(code, str(path), before=IN_MOUNTS_OF_HIS_OWN) as number:
        found = opened(number)
    assert found.links[f"/proc/{number}/fd/10"] == "/dev/null"
    assert found.devices[f"/proc/{number}/fd/10"].startswith(f"w file {device(path)} ")


def test_what_it_may_write_is_not_what_it_only_names() -> None:
    """While it puts a path that anybody may name, and a file of its own, behind one descriptor in turns."""
    code = """
import os, sys
mine, its = os.memfd_create("mine"), os.open(sys.argv[1], os.O_PATH)
os.dup2(mine, 10)
print("ready", flush=True)
while True:
    os.dup2(its, 10)
    os.dup2(mine, 10)
"""
    with running(code, sys.executable) as number:
        seen = set[str]()
        for _ in range(25):
            found = opened(number)
            seen.add(found.devices.get(f"/proc/{number}/fd/10", "") or found.errors[f"/proc/{number}/fd/10"])
    files = {each for each in seen if " file " in each}
    assert all(each.endswith(" -") for each in files)
    assert seen - files <= {"neither", "another one was opened while it was looked at"}
    assert len(seen) > 1
