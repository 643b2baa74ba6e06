"""A report as data, of this release or an older one, for those that write it in other words.

A kept report is as untrusted as any file: what is missing or of another type is refused, every text is made harmless,
and of ten thousand subjects the first few are named, with how many there are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import Any, Literal, NamedTuple, get_args

from auditor import Stop, codec
from auditor.codec import moment, one_of, text
from auditor.judge.event import EVENTS, SEVERITIES, Event, Severity
from auditor.judge.finding import EXIT_CODES, EXIT_UNDECIDED, RANK
from auditor.judge.known_bugs import ID
from auditor.judge.policy import PAGES
from auditor.report.report_json import COUNTED, FIRST, SCHEMA, Room, runs, spread
from auditor.text import harmless, unknown_headline

SUBJECTS = 20
FINDINGS = 200_000
Outcome = Literal["fail", "unknown", "waived"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
STANDINGS = (*OUTCOMES, "known")
CELLS = ("lost", "unknown", "word", "kept")  # the worst first


class NoReport(Stop):
    """A document that is no report of zaudit; the text says why."""


class Waiver(NamedTuple):
    """Who answers for it, why, and until which day (2027-01-31)."""

    owner: str
    reason: str
    expires: str


class Fix(NamedTuple):
    """needs: the condition on which the commands help, or empty."""

    commands: tuple[str, ...]
    text: str
    cost: str
    needs: str = ""

    @property
    def steps(self) -> tuple[str, ...]:
        """The commands, the first behind what it needs."""
        ahead = f"{self.needs}: " if self.needs else ""
        return tuple(f"{ahead if not i else ''}{command}" for i, command in enumerate(self.commands))


class BugName(NamedTuple):
    """A known bug of the release."""

    id: str
    severity: Severity


class SubjectName(NamedTuple):
    """pool: of a vdev or leaf, or empty."""

    kind: str
    pool: str
    name: str


class Finding(NamedTuple):
    """As in the report. was: the outcome without the waiver. title: of an unknown one says so. event: the mildest at
    which something may go, or empty. says: of the first subjects what was found, or why it is unknown, each once.
    subjects: the first; total: of all. known: the day since which a baseline knows it, or empty. page: of the rule, in
    the repository; empty of a rule of a site. url: where the site has published the page, or empty."""

    id: str
    rule: str
    outcome: Outcome
    was: Outcome
    severity: Severity
    harm: str
    event: str
    title: str
    place: str
    where: str
    impact: str
    fix: Fix
    references: tuple[str, ...]
    says: tuple[str, ...]
    subjects: tuple[SubjectName, ...]
    total: int
    known: str
    page: str
    waiver: Waiver | None
    bugs: tuple[BugName, ...] = ()
    url: str = ""

    @property
    def standing(self) -> str:
        return "known" if self.known else self.outcome

    @property
    def more(self) -> str:
        """What prints all of its rule, if it is one of ours."""
        return f"zaudit explain {self.rule}" if self.page else ""


class ReportDocument(NamedTuple):
    """As in the report. taken: seconds since the epoch. left_out: (rule, severity, by). events: of each group of
    datasets (names, event -> (outcome, text)). users: of datasets, who uses them."""

    document: Mapping[str, Any]
    zaudit: str
    rules: str
    host: str
    openzfs: str
    taken: float
    targets: tuple[str, ...]
    standing: str
    headline: str
    threshold: Severity
    exit_code: int
    next: str
    coverage: Mapping[str, int]
    findings: tuple[Finding, ...]
    waived: tuple[Finding, ...]
    left_out: tuple[tuple[str, Severity, str], ...]
    events: tuple[tuple[tuple[str, ...], Mapping[Event, tuple[str, str]]], ...]
    users: Mapping[str, tuple[str, ...]]

    @property
    def all(self) -> tuple[Finding, ...]:
        """Those that count and those that somebody answers for."""
        return self.findings + self.waived

    def _standing(self, standing: str) -> tuple[Finding, ...]:
        return worst([each for each in self.findings if each.standing == standing])

    @property
    def failed(self) -> tuple[Finding, ...]:
        """Those that fail, and that no baseline knows; the most severe first."""
        return self._standing("fail")

    @property
    def undecided(self) -> tuple[Finding, ...]:
        return self._standing("unknown")

    @property
    def known(self) -> tuple[Finding, ...]:
        return self._standing("known")

    @property
    def counts(self) -> Mapping[tuple[str, Severity], int]:
        """(fail, unknown, waived or known, severity) -> how many findings; every pair is there."""
        found = Counter((each.standing, each.severity) for each in self.all)
        return {
            (standing, severity): found[standing, severity]
            for standing in STANDINGS
            for severity in reversed(SEVERITIES)
        }

    @property
    def nightly(self) -> bool:
        return "baseline" in self.document

    @property
    def cannot_tell(self) -> bool:
        """Whether nobody can say what a power cut would cost, be it that the rules for it were left out."""
        return self.standing == "cannot tell"

    @property
    def counting(self) -> tuple[Finding, ...]:
        """The findings that count: at or above the threshold of the report, and not known to its baseline."""
        return tuple(each for each in self.findings if RANK[each.severity] >= RANK[self.threshold] and not each.known)


def parse_report(document: Any) -> ReportDocument:
    """From the JSON. Raises NoReport."""
    if not isinstance(document, dict):
        raise NoReport("not a report of zaudit")
    if document.get("schema") not in (SCHEMA, FIRST):
        raise NoReport(f"not a report of zaudit: its schema is neither {SCHEMA} nor {FIRST}")
    try:
        return _report(document)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:  # CodecError among them
        raise NoReport(f"a malformed report ({harmless(f'{type(error).__name__}: {error}'[:200])})") from None


def _report(document: Mapping[str, Any]) -> ReportDocument:
    events = tuple(_columns(document.get("events", [])))
    room, names = Room(), document.get("names", [])
    strikes = _strikes(document.get("events", []))
    findings, waived = (
        tuple(_finding(each, names, strikes, room) for each in _list(document.get(key, [])))
        for key in ("findings", "waived")
    )
    code = document["exit_code"]
    if code not in (0, EXIT_UNDECIDED, *EXIT_CODES.values()):
        raise ValueError("exit_code is none of ours")
    return ReportDocument(
        document=document,
        zaudit=text(document["zaudit"]),
        rules=text(document.get("rules", "")),
        host=text(document["host"]),
        openzfs=text(document["openzfs"]),
        taken=moment(document["taken"]),
        targets=tuple(map(text, _list(document["targets"]))),
        standing=text(document["standing"]),
        headline=text(document["headline"]),
        threshold=one_of(document["threshold"], SEVERITIES),
        exit_code=code,
        next=text(document["next"]),
        coverage={key: _count(document["coverage"][key]) for key in COUNTED},
        findings=findings,
        waived=waived,
        left_out=tuple(
            (text(each["rule"]), one_of(each["severity"], SEVERITIES), text(each["by"]))
            for each in _list(document.get("left_out", []))
        ),
        events=events,
        users={
            text(each["dataset"]): tuple(map(text, _list(each["by"]))) for each in _list(document.get("used_by", []))
        },
    )  # fmt: skip


def _finding(each: Mapping[str, Any], names: Any, strikes: Mapping[str, Event], room: Room) -> Finding:
    """With what follows from the rest, and what an older release said in another way."""
    outcome, rule = each["outcome"], text(each["rule"])
    verdicts = _list(each["verdicts"] if "verdicts" in each else each["subjects"])
    first = list(islice(spread(verdicts, names, room), SUBJECTS))
    subjects = [SubjectName(one["kind"], one.get("pool", ""), one["name"]) for one in first]
    subjects = list(dict.fromkeys(subjects)) if each.get("bugs") else subjects
    message = [text(each["message"])] if "message" in each else []
    was, title = one_of(each["was"], OUTCOMES[:2]) if outcome == "waived" else outcome, text(each["title"])
    follows = {
        "was": was,
        "event": one_of(each["event"], EVENTS) if "event" in each else strikes.get(rule, ""),
        "title": unknown_headline(title) if was == "unknown" else title,
        "where": each.get("where", each["place"]),
        "says": list(dict.fromkeys((*message, *(words for one in first for words in _says(one))))),
        "subjects": codec.plain(subjects),
        "total": len(subjects) if each.get("bugs") else _total(verdicts, names),
        "waiver": _waiver(each["waiver"]) if outcome == "waived" else None,
        "known": each["known"]["since"] if "known" in each else "",
        "page": _page(each["page"], rule) if "page" in each else "",
        "url": _url(each["url"], rule) if "url" in each else "",
    }
    return codec.load(Finding, {**each, **follows}, "finding", codec.OF_ANY_RELEASE)


def _total(verdicts: Sequence[Mapping[str, Any]], names: Any) -> int:
    return sum(
        sum(last - first + 1 for first, last in runs(one["names"], len(names))) if "names" in one else 1
        for one in verdicts
    )


def _page(value: Any, rule: str) -> str:
    """As a report has it, if it is of this rule; a later release may keep its pages elsewhere."""
    page = text(value)
    return page if page == f"docs/rules/{rule}.md" and re.fullmatch(r"[a-z0-9-]+", rule) else ""


def _url(value: Any, rule: str) -> str:
    """Of the page of this rule, wherever that is published."""
    url, page = text(value), _page(f"docs/rules/{rule}.md", rule).removesuffix(".md")
    return url if page and url.endswith(f"/{page}.html") and re.fullmatch(PAGES, url) else ""


def _waiver(table: Mapping[str, Any]) -> dict[str, Any]:
    return {**table, "expires": date.fromisoformat(text(table["expires"])).isoformat()}


def _says(verdict: Mapping[str, Any]) -> Iterator[str]:
    if verdict.get("message"):
        yield text(verdict["message"])
        return
    yield from (text(each["text"]) for key in ("reasons", "evidence") for each in _list(verdict.get(key, [])))


def _strikes(columns: Any) -> dict[str, Event]:
    """Rule -> the mildest event that it decides."""
    found: dict[str, Event] = {}
    for event in EVENTS:
        for column in _list(columns):
            for rule in _list(column["events"].get(event, {}).get("rules", [])):
                found.setdefault(text(rule), event)
    return found


def _columns(columns: Any) -> Iterator[tuple[tuple[str, ...], Mapping[Event, tuple[str, str]]]]:
    for column in _list(columns):
        cells = {
            event: (one_of(column["events"][event]["outcome"], CELLS), text(column["events"][event]["text"]))
            for event in EVENTS
            if event in column["events"]
        }
        yield tuple(map(text, _list(column["datasets"]))), cells


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{type(value).__name__} in place of a list")
    if len(value) > FINDINGS:
        raise ValueError(f"more than {FINDINGS:,} of a kind")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= 1 << 53:
        raise TypeError("no count")
    return value


def worst(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The most severe first, failures before what is unknown, known bugs of the release last."""
    return tuple(
        sorted(
            findings,
            key=lambda each: (-RANK[each.severity], each.outcome != "fail", each.rule == ID, each.rule, each.place),
        )
    )


def causes(findings: Sequence[Finding]) -> list[tuple[Finding, ...]]:
    """Each failure alone, and what is undecided for the same reasons together: a command that gave no answer is one cause."""
    groups: dict[object, list[Finding]] = {}
    for each in findings:
        groups.setdefault(each.says if each.outcome == "unknown" else (each.id, id(each)), []).append(each)
    return list(map(tuple, groups.values()))


def brief(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
