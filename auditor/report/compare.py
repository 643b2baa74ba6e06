"""What changed between two reports, as plain data: what is worse, what is gone, and what only looks gone because nobody
saw it this time. Works on the JSON documents, so that a report that was kept can be compared with a new one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from auditor.judge.finding import RANK, exit_code
from auditor.judge.rule import SEVERITIES, Severity
from auditor.report.json import SCHEMA

Change = Literal["new", "worse", "changed", "not seen", "not judged", "better", "gone"]
CHANGES: tuple[Change, ...] = ("new", "worse", "changed", "not seen", "not judged", "better", "gone")
WORSE = frozenset({"new", "worse"})
UNFIT = WORSE | {"not seen", "not judged"}  # for a ratchet


class CompareError(ValueError):
    """A document that is no report of zaudit; the text says why."""


class Seen(NamedTuple):
    """One rule on one subject that did not pass. title: of the rule; evidence: of a failure; reasons: of an unknown."""

    rule: str
    subject: str
    outcome: str
    severity: Severity
    title: str
    evidence: tuple[str, ...]
    reasons: tuple[str, ...]


class Difference(NamedTuple):
    """One change. before, after: None where the rule passed, did not apply, or was not asked."""

    change: Change
    before: Seen | None
    after: Seen | None

    @property
    def shown(self) -> Seen:
        """The later of the two."""
        seen = self.after or self.before
        assert seen is not None
        return seen


class Comparison(NamedTuple):
    """differences: the worst first. notes: why the two may not be comparable. same: what did not pass in both alike."""

    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    same: int

    def exit_code(self, threshold: Severity, *, failed_only: bool = False) -> int:
        """As of a check, of what is new, worse, not seen any more or not judged any more."""
        counted = (each for each in self.differences if each.change in UNFIT and each.shown.outcome != "waived")
        found = ((each.shown.severity, each.change in WORSE and each.shown.outcome == "fail") for each in counted)
        return exit_code(found, threshold, failed_only=failed_only)


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Comparison:
    """Two documents of ``auditor.report.json``. Raises CompareError."""
    before, after = _index(old), _index(new)
    other_scale = {rule for rule, _, _, _ in _moved(old, new)}
    undecided = {seen.rule for seen in after.values() if seen.outcome == "unknown"}
    left_out = set(_left_out(new))
    found = []
    same = 0
    for key in dict.fromkeys((*after, *before)):
        one, other = before.get(key), after.get(key)
        if one and other and one[2:4] == other[2:4] and one.evidence == other.evidence:
            same += 1
        else:
            change = _change(one, other, undecided)
            if change == "gone" and key[0] in left_out:
                change = "not judged"
            if change in ("gone", "better") and key[0] in other_scale:
                change = "changed"  # by another threshold nothing is mended
            found.append(Difference(change, one, other))
    return Comparison(tuple(sorted(found, key=_order)), tuple(_notes(old, new)), same)


def _change(before: Seen | None, after: Seen | None, undecided: set[str]) -> Change:
    if after is None:
        assert before is not None
        # its subject may have become part of what could not be listed
        return "not seen" if before.rule in undecided else "gone"
    if before is None:
        return "new"
    if "waived" in (before.outcome, after.outcome) and before.outcome != after.outcome:
        return "better" if after.outcome == "waived" else "worse"
    if before.outcome == "fail" and after.outcome == "unknown":
        return "not seen"
    if (before.outcome, after.outcome) == ("unknown", "fail") or RANK[after.severity] > RANK[before.severity]:
        return "worse"
    return "better" if RANK[after.severity] < RANK[before.severity] else "changed"


def _order(each: Difference) -> tuple[object, ...]:
    seen = each.shown
    return CHANGES.index(each.change), -RANK[seen.severity], seen.outcome != "fail", seen.rule, seen.subject


def _index(document: Mapping[str, Any]) -> dict[tuple[str, str], Seen]:
    """(rule, subject) -> what was found. A report is as untrusted as any file."""
    if document.get("schema") != SCHEMA:
        raise CompareError(f"schema {document.get('schema')!r} is not {SCHEMA!r}")
    try:
        return {(seen.rule, seen.subject): seen for finding in _all(document) for seen in _seen(finding)}
    except (KeyError, TypeError, AttributeError) as error:
        raise CompareError(f"a finding is malformed ({type(error).__name__}: {error})") from None


def _all(document: Mapping[str, Any]) -> Iterator[Any]:
    """What counts, and what is waived (a report of an older zaudit has no such list)."""
    yield from document["findings"]
    yield from document.get("waived", ())


def _seen(finding: Mapping[str, Any]) -> Iterator[Seen]:
    if finding["severity"] not in SEVERITIES or finding["outcome"] not in ("fail", "unknown", "waived"):
        raise CompareError(f"{finding['severity']!r} or {finding['outcome']!r} is no severity or outcome")
    for each in finding["subjects"]:
        within = f"{each['pool']} " if "pool" in each else ""
        evidence, reasons = (tuple(str(one["text"]) for one in each.get(key, ())) for key in ("evidence", "reasons"))
        yield Seen(
            str(finding["rule"]),
            f"{each['kind']} {within}{each['name']}",
            finding["outcome"],
            finding["severity"],
            str(finding["title"]),
            evidence,
            reasons,
        )


def _left_out(document: Mapping[str, Any]) -> Iterator[str]:
    """The rules that somebody left out of a report; one of an older zaudit does not say."""
    try:
        for each in document.get("left_out", ()):
            if not each.get("counts_as"):
                yield str(each["rule"])
    except (KeyError, TypeError, AttributeError) as error:
        raise CompareError(f"what was left out is malformed ({type(error).__name__}: {error})") from None


def _moved(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """(rule, name, before, after) of each threshold that is not the same in both. A report names those that a policy has
    changed, with their defaults; one of an older zaudit names none."""
    before, after = _thresholds(old), _thresholds(new)
    for key in sorted(before.keys() | after.keys()):
        default = (before.get(key) or after[key])[1]
        was, now = before.get(key, (default, default))[0], after.get(key, (default, default))[0]
        if was != now:
            yield (*key, was, now)


def _thresholds(document: Mapping[str, Any]) -> dict[tuple[str, str], tuple[str, str]]:
    """(rule, name) -> (value, default), with unit."""
    try:
        return {
            (str(each["rule"]), str(each["name"])): (
                f"{each['value']} {each['unit']}",
                f"{each['default']} {each['unit']}",
            )
            for each in document.get("coverage", {}).get("thresholds", ())
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise CompareError(f"a threshold is malformed ({type(error).__name__}: {error})") from None


def _notes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for key, what in (("host", "hosts"), ("targets", "targets"), ("openzfs", "releases of OpenZFS")):
        one, other = old.get(key), new.get(key)
        if one != other:
            yield f"different {what}: {_words(one)}, then {_words(other)}"
    for rule, name, was, now in _moved(old, new):
        yield f"another threshold: {rule}.{name} was {was} and is now {now}, so what it finds may differ on the same host"
    before, after = set(_left_out(old)), set(_left_out(new))
    for rules, when in ((before - after, "first"), (after - before, "second")):
        if rules:
            names = ", ".join(sorted(rules)[:5]) + (f" and {len(rules) - 5} more" if len(rules) > 5 else "")
            yield f"left out of the {when}: {names}"
    one, other = old.get("zaudit"), new.get("zaudit")
    if one != other:
        yield f"judged by zaudit {one}, then {other}: a rule that the first did not have shows as new"


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
