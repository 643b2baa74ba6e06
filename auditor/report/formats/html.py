"""One page for a browser, with the pool as a tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auditor.report import audit as audit_page
from auditor.report.model import Report

MEDIA = "text/html; charset=utf-8"


def page(report: Report, verbose: bool, look: Mapping[str, Any]) -> str:
    """The whole page; it looks the same everywhere."""
    return audit_page.write_html(report, verbose=verbose)
