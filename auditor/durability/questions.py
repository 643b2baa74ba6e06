"""The three questions: does an event take acknowledged commits, the consistency of the database, or the pool?"""

from __future__ import annotations

from collections.abc import Iterable

from auditor.durability.answers import SAFE, Answer, Rank, all_of, any_of, holds, lost, relies, settle, unknown
from auditor.durability.copies import Copies
from auditor.durability.events import Event, Question
from auditor.durability.host import Dataset, Program, Use


def answer(copies: Copies, program: Program, event: Event, question: Question) -> Answer:
    match question:
        case "commits":
            return commits(copies, program, event)
        case "consistency":
            return consistency(copies, program, event)
        case "pool":
            return pools(copies, program, event)


def commits(copies: Copies, program: Program, event: Event) -> Answer:
    """A commit is in the log of the database, and after a checkpoint in its pages alone."""
    left = holds(program.leaves, "leave", program.name)
    log = copies.keeps(program.log.dataset, event, left, _asked(program, program.log), _reaches(program.log))
    here = all_of((log, *(_pages_keep(copies, program, use, event) for use in program.pages)))
    replicas = relies("replicas", program.name, "elsewhere")
    return settle(program.elsewhere, lambda: any_of(here, replicas), here, "elsewhere", program.name)


def pools(copies: Copies, program: Program, event: Event) -> Answer:
    """Every pool that holds it keeps its data, and can be imported as it is, without -m, -F or -f; so can those below."""
    parts = [copies.data(pool, event) for pool in copies.host.pools_of(program)]
    if event.stops:
        for pool in copies.host.pools_below(program):
            parts += copies.logs_present(pool, event), holds(pool.imports, "import", pool.name)
    if not copies.host.knows(program):
        parts.append(unknown("dataset", program.name))
    return all_of(parts)


def consistency(copies: Copies, program: Program, event: Event) -> Answer:
    """Nothing consistent is left of a pool that is lost. Else the log of the database must reach at least as far as its pages,
    the pages as far as its last checkpoint, and no page may be half old, half new."""
    datasets = copies.host.datasets
    if not copies.host.knows(program):
        return unknown("dataset", program.name)
    used = list(dict.fromkeys(datasets[use.dataset] for use in program.uses))
    left = [
        *(copies.data(pool, event) for pool in copies.host.pools_of(program)),
        *(copies.key(each, event) for each in used),
    ]
    if not event.stops:
        return all_of(left)
    after = all_of((_in_step(copies, program, used, event), _whole(copies, program, event)))
    if not event.memory:
        after = any_of(after, all_of(map(copies.unmounted, used)))
    return all_of((*left, after))


def _pages_keep(copies: Copies, program: Program, use: Use, event: Event) -> Answer:
    """Pages are older than their checkpoint: they have left the process."""
    return copies.keeps(use.dataset, event, SAFE, _asked(program, use), _reaches(use))


def _asked(program: Program, use: Use, later: bool = False) -> Answer:
    """Does a request arrive at ZFS? later: one after the acknowledgement, but before the pages that depend on it, will do."""
    match use.asks:
        case "before":
            asks = SAFE
        case "later" | "never":
            asks = SAFE if later and use.asks == "later" else lost("ask", use.dataset)
        case _ if program.assumed:
            asks = relies("program", use.dataset, "ask")
        case _:
            asks = unknown("ask", use.dataset)
    return all_of((asks, holds(use.passes, "pass on", use.dataset)))


def _reaches(use: Use) -> Answer:
    return holds(use.reaches, "reach", use.dataset)


def _in_step(copies: Copies, program: Program, used: list[Dataset], event: Event) -> Answer:
    """Do log and pages come back from one moment, or in the order in which the database asked?

    The intent log of one dataset is one chain: what is lost of it is its end, so it is enough that all requests are in it. Two
    datasets have two chains: both must be whole. Where nothing is replayed at all, one pool comes back as of one transaction
    group, which has everything in the order in which it arrived.
    """
    if not program.pages:
        return SAFE
    log = _asked(program, program.log, later=True)
    requests = [(program.log, log), *((use, _asked(program, use)) for use in program.pages)]
    if len(used) == 1:
        ordered = all_of(copies.logged(used[0], asked, _reaches(use)) for use, asked in requests)
    else:
        ordered = all_of(copies.keeps(use.dataset, event, SAFE, asked, _reaches(use)) for use, asked in requests)
    if len({dataset.pool for dataset in used}) > 1:
        return ordered
    arrives = all_of(any_of(asked, _reaches(use)) for use, asked in requests)
    return any_of(ordered, all_of((arrives, _nothing_replayed(copies, program.uses, event))))


def _whole(copies: Copies, program: Program, event: Event) -> Answer:
    """A page that ZFS may write in two parts needs a guard. A transaction group writes a block as a whole; the intent log may
    split a write (zil.c zil_lwb_commit() of 2.1, zil_lwb_assign() since 2.2), and replay applies the part that it finds."""
    if program.guard or not program.pages:
        return SAFE
    guard = holds(program.guard, "guard", program.name)
    block = holds(program.page_in_block, "page in block", program.name)
    unsplit = holds(None if program.splits is None else not program.splits, "split", program.name)
    return any_of(guard, all_of((block, any_of(unsplit, _nothing_replayed(copies, program.pages, event)))))


def _nothing_replayed(copies: Copies, uses: Iterable[Use], event: Event) -> Answer:
    """The opposite of what commits need: certain where that is lost."""
    parts = list[Answer]()
    for use in uses:
        dataset = copies.host.datasets[use.dataset]
        unlogged = _unlogged(use, dataset)
        log = holds(unlogged, "commit", dataset.name)
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
