"""The program on one screen: look, derive, judge, rank, report."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from auditor import Stop, __version__, registry
from auditor.data.platforms import ANY
from auditor.databases import ENGINES
from auditor.facts import HOST, Fact, Facts, Known, Subject, known, unknown
from auditor.gather import layers
from auditor.gather.gatherer import Progress
from auditor.gather.walk import DatabaseError as DatabaseError
from auditor.gather.walk import LookOptions, gather
from auditor.gather.walk import NothingToAudit as NothingToAudit
from auditor.host import sql
from auditor.host.live import Host
from auditor.judge import finding, precedence, verdict, waivers
from auditor.judge.event_table import EventTable
from auditor.judge.finding import Finding
from auditor.judge.policy import NONE as NONE
from auditor.judge.policy import LeftOut, Policy
from auditor.judge.rule import Rule, Severity, digest
from auditor.judge.waivers import Answers
from auditor.model import derivation
from auditor.model.database import databases
from auditor.recording.recording import Recording, ReplayHost
from auditor.report.model import Report

if TYPE_CHECKING:
    from auditor.judge.baseline import Baseline
    from auditor.judge.supposition import Change


class OptionsError(Stop):
    """What a recording was made with that no zaudit of this release can have been told, and why."""


class Options(NamedTuple):
    """How to look, and what the user decided."""

    wanted: LookOptions = LookOptions()
    policy: Policy = NONE

    def words(self) -> dict[str, str]:
        words = self.wanted.words()
        return words | ({"policy": self.policy.text, "policy_path": self.policy.path} if self.policy.path else {})

    @classmethod
    def from_words(cls, words: Mapping[str, str]) -> Options:
        """From a recording, of which no link of a report is made. Raises OptionsError or PolicyError."""
        from auditor.judge import policy_file

        name, directory, connection = (words.get(key, "") for key in ("database", "directory", "connection"))
        if name and name not in ENGINES:
            raise OptionsError(f"recorded with the database {name!r}; this zaudit knows {', '.join(ENGINES)}")
        if connection and name not in sql.DRIVERS:
            raise OptionsError(f"recorded with a connection to {name or 'no database'}, which cannot be asked")
        path = words.get("policy_path", "")
        policy = policy_file.parse(words.get("policy", ""), path)._replace(pages="") if path else NONE
        return cls(LookOptions(words.get("consistent") == "yes", name, directory, connection), policy)


class Look(NamedTuple):
    """The facts, and the datasets that the targets meant. recorder: the release that made the recording, or empty;
    unasked: today's questions that it lacks; edited: what was changed in it, or empty."""

    facts: Facts
    roots: tuple[Subject, ...]
    seconds: Mapping[str, float] = {}
    policy: Policy = NONE
    recorder: str = ""
    unasked: tuple[str, ...] = ()
    edited: str = ""


def look(host: Host, names: Sequence[str], options: Options, progress: Progress | None = None) -> Look:
    """Collect and derive. Raises NothingToAudit, with the facts of the host where it has them."""
    started = time.process_time()
    try:
        facts, roots, unasked = gather(host, names, options.wanted, registry.sources(), progress)
    except NothingToAudit as nothing:
        if nothing.facts:
            derivation.run(registry.derivations(), nothing.facts)
        raise
    gathered = time.process_time()
    facts.put_all(waivers.facts_of(options.policy, facts))
    _derive(facts)
    seconds = {"gather": gathered - started, "derive": time.process_time() - gathered}
    recorder, edited = (getattr(host, name, "") for name in ("recorder", "edited"))  # of a replay
    return Look(facts, roots, seconds, options.policy, recorder, unasked, edited)


def replay(past: Recording, policy: Policy | None = None) -> Look:
    """A recording, as it was looked at then. policy: instead of its own. Raises NothingToAudit, OptionsError or PolicyError."""
    options = Options.from_words(past.options)
    return look(ReplayHost(past), past.targets, options if policy is None else options._replace(policy=policy))


def suppose(seen: Look, changes: Sequence[Change]) -> Look:
    """The same look with changes of what was collected, as a copy. Raises SuppositionError."""
    facts = _supposed(seen.facts, changes)
    _derive(facts)
    return seen._replace(facts=facts)


def _supposed(facts: Facts, changes: Sequence[Change]) -> Facts:
    from auditor.judge import supposition

    derived = {key for each in registry.derivations() for key in each.specs}
    return supposition.suppose(facts, changes, registry.registry(), derived)


def for_model(facts: Facts, changes: Sequence[Change]) -> Facts:
    """The facts with changes, which are derived when the model asks for them. Raises SuppositionError."""
    found = _supposed(facts, changes)
    found.derive = derivation.Lazy(registry.derivations(), found)
    return found


def _derive(facts: Facts) -> None:
    derivation.run(registry.derivations(), facts)
    _no_empty_links(facts)


def _no_empty_links(facts: Facts) -> None:
    """A link that must lead somewhere and does not is a hole: all() over nothing would be true."""
    for (kind, name), spec in registry.registry().items():
        if spec.nonempty:
            for subject in list(facts.subjects(kind)):
                if facts.of(subject).get(name) and not facts.linked(subject, name):
                    why = facts.get(subject, name)
                    if isinstance(why, Known):
                        facts.replace(Fact(subject, name, unknown(f"{subject}: no {name} are known")))


def alone(host: Facts, rules: Sequence[Rule]) -> tuple[Finding, ...]:
    """What fails of a host without a pool, from medium on: it may tell why there is none."""
    about = [rule for rule in _spoken(rules, host) if rule.subject == "host"]
    found = finding.findings(verdict.judge(about, host), host)
    return tuple(each for each in found if each.failed and each.severity != "low")


def _spoken(rules: Sequence[Rule], facts: Facts) -> list[Rule]:
    """The rules, with their fixes in words of the host's platform."""
    here = str(facts.get(HOST, "platform").or_none() or ANY)
    return [rule._replace(platform=here) for rule in rules]


def focus(seen: Look, host: Host, names: Sequence[str]) -> Look:
    """The same look, narrowed to some of its targets. Raises NothingToAudit for what was not looked at."""
    facts = seen.facts
    try:
        pools = [pool.name for pool in facts.linked(HOST, "pools")]
        held = partial(layers.held_before, facts)
        roots = tuple(sorted({each for name in names for each in layers.resolve(host, name, pools, held, facts)}))
    except layers.TargetError as error:
        raise NothingToAudit(f"in this recording: {error}") from None
    for root in roots:
        if not facts.of(root):
            there = [each.name for each in facts.linked(layers.pool_of(root), "datasets")]
            raise NothingToAudit(f"in this recording: {layers.missing(root.name, there)}")
    more = layers.expand(facts, roots)
    for dataset in list(facts.subjects("dataset")):
        why = more.get(dataset)
        facts.replace(Fact(dataset, "brought", known(why, why) if why else unknown("it was named")))
    chosen = {layers.pool_of(each) for each in (*roots, *more)}
    facts.replace(Fact(HOST, "pools", Known(tuple(sorted(chosen)), ())))
    for pool in chosen:
        datasets = facts.get(pool, "datasets")
        if isinstance(datasets, Known):
            every = facts.linked(pool, "datasets")
            inside = tuple(each for each in every if each in more or any(layers.covers(root, each) for root in roots))
            facts.replace(Fact(pool, "datasets", Known(inside, datasets.evidence)))
    for fact in databases.derive(HOST, facts):
        facts.replace(fact)
    return seen._replace(facts=facts, roots=roots)


def judge(
    seen: Look,
    rules: Sequence[Rule],
    names: Sequence[str],
    threshold: Severity,
    *,
    left_out: Sequence[LeftOut] = (),
    failed_only: bool = False,
    known: Baseline | None = None,
) -> Report:
    """left_out: rules that the user chose not to run. known: findings that do not count. failed_only: as of exit_code()."""
    rules = _spoken(rules, seen.facts)
    about_waivers = [rule for rule in rules if rule.subject == "waiver"]
    verdicts = verdict.judge([rule for rule in rules if rule.subject != "waiver"], seen.facts)
    table = EventTable(seen.facts)
    verdicts = table.ranked(verdicts)
    answers = Answers(seen.policy, seen.facts)
    verdicts = waivers.apply(seen.policy, seen.facts, verdicts, answers)
    verdicts = verdicts + verdict.judge(about_waivers, seen.facts)
    night = None
    if known:
        from auditor.judge import baseline

        verdicts, night = baseline.apply(known, seen.facts, verdicts, rules)
    found = finding.findings(verdicts, seen.facts)
    found = precedence.ordered(found, table, seen.facts, partial(for_model, seen.facts))
    return Report.make(
        seen.facts,
        found,
        failed_only=failed_only,
        zaudit=__version__,
        targets=tuple(names) or tuple(root.name for root in seen.roots),
        verdicts=verdicts,
        coverage=finding.coverage(rules, verdicts),
        threshold=threshold,
        policy=seen.policy.path,
        left_out=tuple(left_out),
        columns=table.columns(verdicts, answers),
        events=table.events,
        rules=digest(rules),
        recorder=seen.recorder,
        unasked=seen.unasked,
        edited=seen.edited,
        night=night,
    )
