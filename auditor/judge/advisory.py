"""Advisories: bugs of releases, one entry of a table each, which the finding of rule known-bugs has as its parts.

Each entry is judged as a rule, so that it has its own condition, severity, harm, examples, page and waiver. What they have in
common is here: which releases are affected, that the build of a distribution may have the fix, and the examples. What they
come to on a host together: ``known_bugs.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from auditor.data import builds, releases
from auditor.data.releases import Range, Release, after, spelt
from auditor.facts import HOST, Judged, Known
from auditor.judge.compiler import Registry
from auditor.judge.expression import Expression, Scope, fact
from auditor.judge.known_bugs import PREFIX
from auditor.judge.rule import Rule, RuleError
from auditor.judge.rule_file import ID
from auditor.judge.rule_table import COUNTS, from_table, trusted
from auditor.judge.types import ExpressionError

REQUIRED = {"title", "harm", "affected", "impact", "why", "until", "references"}
CONDITION = {"exposed", "exposing", "spared"}
OPTIONAL = {"remedy", "unprovoked"} | COUNTS  # remedy: other words than "Upgrade to ..."
NOWHERE = "No release is known to fix it."
OUTSIDE = "The bug strikes while the host runs; no event brings it about."


def load(path: str, tables: Mapping[str, Any], registry: Registry) -> list[Rule]:
    """The rules of the table of bugs, with their examples, by id. Raises RuleError with the file and the entry."""
    rules = []
    for name, table in sorted(tables.items()):
        try:
            if not ID.fullmatch(name) or not isinstance(table, dict):
                raise RuleError("an entry is a table with a name of lower-case words joined by hyphens")
            rules.append(from_table(PREFIX + name, path, _checked(name, table), registry))
        except (RuleError, ExpressionError) as error:
            raise RuleError(f"{path}: [{name}]: {error}") from None
    return rules


def load_trusted(path: str, tables: Mapping[str, Any], registry: Registry, *, examples: bool) -> list[Rule]:
    """The same rules, of a table that its tests have loaded so. examples: with theirs."""
    return [_trusted(path, name, tables[name], registry, examples) for name in sorted(tables)]


def _trusted(path: str, name: str, table: Mapping[str, Any], registry: Registry, examples: bool) -> Rule:
    whole = _checked(name, table) if examples else {**_judged(name, table), **_said(table)}
    rule = trusted(PREFIX + name, path, whole, registry, examples=examples)
    return rule._replace(expect=_at_a_glance(rule.expect, table["affected"]))


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


def _checked(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The table that the same rule would have in a file of its own."""
    if missing := sorted(REQUIRED - entry.keys()):
        raise RuleError(f"an advisory needs {', '.join(missing)}")
    if stray := sorted(entry.keys() - REQUIRED - CONDITION - OPTIONAL):
        raise RuleError(f"an advisory has no key {stray[0]!r}")
    if len(given := CONDITION & entry.keys()) not in (0, 3):
        raise RuleError(f"{', '.join(sorted(CONDITION))} go together; only {', '.join(sorted(given))} is there")
    examples = _examples(f"host.{builds.fact(name)}", _ranges(entry), entry)
    return {**_judged(name, entry), **_said(entry), "example": list(examples)}


def _judged(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    condition = f" and ({' '.join(entry['exposed'].split())})" if "exposed" in entry else ""
    affected = " or ".join(map(_within, _ranges(entry)))
    return {
        **{key: entry[key] for key in ("title", "harm", *sorted(COUNTS)) if key in entry},
        **({} if "elements" in entry else {"outside": OUTSIDE}),
        "subject": "host",
        "expect": f"not (({affected}) and host.{builds.fact(name)}{condition})",
        "message": f"{entry['title']}: OpenZFS {{host.zfs_version_text}} is affected ({releases.told(_ranges(entry))})",
    }


def _said(entry: Mapping[str, Any]) -> dict[str, Any]:
    ranges = _ranges(entry)
    fixed = [spelt(each) for each in releases.mended(ranges)]
    remedy = f"Upgrade to OpenZFS {' or '.join(fixed)}, or later." if fixed else NOWHERE
    if fixed and len(fixed) < len(ranges):
        unfixed = ", ".join(spelt(last) for _, last in ranges if len(last) == 2)
        remedy = f"Upgrade to OpenZFS {' or '.join(fixed)}, or later; no release of {unfixed} fixes it."
    remedy = entry.get("remedy", remedy)
    return {
        **{key: entry[key] for key in ("impact", "why", "references", "unprovoked") if key in entry},
        "fix": {"text": _fix(entry, remedy), "cost": "needs restart"},
    }


def _fix(entry: Mapping[str, Any], remedy: str) -> str:
    """What can be done comes first."""
    return f"{entry['until']} {remedy}" if remedy == NOWHERE else f"{remedy} Until then: {entry['until']}"


def _ranges(entry: Mapping[str, Any]) -> tuple[Range, ...]:
    try:
        return releases.ranges(entry["affected"])
    except ValueError as error:
        raise RuleError(str(error)) from None


def _within(bounds: Range) -> str:
    first, last = bounds
    end = f"<= {last}" if len(last) == 3 else f"< {(last[0], last[1] + 1)}"
    return f"{first} <= host.release {end}"


def _examples(has: str, ranges: tuple[Range, ...], entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    first, last = ranges[0]
    exposing = entry.get("exposing", {})

    def example(
        name: str, verdict: str, release: Release, in_build: object, given: Mapping[str, Any]
    ) -> dict[str, Any]:
        facts = {"host.release": list(release), has: in_build, **given}
        return {"name": name, "given": facts, "verdict": verdict}

    changed = {"unknown": f"{spelt(first)}-1+deb12u1 is a build of its own: fixes of later releases may be in it"}
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
