"""Which bugs a release has that a later one fixes (``auditor/data/fixes.toml``), which none fixes, and the mark of which is in
the kernel's log.

What a bug needs to strike counts as used where it is of a kind that zaudit never sees (sends, clones), and where only a part of
the host was looked at: the rest may use it. A build of a distribution may carry a fix without a new number: of the known ones
builds.toml tells which; of the others nothing is said here, but a mark in the log is named all the same: there it has happened.
What has an advisory is left to it, but no advisory speaks of lines that have ended. Of those the bugs of the release as it was
published are named, whoever built it, and what was not seen counts as used. Of a version that is no release none is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from auditor.data import fixes, releases
from auditor.data.builds import Build
from auditor.data.fixes import Fix
from auditor.data.releases import Release
from auditor.derive.release import BUGS, build_of, opened
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    join,
    known,
    pairs_of,
    unknown,
    value_of,
    word,
    word_of,
    words,
    words_of,
)

SUBJECT = "host"
TOLD = 3
ONE_MODULE = (2, 2)  # from which on zcommon, icp and the others are part of zfs.ko (commit ad9e767657)
NONE = "no release up to"
FACTS = {
    "bugs_fixed_later": words(
        "what can go wrong here in this build and does not in a later release, the most severe first"
    ),
    "bugs_fixed_later_told": word("how many those are, and the most severe of them; never empty"),
    "bugs_not_fixed": words(
        "what can go wrong here in this build and no release has mended yet, the gravest first; what to do stands with it"
    ),
    "bugs_in_the_log": words("the bugs of this release, mended later or not, whose mark is in the kernel's log"),
}


class _Use(NamedTuple):
    """In use where a fact of any pool, or of anything that it links to, begins with a word, or where it is not this word.
    of: the only type of datasets that has the fact."""

    link: str
    fact: str
    word: str = ""
    but: str = ""
    of: str = ""


_USES = {
    "encryption": _Use("datasets", "encryption", but="off"),
    "dedup": _Use("datasets", "dedup", but="off"),
    "volumes": _Use("datasets", "type", "volume"),
    "nfs": _Use("datasets", "sharenfs", but="off", of="filesystem"),
    "raidz": _Use("vdevs", "type", "raidz"),
    "draid": _Use("vdevs", "type", "draid"),
    "mirror": _Use("vdevs", "type", "mirror"),
    "special": _Use("vdevs", "allocation_class", "special"),
    "log": _Use("vdevs", "allocation_class", "log"),
    "cache": _Use("cache_leaves", "allocation_class", "cache"),
    "spares": _Use("spare_leaves", "allocation_class", "spare"),
    "multihost": _Use("", "multihost", "on"),
    "autotrim": _Use("", "autotrim", "on"),
}


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """All facts of FACTS."""
    text = facts.get(HOST, "zfs_version_text")
    if isinstance(text, Unknown) or (release := releases.of(str(text.value))) is None:
        why = text if isinstance(text, Unknown) else unknown(f"{text.value} is not a release")
        yield from (Fact(HOST, name, why) for name in FACTS)
        return
    alike, build = build_of(text, facts)
    carried = build.carries if build else ()
    here = [fix for fix in fixes.load() if fix.strikes(release) and fix.subject not in carried]
    if release[:2] not in releases.ENDED:
        here = [fix for fix in here if not any(fix.subject in opened(bug) for bug in BUGS)]
    mended = [fix for fix in here if not fix.unreleased]
    not_mended = [fix for fix in here if fix.unreleased and fixes.covers(release)]
    strange = releases.nature(releases.version(str(text.value), releases.spelt(release)))
    no_release = unknown(strange, releases.REMEDY)
    ahead = no_release if strange else _ahead(mended, release, text, (alike, build), facts)
    yield Fact(HOST, "bugs_fixed_later", ahead)
    told = ahead if isinstance(ahead, Unknown) else _told(ahead)
    if release[:2] in releases.ENDED:  # which ended whatever is in it
        count = told if isinstance(told, Known) else Known("not counted of what is no release", text.evidence)
        told = Known(f"{count.value}; no release of this line follows", count.evidence)
    yield Fact(HOST, "bugs_fixed_later_told", told)
    still = no_release if strange else _ahead(not_mended, release, text, (alike, build), facts)
    yield Fact(HOST, "bugs_not_fixed", still)
    logged = _logged([*mended, *not_mended], release, facts)
    yield Fact(HOST, "bugs_in_the_log", no_release if strange and not words_of(logged) else logged)


def _ahead(here: list[Fix], release: Release, text: Known, of: tuple[Judged, Build | None], facts: Facts) -> Judged:
    if not fixes.covers(release):
        return unknown(f"which bugs of OpenZFS {releases.spelt(release)} were fixed later is not known to this zaudit")
    alike, build = of
    ended = release[:2] in releases.ENDED
    if not here:
        return Known((), text.evidence)
    if isinstance(alike, Unknown) and not build and not ended:
        return alike
    found = {use: _used(use, facts) for use in set().union(*(fix.uses for fix in here))}
    if not ended and (unseen := [each for each in found.values() if isinstance(each, Unknown)]):
        return join(unseen)
    struck = [fix for fix in here if all(value_of(found[use]) is not False for use in fix.uses)]
    seen = (Evidence(f"{_spelt(fix, release)} [{fix.source}]") for fix in struck)
    lacks = f"{build.name} carries none of these fixes ({build.source}); newer: {build.newer}" if build else ""
    newer = (Evidence(lacks),) if lacks and not here[0].unreleased else ()
    return Known(tuple(_spelt(fix, release) for fix in struck), (*text.evidence, *newer, *seen))


def _told(ahead: Known) -> Known:
    first = "; ".join(words_of(ahead)[:TOLD])
    return Known(f"{len(words_of(ahead))}{', the most severe: ' if first else ''}{first}", ahead.evidence)


def _used(use: str, facts: Facts) -> Judged:
    """Whether a feature is in use; of one that nobody can see, that it is."""
    if (how := _USES.get(use)) is None:
        return known(value=True, text=f"whether there are {use} is not seen")
    pools = facts.linked(HOST, "pools")
    needed = [facts.get(HOST, "pools"), facts.get(HOST, "imported_pools")]
    needed += [facts.get(pool, how.link) for pool in pools if how.link]
    if unseen := [each for each in needed if isinstance(each, Unknown)]:
        return join(unseen)
    of = [each for pool in pools for each in facts.linked(pool, how.link)] if how.link else pools
    told = [
        facts.get(each, how.fact) for each in of if not how.of or word_of(facts.get(each, "type"), how.of) == how.of
    ]
    if not _whole(facts) or any(isinstance(each, Known) and _tells(how, each) for each in told):
        return known(value=True, text=use)
    return next((each for each in told if isinstance(each, Unknown)), known(value=False, text=use))


def _whole(facts: Facts) -> bool:
    """Whether all pools were looked at, and all of their datasets: one that was named brings all below it along."""
    pools = facts.linked(HOST, "pools")
    roots = (Subject("dataset", pool.name) in facts.linked(pool, "datasets") for pool in pools)
    return {*facts.linked(HOST, "imported_pools")} <= {*pools} and all(roots)


def _tells(how: _Use, found: Known) -> bool:
    return word_of(found).startswith(how.word) if how.word else word_of(found) != how.but


def _spelt(fix: Fix, release: Release) -> str:
    """With the next release that has it not, or that there is none."""
    if fix.unreleased:
        until = f"; until then: {fix.until}" if fix.until else ""
        return f"{fix.bug} ({NONE} {releases.spelt(fixes.NEWEST[-1])} fixes it{until})"
    later = releases.without(fix.affected, release)
    return f"{fix.bug} ({releases.spelt(later or ())})"


def _logged(here: list[Fix], release: Release, facts: Facts) -> Judged:
    judged = {
        "panic": facts.get(HOST, "zfs_stopped_in"),
        "fault": facts.get(HOST, "zfs_oopses"),
        "hung": facts.get(HOST, "hung_traces"),
        "beside": facts.get(HOST, "zfs_faults_beside"),
    }
    logged = {
        "panic": [{function} for function in words_of(judged["panic"])],
        "fault": [{function} for kind in ("fault", "beside") for function, _ in pairs_of(judged[kind])],
        "hung": [set(trace.split()) for trace in words_of(judged["hung"])],
    }
    found = [fix for fix in here if any(mark <= functions for kind, mark in fix.marks for functions in logged[kind])]
    if release[:2] >= ONE_MODULE:  # what an older question did not look for is not there
        del judged["beside"]
    if not found and (gone := [each for each in judged.values() if isinstance(each, Unknown)]):
        return join(gone)
    seen = tuple(Evidence(f"{_spelt(fix, release)} [{fix.source}]") for fix in found)
    return Known(
        tuple(_spelt(fix, release) for fix in found),
        seen or (Evidence("no mark of a bug that the table of fixes has"),),
    )
