"""Parts that the page of a fleet and those of its hosts share. Texts are escaped here, HTML is named so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.report.fleet import words
from auditor.report.page import escaped

# on a telephone a row is a paragraph, with what is longest in a line of its own, and a figure says what it counts
STYLE = """
.narrow { display: none; }
@media (max-width: 40rem) {
.narrow { display: inline; }
.table tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line); } .table tr:has(th) { display: none; }
.table td, .table th { display: inline; border: 0; padding: 0 .6rem 0 0; }
.table td:last-child { display: block; }
}
"""
STANDINGS = {"kept": "good"} | dict.fromkeys(words.BAD, "bad")


def figure(number: int, what: str) -> str:
    """what: the word that the head of its column stands for; an s in brackets is for more than one: host(s)."""
    word = what.replace("(s)", "s" * (number != 1))
    return f'{number:,}<span class="narrow"> {word}</span>'


def colour(standing: str) -> str:
    """The class of a standing: good, bad or open."""
    return STANDINGS.get(standing, "open")


def severity(severity: str, outcome: str) -> str:
    """HIGH, or HIGH? where it is not decided."""
    return f'<span class="badge {failing(severity, outcome)}">{severity.upper() + ("" if outcome == "fail" else "?")}</span>'


def failing(severity: str, outcome: str) -> str:
    """The class of a finding: bad, open or dim."""
    return "open" if outcome != "fail" else "bad" if severity in ("critical", "high") else "dim"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """heads: text; rows: HTML. Empty where there are none."""
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    head = "".join(f'<th scope="col">{escaped(each)}</th>' if each else "<td></td>" for each in heads)
    return f'<div class="table" tabindex="0"><table><tr>{head}</tr>{body}</table></div>' if body else ""
