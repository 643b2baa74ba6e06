"""What a leg and a vdev keep of what they acknowledged, at one event.

Of what is older than its last absence a leg has nothing until it is resilvered: a leg with a DTL counts neither as faulted nor
as degraded (vdev.c vdev_propagate_state()), and a mirror does not read it (vdev_mirror.c vdev_mirror_child_select()). What was
written since lies on every leg that accepts writes; so do log blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from auditor.durability.answers import (
    SAFE,
    Answer,
    Rank,
    Reason,
    all_of,
    any_of,
    at_least,
    either,
    holds,
    lost,
    relies,
    unknown,
)
from auditor.durability.host import WORKING, Event, Host, Leg, Store, Vdev

# what a dataset keeps of a leg that lies on it, with the request that arrives
Keeps = Callable[[str, Event, Answer], Answer]
Opens = Callable[[str, Event], Answer]  # whether it is there to be opened at the next import


class Legs:
    """Legs of one host. judged: how many were evaluated, for a test of the growth."""

    def __init__(self, host: Host, keeps: Keeps, opens: Opens) -> None:
        self._host, self._dataset_keeps, self._dataset_opens = host, keeps, opens
        self._drives: dict[str, dict[str, None]] = {}
        self._known: dict[tuple[object, ...], Answer] = {}
        self.judged = 0

    def drives(self, leg: Leg) -> Collection[str]:
        """Physical drives on which it lies, at any depth."""
        return self._below(leg.on) if leg.on else leg.drives

    def _below(self, name: str) -> Collection[str]:
        if name not in self._drives:
            self._drives[name] = {}  # of a pool that lies on itself
            dataset = self._host.datasets.get(name)
            if pool := self._host.pools.get(dataset.pool) if dataset else None:
                legs = (leg for vdev in pool.data + pool.log for leg in vdev.legs)
                self._drives[name] = dict.fromkeys(drive for leg in legs for drive in self.drives(leg))
        return self._drives[name]

    def redundant(self, vdev: Vdev) -> bool:
        """Does it outlive any one drive, as it is built?"""
        held: dict[str, int] = {}
        for leg in vdev.legs:
            for drive in self.drives(leg) if leg.needed in (None, len(leg.drives)) else ():
                held[drive] = held.get(drive, 0) + 1
        return max(held.values(), default=0) <= vdev.tolerates

    def vdev_keeps(self, vdev: Vdev, event: Event, sent: Answer, old: bool) -> Answer:
        """sent: does ZFS flush what it wrote? old: data that may be older than a resilver, not log blocks."""
        struck = bool(event.device) and any(event.device in self.drives(leg) for leg in vdev.legs)
        return self._redundancy(vdev, struck, (self._leg_keeps(leg, event, sent, old, struck) for leg in vdev.legs))

    def vdev_writes(self, vdev: Vdev) -> Answer:
        """Does it accept log blocks now?"""
        return at_least(vdev.needed, map(_works, vdev.legs))

    def vdev_opens(self, vdev: Vdev, event: Event) -> Answer:
        """Is a log vdev there at the import? It is missing when it is VDEV_STATE_CANT_OPEN (spa.c
        spa_check_for_missing_logs()). A mirror is that when no leg opens, unless all are OFFLINE (vdev_mirror.c
        vdev_mirror_state_change()); a single device that keeps another state is not (vdev.c vdev_open())."""
        states = {leg.state for leg in vdev.legs}
        if states == {"OFFLINE"} or (len(vdev.legs) == 1 and states <= {"FORCED", "REMOVED"}):
            return SAFE
        struck = bool(event.device) and any(event.device in self.drives(leg) for leg in vdev.legs)
        found = self._redundancy(vdev, struck, (self._leg_opens(leg, event, struck) for leg in vdev.legs))
        offline = states <= {"OFFLINE", None}  # all of it may be
        return either(found, SAFE, "present", vdev.name) if offline and found.rank is not Rank.SAFE else found

    def _redundancy(self, vdev: Vdev, struck: bool, legs: Iterable[Answer]) -> Answer:
        answer = at_least(vdev.needed, legs)
        if not struck or answer.rank is Rank.SAFE:
            return answer
        return Answer(answer.rank, answer.relies, (*answer.why, Reason("redundancy", vdev.name)))

    def _leg_keeps(self, leg: Leg, event: Event, sent: Answer, old: bool, struck: bool) -> Answer:
        """Evaluated once for all drives that are not below it."""
        if not event.device:
            return self._leg(leg, event, sent, old, struck)
        below = event.device in self.drives(leg)
        key = (leg.name, event.device if below else self._host.store(event.device).alone, event.harm, sent, old, struck)
        if key not in self._known:
            self._known[key] = self._leg(leg, event, sent, old, struck)
        return self._known[key]

    def _leg(self, leg: Leg, event: Event, sent: Answer, old: bool, struck: bool) -> Answer:
        """Errors of its own make a leg doubtful where it is the one that is left, and for log blocks, which nobody has read."""
        self.judged += 1
        parts = [self._content(leg, event, sent)]
        if leg.state not in WORKING:
            parts.append(_works(leg))
        if old and not leg.in_sync:
            parts.append(holds(leg.in_sync, "present", leg.name))
        if event.stops and not leg.opens:
            parts.append(holds(leg.opens, "opens", leg.name))
        if not leg.clean and (struck or not old):
            parts.append(unknown("errors", leg.name))
        return all_of(parts)

    def _leg_opens(self, leg: Leg, event: Event, struck: bool) -> Answer:
        match leg.state:
            case "OFFLINE" | "FORCED" | "REMOVED" | "UNAVAIL":
                return lost("present", leg.name)
            case "FAULTED":
                answers = holds(leg.answers, "present", leg.name)
            case _:
                answers = SAFE if leg.state else unknown("present", leg.name)
        opens = holds(leg.opens, "opens", leg.name)
        if struck and not leg.clean:
            opens = all_of((opens, unknown("errors", leg.name)))
        if leg.on:
            return all_of((answers, opens, self._dataset_opens(leg.on, event)))
        needed = len(leg.drives) if leg.needed is None else leg.needed
        there = at_least(needed, [self._outlives(self._host.store(each), event) for each in leg.drives])
        return all_of((answers, opens, there))

    def _content(self, leg: Leg, event: Event, sent: Answer) -> Answer:
        """Through all layers down to the drives."""
        parts, reached = [], sent
        for name in leg.layers:
            store = self._host.store(name)
            reached = _passed(reached, store)
            parts.append(self._store_keeps(store, event, reached))
        if leg.on:
            parts.append(self._dataset_keeps(leg.on, event, reached))
        else:
            drives = [self._host.store(name) for name in leg.drives]
            needed = len(drives) if leg.needed is None else leg.needed
            parts.append(at_least(needed, [self._store_keeps(each, event, _passed(reached, each)) for each in drives]))
        return all_of(parts)

    def _store_keeps(self, store: Store, event: Event, flushed: Answer) -> Answer:
        dies = self._outlives(store, event)
        return dies if dies.rank is Rank.LOST else all_of((dies, self._cache_keeps(store, event, flushed)))

    def _outlives(self, store: Store, event: Event) -> Answer:
        """The drive that goes: a volume is whole as long as its RAID is. Who shows disks is relied on to keep them apart."""
        if not event.device:
            return SAFE
        if store.name == event.device:
            if store.name not in self._host.stores:
                return unknown("event", store.name)
            if store.redundant is None:
                return relies(store.party, store.name, "event")
            return holds(store.redundant, "event", store.name)
        if store.alone or self._host.store(event.device).alone:
            return SAFE
        if store.alone is None and store.party in ("hypervisor", "target"):
            return relies(store.party, "" if store.party == "hypervisor" else store.name, "alone", store.name)
        return unknown("alone", store.name)

    def _cache_keeps(self, store: Store, event: Event, flushed: Answer) -> Answer:
        """A drive that says it has no cache is relied on like one that says it flushes: a lie looks the same.

        A hypervisor that lives after the power cut of its guest keeps its page cache, but perhaps not what its process held
        back (metadata of an image): it is relied on.
        """
        if store.place == "host" and store.cache == "volatile" and event.stops and not event.memory:
            written = relies("shutdown", f"the file system below {store.name}", store.party, store.name)
            return any_of(flushed, written)
        empties = event.empties(store.place, self._host.virtual)
        hypervisor_lives = store.place == "hypervisor" and event.power and not event.below
        if empties is False and not hypervisor_lives:
            return SAFE
        claim = SAFE
        if store.honours is None:
            claim = _promise(store)
        elif not store.honours:
            claim = lost(store.party, store.name)
        if store.tried is None:
            claim = all_of((claim, unknown(store.party, store.name)))
        if hypervisor_lives:
            return SAFE if store.honours else _promise(store)
        if store.cache == "volatile":
            claim = all_of((claim, any_of(flushed, lost(store.party, store.name))))
        elif store.cache is None:
            claim = all_of((claim, any_of(flushed, unknown(store.party, store.name))))
        return claim if empties else either(claim, SAFE, "virtual", "host")


def _promise(store: Store) -> Answer:
    """There is one hypervisor, whatever disks it shows."""
    return relies(store.party, "" if store.party == "hypervisor" else store.name, store.party, store.name)


def _works(leg: Leg) -> Answer:
    return holds(None if leg.state is None else leg.state in WORKING, "present", leg.name)


def _passed(reached: Answer, store: Store) -> Answer:
    if reached.rank is Rank.SAFE and store.passes and store.completes and store.counted:
        return SAFE
    passes, completes = holds(store.passes, "flush", store.name), holds(store.completes, "flush error", store.name)
    counted = SAFE if store.counted else relies("flushes", "", "flush", store.name)
    return all_of((reached, passes, completes, counted))
