"""What each event would cost each dataset: Kleene's *and* over the rules that concern it.

=============  =====================================================================================================
lost           a rule about it fails whose failure takes something at this event
unknown        else: such a rule could not be decided, or was left out
word           else: it is kept if a drive, controller, hypervisor, target, layer or database keeps its word, which
               nobody here can check: a rule says so, or a cache without known protection lies on the way
kept           else: nothing that was seen can take it
=============  =====================================================================================================

More knowledge never overturns an answer: *lost* and *kept* stay, *unknown* becomes any other, *word* becomes kept or lost.
What somebody waived is judged as if nobody had: a waiver changes who answers for a loss, not whether it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from auditor.facts import HOST, Facts, Known, Subject, Unknown, is_true
from auditor.judge.answers import Answers
from auditor.judge.cell import HARMLESS, ORDER, Cell, Effect, both_of_each, cells_of, once
from auditor.judge.event import EVENTS, Event, Strike
from auditor.judge.policy import Answer, LeftOut, Waiver
from auditor.judge.verdict import Verdict

NOTHING_OF_ITS_OWN = ("cache", "spare")  # what lies on a leaf of these classes lies elsewhere, too


class Column(NamedTuple):
    """Datasets to which the same happens. names: of datasets, or of pools whose datasets nobody could list."""

    names: tuple[str, ...]
    cells: Mapping[Event, Cell]

    @property
    def worst(self) -> int:
        """For an order: the outcomes from the mildest event on."""
        return max(ORDER[cell.outcome] for cell in self.cells.values())


def columns(
    verdicts: Iterable[Verdict], facts: Facts, left_out: Sequence[LeftOut] = (), answers: Answers | None = None
) -> tuple[Column, ...]:
    """What each event costs each dataset, the worst first; datasets to which the same happens together."""
    effects = _Concerned(facts)
    for verdict in verdicts:
        if verdict.outcome != "pass" and (effect := _effect(verdict, facts, effects.logs_alone, answers)):
            effects.add(verdict.subject, effect)
    for each in left_out:
        if not each.counts_as and any(strike.loses for strike in each.strikes):
            effects.add(HOST, Effect((HARMLESS, *each.strikes), left_out=each.rule))
    for pool, disk in _caches(facts):
        answer = answers.of_disks((disk,)) if answers else None
        strikes = (Strike.at("power", "drive", ("commits", "pool")),)
        effects.add(pool, Effect(strikes, drives=(disk.name,), answer=answer))
    return effects.columns()


def _effect(
    verdict: Verdict, facts: Facts, logs_alone: Callable[[Subject], bool], answers: Answers | None
) -> Effect | None:
    """logs_alone: is a subject what holds the log and nothing else? No pool goes with that. answers: whoever answers for a
    party answers for what is undecided about it; a failure that was seen needs a waiver, or a rule that asks for the answer."""
    outcome = verdict.was or verdict.outcome
    if outcome not in ("fail", "unknown") or not any(strike.loses for strike in verdict.strikes):
        return None
    subject = verdict.subject
    strikes = verdict.strikes if outcome == "fail" else (HARMLESS, *verdict.strikes)
    if logs_alone(subject):
        strikes = tuple(each._replace(takes=tuple(take for take in each.takes if take != "pool")) for each in strikes)
    below = facts.linked(subject, "disks") if subject.kind == "leaf" else (subject,)
    disks = [each for each in below if each.kind == "disk"]
    shown = subject.kind == "disk" and _shown(subject, facts)
    answer: Answer | Waiver | None = verdict.waiver
    if answers and outcome == "unknown" and not answer:
        words = {strike.word for strike in strikes} - {""}
        party = "hypervisor" if words == {"drive"} and shown else next(iter(words)) if len(words) == 1 else ""
        answer = answers.of_disks(disks) if party == "drive" else answers.of_party(party)
    return Effect(strikes, verdict, tuple(each.name for each in disks), hypervisor=shown, answer=answer)


def _shown(disk: Subject, facts: Facts) -> bool:
    """Is it a disk that a hypervisor shows?"""
    machine, virtual = facts.get(HOST, "virtualization"), facts.get(disk, "virtual")
    return isinstance(machine, Known) and machine.value != "none" and isinstance(virtual, Known) and bool(virtual.value)


def _caches(facts: Facts) -> Iterator[tuple[Subject, Subject]]:
    """(pool, disk) of each disk whose cache is not known to outlive the power, unless it is virtual: then somebody else answers
    for it, whom a rule names."""
    for pool in facts.linked(HOST, "pools"):
        for leaf in facts.linked(pool, "leaves"):
            if _class(leaf, facts) in NOTHING_OF_ITS_OWN:
                continue
            for disk in facts.linked(leaf, "disks"):
                if not any(is_true(facts.get(disk, name)) for name in ("virtual", "keeps_acknowledged")):
                    yield pool, disk


def _class(leaf: Subject, facts: Facts) -> object:
    found = facts.get(leaf, "allocation_class")
    return found.value if isinstance(found, Known) else ""


class _Concerned:
    """Effects by whom they concern: every dataset, those of a pool, or one."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._everywhere: list[Effect] = []
        self._pools: dict[str, list[Effect]] = {}
        self._datasets: dict[str, list[Effect]] = {}
        self._leaves_of = _leaves_of_disks(facts)

    def logs_alone(self, subject: Subject) -> bool:
        """Is it about leaves of the log and about no others?"""
        leaves = [subject] if subject.kind == "leaf" else self._leaves_of.get(subject, [])
        return bool(leaves) and all(_class(leaf, self._facts) in ("log", *NOTHING_OF_ITS_OWN) for leaf in leaves)

    def add(self, subject: Subject, effect: Effect) -> None:
        """subject: of the verdict. A hole is a verdict about its parent: a database that nobody could see may keep something on
        any dataset."""
        match subject.kind:
            case "dataset":
                self._datasets.setdefault(subject.name, []).append(effect)
            case "pool":
                self._pools.setdefault(subject.name, []).append(effect)
            case "leaf" if _class(subject, self._facts) in NOTHING_OF_ITS_OWN:
                pass
            case "vdev" | "leaf":
                self._pools.setdefault(subject.within, []).append(effect)
            case "disk" if leaves := self._leaves_of.get(subject):
                holding = [leaf for leaf in leaves if _class(leaf, self._facts) not in NOTHING_OF_ITS_OWN]
                for pool in dict.fromkeys(leaf.within for leaf in holding):
                    self._pools.setdefault(pool, []).append(effect)
            case "database" if datasets := self._facts.linked(subject, "datasets"):
                for dataset in datasets:
                    self._datasets.setdefault(dataset.name, []).append(effect)
            case "database" if isinstance(
                self._facts.get(subject, "datasets"), Unknown
            ):  # it may be about any, or none
                self._everywhere.append(effect._replace(strikes=(HARMLESS, *effect.strikes)))
            case "run" | "waiver":
                pass
            case _:
                self._everywhere.append(effect)

    def _fare_alike(self, datasets: Iterable[str]) -> Iterable[list[str]]:
        """Those of which the same rules say the same: of thousands of datasets there are a few kinds."""
        found: dict[tuple[object, ...], list[str]] = {}
        for name in datasets:
            found.setdefault(tuple(each.alike for each in self._datasets.get(name, ())), []).append(name)
        return found.values()

    def columns(self) -> tuple[Column, ...]:
        """Equal ones together, the worst first."""
        groups: dict[tuple[object, ...], list[tuple[list[str], tuple[Cell, ...]]]] = {}
        everywhere = cells_of(self._everywhere)
        for pool in self._facts.linked(HOST, "pools"):
            base = both_of_each(everywhere, cells_of(self._pools.get(pool.name, [])))
            for names in self._fare_alike(self._names(pool)):
                own = [effect for name in names for effect in self._datasets.get(name, ())]
                cells = both_of_each(base, cells_of(own)) if own else base
                groups.setdefault(tuple(cell.alike for cell in cells), []).append((names, cells))
        found = [
            Column(
                tuple(name for names, _ in members for name in names),
                dict(zip(EVENTS, _together([cells for _, cells in members]), strict=True)),
            )
            for members in groups.values()
        ]
        return tuple(sorted(found, key=lambda each: -each.worst))

    def _names(self, pool: Subject) -> list[str]:
        """Its datasets; where nobody could list them the pool, and those of which something is known from elsewhere."""
        if datasets := self._facts.linked(pool, "datasets"):
            return [each.name for each in datasets]
        return [pool.name, *(name for name in self._datasets if name.startswith(f"{pool.name}/"))]


def _together(members: Sequence[tuple[Cell, ...]]) -> tuple[Cell, ...]:
    """Cells that say the same of each of these, with the verdicts of all."""
    return tuple(
        cell._replace(verdicts=once(each for cells in members for each in cells[i].verdicts))
        for i, cell in enumerate(members[0])
    )


def _leaves_of_disks(facts: Facts) -> dict[Subject, list[Subject]]:
    found: dict[Subject, list[Subject]] = {}
    for pool in facts.linked(HOST, "pools"):
        for leaf in facts.linked(pool, "leaves"):
            for disk in facts.linked(leaf, "disks"):
                found.setdefault(disk, []).append(leaf)
    return found


def matter(facts: Facts) -> tuple[Event, ...]:
    """The events that can happen to this host: no log device goes where there is none, and no host is below a machine."""
    logs = [facts.get(pool, "log_leaves") for pool in facts.linked(HOST, "pools")]
    log = any(isinstance(each, Unknown) or each.value != () for each in logs)
    below = facts.get(HOST, "virtualization")
    absent = set[Event]()
    if not log:
        absent.add("power+log")
    if isinstance(below, Known) and below.value == "none":
        absent.add("below")
    return tuple(event for event in EVENTS if event not in absent)
