"""``zaudit checklist``: an audit, and next to it what was recorded of a verification and a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from auditor import audit, interrupt, rulebook
from auditor.checklist import checklist_page, lists, responses
from auditor.checklist.lists import Audited, Checklist, Evidence, Runs, Source
from auditor.checklist.responses import Verified
from auditor.databases import ENGINES
from auditor.diagnose import conclusion, observation
from auditor.diagnose.diagnosis import Diagnosis
from auditor.errors import Stop
from auditor.facts import HOST, Facts, Subject
from auditor.judge.policy import Policy
from auditor.judge.rule import Rule
from auditor.recording import recording
from auditor.report.model import Report
from auditor.text import harmless
from auditor.verify import session, trial, verification
from auditor.verify.result import Verification

KINDS: dict[Source, str] = {"check": "an audit alone", "verify": "a verification", "diagnose": "a diagnosis"}


class CannotList(Stop):
    """Evidence that does not go together; the text says why."""


class ChecklistOptions(NamedTuple):
    """What the command line says. options: of a live audit. policy: instead of those of recordings, or None. made: seconds
    since the epoch at which the list is drawn up."""

    target: str | None
    replays: tuple[Path, ...]
    options: audit.Options
    policy: Policy | None
    timeout: float
    deadline: float
    made: float


class _View(NamedTuple):
    """An audit, and what was measured or watched after it. of: where it is from. report: by the rules that are about it. text:
    what it was, in a few words."""

    by: Source
    of: str
    seen: audit.Look
    target: Subject
    report: Report
    text: str = ""
    measured: Verification | None = None
    watched: Diagnosis | None = None


def draw(wanted: ChecklistOptions, progress: Callable[..., None] | None) -> Checklist:
    """The checklist of one target. Raises what the parts raise."""
    views: dict[Source, _View] = {}
    for path in wanted.replays:
        view = _recorded(path, wanted)
        if view.by in views:
            raise CannotList(f"{views[view.by].of} and {path}: both hold {KINDS[view.by]}; name one")
        views[view.by] = view
    if wanted.options.wanted.database and ("check" in views or not wanted.target):
        raise CannotList("--db goes with a TARGET of this host; zaudit record --db makes a recording that knows it")
    if wanted.target and "check" not in views:
        views["check"] = _audit("check", wanted.target, _live(wanted, progress))
    # a verification and a diagnosis begin with an audit: the last of them, where there is no other
    first = views.get("check") or max(views.values(), key=lambda each: each.seen.facts.now)
    rules: Mapping[str, Rule] = {each.id: each for each in rulebook.load(examples=False)}
    audited = Audited(first.target, first.seen.facts, first.report, rules, lists.by_rule(first.report))
    text = checklist_page.of_audit(first.report) + checklist_page.minds(first.report)
    evidence, stale = [Evidence("check", first.seen.facts.now, text)], dict[str, tuple[str, ...]]()
    for each in (views[by] for by in ("verify", "diagnose") if by in views):
        if why := lists.why_not(audited, each.seen.facts, each.target):
            raise CannotList(f"{each.of}: {why}")
        stale[each.by] = () if each is first else tuple(lists.changes(audited, each.seen.facts))
        text = each.text + checklist_page.minds(each.report)
        evidence.append(Evidence(each.by, each.seen.facts.now, text, stale[each.by]))
    measured, watched = views.get("verify"), views.get("diagnose")
    seen = responses.Looks(audited, stale=tuple(stale.items()), diagnosed=watched.watched if watched else None)
    if measured and measured.measured:
        runs = Runs(measured.report, lists.by_rule(measured.report))
        seen = seen._replace(runs=runs, verified=Verified(measured.measured, _profiles(first.seen.facts)))
    return responses.checklist(lists.load(), seen, tuple(evidence), wanted.made)


# -- what there is ------------------------------------------------------------------------------------------------


def _recorded(path: Path, wanted: ChecklistOptions) -> _View:
    """What a recording holds: an audit alone, narrowed to the target if one is named, a verification or a diagnosis."""
    past = recording.load(path)
    seen, text = audit.replay(past, wanted.policy), past.trial.decode("utf-8", "surrogateescape")
    if not text:
        if wanted.target:
            seen = audit.focus(seen, recording.ReplayHost(past), (wanted.target,))
        return _audit("check", str(path), seen)
    if observation.SCHEMA in text[:200]:
        try:
            watched = conclusion.diagnose(observation.from_text(text), seen.facts)
        except ValueError as error:
            raise CannotList(f"{path}: {error}") from None
        return _audit("diagnose", str(path), seen)._replace(text=checklist_page.of_diagnosis(watched), watched=watched)
    target = _target(seen, str(path))
    found = verification.judge(seen, trial.from_text(text), session.rules(seen.policy), past.targets, "low")
    measured = found.verification
    said = checklist_page.of_verification(measured)
    return _View("verify", str(path), seen, target, found.report, said, measured)


def _live(wanted: ChecklistOptions, progress: Callable[..., None] | None) -> audit.Look:
    from auditor.host.live import LiveHost

    host = LiveHost(wanted.timeout, wanted.deadline)
    try:
        with interrupt.waiting():
            return audit.look(host, (str(wanted.target),), wanted.options, progress)
    except audit.NothingToAudit as error:
        if wanted.replays:
            raise audit.NothingToAudit(f"{error}. Without a TARGET the youngest recording is audited") from None
        raise


def _audit(by: Source, of: str, seen: audit.Look) -> _View:
    chosen = rulebook.choose((), (), (), seen.policy)
    report = audit.judge(seen, chosen.rules, (), "low", left_out=chosen.left_out)
    return _View(by, of, seen, _target(seen, of), report)


def _target(seen: audit.Look, of: str) -> Subject:
    """The one target of a look: a list of several is about none of them."""
    if len(seen.roots) != 1:
        names = ", ".join(harmless(each.name) for each in seen.roots[:8])
        raise CannotList(f"{of}: a checklist is of one target; name one of {names}")
    return seen.roots[0]


def _profiles(facts: Facts) -> dict[str, str]:
    """Engine -> the profile that writes as it does, of the databases on the target."""
    engines = {facts.get(each, "engine").word() for each in facts.linked(HOST, "databases")}
    return {name: ENGINES[name].profile for name in sorted(engines) if name in ENGINES}
