"""What the table of events says, in words: the headline, and a line for each outcome. All of it is harmless to print."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from auditor.judge.cell import Cell, joined
from auditor.judge.event import EVENTS, INCLUDES, Event, Party, Take
from auditor.judge.outcomes import Column
from auditor.text import harmless

NOUNS: dict[Event, str] = {
    "process": "a killed database",
    "crash": "a crash",
    "power": "a power cut",
    "drive": "a dead data drive",
    "power+log": "a power cut with a lost log device",
    "power+drive": "a power cut with a lost data drive",
    "below": "a power cut of the host below",
}
NAMES_SHOWN, USERS_SHOWN = 4, 2
NOBODY: Mapping[str, Sequence[str]] = {}
PARTIES: dict[Party, str] = {
    "drive": "the drives",
    "controller": "the controller",
    "hypervisor": "the hypervisor",
    "target": "the storage behind the network",
    "layer": "the layer below",
    "database": "the database",
    "replicas": "the other replicas",
}


class Line(NamedTuple):
    """Events at which the same happens. why: ids of the rules that decide it."""

    events: tuple[Event, ...]
    cell: Cell
    text: str
    why: tuple[str, ...]


def lines(column: Column, events: Sequence[Event]) -> Iterator[Line]:
    """What happens to these datasets, one line for all events that end alike; that of the power cut first."""
    together: dict[tuple[object, ...], list[Event]] = {}
    for event in events:
        cell = column.cells[event]
        together.setdefault(("unknown",) if cell.outcome == "unknown" else cell.alike, []).append(event)
    for at in sorted(together.values(), key=lambda each: "power" not in each):
        cell = joined(column.cells[event] for event in at)
        yield Line(tuple(at), cell, sentence(cell), tuple(map(harmless, cell.rules)))


def happening(events: Sequence[Event]) -> str:
    """a crash or a power cut. What includes another of them goes without saying where it ends alike."""
    nouns = [NOUNS[event] for event in events if not (INCLUDES[event] - {event}) & {"power", "drive"} & set(events)]
    return " or ".join((", ".join(nouns[:-1]), nouns[-1])) if len(nouns) > 1 else nouns[0]


def sentence(cell: Cell) -> str:
    """keeps all; LOSES commits of the last 5 to 10 s, more under load; keeps all, on the word of nvme0n1."""
    match cell.outcome:
        case "kept":
            return "keeps all"
        case "word":
            return f"keeps all, on the word {detail(cell)}"
        case "lost":
            return f"LOSES {detail(cell)}"
        case _:
            return f"not known {detail(cell)}"


def detail(cell: Cell) -> str:
    """What stands behind the outcome: commits of the last 5 to 10 s; of nvme0n1; whether it loses commits. Nothing if kept."""
    match cell.outcome:
        case "kept":
            return ""
        case "word":
            return f"of {parties(cell)}"
        case "lost":
            return f"{_taken(cell)}{_answered(cell)}"
        case _:
            return f"whether it loses {_taken(cell, measured=False)}"


def _answered(cell: Cell) -> str:
    """Of what somebody answers for in the policy: who, and until when."""
    waivers = [each.waiver for each in cell.verdicts if each.waiver]
    if not waivers or len(waivers) < len(cell.verdicts):
        return ""
    return _who(waivers[0].owner, min(each.expires for each in waivers))


def _who(owner: str, until: object) -> str:
    return f", for which {harmless(owner)} answers until {until}"


def parties(cell: Cell, spelt: Callable[[str], str] = str) -> str:
    """nvme0n1, nvme1n1 and of the hypervisor, for which storage@example.org answers until 2027-01-31. What nobody answers for
    comes first. spelt: how, all but the names."""
    said = []
    for word in sorted(cell.parties, key=lambda each: bool(each.owner)):
        shown = [harmless(name) for name in word.names[:NAMES_SHOWN]]
        more = spelt(f" and {len(word.names) - NAMES_SHOWN} more") if len(word.names) > NAMES_SHOWN else ""
        whose = ", ".join(shown) + more if shown else spelt(PARTIES[word.party])
        said.append(whose + (_who(word.owner, word.until) if word.owner and spelt is str else ""))
    return spelt(" and of ").join(dict.fromkeys(said))


def _taken(cell: Cell, measured: bool = True) -> str:
    words = []
    for take in cell.takes:
        match take:
            case "commits":
                words.append(f"commits{_amount(cell) if measured else ''}")
            case "consistency":
                words.append("the consistency of the database")
            case "pool":
                words.append("the pool")
    return " and ".join(words)


def _amount(cell: Cell) -> str:
    """How much of the commits goes, of all that take some: nothing is said where one of them knows no bound."""
    takers = [each for each in cell.verdicts if any("commits" in strike.takes for strike in each.strikes)]
    amounts = dict.fromkeys(each.amount for each in takers)
    return "" if "" in amounts else " and".join(f" {harmless(amount)}" for amount in amounts)


def where(column: Column, users: Mapping[str, Sequence[str]] = NOBODY) -> str:
    """The datasets of it, with who uses them: tank/vm (guest db1)."""
    names = [harmless(name) + used(users.get(name, ())) for name in column.names[:NAMES_SHOWN]]
    return ", ".join(names) + (
        f" and {len(column.names) - NAMES_SHOWN} more" if len(column.names) > NAMES_SHOWN else ""
    )


def used(by: Sequence[str], spelt: Callable[[str], str] = harmless) -> str:
    """Behind a name: the first of those who use it, and how many more there are."""
    more = f" and {len(by) - USERS_SHOWN} more" if len(by) > USERS_SHOWN else ""
    return f" ({', '.join(map(spelt, by[:USERS_SHOWN]))}{more})" if by else ""


HAPPENS: dict[Event, str] = {
    "process": "KILLING THE DATABASE",
    "crash": "A CRASH OR POWER CUT",
    "power": "A POWER CUT",
}


AFTER_A_CUT: tuple[Event, ...] = ("drive", "below", "power+log", "power+drive")  # the mildest first


def loses(columns: Sequence[Column]) -> bool:
    """Does some event certainly lose something?"""
    return any(cell.outcome == "lost" for column in columns for cell in column.cells.values())


def headline(columns: Sequence[Column]) -> str:
    """What the mildest event that loses something takes, and what a power cut takes as well; else the row of the power cut."""
    cell = worst(columns)
    if cell.outcome == "lost":
        event = next(each for each in EVENTS if any(column.cells[each].outcome == "lost" for column in columns))
        first = worst(columns, event).takes
        said = f"{HAPPENS[event]} LOSES {_capital(first)}"
        more = tuple(take for take in cell.takes if take not in first)
        if not more:
            return said
        graver = HAPPENS["crash" if event == "process" and set(more) <= set(_lost(columns, "crash")) else "power"]
        return f"{said}, {graver} ALSO {_capital(more)}"
    if cell.outcome == "unknown":
        return "CANNOT TELL WHETHER A POWER CUT LOSES COMMITS"
    if loses(columns):
        event = next(each for each in AFTER_A_CUT if worst(columns, each).outcome == "lost")
        return f"{NOUNS[event].upper()} LOSES {_capital(worst(columns, event).takes)}"
    if cell.outcome == "word":
        return f"A POWER CUT LOSES NOTHING, ON THE WORD OF {parties(cell, str.upper)}"
    return "A POWER CUT LOSES NOTHING, IN ALL THAT WAS SEEN"


def _lost(columns: Sequence[Column], event: Event) -> tuple[Take, ...]:
    """What certainly goes."""
    cell = worst(columns, event)
    return cell.takes if cell.outcome == "lost" else ()


def _capital(takes: Sequence[Take]) -> str:
    words = {"commits": "ACKNOWLEDGED COMMITS", "consistency": "THE CONSISTENCY OF THE DATABASE", "pool": "THE POOL"}
    return " AND ".join(words[take] for take in takes)


def worst(columns: Sequence[Column], event: Event = "power") -> Cell:
    """Of all datasets, at one event."""
    return joined(column.cells[event] for column in columns) if columns else Cell("unknown", ("commits",))
