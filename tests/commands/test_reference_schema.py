"""The schemas that zaudit prints, against the loaders: keys, types, and what several keys say together."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from auditor import EXIT_USAGE, data, registry
from auditor.commands._schemas import KEPT, SCHEMAS
from auditor.judge import file_schemas, policy_file, rule_file
from auditor.judge.expression import ExpressionError
from auditor.judge.policy import PolicyError
from auditor.judge.rule import RuleError, ThresholdError
from tests.fake import CommandLine
from tests.folded import for_each

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "auditor" / "report"
WRONG: list[Any] = [[]]  # of no type that a key has
(SAMPLE,) = re.findall(r"```toml\n(pages = .*?)```", (ROOT / "docs" / "policy.md").read_text(), re.DOTALL)
DRIVE = """
[[answer]]
drive = "flushes honoured"
model = "X"
owner = "storage@example.org"
reason = "tried"
expires = 2027-01-31
[datasets."tank/scratch"]
role = "rebuildable"
reason = "from the lake"
"""
RULE = """
title = "Pool over the limit"
subject = "pool"
harm = "availability"
severity = "low"
elements = ["hypervisor"]
answer = "flushes honoured"
outside = "none"
when = "pool.capacity_percent > 0"
expect = "pool.capacity_percent < full"
origin = "pool.guid"
message = "{subject} is full"
amount = "all"
damage = false
next_boot = false
impact = "x"
why = "x"
references = ["zpoolprops.7 capacity"]
conflicts = ["none"]
unprovoked = "none"
thresholds.full = { default = 80, least = 50, most = 95, unit = "%", text = "x" }
[[cases]]
when = "pool.capacity_percent > 95"
severity = "high"
message = "x"
[fix]
text = "x"
cost = "safe"
command = "zpool add {pool} DEVICE"
needs = "Once it is healthy"
sets = ["{pool} autotrim=on"]
[[fix.cases]]
when = "pool.capacity_percent > 99"
text = "x"
cost = "safe"
[[example]]
name = "a"
given = { "pool.capacity_percent" = 10 }
verdict = "pass"
[[example]]
name = "b"
given = { "pool.capacity_percent" = 90 }
verdict = "fail"
severity = "low"
[[example]]
name = "c"
given = {}
verdict = "unknown"
[[example]]
name = "d"
given = { "pool.capacity_percent" = 0 }
verdict = "not applicable"
"""


def valid(schema: dict[str, Any], document: Any) -> bool:
    """Days are strings in JSON."""
    return bool(jsonschema.Draft7Validator(schema).is_valid(json.loads(json.dumps(document, default=str))))


def load_rule(document: Any) -> None:
    rule_file.from_table("a-rule", "a-rule.toml", document, registry.registry())


def load_policy(document: Any) -> None:
    policy_file.parse(toml(document), "zaudit.toml")


def toml(document: Any) -> str:
    """As much of TOML as a policy needs; tables and lists within a line."""

    def value(each: Any) -> str:
        if isinstance(each, dict):
            return "{" + ", ".join(f"{json.dumps(key)} = {value(below)}" for key, below in each.items()) + "}"
        if isinstance(each, list):
            return f"[{', '.join(map(value, each))}]"
        return json.dumps(each) if isinstance(each, str | bool | int | float) else str(each)

    return "".join(f"{key} = {value(each)}\n" for key, each in document.items())


def tables(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of each table but those in which any key may be."""
    if isinstance(document, dict):
        if path[-1:] not in (("given",), ("thresholds",), ("datasets",), ("rules",)) and path[:1] != ("thresholds",):
            yield path
        for key, below in document.items():
            yield from tables(below, (*path, key))
    elif isinstance(document, list):
        for index, below in enumerate(document):
            yield from tables(below, (*path, index))


def changed(document: Any, path: tuple[Any, ...], keys: dict[str, Any], without: str = "") -> Any:
    found = copy.deepcopy(document)
    table = at(found, path)
    table.pop(without, None)
    table.update(keys)
    return found


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for each in path:
        document = document[each]
    return document


@pytest.mark.parametrize(
    ("schema", "text", "load"),
    [(file_schemas.rule(), RULE, load_rule), (file_schemas.policy(), SAMPLE + DRIVE, load_policy)],
    ids=["rule", "policy"],
)
def test_a_file_and_its_schema_agree_about_keys_and_types(
    schema: dict[str, Any], text: str, load: Callable[[Any], None]
) -> None:
    whole = tomllib.loads(text)
    refusals = (RuleError, PolicyError, ExpressionError, ThresholdError)

    def loaded(document: Any) -> bool:
        try:
            load(document)
        except refusals:
            return False
        return True

    assert loaded(whole)
    assert valid(schema, whole)
    wrong = []
    tried = 0
    for path in tables(whole):
        for key in (*at(whole, path), "stray"):
            bad = changed(whole, path, {key: WRONG})
            wrong += [(path, key, "value") for taken in (loaded(bad), valid(schema, bad)) if taken]
            tried += 1
        for key in at(whole, path):
            bad = changed(whole, path, {}, without=key)
            wrong += [(path, key, "missing")] if loaded(bad) and not valid(schema, bad) else []
            needed = key in at(schema, below(path))["required"]
            wrong += [(path, key, "needed")] if needed and (loaded(bad) or valid(schema, bad)) else []
    assert wrong == []
    assert tried > 30


def below(path: tuple[Any, ...]) -> tuple[str, ...]:
    """Where the schema has what the table at a path may be."""
    found: list[str] = []
    for each in path:
        free = found[-1:] in (["datasets"], ["thresholds"])
        found += ["items"] if isinstance(each, int) else ["additionalProperties"] if free else ["properties", each]
    return tuple(found)


def test_every_rule_and_every_word_of_the_loader_is_taken() -> None:
    schema = file_schemas.rule()
    assert [id for id, rule in data.rules().items() if not valid(schema, rule)] == []
    assert [key for key in rule_file.RULE[0] | rule_file.RULE[1] if key not in tomllib.loads(RULE)] == []


@for_each(
    "path, change",
    [
        (("waiver", 0), {"host": "db1"}),
        (("answer", 0), {"target": "flushes honoured"}),
        (("answer", 0), {"serial": "S1"}),
        (("answer", 1), {"serial": "S1"}),
        (("answer", 1), {"host": "db1"}),
        (("waiver", 0), {"pool": "tank"}),
        (("answers",), {"hypervisor": ["aws"]}),
        ((), {"pages": "javascript:alert(1)"}),
        ((), {"pages": 'https://example.org/"x'}),
        (("datasets", "tank/scratch"), {"role": "rebuilt"}),
    ],
)
def test_what_several_keys_say_together_is_in_the_schema(path: tuple[Any, ...], change: dict[str, Any]) -> None:
    bad = changed(tomllib.loads(SAMPLE + DRIVE), path, change)
    assert not valid(file_schemas.policy(), bad)
    with pytest.raises(PolicyError):
        load_policy(bad)


def test_each_is_printed_by_name_as_it_is_shipped(zaudit: CommandLine) -> None:
    listed = zaudit("schema")
    assert [line.split()[0] for line in listed.out.splitlines()] == list(SCHEMAS)
    for name in SCHEMAS:
        printed = json.loads(zaudit("schema", name).out)
        jsonschema.validators.validator_for(printed).check_schema(printed)
        assert name not in KEPT or printed == json.loads((REPORT / KEPT[name]).read_text())
    shipped = {str(path.relative_to(REPORT)) for path in REPORT.rglob("*schema*.json")}
    assert shipped == {*KEPT.values()}
    unknown = zaudit("schema", "polcy")
    assert unknown.code == EXIT_USAGE
    assert "no schema 'polcy'; similar: policy" in unknown.err
