"""``zaudit diff --side-by-side``: a primary and its standby, and what a failover would change."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from auditor import __version__
from auditor.judge.event import MEANS
from auditor.report.sides import Difference, Side, Sides
from auditor.text import harmless

PLACES = 4
UNDECIDED = "undecided"
OPEN = 8  # undecided rules that the page names


def as_json(found: Sides, code: int) -> str:
    differences = [
        {"rule": each.rule, "certain": each.certain, "primary": _side(each.primary), "standby": _side(each.standby)}
        for each in found.differences
    ]
    document: Mapping[str, Any] = {
        "schema": "zaudit-sides/1",
        "zaudit": __version__,
        "hosts": list(found.hosts),
        "worse": differences,
        "better": list(found.better),
        "events": [each._asdict() for each in found.events],
        "waived": list(found.waived),
        "notes": list(found.notes),
        "exit_code": code,
    }
    return json.dumps(document, indent=1)


def _side(side: Side) -> dict[str, Any]:
    return {"state": _state(side), "severity": side.severity, "places": list(side.places)}


def page(found: Sides, code: int, columns: int) -> str:
    return "\n".join(line for text, margin in _lines(found, code) for line in _wrapped(text, margin, columns))


def _wrapped(text: str, margin: int, columns: int) -> list[str]:
    wrapped = textwrap.wrap(
        harmless(text), columns, initial_indent=" " * margin, subsequent_indent=" " * max(margin, 10), break_on_hyphens=False
    )  # fmt: skip
    return wrapped or [""]


def _lines(found: Sides, code: int) -> Iterator[tuple[str, int]]:
    """(text, its margin)."""
    hosts = primary, standby = _names(found.hosts)
    certain = [each for each in found.differences if each.certain]
    open_ = [each for each in found.differences if not each.certain]
    yield f"{primary}, and {standby} as its standby", 0
    yield from ((f"Mind: {note}", 0) for note in found.notes)
    if found.waived:
        yield f"Mind: waived on one of them, which counts as passed: {', '.join(found.waived)}", 0
    if worse := [each for each in found.events if each.worse]:
        yield "", 0
        yield "After a failover", 0
        for row in worse:
            yield f"{MEANS[row.event]}: {row.standby} (now {row.primary})", 2
    for each in certain:
        yield from _worse(each, hosts)
    if open_:
        yield "", 0
        names = ", ".join(f"{each.rule} ({each.standby.severity})" for each in open_[:OPEN])
        more = f" and {len(open_) - OPEN} more, which --format json names" if len(open_) > OPEN else ""
        yield f"UNKNOWN   Nobody can tell whether {standby} is worse in {_rules(len(open_))}: {names}{more}", 0
        if alike := sum(_state(each.primary) == _state(each.standby) == UNDECIDED for each in open_):
            yield f"{alike} of these {'is' if alike == 1 else 'are'} undecided on {primary}, too", 10
    yield "", 0
    better = f"; better in {len(found.better)}: {', '.join(found.better)}" if found.better else ""
    yield f"{standby} is worse in {_rules(len(certain))}, may be in {len(open_)}{better}   (exit code {code})", 0


def _names(hosts: tuple[str, str]) -> tuple[str, str]:
    """What both are called here, also where they call themselves the same."""
    primary, standby = hosts
    return hosts if primary != standby else (f"{primary} (primary)", f"{standby} (standby)")


def _rules(count: int) -> str:
    return f"{count} rule{'s' * (count != 1)}"


def _worse(each: Difference, hosts: tuple[str, str]) -> Iterator[tuple[str, int]]:
    yield "", 0
    yield f"{each.standby.severity.upper():<10}{each.rule}  {each.standby.title}", 0
    for host, side in zip(hosts, (each.primary, each.standby), strict=True):
        places = ", ".join(side.places[:PLACES])
        more = f" and {len(side.places) - PLACES} more" if len(side.places) > PLACES else ""
        yield f"{host}: {_state(side)}{f' ({places}{more})' if places else ''}", 10
    yield f"After a failover: {each.standby.impact}", 10


def _state(side: Side) -> str:
    if not side.most:
        return "as it should be"
    return "failed" if side.least == side.most else UNDECIDED if not side.least else "failed, and may be worse"
