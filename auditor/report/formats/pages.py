"""The report itself: the page for a person at a terminal, the one for a browser with the pool as a tree, and the report for
programs, from which all others can be made again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from auditor.report import audit, report_json
from auditor.report.formats import Format
from auditor.report.model import Report
from auditor.report.report_reader import ReportDocument


def _terminal(report: Report, verbose: int, look: Mapping[str, Any]) -> str:
    """look: width, color, ascii_only."""
    return audit.write_text(report, verbose=verbose, **look)


def _html(report: Report, verbose: int, look: Mapping[str, Any]) -> str:
    """The whole page; it looks the same everywhere."""
    return audit.write_html(report, verbose=verbose)


def _json(report: Report, verbose: int, look: Mapping[str, Any]) -> str:
    return report_json.render(report, passed=verbose > 1)


def _again(report: ReportDocument) -> str:
    """As it was, key by key."""
    return json.dumps(report.document, indent=1, ensure_ascii=True) + "\n"


FORMATS = {
    "terminal": Format("text/plain; charset=utf-8", page=_terminal),
    "html": Format("text/html; charset=utf-8", page=_html),
    "json": Format("application/json", page=_json, text=_again),
}
