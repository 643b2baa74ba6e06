"""Build zaudit-record.py: what a recording needs, in one file for Python 3.6 and later.

    python -m tests.recorder.build zaudit-record.py

The modules are those of zaudit, rewritten by :mod:`tests.recorder.lower`; they stand in the file as text that can be read. The
same input gives the same bytes.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from auditor import __version__, data, rulebook
from auditor.judge import rule
from tests.make_zipapp import sums
from tests.recorder.lower import lowered, older

ROOT = Path(__file__).resolve().parent.parent.parent
AUDITOR = ROOT / "auditor"
ENTRY = "auditor.recorder"
LISTED = ("databases", "sources")  # packages whose modules are found by name
ALONE = {"auditor.host.children.reader", "auditor.host.children.others"}  # of the process that reads for others
TABLES = ("builds.toml", "drives.toml", "platforms.toml", "tunables.toml")  # that collectors read
HEAD = '''\
#!/usr/bin/python3 -I
# -*- coding: utf-8 -*-
"""zaudit-record.py TARGET... -o REC.tar.gz: asks this host what zaudit asks and writes the answers; it judges nothing and
changes nothing. For Python 3.6 and later; made of zaudit @VERSION@ (Apache-2.0). zaudit check --replay REC.tar.gz judges it.

The parts of zaudit stand below as text, each with its name; the few lines at the end make modules of them.
"""

import sys

if sys.version_info < (3, 6):
    found = (sys.executable, sys.version_info[0], sys.version_info[1])
    sys.stderr.write("zaudit-record.py needs Python 3.6 or later, and %s is %d.%d\\n" % found)
    sys.exit(2)
if __name__ == "__main__" and sys.path and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[0]  # before anything is imported: nothing of the folder in which it lies, which may be /tmp
PARTS = {}
'''
TAIL = '''

from importlib.machinery import ModuleSpec


class Parts(object):
    """Finds and loads the modules that stand above, for import, pkgutil and inspect."""

    def find_spec(self, name, path=None, target=None):
        for file, package in ((name.replace(".", "/") + "/__init__.py", True), (name.replace(".", "/") + ".py", False)):
            if file in PARTS:
                spec = ModuleSpec(name, self, origin=HOME + file, is_package=package)
                spec.has_location = True
                if package:
                    spec.submodule_search_locations = [HOME + name.replace(".", "/")]
                return spec
        return None

    def invalidate_caches(self):
        pass

    def iter_modules(self, prefix=""):
        folder = self.folder + "/"
        for file in sorted(PARTS):
            name = file[len(folder) :]
            if file.startswith(folder) and name.endswith(".py") and "/" not in name and name != "__init__.py":
                yield prefix + name[:-3], False

    def create_module(self, spec):
        return None

    def get_data(self, path):
        if path[len(HOME) :] not in PARTS:
            raise OSError(path)
        return PARTS[path[len(HOME) :]].encode()

    def get_source(self, name):
        return PARTS[self.find_spec(name).origin[len(HOME) :]]

    def exec_module(self, module):
        code = compile(PARTS[module.__spec__.origin[len(HOME) :]], module.__spec__.origin, "exec", dont_inherit=True)
        exec(code, module.__dict__)


def folder_of(path):
    if not path.startswith(HOME):
        raise ImportError(path)
    parts = Parts()
    parts.folder = path[len(HOME) :]
    return parts


HOME = "zaudit-record.py:"
sys.meta_path.insert(0, Parts())
sys.path_hooks.insert(0, folder_of)
if __name__ == "__main__":
    from auditor.recorder import main

    main("@RULES@")
'''


def main(target: Path) -> None:
    target.write_text(built())
    target.chmod(0o755)
    sums(target)
    print(f"{target}: {target.stat().st_size >> 10} KiB")


def built() -> str:
    """The text of the file."""
    version = __version__
    rules = rule.digest(rulebook.choose((), (), ()).rules)
    tables = data.packed({"sources": "", **{name: data.table(name) for name in TABLES}})
    parts = [_part(f"auditor/data/{data.COMPILED}", tables)]
    for name, path in sorted(modules().items()):
        parts.append(_part(str(path.relative_to(ROOT)), lowered(path.read_text(), name, alone=name in ALONE)))
    parts.append(_part("auditor/older.py", older()))
    return HEAD.replace("@VERSION@", version) + "".join(parts) + TAIL.replace("@RULES@", rules)


def _part(name: str, text: str) -> str:
    """As a raw text, so that it reads as it is."""
    if "'''" in text or not text.endswith("\n"):
        raise ValueError(f"{name} cannot stand in a raw text")
    return f"\n\n# {'-' * 110}\nPARTS[{name!r}] = r'''{text}'''\n"


def modules() -> dict[str, Path]:
    """Name -> file of the entry and of all that it imports."""
    found: dict[str, Path] = {}
    todo = [
        ENTRY,
        *ALONE,
        *(f"auditor.{folder}.{each.stem}" for folder in LISTED for each in AUDITOR.glob(f"{folder}/*.py")),
    ]
    while todo:
        name = todo.pop()
        path = _path(name)
        if name in found or not path.is_file():
            continue
        found[name] = path
        todo.append(name.rpartition(".")[0])
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("auditor"):
                todo += [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
            elif isinstance(node, ast.Import):
                todo += [each.name for each in node.names if each.name.startswith("auditor")]
    return found


def _path(name: str) -> Path:
    path = ROOT.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
