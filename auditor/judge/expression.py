"""Rule expressions: a part of Python's grammar, with Kleene's third truth value.

The result is a fact: Known with the evidence that decided it, or Unknown with the reasons. Over nothing ``all`` and
``any`` are unknown; but ``any`` over links of which "there are none" is an answer (``none_tells``) is False.

Types are checked at load: a misspelt fact, or a word that a fact can never be, is an error there.

A rule may come from anybody (``--rules DIR``), so it is bounded. Too long or too deeply nested is an error of the rule;
too large a number or too many steps through links is unknown.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from auditor.data import releases
from auditor.facts import HOST, Evidence, Facts, Judged, Kind, Known, Reason, Spec, Subject, Unknown, unknown
from auditor.text import often, quoted

LARGEST = 2**128  # magnitude of a number
STEPS = 1_000_000  # linked subjects that one rule may look at, over all subjects that it judges


class Budget:
    """What is left of STEPS; shared by all that one rule judges."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = STEPS

    def one_more(self) -> Unknown | None:
        """Take one step, or say why there is none left."""
        self.left -= 1
        return unknown(f"the rule goes through more than {STEPS} subjects") if self.left < 0 else None


class Scope:
    """root: the subject that is judged. read: names of its facts that were read, and "" when its name was; with the
    values of these facts they determine the result."""

    __slots__ = ("budget", "facts", "names", "read", "root")

    def __init__(self, facts: Facts, root: Subject, budget: Budget | None = None) -> None:
        self.facts = facts
        self.budget = budget or Budget()
        self.root = root
        self.names: dict[str, Subject] = {"host": HOST, root.kind: root}
        self.read: dict[str, None] = {}


Evaluate = Callable[[Scope], Judged]


class Expression(NamedTuple):
    """A compiled expression."""

    source: str
    type: Type
    evaluate: Evaluate


def fact(subject: Subject, name: str, scope: Scope) -> Judged:
    """A fact of a subject, as seen from the one that is judged."""
    found = scope.facts.get(subject, name)
    if subject == scope.root:
        scope.read[name] = None
        return found
    return found if isinstance(found, Unknown) else bind(found, subject)


def subject_of(scope: Scope, name: str) -> Known:
    subject = scope.names[name]
    if subject == scope.root:
        scope.read[""] = None
    return Known(subject, ())


def bind(found: Known, subject: Subject) -> Known:
    """The same value as seen from another subject: its evidence says whose it is."""
    return Known(
        found.value,
        tuple(
            Evidence(
                each.text if subject == HOST or not each.text else f"{subject}: {each.text}",
                each.command.replace("{subject}", quoted(subject.name)),
                each.origin,
            )
            for each in found.evidence
        ),
    )


# Kleene's strong connectives on facts, with the evidence or the reasons of what decided.
#
# ``False and unknown`` is False, ``True or unknown`` is True; everything else that depends on an unknown is unknown, with all
# the reasons. (S. C. Kleene, Introduction to Metamathematics, section 64)


def connective(operands: Iterable[Judged], decisive: bool) -> Judged:
    """``or`` (decisive True), ``and`` (decisive False): what follows a decisive operand is not evaluated."""
    unknowns: list[Unknown] = []
    evidence: list[Evidence] = []
    for operand in operands:
        if isinstance(operand, Unknown):
            unknowns.append(operand)
        elif operand.value is decisive:
            return operand
        else:
            evidence.extend(operand.evidence)
    return Unknown.join(unknowns) if unknowns else Known(not decisive, tuple(dict.fromkeys(evidence)))


def negation(operand: Judged) -> Judged:
    return operand if isinstance(operand, Unknown) else Known(not operand.value, operand.evidence)


def strict(apply: Callable[[Any, Any], Any], left: Judged, right: Judged) -> Judged:
    """An operation that needs both operands."""
    if isinstance(left, Unknown):
        return Unknown.join([left, right]) if isinstance(right, Unknown) else left
    if isinstance(right, Unknown):
        return right
    try:
        value = apply(left.value, right.value)
    except (ZeroDivisionError, OverflowError, ValueError):
        return Unknown((Reason(f"no number comes of {left.value} and {right.value}"),))
    except TypeError:  # a word in a tuple of numbers, or a number looked for in a text
        return Unknown((Reason(f"{left.value} and {right.value} cannot be compared"),))
    return Known(value, left.evidence + right.evidence)


# Types of the rule language: what is misspelt, or compared with what it can never be, is an error when a rule is loaded.


class ExpressionError(ValueError):
    """An expression that is not of the language, or that asks for a fact that nobody provides."""


class Type(NamedTuple):
    """base: bool, number, str, tuple, subject or subjects. values: of a closed set of words. kind: of subjects.
    none_tells: of subjects, that there are none is an answer. tallied: of a tuple, its texts are NAME=TIMES."""

    base: str
    values: tuple[str, ...] = ()
    kind: Kind | None = None
    none_tells: bool = False
    tallied: bool = False

    def __str__(self) -> str:
        return f"{self.base} of kind {self.kind}" if self.kind else self.base


BOOL, NUMBER, STR, TUPLE = Type("bool"), Type("number"), Type("str"), Type("tuple")


def of_constant(value: bool | int | float | str) -> Type:
    if isinstance(value, bool):
        return BOOL
    return Type("str", (value,)) if isinstance(value, str) else NUMBER


def of_fact(spec: Spec) -> Type:
    if spec.type is Subject:
        return Type("subjects" if spec.many else "subject", kind=spec.kind, none_tells=spec.none_tells)
    if spec.type is str:
        return Type("str", ("", *spec.values) if spec.values else ())
    if spec.row:
        return Type("table")
    if spec.tallied:
        return Type("tuple", tallied=True)
    return {bool: BOOL, int: NUMBER, float: NUMBER, tuple: TUPLE}[spec.type]


def check_comparison(left: Type, op: ast.cmpop, right: Type, node: ast.Compare) -> None:
    """Same types only; words against the closed set of the fact; order only for numbers and versions."""
    if isinstance(op, ast.Is | ast.IsNot):
        raise ExpressionError(f"{ast.unparse(node)!r}: 'is' is not part of the rule language")
    if isinstance(op, ast.In | ast.NotIn):
        if right.base not in ("tuple", "str") or left.base not in ("str", "number"):
            raise ExpressionError(f"{ast.unparse(node)!r}: cannot look for a {left} in a {right}")
        closed, asked = left, right
    else:
        if left.base != right.base or (left.base in ("subject", "subjects") and left.kind != right.kind):
            raise ExpressionError(f"{ast.unparse(node)!r} compares a {left} with a {right}")
        if not isinstance(op, ast.Eq | ast.NotEq) and left.base not in ("number", "tuple"):
            raise ExpressionError(f"{ast.unparse(node)!r}: a {left} cannot be ordered")
        closed, asked = (left, right) if left.values[:1] == ("",) else (right, left)
    if closed.values[:1] == ("",) and closed.base == "str":
        wrong = [value for value in asked.values if value not in closed.values]
        if wrong:
            raise ExpressionError(
                f"{ast.unparse(node)!r}: {wrong[0]!r} is not a possible value; it is one of {', '.join(closed.values[1:])}"
            )


# The compiler of expressions.


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
    """An expression that is compiled when it is first asked for: most rules pass, and need neither words nor
    severities. Only for rules that their tests have compiled whole: errors come out late."""
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
                return of_constant(value), lambda scope: constant
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
            return of_fact(spec), lambda scope: fact(scope.names[of], name, scope)

        def evaluate(scope: Scope) -> Judged:
            subject = evaluate_base(scope)
            if isinstance(subject, Unknown):
                return subject
            assert isinstance(subject.value, Subject)
            return fact(subject.value, name, scope)

        return of_fact(spec), evaluate

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
            check_comparison(sides[i][0], op, sides[i + 1][0], node)
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
