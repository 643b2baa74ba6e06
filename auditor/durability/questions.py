"""The three questions: does an event take acknowledged commits, the consistency of the database, or the pool?"""

from __future__ import annotations

from collections.abc import Iterable

from auditor.durability.answers import SAFE, Answer, Rank, all_of, any_of, holds, lost, relies, settle, unknown
from auditor.durability.copies import Copies
from auditor.durability.events import Event, Question
from auditor.durability.host import Dataset, Program, Use


def answer(copies: Copies, program: Program, event: Event, question: Question) -> Answer | None:
    """None: the question does not arise. When the pools are gone with all that is on them, only commits are asked about, and
    only another host can have them."""
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
