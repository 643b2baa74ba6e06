"""What a database said of its own counters, read strictly, and how they grew. Pure.

A counter that fell, or whose statistics were reset meanwhile, is None with a reason, never 0; so is one that is not there.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from auditor.text import crowded

MOST = 1 << 20  # characters of an answer
_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?(?:e[+-]?[0-9]{1,3})?")
Table = Mapping[str, str | None]


class Waiting(NamedTuple):
    """Backends that were seen waiting for the same. together: in all moments; most: at once."""

    together: int
    most: int


class Said(NamedTuple):
    """before, after: table -> column -> text. waits: "TYPE EVENT" -> how many; empty words for those that ran. moments: that
    were looked at. threads: of the server. process: of the server, 0 where it was not seen here, and unseen says why. sees:
    whether it was told what backends of others wait for. timed: file events that are timed. faults: table -> why it could not
    be read. ended: why the look ended early, or empty."""

    seconds: float
    before: Mapping[str, Table]
    after: Mapping[str, Table]
    waits: Mapping[str, Waiting]
    moments: int
    threads: frozenset[int]
    process: int
    unseen: str
    settings: Mapping[str, str]
    sees: bool
    timed: frozenset[str]
    faults: Mapping[str, str]
    ended: str

    @property
    def active(self) -> int:
        """Backends that were at work, in all moments."""
        return sum(each.together for each in self.waits.values())

    def has(self, table: str, column: str) -> bool:
        return self.before.get(table, {}).get(column) is not None

    def grown(self, table: str, column: str) -> float | None:
        """Between the readings; None where it is not counted, or not known (:meth:`why`)."""
        earlier, later = (number(each.get(table, {}).get(column)) for each in (self.before, self.after))
        return later - earlier if earlier is not None and later is not None and not self.why(table, column) else None

    def why(self, table: str, column: str) -> str:
        """Why it is not known how a counter grew that is there, or an empty string."""
        if not self.has(table, column):
            return ""
        if not self.after:
            return f"the second reading is missing: {self.ended or 'the look ended early'}"
        earlier, later = self.before[table], self.after.get(table, {})
        if earlier.get("stats_reset") != later.get("stats_reset"):
            return f"the statistics of {table} were reset meanwhile"
        values = number(earlier.get(column)), number(later.get(column))
        if values[0] is None or values[1] is None:
            return f"{column} of {table} is no number"
        if values[1] < values[0] or self._restarted():
            return f"{column} of {table} fell: the server was restarted, or its statistics were reset"
        return ""

    def _restarted(self) -> bool:
        up = [number(each.get("status", {}).get("Uptime")) for each in (self.before, self.after)]
        return up[0] is not None and up[1] is not None and up[1] < up[0]


def number(text: str | None) -> float | None:
    """None for what is none."""
    if text is None or not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) and value < 2**63 else None


def said(text: str) -> Said:
    """Raises ValueError for what is no answer of :mod:`auditor.host.sql_watch`."""
    if len(text) > MOST or crowded(text):
        raise ValueError("it is too long")
    try:
        found = json.loads(text)
        began, ended = (_float(found[each]) for each in ("from", "to"))
        result = Said(
            seconds=ended - began,
            before=_tables(found["before"]),
            after=_tables(found["after"]),
            waits={str(words): Waiting(*map(_count, row)) for words, row in _object(found["waits"]).items()},
            moments=_count(found["moments"]),
            threads=frozenset(map(_count, _list(found["threads"]))),
            process=_count(found.get("process", 0)),
            unseen=_text(found.get("unseen", "")),
            settings={str(name): _text(value) for name, value in _object(found["settings"]).items()},
            sees=found.get("sees", True) is True,
            timed=frozenset(map(_text, _list(found.get("timed", [])))),
            faults={str(name): _text(why) for name, why in _object(found.get("faults", {})).items()},
            ended=_text(found["ended"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is not understood ({type(error).__name__})") from None
    if result.seconds <= 0:
        raise ValueError("the clock was set back meanwhile")
    return result


def _tables(data: Any) -> dict[str, dict[str, str | None]]:
    return {
        str(table): {str(column): None if cell is None else _text(cell) for column, cell in _object(row).items()}
        for table, row in _object(data).items()
    }


def _object(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise TypeError("no object")
    return data


def _list(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise TypeError("no list")
    return data


def _text(data: Any) -> str:
    if not isinstance(data, str):
        raise TypeError("no text")
    return data


def _count(data: Any) -> int:
    if type(data) is not int or not 0 <= data < 2**53:
        raise TypeError("no count")
    return data


def _float(data: Any) -> float:
    if type(data) not in (int, float) or not 0 <= data < 2**53:
        raise TypeError("no number")
    return float(data)
