"""What can be said of a release from its number: whether its line is one that zaudit knows, and which of the known bugs of
that release the build has.

Distributions mend bugs without a new number: "2.1.11-1+deb12u1" is 2.1.11 with some fixes of later releases, and what they
are stands in builds.toml for those builds whose patches were read. What OpenZFS tags builds as "2.3.9-1" (Release: 1 in
META), and so do distributions that change nothing. NixOS and TrueNAS keep that form where they add patches (nixpkgs gave 2.1.13
the fix of 2.1.14; truenas/zfs#384 gave 2.4.2 commits of the line to come), so their builds are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor import data
from auditor.data import builds, releases
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Subject, Unknown, flag, unknown, word_of, words

SUBJECT = "host"
LINES = tuple(each for each in releases.LINES if each not in releases.ENDED)


BUGS = data.advisories()


FACTS = {
    "release": words("version of the loaded zfs module, of a line that zaudit knows: three numbers, perhaps a mark"),
    "line_ended": flag("it is a release of a line that ended before the oldest that zaudit knows"),
    **{builds.fact(bug): flag(f"the build has the bug {bug}, if its release has") for bug in BUGS},
}
_AS_TAGGED = re.compile(r"\d+\.\d+\.\d+(-1)?")
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
)


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """All facts of FACTS."""
    version, text = facts.get(HOST, "zfs_version"), facts.get(HOST, "zfs_version_text")
    if isinstance(version, Known) and isinstance(version.value, tuple) and version.value[:2] not in LINES:
        version = unknown(f"OpenZFS {'.'.join(map(str, version.value))} is of no line that zaudit knows (2.1 to 2.4)")
    yield Fact(HOST, "line_ended", _ended(facts.get(HOST, "zfs_version")))
    yield Fact(HOST, "release", version)
    alike, build = build_of(text, facts)
    for bug in BUGS:
        yield Fact(HOST, builds.fact(bug), _has(bug, build, text) if build and isinstance(text, Known) else alike)


def _ended(version: Judged) -> Judged:
    """Of a snapshot nobody says that it is maintained."""
    if isinstance(version, Unknown) or not isinstance(version.value, tuple):
        return version
    numbers = tuple(each for each in version.value if isinstance(each, int))
    if numbers[2:] == (releases.DEVELOPMENT,):
        return unknown(releases.nature(version.value), releases.REMEDY)
    return Known(numbers[:2] < LINES[0], version.evidence)


def build_of(text: Judged, facts: Facts) -> tuple[Judged, builds.Build | None]:
    """(Known and true of a build as it was published, else why that is not known; then the build, if builds.toml has it)."""
    alike = _published(text, facts.get(HOST, "platform"))
    other = isinstance(alike, Unknown) and isinstance(text, Known)
    return alike, builds.load().get(word_of(text)) if other else None


def _published(text: Judged, platform: Judged) -> Judged:
    if isinstance(text, Unknown):
        return text
    version = str(text.value)
    numbers = releases.of(version)
    if numbers and (why := releases.nature(releases.version(version, releases.spelt(numbers)))):
        return unknown(why, releases.REMEDY)
    here = word_of(platform)
    if _AS_TAGGED.fullmatch(version) and here not in OWN:
        return platform if isinstance(platform, Unknown) else Known(True, text.evidence)
    remedy = next((each for mark, each in REMEDIES if mark in version or mark == here), "its maintainer's changelog")
    return unknown(f"{version} is a build of its own: fixes of later releases may be in it", remedy)


def opened(bug: str) -> str:
    """The references of an advisory on one line: they name the commit that mends the bug by its subject."""
    return " ".join(" ".join(BUGS[bug]["references"]).split())


def _has(bug: str, build: builds.Build, text: Known) -> Known:
    if bug in build.fixes:
        return Known(False, (*text.evidence, Evidence(f"{build.name} sees to it by itself ({build.source})")))
    if carried := next((subject for subject in build.carries if subject in opened(bug)), None):
        return Known(False, (*text.evidence, Evidence(f"{build.name} carries '{carried}' ({build.source})")))
    return Known(
        True, (*text.evidence, Evidence(f"{build.name} does not carry the fix ({build.source}); newer: {build.newer}"))
    )
