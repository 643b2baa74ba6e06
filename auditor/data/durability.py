"""durability.toml: what breaking one element of a commit's path costs. Its head says what its words mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from auditor import data
from auditor.data import TableError

FILE = "durability.toml"
QUESTIONS = ("commits", "consistency", "pool")
ANSWERS = ("lost", "unknown", "relies", "no loss")  # the worst first
COSTS = ANSWERS[:-1]
SEVERITIES = ("critical", "high", "medium", "low")
COST, OPTIONAL = ("why", "sources"), (*QUESTIONS, "relies_on", "open")

# ids of the table of what breaks an element of the path of a commit (auditor/durability/elements.py)
ROWS: Mapping[str, tuple[str, ...]] = {
    "leave": ("leave.async", "leave.mongodb", "leave.everysec"),
    "recover": ("leave.redo-off",),
    "guard": ("guard.off",),
    "page in block": ("guard.off",),
    "split": ("guard.off",),
    "ask": ("ask.late", "ask.binlog", "ask.sqlite-normal", "ask.never", "ask.data"),
    "pass on": ("pass.libeatmydata", "pass.nfs-async", "pass.guest-unsafe", "pass.nobarrier", "pass.zvol-queue"),
    "reach": ("pass.guest-unsafe",),
    "commit": ("commit.disabled", "path.wal-disabled", "path.data-disabled"),
    "indirect": ("place.indirect",),
    "direct": ("place.direct",),
    "replay": ("recover.no-replay",),
    "defect": ("place.indirect-innodb",),
    "key": ("recover.key-inside", "recover.key-absent"),
    "unmount": ("commit.disabled",),
    "zil flush": ("flush.log-off",),
    "txg flush": ("flush.all-off",),
    "import": ("log.unavail",),
    "room": ("place.log-fills",),
    "redundancy": ("log.one", "log.striped", "log.one-drive", "data.one", "data.one-drive", "data.special-one"),
    "present": ("log.leg-absent", "log.unavail", "log.faulted-dead", "data.leg-absent", "data.raidz1-short"),
    "opens": ("log.unavail",),
    "errors": ("log.leg-errors", "data.leg-errors"),
    "flush": ("flush.layer", "store.ram-log"),
    "flush error": ("flush.failed-log", "flush.failed-data"),
    "drive": ("flush.lying", "flush.lying-log", "flush.lying-data", "store.undocumented"),
    "controller": ("store.raid-battery", "store.raid-no-battery"),
    "hypervisor": ("store.virtual",),
    "target": ("store.virtual",),
    "layer": ("store.file", "flush.layer"),
}

Cells = Mapping[tuple[str, str], str]  # (question, event) -> answer, of all


class Event(NamedTuple):
    """worse: every event that destroys all of this and more, however far."""

    id: str
    title: str
    destroys: str
    worse: frozenset[str]


class Cost(NamedTuple):
    """What is broken, or a world in which nothing is (no elements), and what that costs in each of its worlds."""

    elements: tuple[str, ...]
    worlds: tuple[str, ...]
    cells: Cells
    relies_on: str
    why: str
    sources: tuple[str, ...]
    open: str


class Severity(NamedTuple):
    severity: str
    why: str


class Table(NamedTuple):
    """titles: of elements and worlds, in the order of the file. severities: by question, event and answer."""

    steps: Mapping[str, str]
    events: Mapping[str, Event]
    titles: Mapping[str, str]
    worlds: Mapping[str, Cost]
    rows: tuple[Cost, ...]
    severities: Mapping[tuple[str, str, str], Severity]

    def cells(self, row: Cost, world: str) -> Cells:
        """What the row costs there, with what the world itself costs."""
        return {key: min(answer, self.worlds[world].cells[key], key=ANSWERS.index) for key, answer in row.cells.items()}


@cache
def load() -> Table:
    return parse(data.table(FILE))


def parse(document: data.Document) -> Table:
    """A table in this form. Raises TableError for anything misspelt, missing, of the wrong type, twice, or said although it
    follows."""
    _keys(FILE, document, {"steps", "event", "world", "element", "row", "severity"})
    steps = document["steps"]
    if not isinstance(steps, dict) or not all(isinstance(each, str) and each for each in steps.values()):
        raise TableError(f"{FILE}: [steps] are texts")
    events = _events(document)
    titles: dict[str, str] = {}
    names: dict[str, str] = {}
    for where, entry in _entries(document, "element"):
        _keys(where, entry, {"id", "title"})
        id, title = _texts(where, entry, "id", "title")
        if id.partition(".")[0] not in steps or id in titles:
            raise TableError(f"{where}: {id} begins with a step and a dot, and is there once")
        titles[id] = title
    worlds: dict[str, Cost] = {}
    for where, entry in _entries(document, "world"):
        _keys(where, entry, {"id", "title", *COST}, OPTIONAL)
        id, title = _texts(where, entry, "id", "title")
        if id in worlds:
            raise TableError(f"{where}: {id} is there twice")
        worlds[id] = _cost(where, entry, (), (id,), events)
        names[id] = title
    rows: list[Cost] = []
    for where, entry in _entries(document, "row"):
        _keys(where, entry, {"elements", *COST}, ("worlds", *OPTIONAL))
        broken = _words(where, entry, "elements", [*titles])
        there = _words(where, entry, "worlds", [*worlds]) if "worlds" in entry else tuple(worlds)
        rows.append(_cost(f"{where} ({', '.join(broken)})", entry, broken, there, events))
    places = [(" and ".join(sorted(row.elements)), world) for row in rows for world in row.worlds]
    if twice := {each for each in places if places.count(each) > 1}:
        raise TableError(f"{FILE}: two rows of {', '.join(sorted(elements for elements, _ in twice))}")
    alone = {row.elements[0] for row in rows if len(row.elements) == 1}
    if missing := titles.keys() - alone:
        raise TableError(f"{FILE}: no row of {', '.join(sorted(missing))} alone")
    return Table(steps, events, {**titles, **names}, worlds, tuple(rows), _severities(document, events))


def _keys(where: str, entry: object, needed: Iterable[str], perhaps: Iterable[str] = ()) -> None:
    if not isinstance(entry, dict):
        raise TableError(f"{where}: expected a table")
    if wrong := ({*needed} - entry.keys()) | (entry.keys() - {*needed} - {*perhaps}):
        raise TableError(f"{where}: missing or unknown {', '.join(sorted(wrong))}")


def _entries(document: Mapping[str, Any], word: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    found = document[word]
    if not isinstance(found, list) or not found or not all(isinstance(each, dict) for each in found):
        raise TableError(f"{FILE}: expected [[{word}]] entries")
    for number, entry in enumerate(found, 1):
        yield f"{FILE}: {word} {number}", entry


def _texts(where: str, entry: Mapping[str, Any], *keys: str) -> list[str]:
    found = [entry.get(key) for key in keys]
    if not all(isinstance(each, str) and each.strip() for each in found):
        raise TableError(f"{where}: {', '.join(keys)} are texts, and not empty")
    return [" ".join(str(each).split()) for each in found]


def _words(where: str, entry: Mapping[str, Any], key: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    found = entry.get(key)
    if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
        raise TableError(f"{where}: {key} is a list of texts")
    if not found and key != "worse":
        raise TableError(f"{where}: {key} is empty")
    wrong = [each for each in found if known and each not in known]
    if wrong or len({*found}) < len(found):
        raise TableError(f"{where}: {key}: unknown or twice: {', '.join(wrong or found)}")
    return tuple(found)


def _events(document: Mapping[str, Any]) -> dict[str, Event]:
    texts: dict[str, tuple[str, str]] = {}
    next: dict[str, tuple[str, ...]] = {}
    known = [str(entry.get("id")) for _, entry in _entries(document, "event")]
    for where, entry in _entries(document, "event"):
        _keys(where, entry, {"id", "title", "destroys", "worse"})
        id, title, destroys = _texts(where, entry, "id", "title", "destroys")
        if id in texts:
            raise TableError(f"{where}: {id} is there twice")
        texts[id], next[id] = (title, destroys), _words(where, entry, "worse", known)

    def beyond(id: str, way: tuple[str, ...] = ()) -> frozenset[str]:
        if id in way:
            raise TableError(f"{FILE}: {id} is worse than itself")
        return frozenset(next[id]).union(*(beyond(each, (*way, id)) for each in next[id]))

    return {id: Event(id, title, destroys, beyond(id)) for id, (title, destroys) in texts.items()}


def _cost(
    where: str,
    entry: Mapping[str, Any],
    elements: tuple[str, ...],
    worlds: tuple[str, ...],
    events: Mapping[str, Event],
) -> Cost:
    cells = dict.fromkeys(product(QUESTIONS, events), "no loss")
    for question in QUESTIONS:
        _keys(f"{where}: {question}", costs := entry.get(question, {}), (), COSTS)
        for answer in reversed(COSTS):
            for event in _words(f"{where}: {question}", costs, answer, [*events]) if answer in costs else ():
                cells |= {(question, each): answer for each in (event, *events[event].worse)}
        for event in (each for answer in costs for each in costs[answer]):
            cell = cells[question, event]
            if event not in costs[cell] or any(event in events[each].worse for each in costs[cell]):
                raise TableError(f"{where}: {question}: {event} is {cell} already, by a milder event")
    relies = any("relies" in entry.get(question, {}) for question in QUESTIONS)
    if relies is not ("relies_on" in entry):
        raise TableError(f"{where}: relies_on says what an answer relies on")
    (why,) = _texts(where, entry, "why")
    relies_on, open = ("".join(_texts(where, entry, key)) if key in entry else "" for key in ("relies_on", "open"))
    return Cost(elements, worlds, cells, relies_on, why, _words(where, entry, "sources"), open)


def _severities(document: Mapping[str, Any], events: Mapping[str, Event]) -> dict[tuple[str, str, str], Severity]:
    found: dict[tuple[str, str, str], Severity] = {}
    for where, entry in _entries(document, "severity"):
        _keys(where, entry, {"answers", "questions", "events", "severity", "why"})
        severity, why = _texts(where, entry, "severity", "why")
        if severity not in SEVERITIES:
            raise TableError(f"{where}: severity is one of {', '.join(SEVERITIES)}")
        words = ("questions", QUESTIONS), ("events", [*events]), ("answers", COSTS)
        questions, at, answers = (_words(where, entry, key, known) for key, known in words)
        keys = [*product(questions, at, answers)]
        if twice := [each for each in keys if each in found]:
            raise TableError(f"{where}: {' '.join(twice[0])} has a severity before")
        found |= {each: Severity(severity, why) for each in keys}
    if missing := {*product(QUESTIONS, events, COSTS)} - found.keys():
        raise TableError(f"{FILE}: no severity of {' '.join(min(missing))}")
    return found
