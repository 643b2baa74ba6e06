"""A primary and its standby side by side: where the standby is worse, or may be, and what a failover to it would change.

Their pools and datasets are called what they are called, so rules are compared and not subjects: the worst that a rule finds
on one host with the worst that it finds on the other. Works on the JSON documents, as ``changes`` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from auditor import __version__
from auditor.judge.event import EVENTS, MEANS, Event
from auditor.judge.finding import RANK, exit_code
from auditor.judge.rule import SEVERITIES, Severity
from auditor.report import document as doc
from auditor.report.changes import CompareError, must_be_report, refusing
from auditor.text import counted, few, unknown_headline

CELLS = ("kept", "word", "unknown", "lost")  # the worst last
NEVER = "does not happen here"


class Side(NamedTuple):
    """What one rule says of one host. least, most: how bad it is and may be, 0 where it passed. places: where; title,
    impact: of the rule; severity: the most severe that it is or may be."""

    least: int = 0
    most: int = 0
    severity: Severity = "low"
    places: tuple[str, ...] = ()
    title: str = ""
    impact: str = ""


class Difference(NamedTuple):
    """A rule on which the standby is worse; certain: or only may be."""

    rule: str
    certain: bool
    primary: Side
    standby: Side


class Row(NamedTuple):
    """An event, and what it costs the worst dataset of each. worse: of the standby."""

    event: Event
    primary: str
    standby: str
    worse: bool


class Sides(NamedTuple):
    """differences: the worst first. better: rules on which the standby is better. events: all of either host. waived: rules
    that are waived on one of them, which counts as if they passed. notes: what else is not the same."""

    hosts: tuple[str, str]
    differences: tuple[Difference, ...]
    better: tuple[str, ...]
    events: tuple[Row, ...]
    waived: tuple[str, ...]
    notes: tuple[str, ...]

    def exit_code(self, threshold: Severity, *, failed_only: bool = False) -> int:
        """As of a check, of what is or may be worse on the standby."""
        found = ((each.standby.severity, each.certain) for each in self.differences)
        return exit_code(found, threshold, failed_only=failed_only)


def compare(primary: Mapping[str, Any], standby: Mapping[str, Any]) -> Sides:
    """Two documents of ``auditor.report.report_json``. Raises CompareError."""
    with refusing():
        must_be_report(primary)
        must_be_report(standby)
        one, other = _rules(primary), _rules(standby)
        pairs = {rule: (one.get(rule, Side()), other.get(rule, Side())) for rule in one.keys() | other.keys()}
        return Sides(
            hosts=(str(primary["host"]), str(standby["host"])),
            differences=tuple(sorted(_worse(pairs), key=_order)),
            better=tuple(sorted(rule for rule, (was, now) in pairs.items() if was.least > now.most)),
            events=tuple(_events(primary, standby)),
            waived=tuple(sorted({str(each["rule"]) for part in (primary, standby) for each in part.get("waived", ())})),
            notes=tuple(_notes(primary, standby)),
        )


def _rules(document: Mapping[str, Any]) -> dict[str, Side]:
    """Rule -> the worst that it says. One that was left out may be as bad as it can be."""
    found: dict[str, Side] = {}
    for each in document["findings"]:
        title = str(each["title"])
        now = Side(
            least=_level(each.get("least", each["severity"])) if each["outcome"] == "fail" else 0,
            most=_level(each["severity"]),
            severity=each["severity"],
            places=(str(each["place"]),),
            title=title if each["outcome"] == "fail" else unknown_headline(title),
            impact=str(each["impact"]),
        )
        rule = str(each["rule"])
        found[rule] = _both(found[rule], now) if rule in found else now
    for each in document.get("left_out", ()):
        if not each.get("counts_as"):
            found[str(each["rule"])] = Side(0, _level(each["severity"]), each["severity"], title="It was left out")
    return found


def _level(severity: Severity) -> int:
    if severity not in SEVERITIES:
        raise CompareError(f"{severity!r} is not a severity")
    return RANK[severity] + 1


def _both(one: Side, other: Side) -> Side:
    worst = max(one, other, key=lambda each: (each.most, each.least))
    places = tuple(dict.fromkeys(one.places + other.places))
    return worst._replace(least=max(one.least, other.least), most=max(one.most, other.most), places=places)


def _worse(pairs: Mapping[str, tuple[Side, Side]]) -> Iterator[Difference]:
    for rule, (was, now) in pairs.items():
        if now.most > was.least:
            yield Difference(rule, now.least > was.most, was, now)


def _order(each: Difference) -> tuple[object, ...]:
    return not each.certain, -each.standby.most, each.rule


def _events(primary: Mapping[str, Any], standby: Mapping[str, Any]) -> Iterator[Row]:
    for event in EVENTS:
        (was, one), (now, other) = (_worst(each, event) for each in (primary, standby))
        if was >= 0 or now >= 0:
            yield Row(event, one, other, now > max(was, 0))


def _worst(document: Mapping[str, Any], event: Event) -> tuple[int, str]:
    """(how bad, in words) of the dataset that fares worst; -1 where the event does not happen to the host."""
    cells = (each["events"].get(event) for each in document.get("events", ()))
    found = [(CELLS.index(each["outcome"]), str(each["text"])) for each in cells if each]
    return max(found, key=lambda each: each[0]) if found else (-1, NEVER)


def _notes(primary: Mapping[str, Any], standby: Mapping[str, Any]) -> Iterator[str]:
    for key, what in (("openzfs", "OpenZFS"), ("zaudit", "zaudit"), ("rules", "rules"), ("policy", "policy")):
        one, other = primary.get(key), standby.get(key)
        if one != other:
            yield f"not the same {what}: {one or 'none'} and {other or 'none'}"


# -- what a reader and a program get of it ---------------------------------------------------------------------------------

PLACES = 4
OPEN = 8  # unknown rules that the page names
UNDECIDED = "undecided"


def as_json(found: Sides, code: int) -> dict[str, Any]:
    """``zaudit-sides/1``."""
    differences = [
        {"rule": each.rule, "certain": each.certain, "primary": _side(each.primary), "standby": _side(each.standby)}
        for each in found.differences
    ]
    return {
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


def _side(side: Side) -> dict[str, Any]:
    return {"state": _state(side), "severity": side.severity, "places": list(side.places)}


def page(found: Sides, code: int) -> Iterator[doc.Block]:
    primary, standby = found.hosts
    if primary == standby:
        primary, standby = f"{primary} (primary)", f"{standby} (standby)"
    certain = [each for each in found.differences if each.certain]
    open_ = [each for each in found.differences if not each.certain]
    yield doc.Say(f"{primary}, and {standby} as its standby")
    yield from (doc.Say(f"Note: {note}") for note in found.notes)
    if found.waived:
        yield doc.Say(f"Note: waived on one of them, which counts as passed: {', '.join(found.waived)}")
    worse = (each for each in found.events if each.worse)
    yield doc.section(
        "After a failover", (doc.Say(f"{MEANS[each.event]}: {each.standby} (now {each.primary})") for each in worse)
    )
    for each in certain:
        word = doc.Run(each.standby.severity.upper(), each.standby.severity)
        rows = (
            ("Primary", f"{primary}: {_describe(each.primary)}"),
            ("Standby", f"{standby}: {_describe(each.standby)}"),
            ("Failover", each.standby.impact),
        )
        yield doc.Finding(word, each.rule, each.standby.title, "", doc.labelled(rows).rows)
    if open_:
        names = ", ".join(f"{each.rule} ({each.standby.severity})" for each in open_[:OPEN])
        more = f" and {len(open_) - OPEN} more, which --format json names" if len(open_) > OPEN else ""
        text = f"Unknown whether {standby} is worse in {counted(len(open_), 'rule')}: {names}{more}"
        alike = sum(_state(each.primary) == _state(each.standby) == UNDECIDED for each in open_)
        too = f"{alike} of these {'is' if alike == 1 else 'are'} unknown on {primary}, too" if alike else ""
        yield doc.Finding(doc.Run("UNKNOWN", "undecided"), "", text, too, ())
    better = f"; better in {len(found.better)}: {', '.join(found.better)}" if found.better else ""
    counts = f"{standby} is worse in {counted(len(certain), 'rule')}, may be in {len(open_)}{better}"
    yield doc.section("", [doc.Say(f"{counts}   (exit code {code})")])


def _describe(side: Side) -> str:
    return f"{_state(side)} ({few(side.places, PLACES)})" if side.places else _state(side)


def _state(side: Side) -> str:
    if not side.most:
        return "as it should be"
    return "failed" if side.least == side.most else UNDECIDED if not side.least else "failed, and may be worse"
