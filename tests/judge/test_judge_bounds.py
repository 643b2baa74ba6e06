"""What others write is read up to a bound and no further: as much as that passes, and one more does not."""

from __future__ import annotations

import pytest

from auditor import codec
from auditor.codec import TomlError
from auditor.facts import unknown
from auditor.judge import baseline, policy_file, rule_file
from auditor.judge.expression import Budget, ExpressionError, compile_condition
from auditor.judge.policy import PolicyError
from auditor.judge.rule import RuleError
from auditor.registry import registry
from tests.whole.test_rules import MINIMAL


def test_how_long_a_text_may_be() -> None:
    assert codec.loads_toml("#" * 262_144) == {}
    with pytest.raises(TomlError, match="longer than 256 KiB"):
        codec.loads_toml("#" * 262_145)
    assert rule_file.LIMIT == policy_file.LIMIT == 262_144
    assert rule_file.FILES == 1000
    assert baseline.LIMIT == 67_108_864


def test_how_many_parts_a_key_may_have() -> None:
    assert codec.loads_toml("#" + "." * 100 + "\n" + "#" + "." * 100) == {}
    with pytest.raises(TomlError, match=r"more than 100 dots in a line \(at line 2\)"):
        codec.loads_toml("\n" + "#" + "." * 101)


def test_an_error_that_repeats_the_file_is_shown_by_its_ends() -> None:
    assert codec.brief_error("a" * 300 + "b" * 300) == "a" * 300 + "b" * 300
    assert codec.brief_error("a" * 300 + "-" + "b" * 300) == "a" * 300 + " ... " + "b" * 300


def test_how_many_waivers_a_policy_may_have() -> None:
    one = '[[waiver]]\nrule = "r{}"\nhost = "x"\nowner = "a"\nreason = "b"\nexpires = 2027-01-01\n'
    assert len(policy_file.parse("".join(map(one.format, range(1000))), "p.toml").waivers) == 1000
    with pytest.raises(PolicyError, match="more than 1000 waivers"):
        policy_file.parse("".join(map(one.format, range(1001))), "p.toml")


def test_how_many_cases_a_rule_may_have() -> None:
    case = '[[cases]]\nseverity = "medium"\nwhen = "pool.capacity_percent > {}"\n'
    ten = MINIMAL + "".join(case.format(90 + number) for number in range(10))
    assert len(rule_file.load("a-rule", "a-rule.toml", ten.encode(), registry()).cases) == 10
    with pytest.raises(RuleError, match="at most 10"):
        rule_file.load("a-rule", "a-rule.toml", (ten + case.format(98)).encode(), registry())


def test_how_large_a_number_may_be() -> None:
    largest = 2**128
    assert compile_condition(f"pool.capacity_percent < {largest}", "pool", registry()).source
    with pytest.raises(ExpressionError, match="a number is too large"):
        compile_condition(f"pool.capacity_percent < {largest + 1}", "pool", registry())


def test_how_long_and_how_deep_an_expression_may_be() -> None:
    short = "pool.capacity_percent < 1"
    assert compile_condition(short + " " * (4096 - len(short)), "pool", registry()).source
    with pytest.raises(ExpressionError, match="longer than 4096 characters"):
        compile_condition(short + " " * (4097 - len(short)), "pool", registry())
    assert [compiles("not " * count + short) for count in (36, 37)] == [
        True,
        False,
    ]  # and four levels of what is denied


def compiles(source: str) -> bool:
    try:
        compile_condition(source, "pool", registry())
    except ExpressionError as error:
        if "nested too deeply" not in str(error):
            raise
        return False
    return True


def test_how_many_subjects_one_rule_may_look_at() -> None:
    budget = Budget()
    assert budget.left == 1_000_000
    budget.left = 1
    assert [budget.one_more(), budget.one_more()] == [None, unknown("the rule goes through more than 1000000 subjects")]
