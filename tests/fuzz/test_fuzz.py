"""The fuzzer itself, and every case that it ever kept."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from auditor.facts import HOST
from tests.fuzz import found, loss, readers
from tests.fuzz.__main__ import everything, hunt
from tests.fuzz.found import Kept
from tests.fuzz.guided import Drawn
from tests.fuzz.loss import Loss
from tests.fuzz.names import Names
from tests.fuzz.target import Case, Flaw, Target, Texts, smallest, tried

EVERYTHING = everything()
TARGETS = {each.name: each for each in EVERYTHING}
KEPT = [
    pytest.param(kept, id=f"{kept.target}-{number}", marks=pytest.mark.slow if "hang" in kept.sign else ())
    for number, kept in enumerate(found.all_kept())
]


@pytest.mark.parametrize("kept", KEPT)
def test_what_was_found_stays_mended(kept: Kept) -> None:
    outcome = tried(TARGETS[kept.target], kept.case)
    assert not outcome.found, outcome.sign


@pytest.mark.slow
@pytest.mark.parametrize("target", EVERYTHING, ids=lambda each: each.name)
def test_a_few_fresh_cases(target: Target) -> None:
    chance = Random(1)
    outcomes = [tried(target, target.make(chance)) for _ in range(60 if isinstance(target, Loss | Names) else 6)]
    assert {each.sign for each in outcomes if each.found} == set()


def test_the_same_seed_makes_the_same_cases() -> None:
    for target in TARGETS.values():
        one, other = ([target.make(chance) for _ in range(3)] for chance in (Random(7), Random(7)))
        assert one == other


@pytest.mark.slow
def test_every_seed_of_a_reader_is_judged_as_its_fixture_says() -> None:
    for target in readers.targets():
        outcomes = [tried(target, seed) for seed in target.seeds]
        assert {each.kind for each in outcomes} <= {"read", "refused"}, target.name
        assert "read" in {each.kind for each in outcomes}, f"{target.name} reads none of its seeds"


# -- what the oracles see -------------------------------------------------------------------------------------------------


def of(read: Any) -> Texts:
    return Texts("x", lambda: [{"parts": {"text": "a\nb\nc\nd"}}], read)


def raising(error: BaseException) -> Any:
    def read(case: Case) -> None:
        if "c" in case["parts"].get("text", ""):
            raise error

    return read


def test_only_what_is_declared_is_a_refusal() -> None:
    case: Case = {"parts": {"text": "c"}}
    assert tried(of(raising(ValueError("no"))), case).kind == "refused"
    assert tried(of(raising(KeyError("x"))), case).kind == "crash"
    assert tried(of(raising(RecursionError())), case).sign == "x: RecursionError in test_fuzz.py:read"
    assert tried(of(raising(Flaw("undeclared: host.x"))), case).kind == "undeclared"
    assert tried(of(raising(KeyError("x"))), {"parts": {"text": "b"}}).kind == "read"


def test_what_never_ends_is_ended(monkeypatch: Any) -> None:
    monkeypatch.setattr("tests.fuzz.target.HANG_S", 0.05)

    def read(_: Case) -> None:
        while True:
            pass

    assert tried(of(read), {"parts": {}}).kind == "hang"


def test_what_is_found_is_made_small_and_kept(tmp_path: Path, monkeypatch: Any) -> None:
    target = of(raising(KeyError("x")))
    case = smallest(target, {"parts": {"text": "a\nb\nc\nd", "other": "y"}}, tried(target, target.seeds[0]).sign)
    assert case == {"parts": {"text": "c"}}
    kept, file = Kept("x", "sign", case), tmp_path / "found.jsonl"
    for _ in range(2):
        found.keep(kept, file)
    assert found.all_kept(file) == [kept]


def test_a_hunt_counts_and_keeps(tmp_path: Path) -> None:
    counts, kept = hunt([of(raising(KeyError("x")))], 1, 0.2, tmp_path / "found.jsonl")
    assert counts["x", "crash"] > 0
    assert [each.sign for each in kept] == ["x: KeyError in test_fuzz.py:read"]
    assert len(found.all_kept(tmp_path / "found.jsonl")) == 1


def test_a_loss_that_improved_a_verdict_is_seen(monkeypatch: Any) -> None:
    asked = ["zpool", "get", "-Hp", "-o", "name,property,value,source", "all", "tank"]
    target = Loss()
    case: Case = {"host": "2.3-sync-disabled-local", "damage": [[asked, [["says", 0, "", ""]]]]}
    assert tried(target, case).kind == "read"
    monkeypatch.setattr("tests.law.improved", lambda *_: [(("r", HOST), "fail -> pass")])
    assert (
        tried(target, case).sign
        == "loss: improved: r fail -> pass, zpool get -Hp -o name,property,value,source all tank"
    )


@pytest.mark.parametrize("steps", [[["says", 1, "", "permission denied\n"]], [["late", 0]]])
def test_what_has_one_witness_is_missed_when_it_is_refused(monkeypatch: Any, steps: list[Any]) -> None:
    """A line that is lost from a list of units is missed by nobody; the whole list is."""
    host = "composed-rocky-9"
    asked = next(list(each) for each in loss.recorded(host).commands if each[:2] == ("systemctl", "list-units"))
    monkeypatch.setattr("tests.law.improved", lambda *_: [(("r", HOST), "fail -> pass")])
    assert tried(Loss(), {"host": host, "damage": [[asked, [["lines", "", 0, 1]]]]}).kind == "read"
    assert tried(Loss(), {"host": host, "damage": [[asked, steps]]}).kind == "improved"


def test_of_two_losses_the_one_that_matters_is_kept(monkeypatch: Any) -> None:
    one, other = [["zpool", "list"], [["late", 0]]], [["zfs", "list"], [["exit", 1], ["bytes", "", 0]]]
    small = {"host": "h", "damage": [[["zfs", "list"], [["bytes", "", 0]]]]}
    monkeypatch.setattr(Loss, "check", lambda _, case: raise_for(["bytes", "", 0] in case["damage"][-1][1]))
    assert smallest(Loss(2), {"host": "h", "damage": [one, other]}, "loss2: improved: r") == small


def raise_for(wrong: bool) -> str:
    if wrong:
        raise Flaw("improved: r")
    return "read"


def test_chance_is_drawn_from_bytes_as_long_as_there_are_any() -> None:
    one, other = Drawn(bytes(range(64))), Drawn(bytes(range(64)))
    assert [one.randrange(1000) for _ in range(5)] == [other.randrange(1000) for _ in range(5)]
    assert [one.random() for _ in range(3)] == [other.random() for _ in range(3)]
    assert Drawn(b"").choice("abc") in "abc"
    assert len({Drawn(bytes([each] * 8)).getrandbits(64) for each in range(256)}) == 256
