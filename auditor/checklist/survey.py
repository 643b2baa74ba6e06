"""``zaudit checklist``: an audit, and beside it what was recorded of a verification and a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from auditor.facts import HOST, Facts, Subject, word_of
from auditor.judge.policy import Policy
from auditor.judge.rule import Rule
from auditor.recording import recording
from auditor.recording.recording import Recording
from auditor.report.model import Report
from auditor.text import harmless
from auditor.verify import session, trial, verification
from auditor.verify.result import Verification

KINDS: dict[Source, str] = {"check": "an audit alone", "verify": "a verification", "diagnose": "a diagnosis"}


class CannotList(Stop):
    """Evidence that does not go together; the text says why."""


class Wanted(NamedTuple):
    """What the command line says. options: of a live audit. policy: instead of those of recordings, or None. made: seconds
    since the epoch at which the list is drawn up."""

    target: str | None
    replays: tuple[Path, ...]
    options: audit.Options
    policy: Policy | None
    timeout: float
    deadline: float
    made: float


class _Kept(NamedTuple):
    path: Path
    past: Recording
    text: str


class _Looked(NamedTuple):
    """One look of whatever kind. report: by the rules that are about it."""

    seen: audit.Look
    target: Subject
    report: Report


def draw(wanted: Wanted, progress: Callable[..., None] | None) -> Checklist:
    """The checklist of one target. Raises what the parts raise."""
    kept = _by_kind(wanted.replays)
    if wanted.options.wanted.database and ("check" in kept or not wanted.target):
        raise CannotList("--db goes with a TARGET of this host; zaudit record --db makes a recording that knows it")
    measured = _measured(kept["verify"], wanted.policy) if "verify" in kept else None
    watched = _watched(kept["diagnose"], wanted.policy) if "diagnose" in kept else None
    looked = _audit(wanted, kept.get("check"), progress) or _youngest(measured, watched)
    audited = _audited(looked)
    evidence = [
        Evidence(
            "check", looked.seen.facts.now, checklist_page.of_audit(looked.report) + checklist_page.minds(looked.report)
        )
    ]
    stale: dict[str, tuple[str, ...]] = {}
    beside: list[tuple[Source, _Looked, str]] = []
    beside += [("verify", measured[0], checklist_page.of_verification(measured[1]))] if measured else []
    beside += [("diagnose", watched[0], checklist_page.of_diagnosis(watched[1]))] if watched else []
    for by, other, text in beside:
        if why := lists.why_not(audited, other.seen.facts, other.target):
            raise CannotList(f"{kept[by].path}: {why}")
        stale[by] = () if other is looked else tuple(lists.changes(audited, other.seen.facts))
        evidence.append(Evidence(by, other.seen.facts.now, text + checklist_page.minds(other.report), stale[by]))
    seen = responses.Looks(
        audited,
        Runs(measured[0].report, lists.by_rule(measured[0].report)) if measured else None,
        Verified(measured[1], _profiles(looked.seen.facts)) if measured else None,
        watched[1] if watched else None,
        tuple(stale.items()),
    )
    return responses.checklist(lists.load(), seen, tuple(evidence), wanted.made)


# -- what there is ------------------------------------------------------------------------------------------------


def _by_kind(paths: Sequence[Path]) -> dict[str, _Kept]:
    """The recordings by what is in them, one of each kind."""
    found: dict[str, _Kept] = {}
    for path in paths:
        past = recording.load(path)
        text = past.trial.decode("utf-8", "surrogateescape")
        kind: Source = "check" if not text else "diagnose" if observation.SCHEMA in text[:200] else "verify"
        if kind in found:
            raise CannotList(f"{found[kind].path} and {path}: both hold {KINDS[kind]}; name one")
        found[kind] = _Kept(path, past, text)
    return found


def _audit(wanted: Wanted, kept: _Kept | None, progress: Callable[..., None] | None) -> _Looked | None:
    """That of a recording, narrowed to the target if one is named, or of this host; None where neither is asked for."""
    if kept:
        seen = audit.replay(kept.past, wanted.policy)
        if wanted.target:
            seen = audit.focus(seen, recording.ReplayHost(kept.past), (wanted.target,))
        return _looked(seen, str(kept.path))
    if not wanted.target:
        return None
    from auditor.host.live import LiveHost

    host = LiveHost(wanted.timeout, wanted.deadline)
    try:
        with interrupt.waiting():
            seen = audit.look(host, (wanted.target,), wanted.options, progress)
    except audit.NothingToAudit as error:
        if wanted.replays:
            raise audit.NothingToAudit(f"{error}. Without a TARGET the youngest recording is audited") from None
        raise
    return _looked(seen, wanted.target)


def _looked(seen: audit.Look, of: str) -> _Looked:
    chosen = rulebook.choose((), (), (), seen.policy)
    report = audit.judge(seen, chosen.rules, (), "low", left_out=chosen.left_out)
    return _Looked(seen, _target(seen, of), report)


def _target(seen: audit.Look, of: str) -> Subject:
    """The one target of a look: a list of several is about none of them."""
    if len(seen.roots) != 1:
        names = ", ".join(harmless(each.name) for each in seen.roots[:8])
        raise CannotList(f"{of}: a checklist is of one target; name one of {names}")
    return seen.roots[0]


def _measured(kept: _Kept, policy: Policy | None) -> tuple[_Looked, Verification]:
    seen = audit.replay(kept.past, policy)
    target = _target(seen, str(kept.path))
    chosen = session.rules(seen.policy)
    tried = trial.from_text(kept.text)
    found = verification.judge(seen, tried, chosen.rules, kept.past.targets, "low", left_out=chosen.left_out)
    return _Looked(seen, target, found.report), found.verification


def _watched(kept: _Kept, policy: Policy | None) -> tuple[_Looked, Diagnosis]:
    seen = audit.replay(kept.past, policy)
    try:
        found = conclusion.diagnose(observation.from_text(kept.text), seen.facts)
    except ValueError as error:
        raise CannotList(f"{kept.path}: {error}") from None
    return _looked(seen, str(kept.path)), found


def _youngest(measured: tuple[_Looked, Verification] | None, watched: tuple[_Looked, Diagnosis] | None) -> _Looked:
    """A verification and a diagnosis begin with an audit: the last of them."""
    looks = [each[0] for each in (measured, watched) if each]
    return max(looks, key=lambda each: each.seen.facts.now)


def _audited(looked: _Looked) -> Audited:
    rules: Mapping[str, Rule] = {each.id: each for each in rulebook.load(examples=False)}
    return Audited(looked.target, looked.seen.facts, looked.report, rules, lists.by_rule(looked.report))


def _profiles(facts: Facts) -> dict[str, str]:
    """Engine -> the profile that writes as it does, of the databases on the target."""
    engines = {word_of(facts.get(each, "engine")) for each in facts.linked(HOST, "databases")}
    return {name: ENGINES[name].profile for name in sorted(engines) if name in ENGINES}


def summary(found: Checklist) -> str:
    return f"{checklist_page.counts(found)} (exit code {found.exit_code})"
