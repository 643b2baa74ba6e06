"""Each cell of the table of events against the truth, without guests; and the bar over the checked-in results."""

from typing import Any

import pytest

from tests.lab.power import cells, matrix
from tests.lab.power.events import _state
from tests.lab.power.guest import events
from tests.lab.power.matrix import Setting
from tests.lab.power.results import EVENTS, read


def row(event: str, said: str, loses: int = 0, how: str = "plain", **more: Any) -> dict[str, Any]:
    zaudit = {"version": "1", "standing": "lost", "findings": [], "events": {event: said} if said else {}}
    base = {"line": "2.3", "setting": "s", "acknowledged": 100, "lost": loses, "import": how, "corruption": []}
    return {**base, "event": event, "zaudit": zaudit, **more}


@pytest.mark.parametrize(
    ("rows", "drives", "outcome"),
    [
        ([row("power", "kept")], "plp", "right"),
        ([row("power", "kept", 1)], "plp", "wrong"),
        ([row("power", "kept", corruption=["torn"])], "plp", "wrong"),
        ([row("power", "kept", how="failed")], "plp", "wrong"),
        ([row("power", "kept", how="-F")], "plp", "wrong"),
        ([row("power+log", "kept", how="-m")], "plp log plp", "right"),
        ([row("power", "kept")], "lying", "wrong"),
        ([row("crash", "kept")], "lying", "right"),
        ([row("power", "lost: sync-disabled", 1)], "plp", "right"),
        ([row("power", "lost: sync-disabled"), row("power", "lost: sync-disabled", 1)], "plp", "right"),
        ([row("power", "lost: sync-disabled")], "plp", "wrong"),
        ([row("power", "word: drive 0")], "honest", "word"),
        ([row("power", "word: drive 0", 1)], "honest", "wrong"),
        ([row("power", "word: drive 0", 1)], "lying", "word"),
        ([row("power", "word: drive 0", 1)], "lying log lying", "wrong"),
        ([row("power", "word: drive 0, drive 1", 1)], "lying log lying", "word"),
        ([row("power", "word: drive 0")], "lying log lying", "wrong"),
        ([row("power+log", "word: drive 0", 1)], "lying log lying", "word"),
        ([row("power", "word: hypervisor", 1)], "lying log lying", "word"),
        ([row("drive", "word: layer", 1, how="failed")], "plp log plp", "word"),
        ([row("drive", "word: hypervisor", 1, how="failed")], "plp log plp", "wrong"),
        ([row("power", "word: layer", 1)], "plp log plp", "wrong"),
        ([row("power", "unknown: raid-cache", 1)], "plp", "unknown"),
        ([row("power", "", 1)], "plp", "not asked"),
    ],
)
def test_a_cell(rows: list[dict[str, Any]], drives: str, outcome: str) -> None:
    setting = Setting("s", drives, "fsync")
    table = cells.cells([], rows, [setting])
    assert [each.outcome for each in table] == [outcome]
    wrong = [text for text in cells.broken(table) if "s at" in text]
    assert bool(wrong) is (outcome == "wrong")
    assert ("WRONG" in "".join(cells.rows(table)[0])) is (outcome == "wrong")


def test_what_the_application_does_not_ask_for_is_not_gone() -> None:
    setting = Setting("s", "plp", "sqlite-normal", application=True)
    assert [each.outcome for each in cells.cells([], [row("power", "kept", 5)], [setting])] == ["right"]
    assert [each.outcome for each in cells.cells([], [row("power", "lost: x", 5)], [setting])] == ["right"]
    assert [each.outcome for each in cells.cells([], [row("power", "lost: x")], [setting])] == ["wrong"]
    assert [each.outcome for each in cells.cells([], [row("power", "kept", 5, corruption=["x"])], [setting])] == [
        "wrong"
    ]


def test_the_newest_answer_is_held_against_all_that_went() -> None:
    setting = Setting("s", "plp", "fsync")
    rows = [row("power", "kept", 5), row("power", "lost: sync-disabled")]
    table = cells.cells([{**row("", "", 5), "zaudit": None}], rows, [setting])
    assert [(each.said, each.gone, each.outcome) for each in table] == [("lost: sync-disabled", 2, "right")]


def test_four_of_five_must_be_decided() -> None:
    setting = Setting("s", "plp", "fsync")
    table = cells.cells([], [row("power", "unknown"), row("crash", "unknown")], [setting])
    assert cells.broken(table) == ["0 of 2 cells are decided"]


def test_cuts_with_a_lost_drive_are_of_that_event() -> None:
    lost = {**row("power", "", 7), "setting": "slog-lost"}
    del lost["event"]
    setting = next(each for each in matrix.everything() if each.name == "slog-lost")
    asked = [{**row("power", "kept"), "setting": "slog-lost"}]
    table = cells.cells([lost], [*asked, {**row("power+log", "", 0), "setting": "slog-lost"}], [setting])
    assert {each.event: each.gone for each in table} == {"power": 0, "power+log": 1}


@pytest.mark.parametrize(
    ("vdevs", "classes", "log", "drive", "events"),
    [
        ("plp", ("data",), None, 0, "process crash power power+drive drive"),
        ("plp log plp", ("data", "log"), 1, 0, "process crash power power+log power+drive drive"),
        ("mirror plp plp log mirror plp plp", ("data", "data", "log", "log"), 2, 0, " ".join(matrix.EVENTS)),
        ("plp special lying log plp", ("data", "special", "log"), 2, 0, " ".join(matrix.EVENTS)),
    ],
)  # fmt: skip
def test_what_goes_at_an_event(vdevs: str, classes: tuple[str, ...], log: int | None, drive: int, events: str) -> None:
    setting = Setting("s", vdevs, "fsync")
    assert (setting.classes, setting.away("power+log"), setting.away("drive")) == (classes, log, drive)
    assert " ".join(setting.events) == events


def test_the_media_of_an_event() -> None:
    settings = [Setting("a", "plp", "fsync"), Setting("b", "plp log plp", "fsync")]
    assert _state("power+log", settings) == ("dead", frozenset({2}), (1,))
    assert _state("power+drive", settings) == ("dead", frozenset({0, 1}), (0, 1))
    assert _state("crash", settings) == ("alive", frozenset(), (0, 1))


def test_the_worst_of_a_report_with_drives_by_number() -> None:
    word = {
        "outcome": "word",
        "word": [{"party": "drive", "names": ["sdb", "sda"]}],
        "rules": ["no-power-loss-protection"],
    }
    kept, lost, open = {"outcome": "kept"}, {"outcome": "lost", "rules": ["r"]}, {"outcome": "unknown", "rules": ["x"]}
    report = {
        "events": [
            {"datasets": ["p0"], "events": {"crash": kept, "power": kept, "drive": word}},
            {"datasets": ["p0/db"], "events": {"crash": lost, "power": word, "drive": open}},
        ]
    }
    said = events(report, {"LABSATA4": "sda", "LABSATA5": "sdb", "LABSATA0": "sdc"}, ["LABSATA4", "LABSATA5"])
    assert said == {"crash": "lost: r", "power": "word: drive 0, drive 1", "drive": "unknown: x"}


WRONG = [
    "2.3 mirror-resilvering at power+drive: kept, lost 1 of 1 damaged",
    "2.3 mirror-resilvering at drive: kept, lost 1,278 of 1,278, 1 of 1 without the pool",
]
"""What zaudit got wrong when it was asked: it took a leg that resilvers for a copy. Empty once it is asked anew and right."""


def test_the_bar_holds_for_the_results() -> None:
    """No KEPT that lost, no LOST that kept, no lying drive unnamed, four cells of five decided; but for what is known."""
    rows = read(EVENTS)
    assert rows
    assert cells.broken(cells.cells(read(), rows, matrix.everything())) == WRONG
