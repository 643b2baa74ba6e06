"""The table of the self-test: every rule against every fault, on a recorded host and on the rule's own examples."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from auditor import audit, data, registry
from auditor.facts import HOST, Facts, Subject
from auditor.gather.gatherer import of
from auditor.host.request import Read, Run
from auditor.judge import example, verdict
from auditor.judge.rule import Example, Rule
from auditor.recording import recording
from auditor.recording.recording import Recording, ReplayHost
from auditor.selftest import faults, losses
from auditor.selftest.faults import HALVED, OF_ONE, Fault, FaultyHost

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
# zpool list, the kernel's log and files of people have no end mark: what is cut between two
# lines looks whole
NO_END_MARK = frozenset(
    {
        *(
            "zpool_list",
            "kernel_log",
            "modprobe",
            "scrub_timers",
            "scrub_cron",
            "database_settings",
            "database_includes",
        ),
    }
)

POOLS = ("/proc/spl/kstat/zfs/*/state",)  # the second witness of zpool list: older recordings do not have it
LOSSES = 6  # lines, and keys, of one collector's answers: more of them are the tests' business
SAYS_WHOSE = frozenset({"smartctl", "nvme_id_ctrl", "hdparm"})  # answers that name the disk that they are about

Outcomes = dict[tuple[str, Subject], str]


class Cell(NamedTuple):
    """One rule against one kind of fault. cases: how often it was judged; wrong: how it passed where it must not."""

    cases: int
    wrong: tuple[str, ...]


class Row(NamedTuple):
    """One rule. healthy: what it says of the recorded host as it is; cells: by the name of the fault."""

    rule: str
    healthy: str
    cells: Mapping[str, Cell]


def host() -> Recording:
    """The recorded host that is part of zaudit."""
    members = {name: text.encode("utf-8", "surrogateescape") for name, text in json.loads(data.text(FILE)).items()}
    return recording.parse(FILE, members)


def run(rules: Sequence[Rule], progress: Callable[[int, int, str], None] | None = None) -> list[Row]:
    """All rules, with their examples, by id."""
    past = host()
    base = _look(past, ReplayHost(past))
    assert base is not None
    before = _outcomes(rules, base)
    columns: dict[str, dict[str, Cell]] = {}
    steps = list(_steps(rules, past, base, before))
    for done, (name, step) in enumerate(steps, 1):
        if progress:
            progress(done, len(steps), name)
        column = columns.setdefault(name, {rule.id: Cell(0, ()) for rule in rules})
        for id, cell in step().items():
            column[id] = Cell(column[id].cases + cell.cases, column[id].wrong + cell.wrong)
    healthy = {rule.id: sorted({outcome for (id, _), outcome in before.items() if id == rule.id}) for rule in rules}
    return [
        Row(
            rule.id,
            ", ".join(healthy[rule.id]) or "no subject",
            {name: column[rule.id] for name, column in columns.items()},
        )
        for rule in rules
    ]


def _steps(
    rules: Sequence[Rule], past: Recording, base: Facts, before: Outcomes
) -> Iterator[tuple[str, Callable[[], dict[str, Cell]]]]:
    """(column, how to fill it): the whole host at fault, then one collector after the other, then the examples."""
    asked = _questions(base)
    for fault in LABELS:
        yield LABELS[fault], lambda fault=fault: _whole(rules, past, fault, asked["zfs_version"])  # type: ignore[misc]
    for collector, questions in asked.items():
        for fault, to in _lost(past, collector, questions, LOSSES):
            yield "one loss", lambda c=collector, q=to, f=fault: _one(rules, past, before, c, q, f)  # type: ignore[misc]
        for fault in OF_ONE:
            yield "one answer", lambda c=collector, q=questions, f=fault: _one(rules, past, before, c, q, f)  # type: ignore[misc]
    yield "facts hidden", lambda: {rule.id: hidden(rule) for rule in rules}


# -- on the recorded host -----------------------------------------------------------------------------------------------


def _look(past: Recording, seen: Any) -> Facts | None:
    """The facts, or None where zaudit refuses to judge (exit code 3)."""
    try:
        return audit.look(seen, past.targets or ("tank",), audit.Options.from_words(past.options)).facts
    except audit.NothingToAudit:
        return None


def _outcomes(rules: Sequence[Rule], facts: Facts) -> Outcomes:
    return {(each.rule.id, each.subject): each.outcome for each in verdict.judge(rules, facts)}


def _whole(rules: Sequence[Rule], past: Recording, fault: Fault, release: set[tuple[str, ...]]) -> dict[str, Cell]:
    """With every answer at fault each rule is undecided.

    Where zaudit refuses to judge because OpenZFS is not loaded, the release is refused instead of missing.
    """
    facts = _look(past, FaultyHost(ReplayHost(past), fault))
    if facts is None:
        rest = FaultyHost(ReplayHost(past), fault)
        facts = _look(past, FaultyHost(rest, faults.NOT_PERMITTED, release))
    after = _outcomes(rules, facts or Facts())
    found = {}
    for rule in rules:
        mine = {subject: outcome for (id, subject), outcome in after.items() if id == rule.id}
        # a word that a later release says may be a hypervisor that nobody knows: that is a failure, or no case for a rule
        allowed = ("unknown", "fail", "not applicable") if fault is faults.UNKNOWN_RELEASE else ("unknown",)
        wrong = [f"{subject}: {outcome}" for subject, outcome in mine.items() if outcome not in allowed]
        found[rule.id] = Cell(1, tuple(wrong) if mine else ("it says nothing",))
    return found


def _questions(facts: Facts) -> dict[str, set[tuple[str, ...]]]:
    """What each collector asks of this host: commands and patterns of files."""
    collectors = registry.collectors()
    pools = facts.linked(HOST, "pools")
    subjects: dict[str, Sequence[Subject]] = {
        "host": (HOST,),
        "pool": pools,
        "target": tuple(Subject("dataset", pool.name) for pool in pools),
        "disk": tuple(facts.subjects("disk")),
        "database": tuple(facts.subjects("database")),
    }
    asked: dict[str, set[tuple[str, ...]]] = {}
    for per, members in subjects.items():
        for name in of(collectors, per):
            for subject in members:
                match collectors[name].request(subject, facts):
                    case Run(argv=question) | Read(patterns=question):
                        asked.setdefault(name, set()).add(question)
    return asked


def _lost(
    past: Recording, collector: str, questions: set[tuple[str, ...]], most: int
) -> Iterator[tuple[Fault, set[tuple[str, ...]]]]:
    """(fault, the questions that are answered so): what one collector's answers can lose, and answers that are swapped."""
    if collector in losses.ONE_LOOK or (collector == "zpool_list" and POOLS not in past.files):
        return
    answers = {question: past.commands[question] for question in sorted(questions) if question in past.commands}
    files = [past.files[question] for question in sorted(questions) if question in past.files]
    for fault in losses.of_answers([*answers.values(), *files], most):
        yield fault, questions
    heard = [question for question, answer in answers.items() if answer.exit == 0]
    for question, other in zip(heard, heard[1:] + heard[:1], strict=True):
        if question != other and collector in SAYS_WHOSE:
            yield losses.of_another(answers[other]), {question}
    if collector == "zfs_get":
        yield losses.TEMPORARY, questions


def improved(rules: Sequence[Rule], past: Recording, most: int) -> list[str]:
    """What gets better on a recorded host when its answers lose something; of each collector at most so many losses."""
    base = _look(past, ReplayHost(past))
    if base is None:
        return []
    before, found = _outcomes(rules, base), []
    for collector, questions in _questions(base).items():
        for fault, to in _lost(past, collector, questions, most):
            cells = _one(rules, past, before, collector, to, fault)
            found += [f"{rule}: {text}" for rule, cell in cells.items() for text in cell.wrong]
    return found


def _one(
    rules: Sequence[Rule], past: Recording, before: Outcomes, collector: str, to: set[tuple[str, ...]], fault: Fault
) -> dict[str, Cell]:
    """With one collector's answers at fault a verdict stays, or becomes undecided; or falls with a hole above it."""
    if collector in NO_END_MARK and fault is HALVED:
        return {}
    facts = _look(past, FaultyHost(ReplayHost(past), fault, to))
    if facts is None:
        return {}  # exit code 3: nothing is said to be fine
    after = _outcomes(rules, facts)
    holes = {id for (id, _), outcome in after.items() if outcome == "unknown"}
    wrong: dict[str, list[str]] = {rule.id: [] for rule in rules}
    for key in dict.fromkeys((*before, *after)):
        was, now = before.get(key, "nothing"), after.get(key, "nothing")
        if now == "pass" and was not in ("pass", "not applicable"):  # what holds holds, whether it applies or not
            wrong[key[0]].append(f"{collector}, {fault.name}: {key[1]}: {was} -> pass")
        elif now == "not applicable" and was == "fail" and fault.partial:
            wrong[key[0]].append(f"{collector}, {fault.name}: {key[1]}: fail, and now not applicable")
        elif now == "nothing" and was in ("fail", "unknown") and key[0] not in holes:
            wrong[key[0]].append(f"{collector}, {fault.name}: {key[1]}: {was}, and now nothing")
    return {rule.id: Cell(1, tuple(wrong[rule.id])) for rule in rules}


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
