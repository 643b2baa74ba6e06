"""durability.toml: what breaking one element of a commit's path costs. Its head says what its words mean."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import NamedTuple

from auditor import data

FILE = "durability.toml"
QUESTIONS = ("commits", "consistency", "pool")
ANSWERS = ("lost", "unknown", "relies", "no loss")  # the worst first
COSTS = ANSWERS[:-1]
SEVERITIES = ("critical", "high", "medium", "low")

# ids of the table of what breaks an element of the path of a commit (auditor/durability/repairs.py)
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
    """A table in this form."""
    events = _events(document["event"])
    worlds = {each["id"]: _cost(each, (), (each["id"],), events) for each in document["world"]}
    rows = (_cost(row, tuple(row["elements"]), tuple(row.get("worlds", worlds)), events) for row in document["row"])
    titles = {each["id"]: each["title"] for each in (*document["element"], *document["world"])}
    severities = {
        cell: Severity(each["severity"], _text(each, "why"))
        for each in document["severity"]
        for cell in product(each["questions"], each["events"], each["answers"])
    }
    return Table(document["steps"], events, titles, worlds, tuple(rows), severities)


def _text(entry: data.Document, key: str) -> str:
    return " ".join(entry.get(key, "").split())


def _events(entries: list[data.Document]) -> dict[str, Event]:
    next = {each["id"]: each["worse"] for each in entries}

    def beyond(id: str) -> frozenset[str]:
        return frozenset(next[id]).union(*map(beyond, next[id]))

    return {each["id"]: Event(**{**each, "worse": beyond(each["id"])}) for each in entries}


def _cost(
    entry: data.Document, elements: tuple[str, ...], worlds: tuple[str, ...], events: Mapping[str, Event]
) -> Cost:
    """What costs something at an event costs it at each that is worse, too; the worst answer counts."""
    cells = dict.fromkeys(product(QUESTIONS, events), "no loss")
    for question in QUESTIONS:
        for answer in reversed(COSTS):
            for event in entry.get(question, {}).get(answer, ()):
                cells |= {(question, each): answer for each in (event, *events[event].worse)}
    relies_on, why, open = (_text(entry, key) for key in ("relies_on", "why", "open"))
    return Cost(elements, worlds, cells, relies_on, why, tuple(entry["sources"]), open)
