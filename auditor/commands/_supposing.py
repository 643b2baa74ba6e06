"""``zaudit check --as openzfs=X``: which known bugs would go, come and stay with another release, on what was seen here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from auditor.audit import Look
    from auditor.facts import Facts, Judged
    from auditor.judge.rule import Rule

PRODUCT = "openzfs"
RELEASED = "release-abandoned"
LACKED, UNMENDED = "bugs_fixed_later", "bugs_not_fixed"
FOUND, OPEN = "fail", "unknown"


def release(context: click.Context, option: click.Parameter, value: str | None) -> tuple[int, ...]:
    """``openzfs=2.4.4`` as numbers; none where the option was not given."""
    if not value:
        return ()
    product, _, text = value.partition("=")
    numbers = text.split(".")
    if product != PRODUCT or len(numbers) != 3 or not all(each.isdecimal() and len(each) <= 4 for each in numbers):
        raise click.BadParameter(f"as in {PRODUCT}=2.4.4")
    return tuple(map(int, numbers))


def told(seen: Look, rules: Sequence[Rule], wanted: tuple[int, ...]) -> Iterator[str]:
    """Lines: what of the rules about releases changes. The facts of the host are those of the other release afterwards."""
    from auditor.data import fixes
    from auditor.derive import fixes_ahead
    from auditor.derive import release as derived
    from auditor.facts import HOST, Fact, Known, Unknown, known, words_of
    from auditor.judge.advisory import PREFIX
    from auditor.text import harmless

    about = [rule for rule in rules if rule.id.startswith(PREFIX) or rule.id == RELEASED]
    now, lacked, unmended = _outcomes(about, seen.facts), *(seen.facts.get(HOST, each) for each in (LACKED, UNMENDED))
    here = seen.facts.get(HOST, "zfs_version_text")
    text = ".".join(map(str, wanted))
    why = f"{text}, supposed"
    seen.facts.replace(Fact(HOST, "zfs_version", known(wanted, why)))
    seen.facts.replace(Fact(HOST, "zfs_version_text", known(text, why)))
    for derivation in (derived, fixes_ahead):
        for fact in [*derivation.derive(HOST, seen.facts)]:
            seen.facts.replace(fact)
    then = _outcomes(about, seen.facts)
    old = harmless(str(here.value)) if isinstance(here, Known) else "a release that is not known"
    bugs = len(about) + len(fixes.load())
    yield f"With OpenZFS {text}, as it was published, in place of {old}; of the {bugs} bugs that zaudit knows of:"
    names = {rule.id: rule for rule in about}
    for word, ids in (
        ("goes", [each for each in now if now[each] == FOUND and then[each] not in (FOUND, OPEN)]),
        ("comes", [each for each in then if then[each] == FOUND and now[each] != FOUND]),
        ("stays", [each for each in then if then[each] == FOUND == now[each]]),
        ("open", [each for each in then if then[each] == OPEN]),
    ):
        for each in sorted(ids):
            was = "" if word in ("goes", "stays") or now[each] != OPEN else ", not decided now"
            yield f"{word:6} {each} ({names[each].gravest}{was}): {names[each].title}"
    lacking, still = (seen.facts.get(HOST, each) for each in (LACKED, UNMENDED))
    yield from _fixed(lacked, lacking)
    yield from _fixed(unmended, still)
    if isinstance(lacking, Unknown):
        yield f"open   which bugs a release after {text} fixes: {lacking.reasons[0].text}"
    bugs_told = (lacked, lacking, unmended, still)
    none = not any(outcome in (FOUND, OPEN) for outcome in (*now.values(), *then.values()))
    if none and all(isinstance(each, Known) and not words_of(each) for each in bugs_told):
        yield "none of them concerns this host, now or then"
    yield "Bugs that nobody has found yet are not among them. Leave zpool upgrade until the new release has proved itself."


def _fixed(now: Judged, then: Judged) -> Iterator[str]:
    """Of bugs that have no rule of their own, each with the release that fixes it, or that there is none: such a one goes only
    with a release that does not have it yet."""
    from auditor.derive.fixes_ahead import NONE
    from auditor.facts import Known, words_of

    before, after = (dict(zip(map(_bug, each), each, strict=True)) for each in (words_of(now), words_of(then)))
    gone = [bug for bug in before if bug not in after and isinstance(then, Known)]
    yield from (f"goes   {bug if NONE in before[bug] else before[bug]}" for bug in gone)
    was = "" if isinstance(now, Known) else ", not decided now"
    yield from (f"comes  {after[bug]}{was}" for bug in after if bug not in before)
    yield from (f"stays  {after[bug]}" for bug in after if bug in before)


def _bug(text: str) -> str:
    return text.rpartition(" (")[0]


def _outcomes(rules: Sequence[Rule], facts: Facts) -> dict[str, str]:
    """The worst outcome of each rule over all that it concerns."""
    from auditor.judge import verdict

    found: dict[str, str] = {rule.id: "pass" for rule in rules}
    for each in verdict.judge(list(rules), facts):
        if each.outcome == FOUND or (each.outcome == OPEN and found[each.rule.id] != FOUND):
            found[each.rule.id] = each.outcome
    return found
