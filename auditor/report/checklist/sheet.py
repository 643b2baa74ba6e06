"""A checklist with its answers: on a terminal, as Markdown, as a page, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from auditor.checklist.lists import (
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
from auditor.report.formats._told import brief
from auditor.report.formats.markdown import code, text
from auditor.report.model import Report
from auditor.report.page import escaped, page, paragraph, section
from auditor.report.terminal import Hanging, printed
from auditor.text import harmless, quoted, valid_unicode
from auditor.verify.codec import plain
from auditor.verify.result import Verification

# What all formats of a checklist say alike.

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


# A checklist for a person at a terminal: how many lines are what, then what is no, what would answer the open ones, and what is
# yes.

STYLES: dict[Answer, str] = {"no": "bold red", "open": "bold magenta", "accepted": "bold blue", "yes": "green"}
BOXES: dict[Answer, str] = {"no": "[!]", "open": "[ ]", "accepted": "[a]", "yes": "[x]", "does not apply": "[-]"}
AT = 6


def render_terminal(
    found: Checklist,
    *,
    zaudit: str = "",
    width: int = 100,
    color: bool = False,
    ascii_only: bool = False,
    verbose: bool = False,
) -> str:
    """The whole list as text that ends with a newline. verbose: everything that a line rests on."""
    parts = [
        *_start(found, zaudit),
        *_no(found, verbose),
        *_open(found, verbose),
        *_plain(found, "accepted", verbose),
        *_plain(found, "yes", verbose),
        *_inapplicable(found),
        Text(),
        Hanging(Text("Next: "), Text(f"{harmless(then(found))}   (exit code {found.exit_code})"), 6),
    ]
    return printed(parts, width=max(width, 40), color=color, ascii_only=ascii_only)


def _start(found: Checklist, zaudit: str) -> Iterator[RenderableType]:
    first = Text(f"{harmless(found.target)} on {harmless(found.hostname)}: ", "bold")
    yield first.append(counts(found), "default not bold")
    head = (f"zaudit {zaudit}".rstrip(), f"OpenZFS {harmless(found.release)}", f"drawn up {when(found.made)}")
    yield Text(" · ".join(head), "dim")
    for name, value in evidence(found):
        style = "magenta" if value == "none" else ""
        yield Hanging(Text(f"  {name:<16}", "dim"), Text(value, style), 18)


def _head(found: Checklist, answer: Answer) -> Iterator[RenderableType]:
    yield Text()
    yield Text(f"{HEADS[answer].upper()}  {len(found.of(answer))}", STYLES.get(answer, "dim bold"))


def _no(found: Checklist, verbose: bool) -> Iterator[RenderableType]:
    """By what is wrong."""
    groups = no_by(found)
    if groups:
        yield from _head(found, "no")
    for fault, lines in groups:
        yield Hanging(Text("  "), Text(harmless(fault.text), "bold"), 2)
        yield Hanging(Text("  Fix ", "dim"), Text(harmless(fault.do)), AT)
        for line in lines:
            yield _line(line)
            yield from _said([each for each in shown(line, verbose) if each != fault])


def _plain(found: Checklist, answer: Answer, verbose: bool) -> Iterator[RenderableType]:
    """The lines with an answer, list by list."""
    lines = found.of(answer)
    if not lines:
        return
    yield from _head(found, answer)
    for id, title in found.titles:
        own = [each for each in lines if each.list == id]
        if own:
            yield Text(f"  {title}", "dim")
        for line in own:
            yield _line(line)
            if answer == "yes" and not verbose:
                yield _cut(Text(harmless(rests_on(found, line)), "dim"))
            else:
                yield from _said(shown(line, verbose))


def _open(found: Checklist, verbose: bool) -> Iterator[RenderableType]:
    """By what would answer them."""
    groups = open_by(found)
    if groups:
        yield from _head(found, "open")
    for do, lines in groups:
        yield Text(f"  {harmless(do)}", "dim" if do == PERSON else "bold")
        for line in lines:
            yield _line(line)
            yield from _said(shown(line, verbose))


def _inapplicable(found: Checklist) -> Iterator[RenderableType]:
    if told := inapplicable(found):
        yield from _head(found, "does not apply")
    for title, count, why in told:
        yield Hanging(Text("  [-] ", "dim"), Text(f"{title}, {count} line{'s' * (count > 1)}: {why}.", "dim"), AT)


def _line(line: Answered) -> RenderableType:
    return Hanging(Text(f"  {BOXES[line.answer]} ", STYLES.get(line.answer, "dim")), Text(f"{line.text}."), AT)


def _said(said: Sequence[Said]) -> Iterator[RenderableType]:
    for each in said:
        yield Hanging(Text(" " * AT), Text(harmless(each.text), "dim"), AT)


def _cut(text: Text) -> RenderableType:
    """On one line, as far as there is room."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return Padding(text, (0, 0, 0, AT))


# A checklist for a ticket: task boxes, of which only a yes is ticked. What comes from hosts stands with every mark escaped.

LONGEST = 300


def render_markdown(found: Checklist, *, zaudit: str = "") -> str:
    """The text, which ends with a newline."""
    return "\n".join(_markdown(found, zaudit)) + "\n"


def _markdown(found: Checklist, zaudit: str) -> Iterator[str]:
    yield f"## Checklist of {_code(found.target)} on {_code(found.hostname)}: {counts(found)}\n"
    yield f"OpenZFS {_code(found.release)}, drawn up {when(found.made)} by {code(f'zaudit {zaudit}'.rstrip())}\n"
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


def _markdown_line(line: Answered, said: tuple[Said, ...] | list[Said]) -> Iterator[str]:
    why = "; ".join(_text(each.text) for each in said)
    yield f"- [ ] {_text(line.text)}{f': {why}' if why else ''}"


def _markdown_do(do: str) -> str:
    return _code(do) if is_command(do) else _text(do)


def _text(told: str) -> str:
    return text(brief(harmless(told), LONGEST))


def _code(told: str) -> str:
    return code(brief(harmless(told), LONGEST))


# A checklist as one page, to be read, printed and signed: opens offline, and works without a script.

SIGNS: dict[Answer, tuple[str, str]] = {
    "no": ("✗", "bad"),
    "open": ("", "open"),
    "accepted": ("a", "open"),
    "yes": ("✓", "good"),
    "does not apply": ("–", "dim"),
}
STYLE = """
ul.boxes { list-style: none; padding: 0; margin: 6px 0 14px; }
ul.boxes li { position: relative; padding: 5px 0 5px 34px; break-inside: avoid; }
ul.boxes .box { position: absolute; left: 2px; top: 7px; width: 19px; height: 19px; border: 1.5px solid; border-radius: 3px;
  text-align: center; font: 700 14px/16px system-ui, sans-serif; }
ul.boxes .list { color: var(--dim); font-size: 12.5px; margin-left: 6px; white-space: nowrap; }
ul.boxes p { margin: 0; }
h3 { margin: 16px 0 2px; } h3 code { font-weight: 600; }
table.evidence { color: var(--text); margin-top: 8px; } table.evidence tr:last-child td { border-bottom: 0; padding-bottom: 0; }
table.evidence td:first-child { white-space: nowrap; width: 1%; padding-right: 24px; }
.sign { display: grid; grid-template-columns: 2fr 1fr 2fr; gap: 28px; margin-top: 56px; break-inside: avoid; }
.sign div { border-top: 1px solid var(--dim); padding-top: 4px; color: var(--dim); font-size: 13px; }
"""


def render_page(found: Checklist, *, zaudit: str = "") -> str:
    """The whole page."""
    title = f"Checklist of {found.target} on {found.hostname}"
    made = f"OpenZFS {found.release} · drawn up {when(found.made)} by zaudit {zaudit}".rstrip()
    parts = [
        f"<h1>{escaped(title)}</h1>",
        _page_verdict(found, made),
        section(HEADS["no"], _page_no(found), "long"),
        section(HEADS["open"], _page_open(found), "long"),
        section(HEADS["accepted"], _page_lines(found, "accepted"), "long"),
        section(HEADS["yes"], _page_lines(found, "yes"), "long"),
        section(HEADS["does not apply"], _page_inapplicable(found)),
        f"<p><b>Next:</b> {_page_do(then(found))}</p>",
        '<div class="sign"><div>Name</div><div>Date</div><div>Signature</div></div>',
        f"<footer>{escaped(made)}. A box is ticked only where everything that the line asks for was seen and passed.</footer>",
    ]
    return page(title, (part for part in parts if part), STYLE)


def _page_verdict(found: Checklist, made: str) -> str:
    kind = "bad" if found.of("no") else "open" if found.of("open") or found.of("accepted") else "good"
    rows = "".join(f"<tr><td>{escaped(name)}</td><td>{escaped(text)}</td></tr>" for name, text in evidence(found))
    return (
        f'<div class="verdict {kind}"><div class="word">{escaped(counts(found))}</div>{paragraph(made, "dim")}'
        f'<table class="evidence">{rows}</table></div>'
    )


def _page_no(found: Checklist) -> Iterator[str]:
    """By what is wrong."""
    for fault, lines in no_by(found):
        yield f"<h3>{escaped(fault.text)}</h3><p><b>Fix:</b> {_page_do(fault.do)}</p>"
        yield _boxes(found, ((line, [each.text for each in line.deciding if each != fault]) for line in lines))


def _page_open(found: Checklist) -> Iterator[str]:
    """By what would answer them."""
    for do, lines in open_by(found):
        yield f"<h3>{_page_do(do)}</h3>"
        yield _boxes(found, ((line, [each.text for each in shown(line, False)]) for line in lines))


def _page_lines(found: Checklist, answer: Answer) -> Iterator[str]:
    if lines := found.of(answer):
        yield _boxes(found, ((line, (rests_on(found, line),)) for line in lines))


def _page_inapplicable(found: Checklist) -> Iterator[str]:
    for title, count, why in inapplicable(found):
        yield paragraph(f"{title}, {count} lines: {why}.")


def _boxes(found: Checklist, lines: Iterable[tuple[Answered, Iterable[str]]]) -> str:
    return f'<ul class="boxes">{"".join(_box(found, line, said) for line, said in lines)}</ul>'


def _box(found: Checklist, line: Answered, said: Iterable[str]) -> str:
    sign, kind = SIGNS[line.answer]
    why = "".join(paragraph(each, "dim small") for each in said)
    return (
        f'<li><span class="box {kind}" role="img" aria-label="{line.answer}">{sign}</span><b>{escaped(line.text)}</b>'
        f'<span class="list">{escaped(title(found, line))}</span>{why}</li>'
    )


def _page_do(do: str) -> str:
    return f"<code>{escaped(do)}</code>" if is_command(do) else escaped(do)


# A checklist for a program: ``checklist_schema.json``.

SCHEMA = "zaudit-checklist/1"


def render_json(found: Checklist, *, zaudit: str = "") -> str:
    """JSON text that ends with a newline."""
    document = {"schema": SCHEMA, "zaudit": zaudit, "checklist": plain(found, valid_unicode)}
    return json.dumps(document, ensure_ascii=True, allow_nan=False) + "\n"
