"""One database cluster from the recordings of its hosts: which single event takes an acknowledged commit from every copy?

The durability model answers for each member. Before a client hears of a commit, some members have confirmed it: it survives
where any such set keeps a copy. Of n members k confirm, so n - k + 1 that keep their database are enough; with a primary
that must be among the k it is the primary, or that many of the others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack, get_args

from auditor import Stop, audit, codec
from auditor.data import durability
from auditor.databases import ENGINES
from auditor.databases.engine import Confirms
from auditor.durability.answers import (
    SAFE,
    Answer,
    Promise,
    Rank,
    Reason,
    all_of,
    any_of,
    at_least,
    lost,
    promises,
    relies,
)
from auditor.durability.copies import Copies
from auditor.durability.host import ALL, EVENTS, GONE, Class, EventName, Host, Program, Question
from auditor.durability.table import Judge, answer
from auditor.facts import HOST, Facts, Subject
from auditor.judge.event import SEVERITIES, Severity
from auditor.judge.event_table import ANSWERS
from auditor.judge.finding import exit_code
from auditor.judge.verdict import Identities, pool_works
from auditor.model.stores import Reading
from auditor.model.whole_host import Settings, read
from auditor.recording.recording import Recording
from auditor.report import document as doc
from auditor.report import html, phrases, terminal
from auditor.report.model import Report
from auditor.rulebook import Chosen
from auditor.text import few, harmless, quoted, utc

SCHEMA = "zaudit-cluster/1"
SHOWN = 4  # names in a sentence
Scope = Literal["one host", "shared drive", "all hosts"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
Happening = EventName | Literal["gone"]
SURVIVES: tuple[Question, ...] = ("commits", "consistency")  # of a copy that counts
TAKES: Mapping[EventName, Class] = {"drive": "data", "log": "log"}
SHARED = ("drive", "target")  # parties that two hosts can have in common, by serial number or WWN
Word = Literal["lost", "unknown", "relies", "no loss"]
WORDS: Mapping[Rank, Word] = {Rank.LOST: "lost", Rank.UNKNOWN: "unknown", Rank.RELIES: "relies", Rank.SAFE: "no loss"}
KEEPS: dict[Rank, doc.Look] = {Rank.LOST: "lost", Rank.UNKNOWN: "unknown", Rank.RELIES: "word", Rank.SAFE: "kept"}
NOTES = (
    "These recordings are taken to be all members, each as it was when it was seen.",
    "One host: every other member runs on. Fail over to a member that has the commit. A member that lost confirmed "
    "commits rejoins as a new one.",
    "All hosts at once: one room, rack, power supply or hypervisor. Which of these the hosts share is not visible here.",
)


class ClusterError(Stop):
    """These recordings are no cluster."""


class Member(NamedTuple):
    """One host. report: its own audit. works: its pools do; else they keep nothing. guids: of these pools. drives: what the
    model calls them, by serial number or WWN: a kernel name is another drive on another host."""

    name: str
    path: str
    report: Report
    host: Host
    program: Program
    works: bool = True
    guids: frozenset[str] = frozenset()
    drives: Mapping[str, str] = {}

    def events(self) -> Mapping[EventName, Answer]:
        """Does it keep its database as it was, with what it has confirmed? Of those that can happen, with the worst drive."""
        judge, found = Judge(self.host), dict[EventName, Answer]()
        for event in EVENTS:
            cells = [judge.cell(self.program, event, each) for each in SURVIVES]
            if judge.choices(self.program, event):
                found[event] = self._named(all_of(each for each in cells if each))
        return found

    def without(self, drive: str, event: EventName) -> Answer:
        """The same when this very drive goes. Of the whole host: among vdevs that are alike it may be any."""
        copies, goes = Copies(self.host), replace(ALL[event], device=drive)
        cells = [answer(copies, self.program, goes, each) for each in SURVIVES]
        return self._named(all_of(each for each in cells if each))

    @property
    def gone(self) -> Answer:
        """The pools with all that is on them."""
        return self._named(answer(Copies(self.host), self.program, GONE, "commits") or SAFE)

    @property
    def untouched(self) -> Answer:
        return SAFE if self.works else self.stopped

    @property
    def stopped(self) -> Answer:
        return lost("pool", self.name)

    def _named(self, found: Answer) -> Answer:
        """Names of one host mean other things on another."""
        why = tuple(Reason(each.element, f"{each.subject} on {self.name}") for each in found.why)
        if not found.relies:
            return Answer(found.rank, why=why)
        return Answer(found.rank, frozenset({Promise("layer", f"{promises(found.relies)} on {self.name}")}), why)


class Row(NamedTuple):
    """hosts: those that it strikes together; of one host, each of which alone has this answer. drive: what they share."""

    scope: Scope
    event: Happening
    hosts: tuple[str, ...]
    answer: Answer
    drive: str = ""


class Cluster(NamedTuple):
    engine: str
    members: tuple[Member, ...]
    confirms: Confirms

    @property
    def rows(self) -> tuple[Row, ...]:
        """The worst first; of equal ones that of one host."""
        found = [*self._hosts(), *self._shared()]
        return tuple(sorted(found, key=lambda each: (each.answer.rank, SCOPES.index(each.scope))))

    def survives(self, answers: Sequence[Answer], *, memory: bool) -> Answer:
        """memory: what a member only received is gone as well."""
        confirmed = self.confirms.flushed + (0 if memory else self.confirms.received)
        enough = len(answers) - min(confirmed, len(answers)) + 1
        others = at_least(enough, answers[1:] if self.confirms.first else answers)
        found = any_of(answers[0], others) if self.confirms.first else others
        return all_of((found, relies("layer", self.confirms.relies, "ask"))) if self.confirms.relies else found

    def _hosts(self) -> Iterator[Row]:
        """An event at each host alone, and at all at once."""
        tables = [each.events() for each in self.members]
        for event in EVENTS:
            happens = [event in table for table in tables]
            if any(happens):
                here = [
                    table.get(event, SAFE) if each.works else each.stopped
                    for each, table in zip(self.members, tables, strict=True)
                ]
                yield from self._alone(event, here, happens)
                if not ALL[event].takes:
                    found = self.survives(here, memory=ALL[event].memory)
                    yield Row("all hosts", event, tuple(each.name for each in self.members), found)
        yield from self._alone("gone", [each.gone for each in self.members], [True] * len(self.members))

    def _alone(self, event: Happening, struck: Sequence[Answer], happens: Sequence[bool]) -> Iterator[Row]:
        alike: dict[Answer, list[str]] = {}
        for member, own, can in zip(self.members, struck, happens, strict=True):
            if can:
                here = [own if each is member else each.untouched for each in self.members]
                alike.setdefault(self.survives(here, memory=False), []).append(member.name)
        yield from (Row("one host", event, tuple(names), found) for found, names in alike.items())

    def _shared(self) -> Iterator[Row]:
        for event, taken in TAKES.items():
            users: dict[str, list[Member]] = {}
            for member in self.members:
                copies = Copies(member.host)
                touched = {
                    each for pool in member.host.pools_of(member.program) for each in copies.touched(pool, taken)
                }
                for drive, store in member.drives.items():
                    if store in touched and member.host.store(store).party in SHARED:
                        users.setdefault(drive, []).append(member)
            for drive, of in users.items():
                if len(of) > 1:
                    here = [
                        each.without(each.drives[drive], event) if each in of and each.works else each.untouched
                        for each in self.members
                    ]
                    names = tuple(each.name for each in of)
                    yield Row("shared drive", event, names, self.survives(here, memory=False), drive)

    @property
    def confirmed(self) -> str:
        """2 of 3 members, the first among them, flush a commit before it is acknowledged"""
        flushed, received, first = self.confirms[:3]
        verb = "flushes" if flushed == 1 else "flush"
        many = "the first member" if first and flushed == 1 else f"{flushed} of {len(self.members)} members"
        among = ", the first among them," if first and flushed > 1 else ""
        more = f"; {received} more receive it" if received else ""
        return f"{many}{among} {verb} a commit before it is acknowledged{more}"

    @property
    def damaged(self) -> Member | None:
        return next((each for each in self.members if each.report.standing in ("stalled", "damaged")), None)

    @property
    def exit_code(self) -> int:
        """As of zaudit check: by the map of durability.toml, and of a member that is damaged its own."""
        own = self.damaged.report.exit_code if self.damaged else 0
        return max(own, exit_code(filter(None, map(_severity, self.rows)), "low"))


def _severity(row: Row) -> tuple[Severity, bool] | None:
    if row.answer.rank is Rank.SAFE:
        return None
    event = "power+drive" if row.event == GONE.name else row.event
    found = durability.load().severities["commits", event, ANSWERS[row.answer.rank]].severity
    severity = next(each for each in SEVERITIES if each == found)
    return severity, row.answer.rank is not Rank.UNKNOWN


# -- from recordings -------------------------------------------------------------------------------------------------------


def cluster(recordings: Sequence[tuple[Path, Recording]], wanted: str, copies: int, rules: Chosen) -> Cluster:
    """wanted: an engine, or an engine with the folder of its data, as a report names it. copies: members that have flushed a
    commit before it is acknowledged; 0: as the engine's settings say. Raises ClusterError or Stop."""
    engine = wanted.partition(" ")[0]
    if engine not in ENGINES:
        raise ClusterError(f"{harmless(engine)} is no engine that zaudit knows: {', '.join(ENGINES)}")
    found, settings, asynchronous = list[Member](), list[Settings](), False
    for path, past in recordings:
        seen, name = audit.replay(past), path.name.partition(".")[0]
        report = audit.judge(seen, rules.rules, past.targets, "low", left_out=rules.left_out)
        database = _database(seen.facts, name, wanted)
        observed, _, about = read(Reading(seen.facts))
        settings.append(Settings(Reading(seen.facts), database))
        program = replace(observed.programs[database.name], elsewhere=False)
        pools = [Subject("pool", each.name) for each in observed.pools_of(program)]
        works = all(pool_works(each, seen.facts) for each in pools)
        guids = frozenset(seen.facts.get(each, "guid").word() for each in pools) - {""}
        names = Identities(seen.facts)
        disks = ((each, store) for store, subjects in about.items() for each in subjects if each.kind == "disk")
        drives = {text: store for each, store in disks if (text := names.of(each).text)}
        found.append(Member(name, str(path), report, observed, program, works, guids, drives))
        asynchronous = asynchronous or bool(seen.facts.get(database, "asynchronous_roles").words())
    if len(found) < 2:
        raise ClusterError("a cluster has two members at least: name a recording of each")
    if copies > len(found):
        raise ClusterError(f"--copies {copies}: there are {len(found)} members")
    found = _named(found)
    for one, other in combinations(found, 2):
        if one.guids & other.guids:
            raise ClusterError(
                f"{harmless(one.name)} and {harmless(other.name)} have the same pool: one copy, however often it is recorded"
            )
    own = ENGINES[engine].confirms(settings[0], len(found), asynchronous=asynchronous)
    confirms = Confirms(copies, first=True) if copies else own
    if confirms is None:
        raise ClusterError(
            f"how many members confirm a commit of {ENGINES[engine].title} is not known here: --copies N says it"
        )
    if confirms.named > len(found):
        raise ClusterError(
            f"{confirms.named} members may confirm a commit, and {len(found)} are recorded: name a recording of each"
        )
    if confirms.waits:
        found = [each._replace(program=waiting(each.program)) for each in found]
    return Cluster(engine, tuple(found), confirms)


def _named(members: Sequence[Member]) -> list[Member]:
    """As hosts call themselves, unless two have one name: then as their recordings are called."""
    names = [each.report.hostname for each in members]
    if len(set(names)) == len(names):
        return [each._replace(name=name) for each, name in zip(members, names, strict=True)]
    if len({each.name for each in members}) == len(members):
        return list(members)
    return [each._replace(name=each.path) for each in members]


def waiting(program: Program) -> Program:
    """A member whose confirmation waits for its log, whatever it does when nobody asks."""
    log = replace(program.log, asks="before") if program.log.asks == "later" else program.log
    return replace(program, leaves=True, log=log)


def _database(facts: Facts, host: str, wanted: str) -> Subject:
    """Raises ClusterError where it is not one."""
    engine, names = wanted.partition(" ")[0], Identities(facts)
    every = [each for each in facts.linked(HOST, "databases") if facts.get(each, "engine").word() == engine]
    there = [each for each in every if wanted in (engine, names.of(each).label)]
    if len(there) == 1:
        return there[0]
    labels = few([harmless(names.of(each).label) for each in every], SHOWN)
    if not there:
        raise ClusterError(f"{host}: no {harmless(wanted)} was recorded" + (f"; there is {labels}" if every else ""))
    raise ClusterError(f"{host}: several servers were recorded: {labels}; --cluster names one")


# -- the page --------------------------------------------------------------------------------------------------------------


def headline(found: Cluster) -> str:
    """The worst that is true of the whole cluster: damage of a member, then what the next event would lose."""
    if damaged := found.damaged:
        return f"{harmless(damaged.name)}: {damaged.report.headline}. {_answer(found)}"
    return _answer(found)


def _answer(found: Cluster) -> str:
    worst = found.rows[0]
    happens = f"{_happens([worst])} {_where(worst, found)}".upper()
    match worst.answer.rank:
        case Rank.LOST:
            return f"{happens} LOSES ACKNOWLEDGED COMMITS ON EVERY COPY"
        case Rank.UNKNOWN:
            return f"UNKNOWN WHETHER {happens} LOSES ACKNOWLEDGED COMMITS ON EVERY COPY"
        case Rank.RELIES:
            return f"NO LOSS FOUND, BUT SURVIVING {happens} RELIES ON WHAT IS NOT VERIFIED"
    return "NO SINGLE EVENT FOUND THAT LOSES ACKNOWLEDGED COMMITS ON EVERY COPY"


def _happens(rows: Sequence[Row]) -> str:
    """a crash or a power cut"""
    nouns = [phrases.happening([each.event for each in rows if each.event != "gone"])]
    if any(each.event == "gone" for each in rows):
        nouns.append(phrases.LOSS_OF_THE_POOL)
    return " or ".join(filter(None, nouns))


def _where(row: Row, of: Cluster) -> str:
    hosts = few([*map(harmless, row.hosts)], SHOWN)
    match row.scope:
        case "one host":
            return "on any one host" if len(row.hosts) == len(of.members) else f"on {hosts} alone"
        case "shared drive":
            return f"that {hosts} share ({harmless(row.drive)})"
    return "on all hosts at once"


def write(format_: str, found: Cluster, **screen: Unpack[terminal.Screen]) -> str:
    match format_:
        case "json":
            return json.dumps(_plain(found), indent=2) + "\n"
        case "html":
            return html.write(_document(found))
        case _:
            return terminal.write(_document(found), **screen)


def _document(found: Cluster) -> doc.Document:
    rank = found.rows[0].answer.rank
    tone: doc.Tone = "bad" if rank is Rank.LOST or found.damaged else "open" if rank < Rank.SAFE else "good"
    facts = ("zaudit", f"cluster of {len(found.members)} hosts", ENGINES[found.engine].title, found.confirmed)
    groups: dict[str, dict[str, list[Row]]] = {}
    for row in found.rows:
        groups.setdefault(_where(row, found), {}).setdefault(sentence(row.answer), []).append(row)
    events = doc.Events(tuple((where, tuple(map(_line, alike.values()))) for where, alike in groups.items()))
    members = doc.table(
        ("Host", "Seen", doc.Column("Its own answer", aside=True), doc.Column("Exit code", number=True)),
        (
            (each.name, utc(each.report.taken), each.report.headline, str(each.report.exit_code))
            for each in found.members
        ),
    )
    decides = {why.subject.rpartition(" on ")[2] for why in found.rows[0].answer.why}
    here = [each for each in found.members if each.name in decides] or found.members
    worst = found.damaged or max(here, key=lambda each: each.report.exit_code)
    step = doc.Say(("Next: ", doc.command(f"zaudit check --replay {quoted(worst.path)}")))
    blocks = (
        doc.Verdict(tone, headline(found), (step,)),
        doc.section("Events", (events, *map(doc.Say, NOTES))),
        doc.section("Members", (members,)),
    )
    return doc.Document(f"zaudit: cluster of {found.engine}", facts, blocks)


def _line(rows: Sequence[Row]) -> tuple[str, doc.Line]:
    found = rows[0].answer
    return _happens(rows), doc.Run(sentence(found), KEEPS[found.rank])


def sentence(found: Answer) -> str:
    """a copy stays, relies on sda on db1 (not verified)"""
    match found.rank:
        case Rank.LOST:
            return "LOSES commits on every copy"
        case Rank.UNKNOWN:
            return f"unknown: {few([f'{each.element} {each.subject}' for each in found.why], SHOWN)}"
        case Rank.RELIES:
            return f"a copy stays, relies on {promises(found.relies)} (not verified)"
    return "a copy stays"


class MemberDocument(NamedTuple):
    """What zaudit check says of it."""

    host: str
    headline: str
    exit_code: int


class EventDocument(NamedTuple):
    """hosts: those that it strikes together; of one host, each of which alone has this answer. drive: what they share, or
    empty. gone: the pool is lost with all its data."""

    scope: Scope
    event: Happening
    hosts: tuple[str, ...]
    drive: str
    answer: Word
    text: str


class ClusterDocument(NamedTuple):
    engine: str
    confirms: Confirms
    headline: str
    exit_code: int
    members: tuple[MemberDocument, ...]
    events: tuple[EventDocument, ...]


def _plain(found: Cluster) -> dict[str, Any]:
    whole = ClusterDocument(
        found.engine,
        found.confirms,
        headline(found),
        found.exit_code,
        tuple(MemberDocument(each.name, each.report.headline, each.report.exit_code) for each in found.members),
        tuple(
            EventDocument(
                each.scope, each.event, each.hosts, each.drive, WORDS[each.answer.rank], sentence(each.answer)
            )
            for each in found.rows
        ),
    )
    return {"schema": SCHEMA, **codec.plain(whole, harmless)}
