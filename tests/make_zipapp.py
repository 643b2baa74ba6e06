"""Build zaudit.pyz: zaudit, its rules and data and its pure-Python dependencies in one file.

    python tests/make_zipapp.py PYTHON_WITH_PIP zaudit.pyz

Beside it: zaudit.pyz.cdx.json, what it is made of, and SHA256SUMS, in which zaudit-record.py stands, too, once it is built.

The same input gives the same bytes: fixed times, sorted names. Modules are in it as source, and compiled for the Python
that builds it, where they load twice as fast; any other Python takes the source.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import py_compile
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# of rich's dependencies those for source code and Markdown, which zaudit prints none of and rich loads only for these
UNUSED = ("/pygments/", "/markdown_it/", "/mdurl/")
NOT_IN_IT = ("pygments", "markdown-it-py", "mdurl")  # the packages of these
LEFT_OUT = (
    *UNUSED,
    "__pycache__",
    ".dist-info/RECORD",
    ".dist-info/direct_url.json",
    ".dist-info/REQUESTED",
    "/bin/",
    ".so",
)
UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH
EPOCH = (2020, 1, 1, 0, 0, 0)
# not the first python3 of the caller's PATH, and nothing of his environment, folder or home
SHEBANG = b"#!/usr/bin/python3 -I\n"
OLDEST = 3, 11  # as setup.cfg says
# read by any Python, of which one before that could not even compile what it imports
ENTRY = f"""\
import sys

if sys.version_info < {OLDEST}:
    sys.stderr.write(
        "zaudit.pyz needs Python {OLDEST[0]}.{OLDEST[1]} or later, and %s is %d.%d: "
        "run it with a newer one, as in python{OLDEST[0]}.{OLDEST[1]} -I zaudit.pyz, or record this host with zaudit-record.py "
        "(any Python from 3.6 on) and check the recording elsewhere\\n"
        % (sys.executable, sys.version_info[0], sys.version_info[1])
    )
    sys.exit(2)
from auditor.__main__ import main

main()
"""


def main(python: str, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pip = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-compile",
            "--target",
            folder,
        ]
        shutil.rmtree(ROOT / "build", ignore_errors=True)  # setuptools keeps in it what is gone from the checkout
        subprocess.run([*pip, str(ROOT)], check=True)
        staged = Path(folder)
        files = [path for path in staged.rglob("*") if path.is_file()]
        native = [path for path in files if path.suffix in (".so", ".pyd")]
        if native:
            sys.exit(f"not pure Python: {native[0].relative_to(staged)}")
        files = [path for path in files if not any(part in f"/{path.relative_to(staged)}" for part in LEFT_OUT)]
        for path in [path for path in files if path.suffix == ".py"]:
            compiled, shown = f"{path}c", str(path.relative_to(staged))
            py_compile.compile(str(path), compiled, shown, doraise=True, invalidation_mode=UNCHECKED)
            files.append(Path(compiled))
        with target.open("wb") as out:
            out.write(SHEBANG)
            with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
                archive.writestr(zipfile.ZipInfo("__main__.py", EPOCH), ENTRY)
                for path in sorted(files):
                    name = str(path.relative_to(staged))
                    info = zipfile.ZipInfo(name, EPOCH)
                    info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                    archive.writestr(info, path.read_bytes())
            target.chmod(0o755)
        _beside(target, staged)
    print(f"{target}: {target.stat().st_size >> 10} KiB")


def _beside(target: Path, staged: Path) -> None:
    """What it is made of (CycloneDX), and the sums of both files."""
    bill = target.with_name(f"{target.name}.cdx.json")
    bill.write_text(
        json.dumps(bill_of_materials(staged, hashlib.sha256(target.read_bytes()).hexdigest()), indent=1) + "\n"
    )
    sums(target, bill)


def sums(*made: Path) -> None:
    """Put the sums of these files of one folder into SHA256SUMS beside them, and leave there those of others that still are."""
    file = made[0].with_name("SHA256SUMS")
    there = file.read_text().splitlines() if file.exists() else []
    names = {name for line in there if file.with_name(name := line.partition("  ")[2]).is_file()} | {
        each.name for each in made
    }
    known = {line.partition("  ")[2]: line for line in there}
    known |= {each.name: f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}" for each in made}
    file.write_text("".join(f"{known[name]}\n" for name in sorted(names)))


def bill_of_materials(staged: Path, digest: str) -> dict[str, Any]:
    """The packages in a folder as CycloneDX 1.6 (ECMA-424) has it. digest: SHA-256 of the file that they were put into. No
    time and no number of chance is in it."""
    found = {each.metadata["Name"].lower(): each for each in importlib.metadata.distributions(path=[str(staged)])}
    kept = {name: each for name, each in sorted(found.items()) if name not in NOT_IN_IT}
    parts = {name: _part(name, each) for name, each in kept.items()}
    whole = parts.pop("zaudit") | {"type": "application", "hashes": [{"alg": "SHA-256", "content": digest}]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": whole},
        "components": list(parts.values()),
        "dependencies": [
            {"ref": whole["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts.values()]},
            *({"ref": part["bom-ref"]} for part in parts.values()),
        ],
    }


def _part(name: str, package: importlib.metadata.Distribution) -> dict[str, Any]:
    reference = f"pkg:pypi/{name}@{package.version}"
    part = {"type": "library", "bom-ref": reference, "name": name, "version": package.version, "purl": reference}
    expression, named = ((package.metadata.get_all(key) or [""])[0] for key in ("License-Expression", "License"))
    if expression:
        return part | {"licenses": [{"expression": expression}]}
    return part | ({"licenses": [{"license": {"name": named}}]} if named and "\n" not in named else {})


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
