"""Where a module can be made wrong by one small change, and how."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

OTHER: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


class Site(NamedTuple):
    """One change. place: of the node in the order of ast.walk(); way: which of its changes; was, now: in the source."""

    path: Path
    line: int
    place: int
    way: int
    was: str
    now: str

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line}: {self.was}  ->  {self.now}"

    def made(self) -> ast.Module:
        """The module with this change."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        node = list(ast.walk(tree))[self.place]
        _, changed = list(_ways(node))[self.way]
        replaced = _Replaced(node, changed).visit(tree)
        assert isinstance(replaced, ast.Module)
        return ast.fix_missing_locations(replaced)


class _Replaced(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self.old:
            return ast.copy_location(self.new, node)
        return self.generic_visit(node)


def sites(path: Path) -> Iterator[Site]:
    """Every change that can be made to a module. Annotations, words and what is imported for types are left alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {id(inner) for node in ast.walk(tree) for part in _words(node) for inner in ast.walk(part)}
    for place, node in enumerate(ast.walk(tree)):
        if id(node) not in skipped and hasattr(node, "lineno"):
            for way, (was, changed) in enumerate(_ways(node)):
                now = ast.unparse(ast.fix_missing_locations(ast.copy_location(changed, node)))
                yield Site(path, node.lineno, place, way, _brief(was), _brief(now))


def _brief(source: str) -> str:
    line = " ".join(source.split())
    return line if len(line) <= 90 else f"{line[:60]} ... {line[-25:]}"


def _words(node: ast.AST) -> Iterator[ast.AST]:
    """Parts of a node that say nothing to a machine."""
    match node:
        case ast.AnnAssign(annotation=part) | ast.arg(annotation=ast.expr() as part):
            yield part
        case ast.FunctionDef(returns=part):
            if part:
                yield part
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Raise() | ast.Assert():
            yield node
        case ast.keyword(arg="strict", value=part):  # of zip(): an assertion
            yield part


def _ways(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """(as it was, the node that takes its place) of each change of one node."""
    was = ast.unparse(node) if isinstance(node, ast.expr | ast.Return) else ""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=comparators) if type(op) in OTHER:
            yield was, ast.Compare(left, [OTHER[type(op)]()], comparators)
        case ast.BoolOp(op=op, values=values):
            yield was, ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield was, operand
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield was, ast.IfExp(test, orelse, body)
        case ast.Constant(value=bool() as value):
            yield was, ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield was, ast.Constant(value + 1)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            yield was, ast.BinOp(left, ast.Sub() if isinstance(op, ast.Add) else ast.Add(), right)
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield was, ast.Return(ast.Constant(None))
        case ast.If(test=test, body=body, orelse=orelse):
            yield f"if {ast.unparse(test)}", ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.While(test=test, body=body, orelse=orelse):
            yield f"while {ast.unparse(test)}", ast.While(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp():
            yield from _unfiltered(node, was)


def _unfiltered(
    node: ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp, was: str
) -> Iterator[tuple[str, ast.AST]]:
    """A comprehension without each of its conditions."""
    for at, one in enumerate(node.generators):
        for which in range(len(one.ifs)):
            fewer = ast.comprehension(
                one.target, one.iter, [each for i, each in enumerate(one.ifs) if i != which], one.is_async
            )
            generators = [fewer if i == at else each for i, each in enumerate(node.generators)]
            match node:
                case ast.DictComp(key=key, value=value):
                    yield was, ast.DictComp(key, value, generators)
                case _:
                    yield was, type(node)(node.elt, generators)
