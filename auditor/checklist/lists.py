"""Checklists and their lines: what checklists.toml says, what an audit says of each line. Reports know these alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Literal, NamedTuple

from auditor import data
from auditor.facts import HOST, Facts, Known, Reason, Subject, Unknown, is_true
from auditor.judge.event import Severity
from auditor.judge.finding import RANK
from auditor.judge.rule import Rule
from auditor.judge.verdict import Verdict
from auditor.model.derivation import catch_missing
from auditor.report import phrases
from auditor.report.model import Report
from auditor.text import harmless, quoted

# What a checklist says, before anybody decides how it looks.

Answer = Literal["no", "open", "accepted", "yes", "does not apply"]
Source = Literal["check", "verify", "diagnose", "person"]
ANSWERS: tuple[Answer, ...] = ("no", "open", "accepted", "yes", "does not apply")  # as they are told
UNMEASURED, UNWATCHED = "nothing was measured", "the load was not watched"
PASSES = "passes"  # said of a rule that could only have spoken against a line


class Statement(NamedTuple):
    """What one thing that was seen, or is missing, says of a line. by: where it is from. text: a sentence without its full
    stop. rule: that judged it, or empty. do: a command, or a deed: of a no what mends it, of an open line what would answer
    it, else what shows it again; or empty. severity: of a no."""

    answer: Answer
    by: Source
    text: str
    do: str = ""
    rule: str = ""
    severity: Severity | None = None


class LineAnswer(NamedTuple):
    """One line. list, id, text, source: of checklists.toml. said: what decided it, the rest of what was seen after it."""

    list: str
    id: str
    text: str
    source: str
    answer: Answer
    said: tuple[Statement, ...]

    @property
    def deciding(self) -> tuple[Statement, ...]:
        return tuple(each for each in self.said if each.answer == self.answer)

    @property
    def person(self) -> bool:
        """Whether only a person can answer what is open."""
        return self.answer == "open" and all(each.by == "person" for each in self.deciding)


def wrong(lines: Iterable[LineAnswer]) -> list[Statement]:
    """What makes lines a no, each once, the most severe first."""
    found = {each for line in lines if line.answer == "no" for each in line.deciding}
    return sorted(found, key=lambda each: (-RANK[each.severity or "low"], each.by, each.text))


class Evidence(NamedTuple):
    """One look that the answers rest on. taken: seconds since the epoch; text: what it was, in a few words. changed: what is
    different in the audit, so that it answers nothing any more."""

    by: Source
    taken: float
    text: str
    changed: tuple[str, ...] = ()


class Checklist(NamedTuple):
    """The lists of one target. made: when it was drawn up, in seconds since the epoch. titles: of the lists, by id. next: a
    command. exit_code: of the command."""

    target: str
    hostname: str
    release: str
    made: float
    evidence: tuple[Evidence, ...]
    titles: tuple[tuple[str, str], ...]
    lines: tuple[LineAnswer, ...]
    next: str
    exit_code: int

    def of(self, answer: Answer) -> tuple[LineAnswer, ...]:
        """The lines with an answer, in the order of the lists."""
        return tuple(each for each in self.lines if each.answer == answer)


# Whether two looks are of the same host and target, and what has changed between them.

# what a measurement rests on: where one of them is another now, it says nothing of what is there
RESTS_ON = {
    "dataset": ("sync", "logbias", "compression", "recordsize", "primarycache", "direct"),
    "pool": ("zil_class", "log_leaves"),
    "host": ("zfs_version_text", "zfs_nocacheflush", "zil_nocacheflush", "zfs_txg_timeout", "zfs_dirty_data_max"),
}


def why_not(first: Audited, facts: Facts, target: Subject) -> str:
    """Why a second look is not of the same host and target, in a few words; empty where it is."""
    if target.name != first.target.name:
        return f"it is of {harmless(target.name)}, and the audit of {harmless(first.target.name)}"
    pool = Subject("pool", target.name.partition("/")[0])
    same = False
    for subject, name, what in ((HOST, "hostname", "host"), (pool, "guid", "pool")):
        mine, other = first.facts.get(subject, name), facts.get(subject, name)
        if isinstance(mine, Known) and isinstance(other, Known):
            if mine.value != other.value:
                return f"it is of {what} {_shown(other)}, and the audit of {what} {_shown(mine)}"
            same = True
    return "" if same else "neither its host nor its pool is known, so it may be of another host"


def changes(first: Audited, facts: Facts) -> Iterator[str]:
    """What is another now than it was then, as far as both are known."""
    pool = Subject("pool", first.target.name.partition("/")[0])
    subjects = {"dataset": first.target, "pool": pool, "host": HOST}
    for kind, names in RESTS_ON.items():
        for name in names:
            now, then = first.facts.get(subjects[kind], name), facts.get(subjects[kind], name)
            if isinstance(now, Known) and isinstance(then, Known) and _content(now) != _content(then):
                yield f"{name} was {_shown(then)} then, is {_shown(now)} now"


def _content(found: Known) -> object:
    return frozenset(found.value) if isinstance(found.value, tuple) else found.value


def _shown(found: Known) -> str:
    if isinstance(found.value, tuple):
        return harmless(
            ", ".join(each.name if isinstance(each, Subject) else str(each) for each in found.value) or "none"
        )
    return harmless(str(found.value))


# What the rules say of a line: of an audit, and those about runs of fio of a verification.

BY_SESSION = frozenset({"postgres", "mysql", "mariadb"})  # engines of which a role or a session can set its own
NAMED, MOST = 3, 50  # things that a sentence names; verdicts in which they are looked for


class Audited(NamedTuple):
    """An audit of one target. rules: all of ours, by id; verdicts: of the report, by rule."""

    target: Subject
    facts: Facts
    report: Report
    rules: Mapping[str, Rule]
    verdicts: Mapping[str, Sequence[Verdict]]


class Runs(NamedTuple):
    """What the rules said of the runs of a verification."""

    report: Report
    verdicts: Mapping[str, Sequence[Verdict]]


def by_rule(report: Report) -> dict[str, list[Verdict]]:
    """The verdicts of a report: a host with 10,000 datasets has 200,000 of them."""
    found: dict[str, list[Verdict]] = {}
    for each in report.verdicts:
        found.setdefault(each.rule.id, []).append(each)
    return found


@catch_missing
def log_devices(facts: Facts) -> frozenset[Subject]:
    """The log vdevs, their leaves and the disks behind them; empty where no pool has any."""
    links = ((pool, name) for pool in facts.linked(HOST, "pools") for name in ("log_vdevs", "log_leaves"))
    found = {each for pool, name in links for each in facts.need_linked(pool, name)}
    return frozenset(found | {disk for leaf in found for disk in facts.linked(leaf, "disks")})


def of_audit(line: Line, seen: Audited, runs: Runs | None, verify: str) -> Iterator[Statement]:
    """One saying a rule. runs: None without a verification; verify: the command that makes one."""
    only = log_devices(seen.facts) if line.on == "log" else None
    about_databases: list[Statement] = []
    for id in (*line.rules, *line.against):
        rule = seen.rules[id]
        if rule.of_verify and runs is None:
            yield Statement("open", "verify", UNMEASURED, verify, id)
            continue
        judged = runs if rule.of_verify and runs else seen
        if by := [each.by for each in judged.report.left_out if each.rule == id and not each.counts_as]:
            yield Statement("open", "check", f"{id} was left out by {harmless(by[0])}", f"zaudit explain {id}", id)
            continue
        verdicts = [each for each in judged.verdicts.get(id, ()) if _concerned(each, only) and _is_here(each, seen)]
        said = _statement(rule, verdicts, verify)
        if id in line.against and said.answer == "yes":
            said = said._replace(text=f"{id} {PASSES}")
        if line.on == "log" and said.answer == "yes" and any(each.outcome == "not applicable" for each in verdicts):
            said = said._replace(answer="does not apply")  # it passed on some of the log devices
        if id in line.rules and rule.subject != "database" and said.answer == "does not apply":
            said = Statement("open", "person", f"{said.text}; ask who runs the underlying device", "", id)
        if rule.subject == "database":
            about_databases.append(said)
        yield said
    if about_databases and all(each.answer == "does not apply" for each in about_databases):
        yield _no_database(seen)


def _concerned(verdict: Verdict, only: frozenset[Subject] | Unknown | None) -> bool:
    """Of a line about log devices what is about other devices is left out."""
    if only is None or isinstance(only, Unknown) or verdict.subject.kind not in ("vdev", "leaf", "disk"):
        return True
    return verdict.subject in only


def _no_database(seen: Audited) -> Statement:
    databases = seen.facts.linked(HOST, "databases")
    if databases:
        names = ", ".join(harmless(each.name) for each in databases[:NAMED])
        return Statement("open", "person", f"no rule reads how {names} commits", "ask its administrator")
    target = quoted(seen.target.name)
    return Statement(
        "open", "check", f"no database on {seen.target} was seen", f"zaudit checklist {target} --db NAME=DIR"
    )


def _statement(rule: Rule, verdicts: Sequence[Verdict], verify: str) -> Statement:
    """The worst of the verdicts. verify: what measures again."""
    by: dict[str, list[Verdict]] = {}
    for each in verdicts:
        by.setdefault(each.outcome, []).append(each)
    source: Source = "verify" if rule.of_verify else "check"
    if failed := by.get("fail"):
        worst = max(failed, key=lambda each: RANK[each.severity])
        seen = f" ({_seen([worst])})" if worst.evidence and not worst.message else ""
        message = harmless(worst.message or f"{worst.subject}: {rule.title}") + seen
        others = phrases.listed([harmless(str(each.subject)) for each in failed if each is not worst])
        text = f"{rule.id}: {message}{f' (also {others})' if others else ''}"
        fix = harmless(worst.command) or phrases.first_sentences(worst.fix.text)
        return Statement("no", source, text, fix, rule.id, worst.severity)
    if undecided := by.get("unknown"):
        reason = next((each for one in undecided for each in one.reasons), Reason("it was not seen"))
        text = f"{rule.id}: {harmless(reason.text)}"
        do = harmless(reason.remedy) or (verify if source == "verify" else f"zaudit explain {rule.id}")
        return Statement("open", source, text, do, rule.id)
    if waived := [each for each in by.get("waived", []) if each.waiver]:
        waiver = waived[0].waiver
        assert waiver
        text = f"{rule.id}: {harmless(waiver.owner)} answers for it until {waiver.expires}: {harmless(waiver.reason)}"
        return Statement("accepted", source, text, f"zaudit explain {rule.id}", rule.id)
    if passed := by.get("pass"):
        commands = (command for each in passed[:MOST] for _, command in phrases.evidence(each) if command)
        return Statement("yes", source, f"{rule.id}: {_seen(passed)}", next(commands, ""), rule.id)
    why = f" ({_seen(by['not applicable'], 1)})" if "not applicable" in by else ""
    return Statement("does not apply", source, f"{rule.id} does not apply here{why}", "", rule.id)


def _seen(verdicts: Sequence[Verdict], most: int = NAMED) -> str:
    pieces = dict.fromkeys(text for each in verdicts[:MOST] for text, _ in phrases.evidence(each))
    return ", ".join(list(pieces)[:most]) or ", ".join(harmless(str(each.subject)) for each in verdicts[:NAMED])


def _is_here(verdict: Verdict, seen: Audited) -> bool:
    """Whether a database is known to keep something on the target: of one that may be elsewhere a pass says nothing."""
    subject, root = verdict.subject, seen.target.name
    if subject.kind != "database" or verdict.outcome != "pass":
        return True
    named = seen.facts.get(subject, "process")
    inside = any(f"{each.name}/".startswith(f"{root}/") for each in seen.facts.linked(subject, "datasets"))
    return inside or (isinstance(named, Known) and named.value == "self")


def _asked(seen: Audited) -> Iterator[Statement]:
    """Did the servers report what is in force? A role or session sets more than files say. A live server may be listed
    twice."""
    engines: dict[str, list[bool]] = {}
    for database in seen.facts.linked(HOST, "databases"):
        if (engine := seen.facts.get(database, "engine").word()) in BY_SESSION:
            engines.setdefault(engine, []).append(is_true(seen.facts.get(database, "live")))
    for engine, live in engines.items():
        if any(live) and live.count(False) <= 1:
            yield Statement("yes", "check", f"{engine} was asked itself")
        else:
            do = f"zaudit checklist {quoted(seen.target.name)} --db {engine}=DSN"
            yield Statement(
                "open", "check", f"{engine} was not queried: roles and sessions may differ from its files", do
            )


def of_facts(line: Line, seen: Audited) -> Iterator[Statement]:
    """One saying a fact that has to be known, of the target, its pool or the host; database.live of each engine."""
    pool = Subject("pool", seen.target.name.partition("/")[0])
    subjects = {"dataset": seen.target, "pool": pool, "host": HOST}
    for each in line.facts:
        kind, _, name = each.partition(".")
        if each == "database.live":
            yield from _asked(seen)
            continue
        match seen.facts.get(subjects[kind], name):
            case Known(value, evidence):
                text, command = (evidence[0].text, evidence[0].command) if evidence else (f"{name}={value}", "")
                command = command.replace("{subject}", quoted(subjects[kind].name))
                yield Statement("yes", "check", harmless(text or f"{name}={value}"), harmless(command))
            case Unknown(reasons):
                yield Statement(
                    "open", "check", harmless(reasons[0].text), harmless(reasons[0].remedy) or "zaudit check -v"
                )


# -- the table: what people tick off, and what answers it -------------------------------------------------------------
# checklists.toml: what people tick off, and what answers it. The file's own head says what its words mean.


class Line(NamedTuple):
    """One line of a list; the head of the file says what each key is."""

    id: str
    text: str
    source: str
    on: str
    rules: tuple[str, ...]
    against: tuple[str, ...]
    facts: tuple[str, ...]
    links: tuple[str, ...]
    verify: tuple[str, ...]
    diagnose: tuple[str, ...]
    ask: str


class List(NamedTuple):
    """A list and its lines. about: the question that it answers."""

    id: str
    title: str
    about: str
    lines: tuple[Line, ...]


@cache
def load() -> tuple[List, ...]:
    return tuple(
        List(each["id"], each["title"], each["about"], tuple(data.record(Line, line) for line in each["line"]))
        for each in data.table("checklists.toml")["list"]
    )
