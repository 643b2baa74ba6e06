"""``report/diagnosis_schema.json`` from the type hints of the records: ``python -m tests.golden`` writes it."""

from __future__ import annotations

from typing import Any

from auditor.diagnose.diagnose_page import SCHEMA
from auditor.diagnose.diagnosis import Committer, Diagnosis
from auditor.report.report_json import FIRST
from auditor.report.report_json import SCHEMA as REPORT
from tests.verify.schema import describe


def schema() -> dict[str, Any]:
    """JSON Schema of a whole document."""
    defs: dict[str, Any] = {}
    diagnosis = describe(Diagnosis, defs)
    for kind in (Diagnosis, Committer):
        own = defs[kind.__name__]
        own["required"] = [name for name in own["required"] if name not in kind._field_defaults]  # added since
    audit = {"type": "object", "required": ["schema"], "properties": {"schema": {"enum": [FIRST, REPORT]}}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"zaudit diagnosis, schema {SCHEMA}",
        "description": "Within a version keys may be added, and readers ignore those that they do not know.",
        "type": "object",
        "required": ["schema", "zaudit", "diagnosis"],
        "properties": {
            "schema": {"const": SCHEMA},
            "zaudit": {"type": "string", "description": "version of zaudit"},
            "diagnosis": diagnosis,
            "report": {"description": "the audit report of the same look, after schema.json", **audit},
        },
        "$defs": dict(sorted(defs.items())),
    }
