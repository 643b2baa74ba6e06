"""The table of a program: the answer to each question at each event, with the worst choice of the drive that goes. The
questions: are commits kept, is what is left consistent, is the pool there?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from auditor.durability.answers import (
    SAFE,
    Answer,
    Choice,
    Promise,
    Rank,
    Reason,
    Relies,
    all_of,
    any_of,
    holds,
    lost,
    promises,
    relies,
    settle,
    unknown,
)
from auditor.durability.copies import Copies
from auditor.durability.host import (
    ALL,
    EVENTS,
    QUESTIONS,
    Dataset,
    Event,
    EventName,
    Host,
    Pool,
    Program,
    Question,
    Use,
    Vdev,
)


def answer(copies: Copies, program: Program, event: Event, question: Question) -> Answer | None:
    """None: the question does not arise. Where the pools are gone, only another host can have the commits."""
    if event.everything:
        gone = lost("copy", program.name)
        replicas = relies("replicas", program.name, "elsewhere")
        either = (program.elsewhere, program.standby)
        waits = True if True in either else None if None in either else False
        return settle(waits, lambda: replicas, gone, "elsewhere", program.name) if question == "commits" else None
    match question:
        case "commits":
            return commits(copies, program, event)
        case "consistency":
            return consistency(copies, program, event)
        case "pool":
            return pools(copies, program, event)


def commits(copies: Copies, program: Program, event: Event) -> Answer:
    """A commit is in the log of the database, and after a checkpoint in its pages alone. Pages of a checkpoint have left the
    process; an orderly stop writes all."""
    left = SAFE if _orderly(event) else holds(program.leaves, "leave", program.name)
    if program.assumed and left.rank is Rank.UNKNOWN:
        left = relies("program", program.log.dataset, "leave", program.name)
    kept = [
        copies.keeps(
            use.dataset,
            event,
            left if number == 0 else SAFE,
            _asked(program, use, event),
            _reaches(copies, program, use, event),
        )
        for number, use in enumerate(program.uses)
    ]
    if event.process and not _orderly(event):
        kept.append(holds(program.recovers, "recover", program.name))
    here, replicas = all_of(kept), relies("replicas", program.name, "elsewhere")
    return settle(program.elsewhere, lambda: any_of(here, replicas), here, "elsewhere", program.name)


def pools(copies: Copies, program: Program, event: Event) -> Answer:
    """Every pool that holds it keeps its data, and can be imported as it is, without -m, -F or -f; so can those below."""
    parts = [copies.whole(pool, event) for pool in copies.host.pools_of(program)]
    if event.stops:
        for pool in copies.host.pools_below(program):
            parts += copies.logs_present(pool, event), holds(pool.imports, "import", pool.name)
    if not copies.host.knows(program):
        parts.append(unknown("dataset", program.name))
    return all_of(parts)


def consistency(copies: Copies, program: Program, event: Event) -> Answer | None:
    """Can the database recover from what it finds? The question does not arise where it finds nothing. Its log must reach at
    least as far as its pages, the pages as far as its last checkpoint, and no page may be half old, half new."""
    if program.assumed:
        return None
    if not copies.host.knows(program):
        return unknown("dataset", program.name)
    used = list(dict.fromkeys(copies.host.datasets[use.dataset] for use in program.uses))
    found = [copies.data(pool, event) for pool in copies.host.pools_of(program)] + [
        copies.key(each, event) for each in used
    ]
    if all_of(found).rank is Rank.LOST:
        return None
    if not event.process:
        return SAFE
    if _orderly(event):  # nobody writes while it happens: what is split is whole
        return any_of(_in_step(copies, program, used, event), all_of(map(copies.unmounted, used)))
    recovers = holds(program.recovers, "recover", program.name)
    if not event.stops:
        return recovers
    return all_of((recovers, _in_step(copies, program, used, event), _whole(copies, program, event)))


def _orderly(event: Event) -> bool:
    return event.stops and not event.memory


def _asks(program: Program, use: Use, event: Event, later: bool) -> Answer:
    """Does it ask for durability? later: after the acknowledgement, but before the pages that depend on it, will do."""
    if use.asks == "before" or (use.asks == "later" and later):
        return SAFE
    if use.asks == "later" and _orderly(event):
        return SAFE if program.closes else lost("ask", use.dataset)
    if use.asks:
        return lost("ask", use.dataset)
    return relies("program", use.dataset, "ask") if program.assumed else unknown("ask", use.dataset)


def _asked(program: Program, use: Use, event: Event, later: bool = False) -> Answer:
    """Does a request arrive at ZFS?"""
    return all_of((_asks(program, use, event, later), holds(use.passes, "pass on", use.dataset)))


def _reaches(copies: Copies, program: Program, use: Use, event: Event, later: bool = False) -> Answer:
    """Does what it wrote arrive at ZFS? On a volume it waits in the page cache of a file system until somebody asks."""
    dataset = copies.host.datasets.get(use.dataset)
    asks = _asks(program, use, event, later) if dataset and dataset.volume else SAFE
    return all_of((asks, holds(use.reaches, "reach", use.dataset)))


def _in_step(copies: Copies, program: Program, used: list[Dataset], event: Event) -> Answer:
    """Do log and pages come back from one moment, or in the order in which the database asked?

    The intent log of one dataset is one chain: what is lost of it is its end, so it is enough that all requests are in it. Two
    datasets have two chains: both must be whole. Where nothing is replayed at all, one pool comes back as of one transaction
    group, which has everything in the order in which it arrived. A program on another host goes on from a later moment.
    """
    if not program.pages:
        return SAFE
    order = [(program.log, True), *((use, False) for use in program.pages)]
    requests = [
        (use, _asked(program, use, event, later), _reaches(copies, program, use, event, later)) for use, later in order
    ]
    if len(used) == 1:
        sound = holds(used[0].sound, "defect", used[0].name)
        ordered = all_of((sound, *(copies.logged(used[0], asked, reaches) for _, asked, reaches in requests)))
    else:
        ordered = all_of(copies.keeps(use.dataset, event, SAFE, asked, reaches) for use, asked, reaches in requests)
    if len({dataset.pool for dataset in used}) > 1:
        return ordered
    arrives = all_of(any_of(asked, reaches) for _, asked, reaches in requests)
    stops = all_of(holds(None if use.remote is None else not use.remote, "remote", use.dataset) for use in program.uses)
    return any_of(ordered, all_of((arrives, stops, _nothing_replayed(copies, program.uses, event, alone=False))))


def _whole(copies: Copies, program: Program, event: Event) -> Answer:
    """A page that ZFS may write in two parts needs a guard. A transaction group writes a block as a whole; the intent log may
    split a write (zil.c zil_lwb_commit() of 2.1, zil_lwb_assign() since 2.2), and replay applies the part that it finds."""
    if program.guard or not program.pages:
        return SAFE
    guard = holds(program.guard, "guard", program.name)
    block = holds(program.page_in_block, "page in block", program.name)
    unsplit = holds(None if program.splits is None else not program.splits, "split", program.name)
    return any_of(guard, all_of((block, any_of(unsplit, _nothing_replayed(copies, program.pages, event)))))


def _nothing_replayed(copies: Copies, uses: Iterable[Use], event: Event, alone: bool = True) -> Answer:
    """The opposite of what commits need: certain where that is lost. alone: of its own pages. Else what another program flushes
    brings renames and truncations of the whole dataset into its log (zil.c zil_async_to_sync())."""
    parts = list[Answer]()
    for use in uses:
        dataset = copies.host.datasets[use.dataset]
        log = holds(_unlogged(use, dataset), "commit", dataset.name)
        if not alone and log.rank is Rank.SAFE and dataset.sync != "disabled" and not dataset.volume:
            log = relies("neighbours", dataset.name, "ask")
        parts.append(any_of(log, _opposite(copies.replayed(dataset, event))))
    return all_of(parts)


def _unlogged(use: Use, dataset: Dataset) -> bool | None:
    """Does nothing of it come into the intent log?"""
    if dataset.sync in ("disabled", "always"):
        return dataset.sync == "disabled"
    if dataset.sync is None:
        return None
    if use.asks == "never" or use.passes is False:
        return True
    return None if use.asks is None or use.passes is None else False


def _opposite(found: Answer) -> Answer:
    turned = {Rank.LOST: Rank.SAFE, Rank.SAFE: Rank.LOST}.get(found.rank, Rank.UNKNOWN)
    return SAFE if turned is Rank.SAFE else Answer(turned, why=found.why)


Table = Mapping[tuple[EventName, Question], Answer]
CLASSES = ("normal", "special", "dedup", "log")
KEPT = 2  # vdevs of a kind
_LEG = attrgetter("state", "in_sync", "clean", "opens", "answers", "needed")
_STORE = attrgetter(
    "party", "place", "cache", "passes", "completes", "counted", "honours", "tried", "redundant", "alone"
)


class Folded:
    """A host with two of the vdevs that are alike and share no store with others: what is true of the first is true of all.
    Two, as a drive of one may share a physical drive with another."""

    def __init__(self, host: Host) -> None:
        # a name -> by it and its like, those of each that is left out
        self._others: dict[str, list[dict[str, str]]] = {}
        self._spread: dict[Relies, Relies] = {}
        every = [vdev for pool in host.pools.values() for vdev in pool.data + pool.log]
        used = Counter(name for vdev in every for leg in vdev.legs for name in (*leg.layers, *leg.drives))
        kinds: dict[tuple[object, ...], list[Vdev]] = {}

        def kept(vdevs: Sequence[Vdev], *of: str) -> tuple[Vdev, ...]:
            return tuple(
                vdev for vdev in vdevs if self._kept(vdev, kinds.setdefault((*of, *_shape(host, vdev, used)), []))
            )

        pools = dict[str, Pool]()
        for name, pool in host.pools.items():
            two: Mapping[str, Any] = {each: kept(getattr(pool, each), name, each) for each in CLASSES}
            pools[name] = replace(pool, **two)
        self.host = replace(host, pools=pools)

    def _kept(self, vdev: Vdev, alike: list[Vdev]) -> bool:
        if len(alike) < KEPT:
            alike.append(vdev)
            return True
        first = _names(alike[0])
        others = self._others.setdefault(first[0], [])
        others.append(dict(zip(first, _names(vdev), strict=True)))
        self._others |= dict.fromkeys(first, others) if len(others) == 1 else {}
        return False

    def names(self, name: str) -> Iterator[str]:
        """The name, and those of its like that were left out."""
        yield name
        for each in self._others.get(name, ()):
            yield each[name]

    def spread(self, found: Answer) -> Answer:
        """The answer for the whole host."""
        if not self._others or found.rank is Rank.SAFE:
            return found
        why = (Reason(each.element, name) for each in found.why for name in self.names(each.subject))
        return Answer(found.rank, self._relies(found.relies), tuple(dict.fromkeys(why)))

    def _relies(self, relies: Relies) -> Relies:
        if relies not in self._spread:
            self._spread[relies] = frozenset(one for each in relies for one in self._promised(each))
        return self._spread[relies]

    def _promised(self, each: Promise | Choice) -> Iterator[Promise | Choice]:
        """A choice between legs of one vdev arises in each of its like; another one is made once, of more."""
        others = [self._others.get(name, []) for name in _promised(each)]
        if isinstance(each, Promise) or all(one is others[0] for one in others):
            yield each
            yield from (_renamed(each, names) for names in others[0])
        else:
            yield Choice(each.needed, tuple(sorted(map(self._relies, each.sets), key=promises)))


def _shape(host: Host, vdev: Vdev, used: Mapping[str, int]) -> tuple[object, ...]:
    """All of it but names; one that shares a store, or lies in memory of this host, is like no other."""
    stores = [(leg, [host.store(name) for name in (*leg.layers, *leg.drives)]) for leg in vdev.legs]
    if any(leg.on or any(used[each.name] > 1 or each.place == "host" for each in below) for leg, below in stores):
        return (vdev.name,)
    return vdev.needed, *((*_LEG(leg), len(leg.layers), *map(_STORE, below)) for leg, below in stores)


def _names(vdev: Vdev) -> list[str]:
    """Of a vdev, its legs and their stores; of two that are alike in the same order."""
    return [vdev.name, *(name for leg in vdev.legs for name in (leg.name, *leg.layers, *leg.drives))]


def _promised(each: Promise | Choice) -> Iterator[str]:
    if isinstance(each, Promise):
        yield each.name
    else:
        yield from (name for one in each.sets for promise in one for name in _promised(promise))


def _renamed(each: Promise | Choice, names: Mapping[str, str]) -> Promise | Choice:
    if isinstance(each, Promise):
        return Promise(each.party, names[each.name])
    return Choice(each.needed, tuple(frozenset(_renamed(one, names) for one in found) for found in each.sets))


class Judge:
    """One host and what was found of it: pools, and vdevs that are alike, are evaluated once for all programs."""

    def __init__(self, host: Host) -> None:
        self.folded = Folded(host)
        self.copies = Copies(self.folded.host)

    def table(self, program: Program) -> Table:
        """All events that can happen here, and the questions that arise: none about the consistency of what is lost."""
        found: dict[tuple[EventName, Question], Answer] = {}
        for name in EVENTS:
            if choices := self.choices(program, name):
                for question in QUESTIONS:
                    if cell := self._cell(program, question, choices):
                        found[name, question] = cell
        return found

    def cell(self, program: Program, event: EventName, question: Question) -> Answer | None:
        """One cell; None where the table has none: the event cannot happen here, or the question does not arise."""
        choices = self.choices(program, event)
        return self._cell(program, question, choices) if choices else None

    def data_left(self, program: Program, name: EventName) -> bool:
        """Is all data of its pools left for certain, or on promises? What the pool question asks beyond that is the import."""
        choices = self.choices(program, name)
        pools = self.copies.host.pools_of(program)
        return all(self.copies.data(pool, event).rank >= Rank.RELIES for event in choices for pool in pools)

    def _cell(self, program: Program, question: Question, choices: Iterable[Event]) -> Answer | None:
        found = [answer(self.copies, program, event, question) for event in choices]
        answers = [each for each in found if each]
        rank = min((each.rank for each in answers), default=Rank.SAFE)
        if len(answers) < len(found) and rank is not Rank.LOST:
            return None  # the worst choice leaves nothing to ask about
        return self.folded.spread(all_of(each for each in answers if each.rank is rank))

    def choices(self, program: Program, name: EventName) -> Sequence[Event]:
        """The event with each drive that may go."""
        event, host = ALL[name], self.copies.host
        if name == "below" and host.virtual is False:
            return ()
        if not event.takes:
            return (event,)
        drives = dict.fromkeys(
            drive for pool in host.pools_of(program) for drive in self.copies.touched(pool, event.takes)
        )
        return [replace(event, device=drive) for drive in drives]
