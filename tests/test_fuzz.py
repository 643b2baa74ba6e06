"""The fuzzer itself, and every case that it ever kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from auditor.facts import HOST, Reason, Subject
from auditor.judge.verdict import Verdict
from tests.fuzz import found, readers
from tests.fuzz.__main__ import hunt
from tests.fuzz.found import Kept
from tests.fuzz.guided import Drawn
from tests.fuzz.loss import Loss, improved
from tests.fuzz.target import Case, Flaw, Target, Texts, smallest, tried

EVERYTHING: list[Target] = [*readers.targets(), Loss()]
TARGETS = {each.name: each for each in EVERYTHING}
KEPT = [pytest.param(kept, id=path.stem) for path, kept in found.all_kept()]


@pytest.mark.parametrize("kept", KEPT)
def test_what_was_found_stays_mended(kept: Kept) -> None:
    outcome = tried(TARGETS[kept.target], kept.case)
    assert not outcome.found, outcome.sign


@pytest.mark.slow
@pytest.mark.parametrize("target", EVERYTHING, ids=lambda each: each.name)
def test_a_few_fresh_cases(target: Target) -> None:
    chance = Random(1)
    outcomes = [tried(target, target.make(chance)) for _ in range(60 if isinstance(target, Loss) else 6)]
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
    path = found.keep(Kept("x", "sign", case), tmp_path)
    assert list(found.all_kept(tmp_path)) == [(path, Kept("x", "sign", case))]


def test_a_hunt_counts_and_keeps(tmp_path: Path) -> None:
    counts, kept = hunt([of(raising(KeyError("x")))], 1, 0.2, tmp_path)
    assert counts["x", "crash"] > 0
    assert [each.sign for each in kept] == ["x: KeyError in test_fuzz.py:read"]
    assert len(list(found.all_kept(tmp_path))) == 1


class Said:
    """A verdict, as far as the comparison asks."""

    def __init__(self, id: str, outcome: str, why: str = "") -> None:
        self.rule, self.outcome, self.reasons = type("Rule", (), {"id": id}), outcome, (Reason(why),)


def changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """of verdicts by rule, about a leaf, or about the host where the rule's name is in capital letters"""

    def keyed(said: dict[str, Any]) -> Any:
        subjects = {id: HOST if id.isupper() else Subject("leaf", "nvme0", "tank") for id in said}
        return {(id, subjects[id]): Said(id, *each.split(": ")) for id, each in said.items()}

    return (change for _, change in improved(keyed(before), keyed(after)))


def test_what_counts_as_better() -> None:
    assert list(changes({"r": "fail"}, {"r": "pass"})) == ["fail -> pass"]
    assert list(changes({"r": "unknown"}, {"r": "pass"})) == ["unknown -> pass"]
    assert list(changes({"r": "fail"}, {"r": "not applicable"})) == ["fail -> not applicable"]
    assert list(changes({"r": "fail"}, {})) == ["fail -> vanished"]
    assert list(changes({"r": "unknown"}, {"X": "unknown: of something else"})) == ["unknown -> vanished"]


def test_what_does_not() -> None:
    for before, after in (("fail", "unknown"), ("pass", "fail"), ("pass", "unknown"), ("not applicable", "pass")):
        assert not list(changes({"r": before}, {"r": after}))
    assert not list(changes({"r": "pass"}, {}))
    assert not list(changes({"r": "fail"}, {"X": "unknown: no leaf nvme0 any more"})), "the lost subject is named"


def test_a_loss_that_improved_a_verdict_is_seen(monkeypatch: Any) -> None:
    asked = ["zpool", "get", "-Hp", "-o", "name,property,value,source", "all", "tank"]
    target, case = Loss(), {"host": "2.3-sync-disabled-local", "asked": asked, "damage": [["says", 0, "", ""]]}
    assert tried(target, case).kind == "read"
    verdicts: Any = {("r", HOST): Verdict(TARGETS and None, HOST, "pass", "low")}  # type: ignore[arg-type]
    monkeypatch.setattr(
        "tests.fuzz.loss._before", lambda _: {key: each._replace(outcome="fail") for key, each in verdicts.items()}
    )
    monkeypatch.setattr("tests.fuzz.loss.judged", lambda _: verdicts)
    assert (
        tried(target, case).sign
        == "loss: improved: r fail -> pass, zpool get -Hp -o name,property,value,source all tank"
    )


def test_chance_is_drawn_from_bytes_as_long_as_there_are_any() -> None:
    one, other = Drawn(bytes(range(64))), Drawn(bytes(range(64)))
    assert [one.randrange(1000) for _ in range(5)] == [other.randrange(1000) for _ in range(5)]
    assert [one.random() for _ in range(3)] == [other.random() for _ in range(3)]
    assert Drawn(b"").choice("abc") in "abc"
    assert len({Drawn(bytes([each] * 8)).getrandbits(64) for each in range(256)}) == 256
