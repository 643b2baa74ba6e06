"""What can be said of a release from its number: whether its line is one that zaudit knows, and whether the build is the
project's own.

Distributions mend bugs without a new number: "2.1.11-1+deb12u1" is 2.1.11 with more or fewer fixes of later releases. What
OpenZFS tags builds as "2.3.9-1" (Release: 1 in META), and so do distributions that change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, flag, unknown, words

SUBJECT = "host"
FACTS = {
    "release": words("release of the loaded zfs module, of a line that zaudit knows: three numbers"),
    "release_unmodified": flag(
        "it is a build of the release as it was published; never false: what others do is unknown"
    ),
}
NEEDS = ("host.zfs_version", "host.zfs_version_text")
LINES = ((2, 1), (2, 2), (2, 3), (2, 4))
_PUBLISHED = re.compile(r"\d+\.\d+\.\d+(-1)?")


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Both facts."""
    version, text = facts.get(HOST, "zfs_version"), facts.get(HOST, "zfs_version_text")
    if isinstance(version, Known) and isinstance(version.value, tuple) and version.value[:2] not in LINES:
        version = unknown(f"OpenZFS {'.'.join(map(str, version.value))} is of no line that zaudit knows (2.1 to 2.4)")
    yield Fact(HOST, "release", version)
    if isinstance(text, Unknown):
        yield Fact(HOST, "release_unmodified", text)
    elif _PUBLISHED.fullmatch(str(text.value)):
        yield Fact(HOST, "release_unmodified", Known(True, text.evidence))
    else:
        why = f"{text.value} is a build of its own: fixes of later releases may be in it"
        yield Fact(HOST, "release_unmodified", unknown(why, "its changelog (apt changelog zfs-dkms)"))
