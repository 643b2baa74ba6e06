"""Reports as data: of recorded hosts, made up, and broken."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from auditor.report import report_json
from tests.golden import CANONICAL, HOSTS, REPORTS, report_of

VALUES: tuple[Any, ...] = (None, -1, 1e400, "x" * 5000, '\x1b]0;x\x07\n`@|;\\"<]]>&', [], {}, ["x"])


@cache
def _recorded(name: str) -> str:
    return report_json.render(report_of(HOSTS / name))


def recorded(name: str = CANONICAL) -> Any:
    """The report of a recorded host; one's own to change."""
    return json.loads(_recorded(name))


def first_edition() -> Any:
    """One of zaudit-report/1."""
    return json.loads((REPORTS / "json-1.json").read_text())


def with_findings(*findings: tuple[str, str], threshold: str = "low") -> Any:
    """(outcome, severity) of each. A waived one was undecided."""
    document = recorded()
    pattern = document["findings"][0]
    document |= {"findings": [], "waived": [], "threshold": threshold, "exit_code": 11 if findings else 0, "events": []}
    for number, (outcome, severity) in enumerate(findings):
        each = pattern | {"outcome": outcome, "severity": severity, "id": f"{number:016x}"}
        each["rule"], each["place"] = f"rule-{number}", f"place-{number}"
        if outcome == "waived":
            waiver = {"scope": "pool", "name": "1", "owner": "ops@x", "reason": "ordered", "expires": "2027-01-31"}
            each |= {"was": "unknown", "waiver": waiver}
        document["waived" if outcome == "waived" else "findings"].append(each)
    return document


def broken(document: Any) -> Iterator[tuple[str, Any]]:
    """(what was done, the document) with each value in turn gone, or of another type or size."""
    for path in _paths(document, ()):
        for value in VALUES:
            yield f"{'.'.join(map(str, path))} = {value!r:.20}", _changed(document, path, value)
        yield f"{'.'.join(map(str, path))} gone", _changed(document, path, None, gone=True)


def _paths(node: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = node.items() if isinstance(node, dict) else enumerate(node[:1]) if isinstance(node, list) else ()
    for key, value in items:
        yield from _paths(value, (*path, key))


def _changed(document: Any, path: tuple[Any, ...], value: Any, gone: bool = False) -> Any:
    """Only what lies on the path is copied."""
    key, *rest = path
    other = copy.copy(document)
    if rest:
        other[key] = _changed(document[key], tuple(rest), value, gone)
    elif gone:
        del other[key]
    else:
        other[key] = value
    return other
