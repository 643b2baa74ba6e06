"""What each event would cost each dataset: the durability model of this host, in the words of a report.

The model decides (:mod:`auditor.durability`), from the same facts as the rules. A rule explains the cells that hang on
its elements, and is as severe as the worst of them. A waiver or an answer changes no cell: it says who answers, and
until when.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from auditor.data import drives, durability
from auditor.durability import repairs, table
from auditor.durability.answers import Answer, Choice, Promise, Rank, Reason, Relies
from auditor.durability.host import GONE, QUESTIONS, Host, Program, Question
from auditor.durability.repairs import Carried
from auditor.durability.table import Judge, Table
from auditor.facts import HOST, Facts, Known, Subject, Unknown, is_true
from auditor.judge.event import (
    EVENTS,
    KEPT,
    NEXT,
    ORDER,
    SEVERITIES,
    STORE_PARTIES,
    TAKES,
    Cell,
    Event,
    Outcome,
    Severity,
    Take,
    Tried,
    Word,
    joined,
    merged,
    milder,
)
from auditor.judge.verdict import Carries, Verdict, Verdicts, pool_works
from auditor.judge.waivers import Answers
from auditor.model import whole_host
from auditor.model.stores import Reading
from auditor.model.whole_host import Observation, Storage, read

OUTCOMES: Mapping[Rank, Outcome] = {Rank.LOST: "lost", Rank.UNKNOWN: "unknown", Rank.RELIES: "word", Rank.SAFE: "kept"}
ANSWERS: Mapping[Rank, str] = {Rank.LOST: "lost", Rank.UNKNOWN: "unknown", Rank.RELIES: "relies"}
UNSEEN = {  # what decides a cell and has no rule
    "circle": "pool {} lies on itself",
    "dataset": "the dataset of {} was not seen",
    "errors": "{} has had errors",
}
HOURS_FROM, DAYS_FROM = 2, 72  # hours
IN_A_POOL = ("pool", "dataset", "vdev", "leaf")  # kinds of subjects whose name tells their pool


class Column(NamedTuple):
    """Datasets to which the same happens. names: of datasets, or of pools whose datasets could not be listed.
    next_boot: the cells that differ from the next start of the database or host on. restart: which of them changes
    something. gone: the loss of the pool with all that is on it; it decides neither headline nor severity."""

    names: tuple[str, ...]
    cells: Mapping[Event, Cell]
    next_boot: Mapping[Event, Cell] = {}
    restart: str = "the database or host"
    gone: Cell | None = None

    @property
    def worst(self) -> int:
        return max(ORDER[cell.outcome] for cell in self.cells.values())


class _Side(NamedTuple):
    """A host of the model, with the table of each program."""

    observation: Observation
    judge: Judge
    tables: Mapping[str, Table]

    @property
    def host(self) -> Host:
        return self.observation.host


class _Asked(NamedTuple):
    event: Event
    question: Question
    answer: Answer
    program: Program


class Row(NamedTuple):
    """One answer of the model. next_boot: from the next boot on, where that differs."""

    program: str
    event: Event
    question: Question
    next_boot: bool = False


Answered = Mapping[Row, Rank]


class EventTable:
    """Of one host: what is in force now, and what the next boot puts in force."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._asked = is_true(facts.get(HOST, "database_expected")) and not is_true(facts.get(HOST, "database_seen"))
        self._unseen = isinstance(facts.get(HOST, "databases"), Unknown)
        every = facts.linked(HOST, "databases")
        self._homeless = [each.name for each in every if isinstance(facts.get(each, "datasets"), Unknown)]
        storage = Storage(facts)
        now, then = read(Reading(facts), storage), read(Reading(facts, next_boot=True), storage)
        self._now = _side(now)
        self._then = None if then.host == now.host else _side(then)
        self._relations = Relations(facts)
        self._subjects: dict[tuple[bool, str], frozenset[Subject]] = {}

    @property
    def _sides(self) -> tuple[_Side, ...]:
        return (self._now, self._then) if self._then else (self._now,)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Those that can happen to this host: no log device goes where there is none."""
        found = {event for table in self._now.tables.values() for event, _ in table}
        return tuple(event for event in EVENTS if event in found)

    def answers(self) -> Answered:
        """Every answer of the model, of now and of the next boot."""
        return {
            Row(name, event, question, side is self._then): self._rank(answer)
            for side in self._sides
            for name, table in side.tables.items()
            for (event, question), answer in table.items()
        }

    # -- columns -----------------------------------------------------------------------------------------------------

    def columns(self, verdicts: Iterable[Verdict], answers: Answers) -> tuple[Column, ...]:
        """Datasets to which the same happens together, the worst first; none of a pool that does not work."""
        behind = _Behind(Verdicts.of(verdicts).open(), self._relations)
        groups: dict[tuple[object, ...], list[tuple[list[str], Mapping[Event, Cell], Mapping[Event, Cell]]]] = {}
        for pool in self._facts.linked(HOST, "pools"):
            if pool_works(pool, self._facts):
                for names in self._alike(pool, behind):
                    now = self._cells(self._now, names, behind, answers)
                    then = self._cells(self._then, names, behind, answers) if self._then else {}
                    differ = {each: cell for each, cell in then.items() if _other(now[each], cell)}
                    key = tuple((event, cell.alike) for event, cell in (*now.items(), *differ.items()))
                    groups.setdefault(key, []).append((names, now, differ))
        found = [
            Column(tuple(name for names, _, _ in members for name in names), _together(now for _, now, _ in members),
                   _together(differ for _, _, differ in members))
            for members in groups.values()
        ]  # fmt: skip
        restart = self._restart
        found = [each._replace(restart=restart, gone=self._gone(each.names, answers)) for each in found]
        return tuple(sorted(found, key=lambda each: -each.worst))

    @property
    def _restart(self) -> str:
        """What has to be started again before something changes."""
        now, then = self._now.host, (self._then or self._now).host
        if then == replace(now, programs=then.programs):
            return "the database"
        return "the host" if then == replace(then, programs=now.programs) else "the database or host"

    def _gone(self, names: Sequence[str], answers: Answers) -> Cell:
        """Of all datasets of a column together: of their databases, where there are some."""
        side = self._now
        programs = dict.fromkeys(each for name in names for each in side.observation.programs.get(name, ()))
        every = [side.host.programs[each] for each in programs]
        asked = [_Asked("power", "commits", found, each) for each in [each for each in every if not each.assumed] or every
                 if (found := table.answer(side.judge.copies, each, GONE, "commits"))]  # fmt: skip
        worst = min((each.answer.rank for each in asked), default=Rank.UNKNOWN)
        words = (word for each in asked if each.answer.rank is worst for word in self._words(side, each, answers))
        return Cell(
            OUTCOMES[worst],
            ("commits",) if worst < Rank.RELIES else (),
            merged(words) if worst is Rank.RELIES else (),
            amounts=(self.copies(names),) if worst is Rank.LOST else (),
            unseen=("the standbys that confirm its commits",) if worst is Rank.UNKNOWN and asked else (),
        )

    def copies(self, names: Sequence[str]) -> str:
        """What goes with the pool, by the oldest of the newest marks of the datasets, or of those with a database."""
        every = {each: self._facts.linked(each, "datasets") for each in self._facts.linked(HOST, "databases")}
        servers = [each for each, own in every.items() if any(place.name in names for place in own)]
        bases = {place.name for own in every.values() for place in own}
        if servers and all(self._facts.get(each, "standbys").or_none() for each in servers):
            return "what their standbys have not received yet"
        places = [Subject("dataset", name) for name in [name for name in names if name in bases] or names]
        found = [self._facts.get(each, "copied_s") for each in places]
        marks = [each for each in found if isinstance(each, Known)]
        if not marks or len(marks) < len(found):
            return "all that is not copied elsewhere (newest copy unknown)"
        oldest = min(marks, key=Known.number)
        if not oldest.number():
            return "all that is not copied elsewhere (no replication found)"
        hours = max(self._facts.now - oldest.number(), 0) / 3600
        age = f"{hours:.0f} h" if hours < DAYS_FROM else f"{hours / 24:.0f} days"
        age = f"{hours * 60:.0f} min" if hours < HOURS_FROM else age
        return f"at least {age} of commits: {oldest.evidence[0].text}"

    def _alike(self, pool: Subject, behind: _Behind) -> Iterable[list[str]]:
        """Its datasets by the programs that write to them, and by who answers for what fails there."""
        elsewhere = (name for name in self._now.observation.programs if name.startswith(f"{pool.name}/"))
        listed = [each.name for each in self._facts.linked(pool, "datasets")] or [pool.name, *elsewhere]
        found: dict[tuple[object, ...], list[str]] = {}
        for name in listed:
            programs = [side.observation.programs.get(name, ()) for side in self._sides]
            found.setdefault((*programs, behind.waivers(name)), []).append(name)
        return found.values()

    def _cells(self, side: _Side, names: Sequence[str], behind: _Behind, answers: Answers) -> Mapping[Event, Cell]:
        """Of datasets that are alike."""
        programs = [side.host.programs[each] for each in side.observation.programs.get(names[0], ())]
        alone = {event: self._cell(side, programs, event, names, behind, answers) for event in EVENTS}
        # what is gone at a milder event is gone at a more severe one, whatever that leaves to ask about
        return {
            event: joined((cell, *(alone[mild] for mild in EVENTS if mild in milder(event))))
            for event, cell in alone.items()
        }

    def _cell(
        self,
        side: _Side,
        programs: Sequence[Program],
        event: Event,
        names: Sequence[str],
        behind: _Behind,
        answers: Answers,
    ) -> Cell:
        asked = [each for program in programs for each in _asked(side.tables[program.name], event, program)]
        asked += [
            one for program in programs[:1] for each in self._homeless for one in _perhaps(side, each, program, event)
        ]
        worst = min((self._rank(each.answer) for each in asked), default=Rank.SAFE)
        if worst is Rank.SAFE:
            return KEPT
        deciding = [each for each in asked if self._rank(each.answer) is worst]
        verdicts, amounts, unseen = dict[int, Verdict](), dict[str, None](), dict[str, None]()
        for each in deciding:
            for reason in each.answer.why:
                about = self._about(side, reason, each.program, names)
                explained = list(behind.of(reason.element, about, next_boot=side is self._then))
                if worst is Rank.UNKNOWN and reason.element in UNSEEN and not explained:
                    unseen[UNSEEN[reason.element].format(reason.subject.removeprefix("the files of "))] = None
                for found in explained:
                    verdicts[id(found)] = found
                    if each.question == "commits" and found.unwaived == "fail":
                        amounts[found.amount] = None
        takes = {_take(side.judge, each) for each in deciding} if worst < Rank.RELIES else set()
        words = (word for each in deciding for word in self._words(side, each, answers))
        return Cell(
            OUTCOMES[worst],
            tuple(take for take in TAKES if take in takes),
            merged(words) if worst is Rank.RELIES else (),
            tuple(verdicts.values()),
            tuple(amounts) if worst is Rank.LOST else (),
            tuple(unseen),
        )

    def _rank(self, answer: Answer) -> Rank:
        """Which programs call fsync is taken for granted where the databases of the host are known."""
        if answer.rank is not Rank.RELIES:
            return answer.rank
        if self._unseen and any(each.party == "program" for each in _flat(answer.relies)):
            return Rank.UNKNOWN
        return Rank.RELIES if self._relied(answer.relies) else Rank.SAFE

    def _relied(self, relies: Relies) -> list[Promise | Choice]:
        """Without what is taken for granted: that programs call fsync, unless a database was named and is not to be found."""
        found = list[Promise | Choice]()
        for each in sorted(relies, key=str):
            if isinstance(each, Choice):
                if sum(not self._relied(one) for one in each.sets) < each.needed:
                    found.append(each)
            elif each.party != "program" or self._asked:
                found.append(each)
        return found

    def _words(self, side: _Side, asked: _Asked, answers: Answers) -> Iterator[Word]:
        for each in self._relied(asked.answer.relies):
            if isinstance(each, Promise):
                yield self._word(side, each, asked.event, answers)
                continue
            sets = [[self._word(side, one, asked.event, answers) for one in _flat(promised)] for promised in each.sets]
            answered = [words for words in sets if all(word.owner for word in words)]
            if len(answered) >= each.needed:
                yield from (word for words in answered[: each.needed] for word in words)
                continue
            every = [word for words in sets for word in words]
            names = tuple(dict.fromkeys(name for word in every for name in word.names))
            tried = tuple(dict.fromkeys(one for word in every for one in word.tried))
            yield Word(sets[0][0].party, names, needed=each.needed if names else 0, tried=tried)

    def _word(self, side: _Side, promise: Promise, event: Event, answers: Answers) -> Word:
        disks = [each for each in side.observation.about.get(promise.name, ()) if each.kind == "disk"]
        answer = answers.of_disks(disks) if promise.party == "drive" else answers.of_party(promise.party, [event])
        called = promise.name
        if promise.party == "hypervisor":
            called = self._facts.get(HOST, "provider_machine").word()
        names = (called,) if called else ()
        word = Word(promise.party, names, tried=tuple(self._tried(promise.name, disks)))
        if not answer:
            return word
        if answer.provider:
            word = word._replace(names=(drives.load_providers()[answer.provider].name,), documented=True)
        return word._replace(owner=answer.owner, until=answer.expires)

    def _tried(self, name: str, disks: Sequence[Subject]) -> Iterator[Tried]:
        """What power cuts have shown of a drive, which may be several disks."""
        for disk in disks[:1]:
            held, units, lost = (
                found.number() if isinstance(found := self._facts.get(disk, each), Known) else 0
                for each in ("cuts_held", "model_tried", "model_lost")
            )
            if units or lost:
                yield Tried(name, held, units, lost)

    def _about(self, side: _Side, reason: Reason, program: Program, names: Sequence[str]) -> frozenset[Subject]:
        """What the model calls so. One dataset stands for all that are alike."""
        if program.assumed and reason.subject in (program.log.dataset, program.name):
            return frozenset(Subject("dataset", name) for name in names)
        key = (side is self._now, reason.subject)
        if key not in self._subjects:
            self._subjects[key] = frozenset(whole_host.subjects(self._facts, side.observation, reason.subject))
        return self._subjects[key]

    # -- severities --------------------------------------------------------------------------------------------------

    def ranked(self, verdicts: Iterable[Verdict]) -> Verdicts:
        """Failures and what is unknown of rules that name elements, as severe as the worst cell that hangs on them."""
        counting = [each for each in Verdicts.of(verdicts).open() if _counts(each)]
        carried = self._carried() if counting else {}

        return Verdicts.of(verdicts).changed(lambda each: self._ranked(each, carried) if _counts(each) else each)

    def _ranked(self, verdict: Verdict, carried: Mapping[str, Mapping[Subject, set[_Cost]]]) -> Verdict:
        found = {element: carried.get(element, {}).get(verdict.subject, set()) for element in verdict.rule.elements}
        costs = set[_Cost]().union(*found.values())
        parties = {element for element, each in found.items() if each} & set(STORE_PARTIES)
        severity, least = verdict.severity, verdict.least
        if verdict.rule.by_model:
            severity = _worst(severity, *(each.severity for each in costs))
            least = _worst(least, *(each.severity for each in costs if each.certain))
            severity = _worst(
                severity, min(self._undecided(verdict.subject), verdict.rule.gravest, key=SEVERITIES.index)
            )
        gravest = max((SEVERITIES.index(each.severity) for each in costs), default=0)
        events = {each.event for each in costs if SEVERITIES.index(each.severity) == gravest}
        return verdict._replace(
            severity=severity,
            least=least,
            event=next((each for each in NEXT if each in events), ""),
            relies=tuple(sorted(parties)) if costs and all(each.rank is Rank.RELIES for each in costs) else (),
            cells=_cells(costs),
        )

    def _undecided(self, subject: Subject) -> Severity:
        """How much the cells of its pool count that are not known: what was not seen may hide what its rule costs."""
        of_pool = self._unknown.get(subject.within or subject.name.partition("/")[0], "low")
        return of_pool if subject.kind in IN_A_POOL else _worst("low", *self._unknown.values())

    @cached_property
    def _unknown(self) -> Mapping[str, Severity]:
        """Pool -> how much those cells count that are not known."""
        found: dict[str, Severity] = {}
        for name, program in self._now.host.programs.items():
            cells = (key for key, cell in self._now.tables[name].items() if self._rank(cell) is Rank.UNKNOWN)
            for severity in {_severity(Carried(*key, Rank.UNKNOWN), program) for key in cells}:
                for pool in {use.dataset.partition("/")[0] for use in program.uses}:
                    found[pool] = _worst(severity, found.get(pool, severity))
        return found

    def _carried(self) -> Mapping[str, Mapping[Subject, set[_Cost]]]:
        """Element -> whom it concerns -> the cells that hang on it, now or from the next boot on."""
        found: dict[str, dict[Subject, set[_Cost]]] = {}
        datasets: dict[str, list[str]] = {}
        for name, programs in self._now.observation.programs.items():
            for each in programs:
                datasets.setdefault(each, []).append(name)
        for side in self._sides:
            for name, program in side.host.programs.items():
                for reason, cells in repairs.carried(side.judge.copies.host, name):
                    matter = [cell for cell in cells if self._matters(side, name, cell)]
                    costs = {_cost(reason, cell, program) for cell in matter}
                    if costs:
                        of_element = found.setdefault(reason.element, {})
                        for each in side.judge.folded.names(reason.subject):
                            for subject in self._about(
                                side, Reason(reason.element, each), program, datasets.get(name, ())
                            ):
                                for related in self._relations.of(subject):
                                    of_element.setdefault(related, set()).update(costs)
        return found

    def _matters(self, side: _Side, name: str, cell: Carried) -> bool:
        """Not what is taken for granted."""
        answer = side.tables[name].get((cell.event, cell.question))
        return cell.rank is not Rank.RELIES or answer is None or self._rank(answer) is not Rank.SAFE


class _Cost(NamedTuple):
    event: Event
    question: Question
    rank: Rank
    severity: Severity
    certain: bool


def _cost(reason: Reason, cell: Carried, program: Program) -> _Cost:
    """A second copy that a layer below may have, and nobody has seen, counts as none."""
    alone = reason.element == "redundancy"
    counted = cell._replace(rank=Rank.LOST) if alone else cell
    return _Cost(*cell, _severity(counted, program), certain=alone or cell.rank is not Rank.UNKNOWN)


def _cells(costs: Iterable[_Cost]) -> tuple[Carries, ...]:
    """The worst answer to each question of each event."""
    found: dict[tuple[Event, Question], Rank] = {}
    for each in costs:
        found[each[:2]] = min(each.rank, found.get(each[:2], each.rank))
    return tuple(sorted(Carries(*key, ANSWERS[rank]) for key, rank in found.items()))


class _Behind:
    """The verdicts that explain a cell, by the elements of their rules."""

    def __init__(self, verdicts: Iterable[Verdict], relations: Relations) -> None:
        self._relations = relations
        self._by_element: dict[str, dict[Subject, list[Verdict]]] = {}
        self._waivers: dict[str, list[object]] = {}
        for each in verdicts:
            if each.rule.elements and each.unwaived in ("fail", "unknown"):
                for element in each.rule.elements:
                    self._by_element.setdefault(element, {}).setdefault(each.subject, []).append(each)
                if each.waiver and each.subject.kind == "dataset":
                    self._waivers.setdefault(each.subject.name, []).append(each.waiver)

    def waivers(self, dataset: str) -> tuple[object, ...]:
        return tuple(self._waivers.get(dataset, ()))

    def of(self, element: str, subjects: frozenset[Subject], *, next_boot: bool) -> list[Verdict]:
        """next_boot: of a row from the next boot on, whose own rules come first; no row of today is theirs."""
        there = self._by_element.get(element, {})
        related = (each for subject in sorted(subjects) for each in self._relations.of(subject)) if there else ()
        found = [verdict for each in related for verdict in there.get(each, ())]
        future = [each for each in found if each.rule.next_boot]
        return future if future and next_boot else [each for each in found if not each.rule.next_boot]


def _side(found: Observation) -> _Side:
    judge = Judge(found.host)
    return _Side(found, judge, {name: judge.table(each) for name, each in found.host.programs.items()})


class Relations:
    """Which subjects a fault of another one concerns: the parts of what has it, its whole, and the host."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._databases: dict[Subject, list[Subject]] = {}
        for database in facts.linked(HOST, "databases"):
            for dataset in facts.linked(database, "datasets"):
                self._databases.setdefault(dataset, []).append(database)

    def of(self, subject: Subject) -> Iterator[Subject]:
        """Of a pool its data alone: it goes on without its log, of whose devices other rules speak."""
        yield HOST
        yield subject
        match subject.kind:
            case "vdev":
                for leaf in self._facts.linked(subject, "leaves"):
                    yield from (leaf, *self._facts.linked(leaf, "disks"))
            case "leaf":
                yield from (*self._facts.linked(subject, "disks"), *self._facts.linked(subject, "vdev"))
            case "disk":
                for leaf in self._facts.linked(
                    subject, "used_by"
                ):  # of cache devices and idle spares nothing hangs on it
                    yield from (each for vdev in self._facts.linked(leaf, "vdev") for each in (leaf, vdev))
            case "dataset":
                yield from self._databases.get(subject, ())
                yield Subject("pool", subject.name.partition("/")[0])
            case "database":
                yield from self._facts.linked(subject, "datasets")
        if subject.within and self._facts.get(subject, "allocation_class").word() != "log":
            yield Subject("pool", subject.within)


def _worst(*severities: Severity) -> Severity:
    return max(severities, key=SEVERITIES.index)


def _severity(cell: Carried, program: Program) -> Severity:
    """By the map of durability.toml; what a site has declared to be on other hosts as well counts little."""
    if cell.rank is Rank.RELIES and program.elsewhere:
        return "low"
    found = durability.load().severities[cell.question, cell.event, ANSWERS[cell.rank]].severity
    return next(each for each in SEVERITIES if each == found)


def _asked(table: Table, event: Event, program: Program) -> Iterator[_Asked]:
    """The questions that arise; none of an event that cannot happen to its pools."""
    for question in QUESTIONS:
        if (event, question) in table:
            yield _Asked(event, question, table[event, question], program)


def _perhaps(side: _Side, name: str, resident: Program, event: Event) -> Iterator[_Asked]:
    """Of a database whose files nobody could place: it may lie here, or not."""
    program, here = side.host.programs[name], resident.log.dataset
    uses = [replace(each, dataset=here) for each in program.uses]
    moved = replace(program, log=uses[0], pages=tuple(uses[1:]))
    for each in _asked(side.judge.table(moved), event, moved):
        if each.answer.rank is Rank.LOST:
            yield each._replace(answer=Answer(Rank.UNKNOWN, why=(*each.answer.why, Reason("dataset", name))))
        elif each.answer.rank is not Rank.SAFE:
            yield each


def _take(judge: Judge, asked: _Asked) -> Take:
    """Of a pool whose data is there: its import as it is."""
    if asked.question == "pool" and judge.data_left(asked.program, asked.event):
        return "import"
    return asked.question


def _flat(relies: Relies) -> Iterator[Promise]:
    for each in sorted(relies, key=str):
        if isinstance(each, Promise):
            yield each
        else:
            for one in each.sets:
                yield from _flat(one)


def _together(members: Iterable[Mapping[Event, Cell]]) -> Mapping[Event, Cell]:
    """Cells that say the same of each of these, with the verdicts of all."""
    every = list(members)
    found = dict[Event, Cell]()
    for event, cell in every[0].items():
        verdicts = {id(each): each for cells in every for each in cells[event].verdicts}
        found[event] = cell._replace(verdicts=tuple(verdicts.values()))
    return found


def _other(now: Cell, then: Cell) -> bool:
    """Does the next boot change the answer? What is not known before and after is said once."""
    same = (now.outcome, now.takes, now.parties) == (then.outcome, then.takes, then.parties)
    return not same and (now.outcome, then.outcome) != ("unknown", "unknown")


def _counts(verdict: Verdict) -> bool:
    return verdict.outcome in ("fail", "unknown") and bool(verdict.rule.elements) and not verdict.rule.next_boot
