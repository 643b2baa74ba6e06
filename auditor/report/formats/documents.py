"""The report itself: the page for a person at a terminal, the one for a browser with the pool as a tree, and the report for
programs, from which all others can be made again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from auditor.report import audit_page
from auditor.report.formats import Format

if TYPE_CHECKING:
    from auditor.report.model import Report
    from auditor.report.report_reader import ReportDocument


def _json(report: Report, verbose: int, _: object) -> str:
    from auditor.report import report_json

    return report_json.render(report, passed=verbose > 1)


def _kept_text(kept: ReportDocument) -> str:
    from auditor.report import stored_page, terminal

    return terminal.write(stored_page.document(kept))


def _kept_html(kept: ReportDocument) -> str:
    from auditor.report import html, stored_page

    return html.write(stored_page.document(kept))


FORMATS = {
    "terminal": Format(
        page=lambda report, verbose, look: audit_page.write_text(report, verbose=verbose, **look), text=_kept_text
    ),
    "html": Format(page=lambda report, verbose, _: audit_page.write_html(report, verbose=verbose), text=_kept_html),
    "json": Format(
        page=_json,
        text=lambda report: json.dumps(report.document, indent=1, ensure_ascii=True) + "\n",  # as it was, key by key
    ),
}
