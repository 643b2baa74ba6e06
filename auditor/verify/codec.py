"""Records as plain JSON data and back, by the type hints of the records themselves: what a type gains, a file gains.

A record is an object with a member for each field, a tuple is a list, None is null. A histogram is an object of bucket to
samples, as fio writes its own ("bins" of json+). Reading is strict, since a file may come from anywhere: a missing or
unknown member, another type, or a number that is not finite or beyond 64 bits is one :class:`Malformed` that says where.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from auditor.errors import Stop
from auditor.text import harmless, whole
from auditor.verify.histogram import Histogram

LARGEST = 256 * 2**20  # characters of a document that is read
MOST = 2**63 - 1


class Malformed(Stop, ValueError):
    """Not a document of ours: one sentence, harmless to print, with the place in it."""


def plain(value: Any) -> Any:
    """A record, or anything in one, as JSON data. Bytes of names that were not UTF-8 are spelt out."""
    match value:
        case Histogram():
            return {str(ns): count for ns, count in value.counts}
        case tuple() if hasattr(value, "_fields"):
            return {name: plain(each) for name, each in zip(value._fields, value, strict=True)}
        case tuple():
            return [plain(each) for each in value]
        case dict():
            return {whole(key): plain(each) for key, each in value.items()}
        case str():
            return whole(value)
        case _:
            return value


def parsed(text: str) -> Any:
    """The JSON data in a text, in which no object names a member twice. Raises Malformed."""
    if len(text) > LARGEST:
        raise Malformed(f"longer than {LARGEST >> 20} MiB")
    try:
        return json.loads(text, object_pairs_hook=_members)
    except RecursionError:
        raise Malformed("nested too deeply") from None
    except Malformed:
        raise
    except ValueError as error:
        raise Malformed(f"not JSON: {short(str(error))}") from None


def record(type_: Any, data: Any, where: str) -> Any:
    """What plain() made, read back as a type: a record, a tuple, a dict, a literal, an optional, a scalar.

    where: names the place in an error. Raises Malformed.
    """
    if type_ is Histogram:
        return _histogram(data, where)
    if hasattr(type_, "_fields"):
        return _record(type_, data, where)
    match get_origin(type_):
        case origin if origin is tuple:
            return _tuple(get_args(type_), data, where)
        case origin if origin is dict:
            return {
                key: record(get_args(type_)[1], each, f"{where}.{short(key)}") for key, each in _object(data, where)
            }
        case origin if origin is Literal:
            if data in get_args(type_) and isinstance(data, str):
                return data
            raise Malformed(f"{where} is {_shown(data)}, not one of {', '.join(get_args(type_))}")
        case origin if origin in (Union, UnionType):
            if data is None:
                return None
            (other,) = (each for each in get_args(type_) if each is not NoneType)
            return record(other, data, where)
    return _scalar(type_, data, where)


def _record(type_: Any, data: Any, where: str) -> Any:
    hints = hints_of(type_)
    members = dict(_object(data, where))
    if missing := [name for name in hints if name not in members]:
        raise Malformed(f"{where}: {missing[0]} is missing")
    if strange := [name for name in members if name not in hints]:
        raise Malformed(f"{where}: {short(strange[0])} is not known")
    return type_(**{name: record(hint, members[name], f"{where}.{name}") for name, hint in hints.items()})


@cache
def hints_of(type_: Any) -> dict[str, Any]:
    """The fields of a record and their types."""
    return {name: get_type_hints(type_)[name] for name in type_._fields}


def _tuple(items: tuple[Any, ...], data: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise Malformed(f"{where} is {_shown(data)}, not a list")
    if items[-1] is Ellipsis:
        items = (items[0],) * len(data)
    if len(items) != len(data):
        raise Malformed(f"{where} has {len(data)} items, not {len(items)}")
    return tuple(record(item, each, f"{where}[{i}]") for i, (item, each) in enumerate(zip(items, data, strict=True)))


def _object(data: Any, where: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(data, dict):
        raise Malformed(f"{where} is {_shown(data)}, not an object")
    return data.items()


def _histogram(data: Any, where: str) -> Histogram:
    bins: dict[int, int] = {}
    for key, each in _object(data, where):
        count = _scalar(int, each, f"{where}.{short(key)}")
        if not (key.isascii() and key.isdigit() and len(key) < 19 and str(int(key)) == key):
            raise Malformed(f"{where}: {short(key)} is not a bucket in nanoseconds")
        if count < 1:
            raise Malformed(f"{where}.{key} is {count}: no samples in a bucket")
        bins[int(key)] = count
    return Histogram.of(bins)


def _scalar(type_: Any, data: Any, where: str) -> Any:
    if type_ is float and type(data) in (int, float) and -MOST <= data <= MOST:
        return float(data)
    if type_ is not float and type(data) is type_ and (type_ is not int or -MOST <= data <= MOST):
        return data
    kind = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}[type_]
    raise Malformed(f"{where} is {_shown(data)}, not {kind}")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Malformed("an object names the same member twice")
    return members


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
    """Harmless, and at most 60 characters."""
    shown = harmless(text)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
