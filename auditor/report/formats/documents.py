"""The report itself: the page for a person at a terminal, the one for a browser with the pool as a tree, and the report for
programs, from which all others can be made again."""

from __future__ import annotations

import json

from auditor.report import audit_page, html, report_json, terminal
from auditor.report.formats import Format
from auditor.report.kept_page import document

FORMATS = {
    "terminal": Format(
        page=lambda report, verbose, look: audit_page.write_text(report, verbose=verbose, **look),
        text=lambda kept: terminal.write(document(kept)),
    ),
    "html": Format(
        page=lambda report, verbose, _: audit_page.write_html(report, verbose=verbose),
        text=lambda kept: html.write(document(kept)),
    ),
    "json": Format(
        page=lambda report, verbose, _: report_json.render(report, passed=verbose > 1),
        text=lambda report: json.dumps(report.document, indent=1, ensure_ascii=True) + "\n",  # as it was, key by key
    ),
}
