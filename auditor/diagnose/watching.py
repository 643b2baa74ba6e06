"""``--watch``: a line for each second while somebody looks, and then the same observation as without."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from auditor.diagnose.histograms import Looked
from auditor.diagnose.model import Second
from auditor.diagnose.seconds import Moment, Scope, second
from auditor.host.live import Host
from auditor.verify import run
from auditor.verify.trial import Reading


class Watching(NamedTuple):
    """begin: is told why there is no trace, or nothing; line: each second. again: a host for one look, whose answers together
    are bounded. dataset: to which it is narrowed, or empty."""

    begin: Callable[[str], None]
    line: Callable[[Second], None]
    again: Callable[[], Host]
    dataset: str


class Watcher:
    """Keeps the first look and the last one, and nothing between them."""

    def __init__(self, watching: Watching, patterns: Sequence[str], wanted: Scope, before: Reading) -> None:
        self._watching, self._wanted = watching, wanted
        self._files = tuple(each for each in patterns if each.startswith("/"))
        self._first = self._last = Moment(before, Looked())

    def look(self, looked: Looked, threads: Collection[int] | None) -> None:
        """threads: of the process to which it is narrowed, where that is not to a dataset."""
        now = Moment(run.reading(self._watching.again(), self._files), looked)
        told = second(self._first, self._last, now, self._wanted, None if self._wanted.dataset else threads)
        self._last = now
        self._watching.line(told)
