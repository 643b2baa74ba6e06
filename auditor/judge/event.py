"""Events: what can happen to a host, and what a failure does at one. Severity follows from it; no rule ranks itself.

A reader asks "what do I lose when the power fails?". A rule therefore says at which event its failure takes acknowledged
commits, the mildest one; whatever strikes at one strikes at every graver one of its line too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

Severity = Literal["low", "medium", "high", "critical"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

Event = Literal["process", "crash", "power", "power+log", "power+drive", "drive", "below"]
EVENTS: tuple[Event, ...] = get_args(Event)
Party = Literal["drive", "controller", "hypervisor", "target", "layer", "database", "replicas"]
PARTIES: tuple[Party, ...] = get_args(Party)
ANSWERING: tuple[Party, ...] = (
    "hypervisor",
    "controller",
    "target",
    "drive",
)  # for whom a site can answer in its policy
ANSWER = "flushes honoured"  # the only answer that there is
Take = Literal["commits", "consistency", "pool"]
TAKES: tuple[Take, ...] = get_args(Take)

MEANS: dict[Event, str] = {
    "process": "the database is killed",
    "crash": "the kernel crashes or is reset",
    "power": "the power fails",
    "power+log": "the power fails and a log device does not come back",
    "power+drive": "the power fails and a data drive does not come back",
    "drive": "a data drive dies",
    "below": "the host below loses power",
}
TAKEN: dict[Take, str] = {
    "commits": "acknowledged commits",
    "consistency": "the consistency of the database",
    "pool": "the pool",
}
GOES: dict[Event, str] = {
    "process": "what the database had not yet written",
    "crash": "what was in memory",
    "power": "what was in memory and in volatile caches of drives and controllers that were not flushed",
    "power+log": "the same, and what was on a log device",
    "power+drive": "the same, and what was on one data drive (or special device, also where that holds the log)",
    "drive": "what was on one data drive (or special device)",
    "below": "whatever the layer below had promised",
}
# event -> those that strike when it happens: itself and the milder ones of its line. A machine whose power is gone has
# crashed, and a database on a machine that crashed was killed.
INCLUDES: dict[Event, frozenset[Event]] = {
    "process": frozenset({"process"}),
    "crash": frozenset({"process", "crash"}),
    "power": frozenset({"process", "crash", "power"}),
    "power+log": frozenset({"process", "crash", "power", "power+log"}),
    "power+drive": frozenset({"process", "crash", "power", "power+drive", "drive"}),
    "drive": frozenset({"drive"}),
    "below": frozenset({"process", "crash", "power", "below"}),
}
# a crash, a kill and a power cut happen to every host; a second failure at the same time, or the loss of a host below, to few
GRAVITY: dict[Event, Severity] = {
    "process": "critical",
    "crash": "critical",
    "power": "critical",
    "power+log": "high",
    "power+drive": "high",
    "drive": "high",
    "below": "high",
}


class Strike(NamedTuple):
    """What a failure does. severity: how much it counts. loses: the mildest event at which something acknowledged goes, or
    empty: none does that. word: at that event it is kept, but only on the word of this party; or empty. takes: what goes.
    answer: what a site can say to it in its policy; or empty."""

    severity: Severity
    loses: Event | Literal[""] = ""
    word: Party | Literal[""] = ""
    takes: tuple[Take, ...] = ()
    answer: str = ""

    @classmethod
    def at(cls, loses: Event, word: Party | Literal[""], takes: tuple[Take, ...], answer: str = "") -> Strike:
        """As grave as the event is; what is kept on somebody's word is medium, and low where the site has declared that other
        replicas keep it."""
        return cls("low" if word == "replicas" else "medium" if word else GRAVITY[loses], loses, word, takes, answer)

    def strikes(self, event: Event) -> bool:
        """Does it matter when this happens?"""
        return bool(self.loses) and self.loses in INCLUDES[event]


def worst(strikes: Iterable[Strike]) -> Severity:
    """The severity of the most severe."""
    return max((each.severity for each in strikes), key=SEVERITIES.index)


def least(strikes: Iterable[Strike]) -> Severity:
    """The severity of the least severe."""
    return min((each.severity for each in strikes), key=SEVERITIES.index)
