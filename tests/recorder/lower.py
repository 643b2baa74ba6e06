"""A module of Python 3.11 as one that Python 3.6 reads and that means the same: ``lowered(source)``.

Types are left out; ``match`` becomes ``if``; a variable that an expression sets (``:=``) becomes a cell; what came to the
standard library since is taken from ``older``. What has no rule here and is newer than 3.6 is an error when the recorder is
built, or fails under an old Python in its tests: nothing is left to chance on somebody's host.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

OLDER = "auditor.older"
# from a module, what is taken from ``older`` in its place; as an attribute, the same
IMPORTED = {
    "functools": {"cache", "cached_property"},
    "dataclasses": {"dataclass", "field", "replace"},
    "queue": {"SimpleQueue"},
}
ATTRIBUTES = {
    "os.scandir": "scanned",
    "os.memfd_create": "memfd_create",
    "os.MFD_CLOEXEC": "MFD_CLOEXEC",
    "os.path.realpath": "real_path",
    "time.time_ns": "time_ns",
    "time.clock_gettime_ns": "clock_gettime_ns",
    "time.CLOCK_BOOTTIME": "CLOCK_BOOTTIME",
    "gzip.BadGzipFile": "BadGzipFile",
    "signal.set_wakeup_fd": "set_wakeup_fd",
}
MODULES = {"re"}  # that ``older`` has as a whole
METHODS = {"removeprefix": "without_prefix", "removesuffix": "without_suffix", "isascii": "is_ascii"}
# of typing, what an expression names that is evaluated
TYPING = {"NamedTuple", "TypeVar", "cast", "TYPE_CHECKING", "Any", "BinaryIO"}
FUTURE = "from __future__ import annotations\n"


def lowered(source: str, name: str, *, alone: bool = False) -> str:
    """name: of the module, for an error. alone: it may import nothing of ours, and brings with it what it needs."""
    tree = ast.parse(source)
    used = set[str]()
    for step in (_Types(), _Matches(used), _Newer(used), _Texts()):
        tree = step.visit(tree)
    _cells(tree, used, name)
    if own := used & {*_named(tree)}:
        raise ValueError(f"{name}: its own {', '.join(sorted(own))} would hide what is taken from older")
    if used:
        tree.body[_after_docstring(tree) : _after_docstring(tree)] = _brought(used) if alone else [_imported(used)]
    text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    ast.parse(text, name, feature_version=(3, 6))
    return text


def _named(tree: ast.Module) -> Iterator[str]:
    """All names that a module gives to anything."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id, ast.Store()) | ast.arg(id) | ast.FunctionDef(id) | ast.ClassDef(id):
                yield id
            case ast.alias(name, asname):
                yield asname or name.partition(".")[0]


def older() -> str:
    """The text of ``older``, which needs no more than to be without types and f-strings."""
    tree = _Texts().visit(_Types().visit(ast.parse(Path(__file__).with_name("older.py").read_text())))
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _imported(used: set[str]) -> ast.stmt:
    return ast.ImportFrom(OLDER, [ast.alias(each) for each in sorted(used)], 0)


def _brought(used: set[str]) -> list[ast.stmt]:
    """The definitions themselves."""
    whole = ast.parse(older())
    imports = [each for each in whole.body if isinstance(each, ast.Import | ast.ImportFrom)]
    named: dict[str, ast.stmt] = {}
    for each in whole.body:
        if isinstance(each, ast.ClassDef | ast.FunctionDef):
            named[each.name] = each
        elif isinstance(each, ast.Assign):
            named |= {ast.unparse(target): each for target in each.targets}
    wanted, todo = set[str](), sorted(used)
    while todo:
        wanted.add(one := todo.pop())
        inside = {each.id for each in ast.walk(named[one]) if isinstance(each, ast.Name)} & set(named)
        todo += sorted(inside - wanted)
    kept = [each for name, each in named.items() if name in wanted]
    needed = {each.id for part in kept for each in ast.walk(part) if isinstance(each, ast.Name)}
    return [
        *(each for each in imports if {one.asname or one.name.partition(".")[0] for one in each.names} & needed),
        *kept,
    ]


def _after_docstring(node: Any) -> int:
    return int(ast.get_docstring(node, clean=False) is not None)


def _call(name: str, *words: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(words), [])


# -- types ----------------------------------------------------------------------------------------------------------------


class _Types(ast.NodeTransformer):
    """Without annotations, but for the names of fields; without type parameters."""

    def __init__(self) -> None:
        self._generic = {"dict", "list", "set", "tuple", "frozenset", "type"}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if node.module == "__future__":
            return None
        if node.module in ("typing", "collections.abc", "collections", "queue", "types"):
            self._generic |= {each.asname or each.name for each in node.names}
        if node.module == "typing":
            gone = [each.name for each in node.names if each.name not in TYPING]
            node.names = [each for each in node.names if each.name in TYPING]
            nothing = [ast.Assign([ast.Name(each, ast.Store())], ast.Constant(None)) for each in gone]
            return [*([node] if node.names else []), *nothing]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        node.args.args = [*node.args.posonlyargs, *node.args.args]
        node.args.posonlyargs = []
        for each in (*node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg):
            if each:
                each.annotation = None
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        fields = {"NamedTuple"} & {ast.unparse(each) for each in node.bases} or any(
            ast.unparse(each).startswith("dataclass") for each in node.decorator_list
        )
        node.bases = [each for each in node.bases if ast.unparse(each).partition("[")[0] not in ("Generic", "Protocol")]
        node.body = [
            ast.AnnAssign(each.target, ast.Name("object", ast.Load()), each.value, each.simple)
            if fields and isinstance(each, ast.AnnAssign)
            else each
            for each in node.body
        ]
        kept = {id(each) for each in node.body if fields and isinstance(each, ast.AnnAssign)}
        node.body = list(
            chain.from_iterable([each] if id(each) in kept else self._several(self.visit(each)) for each in node.body)
        ) or [ast.Pass()]
        node.bases = [self.visit(each) for each in node.bases]
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        return node

    @staticmethod
    def _several(found: Any) -> list[Any]:
        return found if isinstance(found, list) else [found] if found else []

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        return self.generic_visit(ast.Assign([node.target], node.value)) if node.value else None

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id in self._generic and isinstance(node.ctx, ast.Load):
            return node.value
        return self.generic_visit(node)


# -- match ----------------------------------------------------------------------------------------------------------------


class _Matches(ast.NodeTransformer):
    """``match`` as ``if``, whose conditions set the names of the patterns."""

    BUILTIN = frozenset(
        {"bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple"}
    )

    def __init__(self, used: set[str]) -> None:
        self._used, self._count = used, 0

    def visit_Match(self, node: ast.Match) -> Any:
        self.generic_visit(node)
        self._count += 1
        subject = f"_matched{self._count}"
        cases: list[ast.stmt] = []
        for case in reversed(node.cases):
            condition = list(self._tests(case.pattern, ast.Name(subject, ast.Load())))
            condition += [case.guard] if case.guard else []
            if condition:
                test = condition[0] if len(condition) == 1 else ast.BoolOp(ast.And(), condition)
                cases = [ast.If(test, case.body, cases)]
            else:
                cases = case.body
        return [ast.Assign([ast.Name(subject, ast.Store())], node.subject), *cases]

    def _tests(self, pattern: ast.pattern, value: ast.expr) -> Iterator[ast.expr]:
        """Conditions that hold one after the other where the pattern matches."""
        match pattern:
            case ast.MatchAs(None, None):
                return
            case ast.MatchAs(inner, name):
                if inner:
                    yield from self._tests(inner, value)
                assert name
                yield self._set(name, value)
            case ast.MatchValue(wanted):
                yield ast.Compare(value, [ast.Eq()], [wanted])
            case ast.MatchSingleton(wanted):
                yield ast.Compare(value, [ast.Is()], [ast.Constant(wanted)])
            case ast.MatchOr(patterns):
                ways = [list(self._tests(each, value)) for each in patterns]
                yield ast.BoolOp(ast.Or(), [w[0] if len(w) == 1 else ast.BoolOp(ast.And(), w) for w in ways])
            case ast.MatchClass(kind, positional, names, patterns):
                yield _call("isinstance", value, kind)
                if positional and ast.unparse(kind) in self.BUILTIN:
                    yield from self._tests(positional[0], value)
                else:  # a NamedTuple
                    for number, each in enumerate(positional):
                        yield from self._tests(each, ast.Subscript(value, ast.Constant(number), ast.Load()))
                for name, each in zip(names, patterns, strict=True):
                    yield from self._tests(each, ast.Attribute(value, name, ast.Load()))
            case ast.MatchSequence(patterns):
                yield from self._sequence(patterns, value)
            case _:
                raise ValueError(f"no rule for {ast.unparse(pattern)}")

    def _sequence(self, patterns: list[ast.pattern], value: ast.expr) -> Iterator[ast.expr]:
        self._used.add("is_sequence")
        yield _call("is_sequence", value)
        star = next((n for n, each in enumerate(patterns) if isinstance(each, ast.MatchStar)), None)
        size = ast.Constant(len(patterns) - (star is not None))
        yield ast.Compare(_call("len", value), [ast.Eq() if star is None else ast.GtE()], [size])
        for number, each in enumerate(patterns):
            behind = len(patterns) - number - 1
            if isinstance(each, ast.MatchStar):
                end = ast.UnaryOp(ast.USub(), ast.Constant(behind)) if behind else None
                if each.name:
                    rest = ast.Subscript(value, ast.Slice(ast.Constant(number), end), ast.Load())
                    yield self._set(each.name, _call("list", rest))
                continue
            at = ast.Constant(number) if star is None or number < star else ast.Constant(-behind - 1)
            yield from self._tests(each, ast.Subscript(value, at, ast.Load()))

    @staticmethod
    def _set(name: str, value: ast.expr) -> ast.expr:
        """A condition that is true and sets the name."""
        return ast.Tuple([ast.NamedExpr(ast.Name(name, ast.Store()), value)], ast.Load())


# -- what came since ------------------------------------------------------------------------------------------------------


class _Newer(ast.NodeTransformer):
    """What the standard library and the operators could not do yet."""

    def __init__(self, used: set[str]) -> None:
        self._used = used

    def _older(self, name: str) -> ast.Name:
        self._used.add(name)
        return ast.Name(name, ast.Load())

    def visit_Import(self, node: ast.Import) -> Any:
        for each in node.names:
            if each.name in MODULES and not each.asname:
                self._older(each.name)
        node.names = [each for each in node.names if each.name not in MODULES or each.asname]
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        newer = IMPORTED.get(node.module or "", set())
        for each in node.names:
            if each.name in newer:
                self._older(each.name)
        node.names = [each for each in node.names if each.name not in newer]
        return node if node.names else None

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if name := ATTRIBUTES.get(ast.unparse(node)):
            return self._older(name)
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        return ast.Call(self._older("either"), [node.left, node.right], []) if isinstance(node.op, ast.BitOr) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if not isinstance(node.op, ast.BitOr):
            return node
        target = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.Assign([node.target], ast.Call(self._older("grown"), [target, node.value], []))

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and (name := METHODS.get(node.func.attr)):
            return ast.Call(self._older(name), [node.func.value, *node.args], [])
        if isinstance(node.func, ast.Name) and node.func.id == "zip":
            strict = any(each.arg == "strict" and ast.unparse(each.value) == "True" for each in node.keywords)
            return ast.Call(self._older("in_step") if strict else node.func, node.args, [])
        return node

    def visit_Constant(self, node: ast.Constant) -> Any:
        """A script for another Python begins with a line of this kind."""
        if isinstance(node.value, str) and node.value.startswith(FUTURE):
            return ast.Constant("#\n" + node.value.removeprefix(FUTURE))
        return node


class _Texts(ast.NodeTransformer):
    """f-strings as format(): what stands in their braces is a matter of the Python that reads them."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        words: list[ast.expr] = []
        text = self._text(node, words)
        return ast.Call(ast.Attribute(ast.Constant(text), "format", ast.Load()), words, [])

    def _text(self, node: ast.JoinedStr, words: list[ast.expr]) -> str:
        text = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                text += str(part.value).replace("{", "{{").replace("}", "}}")
                continue
            assert isinstance(part, ast.FormattedValue)
            words.append(self.visit(part.value))
            how = f"!{chr(part.conversion)}" if part.conversion >= 0 else ""
            spec = self._text(part.format_spec, words) if isinstance(part.format_spec, ast.JoinedStr) else ""
            text += f"{{{how}{':' + spec if spec else ''}}}"
        return text


# -- := -------------------------------------------------------------------------------------------------------------------

_SCOPES = ast.FunctionDef | ast.Lambda
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def _cells(tree: ast.Module, used: set[str], name: str) -> None:
    """Each variable that an expression sets becomes a Cell, in the function whose variable it is."""
    for scope in [tree, *(each for each in ast.walk(tree) if isinstance(each, _SCOPES))]:
        names = {each.target.id for each in _own(scope) if isinstance(each, ast.NamedExpr)}
        if not names:
            continue
        used.add("Cell")
        rewriter = _Cells(names, name)
        if isinstance(scope, ast.Lambda):  # a second one inside, whose parameters they are
            body = rewriter.visit(scope.body)
            empty = [ast.arg(each) for each in sorted(names)]
            inner = ast.Lambda(ast.arguments([], empty, None, [], [], None, []), body)
            scope.body = ast.Call(inner, [_call("Cell") for _ in names], [])
            continue
        parameters = [each.arg for each in ast.walk(getattr(scope, "args", tree)) if isinstance(each, ast.arg)]
        scope.body = [rewriter.visit(each) for each in scope.body]
        at = _after_docstring(scope)
        scope.body[at:at] = [_cell(each, each in parameters) for each in sorted(names)]


def _cell(name: str, parameter: bool) -> ast.stmt:
    """The variable as a cell, with what was given for it."""
    given = [ast.Name(name, ast.Load())] if parameter else []
    return ast.Assign([ast.Name(name, ast.Store())], _call("Cell", *given))


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, those in its comprehensions too, without those of functions in it."""
    todo = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, _SCOPES):
            todo += ast.iter_child_nodes(node)


class _Cells(ast.NodeTransformer):
    """Puts the cells in the place of these names."""

    def __init__(self, names: set[str], where: str) -> None:
        self._names, self._where = names, where

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id not in self._names:
            return node
        return ast.Attribute(ast.Name(node.id, ast.Load()), "v", node.ctx)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        value = self.visit(node.value)
        if node.target.id not in self._names:  # of a function inside
            return ast.NamedExpr(node.target, value)
        return ast.Call(ast.Attribute(ast.Name(node.target.id, ast.Load()), "set", ast.Load()), [value], [])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if node.name in self._names:
            raise ValueError(f"{self._where}: {node.name} is a function and set by :=")
        return self._inner(node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return self._inner(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        if node.name in self._names:
            raise ValueError(f"{self._where}: {node.name} is an error and set by :=")
        return self.generic_visit(node)

    def _inner(self, node: Any) -> Any:
        """A function in the scope: names that it sets itself are its own."""
        own = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        own |= {each.id for each in _own(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        own -= set(chain.from_iterable(each.names for each in _own(node) if isinstance(each, ast.Nonlocal)))
        return _Cells(self._names - own, self._where).generic_visit(node)

    def visit_ListComp(self, node: Any) -> Any:
        own = {
            each.id for part in node.generators for each in ast.walk(part.target) if isinstance(each, ast.Name)
        } & self._names
        return _Cells(self._names - own, self._where).generic_visit(node) if own else self.generic_visit(node)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp
