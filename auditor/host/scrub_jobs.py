"""The jobs of TrueNAS that scrub its pools, of all the jobs that stand in its file of cron: no other is kept.

(truenas/middleware src/middlewared/middlewared/etc_files/cron.d/middlewared.mako: ``midclt call pool.scrub.run POOL DAYS``, the
name quoted as a shell needs it)
"""

from __future__ import annotations

import re

PATH = "/etc/cron.d/middlewared"
_JOB = re.compile(r"(?m)^[^#\n]*?\bmidclt call pool\.scrub\.run ('[^'\n]+'|[\w.:-]+) [0-9]+\b.*$")


def kept(text: str) -> str:
    """``midclt call pool.scrub.run POOL 0`` for each job."""
    return "".join(f"midclt call pool.scrub.run {found[1]} 0\n" for found in _JOB.finditer(text))


def pools(text: str) -> tuple[str, ...]:
    """The pools that are scrubbed, from what is kept."""
    return tuple(dict.fromkeys(found[1].strip("'") for found in _JOB.finditer(text)))
