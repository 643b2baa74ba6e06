"""Many hosts as one page: the answer, who is worst, what fails where. Each of the worst hosts opens to its own findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from auditor.report.fleet import words
from auditor.report.fleet.counting import Fleet, Host, Line
from auditor.report.fleet.rows import Found
from auditor.report.page import escaped, page, paragraph, section

NAME = "html"
TITLE = "zaudit: the fleet"
FIRST, HOSTS, LINES, NAMES = 10, 100, 25, 5000
KINDS = {"kept": "good"} | dict.fromkeys(words.BAD, "bad")


def render(fleet: Fleet, pages: str = "") -> str:
    """The whole page. pages: where the page of a host is, with {host} for its name; empty: nowhere."""
    parts = [
        f"<h1>{escaped(TITLE)}</h1>",
        paragraph(words.span(fleet), "dim small"),
        f'<div class="verdict {words.kind(fleet)}"><div class="word">{escaped(words.headline(fleet))}</div></div>',
        section("How they stand", [_standings(fleet)]),
        section("Not judged, or missing", _absent(fleet), "long"),
        section("Worst hosts", _hosts(fleet, pages), "long"),
        section("New since then", _news(fleet, pages), "long"),
        section("Rules by hosts", [_rules(words.lines(fleet.rules))], "long"),
        section("Drive models by finding", [_pairs("Model", words.pairs(fleet.models))], "long"),
        section("Releases by advisory", [_pairs("OpenZFS", words.pairs(fleet.advisories))], "long"),
        section("What would decide the rest", [_remedies(fleet)], "long"),
        section("All hosts", _all(fleet), "long"),
        "<footer>zaudit cannot see a drive, controller or hypervisor that acknowledges a flush without doing it. "
        "What it did not see counts as undecided.</footer>",
    ]
    return page(TITLE, (part for part in parts if part))


def _standings(fleet: Fleet) -> str:
    rows = (
        (f'<b class="{KINDS.get(standing, "open")}">{count:,}</b>', escaped(words.SAYS[standing]))
        for standing, count in fleet.standings.items()
    )
    return _table(("Hosts", "when the power fails"), rows)


def _absent(fleet: Fleet) -> Iterator[str]:
    every = list(words.absent(fleet))
    if every:
        rows = ((f'<span class="badge open">{word}</span>', escaped(said)) for word, said in every[:NAMES])
        yield _open(words.hosts(len(every)) + " of which nothing is known", _table(("", "who, and why"), rows))
        yield _more(every, NAMES)


def _hosts(fleet: Fleet, pages: str) -> Iterator[str]:
    """The first few at once, so that the page stays one; more of them behind a line."""
    bad = [host for host in fleet.hosts if host.seen.standing != "kept"]
    shown = [_host(host, pages) for host in bad[:HOSTS]]
    yield from shown[:FIRST]
    yield _open(f"the next {len(shown[FIRST:])}", "".join(shown[FIRST:]))
    yield _more(bad, HOSTS)


def _host(host: Host, pages: str) -> str:
    kind = KINDS.get(host.seen.standing, "open")
    listed = "".join(f"<li>{_finding(each)}</li>" for each in host.worst)
    all_of = words.replay(host)
    more = f"<p><code>{escaped(all_of)}</code></p>" if all_of else ""
    return (
        f'<details><summary><b>{escaped(host.seen.name)}</b> <span class="badge {kind}">'
        f"{escaped(host.seen.standing)}</span> {escaped(words.counts(host))}</summary>"
        f"<ul>{listed}</ul>{_link(host.seen.name, pages)}{more}</details>"
    )


def _finding(each: Found) -> str:
    return escaped(words.told(each)) + (f"<br><code>{escaped(each.command)}</code>" if each.command else "")


def _link(name: str, pages: str) -> str:
    where = pages.replace("{host}", quote(name, safe=""))
    return f'<p><a class="dim" href="{escaped(where)}">all of {escaped(name)}</a></p>' if pages else ""


def _news(fleet: Fleet, pages: str) -> Iterator[str]:
    if not fleet.news:
        return
    yield from (paragraph(sentence) for sentence in words.news(fleet))
    fresh = fleet.news.fresh
    rows = (
        (
            _severity(each.severity, each.outcome),
            escaped(each.key[0]),
            escaped(f"{each.rule} {each.place}: {each.title}"),
        )
        for each in fresh[:LINES]
    )
    yield _table(("", "Host", "Finding"), rows) if fresh else ""
    yield _more(fresh, LINES)


def _rules(every: Sequence[tuple[str, Line]]) -> str:
    rows = (
        (
            _severity(line.severity, "fail" if line.failed else "unknown"),
            f"<b>{escaped(rule)}</b><br>{escaped(line.title)}",
            *_figures(line),
        )
        for rule, line in every[:LINES]
    )
    return _table(("", "Rule", "fails on", "undecided on", "hosts"), rows) + _more(every, LINES)


def _pairs(what: str, every: Sequence[tuple[str, str, Line]]) -> str:
    rows = ((escaped(one), escaped(rule), *_figures(line)) for one, rule, line in every[:LINES])
    return _table((what, "Rule", "fails on", "undecided on", "hosts"), rows) + _more(every, LINES)


def _figures(line: Line) -> tuple[str, str, str]:
    return f"{len(line.failed):,}", f"{len(line.open):,}", escaped(words.names(line.failed or line.open))


def _remedies(fleet: Fleet) -> str:
    every = words.remedies(fleet)
    rows = (
        (f"{len(line.open):,}", escaped(remedy), _severity(line.severity, "unknown")) for remedy, line in every[:LINES]
    )
    return _table(("Hosts", "what would decide it", "may be"), rows) + _more(every, LINES)


def _all(fleet: Fleet) -> Iterator[str]:
    shown: dict[str, list[str]] = {}
    for host in fleet.hosts[:NAMES]:
        shown.setdefault(host.seen.standing, []).append(host.seen.name)
    for standing, names in shown.items():
        yield _open(f"{words.hosts(len(names))}: {words.SAYS[standing]}", f"<p>{escaped(', '.join(names))}</p>")
    yield _more(fleet.hosts, NAMES)


def _severity(severity: str, outcome: str) -> str:
    kind = "open" if outcome != "fail" else "bad" if severity in ("critical", "high") else "dim"
    return f'<span class="badge {kind}">{severity.upper() + ("" if outcome == "fail" else "?")}</span>'


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """heads: text; rows: HTML. Empty where there are none."""
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    head = "".join(f'<th scope="col">{escaped(each)}</th>' if each else "<td></td>" for each in heads)
    return f'<div class="table" tabindex="0"><table><tr>{head}</tr>{body}</table></div>' if body else ""


def _open(summary: str, inside: str) -> str:
    return f"<details><summary>{escaped(summary)}</summary>{inside}</details>" if inside else ""


def _more(every: Sequence[object], shown: int) -> str:
    return paragraph(f"and {len(every) - shown:,} more", "dim small") if len(every) > shown else ""
