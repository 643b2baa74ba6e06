"""Events, and what each destroys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from auditor.durability.host import Place

EventName = Literal["process", "restart", "crash", "power", "power+log", "power+drive", "drive", "log", "below"]
EVENTS: tuple[EventName, ...] = get_args(EventName)
Question = Literal["commits", "consistency", "pool"]
QUESTIONS: tuple[Question, ...] = get_args(Question)
Class = Literal["data", "log"]


@dataclass(frozen=True)
class Event:
    """stops: the kernel ends, and the pool is imported again. memory: what this host's memory holds is gone. takes: one
    physical drive of this class goes, with all that lies on it at any depth; device: which one. everything: the pools go with
    all that is on them."""

    name: EventName | Literal["gone"]
    process: bool = False
    stops: bool = False
    memory: bool = False
    power: bool = False
    below: bool = False
    everything: bool = False
    takes: Class | Literal[""] = ""
    device: str = ""

    @cached_property
    def harm(self) -> Event:
        """The same without its name and its drive."""
        return replace(self, name="process", takes="", device="")

    def empties(self, place: Place | None, virtual: bool | None) -> bool | None:
        """Is a volatile cache at this place gone? The power cut of a virtual machine leaves the hypervisor and its devices."""
        if place is None:
            return None if self.memory else False
        if place == "host":
            return self.memory
        if self.below or not self.power:
            return self.below
        return False if place == "hypervisor" else None if virtual is None else not virtual


_CUT = Event("power", process=True, stops=True, memory=True, power=True)
ALL: dict[EventName, Event] = {
    "process": Event("process", process=True),
    "restart": Event("restart", process=True, stops=True),
    "crash": Event("crash", process=True, stops=True, memory=True),
    "power": _CUT,
    "power+log": replace(_CUT, name="power+log", takes="log"),
    "power+drive": replace(_CUT, name="power+drive", takes="data"),
    "drive": Event("drive", takes="data"),
    "log": Event("log", takes="log"),
    "below": replace(_CUT, name="below", below=True),
}
# the pools with all that is on them: only another host has anything left, and no element of the path changes that
GONE = Event("gone", everything=True)
# milder, more severe: what survives the more severe one survives the milder one
ORDER: tuple[tuple[EventName, EventName], ...] = (
    ("process", "crash"),
    ("restart", "crash"),
    ("crash", "power"),
    ("power", "power+log"),
    ("power", "power+drive"),
    ("power", "below"),
    ("drive", "power+drive"),
    ("log", "power+log"),
)
