"""HTML of which every text is escaped where it becomes HTML, and the page around it: self-contained, nothing is loaded, nothing
runs. Light, dark and on paper."""

from __future__ import annotations

import html
import pkgutil
from collections.abc import Iterable
from typing import NamedTuple

from auditor.text import harmless

# what a browser may do with the page, should a name ever slip through the escaping: nothing but show it
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


def lines(content: Iterable[str], between: str = "\n") -> Element:
    """Lines of text, for what keeps their ends."""
    return Element(between.join(map(_escaped, content)))


def _escaped(text: str) -> str:
    """Control characters are spelt out."""
    return html.escape(harmless(text))


def page(title: str, content: Iterable[Element]) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{element('title', title).html}\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(each.html for each in content)
        + "\n</main>\n</body>\n</html>\n"
    )
