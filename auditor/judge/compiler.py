"""Compiles rule expressions (:mod:`auditor.judge.expression`): Python's own grammar, cut down, checked for types."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from auditor.data import releases
from auditor.facts import Judged, Kind, Known, Spec, Subject, Unknown, unknown
from auditor.judge import expression
from auditor.judge.expression import (
    BOOL,
    LARGEST,
    NUMBER,
    Evaluate,
    Expression,
    ExpressionError,
    Scope,
    Type,
    connective,
    fact,
    negation,
    strict,
    subject_of,
)
from auditor.text import often

Registry = Mapping[tuple[Kind, str], Spec]  # (kind, fact name) -> what it is


class LateRegistry(Mapping[tuple[Kind, str], Spec]):
    """One that is made when a fact is first looked up. A list of rules looks up none, and imports no source."""

    def __init__(self, make: Callable[[], Registry]) -> None:
        self._make = cache(make)

    def __getitem__(self, fact: tuple[Kind, str]) -> Spec:
        return self._make()[fact]

    def __iter__(self) -> Iterator[tuple[Kind, str]]:
        return iter(self._make())

    def __len__(self) -> int:
        return len(self._make())


Constants = Mapping[str, Known]  # name -> number
NO_CONSTANTS: Constants = {}
LENGTH, DEPTH = 4096, 40  # characters; levels of its tree

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


def compile_expression(
    source: str, kind: Kind, registry: Registry, constants: Constants = NO_CONSTANTS, *, bounded: bool = True
) -> Expression:
    """Parse, type-check and compile; raises ExpressionError with the offending part. constants: numbers that have a name.
    bounded: False where its tests have seen how deeply it is nested."""
    if len(source) > LENGTH:
        raise ExpressionError(f"{source[:60]!r}...: longer than {LENGTH} characters")
    try:
        tree = ast.parse(source.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"{source!r}: {getattr(error, 'msg', None) or error}") from None
    if bounded and _deep(tree.body):
        raise ExpressionError(f"{source[:60]!r}...: nested too deeply")
    names: dict[str, Kind] = {"host": "host", kind: kind}
    type_, evaluate = _Compiler(registry, constants).build(tree.body, names)
    return Expression(source, type_, evaluate)


def _deep(node: ast.AST) -> bool:
    level = [node]
    for _ in range(DEPTH):
        level = [child for each in level for child in ast.iter_child_nodes(each)]
    return bool(level)


def compile_condition(source: str, kind: Kind, registry: Registry, constants: Constants = NO_CONSTANTS) -> Expression:
    """The same, for an expression that must be true or false."""
    compiled = compile_expression(source, kind, registry, constants)
    if compiled.type != BOOL:
        raise ExpressionError(f"{source!r} is a {compiled.type}, not true or false")
    return compiled


def compile_words(
    source: str, kind: Kind, registry: Registry, constants: Constants = NO_CONSTANTS, *, bounded: bool = True
) -> Expression:
    """The same, for an expression in a text: of NAME=TIMES a reader is told "NAME (3 times)"."""
    compiled = compile_expression(source, kind, registry, constants, bounded=bounded)
    if not compiled.type.tallied:
        return compiled

    def evaluate(scope: Scope) -> Judged:
        found = compiled.evaluate(scope)
        told = tuple(f"{name} ({often(times)})" for name, times in found.pairs())
        return found if isinstance(found, Unknown) else found._replace(value=told)

    return compiled._replace(evaluate=evaluate)


def deferred(
    source: str,
    kind: Kind,
    registry: Registry,
    constants: Constants = NO_CONSTANTS,
    compile_: Callable[..., Expression] = compile_expression,
) -> Expression:
    """A condition that is compiled when it is first asked for: most rules pass, and need neither words nor severities.

    What is wrong with it comes out only then, so it is for rules that were compiled whole by their tests.
    """
    compiled: list[Evaluate] = []

    def evaluate(scope: Scope) -> Judged:
        if not compiled:
            compiled.append(compile_(source, kind, registry, constants, bounded=False).evaluate)
        return compiled[0](scope)

    return Expression(source, BOOL, evaluate)


class _Compiler:
    def __init__(self, registry: Registry, constants: Constants) -> None:
        self.registry = registry
        self.constants = constants

    def build(self, node: ast.expr, names: Mapping[str, Kind]) -> tuple[Type, Evaluate]:
        match node:
            case ast.Constant(bool() | int() | float() | str() as value):
                _sane(value)
                constant = Known(value, ())
                return expression.of_constant(value), lambda scope: constant
            case ast.Tuple(elts=items):
                return self.literal_tuple(items)
            case ast.Name(id=name):
                if named := self.constants.get(name):
                    return NUMBER, lambda scope: named
                if name not in names:
                    raise ExpressionError(f"{name!r} is not a name here; there are {', '.join(sorted(names))}")
                return Type("subject", kind=names[name]), lambda scope: subject_of(scope, name)
            case ast.Attribute(value=base, attr=attr):
                return self.attribute(base, attr, names)
            case ast.BoolOp(op=op, values=values):
                built = [self.condition(each, names) for each in values]
                decisive = isinstance(op, ast.Or)
                return BOOL, lambda scope: connective((each(scope) for each in built), decisive)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.condition(operand, names)
                return BOOL, lambda scope: negation(inner(scope))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(int() | float() as value)):
                _sane(value)
                negative = Known(-value, ())
                return NUMBER, lambda scope: negative
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return self.arithmetic(left, _ARITHMETIC[type(op)], right, names)
            case ast.Compare():
                return self.comparison(node, names)
            case ast.Call(func=ast.Name(id="len"), args=[argument], keywords=[]):
                return self.length(argument, names)
            case ast.Call(
                func=ast.Name(id=("any" | "all") as word), args=[ast.GeneratorExp() as generator], keywords=[]
            ):
                return self.quantifier(word == "any", generator, names)
        raise ExpressionError(f"{ast.unparse(node)!r} is not part of the rule language")

    def condition(self, node: ast.expr, names: Mapping[str, Kind]) -> Evaluate:
        type_, evaluate = self.build(node, names)
        if type_ != BOOL:
            raise ExpressionError(f"{ast.unparse(node)!r} is a {type_}, not true or false")
        return evaluate

    def literal_tuple(self, items: list[ast.expr]) -> tuple[Type, Evaluate]:
        values = []
        for item in items:
            if not isinstance(item, ast.Constant) or not isinstance(item.value, bool | int | float | str):
                raise ExpressionError(f"{ast.unparse(item)!r}: a tuple may hold only plain values")
            _sane(item.value)
            values.append(item.value)
        constant = Known(tuple(values), ())
        words = tuple(value for value in values if isinstance(value, str))
        return Type("tuple", words), lambda scope: constant

    def attribute(self, base: ast.expr, name: str, names: Mapping[str, Kind]) -> tuple[Type, Evaluate]:
        base_type, evaluate_base = self.build(base, names)
        if base_type.base != "subject" or base_type.kind is None:
            raise ExpressionError(f"{ast.unparse(base)!r} is a {base_type}; only a subject has facts")
        spec = self.registry.get((base_type.kind, name))
        if spec is None:
            raise ExpressionError(
                f"{ast.unparse(base)}.{name}: no collector or derivation provides {base_type.kind}.{name}"
                f"{self.nearest(base_type.kind, name)}"
            )
        if isinstance(base, ast.Name):
            of = base.id
            return expression.of_fact(spec), lambda scope: fact(scope.names[of], name, scope)

        def evaluate(scope: Scope) -> Judged:
            subject = evaluate_base(scope)
            if isinstance(subject, Unknown):
                return subject
            assert isinstance(subject.value, Subject)
            return fact(subject.value, name, scope)

        return expression.of_fact(spec), evaluate

    def nearest(self, kind: Kind, name: str) -> str:
        from difflib import get_close_matches

        near = get_close_matches(name, [fact for of, fact in self.registry if of == kind], n=1)
        return f"; there is {kind}.{near[0]}" if near else ""

    def arithmetic(
        self, left: ast.expr, apply: Callable[[Any, Any], Any], right: ast.expr, names: Mapping[str, Kind]
    ) -> tuple[Type, Evaluate]:
        operands = []
        for side in (left, right):
            type_, evaluate = self.build(side, names)
            if type_ != NUMBER:
                raise ExpressionError(f"{ast.unparse(side)!r} is a {type_}, not a number")
            operands.append(evaluate)
        first, second = operands

        def compute(a: Any, b: Any) -> Any:
            if apply is operator.pow and (abs(b) > 64 or abs(a) > 64):
                raise OverflowError
            value = apply(a, b)
            if isinstance(value, complex) or not abs(value) <= LARGEST:  # or not a number
                raise OverflowError
            return value

        return NUMBER, lambda scope: strict(compute, first(scope), second(scope))

    def comparison(self, node: ast.Compare, names: Mapping[str, Kind]) -> tuple[Type, Evaluate]:
        sides = [self.build(each, names) for each in (node.left, *node.comparators)]
        steps = []
        for i, op in enumerate(node.ops):
            expression.check_comparison(sides[i][0], op, sides[i + 1][0], node)
            judge = _in_order if isinstance(op, _ORDER) and sides[i][0].base == "tuple" else strict
            steps.append((sides[i][1], judge, _COMPARE[type(op)], sides[i + 1][1]))
        if len(steps) == 1:
            first, judge, apply, second = steps[0]
            return BOOL, lambda scope: judge(apply, first(scope), second(scope))
        return BOOL, lambda scope: connective((judge(op, a(scope), b(scope)) for a, judge, op, b in steps), False)

    def length(self, node: ast.expr, names: Mapping[str, Kind]) -> tuple[Type, Evaluate]:
        type_, evaluate = self.build(node, names)
        if type_.base not in ("subjects", "tuple", "table"):
            raise ExpressionError(f"len({ast.unparse(node)}): it is a {type_}")
        return NUMBER, lambda scope: _length(evaluate(scope))

    def quantifier(self, decisive: bool, node: ast.GeneratorExp, names: Mapping[str, Kind]) -> tuple[Type, Evaluate]:
        match node.generators:
            case [ast.comprehension(target=ast.Name(id=variable), iter=over, ifs=ifs, is_async=0)]:
                pass
            case _:
                raise ExpressionError(f"{ast.unparse(node)!r}: only one 'for NAME in LINKS' is allowed")
        if variable in names or variable in self.constants:
            raise ExpressionError(f"{variable!r} already means something here")
        type_, links = self.build(over, names)
        if type_.base != "subjects" or type_.kind is None:
            raise ExpressionError(f"{ast.unparse(over)!r} is a {type_}; any and all range over linked subjects")
        inner_names = {**names, variable: type_.kind}
        filters = [self.condition(each, inner_names) for each in ifs]
        body = self.condition(node.elt, inner_names)

        def of_each(scope: Scope, subjects: tuple[Any, ...]) -> Iterator[Judged]:
            for subject in subjects:
                if spent := scope.budget.one_more():
                    yield spent
                    return
                scope.names[variable] = subject
                # "x for y if f": any asks "f and x", all asks "not f or x"
                parts = [each(scope) if decisive else negation(each(scope)) for each in filters]
                yield connective([*parts, body(scope)], not decisive) if parts else body(scope)

        def left_out(scope: Scope, subjects: tuple[Any, ...]) -> Iterator[bool]:
            for subject in subjects:
                scope.names[variable] = subject
                yield any(isinstance(f := each(scope), Known) and f.value is False for each in filters)

        def nothing(scope: Scope, why: str) -> Unknown:
            scope.read[""] = None  # the reason names who was asked
            return unknown(f"{scope.root}: {why.format(ast.unparse(over))}, so nothing was seen")

        def evaluate(scope: Scope) -> Judged:
            found = links(scope)
            if isinstance(found, Unknown):
                return found
            assert isinstance(found.value, tuple)
            if not found.value and decisive and type_.none_tells:
                return Known(False, found.evidence)
            if not found.value:
                return nothing(scope, "there are no {}")
            if filters and not decisive and all(left_out(scope, found.value)):
                return nothing(scope, "none of {} is one that counts")
            return connective(of_each(scope, found.value), decisive)

        return BOOL, evaluate


def _sane(value: bool | int | float | str) -> None:
    if isinstance(value, int | float) and not abs(value) <= LARGEST:
        raise ExpressionError("a number is too large")


def _in_order(apply: Callable[[Any, Any], Any], left: Judged, right: Judged) -> Judged:
    """Which of two versions comes first: what is no release is neither before nor after one that is near."""
    match left, right:
        case Known(tuple() as one), Known(tuple() as other) if why := releases.untold(one, other):
            return unknown(why, releases.REMEDY)
    return strict(apply, left, right)


def _length(links: Judged) -> Judged:
    if isinstance(links, Unknown):
        return links
    assert isinstance(links.value, tuple)
    return Known(len(links.value), links.evidence)
