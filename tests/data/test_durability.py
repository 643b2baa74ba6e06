"""durability.toml: complete, in order, and refuted by nothing that the lab recorded. The model is held against it elsewhere."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from pathlib import Path

from auditor import data
from auditor.data import durability
from auditor.data.durability import ANSWERS, COSTS, FILE, QUESTIONS, Cost
from tests import durability_page
from tests.folded import for_each
from tests.lab.power import matrix, results

TABLE = durability.load()
TEXT = data.text(FILE)
SETTINGS = {setting.name: setting for setting in matrix.everything()}
OUT_OF_USE = {
    "log.offline",
    "log.forced",
    "log.removed",
}  # a log device that is not written to cannot take commits along


LAB, STATES = "lab: ", "states: "
STATES_FILE = Path(__file__).parents[1] / "lab" / "states" / "states.tsv"


def name(row: Cost) -> str:
    return f"{' and '.join(row.elements) or 'the world'}, {' and '.join(row.worlds)}"


@for_each("row", [*TABLE.worlds.values(), *TABLE.rows], ids=name)
def test_a_worse_event_never_costs_less(row: Cost) -> None:
    for world in row.worlds:
        cells = TABLE.cells(row, world)
        for (question, event), answer in cells.items():
            worse = [cells[question, each] for each in TABLE.events[event].worse]
            assert all(ANSWERS.index(each) <= ANSWERS.index(answer) for each in worse), (question, event)


def test_the_order_of_events() -> None:
    """As far as they can be compared: a dead drive is no kernel crash, and a restart no killed server."""
    power = {"below", "power+log", "power+drive"}
    assert {event.id: set(event.worse) for event in TABLE.events.values()} == {
        "process": {"crash", "power", *power},
        "restart": {"crash", "power", *power},
        "crash": {"power", *power},
        "power": power,
        "below": set(),
        "power+log": set(),
        "power+drive": set(),
        "drive": {"power+drive"},
        "log": {"power+log"},
    }


def pairs() -> list[Cost]:
    return [row for row in TABLE.rows if len(row.elements) > 1]


@for_each("row", pairs(), ids=name)
def test_two_broken_elements_cost_no_less_than_one_unless_one_rescues_the_other(row: Cost) -> None:
    """Of commits and the pool. sync=always rescues; a log device that is out of use cannot be lost."""
    if "commit.always" in row.elements or OUT_OF_USE & {*row.elements}:
        return
    alone = [each for each in TABLE.rows if len(each.elements) == 1 and each.elements[0] in row.elements]
    for world in row.worlds:
        together = TABLE.cells(row, world)
        for each in alone:
            for key, answer in TABLE.cells(each, world).items() if world in each.worlds else ():
                assert key[0] == "consistency" or ANSWERS.index(together[key]) <= ANSWERS.index(answer), (each, key)


def test_sync_always_never_costs_commits_or_the_pool() -> None:
    alone = {(row.elements[0], world): row for row in TABLE.rows if len(row.elements) == 1 for world in row.worlds}
    found = [row for row in pairs() if "commit.always" in row.elements]
    assert len(found) >= 5
    for row in found:
        (other,) = {*row.elements} - {"commit.always"}
        for world in row.worlds:
            for key, answer in alone[other, world].cells.items():
                assert ANSWERS.index(row.cells[key]) >= ANSWERS.index(answer), (row.elements, key)


def test_a_worse_answer_is_never_less_severe() -> None:
    for question in QUESTIONS:
        for event in TABLE.events:
            ranks = [
                durability.SEVERITIES.index(TABLE.severities[question, event, answer].severity) for answer in COSTS
            ]
            assert ranks == sorted(ranks), (question, event)


def test_what_is_not_decided_is_as_severe_as_a_loss() -> None:
    for question in QUESTIONS:
        for event in TABLE.events:
            lost, unknown = (TABLE.severities[question, event, answer] for answer in ("lost", "unknown"))
            assert lost == unknown, (question, event)


def cited(kind: str) -> list[tuple[Cost, str]]:
    found = [(row, source) for row in (*TABLE.worlds.values(), *TABLE.rows) for source in row.sources]
    return [(row, source.removeprefix(kind)) for row, source in found if source.startswith(kind)]


def test_each_setting_of_the_lab_that_a_row_cites_exists_and_has_been_run() -> None:
    recorded = {row["setting"] for path in (results.RESULTS, results.TORN) for row in results.read(path)}
    recorded |= {row["setting"] for row in results.read(results.EVENTS)}
    names = {setting for _, setting in cited(LAB)}
    assert len(names) >= 30
    assert names <= recorded
    assert names <= {
        each["name"]
        for path in (matrix.FILE, matrix.PAGES_FILE)
        for each in tomllib.loads(path.read_text(encoding="utf-8"))["setting"]
    }


def test_nothing_that_the_lab_lost_is_no_loss_in_the_row_that_cites_it() -> None:
    """At the events that take no drive along: the pools of the lab have fewer drives than the perfect world."""
    events: dict[str, dict[str, list[dict[str, object]]]] = defaultdict(lambda: defaultdict(list))
    for row in results.read(results.EVENTS):
        events[row["setting"]][row["event"]].append(row)
    for path in (results.RESULTS, results.TORN):
        for row in results.read(path):
            if row["setting"] not in SETTINGS or not SETTINGS[row["setting"]].lose:
                events[row["setting"]]["power"].append(row)
    seen = 0
    for cost, setting in cited(LAB):
        for event in ("process", "crash", "power"):
            for row in events[setting][event]:
                answers = {question: cost.cells[question, event] for question in QUESTIONS}
                seen += 1
                assert not row["lost"] or answers["commits"] != "no loss", (cost.elements, setting, event)
                damaged = answers["consistency"], answers["pool"]
                assert not row["corruption"] or damaged != ("no loss", "no loss"), (cost.elements, setting, event)
                assert row["import"] in ("", "plain") or answers["pool"] != "no loss", (cost.elements, setting, event)
    assert seen >= 500


def test_what_openzfs_did_with_states_of_devices_is_what_the_row_says_that_cites_it() -> None:
    """No loss and lost alike: these runs have no chance in them. Each state is cited, and was tried on three lines."""
    rows = [line.split("\t") for line in STATES_FILE.read_text().splitlines()]
    assert {release.rpartition(".")[0] for release, *_ in rows} == {"2.1", "2.3", "2.4"}
    tried: dict[str, list[list[str]]] = defaultdict(list)
    for release, layout, state, event, gone, how, acknowledged, left in rows:
        tried[f"{layout} {state} {gone}"].append([release, event, how, acknowledged, left])
    for cost, state in cited(STATES):
        for release, event, how, acknowledged, left in tried[state]:
            found = {"commits": acknowledged != left, "pool": how != "plain"}
            said = {question: cost.cells[question, event] == "lost" for question in found}
            assert said == found, (cost.elements, state, release, event)
    assert tried.keys() == {state for _, state in cited(STATES)}


def test_the_page_has_every_row_and_every_experiment_that_is_open() -> None:
    page = durability_page.markdown(TABLE)
    for row in TABLE.rows:
        assert all(TABLE.titles[each] in page for each in row.elements)
        assert row.why in page
        assert row.open in page
        assert all(source in page for source in row.sources)


def test_the_page_shows_the_mildest_events() -> None:
    (row,) = (each for each in TABLE.rows if each.elements == ("commit.disabled",))
    assert durability_page.cost(TABLE, row, "commits") == (
        "**lost**: a kernel crash or reset; **relies**: an orderly restart of the host"
    )
    assert durability_page.cost(TABLE, row, "pool") == "no loss"
