"""Any record of auditor.verify, by its type hints, for hypothesis."""

from __future__ import annotations

from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from hypothesis import strategies as st

from auditor.codec import hints_of
from auditor.verify.result import Histogram

MOST = 2**63 - 1
TEXT = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.sampled_from(
        ("<script>alert(1)</script>", "\x1b[2J\x9b31m", "\u202e]]>&\"'", "[bold]x[/] :smile:", "%s {0}\n\t")
    ),
)
SHARE = st.floats(0, 1)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: st.one_of(st.integers(0, 10**6), st.integers(-MOST, MOST)),
    float: st.one_of(st.floats(0, 1000), st.floats(-1e18, 1e18)),
    bool: st.booleans(),
    NoneType: st.none(),
}


@cache
def of(type_: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that codec.load() can read."""
    if type_ is Histogram:
        return st.dictionaries(st.integers(0, 10**12), st.integers(1, 10**6), max_size=6).map(Histogram.of)
    if hasattr(type_, "_fields"):
        fields = {name: of(hint) for name, hint in hints_of(type_).items()}
        return st.builds(type_, **fields)
    items = get_args(type_)
    match get_origin(type_):
        case None:
            return SCALARS[type_]
        case origin if origin is tuple and items[-1] is Ellipsis:
            return st.lists(of(items[0]), max_size=3).map(tuple)
        case origin if origin is tuple:
            return st.tuples(*map(of, items))
        case origin if origin is dict:
            return st.dictionaries(of(items[0]), of(items[1]), max_size=2)
        case origin if origin is Literal:
            return st.sampled_from(items)
    return st.one_of(*map(of, items))
