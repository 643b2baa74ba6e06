"""The examples of a rule, run: they are its tests, and ``zaudit explain`` shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Kind, Known, Spec, Subject, Value, unknown
from auditor.judge.compiler import Registry
from auditor.judge.rule import Example, Rule, RuleError
from auditor.judge.verdict import Verdict, judge_one


def run(rule: Rule, example: Example, registry: Registry) -> Verdict:
    """The verdict of the rule on what the example gives; raises RuleError when that does not fit the facts that exist."""
    facts = Facts()
    root = HOST if rule.subject == "host" else Subject(rule.subject, "example")
    facts.add(HOST)
    facts.add(root)
    for name, value in example.given.items():
        kind, _, bare = name.partition(".")
        if kind not in (rule.subject, "host"):
            raise RuleError(f"{rule.path}: example {example.name!r}: {name!r} is not a fact of {rule.subject} or host")
        for fact in _facts(HOST if kind == "host" else root, bare, value, registry, f"{rule.path}: {example.name}"):
            facts.put(fact)
    return judge_one(rule, root, facts)


def _facts(subject: Subject, name: str, value: Any, registry: Registry, where: str) -> Iterator[Fact]:
    spec = registry.get((subject.kind, name))
    if spec is None:
        raise RuleError(f"{where}: no collector provides {subject.kind}.{name}")
    if isinstance(value, dict) and set(value) == {"unknown"}:
        yield Fact(subject, name, unknown(str(value["unknown"])))
    elif spec.type is Subject:
        yield from _linked(subject, name, value, spec, registry, where)
    else:
        yield Fact(subject, name, Known(_scalar(value, spec, f"{where}: {name}"), (Evidence(f"{name}={value}"),)))


def _linked(subject: Subject, name: str, value: Any, spec: Spec, registry: Registry, where: str) -> Iterator[Fact]:
    kind: Kind | None = spec.kind
    assert kind is not None
    tables = value if spec.many else [value]
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise RuleError(f"{where}: {name} needs {'a list of tables' if spec.many else 'a table'} of facts of {kind}")
    targets = tuple(Subject(kind, f"{subject.name}.{name}{i}") for i in range(len(tables)))
    linked: Judged = Known(targets if spec.many else targets[0], (Evidence(f"{len(targets)} {name}"),))
    yield Fact(subject, name, linked)
    for target, table in zip(targets, tables, strict=True):
        for inner, inner_value in table.items():
            yield from _facts(target, inner, inner_value, registry, where)


def _scalar(value: Any, spec: Spec, where: str) -> Value:
    if spec.row and isinstance(value, list):
        try:
            return tuple(spec.row(*each) for each in value if isinstance(each, list))
        except TypeError:
            raise RuleError(f"{where}: a row of {value!r} has not {', '.join(spec.row._fields)}") from None
    if spec.type is tuple and isinstance(value, list):
        return tuple(value)
    if spec.type is float and type(value) is int:
        return float(value)
    if not isinstance(value, bool | int | float | str) or type(value) is not spec.type:
        raise RuleError(f"{where}: {value!r} is not {spec.type.__name__}")
    if spec.values and value not in spec.values:
        raise RuleError(f"{where}: {value!r} is not a possible value; it is one of {', '.join(spec.values)}")
    checked: Value = value
    return checked
