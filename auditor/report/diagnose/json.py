"""A diagnosis for a program: ``diagnosis_schema.json``."""

from __future__ import annotations

import json

from auditor.diagnose.model import Diagnosis
from auditor.report.audit import json as audit_json
from auditor.report.model import Report
from auditor.text import valid_unicode
from auditor.verify.codec import plain

SCHEMA = "zaudit-diagnosis/1"


def render(found: Diagnosis, report: Report | None = None, *, zaudit: str = "") -> str:
    """JSON text that ends with a newline. report: the audit of the same pool."""
    document = {"schema": SCHEMA, "zaudit": zaudit, "diagnosis": plain(found, valid_unicode)}
    if report is not None:
        document["report"] = audit_json.document(report, False)
    return json.dumps(document, ensure_ascii=True, allow_nan=False) + "\n"
