"""Who may import whom. The drawing in auditor/__init__.py is held here."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from auditor import registry
from auditor.sources import catalog

AUDITOR = Path(__file__).parent.parent / "auditor"
VERIFIED = {f"verify.{name}" for name in ("result", "comparison", "codec")}  # types and arithmetic
DIAGNOSED = {"diagnose.diagnosis"}  # the same
LISTED = {"checklist.lists"}  # the same
STAGES: dict[str, set[str]] = {
    "errors": set(),
    "facts": set(),
    "text": set(),
    "units": set(),
    "data": set(),
    "databases": {"facts", "text", "sources", "host.request", "host.sql"},
    "durability": set(),
    "observation": {"facts", "data", "databases", "model", "durability"},
    "interrupt": set(),
    "host": {"errors", "interrupt", "text", "databases", "sources"},
    "recording": {"errors", "host", "interrupt", "text", "data", "databases", "sources"},
    "sources": {
        "facts",
        "text",
        "data",
        "databases",
        "host.request",
        "host.kmsg",
        "host.libraries",
    },
    "gather": {"errors", "facts", "host", "sources", "text", "data", "databases"},
    "model": {"facts", "text", "units", "data", "databases"},
    "judge": {"errors", "facts", "text", "units", "data", "databases", "durability", "observation"},
    "report": {"facts", "text", "units", "judge"},
    "report.audit": {"facts", "text", "judge", "report"},
    "report.fleet": {"errors", "text", "judge", "report"},
    "report.formats": {"errors", "text", "judge", "report", "report.audit"},
    "report.verify": {"facts", "text", "units", "judge", "report", "report.audit", *VERIFIED},
    "report.diagnose": {
        "facts",
        "text",
        "units",
        "judge",
        "report",
        "report.audit",
        "report.verify",
        *VERIFIED,
        *DIAGNOSED,
    },
    "report.checklist": {
        *("text", "judge", "report", "report.formats", *VERIFIED, *DIAGNOSED, *LISTED),
    },
    "plan": {"facts", "text", "judge", "report", "report.audit", "report.formats", "audit"},
    "registry": {"facts", "databases", "sources", "gather", "model", "verify.specs"},
    "rulebook": {"judge", "registry", "data", "host.user_files"},
    **{name: {"errors", "text", "units", *VERIFIED} for name in VERIFIED},
    **{name: {*DIAGNOSED, *VERIFIED} for name in DIAGNOSED},
    "verify.specs": {"facts"},
    "audit": {"errors", "facts", "data", "databases", "model", "gather", "host", "judge", "registry", "report"},
    "verify": {
        *(
            "errors",
            "facts",
            "text",
            "units",
            "data",
            "host",
            "sources",
            "model",
            "judge",
            "report",
            "audit",
        ),
        *("verify.specs", *VERIFIED),
    },
    "diagnose": {
        *(
            "errors",
            "facts",
            "text",
            "units",
            "databases",
            "host",
            "sources",
            "verify",
            *VERIFIED,
            *DIAGNOSED,
        ),
        "interrupt",
    },
    "powercut": {"errors", "interrupt", "text", "host", "verify", *VERIFIED},
    "report.powercut": {"text", "powercut", *VERIFIED},
    **{name: {"facts", "text", "data", "judge", "report"} for name in LISTED},
    "checklist": {
        *("facts", "text", "units", "data", "judge", "report", *VERIFIED, *DIAGNOSED, *LISTED),
    },
    "selftest": {"audit", "sources", "data", "facts", "gather", "host", "judge", "recording", "registry"},
    "fleet": {
        *("errors", "text", "host", "judge", "recording", "rulebook", "audit"),
        *("report", "report.audit", "report.formats", "report.fleet"),
    },
    "commands": {
        *("errors", "facts", "text", "units", "data", "databases", "host", "recording", "model", "judge", "rulebook"),
        *("report", "report.audit", "report.formats", "report.verify", "report.fleet", "audit", "fleet", "selftest"),
        *("interrupt", "streams", "verify", *VERIFIED, "report.diagnose", "diagnose", *DIAGNOSED),
        *("report.checklist", "checklist", *LISTED, "plan", "powercut", "report.powercut"),
    },
    "cli": {"errors", "text", "commands"},
    "streams": {"text"},
    "__main__": {"errors", "interrupt", "streams", "cli"},
    "recorder": {"errors", "interrupt", "streams", "text", "host", "gather", "recording", "sources"},
    "__init__": set(),
}
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
    "host/child.py",
    "host/owner.py",
    "host/files.py",
    "host/trust.py",
    "host/libraries.py",
    "host/user_files.py",
    "host/kmsg.py",
    "host/live.py",
    "host/process.py",
    "recorder.py",
    "recording/replacing.py",
    "streams.py",
    "host/sql.py",
    "host/sql_watch.py",
    "cli.py",
    "fleet/workers.py",
    "fleet/inputs.py",
    "commands/_terminal.py",
    "sources/catalog.py",
    "registry.py",
    "rulebook.py",
    "data/__init__.py",
    "host/children/stack_reader.py",
    "diagnose/watch.py",
    "diagnose/stacks.py",
    "diagnose/tracing.py",
    "report/formats/__init__.py",
    *(f"powercut/{name}.py" for name in ("book", "campaign", "target", "witness", "writer")),
    "verify/run.py",
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


def stage(dotted: str) -> str:
    """The stage of a module ("report.audit.json"): a folder, or what is named of it."""
    parts = dotted.split(".")
    return next((each for each in (".".join(parts[:2]), parts[0]) if each in STAGES), "")


def forbidden(relative: Path, names: Any) -> list[str]:
    """What a module imports from a stage that it may not know."""
    mine = stage(".".join(relative.with_suffix("").parts))
    allowed = {mine, "__version__", *STAGES[mine]}
    imported = ((name, name.removeprefix("auditor.")) for name in names if name.startswith("auditor."))
    return [name for name, of in imported if not {stage(of), of, ".".join(of.split(".")[:2])} & allowed]


def test_every_module_is_of_a_stage() -> None:
    found = {stage(".".join(path.relative_to(AUDITOR).with_suffix("").parts)) for path in modules()}
    assert found == STAGES.keys()


def test_every_stage_imports_only_what_comes_before_it() -> None:
    wrong = []
    for path in modules():
        relative = path.relative_to(AUDITOR)
        wrong += [f"{relative} imports {name}" for name in forbidden(relative, imports(path))]
    assert wrong == []


def test_no_module_with_sources_or_derivations_is_left_out() -> None:
    """They are listed, and their folders are not searched when zaudit starts."""
    marks = {"sources": "\nSOURCES", "databases": "\nSOURCES", "model": "\n@derivation("}
    there = {
        f"auditor.{folder}.{path.stem}"
        for folder, mark in marks.items()
        for path in (AUDITOR / folder).glob("*.py")
        if mark in path.read_text()
    }
    listed = [module.__name__ for module in (*catalog.MODULES, *registry.MODULES)]
    assert sorted(listed) == sorted(there)


def test_a_report_knows_what_was_verified_and_not_how() -> None:
    names = [
        "auditor.verify.result",
        "auditor.verify.run",
        "auditor.verify",
        "auditor.host.live",
        "auditor.report.verify.charts",
        "auditor.report.page",
    ]
    assert forbidden(Path("report/verify/verification_page.py"), names) == names[1:4]
    assert forbidden(Path("report/audit/html.py"), names) == names[:5]
    assert forbidden(Path("verify/comparison.py"), ["auditor.verify.place", "auditor.facts"]) == [
        "auditor.verify.place",
        "auditor.facts",
    ]
    assert forbidden(Path("verify/run.py"), names) == names[4:5]


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
