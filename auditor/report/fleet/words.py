"""What the reports on many hosts say alike, on a terminal and as a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from auditor.judge.finding import RANK
from auditor.report.finding_words import need
from auditor.report.fleet.counting import GRAVE, Fleet, Host, Line
from auditor.report.fleet.rows import Found
from auditor.text import is_url, quoted

NAMES, RULES = 6, 4
WORST = "Worst hosts, similar ones together"
SAYS = {
    "damaged": "have damage now",
    "lost": "lose acknowledged commits when the power fails",
    "corrupted": "can lose the consistency of their data",
    "stalled": "have a pool that does not work",
    "cannot tell": "nobody can tell what a power cut loses",
    "waived": "what a power cut can lose is waived",
    "on the word": "lose nothing when the power fails, if what they rely on keeps its promise (not verified)",
    "one failure away": "lose nothing when the power fails, and some with one failure more",
    "at risk": "have a severe fault that no power cut causes",
    "kept": "show no loss in what zaudit saw",
}
OF_ONE = {
    "damaged": "has damage now",
    "lost": "loses acknowledged commits when the power fails",
    "corrupted": "can lose the consistency of its data",
    "stalled": "has a pool that does not work",
    "cannot tell": "nobody can tell what a power cut loses",
    "waived": "what a power cut can lose is waived",
    "on the word": "loses nothing when the power fails, if what it relies on keeps its promise (not verified)",
    "one failure away": "loses nothing when the power fails, and some with one failure more",
    "at risk": "has a severe fault that no power cut causes",
    "kept": "shows no loss in what zaudit saw",
}
BAD = ("damaged", "lost", "corrupted", "stalled")


def kind(fleet: Fleet) -> str:
    """bad, open or good: the worst of all hosts."""
    there = fleet.standings
    if any(standing in there for standing in BAD):
        return "bad"
    return "good" if there.keys() == {"kept"} else "open"


def headline(fleet: Fleet) -> str:
    """The answer: of how many hosts the worst is so."""
    if not fleet.total:
        return "NO HOST"
    standing, count = next(iter(fleet.standings.items()))
    every = "1 HOST" if fleet.total == 1 else f"{fleet.total:,} HOSTS"
    said = f"{SAYS[standing].upper()}: {count:,} OF {every}"
    return f"{fleet.aside:,} NOT COUNTED, WHICH CLAIM NAMES OF OTHERS; OF THE REST {said}" if fleet.aside else said


def span(fleet: Fleet) -> str:
    """When the hosts were looked at, and what is not new."""
    moments = sorted(host.seen.taken for host in fleet.hosts)
    if not moments:
        return "no look at any host"
    first, last = moment(moments[0]), moment(moments[-1])
    parts = [f"seen {last} UTC" if first == last else f"seen {first} to {last} UTC"]
    if fleet.stale:
        parts.append(f"{hosts(len(fleet.stale))} more than 7 days before the newest: {names(_named(fleet.stale))}")
    if fleet.older:
        parts.append(f"{fleet.older:,} older looks left aside")
    if fleet.ahead:
        parts.append(f"looks from the future, left aside where there is another: {names(fleet.ahead)}")
    if fleet.claimed:
        parts.append(
            f"recordings of several places say that they are of {names(fleet.claimed)} (--inventory tells which)"
        )
    if fleet.crowded:
        parts.append(f"not all models, releases and remedies of {names(fleet.crowded)} are listed: there are too many")
    if fleet.twice:
        parts.append(f"{fleet.twice:,} recording{'s' * (fleet.twice != 1)} given twice")
    if fleet.waived:
        parts.append(f"{fleet.waived:,} findings waived or known")
    return "; ".join(parts)


def moment(taken: float) -> str:
    """ "2026-11-22 02:00", in UTC."""
    return f"{datetime.fromtimestamp(taken, UTC):%Y-%m-%d %H:%M}"


def hosts(count: int) -> str:
    """ "1 host", "3,000 hosts"."""
    return "1 host" if count == 1 else f"{count:,} hosts"


def names(every: Iterable[str], most: int = NAMES) -> str:
    """The first few, and how many more there are."""
    known = sorted(every)
    return ", ".join(known[:most]) + (f" and {len(known) - most:,} more" if len(known) > most else "")


def counts(host: Host) -> str:
    """ "1 critical, 2 high; 3 may be critical"."""
    said = [", ".join(f"{n} {severity}" for severity, n in _graver(each.items())) for each in (host.failed, host.open)]
    return "; ".join(part for part in (said[0], said[1] and f"undecided: {said[1]}") if part) or "nothing found"


class Alike(NamedTuple):
    """Hosts that stand alike, and where the same fails at its gravest."""

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
    return ", ".join(group.rules[:RULES]) + (", ..." if len(group.rules) > RULES else "") or "nothing grave that fails"


def fresh(fleet: Fleet) -> list[tuple[Found, list[str]]]:
    """(one of them, hosts) of each rule that fails where it did not, the gravest first."""
    found: dict[tuple[str, str], tuple[Found, dict[str, None]]] = {}
    for each in fleet.news.fresh if fleet.news else ():
        found.setdefault((each.severity, each.rule), (each, {}))[1][each.key[0]] = None
    ranked = sorted(found.values(), key=lambda each: (-RANK[each[0].severity], -len(each[1]), each[0].rule))
    return [(each, list(hosts)) for each, hosts in ranked]


def lines(table: dict[str, Line]) -> list[tuple[str, Line]]:
    """The worst first."""
    return sorted(table.items(), key=lambda each: (each[1].gravity, each[0]))


def pairs(table: dict[tuple[str, str], Line]) -> list[tuple[str, str, Line]]:
    """The worst first; what is there is named before what only may be."""
    return [(*key, line) for key, line in sorted(table.items(), key=lambda each: (each[1].gravity, each[0]))]


def on(line: Line) -> str:
    """ "fails on 3 hosts, undecided on 12"."""
    parts = [f"fails on {hosts(len(line.failed))}"] if line.failed else []
    parts += [f"undecided on {hosts(len(line.open))}"] if line.open else []
    return ", ".join(parts)


def remedies(fleet: Fleet) -> list[tuple[str, Line]]:
    """What would decide the most, first."""
    return sorted(fleet.remedies.items(), key=lambda each: (-len(each[1].open), -RANK[each[1].severity], each[0]))


def needs(remedy: str, line: Line) -> str:
    """ "12 hosts need root"."""
    return f"need{'s' * (len(line.open) == 1)} {need(remedy)}"


def news(fleet: Fleet) -> Iterator[str]:
    """What changed beside new failures, in sentences."""
    if not (now := fleet.news):
        return
    gone = [f"{now.gone:,} are gone"] * bool(now.gone) + [f"of {now.unseen:,} nobody can tell any more"] * bool(
        now.unseen
    )
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


def told(found: Found) -> str:
    """A finding of a host in one line."""
    word = found.severity if found.outcome == "fail" else f"undecided, {found.severity} if it fails"
    return f"{found.rule} {found.place} ({word}): {found.title}"


def replay(host: Host) -> str:
    """What shows all of a host."""
    recording = host.seen.recording
    return f"zaudit check --replay {quoted(recording)}" if recording and not is_url(recording) else ""


def _named(found: Sequence[Host]) -> list[str]:
    return [host.seen.name for host in found]


def _graver(items: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(items, key=lambda each: -RANK[each[0]])  # type: ignore[index]
