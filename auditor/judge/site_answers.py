"""What a site answers for: that a drive, controller, hypervisor or target honours flushes, which nothing here can check.

A site may also adopt what a provider documents (auditor/data/providers.toml): it covers the disks that look like the
provider's, at the events that the documentation names.

An answer waives the rules that ask exactly this (their key ``answer``) until its last day is over, and the table of events
names who answers. Drives are named by serial number or model; the others by what they are, of one host or of all that read the
policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime

from auditor.data import providers
from auditor.data.providers import Keeps
from auditor.facts import HOST, Facts, Known, Subject, Unknown
from auditor.judge.event import Event
from auditor.judge.policy import Answer, Policy, Waiver
from auditor.judge.verdict import Verdict
from auditor.model.derivation import catch_missing
from auditor.model.disk import disks_behind

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
        here = word_of(facts, HOST, "hostname")
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
        """Who answers for a hypervisor, controller or target at these events: somebody for all of them, or for each disk that
        it shows a provider that documents what its disks outlive."""
        here = [each for each in self._holding if each.party == party]
        if whole := next((each for each in here if not each.provider), None):
            return whole
        wanted = {kept for event in events for kept in OUTLIVES.get(event, ())}
        known = providers.load()
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
    if answer.host and answer.host != word_of(facts, HOST, "hostname"):
        return False
    if answer.provider:
        return any(answer.provider in facts.get(each, "providers").words() for each in facts.subjects("disk"))
    return answer.party != "drive" or any(_names(answer, disk, facts) for disk in facts.subjects("disk"))


def _names(answer: Answer, disk: Subject, facts: Facts) -> bool:
    if answer.serial:
        return word_of(facts, disk, "serial") == answer.serial
    return bool(answer.model) and word_of(facts, disk, "model") == answer.model


def word_of(facts: Facts, subject: Subject, name: str) -> str:
    """A fact as text; empty where it is not known."""
    seen = facts.get(subject, name)
    return str(seen.value) if isinstance(seen, Known) else ""


def over(expires: date, facts: Facts) -> bool:
    """Whether a last day was over (UTC) when the host was looked at."""
    return datetime.fromtimestamp(facts.now, UTC).date() > expires
