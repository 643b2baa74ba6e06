"""Severities, and what the durability model calls events, questions and parties, as rules and reports name them."""

from __future__ import annotations

from functools import cache
from typing import Literal, get_args

from auditor.durability import answers, events
from auditor.durability.answers import Party as StoreParty

Severity = Literal["low", "medium", "high", "critical"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

Event = events.EventName
EVENTS: tuple[Event, ...] = events.EVENTS
# what comes to every host by itself, the mildest first, then what takes a broken device as well
NEXT: tuple[Event, ...] = ("process", "restart", "crash", "power", "below", "drive", "log", "power+log", "power+drive")
# import: a log device is missing, or another host had the pool
Take = Literal["commits", "consistency", "pool", "import"]
TAKES: tuple[Take, ...] = get_args(Take)
Party = answers.Promised
STORE_PARTIES: tuple[StoreParty, ...] = get_args(StoreParty)
# for whom a site can answer in its policy, and the only answer that there is
ANSWERING: tuple[Party, ...] = ("hypervisor", "controller", "target", "drive")
ANSWER = "flushes honoured"

MEANS: dict[Event, str] = {
    "process": "the database is killed",
    "restart": "the host restarts in good order",
    "crash": "the kernel crashes or is reset",
    "power": "the power fails",
    "power+log": "the power fails and a log device does not come back",
    "power+drive": "the power fails and a data drive does not come back",
    "drive": "a data drive dies",
    "log": "a log device dies",
    "below": "the physical host or the storage loses power",
}
TAKEN: dict[Take, str] = {
    "commits": "acknowledged commits",
    "consistency": "the consistency of the database",
    "pool": "the pool",
    "import": "the import of the pool as it is",
}
GOES: dict[Event, str] = {
    "process": "what the database had not yet written",
    "restart": "what was in memory, after programs have ended and file systems were unmounted",
    "crash": "what was in memory",
    "power": "what was in memory and in volatile caches of drives and controllers that were not flushed",
    "power+log": "the same, and what was on a log device",
    "power+drive": "the same, and what was on one data drive (or special device, also where that holds the log)",
    "drive": "what was on one data drive (or special device)",
    "log": "what was on one log device",
    "below": "what the underlying device had acknowledged and not made durable",
}


@cache
def milder(event: Event) -> frozenset[Event]:
    """Events of which this one destroys everything, too."""
    found = {mild for mild, grave in events.ORDER if grave == event}
    return frozenset(found.union(*map(milder, found)))
