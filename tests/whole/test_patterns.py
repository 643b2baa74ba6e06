"""No pattern of zaudit can be made slow by what it is given: of every regular expression in the code, found by reading the
code, twice as long a hostile string does not take four times the steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from auditor.data import drives
from auditor.databases import redis, servers
from auditor.host.process import branches
from auditor.recording import identities
from auditor.sources import kernel_log, zpool_history, zpool_status
from auditor.sources.source import Source
from tests.backtracking import Machine, TooMany, example, hostile, worse
from tests.folded import for_each
from tests.pattern_syntax import UnknownSyntax, parse

ROOT = Path(__file__).parents[2]
METHODS = {"match": "match", "fullmatch": "fullmatch", "search": "search"} | dict.fromkeys(
    ("sub", "subn", "split", "findall", "finditer"), "finditer"
)


class Pattern(NamedTuple):
    """One regular expression, where it stands, and how it is used (see Machine.count)."""

    module: str
    where: str
    pattern: str | bytes
    flags: int
    how: str


PATHS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "auditor").rglob("*.py"))
    if path.name != "__main__.py"
}


@cache
def code() -> dict[str, tuple[ast.Module, dict[str, Any]]]:
    """Name of a module -> (its code, its names)."""
    return {name: (ast.parse(path.read_text()), vars(import_module(name))) for name, path in PATHS.items()}


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """(function, call) of everything that is called of re."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=attr)) if attr in {"compile", *METHODS}:
                yield attr, node


@cache
def methods_of(module: str) -> dict[str, set[str]]:
    """name -> how a module uses the pattern that is called so; each tree is walked once."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(code()[module][0]):
        match node:
            case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr=attr) if attr in METHODS:
                found.setdefault(name, set()).add(METHODS[attr])
    return found


def uses(module: str, name: str) -> set[str]:
    """How a pattern is used: a private one in its own module, another one anywhere."""
    modules = [module] if name.startswith("_") else PATHS
    return {how for each in modules for how in methods_of(each).get(name, ())}


def inside(value: Any, depth: int = 4) -> Iterator[re.Pattern[Any]]:
    """The patterns in a table."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, Source):
        yield from inside(value.runs, depth - 1)
    elif isinstance(value, dict | tuple | list | frozenset | set) and depth:
        for each in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from inside(each, depth - 1)


def named() -> Iterator[Pattern]:
    """Those that a module keeps, alone or in a table."""
    for module, (_, names) in code().items():
        for name, value in names.items():
            for each in inside(value) if not name.startswith("__") else ():
                used = uses(module, name) if value is each else {"finditer"}
                yield from (
                    Pattern(module, f"{module}.{name}", each.pattern, each.flags, how) for how in used or {"finditer"}
                )


def written() -> Iterator[Pattern]:
    """Those that are written where they are used. Raises NameError for one that is made there of what is not known here."""
    for module, (tree, names) in code().items():
        for attr, call in calls(tree):
            source = ast.unparse(call.args[0])
            made: list[dict[str, Any]] = next(
                (locals for (of, part), locals in MADE.items() if of == module and part in source), [{}]
            )
            if attr == "compile" and made == [{}]:
                continue  # kept under a name or in a table
            given = [*call.args[2 if attr == "compile" else 1 :], *(each.value for each in call.keywords)]
            flags = sum(int(eval(text, {"re": re})) for each in given if (text := ast.unparse(each)).startswith("re."))
            for local in made:
                pattern = eval(source, {**names, **local})
                yield Pattern(module, f"{module}:{call.lineno}", pattern, flags, METHODS.get(attr, "finditer"))


VALUES = [b"LABNVME0", b"S3Z8NB0K", b"aaaaaaaaaaaaaaaaaaaaaaaaa"]
# what a pattern is made of where it is used: one way of each, or all there are
MADE: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("auditor.model.release", "{number}"): [{"number": "12345"}],
    ("auditor.data.drives", "self.models"): [
        {"self": each} for each in drives.load_providers().values() if each.models
    ],
    ("auditor.sources.zpool_status", "pattern"): [{"pattern": each[0]} for each in zpool_status._SCANS],
    ("auditor.sources.zpool_status", "{extra}"): [{"extra": 0}, {"extra": 3}],
    ("auditor.sources.zpool_history", "commands"): [{"commands": "import|clear"}],
    ("auditor.sources.kernel_log", "{HEAD}{pattern}"): [
        {"pattern": each}
        for name, lines in vars(kernel_log).items()
        if name.endswith("_LINES")
        for each in lines.values()
    ],
    ("auditor.sources.machine", "{title}"): [{"title": "Memory Device"}],
    ("auditor.databases.redis", "_start(engine)"): [{"engine": each} for each in redis.FAMILY],
    ("auditor.verify.fio", "{flag}"): [{"flag": "O_DSYNC"}],
    ("auditor.host.process", "each.encode()"): [
        {"each": each}
        for keep in (
            kernel_log.KEEP,
            zpool_history.KEEP,
            zpool_history.ALL_EVENTS_KEEP,
            *map(redis.unit_lines, redis.FAMILY),
            servers.KEEP,
        )
        for each in branches(keep)
    ],
    # our own tables, of models that a drive may say of itself
    ("auditor.data.drives", "pattern"): [
        {"pattern": pattern}
        for pattern in (
            *(each.pattern for each in drives.load()),
            *(pattern for each in drives.load_firmware() for pattern in (each.model, each.firmware)),
            *(each.model for each in drives.load_shingled()),
        )
    ],
    # what was found in a recording, escaped, between two ends
    ("auditor.recording.identities", "any_of(ways)"): [{"ways": VALUES}],
    ("auditor.recording.identities", "any_of(long_enough)"): [{"long_enough": VALUES}],
    ("auditor.recording.identities", "each.replace"): [{"each": each, "word": b"db1"} for each in identities._ORDINARY],
    ("auditor.recording.identities", "any_of(each)"): [{"frame": b"(?<!%s)%%s" % rb"\d", "each": VALUES}],
    ("auditor.recording.identities", "for each in passes"): [{"passes": [re.compile(b"LAB|NVME")]}],
}


@cache
def patterns() -> tuple[Pattern, ...]:
    """Each once."""
    return tuple({each[2:]: each for each in (*named(), *written())}.values())


@pytest.mark.slow
@for_each("module", PATHS)
def test_twice_as_long_does_not_take_four_times_the_steps(module: str) -> None:
    for each in patterns():
        if each.module == module:
            found = worse(each.pattern, each.flags, each.how)
            assert found is None, f"{each}: {found.times:.1f} times the steps on {found.string}"


@pytest.mark.slow
def test_patterns_of_every_kind_are_found() -> None:
    hows = {each.how for each in patterns()}
    assert hows == set(METHODS.values())
    assert len(patterns()) > 200
    assert {each.module for each in patterns()} <= PATHS.keys()
    wheres = {each.where for each in patterns()}
    assert {"auditor.sources.zpool_history._KINDS"} <= wheres


# -- the counter itself ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "how"),
    [
        (r"(--?[\w-]*(?:pass|auth|secret|token|cred|key)[\w-]*=).+", "finditer"),
        (r"\s+#.*", "finditer"),
        (r"\s++#", "search"),
        (r"(?m)^\s*\{", "search"),
        (r"(a+)+b", "match"),
        (r"(?:a|a)*b", "match"),
        (r"(x+x+)+y", "search"),
        (r"\s+([A-Za-z][^:]*): +(.*?)\s*", "fullmatch"),
        (r"a*b", "search"),
        (r"\(.*\)$", "search"),
    ],
)
def test_patterns_that_are_known_to_be_slow(pattern: str, how: str) -> None:
    assert worse(pattern, 0, how) is not None


@pytest.mark.parametrize(
    ("pattern", "how"),
    [
        (r"a*b", "match"),
        (r"(?>a+)+b", "match"),
        (r"[a-z]++[0-9]", "match"),
        (r"(?m)^[^\S\n]*+\{", "search"),
        (r"(?<!\s)\s++#", "search"),
        (r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}", "fullmatch"),
        (r'"(?:[^"\\]|\\.)*"', "match"),
    ],
)
def test_patterns_that_are_known_to_be_quick(pattern: str, how: str) -> None:
    assert worse(pattern, 0, how) is None


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(a|ab)(c|bcd)(d*)", "abcd"),
        (r"(?i)x(?P<q>['\"])(.*?)(?P=q)y", "X'a\"b'Y"),
        (r"a{2,3}?b|a{2,3}+a", "aaaa"),
        (r"(?<=b)c(?!d)|(?<!b)c\b", "abcd c"),
        (r"(?m)^\w+$\Z", "one\ntwo"),
        (r"(?:\d+\.)*\d+[^\d.]", "1.22.333x"),
        (rb"[\x80-\xff]+(?>a|ab)c", "\xe9\xe9abc\xe9ac"),
    ],
)
def test_the_counter_matches_as_re_does(pattern: str | bytes, text: str) -> None:
    assert differences(pattern, 0, [text]) == []


def differences(pattern: str | bytes, flags: int, texts: Iterable[str]) -> list[tuple[str, int]]:
    """Where the counter ends another match than re does."""
    machine, real, found = Machine(pattern, flags), re.compile(pattern, flags), []
    for text in texts:
        asked: Any = text.encode("latin-1") if isinstance(pattern, bytes) else text
        for at in range(len(text) + 1):
            machine.steps = 0
            match = real.match(asked, at)
            try:
                if machine.ends(text, at) != (match.end() if match else None):
                    found.append((text, at))
            except TooMany:
                continue
    return found


@pytest.mark.slow
def test_the_counter_matches_every_pattern_as_re_does() -> None:
    """On strings of its own parts: what was parsed is the pattern that re has."""
    matched = 0
    for each in patterns():
        machine = Machine(each.pattern, each.flags)
        texts = [start + pump * 3 + end for start, pump, end in islice(hostile(machine), 0, 400, 7)]
        texts.append(example(machine.tree.ways[0]))
        assert differences(each.pattern, each.flags, texts) == [], each
        matched += any(machine.ends(text, 0) for text in texts)
    assert matched > len(patterns()) / 2


@for_each(
    "pattern, flags",
    [
        *(
            (each, 0)
            for each in ("(?#x)a", "(a)(?(1)b|c)", r"a\z", r"\07", r"\N{BULLET}", "(?L:a)", "(?-i:a)", "a**", "^*", "(")
        ),
        *((each, 0) for each in ("(?=a)*", ")", "a(?i)", "*a", "(?<=a|bc)d", "[a", r"\10", r"(?i:a)(?x:b)", r"\Q")),
        ("a b", re.VERBOSE),
        ("a", re.LOCALE),
    ],
)
def test_what_the_counter_does_not_know_is_an_error(pattern: str, flags: int) -> None:
    with pytest.raises(UnknownSyntax):
        Machine(pattern, flags)


def test_the_parts_of_a_pattern() -> None:
    assert str(parse(r"(?:a|[^]b]{2,}?)++(?P<x>.)\1$")).count("Character(") == 3
    assert parse("a{,3}") == parse("a{0,3}")
    assert parse("a{x}") == parse(r"a\{x\}")
    assert parse("(?i)a") == parse("a", re.IGNORECASE)
    assert parse(b"a") == parse("a", re.ASCII)


def test_every_pattern_that_is_made_elsewhere_is_listed() -> None:
    sources = [(module, ast.unparse(call.args[0])) for module, (tree, _) in code().items() for _, call in calls(tree)]
    stray = [key for key in MADE if not any(of == key[0] and key[1] in source for of, source in sources)]
    assert stray == []
