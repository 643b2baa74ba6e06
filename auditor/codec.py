"""Named tuples as JSON and back, by their type hints: what a type gains, a file gains. Nothing is guessed or converted.

A record is an object with a member for each field, a tuple is a list, None is null; a type may spell itself
(to_plain(), from_plain(data, where)). A missing member, another type, or a number beyond 64 bits or not finite is one
:class:`CodecError` that says where. Members that a later release has added are ignored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from auditor import Stop
from auditor.text import VALUES, crowded, harmless

T = TypeVar("T")
W = TypeVar("W", bound=str)
MOST = 2**63 - 1
SCALARS = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}
MEMBER = "trial.json"  # of a recording; the schema tells a verification from a diagnosis


class CodecError(Stop, ValueError):
    """Data that does not have the shape of its type: one sentence, harmless to print, with the place."""


def plain(value: Any, spelt: Callable[[str], str] = str) -> Any:
    """Dictionaries, lists and scalars for json.dumps(). spelt: what becomes of each string."""
    match value:
        case str():
            return spelt(value)
        case tuple() if hasattr(value, "to_plain"):
            return value.to_plain()
        case tuple() if hasattr(value, "_fields"):
            return {name: plain(each, spelt) for name, each in zip(value._fields, value, strict=True)}
        case tuple() | list():
            return [plain(each, spelt) for each in value]
        case Mapping():
            return {spelt(key): plain(each, spelt) for key, each in value.items()}
        case _:
            return value


class Reading(NamedTuple):
    """lenient: fields with a default may be missing, as in older releases. text: what becomes of each text."""

    lenient: bool = False
    text: Callable[[str], str] = str


EXACT, LENIENT, OF_ANY_RELEASE = Reading(), Reading(lenient=True), Reading(lenient=True, text=harmless)


def load(kind: type[T], data: Any, where: str = "", how: Reading = EXACT) -> T:
    """The value of a type from what json.loads() gave. where: names the place in an error. Raises CodecError."""
    value: T = _load(kind, data, where or kind.__name__, how)
    return value


def to_member(schema: str, value: Any) -> str:
    return json.dumps({"schema": schema, **plain(value)}, indent=1, ensure_ascii=True) + "\n"


def from_member(kind: type[T], schema: str, text: str, what: str) -> T:
    """The record in a recording's member. what: "diagnosis". Missing fields get their default. Raises CodecError."""
    try:
        if crowded(text):
            raise ValueError(f"more than {VALUES:,} values")
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"{MEMBER} is not JSON: {error}") from None
    if not isinstance(document, dict) or document.pop("schema", None) != schema:
        raise CodecError(f"{MEMBER} is not of schema {schema}: no {what} is recorded there")
    try:
        return load(kind, document, how=LENIENT)
    except CodecError as error:
        raise CodecError(f"{MEMBER}: {error}") from None


def _load(type_: Any, data: Any, where: str, how: Reading) -> Any:
    if type_ in SCALARS:  # most are: what else a type can be is not looked for
        value = scalar(type_, data, where)
        return how.text(value) if type_ is str else value
    if hasattr(type_, "from_plain"):
        return type_.from_plain(data, where)
    if hasattr(type_, "_fields"):
        return _record(type_, data, where, how)
    match get_origin(type_):
        case origin if origin is tuple:
            return _tuple(get_args(type_), data, where, how)
        case origin if isinstance(origin, type) and issubclass(origin, Mapping):
            item = get_args(type_)[1]
            return {key: _load(item, each, f"{where}.{short(key)}", how) for key, each in members(data, where)}
        case origin if origin is Literal:
            if data in get_args(type_) and isinstance(data, str):
                return data
            raise CodecError(f"{where} is {_shown(data)}, not one of {', '.join(get_args(type_))}")
        case origin if origin in (Union, UnionType):
            if data is None:
                return None
            (other,) = (each for each in get_args(type_) if each is not NoneType)
            return _load(other, data, where, how)
    raise TypeError(f"{type_} is none that can be read")


def _record(type_: Any, data: Any, where: str, how: Reading) -> Any:
    hints, there = hints_of(type_), dict(members(data, where))
    optional = type_._field_defaults if how.lenient else {}
    if missing := [name for name in hints if name not in there and name not in optional]:
        raise CodecError(f"{where}: {missing[0]} is missing")
    return type_(
        **{name: _load(hint, there[name], f"{where}.{name}", how) for name, hint in hints.items() if name in there}
    )


@cache
def hints_of(type_: Any) -> dict[str, Any]:
    return {name: get_type_hints(type_)[name] for name in type_._fields}


def _tuple(items: tuple[Any, ...], data: Any, where: str, how: Reading) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise CodecError(f"{where} is {_shown(data)}, not a list")
    if items[-1] is Ellipsis:
        items = (items[0],) * len(data)
    if len(items) != len(data):
        raise CodecError(f"{where} has {len(data)} items, not {len(items)}")
    return tuple(
        _load(item, each, f"{where}[{i}]", how) for i, (item, each) in enumerate(zip(items, data, strict=True))
    )


def members(data: Any, where: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(data, dict):
        raise CodecError(f"{where} is {_shown(data)}, not an object")
    return data.items()


def scalar(type_: Any, data: Any, where: str) -> Any:
    if type_ is float and type(data) in (int, float) and -MOST <= data <= MOST:
        return float(data)
    if type_ is not float and type(data) is type_ and (type_ is not int or -MOST <= data <= MOST):
        return data
    raise CodecError(f"{where} is {_shown(data)}, not {SCALARS[type_]}")


def _shown(data: Any) -> str:
    """What stands there instead, in few words."""
    match data:
        case None:
            return "null"
        case bool():
            return "true" if data else "false"
        case dict():
            return "an object"
        case list():
            return "a list"
        case float() if not math.isfinite(data):
            return "not a finite number"
        case int() | float():
            return short(f"{data:.6g}" if isinstance(data, float) or abs(data) < 2**63 else "beyond 64 bits")
        case _:
            return short(json.dumps(data))


def short(text: str) -> str:
    """At most 60 characters of it, harmless."""
    shown = harmless(text)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


# -- by hand, for documents of many releases, of which a reader wants parts ------------------------------------------------


def text(value: Any) -> str:
    """A text, made harmless. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} in place of a text")
    return harmless(value)


def one_of(value: Any, words: tuple[W, ...]) -> W:
    """One of these words. Raises ValueError."""
    for word in words:
        if value == word:
            return word
    raise ValueError(f"{str(value)[:40]!r} is none of {', '.join(words)}")


def moment(value: Any) -> float:
    """Seconds since the epoch, of a time in ISO 8601 that a calendar has in UTC, too. Raises TypeError or ValueError."""
    found = datetime.fromisoformat(text(value))
    try:
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except OverflowError as error:
        raise ValueError(str(error)) from None


# TOML as :mod:`tomllib` reads it, with one kind of error for all that may be wrong with a file from anywhere.
#
# tomllib takes time with the square of the parts of a dotted key, and a key has as many parts as its line has dots.

TOML_LIMIT = 256 << 10  # characters
TOML_DOTS = 100  # in a line
_KEY = re.compile(r"""\(?(['"]).{2,}\1[^ ]*""")  # as tomllib repeats one of the file
ERROR_SHOWN = 600  # characters of an error, which may repeat what stands in the file


class TomlError(ValueError):
    """Not TOML that can be read, and why; with the line where tomllib says it."""


def brief_error(error: object) -> str:
    """What an error says, without the middle where it is long."""
    text = str(error)
    return text if len(text) <= ERROR_SHOWN else f"{text[: ERROR_SHOWN // 2]} ... {text[-ERROR_SHOWN // 2 :]}"


def loads_toml(text: str) -> dict[str, Any]:
    """The table. Raises TomlError, also for what is too large, nested too deep or a number that Python does not convert."""
    if len(text) > TOML_LIMIT:
        raise TomlError(f"longer than {TOML_LIMIT >> 10} KiB")
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > TOML_DOTS:
            raise TomlError(f"more than {TOML_DOTS} dots in a line (at line {number})")
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(_KEY.sub("...", str(error))) from None
    except RecursionError:
        raise TomlError("nested too deeply") from None
    except ValueError:
        raise TomlError("a number with too many digits") from None
