"""``python -m tests.mutation [--sample N] [--seed N] [--only NAME]``: what share of changes to auditor/judge/ the tests notice.

First the tests run once with coverage: it tells which tests reach a line. Then for each change a child of this process, which
has imported nothing of zaudit yet, imports it with the change and runs those tests, and if none fails all TESTS. What fails,
hangs or does not load has noticed. Changes that make no difference stand in equivalent.toml, with the reason.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from random import Random
from types import CodeType

import coverage
import pytest

from tests.mutation.sites import Site, sites

ROOT = Path(__file__).resolve().parents[2]
JUDGE = ROOT / "auditor" / "judge"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
TESTS = (
    "tests/judge", "tests/whole/test_rules.py", "tests/whole/test_hosts.py", "tests/test_cli.py",
    "tests/report/test_changes.py", "tests/whole/test_lasting.py", "tests/report/test_event_words.py",
    "tests/report/test_report_json_folding.py", "tests/security/test_hostile_rules.py",
)  # fmt: skip
FEW = 40  # tests that reach a line, tried first
CPU_S = 600  # of one child: what takes longer hangs
FLOOR = 0.95
OPTIONS = ("-x", "-q", "-m", "not slow", "-p", "no:cacheprovider")
Reached = dict[tuple[str, int], list[str]]


class Changed(SourceFileLoader):
    """Loads one module with a change."""

    site: Site

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.site.made(), str(self.site.path), "exec")


class Finder:
    """Finds that module before anything else does."""

    def __init__(self, site: Site) -> None:
        self.site, self.name = site, ".".join(site.path.relative_to(ROOT).with_suffix("").parts)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        loader = Changed(name, str(self.site.path))
        loader.site = self.site
        return importlib.util.spec_from_file_location(name, self.site.path, loader=loader)


def reached(folder: Path) -> Reached:
    """(file, line) -> the tests that reach it, those of small files first; import time counts for none."""
    data = folder / "coverage"
    argv = [
        sys.executable,
        "-m",
        "pytest",
        *OPTIONS,
        "--cov",
        "auditor.judge",
        "--cov-context=test",
        "--cov-report=",
        *TESTS,
    ]
    done = subprocess.run(argv, cwd=ROOT, env={**os.environ, "COVERAGE_FILE": str(data)}, check=False)
    if done.returncode:
        raise SystemExit("the tests fail without any change")
    kept = coverage.CoverageData(str(data))
    kept.read()
    return {
        (file, line): sorted({test.partition("|")[0] for test in tests} - {""})
        for file in kept.measured_files()
        for line, tests in kept.contexts_by_lineno(file).items()
    }


def passes(site: Site | None, tests: Sequence[str]) -> bool:
    """Whether a child with the change finds nothing wrong."""
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(quiet, descriptor)
        if site:
            sys.meta_path.insert(0, Finder(site))
        os._exit(int(pytest.main([*OPTIONS, *tests])))
    return os.waitpid(pid, 0)[1] == 0


def spread(tests: Sequence[str], most: int) -> list[str]:
    """Some of them, of all files and functions alike."""
    return list(tests[:: max(len(tests) // most, 1)][:most])


def survives(site: Site, lines: Reached) -> bool:
    """Whether no test notices."""
    near = spread(lines.get((str(site.path), site.line), []), FEW)
    return (not near or passes(site, near)) and passes(site, TESTS)


def equivalent() -> set[tuple[str, str, str]]:
    """(file, as it was, as it is) of the changes that make no difference."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("change", [])
    return {(each["file"], each["was"], each["now"]) for each in entries}


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.mutation")
    asked.add_argument("--sample", type=int, default=0, help="so many changes, drawn by the seed; 0: all")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--only", default="", help="of modules whose name holds this")
    said = asked.parse_args()
    known = equivalent()
    paths = [path for path in sorted(JUDGE.rglob("*.py")) if said.only in path.name]
    chosen = [each for path in paths for each in sites(path) if (path.name, each.was, each.now) not in known]
    if said.sample and said.sample < len(chosen):
        chosen = sorted(Random(said.seed).sample(chosen, said.sample))
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory(prefix="zaudit-mutants-") as folder:
        lines = reached(Path(folder))
    survivors = 0
    for number, each in enumerate(chosen, 1):
        if survives(each, lines):
            survivors += 1
            print(f"SURVIVED {each}", flush=True)
        print(f"{number} of {len(chosen)}, {survivors} survived", end="\r", file=sys.stderr, flush=True)
    share = 1 - survivors / max(len(chosen), 1)
    print(f"{len(chosen) - survivors} of {len(chosen)} changes noticed: {share:.1%}, floor {FLOOR:.0%}")
    return int(share < FLOOR)


if __name__ == "__main__":
    sys.exit(main())
