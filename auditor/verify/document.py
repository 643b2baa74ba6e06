"""A verification as JSON and back; ``report/verify_schema.json`` describes it."""

from __future__ import annotations

from typing import Any

from auditor.verify.codec import Malformed, parsed, plain, record, short
from auditor.verify.model import Verification

SCHEMA = "zaudit-verify/1"


def document(verification: Verification) -> dict[str, Any]:
    """The verification as JSON data, after ``report/verify_schema.json``."""
    return {"schema": SCHEMA, "verification": plain(verification)}


def load(text: str) -> Verification:
    """The verification in a document; what else stands there (the audit report, a comparison) is not read.

    Raises Malformed.
    """
    data = parsed(text)
    if not isinstance(data, dict) or "schema" not in data:
        raise Malformed('no "schema" in it: not a result of zaudit verify')
    if data["schema"] != SCHEMA:
        raise Malformed(f"schema {short(repr(data['schema']))}: this zaudit reads {SCHEMA}")
    if "verification" not in data:
        raise Malformed('"verification" is missing')
    read: Verification = record(Verification, data["verification"], "verification")
    return read
