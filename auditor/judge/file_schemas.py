"""JSON Schemas of the files that people write: rules and ``zaudit.toml``. Editors complete and check with them.

Keys and words are those of the loaders. A schema knows no facts and no other file: what it takes, the loader may still refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, get_args

from auditor.data import drives
from auditor.data.durability import ROWS
from auditor.databases import ENGINES
from auditor.facts import KINDS
from auditor.judge import policy_file, rule_file
from auditor.judge.event import ANSWER, ANSWERING, SEVERITIES
from auditor.judge.policy import CLASSES, PAGES, ROLES, SCOPES, SETTINGS
from auditor.judge.rule import COSTS, HARMS, KEYS, Outcome

Schema = dict[str, Any]
Keys = tuple[AbstractSet[str], AbstractSet[str]]  # that a table needs, that it may have
DRAFT = "http://json-schema.org/draft-07/schema#"  # editors know no later one of TOML (taplo)
TEXT: Schema = {"type": "string", "pattern": r"\S"}
NUMBER: Schema = {"type": "number", "exclusiveMinimum": -1e18, "exclusiveMaximum": 1e18}
DAY: Schema = {"type": "string", "format": "date", "description": "the last day on which it holds, without quotes"}


def rule() -> Schema:
    condition = {**TEXT, "description": "an expression over facts: pool.capacity_percent < 80"}
    severity, message = _one_of(SEVERITIES), {**TEXT, "description": "of a finding; {expression} is filled in"}
    means = {**TEXT, "description": "the condition in words, to follow if"}
    case = _table(rule_file.CASE, {"when": condition, "means": means, "severity": severity, "message": message})
    fix = {
        "when": condition,
        "means": means,
        "command": {**TEXT, "description": "a line to paste; {expression} and {word of a platform} are filled in"},
        "text": TEXT,
        "cost": _one_of(COSTS),
        "needs": {"type": "string", "pattern": rf"^\s*({'|'.join(rule_file.CONDITIONS)})"},
        "sets": {
            **_texts(1),
            "maxItems": rule_file.CASES,
            "description": "what it changes, as check --suppose takes it",
        },
    }
    cases = {"type": "array", "maxItems": rule_file.CASES}
    fix["cases"] = {**cases, "items": _table(rule_file.FIX_CASE, fix)}
    example = {"name": TEXT, "given": {"type": "object"}, "verdict": _one_of(get_args(Outcome)), "severity": severity}
    number = {"default": NUMBER, "least": NUMBER, "most": NUMBER, "unit": TEXT, "text": TEXT}
    whole = _table(
        rule_file.RULE,
        {
            "title": {**TEXT, "description": "a headline: at most 100 characters, no full stop"},
            "subject": {**_one_of(KINDS), "description": "what is judged, one by one"},
            "harm": _one_of(HARMS),
            "severity": {**severity, "description": "where no element says it"},
            "elements": {**_texts(1, ROWS), "description": "what a failure breaks of the path of a commit"},
            "outside": {**TEXT, "description": "why no event of the table sets it"},
            "when": {**condition, "description": "which subjects the rule is about"},
            "expect": {**condition, "description": "what must be true"},
            "origin": {**TEXT, "description": "the fact that names where it was set"},
            "message": message,
            "amount": {**TEXT, "description": "how much is lost"},
            "cases": {**cases, "items": case},
            "damage": {"type": "boolean", "description": "harm that is done already"},
            "next_boot": {"type": "boolean", "description": "in force from the next boot or restart on"},
            "answer": {"const": ANSWER},
            "thresholds": {"type": "object", "additionalProperties": _table((KEYS, set()), number)},
            "impact": TEXT,
            "why": TEXT,
            "fix": _table(rule_file.FIX, fix),
            "references": {**_texts(1), "description": "primary sources"},
            "conflicts": _texts(0),
            "unprovoked": {**TEXT, "description": "why no host of the tests shows it"},
            "example": {"type": "array", "minItems": 3, "items": _table(rule_file.EXAMPLE, example)},
        },
    )
    return _document(
        "a rule of zaudit", {**whole, "anyOf": [{"required": [each]} for each in ("elements", "severity")]}
    )


def policy() -> Schema:
    named = {"owner": TEXT, "reason": TEXT, "expires": DAY}
    dataset = _table(policy_file.DATASET, {"role": _one_of(ROLES), "database": _one_of(ENGINES), "reason": TEXT}) | {
        "if": {"required": ["role"], "properties": {"role": {"const": "rebuildable"}}},
        "then": {"required": ["reason"]},
    }
    scopes: dict[str, Schema] = {
        **dict.fromkeys(SCOPES, TEXT),
        "pool": {"type": "string", "pattern": r"^\s*[0-9]+\s*$", "description": "its GUID: zpool get guid"},
        "class": _one_of(CLASSES),
    }
    waiver = _table(policy_file.WAIVER, {"rule": TEXT, **scopes, **named}) | _exactly_one(SCOPES)
    parties: dict[str, Schema] = {party: {"const": ANSWER} for party in ANSWERING}
    answer = _table(policy_file.ANSWERED, {**parties, **dict.fromkeys(("model", "serial", "host"), TEXT), **named}) | {
        **_exactly_one(ANSWERING),
        "if": {"required": ["drive"]},
        "then": {**_exactly_one(("serial", "model")), "properties": {"host": False}},
        "else": {"properties": {"serial": False, "model": False}},
    }
    known = _one_of(drives.load_providers())
    adopted = {"anyOf": [known, {"type": "array", "items": known, "uniqueItems": True}]}
    decided = {"type": "object", "minProperties": 1, "additionalProperties": NUMBER}
    tables: dict[str, Schema] = {
        "pages": {"type": "string", "pattern": f"^{PAGES}$", "description": "where the site has published make site"},
        "rules": {"type": "object", "additionalProperties": _one_of(SETTINGS)},
        "thresholds": {"type": "object", "additionalProperties": decided},
        "datasets": {"type": "object", "additionalProperties": dataset},
        "waiver": {"type": "array", "maxItems": policy_file.WAIVERS, "items": waiver},
        "answer": {"type": "array", "maxItems": policy_file.WAIVERS, "items": answer},
        "answers": _table((set(), set(policy_file.ADOPTING)), dict.fromkeys(policy_file.ADOPTING, adopted)),
    }
    return _document("zaudit.toml, the policy of a site", _table((set(), {*policy_file.TABLES, "pages"}), tables))


def _document(title: str, schema: Schema) -> Schema:
    return {"$schema": DRAFT, "title": title, **schema}


def _table(keys: Keys, properties: Mapping[str, Schema]) -> Schema:
    """A table with these keys; a KeyError where one is not described."""
    required, optional = keys
    return {
        "type": "object",
        "required": sorted(required),
        "properties": {key: properties[key] for key in sorted(required | optional)},
        "additionalProperties": False,
    }


def _one_of(words: Iterable[str]) -> Schema:
    return {"enum": list(words)}


def _exactly_one(keys: Iterable[str]) -> Schema:
    return {"oneOf": [{"required": [each]} for each in keys]}


def _texts(least: int, words: Iterable[str] = ()) -> Schema:
    items = _one_of(words) if words else {"type": "string", "minLength": 1}
    return {"type": "array", "items": items, "minItems": least}
