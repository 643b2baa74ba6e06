"""A case of cases.toml, what came back of it, and whether that is what the case says."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab.machine import LINES

HERE = Path(__file__).parent
CODE = ("auditor", "rules")  # what a verdict comes from


class Case(NamedTuple):
    """name: of the case. lines: those that it is run on. must: what it is made to show, in one line. setup, arguments, after:
    what the guest does. outcome: of the chain; link: which one contradicts ({N0}: kernel name of a disk); says: words of it.
    has: a member that the report must have. needs: a file that the guest is given. disks: which set of them (SETS of run.py).
    """

    name: str
    setup: str
    outcome: str
    lines: tuple[str, ...] = LINES
    arguments: tuple[str, ...] = ()
    after: str = ""
    link: str = ""
    says: str = ""
    has: str = ""
    needs: str = ""
    disks: str = "few"

    @property
    def must(self) -> str:
        """CONTRADICTED at {N2}: "says write through"."""
        where = f" at {self.link}" if self.link else ""
        return f"{self.outcome}{where}" + (f': "{self.says}"' if self.says else "")


def everything() -> list[Case]:
    """All cases, in the order of the file. Raises TypeError for a key that means nothing."""
    found = tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8"))["case"]
    return [_case(each) for each in found]


def _case(said: dict[str, Any]) -> Case:
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in said.items()}
    return Case(**values)


def version() -> str:
    """The commit that last changed what a verdict comes from, with a + where that was changed since."""
    where = HERE.parents[2]

    def git(*words: str) -> str:
        return subprocess.run(("git", *words), cwd=where, capture_output=True, text=True, check=True).stdout.strip()

    return git("log", "-1", "--format=%h", "--", *CODE) + ("+" if git("status", "--porcelain", "--", *CODE) else "")


Returned = dict[str, bytes]  # file name -> content: json, tar.gz, exit, err, setup, left, names, seconds


def problems(case: Case, out: Returned) -> Iterator[str]:
    """What is not as the case says."""
    if left := out.get("left", b"").decode().split():
        yield f"left behind: {', '.join(left)}"
    try:
        report = json.loads(out["json"])
        chain = report["verification"]["chain"]
    except (KeyError, ValueError):
        errors = [out.get(name, b"").decode(errors="replace").strip()[-300:] for name in ("exit", "err", "setup")]
        yield f"no report: {' | '.join(errors)}"
        return
    names = dict(line.split() for line in out.get("names", b"").decode().splitlines())
    texts = [f"{link['name']}: {link['text']}" for link in chain["links"]] + chain["reasons"]
    if chain["outcome"] != case.outcome:
        yield f"{chain['outcome']}, not {case.outcome}: {' | '.join(texts)}"
        return
    if case.link:
        link = case.link.format_map(names)
        contradicting = [each for each in chain["links"] if each["status"] == "contradicts"]
        texts = [each["text"] for each in contradicting if each["name"] == link]
        if not texts:
            yield f"{', '.join(each['name'] for each in contradicting)} contradicts, not {link}"
    if case.says and not any(case.says in text for text in texts):
        yield f"no word of {case.says!r}: {' | '.join(texts)}"
    if case.has and not _member(report, case.has):
        yield f"the report has no {case.has}"


def _member(report: Any, path: str) -> Any:
    """Of "sweep.knee.says": that member, or nothing."""
    for name in path.split("."):
        report = report.get(name) if isinstance(report, dict) else None
    return report
