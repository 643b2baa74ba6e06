"""Waivers on verdicts: what is waived stays visible, and a waiver that has run out or waives nothing is judged itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime

from auditor.data import drives
from auditor.data.drives import Keeps
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, Unknown, known
from auditor.judge.event import Event
from auditor.judge.policy import Answer, Declared, Policy, Waiver, declared, matches
from auditor.judge.verdict import Identities, Verdict, Verdicts
from auditor.model.derivation import catch_missing
from auditor.model.disk import disks_behind
from auditor.text import argument

UNDECLARED = "undeclared"


def facts_of(policy: Policy, facts: Facts) -> Iterator[Fact]:
    """What the policy says of the datasets that were found, and its waivers as subjects."""
    shared: dict[object, tuple[Known, Known]] = {}  # the same objects for thousands of datasets
    entries = {each.dataset: each for each in policy.datasets}
    for dataset in list(facts.subjects("dataset")):
        entry = declared(entries, dataset.name)
        if entry not in shared:
            shared[entry] = _declared(policy, entry)
        role, database = shared[entry]
        yield Fact(dataset, "role", role)
        yield Fact(dataset, "database", database)
    promises: tuple[Waiver | Answer, ...] = (*policy.waivers, *policy.answers)
    if promises:
        subjects = tuple(_subject(each) for each in promises)
        yield Fact(
            HOST, "waivers", known(subjects, f"{len(subjects)} waivers", f"cat {' '.join(map(argument, policy.files))}")
        )
    for each in promises:
        seen = Evidence(f"expires {each.expires}, owner {each.owner}: {each.reason}", _where(policy, each))
        yield Fact(_subject(each), "expired", Known(over(each.expires, facts), (seen,)))


def _declared(policy: Policy, entry: Declared | None) -> tuple[Known, Known]:
    if entry is None:
        none = (Evidence(""),)  # nothing to show
        return Known(UNDECLARED, none), Known("", none)
    path, line = policy.place(entry.line)
    command = f"sed -n {line}p {argument(path)}"
    reason = f" ({entry.reason})" if entry.reason else ""
    role = Evidence(f"role of {entry.dataset}: {entry.role or UNDECLARED}{reason}", command)
    database = Evidence(f"database of {entry.dataset}: {entry.database or UNDECLARED}", command)
    return Known(entry.role or UNDECLARED, (role,)), Known(entry.database, (database,))


def apply(policy: Policy, facts: Facts, verdicts: Iterable[Verdict], answers: Answers) -> Verdicts:
    """What a waiver or an answer covers has the outcome "waived". Puts waiver.used and waiver.in_view."""
    verdicts = Verdicts.of(verdicts)
    if not policy.waivers and not policy.answers:
        return verdicts
    places = _Places(facts)
    ran = {verdict.rule.id for verdict in verdicts.outcomes()}
    holding = {id: [waiver for waiver in policy.waivers if matches(id, waiver.rule)] for id in ran}
    used: set[Waiver] = set()
    answering: set[Answer] = set()
    undecided: set[str] = set()

    def judged(verdict: Verdict) -> Verdict:
        if verdict.outcome in ("fail", "unknown") and (candidates := holding.get(verdict.rule.id)):
            covering = [waiver for waiver in candidates if places.covers(waiver, verdict.subject)]
            used.update(covering)
            holds = next((waiver for waiver in covering if not over(waiver.expires, facts)), None)
            if holds:
                verdict = verdict._replace(outcome="waived", was=verdict.outcome, waiver=holds)
            elif verdict.outcome == "unknown":
                undecided.add(verdict.rule.id)
        if verdict.outcome in ("fail", "unknown") and (answer := answers.of(verdict)):
            answering.add(answer)
            waiver = as_waiver(answer, verdict.rule.id)
            verdict = verdict._replace(outcome="waived", was=verdict.outcome, waiver=waiver)
        return verdict

    verdicts = verdicts.changed(judged)
    for waiver in policy.waivers:
        unseen = any(matches(id, waiver.rule) for id in undecided)
        there = any(matches(id, waiver.rule) for id in ran)
        _put(facts, policy, waiver, waiver in used, unseen or not places.in_view(waiver, there))
    for answer in policy.answers:
        # that a drive is here is enough: the table of events rests on its word, whatever the rules say
        here = applies(answer, facts)
        _put(facts, policy, answer, answer in answering or (here and answer.party == "drive"), not here)
    return verdicts


def _put(facts: Facts, policy: Policy, waiver: Waiver | Answer, used: bool, unseen: bool) -> None:
    """in_view: False where what it waives was not looked at, or could not be decided, this time."""
    subject, where = _subject(waiver), _where(policy, waiver)
    in_view = used or not unseen
    said = f"{waiver.title}: {'found' if used else 'nothing found'}"
    facts.replace(Fact(subject, "used", known(used, said, where)))
    facts.replace(Fact(subject, "in_view", known(in_view, "was judged" if in_view else "was not judged", where)))


def _subject(waiver: Waiver | Answer) -> Subject:
    return Subject("waiver", waiver.title)


def _where(policy: Policy, waiver: Waiver | Answer) -> str:
    path, line = policy.place(waiver.line)
    return f"sed -n '{line},+6p' {argument(path)}"


class _Places:
    """Which subjects a scope means."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._pools = {
            pool: facts.get(pool, "guid").word() or facts.get(pool, "list_guid").word()
            for pool in facts.subjects("pool")
        }
        self._class = _class(facts)
        self._names = Identities(facts)
        self._audited = set(facts.linked(HOST, "pools"))

    def covers(self, waiver: Waiver, subject: Subject) -> bool:
        match waiver.scope:
            case "host":
                return matches(self._facts.get(HOST, "hostname").word(), waiver.name)
            case "class":
                return self._class == waiver.name
            case "database":
                return subject.kind == "database" and self._is(subject, waiver.name)
            case "device":
                disks = self._disks(subject)
                return bool(disks) and all(self._facts.get(disk, "serial").word() == waiver.name for disk in disks)
            case "pool":
                pools = self._pools_of(subject)
                return bool(pools) and all(self._pools.get(pool) == waiver.name for pool in pools)
            case "dataset":
                datasets = self._datasets(subject)
                return bool(datasets) and all(_within(each.name, waiver.name) for each in datasets)

    def in_view(self, waiver: Waiver, ran: bool) -> bool:
        """Was it judged, or does it certainly not exist? A rule that did not run says nothing, nor does a host looked at
        in part."""
        if not ran:
            return False
        match waiver.scope:
            case "host":  # a policy for many hosts has patterns that do not mean this one
                return "*" not in waiver.name or matches(self._facts.get(HOST, "hostname").word(), waiver.name)
            case "class":
                return self._class == waiver.name
            case "database":
                return any(self._is(each, waiver.name) for each in self._facts.linked(HOST, "databases"))
            case "device":
                return any(
                    self._facts.get(disk, "serial").word() == waiver.name for disk in self._facts.subjects("disk")
                )
            case "pool":
                return any(self._pools.get(pool) == waiver.name for pool in self._audited)
            case "dataset":
                inside = (each for pool in self._audited for each in self._facts.linked(pool, "datasets"))
                return any(_within(each.name, waiver.name) for each in inside) or self._gone(waiver.name)

    def _is(self, database: Subject, name: str) -> bool:
        return self._facts.get(database, "engine").word() == name or matches(self._names.of(database).label, name)

    def _gone(self, dataset: str) -> bool:
        """Whether everything of its pool was looked at, and it was not there."""
        pool = Subject("pool", dataset.partition("/")[0])
        return Subject("dataset", pool.name) in self._facts.linked(pool, "datasets")

    def _disks(self, subject: Subject) -> Sequence[Subject]:
        if subject.kind == "leaf":
            return self._facts.linked(subject, "disks")
        return (subject,) if subject.kind == "disk" else ()

    def _pools_of(self, subject: Subject) -> Iterable[Subject]:
        match subject.kind:
            case "pool":
                return {subject}
            case "vdev" | "leaf":
                return {Subject("pool", subject.within)}
            case "dataset":
                return {Subject("pool", subject.name.partition("/")[0])}
            case "disk":
                return {Subject("pool", leaf.within) for leaf in self._facts.linked(subject, "used_by")}
            case "database":
                return {Subject("pool", each.name.partition("/")[0]) for each in self._datasets(subject)}
            case _:
                return ()

    def _datasets(self, subject: Subject) -> Sequence[Subject]:
        if subject.kind == "database":
            return self._facts.linked(subject, "datasets")
        return (subject,) if subject.kind == "dataset" else ()


def _within(name: str, above: str) -> bool:
    if "*" not in above:
        return name == above or name.startswith(above + "/")
    parts, wanted = name.split("/"), above.split("/")
    return len(parts) >= len(wanted) and all(map(matches, parts, wanted))


def _class(facts: Facts) -> str:
    """Of the host, or empty where nobody can tell: in a container that may run on either."""
    if facts.get(HOST, "container").word() != "False":
        return ""
    return {"": "", "none": "physical"}.get(facts.get(HOST, "virtualization").word(), "virtual machine")


# What a site answers for: that a drive, controller, hypervisor or target honours flushes, which nothing here can check.
#
# A site may also adopt what a provider documents (auditor/data/providers.toml): it covers the disks that look like the
# provider's, at the events that the documentation names.
#
# An answer waives the rules that ask exactly this (their key ``answer``) until its last day is over, and the table of events
# names who answers. Drives are named by serial number or model; the others by what they are, of one host or of all that read
# the policy.


OUTLIVES: Mapping[Event, tuple[Keeps, ...]] = {  # what is asked of a disk at an event
    "power": ("power",),
    "below": ("power", "below"),
    "drive": ("drive",),
    "log": ("drive",),
    "power+drive": ("power", "drive"),
    "power+log": ("power", "drive"),
}


class Answers:
    """The answers that hold on the day on which the host was looked at."""

    def __init__(self, policy: Policy, facts: Facts) -> None:
        self._facts = facts
        here = facts.get(HOST, "hostname").word()
        self._holding = [each for each in policy.answers if each.host in ("", here) and not over(each.expires, facts)]

    def of_disks(self, disks: Sequence[Subject]) -> Answer | None:
        """Who answers for all of these drives: the answer that ends first, where there is one for each."""
        found = [next((each for each in self._holding if _names(each, disk, self._facts)), None) for disk in disks]
        whole = [each for each in found if each]
        return min(whole, key=lambda each: each.expires) if whole and len(whole) == len(found) else None

    def of(self, verdict: Verdict) -> Answer | None:
        """Who answers for what a rule failed or could not decide, where that does no more than rely on one party."""
        if not self._holding or not verdict.rule.answer or len(verdict.relies) != 1:
            return None
        (party,) = verdict.relies
        cuts: dict[str, Event] = {"power+log": "power", "power+drive": "power"}  # no flush brings a device back
        events = [cuts.get(each.event, each.event) for each in verdict.cells if each.answer == "relies"]
        return self.of_disks(self._disks(verdict.subject)) if party == "drive" else self.of_party(party, events)

    def of_party(self, party: str, events: Iterable[Event]) -> Answer | None:
        """Who answers for a party at these events: for all of them, or a provider whose documents cover each disk."""
        here = [each for each in self._holding if each.party == party]
        if whole := next((each for each in here if not each.provider), None):
            return whole
        wanted = {kept for event in events for kept in OUTLIVES.get(event, ())}
        known = drives.load_providers()
        able = {each.provider: each for each in here if each.provider and wanted <= set(known[each.provider].keeps)}
        disks = catch_missing(disks_behind)(party, self._facts) if able else []
        if isinstance(disks, Unknown):
            return None
        found = [next((id for id in self._facts.get(disk, "providers").words() if id in able), "") for disk in disks]
        return min((able[id] for id in found), key=lambda each: each.expires) if found and all(found) else None

    def _disks(self, subject: Subject) -> Sequence[Subject]:
        leaves = self._facts.linked(subject, "leaves") if subject.kind == "vdev" else (subject,)
        return [disk for leaf in leaves for disk in self._facts.linked(leaf, "disks")]


def as_waiver(answer: Answer, rule: str) -> Waiver:
    """The same as a waiver of one rule, as a report shows it."""
    name = answer.serial or answer.model
    scope, of = ("device", name) if name else ("host", answer.host or answer.provider or answer.party)
    return Waiver(
        rule, "device" if scope == "device" else "host", of, answer.owner, answer.reason, answer.expires, answer.line
    )


def applies(answer: Answer, facts: Facts) -> bool:
    """Is what it is about here? Of another host, or a drive that was not seen, it says nothing."""
    if answer.host and answer.host != facts.get(HOST, "hostname").word():
        return False
    if answer.provider:
        return any(answer.provider in facts.get(each, "providers").words() for each in facts.subjects("disk"))
    return answer.party != "drive" or any(_names(answer, disk, facts) for disk in facts.subjects("disk"))


def _names(answer: Answer, disk: Subject, facts: Facts) -> bool:
    if answer.serial:
        return facts.get(disk, "serial").word() == answer.serial
    return bool(answer.model) and facts.get(disk, "model").word() == answer.model


def over(expires: date, facts: Facts) -> bool:
    """Whether a last day was over (UTC) when the host was looked at."""
    return datetime.fromtimestamp(facts.now, UTC).date() > expires
