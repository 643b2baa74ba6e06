"""``report/checklist_schema.json`` from the type hints of the records: ``python -m tests.golden`` writes it."""

from __future__ import annotations

from typing import Any

from auditor.checklist.checklist_page import SCHEMA
from auditor.checklist.lists import Checklist
from tests.verify.schema import describe


def schema() -> dict[str, Any]:
    """JSON Schema of a whole document."""
    defs: dict[str, Any] = {}
    checklist = describe(Checklist, defs)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"zaudit checklist, schema {SCHEMA}",
        "description": "Within a version keys may be added, and readers ignore those that they do not know.",
        "type": "object",
        "required": ["schema", "zaudit", "checklist"],
        "properties": {
            "schema": {"const": SCHEMA},
            "zaudit": {"type": "string", "description": "version of zaudit"},
            "checklist": checklist,
        },
        "$defs": dict(sorted(defs.items())),
    }
