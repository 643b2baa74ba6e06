"""A checklist as one page, to be read, printed and signed: opens offline, and works without a script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from auditor.checklist.model import Answer, Answered, Checklist
from auditor.report.checklist import words
from auditor.report.page import escaped, page, paragraph, section

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


def render(found: Checklist, *, zaudit: str = "") -> str:
    """The whole page."""
    title = f"Checklist of {found.target} on {found.hostname}"
    made = f"OpenZFS {found.release} · drawn up {words.when(found.made)} by zaudit {zaudit}".rstrip()
    parts = [
        f"<h1>{escaped(title)}</h1>",
        _verdict(found, made),
        section(words.HEADS["no"], _no(found), "long"),
        section(words.HEADS["open"], _open(found), "long"),
        section(words.HEADS["accepted"], _lines(found, "accepted"), "long"),
        section(words.HEADS["yes"], _lines(found, "yes"), "long"),
        section(words.HEADS["does not apply"], _inapplicable(found)),
        f"<p><b>Next:</b> {_do(words.then(found))}</p>",
        '<div class="sign"><div>Name</div><div>Date</div><div>Signature</div></div>',
        f"<footer>{escaped(made)}. A box is ticked only where everything that the line asks for was seen and passed.</footer>",
    ]
    return page(title, (part for part in parts if part), STYLE)


def _verdict(found: Checklist, made: str) -> str:
    kind = "bad" if found.of("no") else "open" if found.of("open") or found.of("accepted") else "good"
    rows = "".join(f"<tr><td>{escaped(name)}</td><td>{escaped(text)}</td></tr>" for name, text in words.evidence(found))
    return (
        f'<div class="verdict {kind}"><div class="word">{escaped(words.counts(found))}</div>{paragraph(made, "dim")}'
        f'<table class="evidence">{rows}</table></div>'
    )


def _no(found: Checklist) -> Iterator[str]:
    """By what is wrong."""
    for wrong, lines in words.no_by(found):
        yield f"<h3>{escaped(wrong.text)}</h3><p><b>Fix:</b> {_do(wrong.do)}</p>"
        yield _boxes(found, ((line, [each.text for each in line.deciding if each != wrong]) for line in lines))


def _open(found: Checklist) -> Iterator[str]:
    """By what would answer them."""
    for do, lines in words.open_by(found):
        yield f"<h3>{_do(do)}</h3>"
        yield _boxes(found, ((line, [each.text for each in words.shown(line, False)]) for line in lines))


def _lines(found: Checklist, answer: Answer) -> Iterator[str]:
    if lines := found.of(answer):
        yield _boxes(found, ((line, (words.rests_on(found, line),)) for line in lines))


def _inapplicable(found: Checklist) -> Iterator[str]:
    for title, count, why in words.inapplicable(found):
        yield paragraph(f"{title}, {count} lines: {why}.")


def _boxes(found: Checklist, lines: Iterable[tuple[Answered, Iterable[str]]]) -> str:
    return f'<ul class="boxes">{"".join(_box(found, line, said) for line, said in lines)}</ul>'


def _box(found: Checklist, line: Answered, said: Iterable[str]) -> str:
    sign, kind = SIGNS[line.answer]
    why = "".join(paragraph(each, "dim small") for each in said)
    return (
        f'<li><span class="box {kind}" role="img" aria-label="{line.answer}">{sign}</span><b>{escaped(line.text)}</b>'
        f'<span class="list">{escaped(words.title(found, line))}</span>{why}</li>'
    )


def _do(do: str) -> str:
    return f"<code>{escaped(do)}</code>" if words.is_command(do) else escaped(do)
