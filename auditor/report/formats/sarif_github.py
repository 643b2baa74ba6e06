"""SARIF for GitHub's code scanning, which reads neither kinds nor suppressions: what is undecided has the level that its
failure would have, and begins with "Unknown: "; what is waived is left out. (docs.github.com, SARIF support for code
scanning)
"""

from __future__ import annotations

from typing import Any

from auditor.report.formats import _sarif
from auditor.report.formats._told import Finding, Told, worst

MEDIA = "application/sarif+json"
RESULTS = 5000  # more it does not take up


def render(told: Told) -> str:
    """One run; of too many results the worst."""
    return _sarif.document(told, worst(told.findings)[:RESULTS], _outcome)


def _outcome(each: Finding) -> dict[str, Any]:
    # the hash is what GitHub tells alerts apart by, and nothing else of an own name
    return {"level": _sarif.LEVELS[each.severity], "partialFingerprints": {"primaryLocationLineHash": f"{each.id}:1"}}
