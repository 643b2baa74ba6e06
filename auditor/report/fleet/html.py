"""Many hosts as one page: the answer, who is worst, what fails where. Each of the worst hosts opens to its own findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from auditor.report.fleet import words
from auditor.report.fleet.counting import Fleet, Host, Line
from auditor.report.fleet.parts import STYLE, colour, figure, severity, table
from auditor.report.fleet.rows import Found
from auditor.report.page import escaped, page, paragraph, section

NAME = "html"
TITLE = "zaudit: the fleet"
HOSTS, KINDS, LINES, NAMES = 100, 15, 25, 5000
Link = Callable[[str], str]  # the name of a host -> where its page is, from this one; empty: nowhere


def nowhere(host: str) -> str:
    """No host has a page."""
    return ""


def opened(fleet: Fleet) -> list[Host]:
    """The hosts whose findings the page shows: the first of all that are alike before the second of any."""
    turns = [(turn, host) for group in words.alike(fleet) for turn, host in enumerate(group.hosts)]
    chosen = {host.seen.name for _, host in sorted(turns, key=lambda each: each[0])[:HOSTS]}
    return [host for host in fleet.hosts if host.seen.name in chosen]


def render(fleet: Fleet, link: Link = nowhere) -> str:
    """The whole page."""
    parts = [
        f"<h1>{escaped(TITLE)}</h1>",
        paragraph(words.span(fleet), "dim small"),
        f'<div class="verdict {words.kind(fleet)}"><div class="word">{escaped(words.headline(fleet))}</div></div>',
        section("How they stand", [_standings(fleet)]),
        section("Not judged, or missing", _absent(fleet), "long"),
        section(words.WORST, _hosts(fleet, link), "long"),
        section("New since then", _news(fleet, link), "long"),
        section("Rules by hosts", [_rules(words.lines(fleet.rules))], "long"),
        section("Drive models by finding", [_pairs("Model", words.pairs(fleet.models))], "long"),
        section("Releases by advisory", [_pairs("OpenZFS", words.pairs(fleet.advisories))], "long"),
        section("What would decide the rest", [_remedies(fleet)], "long"),
        section("All hosts", _all(fleet, link), "long"),
        "<footer>zaudit cannot see a drive, controller or hypervisor that acknowledges a flush without doing it. "
        "What it did not see counts as undecided.</footer>",
    ]
    return page(TITLE, (part for part in parts if part), STYLE)


def _standings(fleet: Fleet) -> str:
    rows = (
        (f'<b class="{colour(standing)}">{count:,}</b>', escaped(words.SAYS[standing]))
        for standing, count in fleet.standings.items()
    )
    return table(("Hosts", "when the power fails"), rows)


def _absent(fleet: Fleet) -> Iterator[str]:
    every = list(words.absent(fleet))
    if every:
        rows = ((f'<span class="badge open">{word}</span>', escaped(said)) for word, said in every[:NAMES])
        yield _open(words.hosts(len(every)) + " of which nothing is known", table(("", "who, and why"), rows))
        yield _more(every, NAMES)


def _hosts(fleet: Fleet, link: Link) -> Iterator[str]:
    """The first few at once, so that the page stays one; more of them behind a line."""
    bad = sum(host.seen.standing != "kept" for host in fleet.hosts)
    shown = [_host(host, link(host.seen.name)) for host in opened(fleet)]
    groups = words.alike(fleet)
    yield table(("", "Hosts", "what fails there", "names"), (_group(group, link) for group in groups[:KINDS]))
    yield _more(groups, KINDS)
    yield _open(f"{len(shown):,} of these {words.hosts(bad)}, with what was found there", "".join(shown))


def _group(group: words.Alike, link: Link) -> tuple[str, ...]:
    badge = f'<span class="badge {colour(group.standing)}">{escaped(group.standing)}</span>'
    return (
        badge,
        figure(len(group.hosts), "host(s):"),
        escaped(words.grave(group)),
        _names([host.seen.name for host in group.hosts], link),
    )


def _host(host: Host, where: str) -> str:
    kind = colour(host.seen.standing)
    listed = "".join(f"<li>{_finding(each)}</li>" for each in host.worst)
    all_of = words.replay(host)
    more = f"<p><code>{escaped(all_of)}</code></p>" if all_of else ""
    return (
        f'<details><summary><b>{escaped(host.seen.name)}</b> <span class="badge {kind}">'
        f"{escaped(host.seen.standing)}</span> {escaped(words.counts(host))}</summary>"
        f"<ul>{listed}</ul>{_link(f'all of {host.seen.name}', where)}{more}</details>"
    )


def _finding(each: Found) -> str:
    return escaped(words.told(each)) + (f"<br><code>{escaped(each.command)}</code>" if each.command else "")


def _link(text: str, where: str) -> str:
    return f'<p><a class="dim" href="{escaped(where)}">{escaped(text)}</a></p>' if where else ""


def _name(host: str, where: str) -> str:
    return f'<a class="dim" href="{escaped(where)}">{escaped(host)}</a>' if where else escaped(host)


def _names(every: Sequence[str], link: Link) -> str:
    named = ", ".join(_name(each, link(each)) for each in every[: words.NAMES])
    return named + (f" and {len(every) - words.NAMES:,} more" if len(every) > words.NAMES else "")


def _news(fleet: Fleet, link: Link) -> Iterator[str]:
    if not fleet.news:
        return
    yield from (paragraph(sentence) for sentence in words.news(fleet))
    fresh = words.fresh(fleet)
    rows = (
        (
            severity(each.severity, each.outcome),
            f"<b>{escaped(each.rule)}</b><br>{escaped(each.title)}",
            figure(len(names), "host(s)"),
            _names(sorted(names), link),
        )
        for each, names in fresh[:LINES]
    )
    yield table(("", "Rule", "Hosts", "names"), rows)
    yield _more(fresh, LINES)


def _rules(every: Sequence[tuple[str, Line]]) -> str:
    rows = (
        (
            severity(line.severity, "fail" if line.failed else "unknown"),
            f"<b>{escaped(rule)}</b><br>{escaped(line.title)}",
            *_figures(line),
        )
        for rule, line in every[:LINES]
    )
    return table(("", "Rule", "fails on", "undecided on", "hosts"), rows) + _more(every, LINES)


def _pairs(what: str, every: Sequence[tuple[str, str, Line]]) -> str:
    rows = ((escaped(one), escaped(rule), *_figures(line)) for one, rule, line in every[:LINES])
    return table((what, "Rule", "fails on", "undecided on", "hosts"), rows) + _more(every, LINES)


def _figures(line: Line) -> tuple[str, str, str]:
    return (
        figure(len(line.failed), "fail"),
        figure(len(line.open), "undecided"),
        escaped(words.names(line.failed or line.open)),
    )


def _remedies(fleet: Fleet) -> str:
    every = words.remedies(fleet)
    rows = (
        (figure(len(line.open), "host(s)"), escaped(words.needs(remedy, line)), severity(line.severity, "unknown"))
        for remedy, line in every[:LINES]
    )
    return table(("Hosts", "what would decide it", "may be"), rows) + _more(every, LINES)


def _all(fleet: Fleet, link: Link) -> Iterator[str]:
    shown: dict[str, list[str]] = {}
    for host in fleet.hosts[:NAMES]:
        shown.setdefault(host.seen.standing, []).append(_name(host.seen.name, link(host.seen.name)))
    for standing, names in shown.items():
        yield _open(f"{words.hosts(len(names))}: {words.SAYS[standing]}", f"<p>{', '.join(names)}</p>")
    yield _more(fleet.hosts, NAMES)


def _open(summary: str, inside: str) -> str:
    return f"<details><summary>{escaped(summary)}</summary>{inside}</details>" if inside else ""


def _more(every: Sequence[object], shown: int) -> str:
    return paragraph(f"and {len(every) - shown:,} more", "dim small") if len(every) > shown else ""
