"""What many tests look at and none of them changes: each is read once a session."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from auditor import rulebook
from auditor.judge.rule import Rule
from auditor.recording import recording
from auditor.recording.recording import Recording

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
HOSTS = FIXTURES / "hosts"
OLDER = FIXTURES / "older"  # as zaudit recorded them before it asked all that it asks now, and with other datasets


@cache
def rules() -> tuple[Rule, ...]:
    """All of ours, with their examples."""
    return tuple(rulebook.load())


@cache
def audited() -> tuple[Rule, ...]:
    """Those of an audit without a policy and without a run of fio; without their examples."""
    return tuple(rulebook.select((), (), ()))


@cache
def host(name: str, folder: Path = HOSTS) -> Recording:
    """A recorded host."""
    return recording.load(folder / name)


def earlier(name: str) -> Recording:
    """A host as it was recorded first, where the datasets and devices that a test speaks of are that recording's."""
    return host(name, OLDER if (OLDER / name).is_dir() else HOSTS)


def briefly(cases: Iterable[tuple[Any, ...]], quick: int) -> list[Any]:
    """The arguments of a test that is one proof many times over: the first so many before each commit, all in make test."""
    return [pytest.param(*case, marks=() if number < quick else pytest.mark.slow) for number, case in enumerate(cases)]


def examples(most: int, **how: Any) -> settings:
    """Of a property that says itself how many examples it takes: before each commit no more than any other."""
    usual = settings().max_examples  # 100, and fewer in make quick (tests/conftest.py)
    return settings(max_examples=most if usual >= 100 else min(most, usual), **how)
