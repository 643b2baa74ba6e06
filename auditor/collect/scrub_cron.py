"""Files of cron with "zfs" or "scrub" in their name: Debian and Ubuntu scrub all pools from /etc/cron.d/zfsutils-linux.

Only files so named are read: other people's crontabs are none of our business, and nobody's password should end up in a
recording. A job that stands elsewhere is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, known, words
from auditor.host.request import Files, Read, Request

PER = "host"
SUBJECT = "host"
FACTS = {"scrub_cron": words("files of cron, with zfs or scrub in their name, that start a scrub")}
FOLDERS = ("/etc/cron.d", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly")
PATTERNS = tuple(f"{folder}/*{word}*" for folder in FOLDERS for word in ("scrub", "zfs"))
_SCRUB = re.compile(r"\bzpool\s++scrub\b|/zfs-linux/scrub\b")


def request(host: Subject, facts: Facts) -> Request:
    """A few small files that everyone may read."""
    return Read(PATTERNS)


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Only when every pattern was answered and every file could be read, or one that was read starts a scrub."""
    found = tuple(sorted(path for path, text in reply.text.items() if any(map(_scrubs, text.split("\n")))))
    if found or reply.complete(*PATTERNS):
        text = f"scrub in {', '.join(found)}" if found else "no file of cron with zfs or scrub in its name starts one"
        yield Fact(HOST, "scrub_cron", known(found, text, "grep -rE 'zpool scrub|zfs-linux/scrub' /etc/cron*"))


def _scrubs(line: str) -> bool:
    return not line.lstrip().startswith("#") and _SCRUB.search(line) is not None
