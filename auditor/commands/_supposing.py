"""``zaudit check --as openzfs=X``: which known bugs would go, come and stay with another release, on what was seen here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from auditor.audit import Look
    from auditor.facts import Facts, Judged
    from auditor.judge.rule import Rule

PRODUCT = "openzfs"
KERNEL = "kernel-unsupported"
LACKED, UNMENDED = "bugs_fixed_later", "bugs_not_fixed"
FOUND, OPEN = "fail", "unknown"
GOES, COMES, STAYS, UNDECIDED = WORDS = ("goes", "comes", "stays", "open")


class Change(NamedTuple):
    """One bug, or what cannot be told. what: one of WORDS; rule: its id, as zaudit explain takes it; undecided_now: whether it
    may strike now is not known."""

    what: str
    rule: str
    severity: str
    text: str
    undecided_now: bool = False


class Supposed(NamedTuple):
    """now: the version that runs, empty where it is not known. of: how many bugs were looked at. settled: whether all of them
    were decided."""

    release: str
    now: str
    of: int
    settled: bool
    changes: tuple[Change, ...]


def release(context: click.Context, option: click.Parameter, value: str | None) -> tuple[int, ...]:
    """``openzfs=2.4.4`` as numbers; none where the option was not given."""
    from auditor.data import releases

    if not value:
        return ()
    product, _, text = value.partition("=")
    numbers = text.split(".")
    if product != PRODUCT or len(numbers) != 3 or not all(each.isdecimal() and len(each) <= 4 for each in numbers):
        raise click.BadParameter(f"as in {PRODUCT}=2.4.4")
    wanted = tuple(map(int, numbers))
    if why := releases.nature(wanted):
        raise click.BadParameter(f"{why}. Name a release, as in {PRODUCT}=2.4.4")
    return wanted


def suppose(seen: Look, rules: Sequence[Rule], wanted: tuple[int, ...]) -> Supposed:
    """What of the rules about releases changes. The facts of the host are those of the other release afterwards."""
    from auditor.data import fixes
    from auditor.facts import HOST, Fact, Known, known
    from auditor.judge.known_bugs import ID
    from auditor.model.kernel_module import kernel_unsupported
    from auditor.model.release import known_bugs, release

    about = [rule for rule in rules if rule.head or rule.id in (ID, KERNEL)]
    now, lacked, unmended = _outcomes(about, seen.facts), *(seen.facts.get(HOST, each) for each in (LACKED, UNMENDED))
    here = seen.facts.get(HOST, "zfs_version_text")
    text = ".".join(map(str, wanted))
    why = f"{text}, supposed"
    seen.facts.replace(Fact(HOST, "zfs_version", known(wanted, why)))
    seen.facts.replace(Fact(HOST, "zfs_version_text", known(text, why)))
    for derivation in (release, known_bugs, kernel_unsupported):
        for fact in [*derivation.derive(HOST, seen.facts)]:
            seen.facts.replace(fact)
    then, lacking, still = _outcomes(about, seen.facts), *(seen.facts.get(HOST, each) for each in (LACKED, UNMENDED))
    names = {rule.id: rule for rule in rules}
    found = [
        Change(what, each, names[each].gravest, _said(names[each], seen.facts), now[each] == OPEN and what == COMES)
        for what, ids in (
            (GOES, [each for each in now if now[each] == FOUND and then[each] not in (FOUND, OPEN)]),
            (COMES, [each for each in then if then[each] == FOUND and now[each] != FOUND]),
            (STAYS, [each for each in then if then[each] == FOUND == now[each]]),
            (UNDECIDED, [each for each in then if then[each] == OPEN]),
        )
        for each in sorted(ids)
    ]
    version = str(here.value) if isinstance(here, Known) else ""
    if lacks := names.get(ID):
        found += _fixed(lacked, lacking, version, text, lacks)
        found += _fixed(unmended, still, version, text, lacks)
        found += _unknown_to_us(wanted, lacking, text, lacks)
    bugs = sum(rule.head is not None for rule in about) + len(fixes.load())
    undecided = OPEN in (*now.values(), *then.values())
    settled = not undecided and all(isinstance(each, Known) for each in (lacked, lacking, unmended, still))
    return Supposed(text, version, bugs, settled, tuple(found))


def written(found: Supposed, how: str) -> str:
    """As text: lines for people, or JSON for programs (zaudit-supposed/1)."""
    import json

    if how != "json":
        return "".join(f"{line}\n" for line in _told(found))
    changes = [each._asdict() for each in found.changes]
    return json.dumps({"schema": "zaudit-supposed/1", **found._asdict(), "changes": changes}, indent=1) + "\n"


def _told(found: Supposed) -> Iterator[str]:
    from auditor.text import harmless

    now = harmless(found.now) if found.now else "a release that is not known"
    yield (
        f"With OpenZFS {found.release}, as it was published, in place of {now}; of the {found.of} bugs that zaudit knows of:"
    )
    for each in found.changes:
        was = ", not decided now" if each.undecided_now else ""
        yield f"{each.what:6} {each.rule} ({each.severity}{was}): {harmless(each.text)}"
    if not found.changes and found.settled:
        yield "none of them concerns this host, now or then"
    else:
        yield "zaudit explain NAME tells more of each."
    yield "Bugs that nobody has found yet are not among them. Leave zpool upgrade until the new release has proved itself."


def _said(rule: Rule, facts: Facts) -> str:
    """The title of a bug; of kernels, which runs and up to which the release was made for; of the line that it ended."""
    from auditor.facts import HOST, is_true
    from auditor.judge.known_bugs import ID

    if rule.id == ID:
        return "A release line that has ended"

    unsupported = facts.get(HOST, "kernel_unsupported")
    return f"{rule.title}: {unsupported.evidence[0].text}" if rule.id == KERNEL and is_true(unsupported) else rule.title


def _fixed(now: Judged, then: Judged, old: str, new: str, rule: Rule) -> Iterator[Change]:
    """Of bugs that have no rule of their own, each with the release that fixes it, or that there is none: such a one goes only
    with a release that does not have it yet."""
    from auditor.facts import Known, words_of
    from auditor.model.release import NONE

    def parts(told: str) -> tuple[str, str]:
        bug, none, rest = told.partition(f" ({NONE}")
        if none:
            return bug, f"{NONE}{rest.removesuffix(')')}"
        bug, _, fixed = told.rpartition(" (")
        return bug, f"fixed in {fixed.removesuffix(')')}"

    before, after = (dict(map(parts, words_of(judged))) for judged in (now, then))
    undecided = not isinstance(now, Known)
    for what, version, bugs in (
        (GOES, old, {bug: fixed for bug, fixed in before.items() if bug not in after and isinstance(then, Known)}),
        (COMES, new, {bug: fixed for bug, fixed in after.items() if bug not in before}),
        (STAYS, new, {bug: fixed for bug, fixed in after.items() if bug in before}),
    ):
        for bug, fixed in bugs.items():
            older = what == GOES and fixed.startswith(NONE)  # which does not have it yet
            text = f"OpenZFS {version} {bug}" + ("" if older else f"; {fixed}")
            yield Change(what, rule.id, rule.severity, text, undecided and what == COMES)


def _unknown_to_us(wanted: tuple[int, ...], lacking: Judged, text: str, rule: Rule) -> Iterator[Change]:
    from auditor.data import fixes
    from auditor.facts import Unknown

    if not isinstance(lacking, Unknown):
        return
    why = lacking.reasons[0].text
    if newest := [each for each in fixes.NEWEST if each[:2] == wanted[:2] and each < wanted]:
        known = ".".join(map(str, newest[0]))
        why = f"the newest release of this line that zaudit knows is {known}; whether there is {text} it does not know"
    elif wanted > fixes.NEWEST[-1]:
        why = f"zaudit knows no release of this line; whether there is {text} it does not know"
    yield Change(UNDECIDED, rule.id, rule.severity, f"which bugs a release after {text} fixes: {why}")


def _outcomes(rules: Sequence[Rule], facts: Facts) -> dict[str, str]:
    """The worst outcome of each rule over all that it concerns; of known-bugs whether the line has ended, as its other bugs are
    compared one by one."""
    from auditor.facts import HOST, Unknown, is_true
    from auditor.judge import verdict
    from auditor.judge.known_bugs import ID

    found: dict[str, str] = {rule.id: "pass" for rule in rules}
    ended = facts.get(HOST, "line_ended")
    if found.pop(ID, ""):
        found[ID] = OPEN if isinstance(ended, Unknown) else FOUND if is_true(ended) else "pass"
        rules = [rule for rule in rules if rule.id != ID]
    for each in verdict.judge(list(rules), facts):
        if each.outcome == FOUND or (each.outcome == OPEN and found[each.rule.id] != FOUND):
            found[each.rule.id] = each.outcome
    return found
