"""What many tests look at and none of them changes: each is read once a session."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from hypothesis import settings

from auditor import audit, rulebook
from auditor.judge.rule import Rule
from auditor.recording import recording
from auditor.recording.archive import ENDING
from auditor.recording.recording import Recording
from auditor.report.model import Report

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
Case = TypeVar("Case")
USUAL = 100  # examples of a property; fewer in make quick (tests/conftest.py)


class Hosts(NamedTuple):
    """A folder of recorded hosts, each a .tar.gz; one is a text archive, which a reader of the README can look into.

    composed: with those that tests/composed.py makes of one of them.
    """

    folder: Path
    composed: bool = False

    def __truediv__(self, name: str) -> Path:
        """The recording of a host, whatever it is in; a .tar.gz where there is none yet."""
        paths = [self.folder / f"{name}{ending}" for ending in (".tar.gz", ENDING)]
        found = next((path for path in paths if path.exists()), None)
        return found or (_composed(name) if name in self._composed() else paths[0])

    def names(self) -> list[str]:
        """Of all hosts."""
        return sorted((*map(name_of, self.folder.iterdir()), *self._composed()))

    def _composed(self) -> tuple[str, ...]:
        from tests import composed  # which begins with a recorded host

        return composed.NAMES if self.composed else ()

    def cases(self) -> list[Path]:
        """All recordings, by name of the host."""
        return [self / name for name in self.names()]


def name_of(recording: Path) -> str:
    """What a recorded host is called."""
    return recording.name.removesuffix(ENDING).removesuffix(".tar.gz")


@cache
def _composed(name: str) -> Path:
    """One of the hosts that are not kept, as a file of this process."""
    from tests import composed

    path = _scratch() / f"{name}{ENDING}"
    recording.write(composed.host(name), path)
    return path


@cache
def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="zaudit-hosts-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


HOSTS = Hosts(FIXTURES / "hosts", composed=True)
OLDER = Hosts(
    FIXTURES / "older"
)  # as zaudit recorded them before it asked all that it asks now, and with other datasets


# of each line of OpenZFS, with databases, on other layers and of another system
FEW = (
    *("2.1-full-81", "2.2-zil-nocacheflush", "2.3-db-mariadb-doublewrite-off", "2.3-stacked-devices"),
    *("2.3-sync-disabled-local", "2.4-healthy-physical-no-cache", "2.4-special-consumer-ssd", "composed-truenas-25.10"),
)


def each_host() -> list[Any]:
    """The arguments of a test of one recorded host: before each commit a few of them, all in make test."""
    return [pytest.param(name, marks=() if name in FEW else pytest.mark.slow) for name in HOSTS.names()]


@cache
def rules() -> tuple[Rule, ...]:
    """All of ours, with their examples."""
    return tuple(rulebook.load())


@cache
def audited() -> tuple[Rule, ...]:
    """Those of an audit without a policy and without a run of fio; without their examples."""
    return tuple(rulebook.choose((), (), ()).rules)


@cache
def host(name: str, folder: Hosts = HOSTS) -> Recording:
    """A recorded host."""
    return recording.load(folder / name)


def report_anew(case: Path, rules: Sequence[Rule] = ()) -> Report:
    """The report of one recorded host, with all rules where none are named."""
    past = recording.load(case)
    seen = audit.look(recording.ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    return audit.judge(seen, rules or audited(), past.targets, "low")


report_of = cache(report_anew)  # the same for all tests that only look at it


def earlier(name: str) -> Recording:
    """A host as it was recorded first, where the datasets and devices that a test speaks of are that recording's."""
    return host(name, OLDER if (OLDER / name).exists() else HOSTS)


def briefly(cases: Iterable[tuple[Any, ...]], quick: int) -> list[Any]:
    """The arguments of a test that is one proof many times over: the first so many before each commit, all in make test."""
    return [pytest.param(*case, marks=() if number < quick else pytest.mark.slow) for number, case in enumerate(cases)]


def some(cases: Iterable[Case], each: int) -> Iterator[Case]:
    """Of a test that goes through everything: before each commit one of so many, all in make test."""
    return islice(cases, 0, None, each if settings().max_examples < USUAL else 1)


def examples(most: int, **how: Any) -> settings:
    """Of a property that says itself how many examples it takes: before each commit no more than any other."""
    now = settings().max_examples
    return settings(max_examples=most if now >= USUAL else min(most, now), **how)
