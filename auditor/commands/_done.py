"""A report that is made, and what it looks like in each format that is wanted of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from auditor.commands._formats import FormatChoice
from auditor.commands._terminal import look
from auditor.report import formats

if TYPE_CHECKING:
    from auditor.judge.event import Severity
    from auditor.report.model import Report
    from auditor.report.report_reader import ReportDocument


class Done:
    """A report, and what it looks like in each format. The data of it is made once, and only where a format wants it."""

    def __init__(self, report: Report, verbose: int, least: Severity) -> None:
        self._report, self._verbose, self._shown = report, verbose, report.above(least)
        self._data: ReportDocument | None = None

    def text(self, wanted: FormatChoice) -> str:
        """In one format; a file is no terminal."""
        format_ = formats.named(wanted.name)
        if format_.page:
            report = self._report if wanted.name == "json" else self._shown
            return format_.page(report, self._verbose, look(wanted.file))
        return format_.render(self.data())

    def data(self) -> ReportDocument:
        """As data."""
        from auditor.report import report_json
        from auditor.report.report_reader import parse_report

        self._data = self._data or parse_report(report_json.document(self._report))
        return self._data
