"""The rule language: Kleene's laws by exhaustion, types at load, evidence of what decided."""

import contextlib
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Kind, Known, Spec, Subject, Unknown, known, unknown
from auditor.judge.expression import (
    LENGTH,
    Budget,
    ExpressionError,
    Scope,
    bind,
    compile_condition,
    compile_expression,
    connective,
    negation,
)

POOL = Subject("pool", "tank")
LEAVES = tuple(Subject("leaf", f"l{i}", "tank") for i in range(3))
REGISTRY: dict[tuple[Kind, str], Spec] = {
    ("pool", "state"): Spec.word("", "ONLINE", "DEGRADED"),
    ("pool", "full"): Spec.number(""),
    ("pool", "limit"): Spec.number(""),
    ("pool", "name"): Spec.word(""),
    ("pool", "version"): Spec.words(""),
    ("pool", "leaves"): Spec.links("leaf", ""),
    ("pool", "spares"): Spec.links("leaf", "", none_tells=True),
    ("leaf", "ok"): Spec.flag(""),
    ("leaf", "wanted"): Spec.flag(""),
    ("leaf", "errors"): Spec.number(""),
    ("leaf", "pool"): Spec.link("pool", ""),
    ("host", "fast"): Spec.flag(""),
}
TRUE, FALSE, NOT_SEEN = Known(True, ()), Known(False, ()), unknown("not seen")
THREE: tuple[Judged, ...] = (TRUE, FALSE, NOT_SEEN)


def evaluate(source: Any, **given_facts: Any) -> Any:
    facts = Facts()
    facts.add(POOL)
    for name, value in given_facts.items():
        facts.put(Fact(POOL, name, value if isinstance(value, Known | Unknown) else known(value, f"{name}={value}")))
    return compile_expression(source, "pool", REGISTRY).evaluate(Scope(facts, POOL))


def truth(result: Any) -> Any:
    return None if isinstance(result, Unknown) else result.value


def test_kleene_truth_tables() -> None:
    """S. C. Kleene, Introduction to Metamathematics, section 64."""
    for a, b in itertools.product(THREE, repeat=2):
        x, y = truth(a), truth(b)
        assert truth(connective([a, b], False)) == (
            False if x is False or y is False else None if None in (x, y) else True
        )
        assert truth(connective([a, b], True)) == (True if x or y else None if None in (x, y) else False)
    assert [truth(negation(each)) for each in THREE] == [False, True, None]


def test_de_morgan_distribution_and_double_negation() -> None:
    for a, b, c in itertools.product(THREE, repeat=3):
        assert truth(negation(connective([a, b], False))) == truth(connective([negation(a), negation(b)], True))
        left = connective([a, connective([b, c], True)], False)
        right = connective([connective([a, b], False), connective([a, c], False)], True)
        assert truth(left) == truth(right)
        assert truth(negation(negation(a))) == truth(a)


FORMULAS = st.recursive(
    st.sampled_from(["leaf.ok", "leaf.wanted", "host.fast", "True", "False", "leaf.errors > 2"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda f: f"(not {f})"),
    ),
    max_leaves=12,
)


@given(
    FORMULAS,
    st.fixed_dictionaries(
        {"ok": st.booleans(), "wanted": st.booleans(), "fast": st.booleans(), "errors": st.integers(0, 5)}
    ),
    st.sets(st.sampled_from(["ok", "wanted", "fast", "errors"])),
)
def test_more_knowledge_never_overturns_a_verdict(source: Any, values: Any, hidden: Any) -> None:
    """What is decided while facts are hidden is what comes out when they are seen."""
    leaf = LEAVES[0]
    partial, complete = Facts(), Facts()
    for name, value in values.items():
        subject = HOST if name == "fast" else leaf
        complete.put(Fact(subject, name, known(value, name)))
        partial.put(Fact(subject, name, unknown("hidden") if name in hidden else known(value, name)))
    compiled = compile_condition(source, "leaf", REGISTRY)
    before, after = (truth(compiled.evaluate(Scope(facts, leaf))) for facts in (partial, complete))
    assert after is not None
    assert before is None or before == after


def with_leaves(oks: Any) -> Any:
    facts = Facts()
    facts.put(Fact(POOL, "leaves", known(LEAVES[: len(oks)], "leaves")))
    for leaf, ok in zip(LEAVES, oks, strict=False):
        facts.put(Fact(leaf, "ok", NOT_SEEN if ok is None else known(ok, f"ok={ok}")))
    return facts


@pytest.mark.parametrize("oks", list(itertools.product((True, False, None), repeat=3)))
def test_quantifiers_are_connectives_over_links(oks: Any) -> None:
    facts = with_leaves(oks)
    values = [NOT_SEEN if ok is None else Known(ok, ()) for ok in oks]
    for word_, decisive in (("any", True), ("all", False)):
        compiled = compile_condition(f"{word_}(leaf.ok for leaf in pool.leaves)", "pool", REGISTRY)
        assert truth(compiled.evaluate(Scope(facts, POOL))) == truth(connective(values, decisive))


def test_a_quantifier_over_an_unknown_link_is_unknown() -> None:
    assert evaluate("all(leaf.ok for leaf in pool.leaves)", leaves=NOT_SEEN) == NOT_SEEN
    assert evaluate("len(pool.leaves) == 0", leaves=NOT_SEEN) == NOT_SEEN


def test_filters_of_quantifiers() -> None:
    facts = with_leaves((True, False, True))
    for leaf, wanted in zip(LEAVES, (True, False, True), strict=True):
        facts.put(Fact(leaf, "wanted", known(wanted, "")))
    every = compile_condition("all(leaf.ok for leaf in pool.leaves if leaf.wanted)", "pool", REGISTRY)
    some = compile_condition("any(not leaf.ok for leaf in pool.leaves if leaf.wanted)", "pool", REGISTRY)
    assert truth(every.evaluate(Scope(facts, POOL))) is True
    assert truth(some.evaluate(Scope(facts, POOL))) is False


def test_evidence_is_of_what_decided() -> None:
    result = evaluate("pool.state == 'ONLINE' and pool.full < 80", state="DEGRADED", full=12)
    assert result == Known(False, (Evidence("state=DEGRADED"),))
    result = evaluate("pool.state == 'ONLINE' and pool.full < 80", state="ONLINE", full=12)
    assert [each.text for each in result.evidence] == ["state=ONLINE", "full=12"]


def test_evidence_of_other_subjects_says_whose_it_is() -> None:
    facts = with_leaves((True, False))
    facts.put(Fact(LEAVES[1], "errors", known(3, "3 errors", "zpool status {subject}")))
    compiled = compile_condition("all(leaf.errors == 0 for leaf in pool.leaves if not leaf.ok)", "pool", REGISTRY)
    result = compiled.evaluate(Scope(facts, POOL))
    assert isinstance(result, Known)
    assert result.value is False
    assert Evidence("tank l1: 3 errors", "zpool status l1") in result.evidence


def test_reasons_are_joined_once_each() -> None:
    result = evaluate(
        "pool.full < pool.limit and pool.state == 'ONLINE'", full=NOT_SEEN, limit=NOT_SEEN, state=unknown("gone")
    )
    assert [reason.text for reason in result.reasons] == ["not seen", "gone"]


@pytest.mark.parametrize(
    ("source", "facts", "expected"),
    [
        ("pool.full * 2 + 1 > 9", {"full": 5}, True),
        ("2 ** pool.full == 8", {"full": 3}, True),
        ("1 < pool.full < 3", {"full": 2}, True),
        ("1 < pool.full < 3", {"full": 3}, False),
        ("pool.state in ('ONLINE', 'DEGRADED')", {"state": "ONLINE"}, True),
        ("pool.version >= (2, 4)", {"version": (2, 4, 0)}, True),
        ("pool.version >= (2, 4)", {"version": (2, 3, 9)}, False),
        ("pool.full / pool.limit > 1", {"full": 5, "limit": 0}, None),
        ("pool.full > -3", {"full": -2}, True),
        ("pool.full > -1.5", {"full": -2}, False),
        ("2 ** pool.full > 0", {"full": 10**9}, None),
        ("2 ** pool.full > 0", {"full": 64}, True),
        ("1 ** pool.full == 1", {"full": 64}, True),
        ("1 ** pool.full == 1", {"full": 65}, None),
        ("pool.full ** 2 == 4096", {"full": 64}, True),
        ("pool.full ** 2 == 4225", {"full": 65}, None),
        ("pool.full ** 64 > 0", {"full": 4}, True),  # 2 ** 128, the largest
        ("pool.full ** 64 + 1 > 0", {"full": 4}, None),
        ("pool.full ** 64 > 0", {"full": 5}, None),
        ("'ONLINE' == pool.state", {"state": "ONLINE"}, True),
        ("'1' in pool.name", {"name": "a1"}, True),
        ("len(pool.version) == 2", {"version": (2, 4)}, True),
    ],
)
def test_operations(source: Any, facts: Any, expected: Any) -> None:
    assert truth(evaluate(source, **facts)) is expected


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("pool.stat == 'ONLINE'", "no collector or derivation provides pool.stat; there is pool.state"),
        ("pool.leaves.ok", "only a subject has facts"),
        ("pool.state == 'ONLIEN'", "is not a possible value"),
        ("pool.state in ('ONLINE', 'FINE')", "is not a possible value"),
        ("pool.full == 'ONLINE'", "compares"),
        ("pool.state < 'ONLINE'", "cannot be ordered"),
        ("pool.full", "not true or false"),
        ("not pool.full", "not true or false"),
        ("leaf.ok", "not a name here"),
        ("all(x.ok for x in pool.state)", "range over linked subjects"),
        ("any(pool.ok for pool in pool.leaves)", "already means something"),
        ("__import__('os').system('true')", "not part of the rule language"),
        ("pool.leaves[0].ok", "not part of the rule language"),
        ("(lambda: True)()", "not part of the rule language"),
        ("[x for x in ()]", "not part of the rule language"),
        ("'ONLIEN' == pool.state", "is not a possible value; it is one of ONLINE, DEGRADED"),
        ("pool.fast", "pool.fast: no collector or derivation provides pool.fast$"),  # no pool has what a host has
        ("pool.state + 1 > 0", "'pool.state' is a str, not a number"),
        ("len(pool.state) == 1", "len(pool.state): it is a str"),
        ("any(x.ok for x in pool)", "'pool' is a subject of kind pool; any and all range over linked subjects"),
        ("any(x == pool for x in pool.leaves)", "compares a subject of kind leaf with a subject of kind pool"),
        ("any(x.pool < pool for x in pool.leaves)", "a subject of kind pool cannot be ordered"),
        ("host.fast < True", "a bool cannot be ordered"),
        ("pool.full in 3", "cannot look for a number in a number"),
        ("host.fast in ('x', 'y')", "cannot look for a bool in a tuple"),
        ("pool.state in ('ONLINE', None)", "'None': a tuple may hold only plain values"),
        ("pool.state in ('ONLINE', b'x')", "may hold only plain values"),
        ("pool.state in ('ONLINE', pool)", "'pool': a tuple may hold only plain values"),
        ("f'{pool.state}' == 'x'", "not part of the rule language"),
        ("pool.__class__ == 'x'", "no collector or derivation provides"),
        ("pool.state is 'x'", "not part of the rule language"),
        ("pool.full <", "pool.full <"),
        ("", "''"),
    ],
)
def test_what_is_not_a_rule_is_an_error_at_load(source: Any, says: Any) -> None:
    with pytest.raises(ExpressionError) as error:
        compile_condition(source, "pool", REGISTRY)
    assert says in f"{error.value}$"


def test_a_number_with_a_name_cannot_become_a_subject() -> None:
    with pytest.raises(ExpressionError, match="'limit' already means something here"):
        compile_condition("any(limit.ok for limit in pool.leaves)", "pool", REGISTRY, {"limit": Known(1, ())})


@given(st.text(max_size=60))
def test_any_text_is_an_expression_or_an_expression_error(source: Any) -> None:
    with contextlib.suppress(ExpressionError):
        compile_condition(source, "pool", REGISTRY)


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("host.fast and all(leaf.ok for leaf in pool.leaves) or pool.full > 1", {"leaves", "full"}),
        ("host.fast or pool.full > 1", set()),  # settled by its first half
        ("any(leaf.pool == pool for leaf in pool.leaves)", {"leaves", ""}),
    ],
)
def test_the_scope_notes_what_was_read_of_the_judged_subject(source: str, read: set[str]) -> None:
    facts = Facts()
    facts.put(Fact(HOST, "fast", TRUE))
    facts.put(Fact(POOL, "full", known(1, "full=1")))
    facts.put(Fact(POOL, "leaves", Known(LEAVES, ())))
    for leaf in LEAVES:
        facts.put(Fact(leaf, "ok", FALSE))
        facts.put(Fact(leaf, "pool", Known(POOL, ())))
    scope = Scope(facts, POOL)
    compile_condition(source, "pool", REGISTRY).evaluate(scope)
    assert set(scope.read) == read


def test_of_what_is_not_there_nothing_is_said() -> None:
    for source in (
        "all(x.ok for x in pool.leaves)",
        "any(x.ok for x in pool.leaves)",
        "not any(x.ok for x in pool.leaves)",
    ):
        result = evaluate(source, leaves=())
        assert isinstance(result, Unknown)
        assert result.reasons[0].text == "tank: there are no pool.leaves, so nothing was seen"
    assert truth(evaluate("any(x.ok for x in pool.spares)", spares=())) is False
    assert truth(evaluate("all(x.ok for x in pool.spares)", spares=())) is None
    assert truth(evaluate("len(pool.leaves) == 0", leaves=())) is True


def test_all_of_those_that_count_needs_one_that_counts() -> None:
    facts = Facts()
    facts.put(Fact(POOL, "leaves", known(LEAVES[:2], "")))
    source = compile_condition("all(x.ok for x in pool.leaves if x.wanted)", "pool", REGISTRY)

    def told(*wanted: Judged) -> Any:
        for leaf, each in zip(LEAVES, wanted, strict=False):
            facts.replace(Fact(leaf, "wanted", each))
            facts.replace(Fact(leaf, "ok", TRUE))
        return truth(source.evaluate(Scope(facts, POOL)))

    assert told(TRUE, FALSE) is True
    assert told(FALSE, FALSE) is None
    assert told(FALSE, NOT_SEEN) is True


def test_evidence_without_words_stays_without_words() -> None:
    """What nobody declared is not shown as the bare name of a dataset."""
    seen = bind(
        Known("undeclared", (Evidence(""), Evidence("sync=disabled", "zfs get sync {subject}"))),
        Subject("dataset", "t/a b"),
    )
    assert seen.evidence == (Evidence(""), Evidence("t/a b: sync=disabled", "zfs get sync 't/a b'"))
    assert bind(Known(1, (Evidence("one"),)), HOST).evidence == (Evidence("one"),), "there is one host"


def test_an_expression_may_be_as_long_as_that_and_no_longer() -> None:
    longest = f"{'pool.full':{LENGTH - 4}} > 0"
    assert len(longest) == LENGTH
    assert compile_condition(longest, "pool", REGISTRY)
    with pytest.raises(ExpressionError, match="longer than"):
        compile_condition(f"{longest}0", "pool", REGISTRY)


def test_what_cannot_be_compared_is_unknown_with_both() -> None:
    result = evaluate("pool.version >= (2, 4)", version=("two", 4))
    assert isinstance(result, Unknown)
    assert [reason.text for reason in result.reasons] == ["('two', 4) and (2, 4) cannot be compared"]


def test_a_budget_is_spent_to_its_last_step() -> None:
    budget = Budget()
    budget.left = 1
    assert budget.one_more() is None
    assert isinstance(budget.one_more(), Unknown)
