"""A checklist for a program: ``checklist_schema.json``."""

from __future__ import annotations

import json

from auditor.checklist.model import Checklist
from auditor.text import valid_unicode
from auditor.verify.codec import plain

SCHEMA = "zaudit-checklist/1"


def render(found: Checklist, *, zaudit: str = "") -> str:
    """JSON text that ends with a newline."""
    document = {"schema": SCHEMA, "zaudit": zaudit, "checklist": plain(found, valid_unicode)}
    return json.dumps(document, ensure_ascii=True, allow_nan=False) + "\n"
