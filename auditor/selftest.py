"""Does zaudit keep its one law on this very installation: nothing that was not seen is called fine?

A small recorded host is audited again and again with answers that are missing, refused, cut off, late, empty or of a
release that nobody knows; and each rule is judged on its own examples with facts hidden. No rule may pass by it.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from auditor import audit, data, registry
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Kind, Known, Spec, Subject, Value, unknown
from auditor.gather import answer
from auditor.gather.gatherer import of
from auditor.host.live import Host
from auditor.host.request import UNASKED, Capture, Files, Read, Run, Skip
from auditor.judge import verdict
from auditor.judge.expression import Registry
from auditor.judge.rule import Example, Rule, RuleError
from auditor.judge.verdict import Verdict, judge_one
from auditor.recording import archive, recording
from auditor.recording.recording import Recording, ReplayHost

# Ways in which answers go wrong: pure functions from what a host answered to what it might have answered instead.

DENIED = "permission denied"
GARBAGE = bytes((i * 197 + 61) % 256 for i in range(700)) + b"\n"
LATER = b"quantum"  # a word that no release says


@dataclass(frozen=True, slots=True)
class Fault:
    """gone: no answer at all. partial: what is left of the answer is as it was (a later release may mean other things)."""

    name: str
    capture: Callable[[Capture], Capture]
    files: Callable[[Files], Files]
    gone: bool = False
    partial: bool = True


@dataclass(slots=True)
class FaultyHost:
    """A host that answers with a fault. to: the questions (argv, or patterns) that it answers so; None: all."""

    host: Host
    fault: Fault
    to: Container[tuple[str, ...]] | None = None
    now: float = 0.0
    euid: int = 0
    at_once: int = 1

    def __post_init__(self) -> None:
        self.now, self.euid = self.host.now, self.host.euid

    def run(self, request: Run) -> Capture:
        answered = self.host.run(request)
        return self.fault.capture(answered) if self.to is None or request.argv in self.to else answered

    def read(self, request: Read) -> Files:
        answered = self.host.read(request)
        if self.to is not None and request.patterns not in self.to:
            return answered
        files = self.fault.files(answered)
        patterns = dict.fromkeys(request.patterns, DENIED) if self.fault is NOT_PERMITTED else {}
        return files._replace(errors={**patterns, **files.errors})

    def realpath(self, path: str) -> str:
        return self.host.realpath(path)

    def steady(self, path: str) -> str:
        return self.host.steady(path)


def of_text(name: str, change: Callable[[bytes], bytes], *, partial: bool = True) -> Fault:
    """A fault of the text alone: of standard output, and of each file."""

    def files(answered: Files) -> Files:
        changed = {path: change(as_bytes(text)) for path, text in answered.text.items()}
        text = {path: data.decode("utf-8", "surrogateescape") for path, data in changed.items()}
        return answered._replace(text=text)

    return Fault(name, lambda answered: answered._replace(stdout=change(answered.stdout)), files, partial=partial)


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _silent(why: str) -> Callable[[Files], Files]:
    """No file could be read, no link followed."""
    return lambda answered: Files({}, {}, dict.fromkeys((*answered.text, *answered.links, *answered.errors), why))


def cut_in(text: bytes, at: int) -> bytes:
    """The first lines, and half of the next."""
    lines = text.splitlines(True)
    return b"".join(lines[:at]) + (lines[at][: len(lines[at]) // 2] if at < len(lines) else b"")


NONE = Fault("none", lambda answered: answered, lambda answered: answered)
NOT_INSTALLED = Fault("not installed", lambda _: Capture(None, fault="not installed"), _silent("no such file"), True)
NOT_PERMITTED = Fault("not permitted", lambda _: Capture(1, b"", b"permission denied\n"), _silent(DENIED), True)
TIME_OUT = Fault(
    "time-out",
    lambda answered: Capture(None, answered.stdout[:99], b"", 30.0, "no answer within 30 s"),
    _silent("no answer within 30 s"),
    True,
)
EMPTY = of_text("empty", lambda _: b"")
NOTHING_SAID = Fault("nothing said", lambda answered: answered._replace(stdout=b""), lambda _: Files({}))
BINARY = of_text("garbage", lambda _: GARBAGE, partial=False)
CUT = of_text("cut off", lambda text: cut_in(text, 0))
HALVED = of_text("cut in half", lambda text: text[: len(text) // 2])
UNKNOWN_RELEASE = Fault(
    "unknown release",  # it spells every word otherwise, and calls every file otherwise
    lambda answered: answered._replace(stdout=re.sub(rb"[A-Za-z_][A-Za-z_]+", LATER, answered.stdout)),
    _silent("no such file"),
    partial=False,
)
OF_ONE = (NOT_PERMITTED, EMPTY, NOTHING_SAID, BINARY, CUT, HALVED, UNKNOWN_RELEASE)
"""Of one question among many: no verdict may get better by it."""


Outcomes = dict[tuple[str, Subject], str]


def outcomes(rules: Sequence[Rule], facts: Facts) -> Outcomes:
    """(rule, subject) -> pass, fail, unknown or not applicable."""
    return {(each.rule.id, each.subject): each.outcome for each in verdict.judge(rules, facts)}


# Answers that lost something and look whole: a line, a key, the rest after a line; or that are for another subject. Of
# many lines and keys some are taken, evenly spread.

# One look only, and no end mark: of a line that is lost from these nothing else tells. The kernel forgets its log; the others
# are files that people write, which end where they end.
ONE_LOOK = frozenset(
    {
        *("kernel_log", "modprobe", "samba_conf", "nfs_exports", "trim_timers"),
        *("database_process", "database_includes", "database_settings", "database_sql"),
    }
)
TEMPORARY = of_text(
    "temporary readonly", lambda text: text.replace(b"\treadonly\toff\tdefault\n", b"\treadonly\ton\ttemporary\n")
)


def of_answers(answers: Sequence[Capture | Files], most: int) -> Iterator[Fault]:
    """Losses of one collector's answers: at most so many lines gone, cuts after a line, and keys gone."""
    texts = [answer.stdout for answer in answers if isinstance(answer, Capture)]
    texts += [as_bytes(text) for answer in answers if isinstance(answer, Files) for text in answer.text.values()]
    lines = max((text.count(b"\n") for text in texts), default=0)
    for at in _spread(lines, most):
        yield of_text(f"line {at + 1} lost", lambda text, at=at: _without_line(text, at))  # type: ignore[misc]
        yield of_text(f"cut after line {at}", lambda text, at=at: b"".join(text.splitlines(True)[:at]))  # type: ignore[misc]
    keys = max((len(list(_places(_document(text)))) for text in texts), default=0)
    for at in _spread(keys, most):
        yield of_text(f"key {at + 1} lost", lambda text, at=at: _without_key(text, at))  # type: ignore[misc]


def of_another(answer: Capture) -> Fault:
    return Fault("an answer for another", lambda _: answer, lambda files: files)


def _spread(count: int, most: int) -> list[int]:
    return sorted({(2 * i + 1) * count // (2 * most) for i in range(most)}) if count > most else list(range(count))


def _without_line(text: bytes, at: int) -> bytes:
    lines = text.splitlines(True)
    return b"".join(lines[:at] + lines[at + 1 :])


def _document(text: bytes) -> Any:
    if text.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """(what holds it, its key) of everything in a document, those that are lists or objects first: rows and sections."""
    inner = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    for key, value in inner:
        if isinstance(value, dict | list):
            yield node, key
            yield from _places(value)


def _without_key(text: bytes, at: int) -> bytes:
    document = _document(text)
    for i, (holder, key) in enumerate(_places(document)):
        if i == at:
            del holder[key]
            return json.dumps(document).encode() + b"\n"
    return text


# One recorded host, judged again and again with one collector's answers at fault.

# zpool list, the kernel's log and files of people have no end mark: what is cut between two lines looks whole
NO_END_MARK = frozenset(
    {*("zpool_list", "kernel_log", "modprobe", "fstab"), *("database_settings", "database_includes")}
)
POOLS = ("/proc/spl/kstat/zfs/*/state",)  # the second witness of zpool list: older recordings do not have it
SAYS_WHOSE = frozenset({"smartctl", "nvme_id_ctrl", "hdparm"})  # answers that name the disk that they are about


class Cell(NamedTuple):
    """One rule against one kind of fault. cases: how often it was judged; wrong: how it passed where it must not."""

    cases: int
    wrong: tuple[str, ...]


def look(past: Recording, seen: Any) -> Facts | None:
    """The facts, or None where zaudit refuses to judge (exit code 3)."""
    try:
        return audit.look(seen, past.targets or ("tank",), audit.Options.from_words(past.options)).facts
    except audit.NothingToAudit:
        return None


def questions(facts: Facts) -> dict[str, list[tuple[Subject, Run | Read]]]:
    """What each collector asks of this host, about whom."""
    sources = registry.sources()
    pools = facts.linked(HOST, "pools")
    subjects: dict[str, Sequence[Subject]] = {
        "host": (HOST,),
        "pool": pools,
        "target": tuple(Subject("dataset", pool.name) for pool in pools),
        "dataset": tuple(facts.subjects("dataset")),
        "disk": tuple(facts.subjects("disk")),
        "database": tuple(facts.subjects("database")),
    }
    asked: dict[str, list[tuple[Subject, Run | Read]]] = {}
    for per, members in subjects.items():
        for name in of(sources, per):
            for subject in members:
                request = sources[name].request(subject, facts)
                if not isinstance(request, Skip):
                    asked.setdefault(name, []).append((subject, request))
    return asked


def _question(request: Run | Read) -> tuple[str, ...]:
    return request.argv if isinstance(request, Run) else request.patterns


def lost(
    past: Recording, collector: str, questions: set[tuple[str, ...]], most: int
) -> Iterator[tuple[Fault, set[tuple[str, ...]]]]:
    """(fault, the questions that are answered so): what one collector's answers can lose, and answers that are swapped."""
    if collector in ONE_LOOK or (collector == "zpool_list" and POOLS not in past.files):
        return
    replay = ReplayHost(past)  # an older recording has the answers under questions in other words
    answers = {
        question: reply for question in sorted(questions) if (reply := replay.run(Run(question))).fault != UNASKED
    }
    files = [past.files[question] for question in sorted(questions) if question in past.files]
    for fault in of_answers([*answers.values(), *files], most):
        yield fault, questions
    heard = [question for question, answer in answers.items() if answer.exit == 0]
    for question, other in zip(heard, heard[1:] + heard[:1], strict=True):
        if question != other and collector in SAYS_WHOSE:
            yield of_another(answers[other]), {question}
    if collector == "zfs_get":
        yield TEMPORARY, questions


class Noted:
    """Contains no question, and counts those that it is looked for."""

    def __init__(self) -> None:
        self.put: Counter[tuple[str, ...]] = Counter()

    def __contains__(self, question: object) -> bool:
        assert isinstance(question, tuple)
        self.put[question] += 1
        return False


@dataclass
class Trials:
    """One recorded host, judged with one collector's answers at fault. Faults of equal effect are judged once."""

    rules: Sequence[Rule]
    past: Recording
    before: Outcomes
    asked: Mapping[str, list[tuple[Subject, Run | Read]]]
    elsewhere: frozenset[tuple[str, ...]]  # questions that are put by others than collectors, too
    told: dict[object, dict[str, Cell]] = field(default_factory=dict)

    @classmethod
    def of(cls, rules: Sequence[Rule], past: Recording) -> Trials | None:
        """Of the host as it is; None where zaudit refuses to judge it."""
        noted = Noted()
        if (base := look(past, FaultyHost(ReplayHost(past), NONE, noted))) is None:
            return None
        asked = questions(base)
        rest = noted.put - Counter(_question(request) for each in asked.values() for _, request in each)
        return cls(rules, past, outcomes(rules, base), asked, frozenset(rest))

    def questions(self, collector: str) -> set[tuple[str, ...]]:
        return {_question(request) for _, request in self.asked[collector]}

    def one(self, collector: str, to: set[tuple[str, ...]], fault: Fault) -> dict[str, Cell]:
        """With one collector's answers at fault a verdict stays, or becomes undecided; or falls with a hole above it."""
        if collector in NO_END_MARK and fault is HALVED:
            return {}
        host = FaultyHost(ReplayHost(self.past), fault, to)
        if to & self.elsewhere:
            return self._judged(collector, host)
        heard = (fault.partial, *self._heard(host, to))
        if heard not in self.told:
            as_it_was = heard[1:] == tuple(self._heard(FaultyHost(host.host, NONE), to))
            same = {rule.id: Cell(1, ()) for rule in self.rules}
            self.told[heard] = same if as_it_was else self._judged(collector, host)
        return self.told[heard]

    def _heard(self, host: FaultyHost, to: set[tuple[str, ...]]) -> Iterator[object]:
        """Who asks these questions, and all that anybody else can notice of the answers but the reasons of what they lack."""
        for name, each in self.asked.items():
            for subject, request in each:
                if _question(request) in to:
                    reply = host.run(request) if isinstance(request, Run) else host.read(request)
                    came = answer.answer_of(registry.sources()[name], subject, request, reply, host)
                    facts = frozenset(
                        (*fact[:2], fact.value if isinstance(fact.value, Known) else None) for fact in came.facts
                    )
                    yield name, subject, facts, came.failure is None, came.applies, bool(came.unasked), came.part

    def _judged(self, collector: str, host: FaultyHost) -> dict[str, Cell]:
        facts = look(self.past, host)
        if facts is None:
            return {}  # exit code 3: nothing is said to be fine
        before, after, fault = self.before, outcomes(self.rules, facts), host.fault
        holes = {id for (id, _), outcome in after.items() if outcome == "unknown"}
        wrong: dict[str, list[str]] = {rule.id: [] for rule in self.rules}
        for key in dict.fromkeys((*before, *after)):
            was, now = before.get(key, "nothing"), after.get(key, "nothing")
            if now == "pass" and was not in ("pass", "not applicable"):  # what holds holds, whether it applies or not
                wrong[key[0]].append(f"{collector}, {fault.name}: {key[1]}: {was} -> pass")
            elif now == "not applicable" and was == "fail" and fault.partial:
                wrong[key[0]].append(f"{collector}, {fault.name}: {key[1]}: fail, and now not applicable")
            elif now == "nothing" and was in ("fail", "unknown") and key[0] not in holes:
                wrong[key[0]].append(f"{collector}, {fault.name}: {key[1]}: {was}, and now nothing")
        return {rule.id: Cell(1, tuple(wrong[rule.id])) for rule in self.rules}


# The table of the self-test: every rule against every fault, on a recorded host and on the rule's own examples.

FILE = "selftest.tar.gz"
# of the whole host: nothing is left that a rule could pass by; "release" is one that spells everything otherwise
LABELS = {
    NOT_INSTALLED: "missing",
    NOT_PERMITTED: "denied",
    TIME_OUT: "hung",
    EMPTY: "empty",
    BINARY: "garbled",
    CUT: "truncated",
    UNKNOWN_RELEASE: "release",
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
    return recording.parse(FILE, archive.unpacked(io.BytesIO(data.read(FILE)), Path(FILE)))


def run(rules: Sequence[Rule], progress: Callable[[int, int, str, float], None] | None = None) -> list[Row]:
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
        rule.id: sorted({outcome for (id, _), outcome in trials.before.items() if id == rule.id}) for rule in rules
    }
    cells = {rule.id: {name: column[rule.id] for name, column in columns.items()} for rule in rules}
    return [Row(rule.id, ", ".join(healthy[rule.id]) or "no subject", cells[rule.id]) for rule in rules]


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
        yield "two answers", partial(trials.one, f"{first} and {second}", both, NOT_PERMITTED)
    yield "facts hidden", lambda: {rule.id: hidden(rule) for rule in rules}


# -- on the recorded host -----------------------------------------------------------------------------------------------


def _whole(rules: Sequence[Rule], past: Recording, fault: Fault, release: set[tuple[str, ...]]) -> dict[str, Cell]:
    """With every answer at fault each rule is unknown. Where OpenZFS would not be loaded, the release is refused instead."""
    facts = look(past, FaultyHost(ReplayHost(past), fault))
    if facts is None:
        rest = FaultyHost(ReplayHost(past), fault)
        facts = look(past, FaultyHost(rest, NOT_PERMITTED, release))
    after = outcomes(rules, facts or Facts())
    found = {}
    for rule in rules:
        mine = {subject: outcome for (id, subject), outcome in after.items() if id == rule.id}
        # a word that a later release says may be a hypervisor that nobody knows: that is a failure, or no case for a rule
        allowed = ("unknown", "fail", "not applicable") if fault is UNKNOWN_RELEASE else ("unknown",)
        wrong = [f"{subject}: {outcome}" for subject, outcome in mine.items() if outcome not in allowed]
        found[rule.id] = Cell(1, tuple(wrong) if mine else ("it says nothing",))
    return found


# -- on the examples ----------------------------------------------------------------------------------------------------


def hidden(rule: Rule) -> Cell:
    """Each example with each of its facts hidden, and with all of them: what did not pass does not pass."""
    cases, wrong = 1, []
    facts = registry.registry()
    if run_example(rule, Example("nothing known", {}, "unknown", None), facts).outcome != "unknown":
        wrong.append("nothing known, and not unknown")
    for each in rule.examples:
        if each.verdict in ("pass", "not applicable"):
            continue
        for given, path in _without(each.given):
            cases += 1
            if run_example(rule, each._replace(given=given), facts).outcome == "pass":
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
    return not any(cell.wrong for row in rows for cell in row.cells.values())


# The examples of a rule, run: they are its tests, and ``zaudit explain`` shows them.


def run_example(rule: Rule, example: Example, registry: Registry) -> Verdict:
    """The verdict of the rule on what the example gives; raises RuleError when that does not fit the facts that exist."""
    facts = Facts()
    root = HOST if rule.subject == "host" else Subject(rule.subject, "example")
    facts.add(HOST)
    facts.add(root)
    for name, value in example.given.items():
        kind, _, bare = name.partition(".")
        if kind not in (rule.subject, "host"):
            raise RuleError(f"{rule.path}: example {example.name!r}: {name!r} is not a fact of {rule.subject} or host")
        for fact in _facts(HOST if kind == "host" else root, bare, value, registry, f"{rule.path}: {example.name}"):
            facts.put(fact)
    return judge_one(rule, root, facts)


def _facts(subject: Subject, name: str, value: Any, registry: Registry, where: str) -> Iterator[Fact]:
    spec = registry.get((subject.kind, name))
    if spec is None:
        raise RuleError(f"{where}: no collector provides {subject.kind}.{name}")
    if isinstance(value, dict) and set(value) == {"unknown"}:
        yield Fact(subject, name, unknown(str(value["unknown"])))
    elif spec.type is Subject:
        yield from _linked(subject, name, value, spec, registry, where)
    else:
        yield Fact(subject, name, Known(_scalar(value, spec, f"{where}: {name}"), (Evidence(f"{name}={value}"),)))


def _linked(subject: Subject, name: str, value: Any, spec: Spec, registry: Registry, where: str) -> Iterator[Fact]:
    kind: Kind | None = spec.kind
    assert kind is not None
    tables = value if spec.many else [value]
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise RuleError(f"{where}: {name} needs {'a list of tables' if spec.many else 'a table'} of facts of {kind}")
    targets = tuple(Subject(kind, f"{subject.name}.{name}{i}") for i in range(len(tables)))
    linked: Judged = Known(targets if spec.many else targets[0], (Evidence(f"{len(targets)} {name}"),))
    yield Fact(subject, name, linked)
    for target, table in zip(targets, tables, strict=True):
        for inner, inner_value in table.items():
            yield from _facts(target, inner, inner_value, registry, where)


def _scalar(value: Any, spec: Spec, where: str) -> Value:
    if spec.row and isinstance(value, list):
        try:
            return tuple(spec.row(*each) for each in value if isinstance(each, list))
        except TypeError:
            raise RuleError(f"{where}: a row of {value!r} has not {', '.join(spec.row._fields)}") from None
    if spec.type is tuple and isinstance(value, list):
        return tuple(value)
    if spec.type is float and type(value) is int:
        return float(value)
    if not isinstance(value, bool | int | float | str) or type(value) is not spec.type:
        raise RuleError(f"{where}: {value!r} is not {spec.type.__name__}")
    if spec.values and value not in spec.values:
        raise RuleError(f"{where}: {value!r} is not a possible value; it is one of {', '.join(spec.values)}")
    checked: Value = value
    return checked
