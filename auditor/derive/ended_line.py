"""Which of the well-known bugs of ended lines a release before 2.1 has (``auditor/data/ended.toml``)."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data import ended
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Subject, Unknown, unknown, words

SUBJECT = "host"
FACTS = {"ended_line_bugs": words("what is known to go wrong in this release of a line that has ended; else nothing")}
NEEDS = ("host.zfs_version_text",)
ENDED = (2, 1)  # lines below


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Of a build of a distribution, too: nobody mends these lines any more."""
    yield Fact(HOST, "ended_line_bugs", _bugs(facts.get(HOST, "zfs_version_text")))


def _bugs(text: Judged) -> Judged:
    if isinstance(text, Unknown):
        return text
    this = ended.release(str(text.value))
    if this is None:
        return unknown(f"{text.value} is not a release")
    found = ended.bugs_of(this) if this < ENDED else ()
    seen = tuple(Evidence(f"{each.bug} ({each.source})") for each in found)
    return Known(tuple(each.bug for each in found), (*text.evidence, *seen))
