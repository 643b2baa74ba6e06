"""Who may import whom. The drawing in auditor/__init__.py is held here."""

import ast
from pathlib import Path
from typing import Any

AUDITOR = Path(__file__).parent.parent / "auditor"
STAGES = {
    "facts": set(),
    "text": set(),
    "data": set(),
    "collect": {"facts", "text"},
    "derive": {"facts", "text", "data"},
    "judge": {"facts", "text"},
    "report": {"facts", "text", "judge"},
    "registry": {"facts", "collect", "derive"},
    "rulebook": {"judge", "registry", "data"},
}
# only these touch the machine: the seam, and the two libraries that it calls
MACHINE = {"subprocess", "os", "socket", "glob", "shutil", "tempfile", "selectors", "signal", "resource", "importlib"}
SEAM = {
    "__main__.py",
    "collect/host.py",
    "collect/udev_db.py",
    "collect/lzc.py",
    "cli.py",
    "commands/_terminal.py",
    "registry.py",
    "rulebook.py",
    "data/__init__.py",
}


def modules() -> Any:
    return sorted(AUDITOR.rglob("*.py"))


def imports(path: Any) -> Any:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module == "auditor":
                yield from (f"auditor.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_every_stage_imports_only_what_comes_before_it() -> None:
    wrong = []
    for path in modules():
        relative = path.relative_to(AUDITOR)
        stage = relative.parts[0].removesuffix(".py")
        if stage not in STAGES:
            continue
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "auditor" and len(parts) > 1 and parts[1] != stage and parts[1] not in STAGES[stage]:
                wrong.append(f"{relative} imports {name}")
    assert wrong == []


def test_only_the_seam_touches_the_machine() -> None:
    wrong = [
        f"{path.relative_to(AUDITOR)} imports {name}"
        for path in modules()
        if str(path.relative_to(AUDITOR)) not in SEAM
        for name in imports(path)
        if name.split(".")[0] in MACHINE and not name.startswith("importlib.resources")
    ]
    assert wrong == []


def test_the_test_would_see_a_forbidden_import(tmp_path: Any) -> None:
    path = tmp_path / "x.py"
    path.write_text("from auditor.collect import host\nimport subprocess\nfrom auditor import audit\n")
    assert set(imports(path)) == {"auditor.collect", "subprocess", "auditor", "auditor.audit"}
