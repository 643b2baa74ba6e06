"""What many tests look at and none of them changes: each is read once a session."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from auditor import rulebook
from auditor.judge.rule import Rule
from auditor.recording import recording
from auditor.recording.recording import Recording

HOSTS = Path(__file__).resolve().parent.parent / "fixtures" / "hosts"


@cache
def rules() -> tuple[Rule, ...]:
    """All of ours, with their examples."""
    return tuple(rulebook.load())


@cache
def audited() -> tuple[Rule, ...]:
    """Those of an audit without a policy and without a run of fio; without their examples."""
    return tuple(rulebook.select((), (), ()))


@cache
def host(name: str) -> Recording:
    """A recorded host."""
    return recording.load(HOSTS / name)


def briefly(cases: Iterable[tuple[Any, ...]], quick: int) -> list[Any]:
    """The arguments of a test that is one proof many times over: the first so many before each commit, all in make test."""
    return [pytest.param(*case, marks=() if number < quick else pytest.mark.slow) for number, case in enumerate(cases)]
