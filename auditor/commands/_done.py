"""A report that is made, and what it looks like in each format that is wanted of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from auditor.commands._formats import FormatChoice
from auditor.commands._terminal import look
from auditor.report import formats

if TYPE_CHECKING:
    from auditor.judge.event import Severity
    from auditor.report.formats._told import Told
    from auditor.report.model import Report


class Done:
    """A report, and what it looks like in each format. The data of it is made once, and only where a format wants it."""

    def __init__(self, report: Report, verbose: bool, least: Severity) -> None:
        self._report, self._verbose, self._shown = report, verbose, report.above(least)
        self._told: Told | None = None

    def text(self, wanted: FormatChoice) -> str:
        """In one format; a file is no terminal."""
        module = formats.module(wanted.name)
        if hasattr(module, "page"):
            report = self._report if wanted.name == "json" else self._shown
            return str(module.page(report, self._verbose, look(wanted.file)))
        return str(module.render(self.told()))

    def told(self) -> Told:
        """As data."""
        from auditor.report import report_json as json
        from auditor.report.formats import _told

        self._told = self._told or _told.told(json.document(self._report))
        return self._told
