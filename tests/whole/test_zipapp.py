"""What zaudit.pyz does before it imports anything: on a Python that is too old it says in one line what it needs."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests import make_zipapp


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 6, 8), (3, 9, 18), (3, 10, 12)])
def test_an_old_python_is_told_what_is_needed(
    version: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setitem(sys.modules, "auditor.__main__", None)  # importing it would raise
    with pytest.raises(SystemExit) as ended:
        exec(compile(make_zipapp.ENTRY, "__main__.py", "exec"), {})
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "needs Python 3.11 or later" in said
    assert f"is {version[0]}.{version[1]}: " in said


def test_any_python_3_can_read_it() -> None:
    ast.parse(make_zipapp.ENTRY, feature_version=(3, 4))
    assert 'f"' not in make_zipapp.ENTRY


def test_what_it_needs_is_what_the_package_says() -> None:
    setup = (Path(make_zipapp.ROOT) / "setup.cfg").read_text()
    needed = re.search(r"python_requires = >=(\d+)\.(\d+)", setup)
    assert needed
    assert tuple(map(int, needed.groups())) == make_zipapp.OLDEST


def test_what_it_is_made_of_is_said() -> None:
    """The packages that are installed here, in place of those that would be packed."""
    folder = Path(next(iter(importlib.metadata.distribution("rich").files or ())).locate()).parent.parent
    bill = make_zipapp.bill_of_materials(folder, "0" * 64)
    names = {part["name"] for part in bill["components"]}
    assert {"click", "rich", "pyudev"} <= names
    assert not {"pygments", "markdown-it-py", "mdurl", "zaudit"} & names
    assert bill["metadata"]["component"]["name"] == "zaudit"
    assert json.dumps(bill) == json.dumps(make_zipapp.bill_of_materials(folder, "0" * 64))
    by_name = {part["name"]: part for part in bill["components"]}
    assert by_name["click"]["purl"] == f"pkg:pypi/click@{importlib.metadata.version('click')}"
    strict = pytest.importorskip(
        "cyclonedx.validation.json", reason="cyclonedx-python-lib[json-validation] is not installed"
    )
    version = import_module("cyclonedx.schema").SchemaVersion.V1_6
    assert strict.JsonStrictValidator(version).validate_str(json.dumps(bill)) is None


def test_sums_of_what_was_built_before_stay(tmp_path: Path) -> None:
    one, two, gone = (tmp_path / name for name in ("zaudit.pyz", "zaudit-record.py", "older.txt"))
    for each in (one, two, gone):
        each.write_text(each.name)
    make_zipapp.sums(gone)
    gone.unlink()
    make_zipapp.sums(two)
    make_zipapp.sums(one)
    done = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "zaudit-record.py: OK\nzaudit.pyz: OK\n"
    one.write_text("changed")
    make_zipapp.sums(one)
    assert subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path).returncode == 0
