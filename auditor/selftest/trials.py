"""One recorded host, judged again and again with one collector's answers at fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from auditor import audit, registry
from auditor.facts import HOST, Facts, Known, Subject
from auditor.gather import answer
from auditor.gather.gatherer import of
from auditor.host.request import UNASKED, Read, Run, Skip
from auditor.judge.rule import Rule
from auditor.recording.recording import Recording, ReplayHost
from auditor.selftest import losses
from auditor.selftest.anew import Before
from auditor.selftest.faults import HALVED, NONE, Fault, FaultyHost

# zpool list, the kernel's log and files of people have no end mark: what is cut between two lines looks whole
NO_END_MARK = frozenset(
    {
        *("zpool_list", "kernel_log", "modprobe"),
        *("database_settings", "database_includes"),
    }
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
    if collector in losses.ONE_LOOK or (collector == "zpool_list" and POOLS not in past.files):
        return
    replay = ReplayHost(past)  # an older recording has the answers under questions in other words
    answers = {
        question: reply for question in sorted(questions) if (reply := replay.run(Run(question))).fault != UNASKED
    }
    files = [past.files[question] for question in sorted(questions) if question in past.files]
    for fault in losses.of_answers([*answers.values(), *files], most):
        yield fault, questions
    heard = [question for question, answer in answers.items() if answer.exit == 0]
    for question, other in zip(heard, heard[1:] + heard[:1], strict=True):
        if question != other and collector in SAYS_WHOSE:
            yield losses.of_another(answers[other]), {question}
    if collector == "zfs_get":
        yield losses.TEMPORARY, questions


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
    """One recorded host, judged again and again with one collector's answers at fault. What comes of two faults in the same
    way is judged once."""

    rules: Sequence[Rule]
    past: Recording
    before: Before
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
        return cls(rules, past, Before.of(rules, base), asked, frozenset(rest))

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
            self.told[heard] = self._unchanged() if as_it_was else self._judged(collector, host)
        return self.told[heard]

    def _unchanged(self) -> dict[str, Cell]:
        return {rule.id: Cell(1, ()) for rule in self.rules}

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
        before, after, fault = self.before.outcomes, self.before.after(facts), host.fault
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
