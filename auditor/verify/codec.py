"""Named tuples as JSON and back, by their type hints: what a type gains, a file gains. Nothing is guessed, nothing converted.

A record is an object with a member for each field, a tuple is a list, None is null. A histogram is an object of bucket to
samples, as fio writes its own ("bins" of json+). Reading is strict, since a file may come from anywhere: a missing member,
another type, or a number that is not finite or beyond 64 bits is one :class:`CodecError` that says where. Members that a
later release has added are ignored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from auditor.errors import Stop
from auditor.text import VALUES, crowded, harmless
from auditor.verify.result import Histogram

T = TypeVar("T")
MOST = 2**63 - 1
MEMBER = "trial.json"  # of a recording; the schema tells a verification from a diagnosis


class CodecError(Stop, ValueError):
    """Data that does not have the shape of its type: one sentence, harmless to print, with the place."""


def plain(value: Any, spelt: Callable[[str], str] = str) -> Any:
    """Dictionaries, lists and scalars for json.dumps(). spelt: what becomes of each string."""
    match value:
        case Histogram():
            return {str(ns): count for ns, count in value.counts}
        case tuple() if hasattr(value, "_fields"):
            return {name: plain(each, spelt) for name, each in zip(value._fields, value, strict=True)}
        case tuple() | list():
            return [plain(each, spelt) for each in value]
        case Mapping():
            return {spelt(key): plain(each, spelt) for key, each in value.items()}
        case str():
            return spelt(value)
        case _:
            return value


def load(kind: type[T], data: Any, where: str = "") -> T:
    """The value of a type from what json.loads() gave. where: names the place in an error. Raises CodecError."""
    value: T = _load(kind, data, where or kind.__name__)
    return value


def to_member(schema: str, value: Any) -> str:
    """A record as the text of a recording's member."""
    return json.dumps({"schema": schema, **plain(value)}, indent=1, ensure_ascii=True) + "\n"


def from_member(kind: type[T], schema: str, text: str, what: str, upgrade: Callable[[Any], Any] = dict) -> T:
    """The record in a recording's member. what: "diagnosis"; upgrade: adds what an earlier release did not write. Raises
    CodecError for anything that is not of this schema."""
    try:
        if crowded(text):
            raise ValueError(f"more than {VALUES:,} values")
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"{MEMBER} is not JSON: {error}") from None
    if not isinstance(document, dict) or document.pop("schema", None) != schema:
        raise CodecError(f"{MEMBER} is not of schema {schema}: no {what} is recorded there")
    try:
        return load(kind, upgrade(document))
    except CodecError as error:
        raise CodecError(f"{MEMBER}: {error}") from None


def _load(type_: Any, data: Any, where: str) -> Any:
    if type_ is Histogram:
        return _histogram(data, where)
    if hasattr(type_, "_fields"):
        return _record(type_, data, where)
    match get_origin(type_):
        case origin if origin is tuple:
            return _tuple(get_args(type_), data, where)
        case origin if isinstance(origin, type) and issubclass(origin, Mapping):
            return {key: _load(get_args(type_)[1], each, f"{where}.{short(key)}") for key, each in _object(data, where)}
        case origin if origin is Literal:
            if data in get_args(type_) and isinstance(data, str):
                return data
            raise CodecError(f"{where} is {_shown(data)}, not one of {', '.join(get_args(type_))}")
        case origin if origin in (Union, UnionType):
            if data is None:
                return None
            (other,) = (each for each in get_args(type_) if each is not NoneType)
            return _load(other, data, where)
    return _scalar(type_, data, where)


def _record(type_: Any, data: Any, where: str) -> Any:
    hints = hints_of(type_)
    members = dict(_object(data, where))
    if missing := [name for name in hints if name not in members]:
        raise CodecError(f"{where}: {missing[0]} is missing")
    return type_(**{name: _load(hint, members[name], f"{where}.{name}") for name, hint in hints.items()})


@cache
def hints_of(type_: Any) -> dict[str, Any]:
    """The fields of a record and their types."""
    return {name: get_type_hints(type_)[name] for name in type_._fields}


def _tuple(items: tuple[Any, ...], data: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise CodecError(f"{where} is {_shown(data)}, not a list")
    if items[-1] is Ellipsis:
        items = (items[0],) * len(data)
    if len(items) != len(data):
        raise CodecError(f"{where} has {len(data)} items, not {len(items)}")
    return tuple(_load(item, each, f"{where}[{i}]") for i, (item, each) in enumerate(zip(items, data, strict=True)))


def _object(data: Any, where: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(data, dict):
        raise CodecError(f"{where} is {_shown(data)}, not an object")
    return data.items()


def _histogram(data: Any, where: str) -> Histogram:
    bins: dict[int, int] = {}
    for key, each in _object(data, where):
        count = _scalar(int, each, f"{where}.{short(key)}")
        if not (key.isascii() and key.isdigit() and len(key) < 19 and str(int(key)) == key):
            raise CodecError(f"{where}: {short(key)} is not a bucket in nanoseconds")
        if count < 1:
            raise CodecError(f"{where}.{key} is {count}: no samples in a bucket")
        bins[int(key)] = count
    return Histogram.of(bins)


def _scalar(type_: Any, data: Any, where: str) -> Any:
    if type_ is float and type(data) in (int, float) and -MOST <= data <= MOST:
        return float(data)
    if type_ is not float and type(data) is type_ and (type_ is not int or -MOST <= data <= MOST):
        return data
    kind = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}[type_]
    raise CodecError(f"{where} is {_shown(data)}, not {kind}")


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
