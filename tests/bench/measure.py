"""Measure child processes: ``python -m tests.bench.measure host FOLDER NOW`` is the child that audits a :class:`ToolHost`."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
REPEATS = 5


@dataclass(frozen=True, slots=True)
class Cost:
    """One process: seconds on the clock, seconds of its own processor time, MiB of memory at most; what it printed."""

    wall_s: float
    cpu_s: float
    memory_mib: float
    exit: int
    stderr: str = ""


def run(argv: Sequence[str]) -> Cost:
    """One run, without its standard output. Compiled modules are kept, as where zaudit is installed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.monotonic()
    process = subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT, env=environment, text=True
    )
    assert process.stderr is not None
    stderr = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, process.returncode, stderr)


def side_by_side(argv: Sequence[str], other: Sequence[str], repeats: int = REPEATS) -> tuple[Cost, Cost]:
    """Both in turn, and of each the run with the least processor time: what disturbs one disturbs the other, too."""
    pairs = [(run(argv), run(other)) for _ in range(repeats)]
    for cost, _ in pairs:
        if cost.exit not in (0, *range(10, 15)):
            raise RuntimeError(f"exit code {cost.exit}: {cost.stderr}")
    one, two = zip(*pairs, strict=True)
    return min(one, key=lambda cost: cost.cpu_s), min(two, key=lambda cost: cost.cpu_s)


def host(folder: Path, now: float, rules: Path | None = None) -> Cost:
    """``zaudit check`` on a host of scripts, once; the processor time is its own, without that of the scripts."""
    cost = run((sys.executable, "-m", "tests.bench.measure", str(folder), str(now), *([str(rules)] if rules else [])))
    own = json.loads(cost.stderr.splitlines()[-1])["cpu_s"] if cost.exit >= 10 else cost.cpu_s
    return replace(cost, cpu_s=own)


def best_host(folder: Path, now: float, repeats: int = REPEATS, rules: Path | None = None) -> dict[str, float]:
    """cpu_s, start_s (of it, the interpreter and all imports), wall_s of ``zaudit check`` on a host of scripts.

    rules: a folder of rules in place of all that zaudit has.
    """
    runs = [host(folder, now, rules) for _ in range(repeats)]
    said: list[dict[str, float]] = []
    for cost in runs:
        if cost.exit < 10:
            raise RuntimeError(f"exit code {cost.exit}: {cost.stderr}")
        said.append(json.loads(cost.stderr.splitlines()[-1]) | {"wall_s": cost.wall_s})
    return {key: min(each[key] for each in said) for key in said[0]}


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _child(folder: Path, now: float, rules: Path | None = None) -> None:
    """``zaudit check`` as a user runs it, on the host of scripts; its own processor time as JSON on standard error."""
    import gc
    from importlib import import_module

    gc.disable()  # as auditor/__main__.py does before it imports anything else
    from auditor import cli, registry
    from auditor.host import live as host
    from tests.bench.tools import ToolHost

    registry.registry()
    for late in ("audit", "rulebook", "report.audit_page"):
        import_module(f"auditor.{late}")
    started: dict[str, Any] = {"start_s": _used()}

    def live(timeout_s: float, deadline_s: float = 0.0) -> ToolHost:
        return ToolHost(folder, now, timeout_s)

    host.LiveHost = live  # type: ignore[misc, assignment]
    if rules:
        from auditor import data, rulebook

        few = {path.stem: data.toml(path.name, path.read_text()) for path in sorted(rules.glob("*.toml"))}
        data.heads = lambda: few  # type: ignore[assignment]
        rulebook.advisories = lambda *, examples=True: []  # type: ignore[assignment]
    sys.argv = ["zaudit", "check", "--timeout", "60"]
    try:
        cli.run()
    finally:
        print(json.dumps(started | {"cpu_s": _used()}), file=sys.stderr)


if __name__ == "__main__":
    _child(Path(sys.argv[1]), float(sys.argv[2]), *map(Path, sys.argv[3:]))
