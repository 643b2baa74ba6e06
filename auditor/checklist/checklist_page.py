"""A checklist with its answers: a page for a terminal or a browser, to be printed and signed; Markdown for a ticket; JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Unpack

from auditor.checklist import lists
from auditor.checklist.lists import Answer, Checklist, Evidence, LineAnswer, Statement
from auditor.codec import plain
from auditor.diagnose.diagnosis import Diagnosis
from auditor.report import document as doc
from auditor.report import html, terminal
from auditor.report.formats.pages import code, text
from auditor.report.model import Report
from auditor.report.report_reader import brief
from auditor.text import harmless, quoted, utc, valid_unicode
from auditor.verify.result import Verification

PERSON = "Ask a person"
HEADS: dict[Answer, str] = {
    "no": "No",
    "open": "Open",
    "accepted": "Accepted",
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
    for answer in lists.ANSWERS:
        lines = found.of(answer)
        if lines or answer in ("no", "open", "yes"):
            people = sum(each.person for each in lines)
            more = f" ({people} for a person)" if people else ""
            word = "do not apply" if answer == "does not apply" and len(lines) > 1 else answer
            told.append(f"{len(lines)} {word}{more}")
    return ", ".join(told)


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
    return f"{utc(each.taken)}{f', {old}' if old else ''}: {each.text}{changed}"


def of_audit(report: Report) -> str:
    """200 of 205 rules decided."""
    return f"{report.coverage.decided} of {report.coverage.rules} rules decided"


def minds(report: Report) -> str:
    """What a reader has to know of a look besides: an edited recording, a policy, where zaudit stood; or empty."""
    told = [f"edited recording, not a real host: {report.edited}"] if report.edited else []
    told += [f"by the policy {report.policy}"] if report.policy else []
    told += [report.seen_from.rstrip(".")] if report.seen_from else []
    return "".join(f"; {each}" for each in told)


def of_verification(found: Verification) -> str:
    """postgres, quick: TRACED."""
    return f"{found.profile}, {found.length}: {found.chain.outcome}"


def of_diagnosis(found: Diagnosis) -> str:
    """30 s, traced: NOTHING STANDS OUT."""
    return f"{found.seconds:.0f} s, {'counters alone' if found.traced is None else 'traced'}: {found.outcome}"


def title(found: Checklist, line: LineAnswer) -> str:
    return dict(found.titles)[line.list]


def shown(line: LineAnswer, verbose: bool) -> tuple[Statement, ...]:
    """What a reader is shown of what decided it; that nothing was measured is said above the line."""
    if verbose:
        return line.said
    told = {each.text: each for each in line.deciding if each.text not in (lists.UNMEASURED, lists.UNWATCHED)}
    return tuple(told.values())[:SAID]


def rests_on(found: Checklist, line: LineAnswer) -> str:
    """What a line rests on, on one line, with its age where it is of another day than the list."""
    taken = {each.by: each.taken for each in found.evidence}
    old = {by: age(found, at) for by, at in taken.items() if found.made - at >= DAY}
    groups: dict[str, list[str]] = {}
    passed = [each for each in line.deciding if each.text == f"{each.rule} {lists.PASSES}"]
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
    by = Counter((title(found, line), line.deciding[0].text) for line in found.of("does not apply"))
    return [(name, count, why) for (name, why), count in by.items()]


def no_by(found: Checklist) -> list[tuple[Statement, list[LineAnswer]]]:
    """What is wrong, the most severe first, and the lines that it makes a no."""
    groups: dict[str, tuple[Statement, list[LineAnswer]]] = {each.text: (each, []) for each in lists.wrong(found.lines)}
    for line in found.of("no"):
        first = next(text for text in groups if any(each.text == text for each in line.deciding))
        groups[first][1].append(line)
    return [each for each in groups.values() if each[1]]


def open_by(found: Checklist) -> list[tuple[str, list[LineAnswer]]]:
    """What would answer which open lines, most first; a person last. Each line once: by what it lacks first."""
    groups: dict[str, list[LineAnswer]] = {}
    for line in found.of("open"):
        do = PERSON if line.person else next(each.do or each.text for each in line.deciding if each.by != "person")
        groups.setdefault(do, []).append(line)
    return sorted(groups.items(), key=lambda each: (each[0] == PERSON, -len(each[1])))


def is_command(do: str) -> bool:
    """Whether it is to be pasted, and not a deed."""
    return do.partition(" ")[0] in COMMANDS


# -- the page --------------------------------------------------------------------------------------------------------------

SCHEMA = "zaudit-checklist/1"
BOXES: dict[Answer, tuple[doc.Tone, str, str]] = {
    "no": ("bad", "✗", "!"),
    "open": ("open", "", " "),
    "accepted": ("open", "a", "a"),
    "yes": ("good", "✓", "x"),
    "does not apply": ("open", "–", "-"),
}
TICKED = "A box is ticked only where everything that the line asks for was seen and passed."


def write(
    format_: str, found: Checklist, *, zaudit: str = "", verbose: bool = False, **screen: Unpack[terminal.Screen]
) -> str:
    """json (``zaudit schema checklist``), markdown, html, or else for a terminal. verbose: everything that a line rests on."""
    match format_:
        case "json":
            document = {"schema": SCHEMA, "zaudit": zaudit, "checklist": plain(found, valid_unicode)}
            return json.dumps(document, ensure_ascii=True, allow_nan=False) + "\n"
        case "markdown":
            return "\n".join(_markdown(found, zaudit)) + "\n"
        case "html":
            return html.write(built(found, zaudit, False))
        case _:
            return terminal.write(built(found, zaudit, verbose), **screen)


def built(found: Checklist, zaudit: str, verbose: bool) -> doc.Document:
    facts = (
        f"{found.target} on {found.hostname}",
        f"OpenZFS {found.release}",
        f"made {utc(found.made)} by zaudit {zaudit}".rstrip(),
    )
    tone: doc.Tone = "bad" if found.of("no") else "open" if found.of("open") or found.of("accepted") else "good"
    seen = doc.labelled(
        ((name, doc.Run(text, "open" if text == "none" else "")) for name, text in evidence(found)), at=18
    )
    blocks = (
        doc.Verdict(tone, counts(found), (seen,)),
        _section(found, "no", _no(found, verbose)),
        _section(found, "open", _open(found, verbose)),
        _section(found, "accepted", _plain(found, "accepted", verbose)),
        _section(found, "yes", _plain(found, "yes", verbose)),
        _section(found, "does not apply", _inapplicable(found)),
        doc.section("", [doc.Say(("Next: ", *_do(then(found)), f"   (exit code {found.exit_code})"))]),
    )
    return doc.Document(f"Checklist of {found.target} on {found.hostname}", facts, blocks, TICKED, signed=True)


def _section(found: Checklist, answer: Answer, blocks: Iterable[doc.Block]) -> doc.Section:
    return doc.section(f"{HEADS[answer]}: {len(found.of(answer))}", blocks)


def _no(found: Checklist, verbose: bool) -> Iterator[doc.Block]:
    for fault, lines in no_by(found):
        yield doc.Say(fault.text, "strong")
        yield doc.Say(("Fix: ", *_do(fault.do)))
        yield _boxes(found, ((line, [each.text for each in shown(line, verbose) if each != fault]) for line in lines))


def _open(found: Checklist, verbose: bool) -> Iterator[doc.Block]:
    for do, lines in open_by(found):
        yield doc.Say(do if do == PERSON else _do(do), "dim" if do == PERSON else "strong")
        yield _boxes(found, ((line, [each.text for each in shown(line, verbose)]) for line in lines))


def _plain(found: Checklist, answer: Answer, verbose: bool) -> Iterator[doc.Block]:
    """The lines with an answer, list by list."""
    cut = answer == "yes" and not verbose
    for id, name in found.titles:
        boxes = [
            _box(line, [rests_on(found, line)] if cut else [each.text for each in shown(line, verbose)])
            for line in found.of(answer)
            if line.list == id
        ]
        if boxes:
            yield doc.Say(name, "dim")
            yield doc.Boxes(tuple(boxes), cut)


def _inapplicable(found: Checklist) -> Iterator[doc.Block]:
    for name, count, why in inapplicable(found):
        yield doc.Say(f"{name}, {count} line{'s' * (count > 1)}: {why}.")


def _boxes(found: Checklist, lines: Iterable[tuple[LineAnswer, Iterable[str]]]) -> doc.Boxes:
    return doc.Boxes(tuple(_box(line, why, title(found, line)) for line, why in lines))


def _box(line: LineAnswer, why: Iterable[str], list: str = "") -> doc.Box:
    tone, sign, letter = BOXES[line.answer]
    return doc.Box(line.answer, tone, sign, letter, line.text, list, tuple(why))


def _do(do: str) -> tuple[doc.Run | str]:
    return (doc.command(do) if is_command(do) else do,)


# -- for a ticket: task boxes, of which only a yes is ticked. What comes from hosts is there with every mark escaped ----------

LONGEST = 300


def _markdown(found: Checklist, zaudit: str) -> Iterator[str]:
    yield f"## Checklist of {_code(found.target)} on {_code(found.hostname)}: {counts(found)}\n"
    yield f"OpenZFS {_code(found.release)}, made {utc(found.made)} by {code(f'zaudit {zaudit}'.rstrip())}\n"
    yield from (f"- {name}: {_text(told)}" for name, told in evidence(found))
    if groups := no_by(found):
        yield "\n### No"
    for fault, lines in groups:
        yield f"\n**{_text(fault.text)}** Fix: {_markdown_do(fault.do)}\n"
        for line in lines:
            yield from _markdown_line(line, [each for each in shown(line, False) if each != fault])
    if opens := open_by(found):
        yield "\n### Open"
    for do, lines in opens:
        yield f"\n{_markdown_do(do)}:\n"
        for line in lines:
            yield from _markdown_line(line, shown(line, False))
    for answer in ("accepted", "yes"):
        if of := found.of(answer):
            yield f"\n### {HEADS[answer]}\n"
        for line in of:
            why = rests_on(found, line)
            yield f"- [{'x' if answer == 'yes' else ' '}] {_text(line.text)}: {_text(why)}"
    if told := inapplicable(found):
        yield f"\n### {HEADS['does not apply']}\n"
        yield from (f"- {title}, {count} lines: {_text(why)}" for title, count, why in told)
    yield f"\nNext: {_markdown_do(then(found))}"


def _markdown_line(line: LineAnswer, said: tuple[Statement, ...] | list[Statement]) -> Iterator[str]:
    why = "; ".join(_text(each.text) for each in said)
    yield f"- [ ] {_text(line.text)}{f': {why}' if why else ''}"


def _markdown_do(do: str) -> str:
    return _code(do) if is_command(do) else _text(do)


def _text(told: str) -> str:
    return text(brief(harmless(told), LONGEST))


def _code(told: str) -> str:
    return code(brief(harmless(told), LONGEST))
