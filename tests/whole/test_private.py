"""Nothing of ours relies on private parts of Python or of a library: they change in any release, security updates included
(tarfile's frombuf and urllib's judgement of hosts did), and on the host of somebody else."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.folded import for_each

ROOT = Path(__file__).parents[2]
FOLDERS = ("auditor", "contrib", "docs", "tests")
OURS = {"auditor", "tests"}
# begin with an underscore, and are documented
DOCUMENTED = {
    "_asdict": "collections.namedtuple",
    "_field_defaults": "collections.namedtuple",
    "_fields": "collections.namedtuple, ast.AST",
    "_fields_": "ctypes.Structure",
    "_replace": "collections.namedtuple",
    "_exit": "os: without cleaning up",
    "_thread": "threads that nobody waits for to begin: Thread.start() does",
}
UNDOCUMENTED = {"sre_compile", "sre_constants", "sre_parse"}  # public names of private modules
BY_NAME = {"getattr", "setattr", "hasattr", "delattr"}  # functions, and methods of pytest's monkeypatch


def private(name: str) -> bool:
    return (
        name.startswith("_")
        and not (name.startswith("__") and name.endswith("__"))
        and name not in DOCUMENTED | {"_": ""}
    )


def paths() -> Iterator[Path]:
    """Of all our Python, that without a suffix too."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]
    for path in [ROOT / "setup.py", *files]:
        if path.suffix == ".py" or (not path.suffix and re.match(rb"#!.*python", path.read_bytes()[:40])):
            yield path


@cache
def modules() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_bytes()) for path in paths()}


@cache
def defined() -> frozenset[str]:
    """Names with an underscore that our own code gives to something: a function, class, variable, or part of ``self``."""
    names = set[str]()
    for tree in modules().values():
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                    names.add(name)
                case ast.Name(name, ast.Store()) | ast.Attribute(ast.Name("self" | "cls"), name, ast.Store()):
                    names.add(name)
    return frozenset(filter(private, names))


def imports(tree: ast.AST) -> dict[str, str]:
    """Name -> what of others it is, as ``tarfile`` or ``tarfile.TarInfo``."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                found |= {each.asname or each.name.split(".")[0]: each.name for each in names}
            case ast.ImportFrom(str() as module, names, 0):
                found |= {each.asname or each.name: f"{module}.{each.name}" for each in names}
    return {name: what for name, what in found.items() if what.split(".")[0] not in OURS}


def theirs(node: ast.expr, known: dict[str, str]) -> str:
    """What an expression is of a module of others, as ``tarfile.TarInfo``, or empty."""
    match node:
        case ast.Name(name):
            return known.get(name, "")
        case ast.Attribute(value, name) if whole := theirs(value, known):
            return f"{whole}.{name}"
    return ""


def uses(tree: ast.AST, ours: frozenset[str]) -> Iterator[str]:
    """What is private and of others in a module, a sentence each. ours: private names that are our own."""
    known = imports(tree)
    for what in known.values():
        if any(map(private, what.split("."))) or what.split(".")[0] in UNDOCUMENTED:
            yield f"imports {what}"
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value, name) if private(name):
                if (of := theirs(value, known)) or name not in ours:
                    yield f"line {node.lineno}: {of or ast.unparse(value)}.{name}"
            case ast.Call(ast.Name(call) | ast.Attribute(_, call), arguments) if call in BY_NAME:
                for each in arguments[:2]:
                    match each:
                        case ast.Constant(str() as text):
                            module, _, name = text.rpartition(".")
                            foreign = theirs(arguments[0], known) or (module and module.split(".")[0] not in OURS)
                            if private(name) and (foreign or name not in ours):
                                yield f"line {node.lineno}: {call} of {text}"
            case ast.ClassDef(bases=bases):
                yield from overridden(node, [whole for base in bases if (whole := theirs(base, known))])


def overridden(node: ast.ClassDef, bases: list[str]) -> Iterator[str]:
    """The private parts of a class of others that one of ours has in its place."""
    for base in bases:
        has = vars_of(base)
        for part in ast.walk(node):
            match part:
                case (
                    ast.FunctionDef(name)
                    | ast.Name(name, ast.Store())
                    | ast.Attribute(ast.Name("self"), name, ast.Store())
                ):
                    if private(name) and name in has:
                        yield f"line {part.lineno}: {node.name} has a {name} as {base} has"


@cache
def vars_of(name: str) -> frozenset[str]:
    """The names in a class, and in those that it is made of; none where it is not installed."""
    module, _, attribute = name.rpartition(".")
    try:
        found: Any = getattr(import_module(module), attribute) if module else getattr(builtins, attribute)
    except ImportError:
        return frozenset()
    return frozenset(dir(found))


@pytest.mark.slow
def test_nothing_private_of_others_is_used() -> None:
    found = {str(path.relative_to(ROOT)): list(uses(tree, defined())) for path, tree in modules().items()}
    assert {path: what for path, what in found.items() if what} == {}


@for_each(
    "text, found",
    [
        ("from re import _parser", True),
        ("import _struct", True),
        ("from importlib._bootstrap import x", True),
        ("import sre_parse", True),
        ("import sys; sys._getframe()", True),
        ("import tarfile as t; t.TarInfo._proc_pax", True),
        ("from tarfile import TarInfo; TarInfo._proc_pax", True),
        ("connection._sock.fileno()", True),
        ("import os; os.environ._data", True),
        ("getattr(x, '_sock')", True),
        ("monkeypatch.setattr(tarfile.TarInfo, '_proc_pax', 1)", True),
        ("import tarfile; monkeypatch.setattr(tarfile.TarInfo, '_ours', 1)", True),
        ("monkeypatch.setattr('tarfile._ours', 1)", True),
        ("import threading\nclass A(threading.Thread):\n def _bootstrap(self): pass", True),
        ("import threading\nclass A(threading.Thread):\n def f(self): self._target = 1", True),
        ("import tarfile; tarfile._ours", True),
        ("x._ours; self._ours; getattr(x, '_ours'); monkeypatch.setattr('auditor.x._ours', 1)", False),
        ("from auditor.x import _y; from tests import _z", False),
        ("import os; os._exit(1); x._replace(a=1)._asdict(); x.__dict__; for_ = '_'", False),
        ("from _thread import start_new_thread", False),
        ("import threading\nclass A(threading.Thread):\n def _ours(self): pass", False),
    ],
)
def test_what_is_private(text: str, found: bool) -> None:
    assert bool(list(uses(ast.parse(text), frozenset({"_ours"})))) is found


def test_all_our_python_is_looked_at() -> None:
    names = {str(path.relative_to(ROOT)) for path in paths()}
    assert {"setup.py", "auditor/cli.py", "tests/conftest.py"} <= names
    assert any(name.startswith("contrib/") for name in names)
    assert any("." not in name for name in names)
