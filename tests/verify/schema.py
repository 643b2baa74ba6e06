"""``report/verify_schema.json`` from the type hints of the records: ``python -m tests.golden`` writes it."""

from __future__ import annotations

from types import NoneType
from typing import Any, Literal, get_args, get_origin

from auditor.codec import MOST, hints_of
from auditor.report.report_json import FIRST
from auditor.report.report_json import SCHEMA as REPORT
from auditor.verify.comparison import SCHEMA, Comparison, Knee, Sweep
from auditor.verify.result import Histogram, Verification

NUMBERS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer", "minimum": -MOST, "maximum": MOST},
    float: {"type": "number", "minimum": -MOST, "maximum": MOST},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
}


def schema() -> dict[str, Any]:
    """JSON Schema of a whole document."""
    defs: dict[str, Any] = {}
    verification = describe(Verification, defs)
    audit = {"type": "object", "required": ["schema"], "properties": {"schema": {"enum": [FIRST, REPORT]}}}
    swept = {
        "description": "what --sweep measured, and the knee in it",
        "type": "object",
        "required": ["sweep", "knee"],
        "properties": {"sweep": describe(Sweep, defs), "knee": describe(Knee, defs)},
    }
    beside: dict[str, Any] = {
        "report": {"description": "the audit report of the same look, after schema.json", **audit},
        "sweep": swept,
        "comparison": {"description": "with the result that --compare names", **describe(Comparison, defs)},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"zaudit verification, schema {SCHEMA}",
        "description": "Within a version keys may be added, and readers ignore those that they do not know.",
        "type": "object",
        "required": ["schema", "verification"],
        "properties": {
            "schema": {"const": SCHEMA},
            "zaudit": {"type": "string", "description": "version of zaudit"},
            "verification": verification,
            **beside,
        },
        "$defs": dict(sorted(defs.items())),
    }


def describe(type_: Any, defs: dict[str, Any]) -> dict[str, Any]:
    """JSON Schema of one type; records go into defs, described in their own words."""
    if type_ is Histogram or hasattr(type_, "_fields"):
        if type_.__name__ not in defs:
            defs[type_.__name__] = {}  # the place is taken before the fields are described
            defs[type_.__name__] = _histogram() if type_ is Histogram else _record(type_, defs)
        return {"$ref": f"#/$defs/{type_.__name__}"}
    items = get_args(type_)
    match get_origin(type_):
        case None:
            return NUMBERS[type_]
        case origin if origin is tuple and items[-1] is Ellipsis:
            return {"type": "array", "items": describe(items[0], defs)}
        case origin if origin is tuple:
            return {"type": "array", "prefixItems": [describe(each, defs) for each in items], "items": False} | {
                "minItems": len(items)
            }
        case origin if origin is dict:
            return {"type": "object", "additionalProperties": describe(items[1], defs)}
        case origin if origin is Literal:
            return {"enum": list(items)}
    return {"anyOf": [describe(each, defs) for each in items]}


def _record(type_: Any, defs: dict[str, Any]) -> dict[str, Any]:
    hints = hints_of(type_)
    return {
        "description": " ".join((type_.__doc__ or "").split()),
        "type": "object",
        "required": list(hints),
        "properties": {name: describe(hint, defs) for name, hint in hints.items()},
    }


def _histogram() -> dict[str, Any]:
    return {
        "description": "samples by bucket; the member is the upper end of the bucket in nanoseconds",
        "type": "object",
        "propertyNames": {"pattern": "^(0|[1-9][0-9]{0,17})$"},
        "additionalProperties": {"type": "integer", "minimum": 1, "maximum": MOST},
    }
