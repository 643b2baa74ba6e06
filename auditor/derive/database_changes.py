"""What a restart or a reload would change: where the server itself was asked, and its files say otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Evidence, Fact, Facts, Known, Subject, Unknown, join, words

SUBJECT = "database"
FACTS = {
    "changes_at_restart": words("NAME is VALUE now but VALUE in its files: settings in force that its files do not say")
}
UNSAID = "default"  # the server names the value that it took


def derive(database: Subject, facts: Facts) -> Iterator[Fact]:
    """Unknown where one of the two is."""
    now, then = facts.get(database, "in_force"), facts.get(database, "configured")
    missing = [each for each in (now, then) if isinstance(each, Unknown)]
    if missing or not (isinstance(now, Known) and isinstance(then, Known)):
        yield Fact(database, "changes_at_restart", join(missing))
        return
    said = _pairs(then)
    changes = [(name, value) for name, value in _pairs(now).items() if said.get(name, value) not in (value, UNSAID)]
    seen = (*now.evidence, *then.evidence)
    found = tuple(f"{_setting(name, seen)} is {value} now but {said[name]} in its files" for name, value in changes)
    names = tuple(name for name, _ in changes)
    evidence = tuple(each for each in seen if not names or each.text.startswith(_spelt(names)))
    yield Fact(database, "changes_at_restart", Known(found, evidence))


_SPELT = {
    "torn_page_guard": ("full_page_writes", "innodb_doublewrite"),
    "flush_log_at_commit": ("innodb_flush_log_at_trx_commit",),
    "flush_method": ("innodb_flush_method",),
    "doublewrite": ("innodb_doublewrite",),
}


def _spelt(names: tuple[str, ...]) -> tuple[str, ...]:
    """As the servers spell them."""
    return tuple(spelling for name in names for spelling in _SPELT.get(name, (name,)))


def _setting(name: str, seen: tuple[Evidence, ...]) -> str:
    """As the engine spells it that was asked."""
    spellings = _spelt((name,))
    return next((each for each in spellings if any(one.text.startswith(each) for one in seen)), spellings[0])


def _pairs(found: Known) -> dict[str, str]:
    assert isinstance(found.value, tuple)
    return {name: value for name, _, value in (str(each).partition(" = ") for each in found.value)}
