"""The lab of `zaudit diagnose` judges by what came back."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from auditor.diagnose import causes, conclusion
from auditor.diagnose.conclusion import diagnose
from auditor.diagnose.diagnosis import Outcome
from tests.diagnose import worlds
from tests.lab.diagnose.run import Cause, Load, counts, everything, problems

pytestmark = pytest.mark.lab

EVERYTHING = everything()
SLOW = Cause("x", "", "", "CAUSE", "slow-log-leg", says="{N3} is the slower leg")
NAMES = {"N3": "sdd"}


def test_every_cause_has_a_name_of_its_own_and_an_answer_that_there_is() -> None:
    names = [each.name for each in EVERYTHING]
    assert len(set(names)) == len(names)
    assert set(get_args(Outcome)) == {each.outcome for each in EVERYTHING}
    modules = (causes, conclusion, causes, causes, causes, causes)
    said = "".join(Path(str(each.__file__)).read_text() for each in modules)
    assert [each.top for each in EVERYTHING if each.top and f'"{each.top}"' not in said] == []


def test_a_cause_that_is_not_named_is_wrong() -> None:
    assert list(problems(SLOW, worlds.canonical(), NAMES)) == []
    assert list(problems(SLOW._replace(top="scrub"), worlds.canonical(), NAMES)) != []
    assert list(problems(SLOW._replace(says="{N3} is well"), worlds.canonical(), NAMES)) != []
    healthy = diagnose(worlds.observation(worlds.load(), None), worlds.facts())
    assert "INCONCLUSIVE, top none" in next(problems(SLOW, healthy, NAMES))


def load(us: float, *, number: int = 400, whole: bool = False) -> Load:
    """What a load printed whose thread made so many syncs while it was looked at, and as many before, ten times as long, unless
    all of them were seen."""
    looked = [[1000 + 10 * i / number, us] for i in range(number)]
    before = [[990.0, us * 10]] * (0 if whole else number)
    return {"pid": 90, "syncs": {"100": [*before, *looked]}, "whole": whole}


def test_a_mean_that_is_off_by_more_than_a_tenth_is_wrong() -> None:
    found = worlds.canonical()  # thread 100 commits in 25.3 ms
    assert list(counts(found, [load(25300 * 1.09)])) == []
    assert list(counts(found, [load(25300 * 1.2)])) == ["process 90: traced 25300 us, measured 30360 us itself"]


def test_a_count_of_one_that_was_seen_whole_is_off_by_one_at_most() -> None:
    found = worlds.canonical()
    assert list(counts(found, [load(25300, number=401, whole=True)])) == []
    assert list(counts(found, [load(25300, number=402, whole=True)])) == [
        "400 commits traced, 402 made",
        "400 commits counted by the ZIL, 402 made",
    ]
