"""``zpool history -l POOL``: the history of a pool once more, as a second look beside ``zpool history POOL``.

Nothing numbers what is in it, and no other command prints it. ``-l`` adds who gave a command, and on which host
(print_history_records() in cmd/zpool/zpool_main.c): that is forgotten at once. Needs root.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import zpool_history
from auditor.facts import Fact, Facts, Subject, known, words
from auditor.host.request import Output, Run

PER = "pool"
SUBJECT = "pool"
FACTS = {"history_again": words("the lines of the commands that zpool history is asked for, the oldest first")}
WHO = r" \[[^\[\]]*\]$"


def request(pool: Subject, facts: Facts) -> Run:
    return Run(("zpool", "history", "-l", pool.name), package="zfsutils-linux", keep=zpool_history.KEEP, cut=WHO)


def parse(reply: Output, pool: Subject) -> Iterator[Fact]:
    """Raises ValueError when the beginning or the end of the history is missing."""
    seen = zpool_history.lines(reply.text, pool)
    yield Fact(pool, "history_again", known(seen, f"{len(seen)} lines", reply.command))
