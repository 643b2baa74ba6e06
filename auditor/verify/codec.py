"""Named tuples as JSON and back, by their type hints: nothing is guessed, nothing is converted, every key must be there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class CodecError(ValueError):
    """Data that does not have the shape of its type; the text says where."""


def plain(value: Any) -> Any:
    """Dictionaries, lists and scalars for json.dumps()."""
    if hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return {str(key): plain(each) for key, each in value.items()} if isinstance(value, Mapping) else value


def load(kind: type[T], data: Any, where: str = "") -> T:
    """The value of a type from what json.loads() gave. Raises CodecError."""
    value: T = _load(kind, data, where)
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _load(kind: Any, data: Any, where: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if hasattr(kind, "_fields"):
        return _record(kind, data, where)
    if origin in (Union, UnionType):
        if data is None and NoneType in inner:
            return None
        return _load(next(each for each in inner if each is not NoneType), data, where)
    if origin is Literal:
        return _expect(data in inner, data, where, "one of " + ", ".join(map(str, inner)))
    if origin is tuple:
        _expect(isinstance(data, list), data, where, "a list")
        kinds = [inner[0]] * len(data) if inner[1:] == (Ellipsis,) else list(inner)
        _expect(len(kinds) == len(data), data, where, f"a list of {len(kinds)}")
        return tuple(_load(each, item, f"{where}[{i}]") for i, (each, item) in enumerate(zip(kinds, data, strict=True)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        _expect(isinstance(data, dict), data, where, "an object")
        return {key: _load(inner[1], each, f"{where}.{key}") for key, each in data.items()}
    if kind is float:
        return float(_expect(isinstance(data, int | float) and not isinstance(data, bool), data, where, "a number"))
    return _expect(type(data) is kind, data, where, kind.__name__)


def _record(kind: Any, data: Any, where: str) -> Any:
    _expect(isinstance(data, dict), data, where, "an object")
    wrong = set(kind._fields) ^ set(data)
    _expect(not wrong, ", ".join(sorted(wrong)), where, f"the keys of {kind.__name__}")
    hints = _hints(kind)
    return kind(**{name: _load(hints[name], data[name], f"{where}.{name}".lstrip(".")) for name in kind._fields})


def _expect(holds: bool, data: Any, where: str, what: str) -> Any:
    if not holds:
        raise CodecError(f"{where or 'it'}: {str(data)[:60]!r} is not {what}")
    return data
