"""A document as a page for a browser."""

from __future__ import annotations

import html
import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import NamedTuple

from auditor.report import document as doc
from auditor.text import harmless

# look -> its element and class; a badge is a word that stands for an answer
LOOKS: dict[doc.Look, tuple[str, str]] = {
    "strong": ("b", ""),
    "dim": ("span", "dim"),
    "command": ("code", ""),
    "repeat": ("code", "dim"),
    **dict.fromkeys(("good", "kept", "safe"), ("span", "good")),
    **dict.fromkeys(("bad", "lost", "rebuilds the pool", "destroys data"), ("span", "bad")),
    **dict.fromkeys(("open", "unknown", "word", "needs restart"), ("span", "open")),
    **dict.fromkeys(("critical", "high"), ("span", "badge bad")),
    **dict.fromkeys(("medium", "undecided", "waived"), ("span", "badge open")),
    **dict.fromkeys(("low", "known"), ("span", "badge dim")),
    "passed": ("span", "badge good"),
}
# what may be divided over two sheets of paper
LONG = (doc.Finding, doc.Details, doc.Boxes, doc.Events, doc.Tree, doc.Code)


def write(document: doc.Document) -> str:
    return whole_page(document.title, _content(document))


def _content(document: doc.Document) -> Iterator[Element]:
    yield element("h1", document.title)
    facts = [each for fact in document.facts for each in (" · ", _line(fact))][1:]
    yield element("p", *facts, class_="dim small")
    yield from _blocks(document.blocks)
    if document.signed:
        yield element("div", *(element("div", each) for each in ("Name", "Date", "Signature")), class_="sign")
    if document.footer:
        yield element("footer", document.footer)


def _blocks(blocks: Sequence[doc.Block]) -> Iterator[Element]:
    return (each for each in map(_block, blocks) if each.html)


def _block(block: doc.Block) -> Element:
    match block:
        case doc.Say():
            look = {"dim": "dim small", "strong": ""}.get(block.look, block.look)
            line = _line(block.line)
            return element("p", element("b", line) if block.look == "strong" else line, class_=look)
        case doc.Entries():
            return _pairs(block.rows)
        case doc.Finding():
            return _finding(block)
        case doc.Table():
            return _table(block)
        case doc.Events():
            return joined(each for where, rows in block.groups for each in _group(where, rows))
        case doc.Tree():
            return element("ul", *map(_item, block.items))
        case doc.Chain():
            return _chain(block.links)
        case doc.Code():
            between = " \\\n    " if block.continued else "\n"
            heading = element("h3", block.title) if block.title else None
            return joined((heading, element("pre", code_lines(block.lines, between))))
        case doc.Picture():
            return block.drawn() or Element("")
        case doc.Boxes():
            return element("ul", *map(_box, block.boxes), class_="boxes")
        case doc.Details():
            inside = tuple(_blocks(block.blocks))
            return element("details", element("summary", _line(block.summary)), *inside)
        case doc.Verdict():
            word = element("div", block.word, class_="word")
            return element("div", word, *_blocks(block.blocks), class_=f"verdict {block.tone}")
        case doc.Section():
            return _section(block)


def _section(block: doc.Section) -> Element:
    inside = tuple(_blocks(block.blocks))
    if not inside:
        return Element("")
    if not block.title:
        return joined(inside)
    long = "long" if any(isinstance(each, LONG) for each in block.blocks) else None
    return element("section", element("h2", block.title), *inside, class_=long)


def _line(line: doc.Line) -> Element:
    return joined(map(_run, doc.runs(line)))


def _run(run: doc.Run) -> Element | str:
    if not run.text:
        return ""
    if run.link:
        return element("a", run.text, href=run.link, class_="dim")
    if not run.look:
        return run.text
    name, kind = LOOKS[run.look]
    return element(name, run.text, class_=kind)


def _pairs(rows: Sequence[doc.Entry]) -> Element:
    """Words of one row after the other, without the blanks that a terminal divides them with."""
    words = (element("dt", _run(row.word)) if row.word.text else None for row in rows)
    lines = (element("dd", _line(row.line)) for row in rows)
    return element("dl", *chain.from_iterable(zip(words, lines, strict=True)))


def _finding(block: doc.Finding) -> Element:
    return element(
        "div",
        element("h3", element("span", block.word.text, class_=f"badge {block.tone}"), " ", block.name),
        " ",
        _line(block.where),
        element("p", block.says) if block.says else None,
        _pairs(block.rows) if block.rows else None,
        class_=f"finding {block.tone}",
    )


def _table(block: doc.Table) -> Element:
    """Empty without rows. Whoever cannot point scrolls it with the keyboard."""
    if not block.rows:
        return Element("")
    kinds = ["number" if each.number else None for each in block.columns]
    heads = [
        element("th", column.head, scope="col", class_=kind) if column.head else element("td")
        for column, kind in zip(block.columns, kinds, strict=True)
    ]
    rows = (
        element("tr", *(element("td", _line(cell), class_=kind) for cell, kind in zip(row, kinds, strict=True)))
        for row in block.rows
    )
    head = element("tr", *heads) if any(each.head for each in block.columns) else None
    return element("div", element("table", head, *rows), class_="table", tabindex="0")


def _group(where: str, rows: Sequence[tuple[str, doc.Line]]) -> Iterator[Element]:
    yield element("h3", where)
    shown = (element("tr", element("th", what, scope="row"), element("td", _line(cost))) for what, cost in rows)
    yield element("table", *shown, class_="events")


def _item(item: doc.Item) -> Element:
    below = element("ul", *map(_item, item.below)) if item.below else None
    return element("li", _line(item.line), below)


def _chain(links: Sequence[doc.Link]) -> Element:
    items = []
    for side, group in groupby(links, key=lambda each: each.side):
        shown = [_link(each) for each in group]
        if side:
            items.append(element("li", *(element("div", *each, class_="link") for each in shown), class_="legs"))
        else:
            items += [element("li", *each, class_="link") for each in shown]
    return element("ol", *items, class_="chain")


def _link(link: doc.Link) -> Iterator[Element]:
    yield element("span", link.sign, class_=f"sign {link.tone}")
    yield element("span", link.name, class_="name")
    yield element("span", link.word, class_=f"badge {link.tone}")
    yield element("div", link.text)
    if link.figures:
        figures = (element("div", element("b", f"{number:,}"), element("span", what)) for what, number in link.figures)
        yield element("div", *figures, class_="figures")


def _box(box: doc.Box) -> Element:
    return element(
        "li",
        element("span", box.sign, class_=f"box {box.tone}", role="img", aria_label=box.answer),
        element("b", box.text),
        element("span", box.list, class_="list") if box.list else None,
        *(element("p", each, class_="dim small") for each in box.why if doc.plain(each)),
    )


# HTML of which every text is escaped where it becomes HTML, and the page around it: self-contained, nothing is loaded, nothing
# runs. Light, dark and on paper.


# what a browser may do with the whole_page, should a name ever slip through the escaping: nothing but show it
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = (pkgutil.get_data(__name__, "page.css") or b"").decode()
VOID = ("meta", "br", "path", "rect")


class Element(NamedTuple):
    """HTML; made by the functions below and by nothing else."""

    html: str


Content = Element | str | None


def element(name: str, *content: Content, **attributes: str | None) -> Element:
    """An element. content: what is in it, text or elements; attributes: class_ is class, aria_label is aria-label."""
    given = "".join(
        f' {key.strip("_").replace("_", "-")}="{_escaped(value)}"' for key, value in attributes.items() if value
    )
    inside = joined(content).html
    return Element(f"<{name}{given}/>" if name in VOID and not inside else f"<{name}{given}>{inside}</{name}>")


def joined(content: Iterable[Content]) -> Element:
    return Element("".join(each.html if isinstance(each, Element) else _escaped(each) for each in content if each))


def code_lines(content: Iterable[str], between: str = "\n") -> Element:
    """Lines of text, for what keeps their ends."""
    return Element(between.join(map(_escaped, content)))


def _escaped(text: str) -> str:
    """Control characters are spelt out."""
    return html.escape(harmless(text))


def whole_page(title: str, content: Iterable[Element]) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{element('title', title).html}\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(each.html for each in content)
        + "\n</main>\n</body>\n</html>\n"
    )
