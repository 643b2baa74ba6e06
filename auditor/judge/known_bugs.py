"""The known bugs of the running release as one finding: how many can strike here, which is the worst, and the one upgrade.

The entries of ``advisories.toml`` are judged one by one; rule known-bugs itself judges what ``fixes.toml`` has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from auditor import data
from auditor.data import releases
from auditor.data.platforms import filled
from auditor.data.releases import Range, Release, after, spelt
from auditor.facts import HOST, Evidence, Facts, Judged, Known
from auditor.judge.event import SEVERITIES, Severity
from auditor.judge.expression import Expression, Registry, Scope, fact
from auditor.judge.rule import HARMS, Fix, Harm, Rule, RuleError
from auditor.judge.rule_file import COUNTS, trusted
from auditor.judge.verdict import Verdict
from auditor.text import lower_headline

ID = "known-bugs"
PREFIX = "advisory-"
NO_WORKAROUND = "There is no workaround"
DOES: dict[Harm, tuple[str, str]] = {  # of one, of several; what is left out is no bug
    "commits": ("loses commits", "lose commits"),
    "corruption": ("corrupts data", "corrupt data"),
    "availability": ("stops a pool, the host or a program", "stop a pool, the host or a program"),
    "latency": ("slows writes", "slow writes"),
}


class Bug(NamedTuple):
    """One entry of the table on this host. fails: it can be met, else it may. needs: its condition, or empty; here: what
    was seen of that. until: the workaround; remedy: the fix where it is no upgrade alone, or empty."""

    id: str
    title: str
    severity: Severity
    harm: Harm
    fails: bool
    affected: tuple[Range, ...]
    needs: str
    here: tuple[str, ...]
    until: str
    remedy: str
    references: tuple[str, ...]

    @property
    def releases(self) -> str:
        """That have it, in words."""
        return releases.in_words(self.affected)

    @property
    def fixed_in(self) -> tuple[str, ...]:
        """The first release of each line that has the fix."""
        return tuple(map(releases.spelt, releases.first_fixed(self.affected)))


def counts(rule: Rule) -> bool:
    """Whether it is an entry of the table and a bug; that a line has no maintainer is none."""
    return rule.head is not None and rule.harm in DOES


def worst_first(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """By severity and harm; the rule itself after the entries of the table."""

    def order(each: Verdict) -> tuple[object, ...]:
        rule = each.rule
        return rule.head is None, -SEVERITIES.index(each.severity), HARMS.index(rule.harm), rule.id

    return sorted(verdicts, key=order)


def together(verdicts: Sequence[Verdict], may: int, facts: Facts) -> tuple[Rule, tuple[Bug, ...], str]:
    """The rule of a finding with the words for this host, its bugs, and a sentence about them. verdicts: of one outcome,
    the worst first; may: of failures, how many other bugs could not be decided."""
    first = verdicts[0].rule
    if first.head is None:
        return first, (), ""
    rule = first.head._replace(platform=first.platform, harm=first.harm)
    bugs = tuple(_bug(each, facts) for each in verdicts if each.rule.head)
    words = rule.said(rule.platform)._replace(
        impact=first.impact,
        fix=first.fix if len(bugs) == 1 else Fix(None, _fix(bugs, facts), "needs restart"),
        references=tuple(dict.fromkeys(each for bug in bugs for each in bug.references)),
    )
    lesser = len(facts.get(HOST, "bugs_fixed_later").words()) if verdicts[-1].rule.head is None else 0
    return rule._replace(said=lambda _: words), bugs, _sentence(bugs, may, lesser, facts)


def _bug(verdict: Verdict, facts: Facts) -> Bug:
    rule = verdict.rule
    name = rule.id.removeprefix(PREFIX)
    entry = data.table("advisories.toml")[name]
    until, remedy, needs = (" ".join(entry.get(key, "").split()) for key in ("until", "remedy", "exposed"))
    seen = (facts.get(HOST, each) for each in ("release", releases.build_fact(name)))
    of_release: set[Evidence] = {piece for each in seen if isinstance(each, Known) for piece in each.evidence}
    here = (each.text for each in verdict.evidence if each not in of_release and each.text)
    return Bug(
        rule.id,
        rule.title,
        verdict.severity,
        rule.harm,
        verdict.unwaived == "fail",
        releases.ranges(entry["affected"]),
        needs,
        tuple(here) if needs else (),
        filled(until, rule.platform),
        filled(remedy, rule.platform),
        rule.references,
    )


def _sentence(bugs: Sequence[Bug], may: int, lesser: int, facts: Facts) -> str:
    """lesser: bugs of fixes.toml that a later release fixes."""
    version = facts.get(HOST, "zfs_version_text").word("unknown")
    parts = [lower_headline(bug.title) for bug in bugs if bug.harm not in DOES]
    parts += [f"later releases also fix {lesser} lesser bug{'s' * (lesser > 1)}"] if lesser else []
    counted = [bug for bug in bugs if bug.harm in DOES]
    if not counted:
        return f"OpenZFS {version}: {'; '.join(parts)}"
    count = f"{len(counted)} known bug{'s' * (len(counted) > 1)}"
    more = f" ({may} more may concern it)" if bugs[0].fails and may else ""
    verb = "can" if bugs[0].fails else "may"
    return "; ".join((f"OpenZFS {version} has {count} that this host {verb} meet{more}: {_by_harm(counted)}", *parts))


def _by_harm(bugs: Sequence[Bug]) -> str:
    """``1 loses commits (volumes ...), 3 corrupt data (the worst: ...)``, the harm of the worst bug first."""
    found = []
    for harm in dict.fromkeys(bug.harm for bug in bugs):
        first, *others = (bug for bug in bugs if bug.harm == harm)
        worst = f"{'the worst: ' * bool(others)}{lower_headline(first.title)}"
        found.append(f"{1 + len(others)} {DOES[harm][bool(others)]} ({worst})")
    return ", ".join(found)


def _fix(bugs: Sequence[Bug], facts: Facts) -> str:
    told = [bug for bug in bugs if bug.remedy or bug.until != f"{NO_WORKAROUND}."]
    ways = (f"({bug.id}) {f'{bug.remedy} {bug.until}'.strip()}" for bug in told)
    count = sum(bug.harm in DOES and not bug.until.startswith(NO_WORKAROUND) for bug in told)
    release = facts.get(HOST, "release")
    upgrade = "Upgrade to the newest release of a line that is maintained, and restart."
    if isinstance(release, Known) and isinstance(release.value, tuple):
        now = tuple(part for part in release.value if isinstance(part, int))
        upgrade = _upgrade([bug for bug in bugs if bug.harm in DOES], now) or upgrade
    if count:  # in the sentence that is on the page
        upgrade = f"{upgrade.removesuffix('.')}; {count} {'have' if count > 1 else 'has'} a workaround (-v shows it)."
    return " ".join((upgrade, *(["Until then:"] if told else []), *ways))


def _upgrade(bugs: Sequence[Bug], now: Release) -> str:
    """The lowest release of the line that fixes most, and of another line where that fixes more; of equals the one with
    the fewest other bugs. Empty without bugs."""
    if not bugs:
        return ""
    every = [releases.ranges(entry["affected"]) for entry in data.table("advisories.toml").values()]

    def has(ranges: Sequence[Range], release: Release) -> bool:
        return any(releases.within(each, release) for each in ranges)

    def rank(release: Release) -> tuple[int, int, Release]:
        left = sum(has(bug.affected, release) for bug in bugs)
        return left, sum(has(each, release) and not has(each, now) for each in every), release

    ahead = {each for ranges in every for each in releases.first_fixed(ranges)} | {*releases.NEWEST}
    ranked = sorted(rank(each) for each in ahead if each > now)
    chosen: list[tuple[int, Release]] = []
    for of_line in (True, False):
        best = next(((left, each) for left, _, each in ranked if (each[:2] == now[:2]) is of_line), None)
        if best and best[0] < (chosen[-1][0] if chosen else len(bugs)):
            chosen.append(best)
    return _spell(chosen, len(bugs)) if chosen else "No release is known to fix what this host can meet."


def _spell(chosen: Sequence[tuple[int, Release]], of: int) -> str:
    """chosen: how many of the bugs are left, and the release."""
    fixed = [(releases.spelt(release), "all" if not left else f"{of - left} of") for left, release in chosen]
    (first, most), *others = fixed
    if of == 1:
        return f"Upgrade to OpenZFS {first} or later and restart: it fixes the bug."
    more = "".join(f"; {release} or later fixes {count} {of}" for release, count in others)
    return f"Upgrade to OpenZFS {first} or later and restart: it fixes {most} {of}{more}."


# Advisories: one entry of a table each, judged as a rule with its own condition, severity, harm, examples, page and
# waiver. What they have in common is here: affected releases, builds of distributions that may have the fix, and
# examples.

NOWHERE = "No release is known to fix it."
OUTSIDE = "The bug strikes while the host runs; no event causes it."


def load(path: str, tables: Mapping[str, Any], registry: Registry, *, examples: bool) -> list[Rule]:
    """The rules of the table of bugs, by id; their tests have compiled them. Raises RuleError with file and entry."""
    rules = []
    for name, entry in sorted(tables.items()):
        try:
            whole = partial(_whole, name, entry)
            rule = trusted(PREFIX + name, path, _judged(name, entry), registry, whole=whole, examples=examples)
        except ValueError as error:  # RuleError among them
            raise RuleError(f"{path}: [{name}]: {error}") from None
        rules.append(rule._replace(expect=_at_a_glance(rule.expect, entry["affected"])))
    return rules


def _whole(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {**_said(entry), "example": list(_examples(name, entry))}


def _at_a_glance(expect: Expression, affected: str) -> Expression:
    """The same condition, which need not be compiled where the release is affected by none of it: nearly always."""
    ranges = releases.ranges(affected)

    def evaluate(scope: Scope) -> Judged:
        match fact(HOST, "release", scope):
            case Known((int(), int(), int()) as release) as known if not releases.nature(release) and not any(
                releases.within(each, release) for each in ranges
            ):
                return Known(True, known.evidence)
            case _:
                return expect.evaluate(scope)

    return Expression(expect.source, expect.type, evaluate)


def _judged(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    condition = f" and ({' '.join(entry['exposed'].split())})" if "exposed" in entry else ""
    ranges = releases.ranges(entry["affected"])
    affected = " or ".join(map(_within, ranges))
    return {
        **{key: entry[key] for key in ("title", "harm", *sorted(COUNTS)) if key in entry},
        **({} if "elements" in entry else {"outside": entry.get("outside", OUTSIDE)}),
        "subject": "host",
        "expect": f"not (({affected}) and host.{releases.build_fact(name)}{condition})",
        "message": f"{entry['title']}: OpenZFS {{host.zfs_version_text}} is affected ({releases.in_words(ranges)})",
    }


def _said(entry: Mapping[str, Any]) -> dict[str, Any]:
    ranges = releases.ranges(entry["affected"])
    fixed = [spelt(each) for each in releases.first_fixed(ranges)]
    remedy = f"Upgrade to OpenZFS {' or '.join(fixed)}, or later." if fixed else NOWHERE
    if fixed and len(fixed) < len(ranges):
        unfixed = ", ".join(spelt(last) for _, last in ranges if len(last) == 2)
        remedy = f"Upgrade to OpenZFS {' or '.join(fixed)}, or later; no release of {unfixed} fixes it."
    remedy = entry.get("remedy", remedy)  # behind what can be done at all
    text = f"{entry['until']} {remedy}" if remedy == NOWHERE else f"{remedy} Until then: {entry['until']}"
    return {
        **{key: entry[key] for key in ("impact", "why", "references", "unprovoked") if key in entry},
        "fix": {"text": text, "cost": "needs restart"},
    }


def _within(bounds: Range) -> str:
    first, last = bounds
    end = f"<= {last}" if len(last) == 3 else f"< {(last[0], last[1] + 1)}"
    return f"{first} <= host.release {end}"


def _examples(name: str, entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    has, ranges = f"host.{releases.build_fact(name)}", releases.ranges(entry["affected"])
    first, last = ranges[0]
    exposing = entry.get("exposing", {})

    def example(
        name: str, verdict: str, release: Release, in_build: object, given: Mapping[str, Any]
    ) -> dict[str, Any]:
        facts = {"host.release": list(release), has: in_build, **given}
        return {"name": name, "given": facts, "verdict": verdict}

    changed = {"unknown": f"{spelt(first)}-1+deb12u1 is a separate build: fixes of later releases may be in it"}
    yield example("an affected release, and the host is exposed", "fail", first, True, exposing)
    if len(last) == 3:
        yield example("the release that fixes it", "pass", after(last), True, exposing)
    if "spared" in entry:
        yield example("an affected release, and the host is not exposed", "pass", first, True, entry["spared"])
    elif len(last) == 2:
        newest = ranges[-1][1]
        other = after(newest) if len(newest) == 3 else (newest[0], newest[1] + 1, 0)
        yield example("a release of another line", "pass", other, True, {})
    yield example("a distribution's build of an affected release", "unknown", first, changed, exposing)
    yield example("a distribution's build that carries the fix", "pass", first, False, exposing)
