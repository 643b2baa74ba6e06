"""What an example of a rule may give: facts that exist, of the type that they have."""

from __future__ import annotations

from typing import Any

import pytest

from auditor import selftest as law
from auditor.facts import Known, Spec, Subject
from auditor.judge.expression import Registry
from auditor.judge.rule import Example, RuleError
from auditor.judge.rule_file import load
from auditor.registry import registry
from tests.whole.test_rules import MINIMAL

RULE = load("a-rule", "a-rule.toml", MINIMAL.encode(), registry())
HERE: Registry = {
    ("pool", "capacity_percent"): Spec.number(""),
    ("pool", "ratio"): Spec.real(""),
    ("pool", "ready"): Spec.flag(""),
    ("pool", "health"): Spec.word("", "ONLINE", "FAULTED"),
    ("pool", "comment"): Spec.word(""),
    ("pool", "release"): Spec.words(""),
    ("pool", "leaves"): Spec.links("leaf", ""),
    ("pool", "first"): Spec.link("leaf", ""),
    ("leaf", "errors"): Spec.number(""),
    ("host", "cpus"): Spec.number(""),
}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"dataset.sync": "always"}, "'dataset.sync' is not a fact of pool or host"),
        ({"pool.capacity": 1}, "no collector provides pool.capacity"),
        ({"pool.capacity_percent": "1"}, "capacity_percent: '1' is not int"),
        ({"pool.capacity_percent": 1.0}, "capacity_percent: 1.0 is not int"),
        ({"pool.capacity_percent": True}, "capacity_percent: True is not int"),
        ({"pool.capacity_percent": [1]}, "capacity_percent: [1] is not int"),
        ({"pool.capacity_percent": {"known": 1}}, "capacity_percent: {'known': 1} is not int"),
        ({"pool.ready": 1}, "ready: 1 is not bool"),
        ({"pool.ratio": "1"}, "ratio: '1' is not float"),
        ({"pool.release": 3}, "release: 3 is not tuple"),
        ({"pool.health": "FINE"}, "health: 'FINE' is not a possible value; it is one of ONLINE, FAULTED"),
        ({"pool.leaves": [1]}, "leaves needs a list of tables of facts of leaf"),
        ({"pool.leaves": {"errors": 1}}, "leaves needs a list of tables of facts of leaf"),
        ({"pool.leaves": 1}, "leaves needs a list of tables of facts of leaf"),
        ({"pool.leaves": [{"error": 1}]}, "no collector provides leaf.error"),
        ({"pool.first": [{"errors": 1}]}, "first needs a table of facts of leaf"),
    ],
)
def test_what_an_example_cannot_give_is_an_error(given: dict[str, Any], says: str) -> None:
    with pytest.raises(RuleError, match=r"^a-rule\.toml: ") as error:
        law.run_example(RULE, Example("wrong", given, "pass", None), HERE)
    assert str(error.value).endswith(says)


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("capacity_percent", 1, 1),
        ("ratio", 1, 1.0),
        ("ratio", 0.5, 0.5),
        ("ready", True, True),
        ("health", "ONLINE", "ONLINE"),
        ("comment", "anything", "anything"),
        ("release", [2, 4], (2, 4)),
    ],
)
def test_a_value_is_read_as_what_its_fact_is(name: str, value: Any, meant: Any) -> None:
    (fact,) = law._facts(Subject("pool", "tank"), name, value, HERE, "a")
    assert isinstance(fact.value, Known)
    assert (type(fact.value.value), fact.value.value) == (type(meant), meant)


def test_links_lead_to_what_is_given_of_them() -> None:
    leaves = ({"errors": 1}, {"errors": 2})
    facts = list(law._facts(Subject("pool", "tank"), "leaves", list(leaves), HERE, "a"))
    first, second = (Subject("leaf", f"tank.leaves{i}") for i in range(2))
    assert [(each.subject, each.name, each.value.value) for each in facts if isinstance(each.value, Known)] == [
        (Subject("pool", "tank"), "leaves", (first, second)),
        (first, "errors", 1),
        (second, "errors", 2),
    ]
