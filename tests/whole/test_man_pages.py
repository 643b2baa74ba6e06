"""The manual pages say what the commands say, and mandoc has nothing to complain of."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from auditor.cli import COMMANDS, main
from tests import man_pages


def test_each_command_has_one_with_all_its_options() -> None:
    pages = man_pages.pages()
    assert {name for name in pages if name.count("-") < 2} == {f"zaudit-{name}.1" for name in COMMANDS} | {"zaudit.1"}
    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert parameter.opts[-1].replace("-", "\\-") in pages[f"zaudit-{name}.1"], (name, parameter.opts)


def test_the_version_is_that_of_the_package() -> None:
    version = re.search(r"^zaudit \(([\d.]+)-\d+\)", man_pages.RELEASE.read_text())
    assert version
    assert f'"zaudit {version[1]}"' in man_pages.pages()["zaudit.1"]


def test_mandoc_has_nothing_to_complain_of(tmp_path: Path) -> None:
    mandoc = shutil.which("mandoc")
    if not mandoc:
        pytest.skip("mandoc is not installed")
    man_pages.write(tmp_path / "man")
    paths = sorted((tmp_path / "man").iterdir())
    done = subprocess.run([mandoc, "-Tlint", "-Wstyle", *paths], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
