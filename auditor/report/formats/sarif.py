"""SARIF 2.1.0 as it is specified: what is undecided is ``open`` with level ``none`` (3.27.9: "insufficient information"), what
is waived is there with its suppression (3.35)."""

from __future__ import annotations

from typing import Any

from auditor.report.formats import _sarif
from auditor.report.formats._told import Finding, Told

MEDIA = "application/sarif+json"


def render(told: Told) -> str:
    """One run."""
    return _sarif.document(told, told.all, _outcome)


def _outcome(each: Finding) -> dict[str, Any]:
    unknown = each.was == "unknown"
    said: dict[str, Any] = {
        "kind": "open" if unknown else "fail",
        "level": "none" if unknown else _sarif.LEVELS[each.severity],
    }
    if each.waiver:
        why = f"{each.waiver.reason} ({each.waiver.owner}, until {each.waiver.expires})"
        said["suppressions"] = [{"kind": "external", "status": "accepted", "justification": why}]
    return said
