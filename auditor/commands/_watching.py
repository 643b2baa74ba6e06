"""``zaudit diagnose --watch``: where its lines go."""

from __future__ import annotations

import sys
from collections.abc import Callable

from auditor.commands._terminal import note, say, width
from auditor.diagnose.diagnosis import Second
from auditor.report.diagnose import diagnosis_text


class Lines:
    """One line a second, each written at once. beside: to standard error, so that a report for programs stands alone on
    standard output."""

    def __init__(self, narrowed: str, *, beside: bool) -> None:
        self._narrowed = narrowed
        self._say: Callable[[str], None] = note if beside else say
        self._again = (sys.stderr if beside else sys.stdout).isatty()  # a file has names at its beginning alone
        self._columns = diagnosis_text.columns(narrowed=bool(narrowed), width=width() if self._again else None)
        self._count = 0

    def begin(self, untraced: str) -> None:
        """untraced: why there is no trace, or empty."""
        for each in diagnosis_text.legend(self._narrowed, untraced):
            self._say(each)

    def line(self, second: Second) -> None:
        if self._count == 0 or (self._again and self._count % diagnosis_text.HEADER_EVERY == 0):
            self._say(diagnosis_text.header(self._columns))
        self._count += 1
        self._say(diagnosis_text.row(second, self._columns))
