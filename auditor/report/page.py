"""A self-contained page: its styles are in it, nothing is loaded, nothing runs. Light, dark and on paper."""

from __future__ import annotations

import html
from collections.abc import Iterable

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
dl { display: grid; grid-template-columns: 84px 1fr; gap: 3px 10px; margin: 6px 0 0; }
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
"""


def escaped(text: str) -> str:
    """Text as the content of an element or of a quoted attribute; control characters are spelt out."""
    return html.escape(harmless(text))


def page(title: str, parts: Iterable[str], style: str = "") -> str:
    """The whole document. title: text; parts: HTML; style: of this page besides."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def section(title: str, parts: Iterable[str], name: str = "") -> str:
    """A headed part of the page; empty without content."""
    content = "\n".join(part for part in parts if part)
    kind = f' class="{name}"' if name else ""
    return f"<section{kind}>\n<h2>{escaped(title)}</h2>\n{content}\n</section>" if content else ""


def paragraph(text: str, name: str = "") -> str:
    """A paragraph of text; empty for none."""
    kind = f' class="{name}"' if name else ""
    return f"<p{kind}>{escaped(text)}</p>" if text else ""
