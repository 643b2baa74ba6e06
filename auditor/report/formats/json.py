"""The report for programs, from which all others can be made again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from auditor.report import report_json
from auditor.report.formats._told import Told
from auditor.report.model import Report

MEDIA = "application/json"


def page(report: Report, verbose: bool, look: Mapping[str, Any]) -> str:
    """verbose: with a list of what passed."""
    return report_json.render(report, verbose=verbose)


def render(told: Told) -> str:
    """As it was, key by key."""
    return json.dumps(told.document, indent=1, ensure_ascii=True) + "\n"
