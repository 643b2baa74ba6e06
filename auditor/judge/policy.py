"""What the user decides: what datasets are for, which rules run and how grave they are, and what is waived until when.

``auditor/judge/policy_file.py`` reads it from ``zaudit.toml``; ``auditor/judge/waivers.py`` applies the waivers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple, get_args

from auditor import Stop, data
from auditor.databases import ENGINES
from auditor.facts import KINDS, Fact, Facts, Kind, Subject, Unknown, known
from auditor.judge.event import SEVERITIES, Party, Severity
from auditor.judge.expression import Scope as ExpressionScope
from auditor.judge.rule import Decided, Rule
from auditor.text import near

Role = Literal["log", "data", "both", "rebuildable"]
ROLES: tuple[Role, ...] = get_args(Role)
Scope = Literal["dataset", "pool", "device", "database", "host", "class"]
CLASSES = ("virtual machine", "physical")  # of hosts
SCOPES: tuple[Scope, ...] = get_args(Scope)
# the kinds of subjects that a scope can mean; a host and a class mean all of them
MEANS: Mapping[Scope, tuple[Kind, ...]] = {
    "dataset": ("dataset", "database"),
    "pool": ("pool", "vdev", "leaf", "disk", "dataset", "database"),
    "device": ("leaf", "disk"),
    "database": ("database",),
}
Setting = Literal["on", "off", "low", "medium", "high", "critical"]
SETTINGS: tuple[Setting, ...] = get_args(Setting)


# an address of the documents: no user, no query, nothing that a reader of URIs refuses
PAGES = r"https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/(?:[A-Za-z0-9._~@+-]|%[0-9A-Fa-f]{2})*)*"
FILE = "#= file: "  # begins the text of a file in that of several


class PolicyError(Stop, ValueError):
    """A choice that cannot be followed, and why."""


class Declared(NamedTuple):
    """What a dataset and those below it are for. role, database: empty where nothing is declared. reason: of a role."""

    dataset: str
    role: Role | Literal[""]
    database: str
    reason: str
    line: int


class Waiver(NamedTuple):
    """One finding that somebody answers for. name: by scope a dataset (with those below it), the GUID of a pool, the
    serial number of a device, a database by engine or as reports name it (with its data directory), or a host with all
    that is on it. expires: the last day."""

    rule: str
    scope: Scope
    name: str
    owner: str
    reason: str
    expires: date
    line: int

    @property
    def title(self) -> str:
        """What it waives, for a report; two waivers of the same are an error of the policy."""
        return f"{self.rule} of {self.scope} {self.name}"


class Answer(NamedTuple):
    """What somebody answers for and nothing here can check: that a party honours flushes. serial, model: of drives, one of
    the two; host: the one whose hypervisor, controller or target it is, or empty: all that read the policy. expires: the last
    day on which it holds. provider: of providers.toml, whose documentation the site has adopted, or empty."""

    party: Party
    serial: str
    model: str
    host: str
    owner: str
    reason: str
    expires: date
    line: int
    provider: str = ""

    @property
    def title(self) -> str:
        """What it answers for, for a report; two answers for the same are an error of the policy."""
        return f"flushes honoured by {self.party} {self.serial or self.model or self.host or self.provider}".rstrip()


class Policy(NamedTuple):
    """A whole policy. path: what to call it; text: as it was read (a recording keeps it). rules: id -> setting.
    thresholds: id of the rule -> name -> number. pages: address of the site of these documents, or empty."""

    path: str
    text: str
    datasets: tuple[Declared, ...] = ()
    rules: Mapping[str, tuple[Setting, int]] = {}
    thresholds: Mapping[str, Mapping[str, Decided]] = {}
    waivers: tuple[Waiver, ...] = ()
    answers: tuple[Answer, ...] = ()
    pages: str = ""

    def place(self, line: int) -> tuple[str, int]:
        """The file that holds a line, and the line there; of several files lines are counted through (policy_file.py)."""
        above = self.text.split("\n")[: line - 1] if self.text.startswith(FILE) else []
        head = max((number for number, each in enumerate(above) if each.startswith(FILE)), default=-1)
        return (above[head].removeprefix(FILE), line - head - 1) if head >= 0 else (self.path, line)

    def where(self, line: int) -> str:
        return "{}, line {}".format(*self.place(line))

    @property
    def files(self) -> tuple[str, ...]:
        if not self.text.startswith(FILE):
            return (self.path,)
        return tuple(line.removeprefix(FILE) for line in self.text.split("\n") if line.startswith(FILE))


NONE = Policy("", "")


class LeftOut(NamedTuple):
    """A rule that was not judged, or counts as less severe than written (counts_as). by: the option or policy."""

    rule: str
    severity: Severity
    by: str
    counts_as: Severity | Literal[""] = ""


def declared(entries: Mapping[str, Declared], dataset: str) -> Declared | None:
    """What holds for a dataset: the entry for itself, or for the nearest above it. entries: by dataset."""
    while dataset and dataset not in entries:
        dataset = dataset.rpartition("/")[0]
    return entries.get(dataset)


def select(rules: Sequence[Rule], only: Sequence[str], skip: Sequence[str], policy: Policy = NONE) -> list[Rule]:
    """The rules to run, as grave as the policy says. Raises PolicyError for an id that no rule has, and when nothing is
    left to run. A rule that is named in only runs although the policy turns it off. Only there is a retired rule an error."""
    ids = [rule.id for rule in rules]
    for pattern in only:
        _must_be(pattern, ids)
    for pattern, where in _excused(skip, policy):
        if not retired_by(pattern, ids):
            _must_be(pattern, ids, where)
    _must_fit({rule.id: rule for rule in rules}, policy)
    chosen = [
        _as_grave(rule, policy)
        for rule in rules
        if (named(rule, only) if only else setting_of(rule, policy) != "off") and not named(rule, skip)
    ]
    if not chosen:
        raise PolicyError("no rule is left to run")
    return chosen


def matches(name: str, pattern: str) -> bool:
    """Whether a name is meant: itself, or by a pattern in which * stands for any characters."""
    return name == pattern or ("*" in pattern and fnmatchcase(name, pattern.replace("[", "[[]").replace("?", "[?]")))


def named(rule: Rule, patterns: Iterable[str]) -> bool:
    return any(matches(id, pattern) for pattern in patterns for id in rule.names)


def setting_of(rule: Rule, policy: Policy) -> Setting:
    """What the policy says of a rule: by its id, else by the longest pattern that means it, else what it says of its head."""
    for id in rule.names:
        if meant := [pattern for pattern in policy.rules if matches(id, pattern)]:
            return policy.rules[max(meant, key=lambda each: (each == id, len(each)))][0]
    return "on"


def _must_be(pattern: str, ids: Sequence[str], where: str = "") -> None:
    if not any(matches(id, pattern) for id in ids):
        why = (
            "; ".join(retired_by(pattern, ids)) or f"no rule {pattern!r}{near(pattern, ids)} (zaudit rules lists them)"
        )
        raise PolicyError(f"{where}{why}")


def retired_by(pattern: str, ids: Iterable[str]) -> list[str]:
    """What to use instead of each retired rule that a name or pattern means; nothing where it means one of ids."""
    if any(matches(id, pattern) for id in ids):
        return []
    return [sentence for id, sentence in data.retired().items() if matches(id, pattern)]


def retired_names(ids: Sequence[str], skip: Sequence[str], policy: Policy) -> list[str]:
    """A line for each retired rule that --skip or the policy names. ids: of all rules."""
    return [
        f"{where}no effect, {each}" for pattern, where in _excused(skip, policy) for each in retired_by(pattern, ids)
    ]


def _excused(skip: Sequence[str], policy: Policy) -> Iterator[tuple[str, str]]:
    """(name or pattern, where it is) of the rules that somebody skips, sets or waives."""
    yield from ((each, "--skip: ") for each in skip)
    thresholds = [(id, each.line) for id, names in policy.thresholds.items() for each in [*names.values()][:1]]
    waived = [(waiver.rule, waiver.line) for waiver in policy.waivers]
    for pattern, line in (*((id, line) for id, (_, line) in policy.rules.items()), *thresholds, *waived):
        yield pattern, f"{policy.where(line)}: "


def vain(policy: Policy, rules: Sequence[Rule]) -> Iterator[str]:
    """A sentence for each waiver that can never cover anything: another kind of subject, or an impossible name."""
    for waiver in policy.waivers:
        mine = [rule for rule in rules if any(matches(id, waiver.rule) for id in rule.names)]
        kinds = {rule.subject for rule in mine}
        meant = MEANS.get(waiver.scope, KINDS)
        if kinds and not any(kind in meant and kind != "waiver" for kind in kinds):
            fit = [scope for scope in SCOPES if kinds & set(MEANS.get(scope, KINDS)) - {"waiver"}]
            about = f"it is about a {' or a '.join(sorted(kinds))}"
            use = f"; use {' or '.join(fit)}" if fit else ", and nothing waives it"
            yield f"{policy.where(waiver.line)}: {waiver.rule} is never waived by {waiver.scope} = ...: {about}{use}"
        elif why := _never(waiver, mine):
            yield f"{policy.where(waiver.line)}: {waiver.scope} = {waiver.name!r}: {why}"


def is_dataset(name: str) -> bool:
    return bool(name) and name == name.strip("/") and "@" not in name


def _never(waiver: Waiver, rules: Sequence[Rule]) -> str:
    """Why no host can have what a waiver of these rules names, or empty."""
    if waiver.scope == "dataset" and not is_dataset(waiver.name):
        return "it is no dataset"
    if waiver.scope != "database":
        return ""
    word, _, home = waiver.name.partition(" ")
    engines = [each for each in ENGINES if matches(each, word)]
    if not engines:
        return f"it begins with one of {', '.join(ENGINES)}"
    if home.isdigit():
        return f"a process has another number after a restart; name the data directory, as in '{word} /srv/db'"
    if rules and not any(_is_about(rule, engine) for rule in rules for engine in engines):
        return f"{waiver.rule} is never about {' or '.join(engines)}"
    return ""


def _is_about(rule: Rule, engine: str) -> bool:
    """Whether a rule can be about a database of an engine, whatever else is true of it."""
    if rule.subject != "database" or not rule.when:
        return rule.subject == "database"
    facts, server = Facts(), Subject("database", engine)
    facts.put(Fact(server, "engine", known(engine, "")))
    holds = rule.when.evaluate(ExpressionScope(facts, server))
    return isinstance(holds, Unknown) or holds.value is True


def left_out(
    rules: Sequence[Rule], chosen: Sequence[Rule], only: Sequence[str], skip: Sequence[str], policy: Policy = NONE
) -> tuple[LeftOut, ...]:
    """What :func:`select` left out of the rules or made less grave, the gravest first: silence is never without a word."""
    kept = {rule.id: rule for rule in chosen}
    found = []
    for rule in rules:
        if rule.id not in kept:
            by = "--skip" if named(rule, skip) else "--rule" if only else f"policy {policy.path}"
            found.append(LeftOut(rule.id, rule.gravest, by))
        elif (now := kept[rule.id]) is not rule and SEVERITIES.index(now.gravest) < SEVERITIES.index(rule.gravest):
            found.append(LeftOut(rule.id, rule.gravest, f"policy {policy.path}", now.gravest))
    return tuple(sorted(found, key=lambda each: (-SEVERITIES.index(each.severity), each.rule)))


def _must_fit(rules: Mapping[str, Rule], policy: Policy) -> None:
    """Raises PolicyError for a threshold that no rule has, or that a rule cannot have."""
    for id, decided in policy.thresholds.items():
        if id not in rules and id in data.retired():
            continue
        for name, each in decided.items():
            where = policy.where(each.line)
            if id not in rules:
                raise PolicyError(f"{where}: no rule {id!r}{near(id, rules)} (zaudit rules lists them)")
            there = {threshold.name: threshold for threshold in rules[id].thresholds}
            if name not in there:
                others = f"it has {', '.join(there)}" if there else "it has none"
                raise PolicyError(f"{where}: rule {id} has no threshold {name!r}; {others}")
            if why := there[name].refusal(each.value):
                raise PolicyError(f"{where}: {id}.{name} = {each.value}: {why}")


def _as_grave(rule: Rule, policy: Policy) -> Rule:
    setting = setting_of(rule, policy)
    if setting not in SEVERITIES:
        return rule
    cases = tuple(case._replace(severity=setting) for case in rule.cases)
    return rule._replace(severity=setting, cases=cases, fixed=True)
