"""What cuts prove: kinds of cuts by counters, exact bounds, and the verdict on each model of a drive."""

from __future__ import annotations

import hashlib
import json
import os
import random
import tomllib
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from auditor import codec
from auditor.model.write_cache import bounds
from auditor.powercut import report, wire
from auditor.powercut.proof import (
    Campaign,
    Cut,
    Drive,
    Gap,
    Reach,
    Trial,
    campaign,
    classify,
    cuts_for,
    judge,
    parse_counters,
    together,
    window,
)
from auditor.powercut.sectors import Receipts, Remains, check, mark_of, slots_of, unit
from auditor.powercut.target import CONTROL, RAW, layout_of
from auditor.powercut.wire import COMMIT, Frame, Kind, Run, encoded
from tests.fake import CommandLine
from tests.lab.power.disks import BLOCK, Disk
from tests.powercut.test_wire import MANIFEST, RUN, commits
from tests.shared import briefly

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
        check(each, Receipts(newest), lambda slot, each=each: medium[each.offset(slot) :][: each.unit])  # type: ignore[misc]
        for each, newest in ((ACKNOWLEDGED, committed), (UNFLUSHED, written))
    ]
    return of(left, committed)


def of(left: list[Remains], committed: int) -> Trial:
    damage: dict[str, int] = {}
    for each in left[0].damage:
        damage[each.kind] = damage.get(each.kind, 0) + 1
    return Trial(1, POWER, committed, left[0].missing, damage, (), (left[1].checked, left[1].missing))


@pytest.mark.parametrize("rate", briefly([(1000,), (10,)], quick=1))
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


@pytest.mark.slow
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


class Logged(Run):
    """A run, and its log as it is on disk."""

    def __init__(self) -> None:
        super().__init__(RUN)
        self.log = bytearray(wire._head(wire.MAGIC, RUN))

    def add(self, frame: Frame) -> None:
        """One more frame."""
        super().add(frame)
        self.log += wire.record(frame)


def log(found: dict[str, Any] | None, drives: list[Drive], *, stop: bool = False, layer: str = "drive") -> Logged:
    run = Logged()
    run.add(Frame(Kind.HELLO, RUN, 1, 0, encoded({"boot": "b1", "machine": "m1"})))
    manifest = {**MANIFEST, "layer": layer, "drives": [codec.plain(each) for each in drives]}
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


def lossy(after: Drive | None = None, layer: str = "drive", before: Drive | None = None) -> Logged:
    """A cut that took two acknowledged commits, and four that were never flushed. Of one stream nothing was read."""
    before = before or drive(7, 3)
    streams = [
        {"stream": 0, "flushed": True, "checked": 20, "missing": 2, "newest": 11, "lost": 12, "damage": {"LOST": 2},
         "examples": ["LOST: x"]},
        {"stream": 1000, "flushed": False, "checked": 12, "missing": 4, "newest": 14, "lost": 9, "damage": {"LOST": 4}},
    ]  # fmt: skip
    now = codec.plain(after or drive(8, 4))
    return log({"streams": streams, "drives": [now], "gone": ""}, [before], layer=layer)


def test_a_trial_is_computed_from_the_log_alone() -> None:
    found = campaign(lossy())
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
    text = report.write("terminal", [found])
    assert text.splitlines()[1] == "LOST: Acknowledged writes are gone"
    assert text.splitlines()[2].startswith("Next: keep commits off")
    SCHEMA.validate(json.loads(report.write("json", [found])))
    SCHEMA.validate(json.loads(report.write("json", [])))
    assert "1 of 1 cut lost: 5.0% to 100.0% of such cuts lose (95 %, exact)." in text


def test_the_timeline_of_a_cut() -> None:
    """What the witness has, what the check found, and where only one of the two is there."""
    found = campaign(lossy())
    streams = (Reach(0, True, 13, 11, 2, 12), Reach(1, True, 13, None, 0, 0), Reach(1000, False, 12, 14, 4, 9))
    assert found.trials[0].streams == streams
    assert [each.issued for each in streams] == [13, 13, 14]
    (run,) = json.loads(report.write("json", [found]))["runs"]
    assert [(each["issued"], each["found"]) for each in run["trials"][0]["streams"]] == [(13, 11), (13, None), (14, 14)]
    rows = [each.split() for each in report.write("terminal", [found]).splitlines()]
    assert ["0", "≥", "13", "13", "11", "2,", "from", "12", "on"] in rows
    assert ["1", "≥", "13", "13", "not", "read", "not", "known"] in rows
    page = report.write("html", [found])
    drawn, table = page.index('<svg viewBox="0 0 960'), page.index(">Found</th>")
    assert page.index("Session 1: power (unsafe shutdowns 3 to 4), 2 LOST") < drawn < table
    assert 'aria-label="Commits of session 1; the table below has the numbers"' in page
    assert ("-2</text>" in page, "+2</text>" in page, "not read</text>" in page) == (True, True, True)


def test_a_record_without_streams_says_so() -> None:
    found = campaign(lossy())
    page = report.write("terminal", [found._replace(trials=(found.trials[0]._replace(streams=()),))])
    assert "How far each stream came is not on record." in page


@pytest.mark.parametrize("word", report.WORST)
def test_each_verdict_in_all_formats(word: str) -> None:
    """Line 2 is the verdict, line 3 a step; the JSON is of its schema."""
    reach = (Reach(0, True, 20, 19, 1, 20), Reach(1, True, 3, None, 0, 0), Reach(1000, False, 9, 12, 3, 7))
    trials = {
        "HELD": [trial()] * 10,
        "TOO FEW CUTS": [trial()],
        "NOT TESTED": [trial(control=0)],
        "NO CUT": [trial(kind) for kind in ("reset", "none", "unclear")],
    }.get(word) or [trial(), trial("drive", **{word: 3})]
    gaps = (Gap(7, False, reach), Gap(8, True, ()))
    found = Campaign("ab" * 16, "drive", "/dev/x", "m", (drive(7, 3),), tuple(trials), gaps)
    found = found._replace(trials=tuple(each._replace(streams=reach) for each in found.trials))
    (run,) = json.loads(report.write("json", [found]))["runs"]
    SCHEMA.validate({"schema": report.SCHEMA, "runs": [run]})
    assert run["verdict"]["word"] == word
    lines = report.write("terminal", [found], width=400).splitlines()
    assert lines[1].startswith(f"{word}: ")
    assert lines[2].startswith("Next: ")
    assert run["bound"] in " ".join(lines)
    page = report.write("html", [found])
    assert f'<div class="word">{word}: ' in page
    for each in (7, 8):
        assert f"Session {each}: " in page
    for required in ("run", "trials", "gaps", "verdict", "means", "bound"):
        assert not SCHEMA.is_valid({"schema": report.SCHEMA, "runs": [{k: v for k, v in run.items() if k != required}]})


def test_the_worst_run_is_line_2() -> None:
    held = Campaign("ab" * 16, "drive", "/dev/x", "m", (), (trial(),) * 10, ())
    runs = [
        held,
        held._replace(trials=(trial(STALE=1),)),
        held._replace(trials=(trial(LOST=1),)),
        held._replace(trials=()),
    ]
    lines = report.write("terminal", runs).splitlines()
    assert lines[:2] == ["zaudit powercut · 4 runs", "LOST: Acknowledged writes are gone (1 of 4 runs)"]
    assert report.write("terminal", runs[:1]).splitlines()[1].startswith("HELD: ")
    assert report.write("terminal", []).splitlines()[1] == "NO RUN"


def test_a_long_run_is_short_on_a_terminal_and_whole_on_a_page() -> None:
    """Of fifty cuts a terminal has those that lost, and the last."""
    trials = tuple(trial(number=number, LOST=int(number == 9)) for number in range(1, 51))
    found = Campaign("ab" * 16, "drive", "/dev/x", "m", (), trials, ())
    text, page = report.write("terminal", [found]), report.write("html", [found])
    assert [number for number in range(1, 51) if f"Session {number}: " in text] == [9, 50]
    assert "and 48 more: zaudit powercut report --format html" in text
    assert [number for number in range(1, 51) if f"Session {number}: " in page] == list(range(1, 51))


# -- entries for others ---------------------------------------------------------------------------------------------


def stored(folder: Path, run: Logged) -> Path:
    """A store with the log of a run."""
    folder.mkdir(mode=0o700)
    path = folder / f"{run.run.hex()}.log"
    path.write_bytes(run.log)
    path.chmod(0o600)
    return folder


def test_an_entry_is_computed_again_from_the_log(tmp_path: Path, zaudit: CommandLine) -> None:
    run = lossy()
    store = stored(tmp_path / "store", run)
    first = zaudit("powercut", "report", str(store), "--format", "toml")
    assert first.code == 14
    (entry,) = tomllib.loads(first.out)["cuts"]
    data = bytes(run.log)
    assert entry == {
        "model": "M",
        "firmware": "F",
        "verdict": "LOST",
        "informative_cuts": 1,
        "lost": 1,
        "run": RUN.hex(),
        "log": f"sha256:{hashlib.sha256(data).hexdigest()}",
        "log_bytes": len(data),
    }
    assert not [each for each in ("IDENTITY", "nvme0n1", "tank", "m1", "b1") if f'"{each}' in first.out]
    # whoever has a later log takes as much of it as the entry names; the order of stores does not matter
    (path,) = store.glob("*.log")
    path.write_bytes(data + wire.record(Frame(Kind.HELLO, RUN, 3, 0, encoded({"boot": "b3", "machine": "m1"}))))
    later = zaudit("powercut", "report", str(store), "--format", "toml")
    assert later.out != first.out
    part = stored(tmp_path / "part", run)
    assert zaudit("powercut", "report", str(part), "--format", "toml").out == first.out
    both = [
        zaudit("powercut", "report", *map(str, each), "--format", "toml").out for each in ((store, part), (part, store))
    ]
    assert both == [later.out, later.out]
    path.write_bytes(data[:-3])
    assert "cuts" not in tomllib.loads(zaudit("powercut", "report", str(store), "--format", "toml").out), (
        "the check is not whole"
    )


@pytest.mark.parametrize(
    ("after", "layer"),
    [(drive(8, 4, "other"), "drive"), (drive(8, 4)._replace(firmware="F2"), "drive"), (drive(8, 4), "pool")],
)
def test_no_entry_of_what_may_be_another_drive(after: Drive, layer: str, tmp_path: Path, zaudit: CommandLine) -> None:
    store = stored(tmp_path / "store", lossy(after, layer))
    assert "cuts" not in tomllib.loads(zaudit("powercut", "report", str(store), "--format", "toml").out)


def test_an_entry_needs_the_log(zaudit: CommandLine) -> None:
    done = zaudit("powercut", "report", "--format", "toml")
    assert (done.code, "needs a STORE" in done.err) == (2, True)


def test_an_entry_is_toml_whatever_a_drive_calls_itself(tmp_path: Path, zaudit: CommandLine) -> None:
    name = 'a"b\\c\x7f\x1b[31m\nrun = "x" \U0001f4be é'
    odd = drive(7, 3)._replace(model=name)
    store = stored(tmp_path / "store", lossy(odd._replace(cycles=8, unsafe=4), before=odd))
    (entry,) = tomllib.loads(zaudit("powercut", "report", str(store), "--format", "toml").out)["cuts"]
    assert (entry["run"], entry["model"].startswith('a"b')) == (RUN.hex(), True)


def test_a_store_of_a_later_version_is_left_alone(tmp_path: Path, zaudit: CommandLine) -> None:
    store = stored(tmp_path / "store", lossy())
    (path,) = store.glob("*.log")
    data = path.read_bytes() + wire.record(Frame(Kind.HELLO, RUN, 3, 0)._replace(kind=99))  # type: ignore[arg-type]
    path.write_bytes(data)
    done = zaudit("powercut", "report", str(store))
    assert (done.code, "a later version of zaudit wrote it" in done.err, path.read_bytes()) == (2, True, data)


def test_a_host_that_never_comes_back(tmp_path: Path, zaudit: CommandLine) -> None:
    """Its session is named with what was acknowledged, and nothing is said of its drive."""
    store = stored(tmp_path / "store", log(None, [drive(7, 3)]))
    done = zaudit("powercut", "report", str(store))
    assert (done.code, done.out.splitlines()[1].partition(":")[0]) == (10, "NO CUT")
    assert "Next: zaudit powercut check on the host, once it is back" in done.out
    assert "Session 2: not checked yet: it still writes, or its host is not back" in done.out


def test_a_session_that_was_never_checked_is_a_gap() -> None:
    found = campaign(log(None, [drive(7, 3)]))
    assert (found.trials, [(each.session, each.last) for each in found.gaps]) == ((), [(1, False), (2, True)])
    assert found.gaps[0].streams == (Reach(0, True, 13, None, 0, 0), Reach(1, True, 13, None, 0, 0),
                                     Reach(1000, False, 12, None, 0, 0))  # fmt: skip
    assert "Session 1: never checked" in report.write("terminal", [found])
    assert "<svg" not in report.write("html", [found])
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
    text = report.write("terminal", [campaign(log(found, [drive(7, 3)]))])
    assert "\x1b" not in text
    SCHEMA.validate(json.loads(report.write("json", [campaign(log(found, [drive(7, 3)]))])))


def test_drives_of_a_model_are_counted_and_never_summed() -> None:
    runs = []
    for number, identity in enumerate("abc"):
        each = campaign(log({"streams": [{"stream": 1000, "flushed": False, "checked": 9, "missing": 3}],
                             "drives": [codec.plain(drive(8, 4, identity))]}, [drive(7, 3, identity)]))  # fmt: skip
        runs.append(each._replace(run=f"{number}" * 32))
    assert "3 drives, 1 + 1 + 1 informative cuts, which are not to be summed" in report.write("terminal", runs)
