"""The page of many hosts: the answer, who is worst, what fails where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Unpack

from auditor.fleet.counting import GRAVE, NAMES, FindingRow, Fleet, Host, Line, names
from auditor.judge.finding import RANK
from auditor.report import document as doc
from auditor.report import html, terminal
from auditor.report.phrases import need
from auditor.text import counted, is_url, quoted, utc

RULES = 4
MINUTE = "%Y-%m-%d %H:%M"
WORST = "Worst hosts, similar ones together"
SAYS = {  # of how many hosts
    "damaged": "have damage now",
    "lost": "lose acknowledged commits when the power fails",
    "corrupted": "can lose the consistency of data",
    "stalled": "have a pool that does not work",
    "cannot tell": "are not known to keep commits when the power fails",
    "waived": "have a waiver for what a power cut can lose",
    "on the word": "lose nothing when the power fails, if what zaudit could not verify keeps its promise",
    "one failure away": "can lose data when one device fails",
    "at risk": "have a severe fault that no power cut causes, or will lose data after a restart",
    "kept": "show no loss in what zaudit saw",
}
BAD = ("damaged", "lost", "corrupted", "stalled")


def kind(fleet: Fleet) -> doc.Tone:
    there = fleet.standings
    if any(standing in there for standing in BAD):
        return "bad"
    return "good" if there.keys() == {"kept"} else "open"


def headline(fleet: Fleet) -> str:
    if not fleet.total:
        return "NO HOST"
    standing, count = next(iter(fleet.standings.items()))
    every = "1 HOST" if fleet.total == 1 else f"{fleet.total:,} HOSTS"
    said = f"{SAYS[standing].upper()}: {count:,} OF {every}"
    return f"{fleet.aside:,} NOT COUNTED, WHICH CLAIM NAMES OF OTHERS; OF THE REST {said}" if fleet.aside else said


def looked_at(fleet: Fleet) -> str:
    moments = sorted(host.seen.taken for host in fleet.hosts)
    if not moments:
        return "no look at any host"
    first, last = (utc(each, MINUTE) for each in (moments[0], moments[-1]))
    return f"seen {last} UTC" if first == last else f"seen {first} to {last} UTC"


def notes(fleet: Fleet) -> Iterator[str]:
    if fleet.stale:
        yield f"{hosts(len(fleet.stale))} more than 7 days before the newest: {names(host.seen.name for host in fleet.stale)}"
    if fleet.older:
        yield f"{counted(fleet.older, 'older look')} left aside"
    if fleet.ahead:
        yield f"looks from the future, left aside where there is another: {names(fleet.ahead)}"
    if fleet.spread:
        yield f"recordings in several folders count as one host each, the newest of {names(fleet.spread)}"
    if fleet.claimed:
        yield f"recordings in several places claim the host name {names(fleet.claimed)} (--inventory decides)"
    if fleet.crowded:
        yield f"not all models, releases and remedies of {names(fleet.crowded)} are listed: there are too many"
    if fleet.twice:
        yield f"{counted(fleet.twice, 'recording')} given twice"
    if fleet.waived:
        yield f"{fleet.waived:,} findings waived or known"


def hosts(count: int) -> str:
    """ "1 host", "3,000 hosts"."""
    return "1 host" if count == 1 else f"{count:,} hosts"


def counts(host: Host) -> str:
    """ "1 critical, 2 high; 3 may be critical"."""
    said = [", ".join(f"{n} {severity}" for severity, n in _graver(each.items())) for each in (host.failed, host.open)]
    return "; ".join(part for part in (said[0], said[1] and f"unknown: {said[1]}") if part) or "nothing found"


class Alike(NamedTuple):
    """Hosts that stand alike, and where the same fails at its most severe."""

    standing: str
    severity: str
    rules: tuple[str, ...]
    hosts: list[Host]


def alike(fleet: Fleet) -> list[Alike]:
    """Those that do not keep all, the worst first."""
    found: dict[tuple[object, ...], Alike] = {}
    for host in fleet.hosts:
        if host.seen.standing != "kept":
            gravest = next((each for each in GRAVE if each in host.grave.values()), "")
            rules = tuple(sorted(rule for rule, severity in host.grave.items() if severity == gravest))
            new = Alike(host.seen.standing, gravest, rules, [])
            found.setdefault(new[:3], new).hosts.append(host)
    return list(found.values())


def grave(group: Alike) -> str:
    """What fails there: "sync-disabled, zil-replay-disabled"."""
    return ", ".join(group.rules[:RULES]) + (", ..." if len(group.rules) > RULES else "") or "nothing severe that fails"


def fresh(fleet: Fleet) -> list[tuple[FindingRow, list[str]]]:
    """(one of them, hosts) of each rule that fails where it did not, the most severe first."""
    found: dict[tuple[str, str], tuple[FindingRow, dict[str, None]]] = {}
    for each in fleet.news.fresh if fleet.news else ():
        found.setdefault((each.severity, each.rule), (each, {}))[1][each.key[0]] = None
    ranked = sorted(found.values(), key=lambda each: (-RANK[each[0].severity], -len(each[1]), each[0].rule))
    return [(each, list(hosts)) for each, hosts in ranked]


def ranked(table: dict[Any, Line]) -> list[tuple[Any, Line]]:
    """The worst first; what is there before what only may be."""
    return sorted(table.items(), key=lambda each: (each[1].gravity, each[0]))


def on(line: Line) -> str:
    """ "fails on 3 hosts, unknown on 12"."""
    parts = [f"fails on {hosts(len(line.failed))}"] if line.failed else []
    parts += [f"unknown on {hosts(len(line.open))}"] if line.open else []
    return ", ".join(parts)


def remedies(fleet: Fleet) -> list[tuple[str, Line]]:
    return sorted(fleet.remedies.items(), key=lambda each: (-len(each[1].open), -RANK[each[1].severity], each[0]))


def needs(remedy: str, line: Line) -> str:
    """ "12 hosts need root"."""
    return f"need{'s' * (len(line.open) == 1)} {need(remedy)}"


def news(fleet: Fleet) -> Iterator[str]:
    if not (now := fleet.news):
        return
    gone = [f"{now.gone:,} are gone"] * bool(now.gone) + [f"{now.unseen:,} are unknown now"] * bool(now.unseen)
    yield "; ".join((f"{len(now.fresh):,} new failures", *gone))
    if now.came:
        yield f"{hosts(len(now.came))} more than then: {names(now.came)}"
    if now.left:
        yield f"{hosts(len(now.left))} fewer, which does not mean that they are well: {names(now.left)}"
    if now.rules:
        yield "other rules judged then, so a rule that was not there shows as new"


def absent(fleet: Fleet) -> Iterator[tuple[str, str]]:
    """(word, who and why) of what could not be judged and who did not come."""
    for each in fleet.absent:
        if each.kind == "missing":
            yield "missing", each.name
        else:
            yield "not judged", f"{each.name or each.recording}: {each.error}"


def finding_line(found: FindingRow) -> str:
    word = found.severity if found.outcome == "fail" else f"unknown, {found.severity} if it fails"
    return f"{found.rule} {found.place} ({word}): {found.title}"


def replay(host: Host) -> str:
    recording = host.seen.recording
    return f"zaudit check --replay {quoted(recording)}" if recording and not is_url(recording) else ""


def _graver(items: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(items, key=lambda each: -RANK[each[0]])  # type: ignore[index]


# -- many hosts ------------------------------------------------------------------------------------------------------------

HOSTS, NAMED = 100, 5000  # that a page opens; that it names
SHORT = {"one failure away": "1 failure", "cannot tell": "unknown", "on the word": "relies"}  # 10 columns
FOOTER = (
    "zaudit cannot see a drive, controller or hypervisor that acknowledges a flush without doing it. What it did not see counts"
    " as unknown."
)
Link = Callable[[str], str]  # the name of a host -> where its page is, from this one; empty: nowhere
Row = tuple[doc.Run, doc.Line]


def nowhere(host: str) -> str:
    return ""


def write_text(fleet: Fleet, **screen: Unpack[terminal.Screen]) -> str:
    blocks = _blocks(fleet, nowhere, most=8, few=5)
    step = next((line for host in fleet.hosts if (line := replay(host))), "")
    last = [doc.section("", [doc.Say(("Next: ", doc.command(step)))])] if step and kind(fleet) != "good" else []
    return terminal.write(_document(fleet, [*blocks, *last]), **screen)


def write_html(fleet: Fleet, link: Link = nowhere) -> str:
    blocks = [*_blocks(fleet, link, opened(fleet), most=25, few=25), doc.section("All hosts", _all(fleet, link))]
    return html.write(_document(fleet, blocks))


def _document(fleet: Fleet, blocks: Iterable[doc.Block]) -> doc.Document:
    facts = ("zaudit fleet", hosts(fleet.total), looked_at(fleet))
    more = [doc.Say("; ".join(told), "dim")] if (told := list(notes(fleet))) else []
    return doc.Document(
        "zaudit: the fleet", facts, (doc.Verdict(kind(fleet), headline(fleet), tuple(more)), *blocks), FOOTER
    )


def opened(fleet: Fleet) -> list[Host]:
    """The hosts whose findings a page shows: the first of all that are alike before the second of any."""
    turns = [(turn, host) for group in alike(fleet) for turn, host in enumerate(group.hosts)]
    chosen = {host.seen.name for _, host in sorted(turns, key=lambda each: each[0])[:HOSTS]}
    return [host for host in fleet.hosts if host.seen.name in chosen]


def _blocks(fleet: Fleet, link: Link, shown: Sequence[Host] = (), *, most: int, few: int) -> Iterator[doc.Section]:
    """most: lines of a section, few: of one that is long and dull."""
    stand = [(doc.Run(f"{count:,}", _look(name)), SAYS[name]) for name, count in fleet.standings.items()]
    yield _list("Hosts by state", stand, len(SAYS))
    yield _list("Not judged, or missing", list(_absent(fleet, link)), few)
    bad = sum(host.seen.standing != "kept" for host in fleet.hosts)
    of_these = f"{len(shown):,} of these {hosts(bad)}, with what was found there"
    more = [doc.Details(of_these, tuple(_host(host, link(host.seen.name)) for host in shown))] if shown else []
    yield _list(WORST, [_alike(group, link) for group in alike(fleet)], most, more=more)
    new = [
        (doc.Run(each.severity, each.severity), (f"{each.rule}  {hosts(len(named))}: ", *_names(named, link)))
        for each, named in fresh(fleet)
    ]
    yield _list("New since then", new, most, ahead=map(doc.Say, news(fleet)))
    rules = [(_word(line), f"{rule}  {on(line)}: {line.title}") for rule, line in ranked(fleet.rules)]
    yield _list("Rules by hosts", rules, most)
    models = [(_word(line), f"{model}  {rule}: {on(line)}") for (model, rule), line in ranked(fleet.models)]
    yield _list("Drive models by finding", models, few)
    releases = [(_word(line), f"OpenZFS {one}  {rule}: {on(line)}") for (one, rule), line in ranked(fleet.advisories)]
    yield _list("Releases by advisory", releases, few)
    wanted = [(doc.Run(hosts(len(line.open)), "strong"), needs(remedy, line)) for remedy, line in remedies(fleet)]
    yield _list("What would decide the rest", wanted, most)


def _list(
    title: str, rows: Sequence[Row], most: int, *, ahead: Iterable[doc.Say] = (), more: Iterable[doc.Details] = ()
) -> doc.Section:
    shown = [doc.labelled(rows[:most], at=12, right=True)] if rows else []
    rest = [doc.Say(f"and {len(rows) - most:,} more", "dim")] if len(rows) > most else []
    return doc.section(title, [*ahead, *shown, *rest, *more])


def _look(standing: str) -> doc.Look:
    return "bad" if standing in BAD else "good" if standing == "kept" else "medium"


def _absent(fleet: Fleet, link: Link) -> Iterator[Row]:
    missing = [each.name for each in fleet.absent if each.kind == "missing"]
    if missing:
        yield doc.Run("missing", "undecided"), (f"{hosts(len(missing))}: ", *_names(missing, link))
    yield from ((doc.Run(word, "undecided"), said) for word, said in absent(fleet) if word != "missing")


def _word(line: Line) -> doc.Run:
    return doc.Run(line.severity, line.severity) if line.failed else doc.Run("unknown", "undecided")


def _alike(group: Alike, link: Link) -> Row:
    word = doc.Run(SHORT.get(group.standing, group.standing), _look(group.standing))
    named = [host.seen.name for host in group.hosts]
    if len(named) > 1:
        return word, (f"{hosts(len(named))}  {grave(group)}: ", *_names(named, link))
    return word, (*_names(named, link), f"  {counts(group.hosts[0])}: {grave(group)}")


def _names(every: Sequence[str], link: Link) -> Iterator[doc.Run | str]:
    known = sorted(every)
    for i, each in enumerate(known[:NAMES]):
        yield from (", " if i else "", doc.Run(each, link=link(each)))
    yield f" and {len(known) - NAMES:,} more" if len(known) > NAMES else ""


def _host(host: Host, where: str) -> doc.Details:
    found = doc.Tree(
        tuple(
            doc.Item(finding_line(each), (doc.Item(doc.command(each.command)),) if each.command else ())
            for each in host.worst
        )
    )
    all_of = [doc.Say(doc.Run(f"all of {host.seen.name}", link=where))] if where else []
    again = [doc.Say(doc.command(replay(host)))] if replay(host) else []
    standing = doc.Run(f" {host.seen.standing} ", _look(host.seen.standing))
    return doc.Details((doc.Run(host.seen.name, "strong"), standing, counts(host)), (found, *all_of, *again))


def _all(fleet: Fleet, link: Link) -> Iterator[doc.Block]:
    shown: dict[str, list[str]] = {}
    for host in fleet.hosts[:NAMED]:
        shown.setdefault(host.seen.standing, []).append(host.seen.name)
    for standing, named in shown.items():
        linked = (part for each in named for part in (", ", doc.Run(each, link=link(each))))
        yield doc.Details(f"{hosts(len(named))}: {SAYS[standing]}", (doc.Say(tuple(linked)[1:]),))
    if len(fleet.hosts) > NAMED:
        yield doc.Say(f"and {len(fleet.hosts) - NAMED:,} more", "dim")
