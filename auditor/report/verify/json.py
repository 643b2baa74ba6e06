"""A verification for a program: ``verify_schema.json``. What this writes, ``--compare`` reads."""

from __future__ import annotations

import json

from auditor.report.audit import json as audit_json
from auditor.report.model import Report
from auditor.report.verify import sweep as sweep_part
from auditor.text import valid_unicode
from auditor.verify.codec import plain
from auditor.verify.compare import Comparison
from auditor.verify.document import document
from auditor.verify.knee import Sweep
from auditor.verify.model import Verification


def render(
    verification: Verification,
    report: Report | None = None,
    *,
    comparison: Comparison | None = None,
    sweep: Sweep | None = None,
    zaudit: str = "",
    verbose: bool = False,
) -> str:
    """JSON text that ends with a newline. The rest as for a terminal. verbose: the audit with its passes."""
    found = document(verification)
    found["zaudit"] = report.zaudit if report else zaudit
    if report is not None:
        found["report"] = audit_json.document(report, verbose)
    if sweep is not None:
        found["sweep"] = sweep_part.data(sweep)
    if comparison is not None:
        found["comparison"] = plain(comparison, valid_unicode)
    # one line: with one a bucket, two minutes of latencies would have ten thousand
    return json.dumps(found, ensure_ascii=True, allow_nan=False) + "\n"
