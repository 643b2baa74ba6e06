"""What a file of scenarios says. See README.md for the format."""

import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.security import strace

from .machine import LINES

FOLDER = Path(__file__).parent / "scenarios"
KEYS = {
    "title", "lines", "not_on", "disks", "alone", "module_of", "targets", "options", "setup", "exit_code", "says",
    "must", "may", "must_not", "undecided", "power_cut", "strace", "fix",
}  # fmt: skip
GUEST_HOLDS = 16
"""Scenarios to a guest at most: no guest begins later than the --minutes of a run."""
DRIVES = ("honest", "protected", "lying")


class ScenarioError(ValueError):
    """A scenario that cannot be right."""


@dataclass(frozen=True)
class Expected:
    """A finding that must come out. An empty subject means any."""

    rule: str
    subject: str = ""
    outcome: str = "fail"
    severity: str = ""
    lines: tuple[str, ...] = LINES


@dataclass(frozen=True)
class Step:
    """A fix that the report prints for a rule, and that is run: its commands, or words of its text (says), set into ``run`` for
    {}. put: what stands in place of NEW_DEVICE and the like, one for each command where it is a list. then: what is run
    after it. may: rules that may fail or be undecided after it, and only then."""

    rule: str
    says: str = ""
    run: str = "{}"
    put: dict[str, Any] = field(default_factory=dict)
    then: str = ""
    may: tuple[str, ...] = ()
    lines: tuple[str, ...] = LINES


@dataclass(frozen=True)
class PowerCut:
    """Ground truth: may a commit that was acknowledged be gone after a power cut, on drives of this kind?"""

    drives: str
    may_lose: bool
    because: str


@dataclass(frozen=True)
class Scenario:
    """One of scenarios/; file: the name of the file that it is in."""

    name: str
    title: str
    setup: str
    power_cut: PowerCut
    lines: tuple[str, ...] = LINES
    not_on: dict[str, str] = field(default_factory=dict)
    disks: tuple[str, ...] = ("nvme:2G",) * 4
    alone: bool = False
    module_of: str = ""
    targets: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    exit_code: int | None = None
    says: str = ""
    must: tuple[Expected, ...] = ()
    may: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    strace: bool = False
    fix: tuple[Step, ...] = ()
    file: str = ""

    def fixes(self, line: str) -> list[Step]:
        """The steps that are run on a line."""
        return [each for each in self.fix if line in each.lines]

    def plan(self, line: str) -> dict[str, Any]:
        """What the guest needs to know."""
        return {
            "name": self.name,
            "setup": self.setup,
            "targets": self.targets,
            "options": self.options,
            "alone": self.alone,
            "strace": strace.command(Path("/lab/out", self.name, "traced")) if self.strace else [],
            "fix": [asdict(each) for each in self.fixes(line)],
        }


def load(path: Path) -> Iterator[Scenario]:
    """Those of one file; raises ScenarioError."""
    for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
        yield _scenario(name, path.name, table)


def _scenario(name: str, file: str, table: dict[str, Any]) -> Scenario:
    if wrong := set(table) - KEYS:
        raise ScenarioError(f"{name}: unknown {', '.join(sorted(wrong))}")
    try:
        must = tuple(Expected(**_tuples(each)) for each in table.pop("must", ()))
        fix = tuple(Step(**_tuples(each)) for each in table.pop("fix", ()))
        cut = PowerCut(**table.pop("power_cut"))
        scenario = Scenario(name=name, must=must, power_cut=cut, fix=fix, file=file, **_tuples(table))
    except (TypeError, KeyError) as error:
        raise ScenarioError(f"{name}: {error}") from None
    missing = set(LINES) - set(scenario.lines) - set(scenario.not_on)
    if missing or set(scenario.lines) & set(scenario.not_on):
        raise ScenarioError(f"{name}: every line is either in lines or in not_on with the reason, {missing}")
    if cut.drives not in DRIVES:
        raise ScenarioError(f"{name}: drives {cut.drives!r} is none of {DRIVES}")
    return scenario


def everything() -> list[Scenario]:
    """All scenarios, by name."""
    found = (each for path in FOLDER.glob("*.toml") for each in load(path))
    return sorted(found, key=lambda each: each.name)


def guests(scenarios: list[Scenario]) -> list[list[Scenario]]:
    """Which scenarios share a guest: the disks of each begin the disk list of the first one; ``alone`` ones do not."""
    shared: list[list[Scenario]] = []
    for scenario in sorted(scenarios, key=lambda each: (-len(each.disks), each.name)):
        own = scenario.alone or scenario.module_of
        for group in shared:
            first = group[0]
            if (
                not own
                and not first.alone
                and not first.module_of
                and len(group) < GUEST_HOLDS
                and first.disks[: len(scenario.disks)] == scenario.disks
            ):
                group.append(scenario)
                break
        else:
            shared.append([scenario])
    return shared


def _tuples(table: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
