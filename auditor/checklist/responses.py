"""The lines of a checklist, answered from an audit, a verification and a diagnosis, live or recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from auditor import Stop, audit, interrupt, rulebook
from auditor.checklist import checklist_page, lists
from auditor.checklist.lists import Answer, Audited, Checklist, Evidence, Line, LineAnswer, Source, Statement
from auditor.databases import ENGINES
from auditor.diagnose import conclusion, observation
from auditor.diagnose.diagnosis import Cause, Diagnosis
from auditor.facts import HOST, Facts, Subject, Unknown
from auditor.judge.finding import EXIT_CODES, EXIT_UNDECIDED
from auditor.judge.policy import Policy
from auditor.judge.rule import Rule
from auditor.recording import recording
from auditor.report.model import Report
from auditor.text import duration, harmless, quoted
from auditor.verify import trial, verification
from auditor.verify.result import KERNEL_LOG, Run, Verification, together

# What a verification says of a line: the links of its chain, and what else it must have shown.

UPPER = ("dataset", "system calls", "fio", "ZIL")  # links above the devices
ALONE = ("dataset", "system calls", "fio")  # links that no load of others touches
SLOWER = 2.0  # times the median of the first third of a run: slower than that, its end is another
LEAST = 100  # syncs of a third, below which nothing is said of it
LONG, STANDARD = frozenset({"ten minutes", "p99.9"}), frozenset({"two minutes", "log and data"})  # parts that need it


class Verified(NamedTuple):
    """A verification of the same target. profiles: of the engines of the databases that were seen there, by their name."""

    found: Verification
    profiles: Mapping[str, str]

    @property
    def log(self) -> Run | None:
        """The run that stands for the log, where fio said something in it."""
        return next((each for each in self.found.runs if each.purpose == "log" and each.jobs), None)


def verify_command(target: str, parts: tuple[str, ...] = ()) -> str:
    """What makes a verification that can show these parts, the shortest one."""
    length = " --long" if LONG & {*parts} else " --standard" if STANDARD & {*parts} else ""
    return f"zaudit verify {quoted(target)}{length} --record verify.tar.gz"


def of_verification(line: Line, seen: Verified | None, target: str) -> Iterator[Statement]:
    """One saying a link and a part. Without a verification one that says so."""
    again = verify_command(target, line.verify)
    if seen is None:
        if line.links or line.verify:
            yield Statement("open", "verify", lists.UNMEASURED, again)
        return
    for each in line.links:
        yield _link(each, seen.found, again)
    for each in line.verify:
        said = VERIFY_PARTS[each](seen)
        yield said if said.do or said.answer == "yes" else said._replace(do=again)


def _link(name: str, found: Verification, again: str) -> Statement:
    """The worst of the links of this name. Those that a load of others can add to need a chain that was followed whole."""
    chain = found.chain
    below = [each for each in chain.links if each.name not in (*UPPER, KERNEL_LOG)]
    links = below if name == "devices" else [each for each in chain.links if each.name == name]
    for each in links:
        if each.status == "contradicts":
            text = f"{harmless(each.name)}: {harmless(each.text)}"
            return Statement("no", "verify", text, "zaudit explain fsync-not-followed", "", "critical")
    for each in links:
        if each.status == "unseen":
            return Statement("open", "verify", f"{harmless(each.name)}: {harmless(each.text)}", again)
    if not links:
        return Statement("open", "verify", f"{name}: not followed", again)
    if name not in ALONE and chain.outcome != "TRACED":
        why = harmless(chain.reasons[0]) if chain.reasons else "another link lost syncs"
        return Statement("open", "verify", f"{name}: {chain.outcome}: {why}", again)
    return _yes("; ".join(f"{harmless(each.name)}: {harmless(each.text)}" for each in links))


# -- parts --------------------------------------------------------------------------------------------------------


def _lasted(seconds: float, words: str) -> Callable[[Verified], Statement]:
    def part(seen: Verified) -> Statement:
        log = seen.log
        if log is None:
            return _open("fio said nothing of the run of the log")
        text = f"the run of the log lasted {log.log.seconds:.0f} s"
        return _yes(text) if log.log.seconds >= seconds - 1 else _open(f"{text}, not {words}")

    return part


def _open(text: str, by: Source = "verify") -> Statement:
    return Statement("open", by, text)


def _yes(text: str, by: Source = "verify") -> Statement:
    return Statement("yes", by, text)


def _verified_tail(seen: Verified) -> Statement:
    """p99.9 of the run of the log, with samples enough, of syncs that mean something."""
    log = seen.log
    latency = next((each for each in seen.found.latencies if log and each.run == log.name), None)
    if latency is None:
        return _open("no latency of the log was measured")
    if latency.why_not:
        return _open(f"latency is not judged: {harmless(latency.why_not)}")
    found = next((each for each in latency.percentiles if each.q == 0.999), None)
    if found is None or found.ns is None:
        return _open(f"p99.9: {harmless(found.why) if found else 'not counted'}")
    return _yes(f"p99.9 {duration(found.ns)}, {found.beyond} samples beyond it")


def _steady(seen: Verified) -> Statement:
    """The last third of the run against the first: drives that write to a quick buffer first end slower than they began."""
    log = seen.log
    pieces = log.timeline if log else ()
    third = len(pieces) // 3
    first, last = (together(each.syncs for each in some) for some in (pieces[:third], pieces[len(pieces) - third :]))
    began, ended = first.percentile_ns(0.5), last.percentile_ns(0.5)
    if log is None or min(first.samples, last.samples) < LEAST or not began or not ended:
        return _open("too few syncs to tell its end from its beginning")
    text = f"a median sync took {duration(began)} in the first third of the run, {duration(ended)} in the last"
    if ended <= SLOWER * began:
        return _yes(text)
    return Statement("no", "verify", text, "Find what fills or heats up: zpool iostat -vl 1, smartctl -x", "", "medium")


def _log_and_data(seen: Verified) -> Statement:
    there = {each.purpose for each in seen.found.runs if each.jobs}
    if missing := [each for each in ("log", "data") if each not in there]:
        return _open(f"{' and '.join(missing)} not measured")
    names = ", ".join(f"{harmless(each.name)} ({each.purpose})" for each in seen.found.runs if each.jobs)
    return _yes(f"measured apart: {names}")


def _profile(seen: Verified) -> Statement:
    """Whether it wrote as the databases of the target do."""
    wrote = harmless(seen.found.profile)
    if not seen.profiles:
        again = f"zaudit checklist {quoted(seen.found.target)} --db NAME=DIR"
        return _open(f"it wrote as {wrote}; which database runs here was not seen")._replace(do=again)
    if seen.found.profile.endswith(".fio"):
        text = f"whether {wrote} writes as {', '.join(seen.profiles)} does"
        return Statement("open", "person", text, "ask its author")
    if other := [engine for engine, profile in seen.profiles.items() if profile != seen.found.profile]:
        text = f"it wrote as {wrote}, and {', '.join(other)} runs here"
        again = f"zaudit verify {quoted(seen.found.target)} --profile {seen.profiles[other[0]]} --record verify.tar.gz"
        return _open(text)._replace(do=again if seen.profiles[other[0]] else "ask for a profile")
    return _yes(f"it wrote as {wrote}, and {', '.join(seen.profiles)} runs here")


def _witnesses(seen: Verified) -> Statement:
    log = seen.log
    if log is None:
        return _open("fio said nothing of the run of the log")
    missing = [
        what
        for what, there in (
            ("the devices of the log", any(each.zil and each.flushes is not None for each in log.devices)),
            ("transaction groups", bool(log.txgs)),
            ("the throttle", bool(log.counters)),
            ("latencies", bool(log.latency.samples)),
        )
        if not there
    ]
    if missing or log.faults:
        return _open(f"not seen: {', '.join([*missing, *map(harmless, log.faults)])}")
    devices = ", ".join(harmless(each.disk) for each in log.devices)
    text = f"{devices}; {len(log.txgs)} transaction groups; {log.log.cpu_percent:.0f} % of a core"
    return _yes(text)


VERIFY_PARTS: dict[str, Callable[[Verified], Statement]] = {
    "two minutes": _lasted(120, "two minutes"),
    "ten minutes": _lasted(600, "ten minutes"),
    "p99.9": _verified_tail,
    "steady": _steady,
    "log and data": _log_and_data,
    "profile": _profile,
    "witnesses": _witnesses,
}


# What a diagnosis says of a line: what the load that is there told while it was watched.

OF_THE_LOG = ("slow-log-leg", "log-device-shared", "past-the-slog")  # causes that speak against log devices
# next to which no log block shows what a log does
FAILS = ("suspended", "device-hung", "device-fails", "txg-hangs", "fallback")
PART = 0.05  # of the commits: a thread that makes fewer is not one of several sessions
LONGER = " --seconds 300"


def diagnose_command(target: str, more: str = "") -> str:
    return f"zaudit diagnose {quoted(target)}{more} --record diagnose.tar.gz"


def of_diagnosis(line: Line, found: Diagnosis | None, target: str) -> Iterator[Statement]:
    """One saying a part. Without a diagnosis one that says so."""
    if not line.diagnose:
        return
    if found is None:
        yield Statement("open", "diagnose", lists.UNWATCHED, diagnose_command(target))
        return
    for each in line.diagnose:
        said = DIAGNOSE_PARTS[each](found)
        yield said._replace(do=diagnose_command(target, LONGER)) if said.answer == "open" and not said.do else said


def _no(cause: Cause, *, grave: bool) -> Statement:
    fix = harmless(cause.fix) or f"zaudit explain {cause.rule}"
    return Statement("no", "diagnose", harmless(cause.text), fix, cause.rule, "critical" if grave else "medium")


def _untraced(found: Diagnosis) -> Statement | None:
    """What to say where no commit was timed; None where they were."""
    if found.outcome == "NOBODY COMMITS":
        return _open("no program committed meanwhile", "diagnose")
    if found.outcome == "NOT DURABLE":
        return _open(harmless(found.answer), "diagnose")
    if found.traced is None or found.mean_ns is None:
        return _open(harmless(next(iter(found.reasons), "how long a commit takes was not seen")), "diagnose")
    return None


def _durable(found: Diagnosis) -> Statement:
    if found.outcome == "NOT DURABLE":
        return _no(found.causes[0], grave=True)
    if not found.commits:
        why = "no program committed meanwhile" if found.commits == 0 else "whether anybody commits was not seen"
        return _open(why, "diagnose")
    return _yes(f"the ZIL counted {found.commits:,} commits in {found.seconds:.0f} s", "diagnose")


def _several(found: Diagnosis) -> Statement:
    if said := _untraced(found):
        return said
    busy = [each for each in found.committers if each.commits >= PART * (found.traced or 0)]
    if len(busy) < 2:
        return _open("one thread alone committed meanwhile", "diagnose")
    return Statement(
        "yes", "diagnose", f"{len(busy)} threads, {found.traced:,} commits, {duration(found.mean_ns or 0.0)} each"
    )


def _log_devices(found: Diagnosis) -> Statement:
    for cause in found.causes:
        if cause.id in OF_THE_LOG:
            return _no(cause, grave=False)
    if failing := next((each for each in found.causes if each.id in FAILS), None):
        return _open(harmless(failing.text), "diagnose")
    legs = [each for each in found.devices if each.log]
    if found.outcome not in ("NOTHING STANDS OUT", "CAUSE"):
        return _open(harmless(found.answer), "diagnose")
    if found.reasons:
        return _open(harmless(found.reasons[0]), "diagnose")
    if not legs or any(each.kind != "log" or each.block_ns is None for each in legs):
        return _open("how long log blocks took on the log devices was not seen", "diagnose")
    took = ", ".join(f"{harmless(each.device)} {duration(each.block_ns or 0.0)}" for each in legs)
    return _yes(f"a log block takes: {took}", "diagnose")


def _diagnosed_tail(found: Diagnosis) -> Statement:
    if said := _untraced(found):
        return said
    ns = found.latency.judged(0.99)
    if ns is None:
        return _open(f"{found.latency.samples:,} commits are too few for p99", "diagnose")
    return _yes(f"p99 at most {duration(ns)} of {found.latency.samples:,} commits", "diagnose")


def _nothing(found: Diagnosis) -> Statement:
    if found.outcome == "NOTHING STANDS OUT":
        return _yes(harmless(found.answer), "diagnose")
    if found.outcome in ("CAUSE", "NOT DURABLE") and found.causes:
        return _no(found.causes[0], grave=found.outcome == "NOT DURABLE")
    return _open(harmless(found.answer), "diagnose")


DIAGNOSE_PARTS: dict[str, Callable[[Diagnosis], Statement]] = {
    "durable": _durable,
    "several": _several,
    "log devices": _log_devices,
    "tail": _diagnosed_tail,
    "nothing stands out": _nothing,
}


# A checklist on one screen: what was seen, line by line, made into answers.


class Looks(NamedTuple):
    """All that there is. stale: of a verification ("verify") and a diagnosis, what has changed since."""

    audit: lists.Audited
    runs: lists.Runs | None = None
    verified: Verified | None = None
    diagnosed: Diagnosis | None = None
    stale: tuple[tuple[str, tuple[str, ...]], ...] = ()


def checklist(lists: Sequence[lists.List], seen: Looks, evidence: tuple[Evidence, ...], made: float) -> Checklist:
    """All lists, answered. made: seconds since the epoch."""
    report = seen.audit.report
    lines = tuple(_answered(line, each.id, seen) for each in lists for line in each.lines)
    return Checklist(
        target=seen.audit.target.name,
        hostname=report.hostname,
        release=report.release,
        made=made,
        evidence=evidence,
        titles=tuple((each.id, each.title) for each in lists),
        lines=lines,
        next=_next(lines, seen),
        exit_code=_exit_code(lines),
    )


def _answered(line: Line, list_: str, seen: Looks) -> LineAnswer:
    said = tuple(_current(each, line, seen) for each in _statements(line, seen))
    answer = decide(line, said)
    ordered = sorted(
        said, key=lambda each: (each.answer != answer, each.rule in line.against, answer == "yes" and bool(each.rule))
    )
    return LineAnswer(list_, line.id, line.text, line.source, answer, tuple(dict.fromkeys(ordered)))


def decide(line: Line, said: Sequence[Statement]) -> Answer:
    """The worst statement: no, open, accepted. Yes only where what answers it passed; what speaks against it answers
    nothing."""
    answers = {each.answer for each in said}
    for worst in ("no", "open", "accepted"):
        if worst in answers:
            return worst
    if any(each.answer == "yes" and each.rule not in line.against for each in said):
        return "yes"
    return "does not apply" if said and not any(each.rule for each in said) else "open"


def _statements(line: Line, seen: Looks) -> Iterator[Statement]:
    target = seen.audit.target.name
    if line.on == "log":
        devices = lists.log_devices(seen.audit.facts)
        if isinstance(devices, Unknown):
            yield Statement("open", "check", harmless(devices.reasons[0].text), harmless(devices.reasons[0].remedy))
            return
        if not devices:
            again = f"zpool status {quoted(target.partition('/')[0])}"
            yield Statement("does not apply", "check", "the pool has no log device", again)
            return
    yield from lists.of_audit(line, seen.audit, seen.runs, verify_command(target, line.verify))
    yield from lists.of_facts(line, seen.audit)
    yield from of_verification(line, seen.verified, target)
    yield from of_diagnosis(line, seen.diagnosed, target)
    if line.ask:
        yield Statement("open", "person", line.ask)


def _current(said: Statement, line: Line, seen: Looks) -> Statement:
    """What was measured under another configuration answers nothing."""
    changed = dict(seen.stale).get(said.by, ())
    if not changed or said.answer == "open":
        return said
    target = seen.audit.target.name
    again = verify_command(target, line.verify) if said.by == "verify" else diagnose_command(target)
    word = "measured" if said.by == "verify" else "watched"
    return Statement("open", said.by, f"{word} before a change: {changed[0]}", again, said.rule)


def _exit_code(lines: Sequence[LineAnswer]) -> int:
    """As of an audit: by the worst that a no rests on, else 10 while a command would answer something, else 0."""
    if worst := [EXIT_CODES[said.severity] for line in lines for said in line.said if said.severity]:
        return max(worst)
    return EXIT_UNDECIDED if any(line.answer == "open" and not line.person for line in lines) else 0


def _next(lines: Sequence[LineAnswer], seen: Looks) -> str:
    """One command: what fixes the most severe no, else what answers most open lines, else the page to sign."""
    if nos := lists.wrong(lines):
        return nos[0].do
    missing = [
        said.do for line in lines for said in line.said if said.answer == "open" and said.do.startswith("zaudit ")
    ]
    if missing:
        return max(missing, key=missing.count)
    return f"zaudit checklist {quoted(seen.audit.target.name)} --format html -o checklist.html"


KINDS: dict[Source, str] = {"check": "an audit alone", "verify": "a verification", "diagnose": "a diagnosis"}


class CannotList(Stop):
    """Evidence that does not go together; the text says why."""


class ChecklistOptions(NamedTuple):
    """policy: instead of those of recordings, or None. made: seconds since the epoch."""

    target: str | None
    replays: tuple[Path, ...]
    options: audit.Options
    policy: Policy | None
    timeout: float
    deadline: float
    made: float


class _View(NamedTuple):
    """An audit, and what was measured or watched after it. of: where it is from. text: what it was, in brief."""

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
    seen = Looks(audited, stale=tuple(stale.items()), diagnosed=watched.watched if watched else None)
    if measured and measured.measured:
        runs = lists.Runs(measured.report, lists.by_rule(measured.report))
        seen = seen._replace(runs=runs, verified=Verified(measured.measured, _profiles(first.seen.facts)))
    return checklist(lists.load(), seen, tuple(evidence), wanted.made)


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
    found = verification.judge(seen, trial.from_text(text), verification.rules(seen.policy), past.targets, "low")
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
