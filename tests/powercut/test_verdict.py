"""What cuts prove: kinds of cuts by counters, exact bounds, and the verdict on each model of a drive."""

from __future__ import annotations

import json
import os
import random
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from auditor import codec
from auditor.model.power_cuts import bounds
from auditor.powercut import report
from auditor.powercut.book import Run
from auditor.powercut.record import Acknowledged, Left, check, mark_of, slots_of, unit
from auditor.powercut.target import CONTROL, RAW, layout_of
from auditor.powercut.verdict import (
    Cut,
    Drive,
    Trial,
    campaign,
    classify,
    cuts_for,
    judge,
    parse_counters,
    together,
    window,
)
from auditor.powercut.wire import COMMIT, Frame, Kind, encoded
from tests.lab.power.disks import BLOCK, Disk
from tests.powercut.test_wire import MANIFEST, RUN, commits

SCHEMA = Draft202012Validator(
    json.loads((Path(report.__file__).parents[1] / "report" / "powercut_schema.json").read_text())
)
POWER = Cut("power", "unsafe shutdowns 3 to 4")


def trial(kind: str = "power", control: int = 5, number: int = 1, **damage: int) -> Trial:
    return Trial(number, Cut(kind, "why"), 100, sum(damage.values()), damage, (), (50, control))  # type: ignore[arg-type]


# -- bounds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "percent"), [(5, 45.1), (10, 25.9), (28, 10.1), (30, 9.5), (59, 4.95), (149, 1.99), (299, 1.0), (430, 0.69)]
)
def test_no_loss_in_so_many_cuts(n: int, percent: float) -> None:
    assert bounds(0, n)[1] * 100 == pytest.approx(percent, abs=0.06)


def tail(n: int, least: int, share: Fraction) -> Fraction:
    return sum((comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(least, n + 1)), Fraction(0))


@given(st.integers(2, 60), st.data())
def test_bounds_are_those_of_clopper_and_pearson(n: int, data: st.DataObject) -> None:
    """By exact arithmetic: at the lower bound so many or more have 2.5 %, at the upper one so many or fewer."""
    lost = data.draw(st.integers(1, n - 1))
    low, high = map(Fraction, bounds(lost, n))
    assert float(tail(n, lost, low)) == pytest.approx(0.025, rel=1e-6)
    assert float(1 - tail(n, lost + 1, high)) == pytest.approx(0.025, rel=1e-6)


def test_bounds_at_the_ends() -> None:
    assert bounds(0, 0) == (0.0, 1.0)
    assert bounds(4, 4) == pytest.approx((0.05**0.25, 1.0))


@pytest.mark.parametrize(("share", "cuts"), [(0.1, 29), (0.05, 59), (0.01, 299)])
def test_cuts_that_a_claim_needs(share: float, cuts: int) -> None:
    assert cuts_for(share) == cuts
    assert bounds(0, cuts)[1] < share <= bounds(0, cuts - 1)[1]


@pytest.mark.parametrize(
    ("half_life", "percent"),
    [(0.001, (0.0, 0.1, 71)), (0.01, (0.1, 71, 100)), (0.05, (31, 100, 100)), (0.2, (96, 100, 100))],
)
def test_the_window_of_a_drive_that_writes_back(half_life: float, percent: tuple[float, ...]) -> None:
    found = [window(rate, half_life) * 100 for rate in (10, 100, 1000)]
    assert found == pytest.approx(percent, abs=0.5)
    assert window(0, 1) == 0


# -- was it a cut -------------------------------------------------------------------------------------------------


def drive(cycles: int | None, unsafe: int | None = None, identity: str = "a") -> Drive:
    return Drive("nvme0n1", "M", "F", identity, cycles, unsafe)


@pytest.mark.parametrize(
    ("before", "after", "options", "kind"),
    [
        (drive(7, 3), drive(8, 4), {}, "power"),
        (drive(7), drive(8), {}, "power"),
        (drive(7, 3), drive(7, 3), {}, "reset"),
        (drive(7, 3), drive(7, 4), {}, "reset"),
        (drive(7, 3), drive(8, 3), {}, "none"),
        (drive(7, 3), drive(8, 4), {"stopped": True}, "none"),
        (drive(7, 3), drive(8, 4), {"same_boot": True}, "drive"),
        (drive(7, 3), drive(7, 3), {"same_boot": True}, "none"),
        (drive(None), drive(None), {}, "unclear"),
        (drive(None), drive(None), {"same_boot": True}, "none"),
        (drive(7), None, {}, "unclear"),
        (drive(7), drive(8, identity="b"), {}, "unclear"),
        (drive(7, 3), drive(8, 4), {"orderly": (1, 1)}, "reset"),
        (drive(7, 3), drive(9, 4), {"orderly": (1, 1)}, "none"),
        (drive(7, 3), drive(9, 5), {"orderly": (1, 1)}, "power"),
        (drive(7, 3), drive(6, 3), {}, "reset"),
    ],
)
def test_a_cut_is_told_by_the_counters_of_the_drive(
    before: Drive, after: Any, options: dict[str, Any], kind: str
) -> None:
    assert classify(before, after, **{"same_boot": False, "stopped": False, **options}).kind == kind


def test_a_pool_was_cut_when_all_of_it_was() -> None:
    assert together([POWER, POWER]).kind == "power"
    assert together([POWER, Cut("reset", "it kept its power")]).kind == "unclear"
    assert together([Cut("reset", "r"), Cut("reset", "r")]).kind == "reset"
    assert together([]).kind == "unclear"


def test_counters_of_smartctl() -> None:
    nvme = {"power_cycle_count": 12, "model_name": "M", "serial_number": "S", "firmware_version": "F",
            "nvme_smart_health_information_log": {"unsafe_shutdowns": 3}}  # fmt: skip
    assert parse_counters(json.dumps(nvme)) == {"cycles": 12, "unsafe": 3, "model": "M", "serial": "S", "firmware": "F"}
    table = [{"id": 12, "raw": {"value": 40}}, {"id": 192, "raw": {"value": 9}}, {"id": 174, "raw": {"value": 8}}]
    assert parse_counters(json.dumps({"ata_smart_attributes": {"table": table}})) == {"cycles": 40, "unsafe": 8}
    assert parse_counters(json.dumps({"ata_smart_attributes": {"table": table[:2]}})) == {"cycles": 40, "unsafe": 9}


@pytest.mark.parametrize(
    "text",
    ["", "null", "[1]", "{", '{"power_cycle_count": "7"}', '{"power_cycle_count": true}', '{"power_cycle_count": -1}',
     '{"ata_smart_attributes": 3}', '{"ata_smart_attributes": {"table": [3, {"id": 12}, {"id": [], "raw": 7}]}}',
     '{"nvme_smart_health_information_log": []}', "[" * 100_000],
)  # fmt: skip
def test_a_drive_may_answer_anything(text: str) -> None:
    assert parse_counters(text) == {}


# -- the verdict --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trials", "word", "n", "lost"),
    [
        ([], "NO CUT", 0, 0),
        ([trial("reset")] * 20, "NO CUT", 0, 0),
        ([trial("unclear")] * 20, "NO CUT", 0, 0),
        ([trial(control=0)] * 20, "NOT TESTED", 0, 0),
        ([trial()] * 9, "TOO FEW CUTS", 9, 0),
        ([trial()] * 9 + [trial(control=0)] * 50, "TOO FEW CUTS", 9, 0),
        ([trial()] * 10, "HELD", 10, 0),
        ([trial("drive")] * 10, "HELD", 10, 0),
        ([trial()] * 99 + [trial(LOST=1)], "LOST", 100, 1),
        ([trial()] * 99 + [trial(control=0, STALE=1)], "STALE", 100, 1),
        ([trial(LOST=1, REORDERED=1, TORN=4)], "REORDERED", 1, 1),
        ([trial(TORN=1)] * 3, "TORN", 3, 3),
        ([trial()] * 10 + [trial("reset", LOST=1)], "LOST", 10, 0),
        ([trial(CORRUPT=1), trial("unclear", GONE=1)], "GONE", 1, 1),
    ],
)
def test_verdicts(trials: list[Trial], word: str, n: int, lost: int) -> None:
    found = judge(trials)
    assert (found.word, found.n, found.lost) == (word, n, lost)
    assert (found.low, found.high) == bounds(lost, n)


def test_damage_is_never_outweighed() -> None:
    """Whatever else was seen: no order of trials, and no number of good ones, makes a verdict better."""
    for bad in ("TORN", "STALE", "LOST", "REORDERED", "CORRUPT", "GONE"):
        for kind in ("power", "drive", "reset", "none", "unclear"):
            for many in (0, 9, 200):
                good = [trial()] * many
                assert judge([*good, trial(kind, **{bad: 1}), *good]).word == bad


# -- models of drives ---------------------------------------------------------------------------------------------

ACKNOWLEDGED = layout_of(RAW, mark_of(RUN, 1), 0, atomic=8)._replace(slots=64)
UNFLUSHED = layout_of(CONTROL, mark_of(RUN, 1), 1000, base=64 * BLOCK, atomic=8)._replace(slots=128)
STEP_S = 0.001
BURST, PAUSE = 100, 60  # steps


def cut(folder: Path, model: str, rate: int, seed: int) -> Trial:
    """A session on a drive and the cut at a random moment, in the time of the model; all that was acknowledged has arrived."""
    moments = random.Random(f"{model}/{rate}/{seed}")
    path = folder / "drive"
    path.write_bytes(
        b"".join(unit(each, slot, 0, 0) for each in (ACKNOWLEDGED, UNFLUSHED) for slot in range(each.slots))
    )
    disk = Disk(path, model, f"{seed}")
    committed = written = 0
    due = 0.0
    for step in range(moments.randrange(1000, 2000) if rate < 100 else moments.randrange(200, 600)):
        if step % (BURST + PAUSE) < BURST:
            due += rate * STEP_S * (BURST + PAUSE) / BURST
            while due >= 1:
                due -= 1
                committed += 1
                (slot,) = slots_of(ACKNOWLEDGED, committed)
                disk.write(ACKNOWLEDGED.offset(slot), unit(ACKNOWLEDGED, slot, committed, committed - 1))
                assert disk.flush() == 0
        written += 1
        (slot,) = slots_of(UNFLUSHED, written)
        disk.write(UNFLUSHED.offset(slot), unit(UNFLUSHED, slot, written, 0))
        disk.write_back(STEP_S)
    os.close(disk.fd)
    medium = path.read_bytes()
    left = [
        check(each, Acknowledged(newest), lambda slot, each=each: medium[each.offset(slot) :][: each.unit])  # type: ignore[misc]
        for each, newest in ((ACKNOWLEDGED, committed), (UNFLUSHED, written))
    ]
    return of(left, committed)


def of(left: list[Left], committed: int) -> Trial:
    damage: dict[str, int] = {}
    for each in left[0].damage:
        damage[each.kind] = damage.get(each.kind, 0) + 1
    return Trial(1, POWER, committed, left[0].missing, damage, (), (left[1].checked, left[1].missing))


@pytest.mark.parametrize("rate", [10, 1000])
@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("honest", {"HELD"}),
        ("plp", {"NOT TESTED"}),
        ("lying", {"LOST", "STALE", "REORDERED"}),
        ("half", {"LOST", "STALE", "REORDERED"}),
        ("first", {"LOST", "STALE", "REORDERED"}),
    ],
)
def test_the_verdict_on_each_model_of_a_drive(model: str, words: set[str], rate: int, tmp_path: Path) -> None:
    trials = [cut(tmp_path, model, rate, seed) for seed in range(12)]
    found = judge(trials)
    assert found.word in words, f"{found} {[each.damage for each in trials]}"
    if model == "half":
        assert found.word == "REORDERED", "what was written after a flush is there, and what it flushed is not"


def test_a_flush_that_comes_late_shows_by_the_rate_of_commits(tmp_path: Path) -> None:
    """10 ms late: at ten commits a second a cut falls into it once in ten, at a thousand always. Twelve cuts may hold."""
    slow = judge([cut(tmp_path, "late", 10, seed) for seed in range(40)])
    fast = judge([cut(tmp_path, "late", 1000, seed) for seed in range(12)])
    assert slow.low < 0.1 * 0.63 + 0.05 < slow.high
    assert slow.lost < 20
    assert (fast.word in ("LOST", "STALE", "REORDERED"), fast.lost >= 6) == (True, True)


def test_too_few_cuts_of_an_honest_drive(tmp_path: Path) -> None:
    assert judge([cut(tmp_path, "honest", 1000, seed) for seed in range(4)]).word == "TOO FEW CUTS"


# -- from the log -------------------------------------------------------------------------------------------------


def log(found: dict[str, Any] | None, drives: list[Drive], *, stop: bool = False) -> Run:
    run = Run(RUN)
    run.add(Frame(Kind.HELLO, RUN, 1, 0, encoded({"boot": "b1", "machine": "m1"})))
    manifest = {**MANIFEST, "layer": "drive", "drives": [codec.plain(each) for each in drives]}
    for number, (kind, body) in enumerate(commits()[:-1]):
        run.add(Frame(kind, RUN, 1, number + 1, encoded(manifest) if kind is Kind.OPEN else body))
    if stop:
        run.add(Frame(Kind.STOP, RUN, 1, 99))
    if found is not None:
        run.add(Frame(Kind.HELLO, RUN, 2, 0, encoded({"boot": "b2", "machine": "m1", "checks": True})))
        run.add(Frame(Kind.FOUND, RUN, 2, 1, encoded({"session": 1, "boot": "b2", **found})))
    else:
        run.add(Frame(Kind.HELLO, RUN, 2, 0, encoded({"boot": "b2", "machine": "m1"})))
        run.add(
            Frame(
                Kind.OPEN,
                RUN,
                2,
                1,
                encoded({**MANIFEST, "streams": [codec.plain(layout_of(RAW, mark_of(RUN, 2), 0))]}),
            )
        )
        run.add(Frame(Kind.ACK, RUN, 2, 2, COMMIT.pack(0, 1)))
    return run


def test_a_trial_is_computed_from_the_log_alone() -> None:
    streams = [
        {"stream": 0, "flushed": True, "checked": 20, "missing": 2, "damage": {"LOST": 2}, "examples": ["LOST: x"]},
        {"stream": 1000, "flushed": False, "checked": 12, "missing": 4, "damage": {"LOST": 4}, "examples": []},
    ]
    after = [codec.plain(drive(8, 4))]
    found = campaign(log({"streams": streams, "drives": after, "gone": ""}, [drive(7, 3)]))
    (one,) = found.trials
    assert (one.cut.kind, one.acknowledged, one.missing, one.damage, one.control) == (
        "power",
        25,
        2,
        {"LOST": 2},
        (12, 4),
    )
    assert (one.informative, one.worst, found.gaps) == (True, "LOST", ())
    assert codec.load(type(found), json.loads(json.dumps(codec.plain(found)))) == found
    assert report.exit_code([found]) == 14
    text = report.render([found])
    assert text.startswith("LOST  tank/db")
    SCHEMA.validate(json.loads(report.render_json([found])))
    SCHEMA.validate(json.loads(report.render_json([])))
    assert "1 of 1 cut lost: 5.0% to 100.0% of such cuts lose (95 %, exact)." in text


def test_a_session_that_was_never_checked_is_a_gap() -> None:
    found = campaign(log(None, [drive(7, 3)]))
    assert (found.trials, found.gaps) == ((), (1,))
    assert "never checked: session 1" in report.render([found])
    assert report.exit_code([found]) == 10


def test_what_ended_in_order_is_no_cut() -> None:
    found = campaign(log({"drives": [codec.plain(drive(8, 4))]}, [drive(7, 3)], stop=True))
    assert judge(found.trials).word == "NO CUT"


@pytest.mark.parametrize(
    "found",
    [
        {"streams": 3, "drives": 4, "gone": 5},
        {
            "streams": [1, {}, {"damage": 7, "missing": "x", "examples": 3, "flushed": 9}],
            "drives": [1, {}, {"name": 7}],
        },
        {
            "streams": [{"damage": {"LOST": "many", "NEW": 3}, "missing": -1}],
            "drives": [{"name": "nvme0n1", "cycles": 1e300}],
        },
        {"streams": [{"damage": {"LOST": 1 << 60}}], "boot": 7},
    ],
)
def test_a_check_may_say_anything(found: dict[str, Any]) -> None:
    """A host that has the key can spoil its own run, and nothing else."""
    text = report.render([campaign(log(found, [drive(7, 3)]))])
    assert "\x1b" not in text
    SCHEMA.validate(json.loads(report.render_json([campaign(log(found, [drive(7, 3)]))])))


def test_drives_of_a_model_are_counted_and_never_summed() -> None:
    runs = []
    for number, identity in enumerate("abc"):
        each = campaign(log({"streams": [{"stream": 1000, "flushed": False, "checked": 9, "missing": 3}],
                             "drives": [codec.plain(drive(8, 4, identity))]}, [drive(7, 3, identity)]))  # fmt: skip
        runs.append(each._replace(run=f"{number}" * 32))
    assert "3 drives, 1 + 1 + 1 informative cuts, which are not to be summed" in report.render(runs)
