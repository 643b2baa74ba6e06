"""The table of the self-test: every rule against every fault, on a recorded host and on the rule's own examples."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

from auditor import data, registry
from auditor.facts import Facts
from auditor.judge import example
from auditor.judge.rule import Example, Rule
from auditor.recording import recording
from auditor.recording.recording import Recording, ReplayHost
from auditor.selftest import faults
from auditor.selftest.anew import outcomes
from auditor.selftest.faults import OF_ONE, Fault, FaultyHost
from auditor.selftest.trials import Cell, Trials, look, lost

FILE = "selftest.json"
# of the whole host: nothing is left that a rule could pass by; "release" is one that spells everything otherwise
LABELS = {
    faults.NOT_INSTALLED: "missing",
    faults.NOT_PERMITTED: "denied",
    faults.TIME_OUT: "hung",
    faults.EMPTY: "empty",
    faults.BINARY: "garbled",
    faults.CUT: "truncated",
    faults.UNKNOWN_RELEASE: "release",
}
# which list what rules are about, or decide the most severe ones: of these each two are refused together
MAIN = (
    *("block_sysfs", "database_paths", "database_process", "database_processes", "database_settings", "kstat_pools"),
    *("module_params", "udev", "zfs_get", "zfs_list", "zfs_mounts"),
    *("zpool_get", "zpool_list", "zpool_status", "zpool_status_paths"),
)
LOSSES = 6  # lines, and keys, of one collector's answers: more of them are the tests' business


class Row(NamedTuple):
    """One rule. healthy: what it says of the recorded host as it is; cells: by the name of the fault."""

    rule: str
    healthy: str
    cells: Mapping[str, Cell]


def host() -> Recording:
    """The recorded host that is part of zaudit."""
    members = {name: text.encode("utf-8", "surrogateescape") for name, text in json.loads(data.text(FILE)).items()}
    return recording.parse(FILE, members)


def run(rules: Sequence[Rule], progress: Callable[[int, int, str, float], None] | None = None) -> list[Row]:
    """All rules, with their examples, by id."""
    past = host()
    trials = Trials.of(rules, past)
    assert trials is not None
    columns: dict[str, dict[str, Cell]] = {}
    steps = list(_steps(trials))
    for done, (name, step) in enumerate(steps, 1):
        if progress:
            progress(done, len(steps), name, 0.0)
        column = columns.setdefault(name, {rule.id: Cell(0, ()) for rule in rules})
        for id, cell in step().items():
            column[id] = Cell(column[id].cases + cell.cases, column[id].wrong + cell.wrong)
    healthy = {
        rule.id: sorted({outcome for (id, _), outcome in trials.before.outcomes.items() if id == rule.id})
        for rule in rules
    }
    return [
        Row(
            rule.id,
            ", ".join(healthy[rule.id]) or "no subject",
            {name: column[rule.id] for name, column in columns.items()},
        )
        for rule in rules
    ]


def _steps(trials: Trials) -> Iterator[tuple[str, Callable[[], dict[str, Cell]]]]:
    """(column, how to fill it): the whole host at fault, then one collector after the other, then the examples."""
    rules, past = trials.rules, trials.past
    for fault in LABELS:
        yield LABELS[fault], lambda fault=fault: _whole(rules, past, fault, trials.questions("zfs_version"))  # type: ignore[misc]
    for collector in trials.asked:
        for fault, to in lost(past, collector, trials.questions(collector), LOSSES):
            yield "one loss", partial(trials.one, collector, to, fault)
        for fault in OF_ONE:
            yield "one answer", partial(trials.one, collector, trials.questions(collector), fault)
    for first, second in combinations([each for each in MAIN if each in trials.asked], 2):
        both = trials.questions(first) | trials.questions(second)
        yield "two answers", partial(trials.one, f"{first} and {second}", both, faults.NOT_PERMITTED)
    yield "facts hidden", lambda: {rule.id: hidden(rule) for rule in rules}


# -- on the recorded host -----------------------------------------------------------------------------------------------


def _whole(rules: Sequence[Rule], past: Recording, fault: Fault, release: set[tuple[str, ...]]) -> dict[str, Cell]:
    """With every answer at fault each rule is undecided.

    Where zaudit refuses to judge because OpenZFS is not loaded, the release is refused instead of missing.
    """
    facts = look(past, FaultyHost(ReplayHost(past), fault))
    if facts is None:
        rest = FaultyHost(ReplayHost(past), fault)
        facts = look(past, FaultyHost(rest, faults.NOT_PERMITTED, release))
    after = outcomes(rules, facts or Facts())
    found = {}
    for rule in rules:
        mine = {subject: outcome for (id, subject), outcome in after.items() if id == rule.id}
        # a word that a later release says may be a hypervisor that nobody knows: that is a failure, or no case for a rule
        allowed = ("unknown", "fail", "not applicable") if fault is faults.UNKNOWN_RELEASE else ("unknown",)
        wrong = [f"{subject}: {outcome}" for subject, outcome in mine.items() if outcome not in allowed]
        found[rule.id] = Cell(1, tuple(wrong) if mine else ("it says nothing",))
    return found


def improved(rules: Sequence[Rule], past: Recording, most: int) -> list[str]:
    """What gets better on a recorded host when its answers lose something; of each collector at most so many losses."""
    if (trials := Trials.of(rules, past)) is None:
        return []
    found: list[str] = []
    for collector in trials.asked:
        for fault, to in lost(past, collector, trials.questions(collector), most):
            cells = trials.one(collector, to, fault)
            found += [f"{rule}: {text}" for rule, cell in cells.items() for text in cell.wrong]
    return found


# -- on the examples ----------------------------------------------------------------------------------------------------


def hidden(rule: Rule) -> Cell:
    """Each example with each of its facts hidden, and with all of them: what did not pass does not pass."""
    cases, wrong = 1, []
    facts = registry.registry()
    if example.run(rule, Example("nothing known", {}, "unknown", None), facts).outcome != "unknown":
        wrong.append("nothing known, and not unknown")
    for each in rule.examples:
        if each.verdict in ("pass", "not applicable"):
            continue
        for given, path in _without(each.given):
            cases += 1
            if example.run(rule, each._replace(given=given), facts).outcome == "pass":
                wrong.append(f"{each.name!r} passes without {path}")
    return Cell(cases, tuple(wrong))


def _without(given: Any, path: str = "") -> Iterator[tuple[Any, str]]:
    """The same with one fact unknown, for each fact at any depth."""
    hidden = {"unknown": "hidden by the self-test"}
    match given:
        case {"unknown": _}:
            return
        case dict():
            for name, value in given.items():
                if value != hidden:
                    yield {**given, name: hidden}, f"{path}{name}"
                    for inner, where in _without(value, f"{path}{name}."):
                        yield {**given, name: inner}, where
        case list():
            for i, value in enumerate(given):
                for inner, where in _without(value, f"{path}{i}."):
                    yield [*given[:i], inner, *given[i + 1 :]], where


def passed(rows: Sequence[Row]) -> bool:
    """Whether no rule passed where it must not."""
    return not any(cell.wrong for row in rows for cell in row.cells.values())
