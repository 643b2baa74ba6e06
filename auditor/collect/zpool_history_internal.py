"""``zpool history -i POOL``: the history of a pool once more, as a second look beside ``zpool history POOL``.

Nothing numbers what is in it, and no other command prints it. ``-i`` adds what the kernel did by itself
(print_history_records() in cmd/zpool/zpool_main.c): that is forgotten at once. Not ``-l``: for it the C library looks up the
names of users, and may ask a daemon or another host for them. Needs root.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import zpool_history
from auditor.facts import Fact, Facts, Subject, known, words
from auditor.host.request import Output, Run

PER = "pool"
SUBJECT = "pool"
FACTS = {"history_again": words("the lines of the commands that zpool history is asked for, the oldest first")}
# more than in zpool_history.KEEP: what the kernel did may name any of these words
KEEP = r"^History for |^$|^\d{4}-\d\d-\d\d\.\d\d:\d\d:\d\d (\(\d+ms\) )?zpool (import|clear|trim|create) "


def request(pool: Subject, facts: Facts) -> Run:
    return Run(("zpool", "history", "-i", pool.name), package="zfsutils-linux", keep=KEEP)


def parse(reply: Output, pool: Subject) -> Iterator[Fact]:
    """Raises ValueError when the beginning or the end of the history is missing."""
    seen = zpool_history.lines(reply.text, pool)
    yield Fact(pool, "history_again", known(seen, f"{len(seen)} lines", reply.command))
