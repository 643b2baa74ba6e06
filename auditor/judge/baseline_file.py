"""A baseline as JSON, one known finding a line, sorted, so that a repository shows what changed::

    {"schema": "zaudit-baseline/1", "host": "db1", "targets": [], "pools": ["tank"], "made": "2026-11-22", "known": [
    {"rule": "no-redundancy", "kind": "vdev", "pool": "tank", "name": "nvme0n1", "outcome": "fail", "severity": "high", ...}
    ]}

It can silence rules, so whatever is not understood ends zaudit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any, cast

from auditor.errors import Stop
from auditor.facts import KINDS, Subject
from auditor.judge.baseline import Baseline, Entry
from auditor.judge.event import SEVERITIES
from auditor.text import crowded, harmless

SCHEMA = "zaudit-baseline/1"
LIMIT = 64 << 20  # bytes of a file
HEAD = ("host", "targets", "pools", "made")
FIELDS = ("rule", "kind", "pool", "name", "outcome", "severity", "first", "last")


class BaselineError(Stop):
    """A baseline that cannot be used, or not for this run; the text names the file and what is wrong."""


def parse(data: bytes, path: str) -> Baseline:
    """From its file. Raises BaselineError."""
    try:
        text = data.decode()
        if crowded(text):
            raise ValueError("more values than a baseline has")
        table = json.loads(text)
        if not isinstance(table, dict) or table.get("schema") != SCHEMA:
            raise ValueError(f"it is no {SCHEMA}")
        entries = [_entry(each) for each in _list(table["known"])]
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
    rows = ",\n".join(json.dumps(_row(each)) for each in sorted(baseline.entries.values()))
    return f'{json.dumps(head)[:-1]}, "known": [\n{rows}\n]}}\n'


def must_fit(baseline: Baseline, host: str, targets: tuple[str, ...], path: str) -> None:
    """Raises BaselineError for the baseline of another host, or of other targets: nobody looks there for what it knows."""
    for what, its, ours in (("host", baseline.host, host),
                            ("targets", baseline.targets, targets)):  # fmt: skip
        if its != ours:
            said = [harmless(each if isinstance(each, str) else " ".join(each) or "all pools") for each in (its, ours)]
            raise BaselineError(f"{path}: this is the baseline of another {what}: {said[0]}, not {said[1]}")


def _row(each: Entry) -> dict[str, str]:
    kind, name, within = each.subject
    values = (each.rule, kind, within, name, each.outcome, each.severity, each.first, each.last)
    return dict(zip(FIELDS, values, strict=True))


def _entry(row: Mapping[str, Any]) -> Entry:
    if not isinstance(row, dict):
        raise TypeError("a known finding is no table")
    rule, kind, pool, name, outcome, severity = (_text(row[key]) for key in FIELDS[:6])
    if kind not in KINDS or outcome not in ("fail", "unknown") or severity not in SEVERITIES:
        raise ValueError(f"{kind}, {outcome} or {severity} is no kind, outcome or severity")
    subject = Subject(cast(Any, kind), name, pool)
    return Entry(rule, subject, cast(Any, outcome), cast(Any, severity), _day(row["first"]), _day(row["last"]))


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
