"""What changed between two reports, as plain data: what is worse, what is gone, and what only looks gone because nobody
saw it this time. Works on the JSON documents, so that a report that was kept can be compared with a new one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from typing import Any, Literal, NamedTuple, get_args

from auditor import __version__
from auditor.facts import AGAIN
from auditor.judge.finding import RANK, exit_code
from auditor.judge.rule import SEVERITIES, Severity
from auditor.report import document as doc
from auditor.report.report_json import FIRST, SCHEMA, unfolded
from auditor.text import few, unknown_headline

# only now, only then: one of the two was recorded before the question was known
Change = Literal["new", "worse", "only now", "changed", "not seen", "not judged", "only then", "better", "gone"]
CHANGES: tuple[Change, ...] = get_args(Change)
WORSE = frozenset({"new", "worse", "only now"})
UNFIT = WORSE | {"not seen", "not judged", "only then"}  # for a ratchet


Element = tuple[str, str, str]  # kind, pool or empty, name or id
_WORD = re.compile(r"\w(?:[\w.:-]*\w)?")
_PART = re.compile(r"(?:-part|(?<=\d)p|(?<!\d))\d+$")
_PROCESS = re.compile(r"(?:\b(?:process|pid|ps|postgres|mariadb|mysql|mongodb|redis|valkey|etcd) |/proc/)\d+\b")


class CompareError(ValueError):
    """A document that is no report of zaudit; the text says why."""


class Outcome(NamedTuple):
    """One rule on one subject that did not pass. element: what the subject is, whatever it is called. title: of the rule;
    evidence: of a failure; reasons: of an unknown; unasked:
    they all are that the recording was made before the question; known: to the baseline of the report. least: how severe it is
    for certain."""

    rule: str
    subject: str
    element: Element
    outcome: str
    severity: Severity
    title: str
    evidence: tuple[str, ...]
    reasons: tuple[str, ...]
    unasked: bool = False
    known: bool = False
    least: Severity = "low"


class Difference(NamedTuple):
    """One change. before, after: None where the rule passed, did not apply, or was not asked."""

    change: Change
    before: Outcome | None
    after: Outcome | None

    @property
    def shown(self) -> Outcome:
        seen = self.after or self.before
        assert seen is not None
        return seen

    @property
    def counts(self) -> bool:
        """Is it worse or no longer visible, and covered by neither a waiver nor, for what is worse, the second report's
        baseline?"""
        known = self.change in WORSE and self.after is not None and self.after.known
        covered = self.shown.outcome == "waived" or known
        return self.change in UNFIT and not covered


class Comparison(NamedTuple):
    """differences: the worst first. notes: on comparability. same: unchanged. decided: only NEW could see that it passes."""

    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    same: int
    decided: int = 0

    def exit_code(self, threshold: Severity, *, failed_only: bool = False) -> int:
        """As of a check, of what is new, worse, not seen any more or not judged any more."""
        counted = (each for each in self.differences if each.counts)
        found = ((each.shown.severity, each.change in WORSE and each.shown.outcome == "fail") for each in counted)
        return exit_code(found, threshold, failed_only=failed_only)


@contextmanager
def refusing() -> Iterator[None]:
    """What is malformed in a report is a CompareError."""
    try:
        yield
    except CompareError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CompareError(f"a part of it is malformed ({type(error).__name__}: {error})") from None


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Comparison:
    """Two documents of ``auditor.report.report_json``, as untrusted as any file. Raises CompareError."""
    with refusing():
        return _compare(old, new)


def _compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Comparison:
    then_is, now_is = _identities(old), _identities(new)
    before, after = _index(old, then_is.shared(now_is)), _index(new, now_is.shared(then_is))
    other_scale = {rule for rule, _, _, _ in _moved(old, new)}
    undecided = {seen.rule for seen in after.values() if seen.outcome == "unknown"}
    then, now = ({seen.rule for seen in each.values() if seen.unasked} for each in (before, after))
    left_out = set(_left_out(new))
    found = []
    same = decided = 0
    for key in dict.fromkeys((*after, *before)):
        one, other = before.get(key), after.get(key)
        if one and other and one.known and not other.known and "baseline" in new:
            one = None  # it was not told then, and does count now
        same_answer = one and other and (one.outcome, one.severity) == (other.outcome, other.severity)
        if one and other and same_answer and _alike(one.evidence, other.evidence, then_is, now_is):
            same += 1
        else:
            change = _of_one(one, other, then, now) or _change(one, other, undecided)
            if one and one.unasked and not other:
                decided += 1
                continue
            if change == "gone" and key[0] in left_out:
                change = "not judged"
            if change in ("gone", "better") and key[0] in other_scale:
                change = "changed"  # another threshold fixes nothing
            found.append(Difference(change, one, other))
    return Comparison(tuple(sorted(found, key=_order)), tuple(_notes(old, new)), same, decided)


def _of_one(before: Outcome | None, after: Outcome | None, then: set[str], now: set[str]) -> Change | None:
    """Where only one of the two could see it. then, now: the rules whose input is not in that recording."""
    if after and not after.unasked and (before.unasked if before else after.rule in then):
        return "only now"
    if (after.unasked and not (before and before.unasked)) if after else (before and before.rule in now):
        return "only then"
    return None


def _change(before: Outcome | None, after: Outcome | None, undecided: set[str]) -> Change:
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
    if (before.outcome, after.outcome) == ("unknown", "fail"):
        return "worse"
    if RANK[after.severity] > RANK[before.severity]:
        # what is only less certain than it was counts tonight, and is no change of the host
        certain = after.outcome == "fail" and RANK[after.least] > RANK[before.least]
        return "worse" if certain else "not seen"
    return "better" if RANK[after.severity] < RANK[before.severity] else "changed"


def _order(each: Difference) -> tuple[object, ...]:
    seen = each.shown
    return CHANGES.index(each.change), -RANK[seen.severity], seen.outcome != "fail", seen.rule, seen.subject


def must_be_report(document: Mapping[str, Any]) -> None:
    """Raises CompareError."""
    if document.get("schema") not in (SCHEMA, FIRST):
        raise CompareError(f"its schema is neither {SCHEMA} nor {FIRST}")


def _index(document: Mapping[str, Any], shared: Mapping[Element, Element]) -> dict[tuple[str, Element], Outcome]:
    """(rule, element) -> what was found. shared: what is known by more than its name."""
    must_be_report(document)
    found = (_outcome(finding, each) for finding, each in unfolded(document))
    return {
        (seen.rule, element): seen._replace(element=element)
        for seen in found
        for element in [shared.get(seen.element, seen.element)]
    }


def _outcome(finding: Mapping[str, Any], each: Mapping[str, Any]) -> Outcome:
    severity = each.get("severity", finding["severity"])  # of known bugs each has one, and a rule
    if severity not in SEVERITIES or finding["outcome"] not in ("fail", "unknown", "waived"):
        raise CompareError(f"{severity!r} or {finding['outcome']!r} is not a severity or outcome")
    least = each.get("least", finding.get("least", severity))
    if least not in SEVERITIES:
        raise CompareError(f"{least!r} is not a severity")
    rule = str(each.get("rule", finding["rule"]))
    titles = {str(bug["id"]): str(bug["title"]) for bug in finding.get("bugs", ())}
    within = f"{each['pool']} " if "pool" in each else ""
    evidence, reasons = (tuple(str(one["text"]) for one in each.get(key, ())) for key in ("evidence", "reasons"))
    remedies = {one.get("remedy") for one in each.get("reasons", ())}
    title = titles.get(rule, str(finding["title"]))
    return Outcome(
        rule,
        f"{each['kind']} {within}{each['name']}",
        (str(each["kind"]), str(each.get("pool", "")), str(each["name"])),
        finding["outcome"],
        severity,
        unknown_headline(title) if "unknown" in (finding["outcome"], finding.get("was")) else title,
        evidence,
        reasons,
        remedies == {AGAIN},
        bool(finding.get("known")),
        least,
    )


class Identities(NamedTuple):
    """Of a report. elements: subject -> what it is; names: what a text may call a drive or vdev -> what it is."""

    host: str
    elements: Mapping[Element, str]
    names: Mapping[str, str]

    def shared(self, other: Identities) -> dict[Element, Element]:
        """Subjects compared by identity: where both reports of one host have it, except in a pool made again."""
        there, again = set(other.elements.values()), self.other_pools(other)
        return {
            subject: (subject[0], "", id)
            for subject, id in self.elements.items()
            if self.host == other.host
            and (subject in other.elements or id in there)
            and (subject[1] or subject[2]) not in again
        }

    def other_pools(self, other: Identities) -> set[str]:
        pools = ((subject, id) for subject, id in self.elements.items() if subject[0] == "pool")
        return {subject[2] for subject, id in pools if other.elements.get(subject, id) != id}


def _identities(document: Mapping[str, Any]) -> Identities:
    """None of a report of zaudit 0.2."""
    found = {
        (str(each["kind"]), str(each.get("pool", "")), str(each["name"])): str(each["id"])
        for each in document.get("identities", ())
    }
    names = {name: id for (kind, _, name), id in found.items() if kind in ("disk", "leaf", "vdev")}
    return Identities(str(document.get("host")), found, names)


def _alike(one: tuple[str, ...], other: tuple[str, ...], then: Identities, now: Identities) -> bool:
    """Whether two say the same, whatever drives and processes are called, and in which order they are listed."""
    return one == other or _nameless(one, then) == _nameless(other, now)


def _nameless(texts: tuple[str, ...], of: Identities) -> list[str]:
    def what(word: re.Match[str]) -> str:
        return of.names.get(word[0]) or of.names.get(_PART.sub("", word[0]), word[0])

    return sorted(" ".join(sorted(_PROCESS.sub("N", _WORD.sub(what, each)).split())) for each in texts)


def _left_out(document: Mapping[str, Any]) -> list[str]:
    """The rules that somebody left out of a report; one of an older zaudit does not say."""
    return [str(each["rule"]) for each in document.get("left_out", ()) if not each.get("counts_as")]


def _moved(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """(rule, name, before, after) of each changed threshold. A report names those that a policy has changed."""
    before, after = _thresholds(old), _thresholds(new)
    for key in sorted(before.keys() | after.keys()):
        default = (before.get(key) or after[key])[1]
        was, now = before.get(key, (default, default))[0], after.get(key, (default, default))[0]
        if was != now:
            yield (*key, was, now)


def _thresholds(document: Mapping[str, Any]) -> dict[tuple[str, str], tuple[str, str]]:
    """(rule, name) -> (value, default), with unit."""
    return {
        (str(each["rule"]), str(each["name"])): (f"{each['value']} {each['unit']}", f"{each['default']} {each['unit']}")
        for each in document.get("coverage", {}).get("thresholds", ())
    }


def _notes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for key, what in (("host", "hosts"), ("targets", "targets"), ("openzfs", "releases of OpenZFS")):
        one, other = old.get(key), new.get(key)
        if one != other:
            yield f"different {what}: {_words(one)}, then {_words(other)}"
    for pool in sorted(_identities(old).other_pools(_identities(new))):
        yield f"pool {pool} was created again (another GUID), so its parts are compared by name"
    for rule, name, was, now in _moved(old, new):
        yield f"another threshold: {rule}.{name} was {was} and is now {now}; its findings may differ on the same host"
    before, after = set(_left_out(old)), set(_left_out(new))
    for rules, when in ((before - after, "first"), (after - before, "second")):
        if rules:
            yield f"left out of the {when}: {few(sorted(rules), 5)}"
    yield from _unasked(old, new)
    one, other = ((each.get("zaudit"), each.get("rules")) for each in (old, new))
    if one != other:
        shown = [f"zaudit {release}{f' with rules {rules}' if rules else ''}" for release, rules in (one, other)]
        yield f"judged by {shown[0]}, then by {shown[1]}: a rule that the first did not have shows as new"


def _lacks(document: Mapping[str, Any]) -> list[str]:
    """The questions that a recording does not know; none of a report of an older zaudit, or of a live host."""
    return [str(each) for each in document.get("recording", {}).get("lacks", ())]


def _unasked(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """What one of the recordings does not know, and what neither does."""
    first, second = dict.fromkeys(_lacks(old)), dict.fromkeys(_lacks(new))
    for lacks, which, outcome in (
        ([each for each in first if each not in second], "OLD was recorded by {0}", "answered only in NEW"),
        ([each for each in second if each not in first], "NEW was recorded by {1}", "answered only in OLD"),
        ([each for each in first if each in second], "OLD and NEW were recorded by {0} and {1}", "unknown in both"),
    ):
        if lacks:
            recorders = (f"zaudit {each.get('recording', {}).get('zaudit')}" for each in (old, new))
            yield (
                f"{which.format(*recorders)}, lacking {len(lacks):,} inputs of today "
                f"({', '.join(lacks[:3])}{', ...' if len(lacks) > 3 else ''}); rules that need them are {outcome}. Record again"
            )


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


# -- what a reader and a program get of it ---------------------------------------------------------------------------------


EVIDENCE_SHOWN = 3
RULES_SHOWN, FAILED_SHOWN = 3, 8
CAUSE = 3  # rules that cannot tell for the same reasons are told together
MIND: Mapping[Change, str] = {
    "not judged": "Its rule was left out this time. It may not be fixed.",
    "only now": "It may not be new: the first recording has no answer.",
    "only then": "The second recording has no answer. It may not be fixed.",
    "not seen": "zaudit could not see it this time. It may not be fixed.",
}


def as_json(found: Comparison, before: dict[str, Any], after: dict[str, Any], code: int) -> dict[str, Any]:
    """``zaudit-diff/1``."""
    keys = ("host", "openzfs", "taken", "targets", "zaudit", "rules", "recording")
    return {
        "schema": "zaudit-diff/1",
        "zaudit": __version__,
        "before": {key: before.get(key) for key in keys},
        "after": {key: after.get(key) for key in keys},
        "notes": list(found.notes),
        "changes": list(map(_row, found.differences)),
        "same": found.same,
        "decided": found.decided,
        "exit_code": code,
    }


def _row(each: Difference) -> dict[str, Any]:
    row: dict[str, Any] = {
        "change": each.change,
        "rule": each.shown.rule,
        "subject": each.shown.subject,
        "title": each.shown.title,
    }
    for when, seen in (("before", each.before), ("after", each.after)):
        if seen:
            row[when] = {"outcome": seen.outcome, "severity": seen.severity, "evidence": list(seen.evidence)}
            row[when] |= {"known": True} if seen.known else {}
    return row


def page(found: Comparison, before: Mapping[str, Any], after: Mapping[str, Any], code: int) -> Iterator[doc.Block]:
    yield doc.Say(" to ".join(f"{each.get('host')} {each.get('taken')}" for each in (before, after)))
    yield from (doc.Say(f"Note: {note}") for note in found.notes)
    then = [each.shown.rule for each in found.differences if _quiet_then(each)]
    alone, causes = _causes([each for each in found.differences if not _quiet_then(each)])
    yield from map(_cause, causes)
    for first, alike in groupby(alone, _finding):  # subjects for which a change is the same are shown together
        where = ", ".join(each.shown.subject for each in alike)
        yield first._replace(where=f"{where}   {doc.plain(first.where)}")
    last = [doc.Say(f"No finding in OLD, unknown in NEW: {', '.join(dict.fromkeys(then))}.")] if then else []
    if found.decided:
        last.append(doc.Say(f"No finding in NEW, unknown in OLD: {found.decided}."))
    worse = sum(each.counts and each.change in WORSE for each in found.differences)
    unseen = sum(each.counts for each in found.differences) - worse  # may be as bad as the exit code says
    others = len(found.differences) - worse - unseen
    counts = [f"{worse} new or worse", *([f"{unseen} unknown in NEW"] if unseen else []), f"{others} other changes"]
    yield doc.section("", [*last, doc.Say(f"{', '.join(counts)}, {found.same} as before   (exit code {code})")])


def _quiet_then(each: Difference) -> bool:
    """What was as it should be, and cannot be told from the second recording."""
    return each.change == "only then" and each.before is None


def _causes(found: list[Difference]) -> tuple[list[Difference], list[list[Difference]]]:
    """Those that stand alone, and those of several rules with the same reasons, which are one cause."""
    groups: dict[tuple[bool, tuple[str, ...]], list[Difference]] = {}
    for each in found:
        if each.after and each.after.outcome == "unknown":
            groups.setdefault((True, each.after.reasons), []).append(each)
        elif each.before and each.before.outcome == "unknown" and not each.after:
            groups.setdefault((False, each.before.reasons), []).append(each)
    causes = [group for group in groups.values() if len({each.shown.rule for each in group}) >= CAUSE]
    together = {id(each) for group in causes for each in group}
    return [each for each in found if id(each) not in together], causes


def _cause(group: list[Difference]) -> doc.Finding:
    """How many rules, the most severe of them, why, and what had failed before."""
    first = group[0]
    rules = list(dict.fromkeys(each.shown.rule for each in group))
    worst = max((each.shown.severity for each in group), key=SEVERITIES.index)
    word, may, why = ("NOT SEEN", "may be", "Because") if first.after else ("SEEN", "would have been", "It was")
    where = f"{len(rules)} rules on {len(group)} subjects, {may} {worst}: {few(rules, RULES_SHOWN)}"
    rows = [(why, text) for text in first.shown.reasons[:EVIDENCE_SHOWN]]
    failed = [each.shown for each in group if each.before and each.before.outcome == "fail"]
    sentence = "had failed: it may not be fixed."
    rows += [("Note", f"{each.rule} {each.subject} {sentence}") for each in failed[:FAILED_SHOWN]]
    if len(failed) > FAILED_SHOWN:
        rows.append(("", f"and {len(failed) - FAILED_SHOWN} more had failed (--format json names all)"))
    return doc.Finding(doc.Run(word, "undecided"), "", where, "", doc.labelled(rows).rows)


def _finding(each: Difference) -> doc.Finding:
    """A change without its subject: the title, and the evidence that came, went or changed."""
    rows = [("Note", MIND[each.change])] if each.change in MIND else []
    if each.after and each.after.outcome == "unknown":
        rows += [("Because", text) for text in each.after.reasons[:EVIDENCE_SHOWN]]
    old, new = (seen.evidence if seen else () for seen in (each.before, each.after))
    changed = [("Was", text) for text in old if text not in new] + [("Now", text) for text in new if text not in old]
    rows += changed[:EVIDENCE_SHOWN]
    if len(changed) > EVIDENCE_SHOWN:
        rows.append(("", f"and {len(changed) - EVIDENCE_SHOWN} more (--format json has all)"))
    look: doc.Look = "bad" if each.change in WORSE else "undecided" if each.change in UNFIT else "known"
    word = doc.Run(each.change.upper(), look)
    return doc.Finding(word, each.shown.rule, _states(each), each.shown.title, doc.labelled(rows).rows)


def _states(each: Difference) -> str:
    """ "high, failed" or "unknown, high if it fails", before and after."""
    words = [
        (f"{seen.severity}, failed" if seen.outcome == "fail" else f"unknown, {seen.severity} if it fails")
        + (", known to the baseline" if seen.known else "")
        for seen in (each.before, each.after)
        if seen
    ]
    return " -> ".join(dict.fromkeys(words))
