"""Rules and policies of somebody else: what they may not do is hang zaudit, fill its memory, break it, print what is not
text, take the place of our rules, or silence them without a word."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor import codec, data, rulebook
from auditor.facts import HOST, Fact, Facts, Known, Subject, known
from auditor.judge import expression, policy_file, rule_file, verdict
from auditor.judge.expression import Budget, ExpressionError, Scope, compile_expression
from auditor.judge.policy import PolicyError
from auditor.judge.rule import RuleError
from auditor.registry import registry
from tests.fake import CommandLine, Result
from tests.golden import CANONICAL, HOSTS

POOL = Subject("pool", "tank")
REPLAY = ("check", "--replay", str(HOSTS / CANONICAL))
GOOD = (data.RULES / "pool-nearly-full.toml").read_text()


def facts(datasets: int = 0) -> Facts:
    """A pool with a few known facts and many datasets."""
    found = Facts(0.0)
    found.put(Fact(POOL, "capacity_percent", known(80, "80")))
    found.put(Fact(POOL, "size_bytes", known(10**12, "1 T")))
    children = tuple(Subject("dataset", f"tank/{i}") for i in range(datasets))
    found.put(Fact(POOL, "datasets", Known(children, ())))
    return found


def value(source: str, seen: Facts | None = None) -> Any:
    return compile_expression(source, "pool", registry()).evaluate(Scope(seen or facts(), POOL))


# -- expressions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("1 + " * 2000 + "1 > 0", "longer than"),
        ("1 + " * 300 + "1 > 0", "nested too deeply"),
        ("not " * 300 + "True", "nested too deeply"),
        ("-" * 1000 + "1 > 0", "nested too deeply"),
        ("(" * 250 + "True" + ")" * 250, "parentheses"),
        ("1e400 > 0", "too large"),
        ("9" * 4000 + " > 0", "too large"),
        ("0x" + "f" * 4000 + " > 0", "too large"),
        ("'a' in ('a', " + "9" * 50 + ")", "too large"),
        ("'a' * 1000000000 == 'b'", "not a number"),
        ("(1,) * 1000000000 == (1,)", "not a number"),
        ("__import__('os').system('id') == 0", "not part of the rule language"),
        ("pool.__class__ == 1", "no collector or derivation provides"),
        ("(lambda: True)()", "not part of the rule language"),
        ("[x for x in pool.datasets] == 1", "not part of the rule language"),
        ("(pool := 1) == 1", "not part of the rule language"),
        ("f'{pool.capacity_percent:>1000000000}' == 'a'", "not part of the rule language"),
        ("True if True else True", "not part of the rule language"),
        ("len('a' * 9) > 1", "not a number"),
        ("any(any(True for x in pool.datasets) for x in pool.datasets)", "already means something"),
        ("pool.capacity_percent < 1\x00", "null"),
    ],
)
def test_an_expression_that_is_too_much_is_an_error_of_the_rule(source: str, says: str) -> None:
    with pytest.raises(ExpressionError) as error:
        compile_expression(source, "pool", registry())
    assert says in str(error.value)


@pytest.mark.parametrize(
    "source",
    [
        "10 ** 10 ** 10 > 0",
        "9 ** 9 ** 9 ** 9 > 0",
        "64 ** 64 * 64 ** 64 > 0",
        "(-8) ** 0.5 > 0",  # a complex number
        "0.0 / 0.0 == 0",
        "1e38 * 10 * 10 > 0",
        "pool.size_bytes * 1e30 > 0",
        "1 % 0 == 0",
        "(1, 2) < ('a',)",
        "1 in 'abc'",
    ],
)
def test_what_no_number_comes_of_is_unknown(source: str) -> None:
    assert not isinstance(value(source), Known)


def test_loops_in_loops_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expression, "STEPS", 10_000)
    inner = "all(all(all(e.kind == 'x' or d.kind == 'x' or c.kind == 'x' for e in pool.datasets)"
    name = next(
        name for (kind, name), spec in registry().items() if kind == "dataset" and spec.type is str and not spec.values
    )
    source = f"{inner} for d in pool.datasets) for c in pool.datasets)".replace(".kind", f".{name}")
    seen = facts(100)
    for dataset in list(seen.linked(POOL, "datasets")):
        seen.put(Fact(dataset, name, known("x", "")))
    scope = Scope(seen, POOL, Budget())
    result = compile_expression(source, "pool", registry()).evaluate(scope)
    assert not isinstance(result, Known)
    assert "more than 10000 subjects" in result.reasons[0].text
    assert scope.budget.left > -1000  # nobody went on


def test_the_budget_is_one_for_all_subjects_of_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expression, "STEPS", 50)
    seen = facts()
    pools = tuple(Subject("pool", f"p{i}") for i in range(4))
    seen.put(Fact(HOST, "pools", Known(pools, ())))
    for pool in pools:
        children = tuple(Subject("dataset", f"{pool.name}/{i}") for i in range(20))
        seen.put(Fact(pool, "datasets", Known(children, ())))
    left = ("when", "message", "thresholds", "cases", "example")
    table = {key: value for key, value in tomllib.loads(GOOD).items() if key not in left}
    table["expect"] = "any(len(pool.datasets) < 1 for x in pool.datasets)"
    rule = rule_file.trusted("a-rule", "a", table, registry(), {}, whole=lambda: table)
    outcomes = [each.outcome for each in verdict.judge([rule], seen)]
    assert outcomes == ["fail", "fail", "unknown", "unknown"]


ATOMS = st.sampled_from(
    """1 0 64 -1 0.5 1e38 True 'a' (1,2) ('a',1) () pool host pool.capacity_percent pool.size_bytes pool.datasets
    pool.nothing 1e400 None 2**64""".split()  # noqa: SIM905
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(
            inner, st.sampled_from(("+", "-", "*", "/", "//", "%", "**", "<", "==", "in", "and", "or", "not in")), inner
        ).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda text: f"(not {text})"),
        inner.map(lambda text: f"(-{text})"),
        inner.map(lambda text: f"len({text})"),
        st.tuples(st.sampled_from(("any", "all")), inner, inner).map(lambda p: f"{p[0]}({p[1]} for d in {p[2]})"),
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(EXPRESSIONS | st.text(max_size=80))
def test_every_text_is_an_error_or_comes_to_a_fact(source: str) -> None:
    try:
        compiled = compile_expression(source, "pool", registry())
    except ExpressionError:
        return
    result = compiled.evaluate(Scope(facts(3), POOL))
    if isinstance(result, Known) and isinstance(result.value, int | float):
        assert abs(result.value) <= expression.LARGEST


# -- files of rules -------------------------------------------------------------------------------------------------


def refused(folder: Path) -> str:
    with pytest.raises((RuleError, OSError)) as error:
        rulebook.load([folder])
    return str(error.value)


def test_only_a_file_is_read_as_a_rule_and_not_without_end(tmp_path: Path) -> None:
    path = tmp_path / "a-rule.toml"
    os.mkfifo(path)
    assert "not a regular file" in refused(tmp_path)  # and does not wait for a writer
    path.unlink()
    path.symlink_to("/dev/zero")
    assert "not a regular file" in refused(tmp_path)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert "not a regular file" in refused(tmp_path)
    path.unlink()
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert "more than 256 KiB" in refused(tmp_path)
    path.unlink()
    for number in range(rule_file.FILES + 1):
        (tmp_path / f"r{number}.toml").touch()
    assert "more than 1000 files" in refused(tmp_path)


def test_no_rule_takes_the_place_of_one_of_ours(tmp_path: Path) -> None:
    (tmp_path / "sync-disabled.toml").write_text(GOOD)
    assert "exists already" in refused(tmp_path)


def test_an_error_repeats_only_a_little_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a-rule.toml").write_text(GOOD.replace("title", 'origin = "' + "x" * 100_000 + '"\ntitle', 1))
    said = refused(tmp_path)
    assert "not a fact of the rule's subject" in said
    assert len(said) < 1000 + len(str(tmp_path))


EVIL = "\x1b[2J\x1b]0;x\x07\u202e\r\n CRITICAL [bold]x[/bold]"


def test_the_words_of_a_rule_reach_the_terminal_as_text(zaudit: CommandLine, tmp_path: Path) -> None:
    text = re.sub(r"(?m)^(when|expect|cases|thresholds).*\n", "", GOOD)
    judged, mark, said = text.partition("\nimpact ")
    evil = json.dumps(EVIL)
    judged += '\nexpect = "pool.capacity_percent < 0"'
    judged = re.sub(r"(?m)^(title|message) = .*", lambda found: f"{found[1]} = {evil[:1]}A{evil[1:]}", judged)
    (tmp_path / "a-rule.toml").write_text(judged + mark + said)
    for words in ((), ("--format", "json"), ("--verbose",)):
        result: Result = zaudit(*REPLAY, "--rules", str(tmp_path), *words)
        text = result.out + result.err
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text), words
        assert not re.search(r"(?m)^ CRITICAL", text)


# -- policies -------------------------------------------------------------------------------------------------------


def steps(text: str) -> int:
    """Lines of Python that run until a policy is read or refused."""
    count = 0

    def trace(*_: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        policy_file.parse(text, "p.toml")
    except PolicyError:
        pass
    finally:
        sys.settrace(before)
    return count


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda n: "[rules]\n" + "\n".join(f'r{i} = "off"' for i in range(n)),
        lambda n: "[thresholds]\n" + "\n".join(f"r{i}.x = 1" for i in range(n)),
        lambda n: "\n".join(f'[datasets."tank/{i}"]\nrole = "log"' for i in range(n)),
        lambda n: "\n".join(
            f'[[waiver]]\nrule = "r{i}"\nhost = "x"\nowner = "a"\nreason = "b"\nexpires = 2027-01-01' for i in range(n)
        ),
        lambda n: "a." * n + "a = 1",
        lambda n: "[" + "a." * n + "a]\nb = 1",
        lambda n: "a = " + "[" * n,
        lambda n: "a = " + "{a=" * n,
        lambda n: "x = {" + ", ".join(f"k{i} = 1" for i in range(n)) + "}",
    ],
)
def test_a_policy_twice_as_long_takes_no_more_than_twice_as_many_steps(make: Any) -> None:
    short, long = steps(make(200)), steps(make(400))
    assert long < 2.5 * short + 100


def test_which_policy_is_too_much() -> None:
    for text, says in (
        ("#" * (codec.TOML_LIMIT + 1), "longer than 256 KiB"),
        ("a." * 101 + "a = 1", "more than 100 dots"),
        ("a = " + "9" * 5000, "too many digits"),
        ("a = " + "[" * 50_000, "nested too deeply"),
    ):
        with pytest.raises(PolicyError, match=says):
            policy_file.parse(text, "p.toml")
    one = '[[waiver]]\nrule = "r{}"\nhost = "x"\nowner = "a"\nreason = "b"\nexpires = 2027-01-01\n'
    with pytest.raises(PolicyError, match="more than 1000 waivers"):
        policy_file.parse("".join(map(one.format, range(1001))), "p.toml")
    with pytest.raises(PolicyError) as error:
        policy_file.parse('[rules]\na = "' + "x" * 100_000 + '"', "p.toml")
    assert len(str(error.value)) < 1000


@given(st.text(alphabet="[]={}\"'.#ab1-,\n ", max_size=200) | st.text(max_size=100))
def test_every_text_is_a_policy_or_refused(text: str) -> None:
    try:
        parsed = policy_file.parse(text, "p.toml")
    except PolicyError:
        return
    assert tomllib.loads(text).keys() <= set(policy_file.TABLES)
    assert parsed.text == text


def test_what_a_policy_silences_stands_in_the_report(zaudit: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text('[rules]\nsync-disabled = "off"\ncontainer-or-vm-blind = "low"\n')
    said = zaudit(*REPLAY, "--policy", str(path))
    words = " ".join(said.out.split())
    assert f"Left out by policy {path}: sync-disabled (critical)." in words
    assert f"Counts as low by policy {path}: container-or-vm-blind (high)." in words
    document = json.loads(zaudit(*REPLAY, "--policy", str(path), "--format", "json").out)
    assert [each["rule"] for each in document["left_out"]] == ["sync-disabled", "container-or-vm-blind"]
    assert json.loads(zaudit(*REPLAY, "--format", "json").out)["left_out"] == []
