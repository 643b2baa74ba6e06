"""The page for a person at a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auditor.report import audit as audit_page
from auditor.report.model import Report

MEDIA = "text/plain; charset=utf-8"


def page(report: Report, verbose: bool, look: Mapping[str, Any]) -> str:
    """look: width, color, ascii_only."""
    return audit_page.write_text(report, verbose=verbose, **look)
