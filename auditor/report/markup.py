"""HTML of which every text is escaped where it becomes HTML, and the page around it: self-contained, nothing is loaded, nothing
runs. Light, dark and on paper."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import NamedTuple

from auditor.text import harmless

# what a browser may do with the page, should a name ever slip through the escaping: nothing but show it
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
LIGHT = """
  --back: #fff; --card: #f6f8fa; --line: #d6dbe1; --text: #1c2128; --dim: #59636e; --good: #1a7f37; --bad: #c5221f;
  --open: #7a3fc0; --mark: #b45309; --h0: #b3d0ec; --h1: #8db8e0; --h2: #659dd1; --h3: #3f7fbd; --h4: #20609f; --h5: #0b3a6e;
  --c0: #1f6feb; --c1: #c2410c; --c2: #15803d; --c3: #8a3ffc; --c4: #a16207; --c5: #be185d;"""
DARK = """
  --back: #12161b; --card: #1b2027; --line: #333b45; --text: #e4e8ec; --dim: #9aa5b1; --good: #4cc36b; --bad: #ff7b72;
  --open: #c69bff; --mark: #f0a04b; --h0: #27517d; --h1: #2f669c; --h2: #3b7dbc; --h3: #5798d8; --h4: #86bff0; --h5: #d2e9ff;
  --c0: #6cb0ff; --c1: #ff9a5c; --c2: #56d07a; --c3: #c69bff; --c4: #e3b341; --c5: #ff8ac0;"""
STYLE = f"""
:root {{ color-scheme: light dark; {LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}
@media print {{ :root {{ color-scheme: light; {LIGHT} --card: #fff; --text: #000; }} }}
"""
STYLE += """@media print { main { max-width: none; padding: 0; } h2 { break-after: avoid; }
  section, .verdict, .link, .finding, svg { break-inside: avoid; } section.long { break-inside: auto; } }
* { box-sizing: border-box; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main { max-width: 1040px; margin: 0 auto; padding: 28px 24px 48px; }
h1 { font-size: 20px; margin: 0; } h2 { font-size: 16px; margin: 36px 0 10px; } h3 { font-size: 14px; margin: 18px 0 4px; }
p { margin: 6px 0; } .dim { color: var(--dim); } .small { font-size: 13px; }
.good { color: var(--good); } .bad { color: var(--bad); } .open { color: var(--open); }
.verdict { margin: 18px 0 0; padding: 16px 20px; border: 1px solid var(--line); border-left: 6px solid; border-radius: 8px;
  background: var(--card); }
.verdict.good { border-left-color: var(--good); } .verdict.bad { border-left-color: var(--bad); }
.verdict.open { border-left-color: var(--open); }
.verdict .word { line-height: 1.3; font-size: 26px; font-weight: 700; letter-spacing: .02em; }
.verdict p { color: var(--text); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 6px 14px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; font-size: 13px; color: var(--dim); } td.number, th.number { text-align: right; padding-right: 32px; }
table.events th { width: 38%; font-weight: 400; color: var(--text); font-size: inherit; }
.table { overflow-x: auto; } td, th { overflow-wrap: normal; } td b { font-weight: 600; white-space: nowrap; }
.badge { font-size: 12px; font-weight: 700; white-space: nowrap; }
.chain { list-style: none; margin: 0; padding: 0; }
.link { position: relative; padding: 0 0 18px 42px; }
.link::before { content: ""; position: absolute; left: 13px; top: 26px; bottom: -2px; width: 2px; background: var(--line); }
.chain > .link:last-child::before { display: none; }
.link .sign { position: absolute; left: 0; top: 0; width: 28px; height: 28px; border-radius: 50%; border: 2px solid;
  background: var(--back); text-align: center; line-height: 24px; font-weight: 700; }
.link .name { font-weight: 600; margin-right: 10px; }
.figures { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 2px 0 0; font-variant-numeric: tabular-nums; }
.figures b { font-size: 17px; font-weight: 600; margin-right: 5px; } .figures span { color: var(--dim); font-size: 13px; }
.legs { display: grid; grid-template-columns: repeat(auto-fit, minmax(260px, 1fr)); gap: 12px; }
.legs .link { border: 1px solid var(--line); border-radius: 8px; padding: 10px 12px 10px 50px; background: var(--card); }
.legs .link::before { display: none; } .legs .sign { left: 12px; top: 10px; }
.finding { border: 1px solid var(--line); border-left-width: 5px; border-radius: 6px; padding: 10px 14px; margin: 10px 0; }
div.finding.bad { border-left-color: var(--bad); color: inherit; }
div.finding.open { border-left-color: var(--open); color: inherit; }
dl { display: grid; grid-template-columns: minmax(84px, max-content) 1fr; gap: 3px 10px; margin: 6px 0 0; }
dt { color: var(--dim); } dd { margin: 0; } ul { margin: 0; padding-left: 22px; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 10px 12px; white-space: pre-wrap;
  font: 12.5px/1.5 ui-monospace, monospace; margin: 4px 0 12px; } code { font: 13px ui-monospace, monospace; }
svg { width: 100%; min-width: 620px; height: auto; display: block; margin: 4px 0; }
svg text { font: 12px system-ui, sans-serif; fill: var(--dim); }
svg .grid { stroke: var(--line); stroke-width: 1; fill: none; } svg .txg { fill: var(--mark); }
svg .txgline { stroke: var(--mark); stroke-width: 1; opacity: .35; fill: none; }
svg .limit { stroke: var(--bad); stroke-width: 1.3; stroke-dasharray: 5 3; fill: none; }
svg text.limitname { fill: var(--bad); paint-order: stroke; stroke: var(--back); stroke-width: 4px; stroke-linejoin: round; }
svg text.runname { fill: var(--text); } svg .bar { fill: var(--c0); } svg .spread { stroke: var(--text); stroke-width: 2; }
""" + "".join(
    f"svg .h{i} {{ fill: var(--h{i}); }} svg .c{i} {{ stroke: var(--c{i}); stroke-width: 2; fill: none; }} "
    f".s{i} {{ background: var(--h{i}); }}\n"
    for i in range(6)
)
STYLE += """svg .beyond { stroke-dasharray: 2 4; }
.scale { display: flex; flex-wrap: wrap; gap: 4px 14px; font-size: 12px; color: var(--dim); }
.scale i { display: inline-block; width: 14px; height: 11px; margin-right: 5px; vertical-align: -1px; }
.scale i.t { background: var(--mark); }
footer { margin-top: 40px; padding-top: 12px; border-top: 1px solid var(--line); color: var(--dim); font-size: 13px; }
details { margin: 8px 0; } summary { cursor: pointer; } a { color: inherit; }
ul.boxes { list-style: none; padding: 0; margin: 6px 0 14px; }
ul.boxes li { position: relative; padding: 5px 0 5px 34px; break-inside: avoid; }
ul.boxes .box { position: absolute; left: 2px; top: 7px; width: 19px; height: 19px; border: 1.5px solid; border-radius: 3px;
  text-align: center; font: 700 14px/16px system-ui, sans-serif; }
ul.boxes .list { color: var(--dim); font-size: 12.5px; margin-left: 6px; white-space: nowrap; }
ul.boxes p { margin: 0; } h3 code { font-weight: 600; }
.sign { display: grid; grid-template-columns: 2fr 1fr 2fr; gap: 28px; margin-top: 56px; break-inside: avoid; }
.sign div { border-top: 1px solid var(--dim); padding-top: 4px; color: var(--dim); font-size: 13px; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } dt:empty { display: none; } }
"""
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
