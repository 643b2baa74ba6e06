"""What root's zaudit executes: commands that sources declare, from fixed folders in which nobody but root may have put them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from auditor.host import builtin, live, process
from auditor.host.request import Run
from auditor.sources import commands
from tests.golden import CANONICAL, HOSTS
from tests.shared import briefly

ROOT = Path(__file__).parents[2]
EVIL = 5000
UDEV = (
    "from auditor.host import builtin, live; from auditor.host.request import Run;"
    "print(live.LiveHost(20).run(Run(builtin.UDEV_ARGV)).fault)"
)
SCRIPT = """from __future__ import annotations
import ctypes.util
print([ctypes.util.find_library(name) for name in ("c", "nonsense")])
"""
needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user: needs root")


@pytest.fixture
def fakes(tmp_path: Path) -> Path:
    """A folder of the caller's PATH with everything in it that ctypes.util.find_library, and zaudit, look for."""
    place = tmp_path / "bin"
    place.mkdir()
    for name in (
        "gcc",
        "cc",
        "ld",
        "ldconfig",
        "objdump",
        "zfs",
        "zpool",
        "zdb",
        "udevadm",
        "nvme",
        "python3",
        "sh",
        "uname",
    ):
        (place / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\n")
        (place / name).chmod(0o755)
    return place


def executed(argv: list[str], fakes: Path) -> list[str]:
    """The programs that it starts, itself not counted."""
    trace = fakes.parent / "trace"
    path = f"{fakes}:{os.environ['PATH']}"
    traced = ["strace", "-f", "-qq", "-e", "trace=execve,execveat", "-o", str(trace), *argv]
    done = subprocess.run(
        traced, capture_output=True, cwd=ROOT, env={**os.environ, "PATH": path}, check=False, timeout=120, text=True
    )
    if "ptrace" in done.stderr:
        pytest.skip("no process may be traced here")
    assert done.returncode in (0, 3, *range(10, 15)), done.stderr
    found: list[str] = re.findall(r'execve(?:at)?\("([^"]*)"', trace.read_text())
    return found[1:]


def ran(fakes: Path) -> set[str]:
    """Which of the fakes were started."""
    return {each.name for each in fakes.parent.glob("ran-*")}


@needs_strace
def test_no_program_is_started_to_find_a_library(fakes: Path) -> None:
    pytest.importorskip("pyudev")
    started = executed([sys.executable, "-c", UDEV], fakes)
    assert not ran(fakes)
    assert [
        each for each in started if not each.endswith("/udevadm")
    ] == []  # where libudev is missing the command runs


@needs_strace
def test_a_script_starts_no_program_to_find_a_library(fakes: Path) -> None:
    assert executed([sys.executable, "-I", "-c", builtin.script(SCRIPT)], fakes) == []
    assert not ran(fakes)
    assert executed([sys.executable, "-I", "-c", SCRIPT], fakes)  # as it would be
    assert "ran-gcc" in ran(fakes)


@pytest.mark.slow
@needs_strace
@pytest.mark.parametrize(
    "words",
    briefly(
        [
            (("check",),),
            (("--version",),),
            (("record", "-o", "REC"),),
            (("check", "--replay", str(HOSTS / CANONICAL), "--format", "json"),),
            (("explain", "sync-disabled"),),
            (("diff", str(HOSTS / CANONICAL), str(HOSTS / CANONICAL)),),
        ],
        quick=1,
    ),
)
def test_what_commands_start(words: tuple[str, ...], fakes: Path, tmp_path: Path) -> None:
    given = [str(tmp_path / "rec.tar.gz") if word == "REC" else word for word in words]
    started = executed([sys.executable, "-m", "auditor", *given], fakes)
    started = [each for each in started if each != sys.executable]  # its own readers
    assert not ran(fakes)
    names = {each.begins[0] for each in commands()} | {"perccli64", "storcli", "perccli"}
    assert [each for each in started if not each.startswith(tuple(f"{place}/" for place in process.PATH))] == []
    assert {Path(each).name for each in started} <= names
    assert not started or words[0] in ("check", "record")


def test_libraries_by_their_sonames() -> None:
    script = builtin.script(SCRIPT)
    assert script.startswith("from __future__ import annotations\n")
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "['libc.so.6', None]\n"


@as_root
@pytest.mark.parametrize("what", ["root", "file of another", "folder of another", "link of another", "file", "folder"])
def test_a_tool_that_others_could_have_changed_is_not_run(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, real = tmp_path / "bin", tmp_path / "real"
    for each in (place, real):
        each.mkdir()
    (real / "zpool").write_text("#!/bin/sh\necho it ran\n")
    (real / "zpool").chmod(0o755)
    (place / "zpool").symlink_to(real / "zpool")
    match what:
        case "file of another":
            os.chown(real / "zpool", EVIL, EVIL)
        case "folder of another":
            os.chown(real, EVIL, EVIL)
        case "link of another":
            os.chown(place, EVIL, EVIL)
        case "file":
            (real / "zpool").chmod(0o757)
        case "folder":
            real.chmod(0o777)
    monkeypatch.setattr(live, "PATH", (str(place),))
    found = live.LiveHost(20).run(Run(("zpool", "list")))
    if what == "root":
        assert found.stdout == b"it ran\n"
    else:
        assert found.fault.startswith(f"not run: {place}/zpool: another user could have put it there: {tmp_path}/")


@as_root
@pytest.mark.parametrize(("mode", "run"), [(0o1775, True), (0o775, False)])
def test_a_tool_of_the_store_of_nix_is_run_where_its_builders_cannot_change_it(
    mode: int, run: bool, tmp_path: Path
) -> None:
    """The group that builds may write into the store. (Nix manual, Multi-User Mode: chmod 1775 /nix/store)"""
    store, links = tmp_path / "store", tmp_path / "sw"
    tool = store / "abc-zfs" / "bin" / "zfs"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o555)
    os.chown(store, 0, EVIL)
    store.chmod(mode)
    links.mkdir()
    (links / "zfs").symlink_to(tool)
    found, why = process.find_program(["zfs"], (str(links),))
    assert bool(found) == run
    assert ("another user could have put it there" in why) != run
