"""A checklist on one screen: what was seen, line by line, made into answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from auditor.checklist import judged, measured, watched
from auditor.checklist.judged import Audited, Runs
from auditor.checklist.measured import Verified
from auditor.checklist.model import Answer, Answered, Checklist, Evidence, Said, wrong
from auditor.data.checklists import Line, List
from auditor.diagnose.diagnosis import Diagnosis
from auditor.facts import Unknown
from auditor.judge.finding import EXIT_CODES, EXIT_UNDECIDED
from auditor.text import harmless, quoted


class Seen(NamedTuple):
    """All that there is. stale: of a verification ("verify") and a diagnosis, what has changed since."""

    audit: Audited
    runs: Runs | None = None
    verified: Verified | None = None
    diagnosed: Diagnosis | None = None
    stale: tuple[tuple[str, tuple[str, ...]], ...] = ()


def checklist(lists: Sequence[List], seen: Seen, evidence: tuple[Evidence, ...], made: float) -> Checklist:
    """All lists, answered. made: seconds since the epoch."""
    report = seen.audit.report
    lines = tuple(_answered(line, each.id, seen) for each in lists for line in each.lines)
    return Checklist(
        target=seen.audit.target.name,
        hostname=report.hostname,
        release=report.release,
        made=made,
        evidence=evidence,
        titles=tuple((each.id, each.title) for each in lists),
        lines=lines,
        next=_next(lines, seen),
        exit_code=_exit_code(lines),
    )


def _answered(line: Line, list_: str, seen: Seen) -> Answered:
    said = tuple(_current(each, line, seen) for each in _said(line, seen))
    answer = decide(line, said)
    ordered = sorted(
        said, key=lambda each: (each.answer != answer, each.rule in line.against, answer == "yes" and bool(each.rule))
    )
    return Answered(list_, line.id, line.text, line.source, answer, tuple(dict.fromkeys(ordered)))


def decide(line: Line, said: Sequence[Said]) -> Answer:
    """A line is as its worst saying: no, then open, then what somebody answers for. It is yes only where something that
    answers it passed; what can only speak against it answers nothing."""
    answers = {each.answer for each in said}
    for worst in ("no", "open", "accepted"):
        if worst in answers:
            return worst
    if any(each.answer == "yes" and each.rule not in line.against for each in said):
        return "yes"
    return "does not apply" if said and not any(each.rule for each in said) else "open"


def _said(line: Line, seen: Seen) -> Iterator[Said]:
    target = seen.audit.target.name
    if line.on == "log":
        devices = judged.log_devices(seen.audit.facts)
        if isinstance(devices, Unknown):
            yield Said("open", "check", harmless(devices.reasons[0].text), harmless(devices.reasons[0].remedy))
            return
        if not devices:
            yield Said("does not apply", "check", "the pool has no log device", f"zpool status {_pool(target)}")
            return
    yield from judged.told(line, seen.audit, seen.runs, measured.command(target, line.verify))
    yield from judged.known(line, seen.audit)
    yield from measured.told(line, seen.verified, target)
    yield from watched.told(line, seen.diagnosed, target)
    if line.ask:
        yield Said("open", "person", line.ask)


def _pool(target: str) -> str:
    return quoted(target.partition("/")[0])


def _current(said: Said, line: Line, seen: Seen) -> Said:
    """What was measured under another configuration answers nothing."""
    changed = dict(seen.stale).get(said.by, ())
    if not changed or said.answer == "open":
        return said
    target = seen.audit.target.name
    again = measured.command(target, line.verify) if said.by == "verify" else watched.command(target)
    word = "measured" if said.by == "verify" else "watched"
    return Said("open", said.by, f"{word} before a change: {changed[0]}", again, said.rule)


def _exit_code(lines: Sequence[Answered]) -> int:
    """As of an audit: by the worst that a no rests on, else 10 while a command would answer something, else 0."""
    if worst := [EXIT_CODES[said.severity] for line in lines for said in line.said if said.severity]:
        return max(worst)
    return EXIT_UNDECIDED if any(line.answer == "open" and not line.person for line in lines) else 0


def _next(lines: Sequence[Answered], seen: Seen) -> str:
    """One command: what mends the gravest no, else what answers most open lines, else the page to sign."""
    if nos := wrong(lines):
        return nos[0].do
    missing = [
        said.do for line in lines for said in line.said if said.answer == "open" and said.do.startswith("zaudit ")
    ]
    if missing:
        return max(missing, key=missing.count)
    return f"zaudit checklist {quoted(seen.audit.target.name)} --format html -o checklist.html"
