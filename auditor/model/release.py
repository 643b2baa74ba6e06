"""Which release of OpenZFS runs, how the commands differ from it, and which known bugs it has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from auditor import data
from auditor.data import releases
from auditor.data.releases import Build, Fix, Release
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, known, unknown
from auditor.model.derivation import Missing, catch_missing, derivation, every, gaps, numbers
from auditor.model.fault_log import ONE_MODULE

LINES = tuple(each for each in releases.LINES if each not in releases.ENDED)
BUGS = data.table("advisories.toml")
_CHANGELOG = "zless /usr/share/doc/zfsutils-linux/changelog.Debian.gz"
OWN = ("nixos", "truenas")  # whose builds are called as OpenZFS tags them, and are not the same
# in the version, or the platform -> how to find out, or to get past it
REMEDIES = (
    ("-pve", f"{_CHANGELOG}; or upgrade: pveupgrade, and restart"),
    (
        "nixos",
        "pkgs/os-specific/linux/zfs at nixos-version --revision; or upgrade: nixos-rebuild boot --upgrade, and restart",
    ),
    ("truenas", "the branch of this release of TrueNAS in truenas/zfs; or update it (System, Update)"),
    ("ubuntu", f"{_CHANGELOG}; or upgrade: apt full-upgrade, and restart"),
    ("deb", f"{_CHANGELOG}; or upgrade: apt full-upgrade, and restart"),
    ("bpo", f"{_CHANGELOG}; or upgrade: apt full-upgrade, and restart"),
    (
        "rhel",
        "rpm -q --changelog zfs >/etc/zaudit/zfs.changelog, which the next check reads; or upgrade: dnf upgrade, and restart",
    ),
)


@derivation(
    "host",
    release=Spec.words("version of the loaded zfs module, of a line that zaudit knows: three numbers, perhaps a mark"),
    line_ended=Spec.flag("it is a release of a line that ended before the oldest that zaudit knows"),
    **{releases.build_fact(bug): Spec.flag(f"the build has the bug {bug}, if its release has") for bug in BUGS},
)
def release(host: Subject, facts: Facts) -> Iterator[Fact]:
    """What can be said of a release from its number: whether its line is one that zaudit knows, and which of the known bugs of
    that release the build has.

    Distributions fix bugs without a new number: "2.1.11-1+deb12u1" is 2.1.11 with some fixes of later releases. Which they are
    is in builds.toml for those builds whose patches were read; of others the changelog of the package names some. What OpenZFS
    tags builds as "2.3.9-1" (Release: 1 in META), and so do distributions that change nothing. NixOS and TrueNAS keep that form
    where they add patches (nixpkgs gave 2.1.13 the fix of 2.1.14; truenas/zfs#384 gave 2.4.2 commits of the line to come), so
    their builds are unknown."""
    version, text = facts.get(HOST, "zfs_version"), facts.get(HOST, "zfs_version_text")
    if isinstance(version, Known) and isinstance(version.value, tuple) and version.value[:2] not in LINES:
        version = unknown(f"OpenZFS {'.'.join(map(str, version.value))} is of no line that zaudit knows (2.1 to 2.4)")
    yield Fact(HOST, "line_ended", _ended(facts.get(HOST, "zfs_version")))
    yield Fact(HOST, "release", version)
    alike, build = build_of(text, facts)
    changelog = Changelog.of(text, facts) if isinstance(text, Known) else Changelog()
    for bug in BUGS:
        judged = changelog.judge(bug, alike)
        yield Fact(
            HOST, releases.build_fact(bug), _has(bug, build, text) if build and isinstance(text, Known) else judged
        )


def _ended(version: Judged) -> Judged:
    """Of a snapshot nobody says that it is maintained."""
    if isinstance(version, Unknown) or not isinstance(version.value, tuple):
        return version
    line = numbers(version)
    if line[2:] == (releases.DEVELOPMENT,):
        return unknown(releases.nature(version.value), releases.REMEDY)
    return Known(line[:2] < LINES[0], version.evidence)


def build_of(text: Judged, facts: Facts) -> tuple[Judged, releases.Build | None]:
    """(Known and true of a build as it was published, else why that is not known; then the build, if builds.toml has it)."""
    alike = _published(text, facts.get(HOST, "platform"))
    other = isinstance(alike, Unknown) and isinstance(text, Known)
    return alike, releases.load_builds().get(text.word()) if other else None


@catch_missing
def _published(text: Judged, platform: Judged) -> Judged:
    text = text.need()
    version = str(text.value)
    published = releases.of(version)
    if published and (why := releases.nature(releases.version(version, releases.spelt(published)))):
        return unknown(why, releases.REMEDY)
    here = platform.word()
    if releases.as_tagged(version) and here not in OWN:
        platform.need()
        return Known(True, text.evidence)
    remedy = next((each for mark, each in REMEDIES if mark in version or mark == here), "its maintainer's changelog")
    return unknown(f"{version} is a separate build: fixes of later releases may be in it", remedy)


@cache
def references(bug: str) -> str:
    """The references of an advisory on one line: they name the commit that fixes the bug by its subject."""
    return " ".join(" ".join(BUGS[bug]["references"]).split())


def _has(bug: str, build: releases.Build, text: Known) -> Known:
    if bug in build.fixes:
        return Known(False, (*text.evidence, Evidence(f"{build.name} sees to it by itself ({build.source})")))
    if carried := next((subject for subject in build.carries if subject in references(bug)), None):
        return Known(False, (*text.evidence, Evidence(f"{build.name} carries '{carried}' ({build.source})")))
    lacks = f"{build.name} does not carry the fix ({build.source}); newer: {build.newer}"
    return Known(True, (*text.evidence, Evidence(lacks)))


_HASH = re.compile(r"\b[0-9a-f]{10,40}\b")
_PULL = re.compile(r"#(\d+) \(pull request\)")
_PATCH = re.compile(r"(?<![\w.+-])[\w.+-]+\.(?:patch|diff)\b", re.ASCII)  # tried once a word, or a long one takes hours
_TRACKED = re.compile(
    r"\b(?:closes|lp):(?:[ ,]*(?:bug *)?#\d+)+", re.IGNORECASE
)  # numbers of the distribution's own bugs
_UNDONE = re.compile(
    r"\b(?:revert|drop|remov|disabl|back(?:ed)? out|roll(?:ed)? ?back|undo|undid|withdr|comment(?:ed)? out|le(?:ft|ave) out|"
    r"omit|skip|exclud|supersed|defer|postpon|todo\b|lacks?\b|without|not\b|no longer|unappl|yet\b)",
    re.IGNORECASE,
)
_DONE = re.compile(r"\b(?:fix|cherry|backport|appl|add|includ|pick|import|pull|patch)", re.IGNORECASE)
_FITS = re.compile(r"compat|support|build", re.IGNORECASE)
SUBJECT, SLUG = 16, 40  # characters of a subject, and of the name that git gives a patch, that are no chance
SAID = 200  # characters of a change that are shown


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


class Commit(NamedTuple):
    """That fixes a bug, by its hashes on the lines of releases and its subject."""

    hashes: frozenset[str]
    subject: str


@cache
def commits(bug: str) -> tuple[tuple[Commit, ...], frozenset[str]]:
    """(Commits that fix the bug of an advisory, all of which it takes, and numbers of pull requests that have them all)."""
    found: list[Commit] = []
    for reference in (" ".join(each.split()) for each in BUGS[bug]["references"] if "openzfs/zfs commit" in each):
        for part in reference.split("; ") if "brought it" not in reference else ():
            if hashes := _HASH.findall(part):
                found.append(Commit(frozenset(hashes), part.partition(": ")[2]))
    pulls = _PULL.findall(references(bug)) if "brought it" not in references(bug) else []
    return tuple(found), frozenset(pulls if len(pulls) == 1 else ())


class Changelog(NamedTuple):
    """What the package of the running build says it changed since the release that it is made of, the newest first.

    names_in: of each change all of it in plain words, and its patches: read once, for it is asked about hundreds of fixes.
    """

    version: str = ""
    changes: tuple[str, ...] = ()
    command: str = ""
    names_in: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, text: Known, facts: Facts) -> Changelog:
        """Empty where it does not have the build that runs: that is another package's then."""
        found = facts.get(HOST, "zfs_changes")
        version = text.word()
        rows = [row.partition(" ")[::2] for row in found.words()]
        start = next((at for at, (of, _) in enumerate(rows) if of == version), len(rows))
        here = tuple(change for of, change in rows[start:] if releases.of(of) == releases.of(version))
        command = found.evidence[0].command if isinstance(found, Known) else ""
        names_in = ((f" {_plain(each)} ", tuple(map(_slug, _PATCH.findall(each)))) for each in here)
        return cls(version, here, command, tuple(names_in))

    def names(self, commit: Commit) -> str:
        """The newest change that names a commit; empty where that undoes it, and where there is none."""
        plain = _plain(commit.subject)
        for change, (text, slugs) in zip(self.changes, self.names_in, strict=True):
            named = len(plain) >= SUBJECT and f" {plain} " in text
            patch = plain and any(slug == plain or (len(slug) >= SLUG and plain.startswith(slug)) for slug in slugs)
            if patch or named or any(each in change for each in commit.hashes):
                subject = re.compile(r"\W+".join(re.findall(r"[A-Za-z0-9]+", commit.subject)), re.IGNORECASE)
                rest = subject.sub("", _PATCH.sub("", change)) if plain else change
                return "" if _UNDONE.search(rest) else change
        return ""

    def pulls(self, number: str) -> str:
        for change in self.changes:
            if number in change and re.search(rf"(?:#|pull/){number}\b", rest := _TRACKED.sub("", change)):
                return "" if _UNDONE.search(rest) or not _DONE.search(rest) else change
        return ""

    def judge(self, bug: str, alike: Judged) -> Judged:
        """Whether the build has the bug: it has not where the changelog names its fix, else as without the changelog."""
        if not self.changes or isinstance(alike, Known):
            return alike
        fixes, pulls = commits(bug)
        found = [self.names(each) for each in fixes]
        change = next(filter(None, map(self.pulls, pulls)), "") or (found[0] if all(found) and found else "")
        if change:
            return known(value=False, text=f"{self.version} carries the fix: {change[:SAID]}", command=self.command)
        remedy = alike.reasons[0].remedy.rpartition("; or ")[2]
        return unknown(f"{self.version} is a separate build whose changelog does not name the fix", remedy)

    def supports(self, kernel: str) -> Evidence | None:
        """Which change made the build fit the kernels of a line, such as 7.0."""
        line = re.compile(rf"\b(?:linux|kernels?)[ -]v?{re.escape(kernel)}\b", re.IGNORECASE)
        change = next((each for each in self.changes if line.search(each) and _FITS.search(each)), "")
        return (
            Evidence(f"{self.version}: {change[:SAID]}", self.command)
            if change and not _UNDONE.search(change)
            else None
        )


def _slug(patch: str) -> str:
    """What git calls the patch of a commit without its number: the beginning of the subject, in plain words."""
    return re.sub(r"^\d+ ", "", _plain(patch.rpartition(".")[0]))


TOLD = 3
NONE = "no release up to"


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


@derivation(
    "host",
    bugs_fixed_later=Spec.words(
        "bugs of this build that concern this host and a later release of its line fixes, the most severe first"
    ),
    bugs_fixed_later_told=Spec.word("how many those are, and the most severe of them; never empty"),
    bugs_not_fixed=Spec.words(
        "bugs of this build that concern this host and no release fixes, the most severe first, with a workaround"
    ),
    bugs_in_the_log=Spec.words("the bugs of this release, fixed later or not, whose mark is in the kernel's log"),
)
def known_bugs(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Which bugs of this release a later one of its line fixes (``auditor/data/fixes.toml``), which none fixes, and which
    left their mark in the kernel's log.

    The newest release of a maintained line lacks nothing. What only another line fixes is named where that line is supposed
    (``check --suppose 'host release=...'``).

    A bug counts where what it needs may be in use: kinds that zaudit never sees (sends, clones), and everything where only
    a part of the host was looked at. builds.toml or the changelog of the package tells which fixes a distribution's build
    carries; of other builds only marks in the log are named. A bug with an advisory is left to it, but on ended lines all
    bugs of the release as published are named. Of a version that is no release none is named."""
    text = facts.need(HOST, "zfs_version_text")
    if (release := releases.of(str(text.value))) is None:
        raise Missing(unknown(f"{text.value} is not a release"))
    alike, build = build_of(text, facts)
    carried = build.carries if build else ()
    here = [fix for fix in releases.load_fixes() if fix.strikes(release) and fix.subject not in carried]
    if isinstance(alike, Unknown):
        changelog = Changelog.of(text, facts)
        here = [fix for fix in here if not changelog.names(Commit(frozenset(), fix.subject))]
    if release[:2] not in releases.ENDED:
        here = [fix for fix in here if not any(fix.subject in references(bug) for bug in BUGS)]
    fixed_later = [fix for fix in here if release[:2] in releases.ENDED or fix.fixed_in_line(release)]
    unfixed = [fix for fix in here if fix not in fixed_later and (not fix.unreleased or releases.fixes_cover(release))]
    strange = releases.nature(releases.version(str(text.value), releases.spelt(release)))
    no_release = unknown(strange, releases.REMEDY)
    ahead = no_release if strange else _ahead(fixed_later, release, text, (alike, build), facts)
    yield Fact(HOST, "bugs_fixed_later", ahead)
    counted = ahead if isinstance(ahead, Unknown) else _counted(ahead)
    if release[:2] in releases.ENDED:  # which ended whatever is in it
        count = counted if isinstance(counted, Known) else Known("not counted of what is no release", text.evidence)
        counted = Known(f"{count.value}; no release of this line follows", count.evidence)
    yield Fact(HOST, "bugs_fixed_later_told", counted)
    still = no_release if strange else _ahead(unfixed, release, text, (alike, build), facts)
    yield Fact(HOST, "bugs_not_fixed", still)
    logged = _logged([*fixed_later, *unfixed], release, facts)
    yield Fact(HOST, "bugs_in_the_log", no_release if strange and not logged.words() else logged)


@catch_missing
def _ahead(here: list[Fix], release: Release, text: Known, of: tuple[Judged, Build | None], facts: Facts) -> Judged:
    if not releases.fixes_cover(release):
        return unknown(f"which bugs of OpenZFS {releases.spelt(release)} were fixed later is not known to this zaudit")
    alike, build = of
    ended = release[:2] in releases.ENDED
    if not here:
        return Known((), text.evidence)
    found = {use: _used(use, facts) for use in set().union(*(fix.uses for fix in here))}
    if not ended and (unseen := gaps(found.values())):
        return Unknown.join(unseen)
    struck = [fix for fix in here if all(found[use].or_none() is not False for use in fix.uses)]
    if struck and isinstance(alike, Unknown) and not build and not ended:
        return alike
    seen = (Evidence(f"{_spelt(fix, release)} [{fix.source}]") for fix in struck)
    lacks = f"{build.name} carries none of these fixes ({build.source}); newer: {build.newer}" if build else ""
    newer = (Evidence(lacks),) if lacks and not here[0].unreleased else ()
    return Known(tuple(_spelt(fix, release) for fix in struck), (*text.evidence, *newer, *seen))


def _counted(ahead: Known) -> Known:
    first = "; ".join(ahead.words()[:TOLD])
    return Known(f"{len(ahead.words())}{', the most severe: ' if first else ''}{first}", ahead.evidence)


@catch_missing
def _used(use: str, facts: Facts) -> Judged:
    """Whether a feature is in use; of one that nobody can see, that it is."""
    if (how := _USES.get(use)) is None:
        return known(value=True, text=f"whether there are {use} is not seen")
    pools = facts.linked(HOST, "pools")
    links = (facts.get(pool, how.link) for pool in pools if how.link)
    every((facts.get(HOST, "pools"), facts.get(HOST, "imported_pools"), *links))
    of = [each for pool in pools for each in facts.linked(pool, how.link)] if how.link else pools
    of = [each for each in of if not how.of or facts.get(each, "type").word(how.of) == how.of]
    uses = [facts.get(each, how.fact) for each in of]
    if not _whole(facts) or any(isinstance(each, Known) and _tells(how, each) for each in uses):
        return known(value=True, text=use)
    return next(iter(gaps(uses)), known(value=False, text=use))


def _whole(facts: Facts) -> bool:
    """Whether all pools were looked at, and all of their datasets: one that was named brings all below it along."""
    pools = facts.linked(HOST, "pools")
    roots = (Subject("dataset", pool.name) in facts.linked(pool, "datasets") for pool in pools)
    return {*facts.linked(HOST, "imported_pools")} <= {*pools} and all(roots)


def _tells(how: _Use, found: Known) -> bool:
    return found.word().startswith(how.word) if how.word else found.word() != how.but


def _spelt(fix: Fix, release: Release) -> str:
    if fix.unreleased:
        until = f"; until then: {fix.until}" if fix.until else ""
        return f"{fix.bug} ({NONE} {releases.spelt(releases.NEWEST[-1])} fixes it{until})"
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
        "panic": [{function} for function in judged["panic"].words()],
        "fault": [{function} for kind in ("fault", "beside") for function, _ in judged[kind].pairs()],
        "hung": [set(trace.split()) for trace in judged["hung"].words()],
    }
    found = [fix for fix in here if any(mark <= functions for kind, mark in fix.marks for functions in logged[kind])]
    if release[:2] >= ONE_MODULE:  # what an older question did not look for is not there
        del judged["beside"]
    if not found and (gone := gaps(judged.values())):
        return Unknown.join(gone)
    seen = tuple(Evidence(f"{_spelt(fix, release)} [{fix.source}]") for fix in found)
    return Known(
        tuple(_spelt(fix, release) for fix in found),
        seen or (Evidence("no mark of a bug that the table of fixes has"),),
    )
