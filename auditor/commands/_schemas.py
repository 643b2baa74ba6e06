"""JSON Schemas of what zaudit writes: from the type hints of the records that it writes, or as they are kept in a file."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable, Mapping
from functools import partial
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from auditor.advice import plan_page
from auditor.checklist import checklist_page
from auditor.checklist.lists import Checklist
from auditor.codec import MOST, hints_of
from auditor.diagnose import diagnose_page
from auditor.diagnose.diagnosis import Committer, Diagnosis
from auditor.fleet import cluster as clusters
from auditor.judge import file_schemas
from auditor.report import supposed as supposed_page
from auditor.report.report_json import FIRST
from auditor.report.report_json import SCHEMA as REPORT
from auditor.verify import comparison
from auditor.verify.comparison import Comparison, Knee, Sweep
from auditor.verify.result import Histogram, Verification

NUMBERS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer", "minimum": -MOST, "maximum": MOST},
    float: {"type": "number", "minimum": -MOST, "maximum": MOST},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
}
ZAUDIT = {"zaudit": {"type": "string", "description": "version of zaudit"}}
AUDIT = {
    "report": {
        "description": "the audit report of the same look, after schema.json",
        "type": "object",
        "required": ["schema"],
        "properties": {"schema": {"enum": [FIRST, REPORT]}},
    }
}
SUPPOSED = {
    "description": "a report after zaudit schema report",
    "type": "object",
    "required": ["schema"],
    "properties": {"schema": {"const": REPORT}},
}


def verification() -> dict[str, Any]:
    defs: dict[str, Any] = {}
    whole = describe(Verification, defs)
    swept = {
        "description": "what --sweep measured, and the knee in it",
        "type": "object",
        "required": ["sweep", "knee"],
        "properties": {"sweep": describe(Sweep, defs), "knee": describe(Knee, defs)},
    }
    compared = {"description": "with the result that --compare names", **describe(Comparison, defs)}
    properties = {**ZAUDIT, "verification": whole, **AUDIT, "sweep": swept, "comparison": compared}
    return _document("verification", comparison.SCHEMA, ["verification"], properties, defs)


def checklist() -> dict[str, Any]:
    defs: dict[str, Any] = {}
    properties = {**ZAUDIT, "checklist": describe(Checklist, defs)}
    return _document("checklist", checklist_page.SCHEMA, [*properties], properties, defs)


def diagnosis() -> dict[str, Any]:
    defs: dict[str, Any] = {}
    properties = {**ZAUDIT, "diagnosis": describe(Diagnosis, defs)}
    for kind in (Diagnosis, Committer):
        own = defs[kind.__name__]
        own["required"] = [name for name in own["required"] if name not in kind._field_defaults]  # added since
    return _document("diagnosis", diagnose_page.SCHEMA, [*properties], {**properties, **AUDIT}, defs)


def plan() -> dict[str, Any]:
    whole = _kept("schema.json")
    of_report = {name: whole["properties"][name] for name in (*plan_page.HEAD_OF_REPORT, *plan_page.STATE)}
    state = {
        "type": "object",
        "required": list(plan_page.STATE),
        "properties": {name: of_report[name] for name in plan_page.STATE},
    }
    defs: dict[str, Any] = {**whole["$defs"], "State": state}
    steps, left = (describe(each, defs) for each in (plan_page.StepDocument, plan_page.LeftDocument))
    there = {"$ref": "#/$defs/State"}
    defs["StepDocument"]["properties"]["then"] = {"description": "after it, of a step that was simulated", **there}
    properties = {
        **{name: of_report[name] for name in plan_page.HEAD_OF_REPORT},
        "pools": {"type": "array", "items": describe(plan_page.PoolDocument, defs)},
        "now": there,
        "steps": {"type": "array", "items": steps},
        "left": {"type": "array", "items": left},
        "after": there,
    }
    return _document("plan", plan_page.SCHEMA, [*properties], properties, defs)


def _whole(title: str, schema: str, kind: type, **more: Any) -> dict[str, Any]:
    """Of a document whose members are the fields of a record, and more."""
    defs: dict[str, Any] = {}
    describe(kind, defs)
    properties = defs.pop(kind.__name__)["properties"] | more
    return _document(title, schema, [*properties], properties, defs)


def _kept(file: str) -> Any:
    return json.loads(pkgutil.get_data("auditor.report", file) or b"")


# report-1 is the first edition of a report, which zaudit still reads
KEPT = {
    "report": "schema.json",
    "report-1": "schema-1.json",
    "jsonl": "formats/jsonl_schema.json",
    **{name: f"{name}_schema.json" for name in ("diff", "powercut")},
}
SCHEMAS: Mapping[str, Callable[[], Any]] = {
    "rule": file_schemas.rule,
    "policy": file_schemas.policy,
    **{name: partial(_kept, file) for name, file in KEPT.items()},
    "verify": verification,
    "checklist": checklist,
    "diagnose": diagnosis,
    "plan": plan,
    "supposed": partial(
        _whole, "supposition", supposed_page.SCHEMA, supposed_page.SupposedDocument, now=SUPPOSED, then=SUPPOSED
    ),
    "cluster": partial(_whole, "cluster", clusters.SCHEMA, clusters.ClusterDocument),
}


def _document(
    title: str, schema: str, required: list[str], properties: dict[str, Any], defs: dict[str, Any]
) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"zaudit {title}, schema {schema}",
        "description": "Within a version keys may be added, and readers ignore those that they do not know.",
        "type": "object",
        "required": ["schema", *required],
        "properties": {"schema": {"const": schema}, **properties},
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
