"""What all formats of a checklist say alike."""

from __future__ import annotations

from datetime import UTC, datetime

from auditor.checklist.model import (
    ANSWERS,
    PASSES,
    UNMEASURED,
    UNWATCHED,
    Answer,
    Answered,
    Checklist,
    Evidence,
    Said,
    wrong,
)
from auditor.diagnose.diagnosis import Diagnosis
from auditor.report.model import Report
from auditor.text import harmless, quoted
from auditor.verify.result import Verification

PERSON = "Ask a person"
HEADS: dict[Answer, str] = {
    "no": "No",
    "open": "Open",
    "accepted": "Accepted by somebody",
    "yes": "Yes",
    "does not apply": "Does not apply here",
}
SAID = 2  # things that a reader is shown of a line
MEANS = {"check": "zaudit check", "verify": "zaudit verify", "diagnose": "zaudit diagnose"}
COMMANDS = ("zaudit", "zfs", "zpool", "apt", "nvme", "hdparm", "smartctl", "echo", "systemctl", "sed", "psql")
DAY = 86400
UNITS = (("day", DAY), ("hour", 3600), ("minute", 60))


def counts(found: Checklist) -> str:
    """2 no, 6 open (2 for a person), 12 yes."""
    told = []
    for answer in ANSWERS:
        lines = found.of(answer)
        if lines or answer in ("no", "open", "yes"):
            people = sum(each.person for each in lines)
            more = f" ({people} for a person)" if people else ""
            word = "do not apply" if answer == "does not apply" and len(lines) > 1 else answer
            told.append(f"{len(lines)} {word}{more}")
    return ", ".join(told)


def when(seconds: float) -> str:
    """2026-11-23 07:30 UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def age(found: Checklist, taken: float) -> str:
    """21 days old; empty for what was seen just now."""
    past = found.made - taken
    unit, seconds = next(((unit, each) for unit, each in UNITS if past >= 2 * each), ("", 1))
    if past < -60:
        return "of the future"
    return f"{past / seconds:.0f} {unit}s old" if unit else ""


def evidence(found: Checklist) -> list[tuple[str, str]]:
    """(zaudit verify, when and what it said) of each look, and of those that there was none of."""
    by = {each.by: each for each in found.evidence}
    return [(MEANS[name], _look(found, by[name]) if name in by else "none") for name in ("check", "verify", "diagnose")]


def _look(found: Checklist, each: Evidence) -> str:
    old = age(found, each.taken)
    changed = f"; since then {'; '.join(each.changed)}" if each.changed else ""
    return f"{when(each.taken)}{f', {old}' if old else ''}: {each.text}{changed}"


def of_audit(report: Report) -> str:
    """200 of 205 rules decided."""
    return f"{report.coverage.decided} of {report.coverage.rules} rules decided"


def minds(report: Report) -> str:
    """What a reader has to know of a look besides: an edited recording, a policy, where zaudit stood; or empty."""
    told = [f"no host has answered so, the recording is edited: {harmless(report.edited)}"] if report.edited else []
    told += [f"by the policy {harmless(report.policy)}"] if report.policy else []
    told += [report.seen_from.rstrip(".")] if report.seen_from else []
    return "".join(f"; {each}" for each in told)


def of_verification(found: Verification) -> str:
    """postgres, quick: TRACED."""
    return f"{harmless(found.profile)}, {found.length}: {found.chain.outcome}"


def of_diagnosis(found: Diagnosis) -> str:
    """30 s, traced: NOTHING STANDS OUT."""
    return f"{found.seconds:.0f} s, {'counters alone' if found.traced is None else 'traced'}: {found.outcome}"


def title(found: Checklist, line: Answered) -> str:
    """Of the list that a line is on."""
    return dict(found.titles)[line.list]


def shown(line: Answered, verbose: bool) -> tuple[Said, ...]:
    """What a reader is shown of what decided it; that nothing was measured is said above the line."""
    if verbose:
        return line.said
    told = {each.text: each for each in line.deciding if each.text not in (UNMEASURED, UNWATCHED)}
    return tuple(told.values())[:SAID]


def rests_on(found: Checklist, line: Answered) -> str:
    """What a line rests on, on one line, with its age where it is of another day than the list."""
    taken = {each.by: each.taken for each in found.evidence}
    old = {by: age(found, at) for by, at in taken.items() if found.made - at >= DAY}
    groups: dict[str, list[str]] = {}
    passed = [each for each in line.deciding if each.text == f"{each.rule} {PASSES}"]
    for each in line.deciding:
        if each not in passed:
            groups.setdefault(old.get(each.by, ""), []).append(each.text)
    told = [f"{when}: {', '.join(texts)}" if when else ", ".join(texts) for when, texts in groups.items()]
    if passed:
        told.append(f"{len(passed)} rules that could speak against it pass" if len(passed) > 1 else passed[0].text)
    return "; ".join(told)


def then(found: Checklist) -> str:
    """What to do next, and how what comes of it gets into the list."""
    kept = found.next.rpartition(" --record ")[2] if " --record " in found.next else ""
    return f"{found.next}, then zaudit checklist {quoted(found.target)} --replay {kept}" if kept else found.next


def inapplicable(found: Checklist) -> list[tuple[str, int, str]]:
    """(title of the list, how many of its lines, why) of those that do not apply."""
    by: dict[tuple[str, str], int] = {}
    for line in found.of("does not apply"):
        key = title(found, line), line.deciding[0].text
        by[key] = by.get(key, 0) + 1
    return [(name, count, why) for (name, why), count in by.items()]


def no_by(found: Checklist) -> list[tuple[Said, list[Answered]]]:
    """What is wrong, the gravest first, and the lines that it makes a no."""
    groups: dict[str, tuple[Said, list[Answered]]] = {each.text: (each, []) for each in wrong(found.lines)}
    for line in found.of("no"):
        first = next(text for text in groups if any(each.text == text for each in line.deciding))
        groups[first][1].append(line)
    return [each for each in groups.values() if each[1]]


def open_by(found: Checklist) -> list[tuple[str, list[Answered]]]:
    """What would answer which open lines, most first; a person last. Each line once: by what it lacks first."""
    groups: dict[str, list[Answered]] = {}
    for line in found.of("open"):
        do = PERSON if line.person else next(each.do or each.text for each in line.deciding if each.by != "person")
        groups.setdefault(do, []).append(line)
    return sorted(groups.items(), key=lambda each: (each[0] == PERSON, -len(each[1])))


def is_command(do: str) -> bool:
    """Whether it is to be pasted, and not a deed."""
    return do.partition(" ")[0] in COMMANDS
