"""The model, filled from each recorded host, beside the table of events as the rules make it.

Both answer for the same datasets and events. Where they differ, the kind of difference is written here with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from auditor import audit
from auditor.durability.answers import Choice, Promise, Rank, Relies
from auditor.durability.events import ALL, QUESTIONS
from auditor.durability.table import Cell, Judge
from auditor.facts import HOST, Facts, Known, Subject, is_true
from auditor.judge import cell as rules_cell
from auditor.judge import outcomes
from auditor.judge.event import Event
from auditor.observation.host import read
from auditor.observation.reading import Reading
from auditor.recording.recording import ReplayHost
from tests.shared import HOSTS, audited, host

WORDS: Mapping[Rank, str] = {Rank.SAFE: "kept", Rank.RELIES: "word", Rank.UNKNOWN: "unknown", Rank.LOST: "lost"}


class Difference(NamedTuple):
    """rules, model: the two answers; cell: of the model, None of an event that cannot happen to this pool."""

    host: str
    dataset: str
    event: Event
    rules: rules_cell.Cell
    model: str
    cell: Cell | None
    facts: Facts

    @property
    def pool(self) -> Subject:
        return Subject("pool", self.dataset.partition("/")[0])

    @property
    def elements(self) -> set[str]:
        return {each.element for each in self.cell.answer.why} if self.cell else set()


def virtual(each: Difference) -> bool:
    found = each.facts.get(HOST, "virtualization")
    return isinstance(found, Known) and found.value != "none"


def lives(each: Difference) -> bool:
    """The power cut of a virtual machine stops the machine; its hypervisor, and all that is passed through, lives. What goes
    with the hypervisor is another row (`below`)."""
    cut = each.event.startswith("power")
    return virtual(each) and cut and each.rules.outcome in ("word", "unknown") and each.model in ("kept", "word")


def errors(each: Difference) -> bool:
    """A leg with errors of its own is doubtful where it is the one that is left, and for log blocks that nobody read back."""
    return "errors" in each.elements and each.model == "unknown"


def broken(each: Difference) -> bool:
    """Of a pool that does not work, as devices are gone that it cannot do without, there is no table."""
    return any(is_true(each.facts.get(vdev, "too_few_devices")) for vdev in each.facts.linked(each.pool, "vdevs"))


def absent(each: Difference) -> bool:
    """A pool without log devices loses none; one on a file in memory has no drive that could die. The rules' events are those
    of the whole host."""
    return each.cell is None and ALL[each.event].takes != ""


def raid(each: Difference) -> bool:
    """RAID of the kernel keeps a leg whole, and it is seen; a volume of a controller is relied on to do so."""
    leaves = each.facts.linked(each.pool, "leaves")
    below = any(is_true(each.facts.get(leaf, "survives_drive_loss")) for leaf in leaves)
    disks = [disk for leaf in leaves for disk in each.facts.linked(leaf, "disks")]
    volume = any(is_true(each.facts.get(disk, "raid_volume")) for disk in disks)
    return each.event == "drive" and ((below and each.model == "kept") or (volume and each.model == "word"))


def one_virtual_disk(each: Difference) -> bool:
    """A pool on single virtual disks relies on what is below them, for its log as for its data: the rules said so of data
    alone."""
    return (
        virtual(each)
        and each.event == "power+log"
        and each.rules.rules == ("slog-no-redundancy",)
        and each.model == "word"
    )


def one_drive_below(each: Difference) -> bool:
    """Two disks of a hypervisor, or two LUNs, may lie on one drive; the rules took each for a drive."""
    return each.event == "drive" and "alone" in each.elements and (each.rules.outcome, each.model) == ("kept", "word")


def direct_io(each: Difference) -> bool:
    """The pool has counted Direct I/O, and the block that the log points to is not flushed then (zfs_vnops.c zfs_get_data()):
    whose writes these were, nobody saw."""
    return "direct" in each.elements and each.model == "unknown" and each.rules.outcome == "word"


KINDS: tuple[Callable[[Difference], bool], ...] = (
    lives,
    errors,
    broken,
    absent,
    raid,
    one_virtual_disk,
    one_drive_below,
    direct_io,
)


def without(relies: Relies, asked: bool) -> Relies:
    """The promises that the rules know: that a program calls fsync and a shutdown unmounts, they took for granted. asked: but
    not where a database was named and not found."""
    found = set[Promise | Choice]()
    for each in relies:
        if isinstance(each, Promise):
            if each.party != "shutdown" and (asked or each.party != "program"):
                found.add(each)
        elif sum(not without(one, asked) for one in each.sets) < each.needed:
            found.add(each)
    return frozenset(found)


def answer(cells: list[Cell], asked: bool) -> tuple[str, Cell | None]:
    """The worst of all questions and programs."""
    ranked = [(Rank.SAFE if not without(each.answer.relies, asked) and each.rank is Rank.RELIES else each.rank, each)
              for each in cells]  # fmt: skip
    if not ranked:
        return "none", None
    rank, worst = min(ranked, key=lambda each: each[0])
    return WORDS[rank], worst


def compared(name: str) -> Iterator[Difference]:
    """Every dataset and event of one host."""
    past = host(name)
    seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    report = audit.judge(seen, audited(), past.targets, "low")
    found = read(Reading(seen.facts))
    judge = Judge(found.host)
    tables = {each.name: judge.table(each) for each in found.host.programs.values()}
    for column in outcomes.columns(report.verdicts, seen.facts):
        for dataset in column.names:
            for event in outcomes.matter(seen.facts):
                mine = [tables[each] for each in found.programs[dataset]]
                cells = [
                    table[event, question] for table in mine for question in QUESTIONS if (event, question) in table
                ]
                rules = column.cells[event]
                model, cell = answer(cells, "db-not-seen" in rules.rules)
                yield Difference(name, dataset, event, rules, model, cell, seen.facts)


@cache
def all_compared() -> tuple[Difference, ...]:
    return tuple(each for name in HOSTS.names() for each in compared(name))


def differences() -> list[Difference]:
    return [each for each in all_compared() if each.rules.outcome != each.model]


def test_each_difference_is_of_a_kind_that_is_written_down() -> None:
    unexplained = [
        (each.host, each.dataset, each.event, each.rules.outcome, each.model, str(each.cell and each.cell.answer))
        for each in differences()
        if not any(kind(each) for kind in KINDS)
    ]
    assert unexplained == []


def test_each_kind_occurs() -> None:
    found = differences()
    assert [kind.__name__ for kind in KINDS if not any(kind(each) for each in found)] == []


def test_most_answers_agree() -> None:
    assert len(all_compared()) > 1200
    assert len(differences()) < len(all_compared()) / 4
