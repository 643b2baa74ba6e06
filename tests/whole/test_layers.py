"""Who may import whom: what is below, and nothing beside or above."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import auditor

AUDITOR = Path(__file__).parents[2] / "auditor"
LAYERS = (  # the lowest first: a module knows those of its own room, and of the layers below; a room, or modules of one
    ("facts", "text", "data", "durability"),
    ("interrupt", "codec"),
    ("host.request", "host.children", "host.process", "host.builtin", "host.sql"),
    ("databases", "sources"),
    ("host", "model"),
    ("recording", "gather", "screen"),
    ("judge", "registry"),
    ("report", "rulebook", "recorder"),
    ("audit",),
    ("verify", "selftest", "advice"),
    ("diagnose", "fleet", "powercut"),
    ("checklist",),
    ("commands",),
    ("cli",),
    ("__main__", "__init__"),
)
OF_THE_PACKAGE = {name for name, value in vars(auditor).items() if not isinstance(value, ModuleType)}
TOGETHER = {"databases", "sources"}  # one room in two folders
# only these touch the machine: the seam, and the two libraries that it calls
MACHINE = {
    "subprocess",
    "os",
    "ctypes",
    "socket",
    "glob",
    "shutil",
    "tempfile",
    "selectors",
    "signal",
    "resource",
    "importlib",
}
SEAM = {
    "__main__.py",
    "interrupt.py",
    "host/children/others.py",
    "host/children/reader.py",
    "host/owner.py",
    "host/trust.py",
    "host/builtin.py",
    "host/user_files.py",
    "host/live.py",
    "host/process.py",
    "recorder.py",
    "recording/archive.py",
    "host/sql.py",
    "host/sql_watch.py",
    "cli.py",
    "fleet/workers.py",
    "fleet/inputs.py",
    "screen.py",
    "registry.py",
    "rulebook.py",
    "data/__init__.py",
    "diagnose/watch.py",
    "diagnose/tracing.py",
    "report/formats/__init__.py",
    *(f"powercut/{name}.py" for name in ("campaign", "target", "wire", "witness", "writer")),
    "verify/execution.py",
    "verify/place.py",
    "verify/trial.py",
    "verify/ledger.py",
}


@cache
def modules() -> Any:
    return sorted(AUDITOR.rglob("*.py"))


@cache
def imports(path: Path) -> tuple[str, ...]:
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            package = AUDITOR.parent.joinpath(*node.module.split(".")).is_dir()
            yield from (f"{node.module}.{alias.name}" for alias in node.names) if package else (node.module,)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def place(dotted: str) -> tuple[int, str]:
    """The layer and room of a module ("report.formats.sarif"), or of a name in it; the longest name that is listed decides."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        name = ".".join(parts[:end])
        for layer, rooms in enumerate(LAYERS):
            if name in rooms:
                return layer, "sources" if name in TOGETHER else name
    raise LookupError(dotted)


def forbidden(module: str, names: Iterable[str]) -> list[str]:
    """What a module imports that is not below it."""
    layer, room = place(module)
    imported = ((name, name.removeprefix("auditor.")) for name in names if name.startswith("auditor."))
    found = ((name, place(of)) for name, of in imported if of not in OF_THE_PACKAGE)
    return [name for name, (below, of) in found if below >= layer and of != room and not _same(room, of)]


def _same(one: str, other: str) -> bool:
    """The low modules of a room are of that room."""
    return one.partition(".")[0] == other.partition(".")[0]


def test_every_layer_is_there() -> None:
    for room in (each for rooms in LAYERS for each in rooms):
        path = AUDITOR / room.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").is_file(), room


def test_every_module_imports_only_what_is_below_it() -> None:
    wrong = []
    for path in modules():
        module = ".".join(path.relative_to(AUDITOR).with_suffix("").parts)
        wrong += [f"{module} imports {name}" for name in forbidden(module, imports(path))]
    assert wrong == []


def test_a_report_knows_nothing_of_the_features_that_build_pages() -> None:
    features = ["auditor.verify.result", "auditor.diagnose", "auditor.checklist.lists", "auditor.fleet.counting"]
    assert forbidden("report.audit_page", [*features, "auditor.judge.finding"]) == features
    assert forbidden("verify.page", ["auditor.report.document", *features]) == features[1:]
    assert forbidden("checklist.checklist_page", features) == []


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
    path.write_text("from auditor.host import live\nimport subprocess\nfrom auditor import audit\n")
    assert set(imports(path)) == {"auditor.host.live", "subprocess", "auditor.audit"}


def test_no_base_name_in_two_rooms() -> None:
    """The modules of commands/ are apart: fleet and powercut are called as their command is, as are the rooms."""
    rooms: dict[str, set[str]] = {}
    for path in modules():
        room = path.parent.relative_to(AUDITOR).parts[:1]
        if path.stem not in ("__init__", "__main__") and room != ("commands",):
            rooms.setdefault(path.stem, set()).add("/".join(room))
    twice = {name: " and ".join(sorted(of)) for name, of in rooms.items() if len(of) > 1}
    assert twice == {}
