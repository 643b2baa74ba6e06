"""Whether two looks are of the same host and target, and what has changed between them."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.checklist.judged import Audited
from auditor.facts import HOST, Facts, Known, Subject
from auditor.text import harmless

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
    return "" if same else "neither its host nor its pool is known, so that nobody can tell whether it is of this host"


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
