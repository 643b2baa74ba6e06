"""zaudit started by root from a folder, with a PATH and in an environment that somebody else has laid out."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests import make_zipapp
from tests.golden import CANONICAL, HOSTS
from tests.shared import briefly

REPLAY = ("check", "--replay", str(HOSTS / CANONICAL))
MODULES = ("click", "typing", "json", "tomllib", "rich", "pyudev", "psycopg", "libzfs_core", "ctypes", "subprocess")


def trapped(folder: Path) -> Path:
    """A folder with modules and programs that leave their name in the file "mark"."""
    for name in MODULES:
        (folder / f"{name}.py").write_text(f"open({str(folder / 'mark')!r}, 'a').write('{name} ')\n")
    for name in ("python3", "env", "sh"):
        (folder / name).write_text(f"#!/bin/sh\necho {name} >>{folder}/mark\n")
        (folder / name).chmod(0o755)
    return folder


def run(argv: tuple[str, ...], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        cwd=folder,
        env={"PATH": f"{folder}:/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("words", briefly([(("--version",),), (("rules",),), (REPLAY,)], quick=1))
def test_nothing_is_imported_from_the_folder_of_the_caller(tmp_path: Path, words: tuple[str, ...]) -> None:
    folder = trapped(tmp_path)
    for program in ((sys.executable, "-m", "auditor"), (f"{sysconfig.get_path('scripts')}/zaudit",)):
        done = run((*program, *words), folder)
        assert done.returncode in (0, 14), done.stderr
        assert not (folder / "mark").exists(), (folder / "mark").read_text()


def test_the_archive_takes_no_interpreter_and_no_module_of_the_caller(tmp_path: Path) -> None:
    if not os.access("/usr/bin/python3", os.X_OK):
        pytest.skip("there is no /usr/bin/python3")
    folder, archive = trapped(tmp_path), tmp_path / "zaudit.pyz"
    with archive.open("wb") as file:
        file.write(make_zipapp.SHEBANG)
        with zipfile.ZipFile(file, "w") as packed:
            packed.writestr("__main__.py", "import sys, json, typing; print(sys.flags.isolated, sys.executable)\n")
    archive.chmod(0o755)
    done = run((str(archive),), folder, PYTHONPATH=str(folder), PYTHONHOME="/nowhere", HOME=str(folder))
    assert done.stdout.split()[0] == "1", done.stderr
    assert done.stdout.split()[1].startswith("/usr/bin/")
    assert not (folder / "mark").exists()


def test_nothing_is_compiled_beside_the_modules(tmp_path: Path) -> None:
    script = "import sys; sys.argv = ['zaudit', '--version']\nfrom auditor.__main__ import main\nimport atexit, os\n"
    script += (
        "old = os._exit\nos._exit = lambda code: (print(sys.dont_write_bytecode, flush=True), old(code))\nmain()\n"
    )
    done = run((sys.executable, "-c", script), tmp_path)
    assert done.stdout.split()[-1] == "True"
