"""A baseline as JSON, one known finding a line, sorted, so that a repository shows what changed::

    {"schema": "zaudit-baseline/2", "host": "db1", "targets": [], "pools": ["tank"], "made": "2026-11-22", "known": [
    {"rule": "disk-wear", "kind": "disk", "pool": "", "name": "sda", "identity": "WD-WX32D90J0A1K", "outcome": "fail", ...}
    ]}

It can silence rules, so whatever is not understood ends zaudit. The first edition, of zaudit 0.2, has no identities and no
cells.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any, cast

from auditor.durability.events import QUESTIONS
from auditor.errors import Stop
from auditor.facts import KINDS, Subject
from auditor.judge.baseline import ANSWERS, Baseline, Entry
from auditor.judge.event import EVENTS, SEVERITIES
from auditor.judge.verdict import Carries
from auditor.text import crowded, harmless

SCHEMA, FIRST = "zaudit-baseline/2", "zaudit-baseline/1"
LIMIT = 64 << 20  # bytes of a file


class BaselineError(Stop):
    """A baseline that cannot be used, or not for this run; the text names the file and what is wrong."""


def parse(data: bytes, path: str) -> Baseline:
    """From its file. Raises BaselineError."""
    try:
        text = data.decode()
        if crowded(text):
            raise ValueError("more values than a baseline has")
        table = json.loads(text)
        schema = table.get("schema") if isinstance(table, dict) else None
        if schema not in (SCHEMA, FIRST):
            raise ValueError(f"its schema is neither {SCHEMA} nor {FIRST}")
        entries = [_entry(each, named=schema == FIRST) for each in _list(table["known"])]
        targets, pools = (tuple(map(_text, _list(table[key]))) for key in ("targets", "pools"))
        return Baseline(_text(table["host"]), targets, pools, _day(table["made"]), {each.key: each for each in entries})
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        why = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise BaselineError(f"{path}: not a baseline of zaudit: {harmless(why[:200])}") from None


def text(baseline: Baseline) -> str:
    """The file; in ASCII, so that names that are no UTF-8 read back as they were."""
    head = {
        "schema": SCHEMA,
        "host": baseline.host,
        "targets": baseline.targets,
        "pools": baseline.pools,
        "made": baseline.made,
    }
    rows = ",\n".join(json.dumps(_row(each)) for _, each in sorted(baseline.entries.items()))
    return f'{json.dumps(head)[:-1]}, "known": [\n{rows}\n]}}\n'


def must_fit(baseline: Baseline, host: str, targets: tuple[str, ...], path: str) -> None:
    """Raises BaselineError for the baseline of another host, or of other targets: nobody looks there for what it knows."""
    for what, its, ours, way in (
        ("host", baseline.host, host, f" (where the host was renamed: zaudit baseline accept --was {baseline.host})"),
        ("targets", baseline.targets, targets, ""),
    ):
        if its != ours:
            said = [harmless(each if isinstance(each, str) else " ".join(each) or "all pools") for each in (its, ours)]
            raise BaselineError(
                f"{path}: this is the baseline of another {what}: {said[0]}, not {said[1]}{harmless(way)}"
            )


def _row(each: Entry) -> dict[str, Any]:
    kind, name, within = each.subject
    head = {"rule": each.rule, "kind": kind, "pool": within, "name": name, "identity": each.identity}
    cells = {} if each.cells is None else {"cells": [" ".join(cell) for cell in each.cells]}
    count = {"count": each.number} if each.number != 1 else {}
    return {
        **head,
        "outcome": each.outcome,
        "severity": each.severity,
        **cells,
        **count,
        "first": each.first,
        "last": each.last,
    }


def _entry(row: Mapping[str, Any], *, named: bool) -> Entry:
    """named: as the first edition knows it."""
    if not isinstance(row, dict):
        raise TypeError("a known finding is no table")
    rule, kind, pool, name, outcome, severity = (
        _text(row[key]) for key in ("rule", "kind", "pool", "name", "outcome", "severity")
    )
    if kind not in KINDS or outcome not in ("fail", "unknown") or severity not in SEVERITIES:
        raise ValueError(f"{kind}, {outcome} or {severity} is no kind, outcome or severity")
    subject = Subject(cast(Any, kind), name, pool)
    cells = tuple(map(_cell, _list(row["cells"]))) if "cells" in row and not named else None
    count = row.get("count", 1)
    if type(count) is not int or count < 1:
        raise ValueError("a count is no number of things")
    return Entry(
        rule,
        subject,
        "" if named else _text(row["identity"]),
        cast(Any, outcome),
        cast(Any, severity),
        cells,
        count,
        _day(row["first"]),
        _day(row["last"]),
    )


def _cell(value: Any) -> Carries:
    event, question, answer = _text(value).split(" ")
    if event not in EVENTS or question not in QUESTIONS or answer not in ANSWERS[1:]:
        raise ValueError(f"{value!r} is no cell")
    return Carries(cast(Any, event), cast(Any, question), answer)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} in place of a text")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{type(value).__name__} in place of a list")
    return value


def _day(value: Any) -> str:
    return date.fromisoformat(_text(value)).isoformat()
