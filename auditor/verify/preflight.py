"""Where a run would harm, or could say nothing: it is refused, with the words that override it where that can be right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from auditor.facts import Facts, Judged, Known, Subject, Unknown
from auditor.text import harmless
from auditor.units import size
from auditor.verify.plan import Plan

OVERRIDES = ("degraded", "scrub", "full", "space")
FULL_PERCENT, TIMES_THE_SIZE = 90, 2


class Refusal(NamedTuple):
    """override: the word for --despite, empty where nothing overrides it."""

    text: str
    override: str = ""


def refusals(plan: Plan, facts: Facts) -> Iterator[Refusal]:
    """All reasons against this plan. What cannot be seen is a reason too."""
    dataset = Subject("dataset", plan.dataset)
    pool = Subject("pool", plan.dataset.partition("/")[0])
    name = harmless(pool.name)
    yield from _never(plan, dataset, pool, facts)
    yield from _unless(facts.get(pool, "state"), "ONLINE", f"pool {name} is {{}}", "degraded")
    scan = facts.get(pool, "scan_state")
    if not isinstance(scan, Known) or scan.value == "in progress":
        what = facts.get(pool, "scan_function")
        running = f"a {what.value} is running" if isinstance(what, Known) else "a scrub or resilver may be running"
        yield Refusal(f"pool {name}: {running}: its I/O cannot be told from that of the run", "scrub")
    capacity = _number(facts.get(pool, "capacity_percent"), facts.get(pool, "list_capacity_percent"))
    if capacity is None or capacity > FULL_PERCENT:
        yield Refusal(f"pool {name} is {'of unknown fullness' if capacity is None else f'{capacity} % full'}", "full")
    space, needed = _number(facts.get(dataset, "available")), TIMES_THE_SIZE * plan.bytes_on_disk
    if space is None or space < needed:
        have = "an unknown amount" if space is None else size(space)
        yield Refusal(f"{harmless(plan.dataset)} has {have} left, {size(needed)} are wanted (twice the files)", "space")


def _never(plan: Plan, dataset: Subject, pool: Subject, facts: Facts) -> Iterator[Refusal]:
    suspended = facts.get(pool, "suspended")
    if not isinstance(suspended, Known) or suspended.value:
        word = "is suspended" if isinstance(suspended, Known) else f"may be suspended ({_why(suspended)})"
        yield Refusal(f"pool {harmless(pool.name)} {word}: no write would return")
    if plan.kind == "directory":
        mounted = facts.get(dataset, "mounted")
        if not isinstance(mounted, Known) or not mounted.value:
            why = "is not mounted" if isinstance(mounted, Known) else f"may not be mounted ({_why(mounted)})"
            yield Refusal(f"{harmless(dataset.name)} {why}")
    for subject, what in ((pool, "pool"), (dataset, "dataset")):
        readonly = facts.get(subject, "readonly")
        if not isinstance(readonly, Known) or readonly.value != "off":
            word = "is read-only" if isinstance(readonly, Known) else f"may be read-only ({_why(readonly)})"
            yield Refusal(f"{what} {harmless(subject.name)} {word}")


def _unless(found: Judged, good: str, text: str, override: str) -> Iterator[Refusal]:
    if isinstance(found, Unknown):
        yield Refusal(text.format(f"in an unknown state ({_why(found)})"), override)
    elif found.value != good:
        yield Refusal(text.format(found.value), override)


def _why(found: Unknown) -> str:
    return "; ".join(reason.text for reason in found.reasons)


def _number(*candidates: Judged) -> int | None:
    return next((each.value for each in candidates if isinstance(each, Known) and isinstance(each.value, int)), None)
