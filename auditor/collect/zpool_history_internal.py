"""``zpool history -i POOL``: the history of a pool once more, as a second look beside ``zpool history POOL``, and which hosts
took it up.

Nothing numbers what is in it, and no other command prints it. ``-i`` adds what the kernel did by itself
(print_history_records() in cmd/zpool/zpool_main.c): of that only the lines are kept that it writes when a pool is created, and
each time that a host takes it up, with the name of that host (spa_history_log_version() in module/zfs/spa_history.c; "open" in
spa_load_impl(), "import" in spa_import()). No name leaves this module: hosts are numbered. A pool that is taken up before the
host has its name (in an initrd) tells nothing so. Not ``-l``: for it the C library looks up the names of users, and may ask a
daemon or another host for them. Needs root.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.collect import zpool_history
from auditor.facts import Fact, Facts, Subject, known, words
from auditor.host.request import Output, Run

PER = "pool"
SUBJECT = "pool"
FACTS = {
    "history_again": words("the lines of the commands that zpool history is asked for, the oldest first"),
    "taken_up": words(
        "SECONDS=HOST of each time that a host with a name created or took it up, HOST a number for each, the oldest first"
    ),
}
# more than in zpool_history.KEEP: what the kernel did may name any of these words
COMMANDS = r"^\d{4}-\d\d-\d\d\.\d\d:\d\d:\d\d (\(\d+ms\) )?zpool (import|clear|trim|create) "
TAKEN_UP = (
    r"^\d{4}-\d\d-\d\d\.\d\d:\d\d:\d\d \[txg:\d+\] (?:create|open|import) "
    r"pool version \d+; software version [^;]{1,80}; uts "
)
KEEP = rf"^History for |^$|{COMMANDS}|{TAKEN_UP}"
_BY = re.compile(rf"{TAKEN_UP}([^ .]*)")  # of a full name the first label: it may have been given the others later
# as it is called before it has a name (Linux include/linux/uts.h UTS_NODENAME; hostname(5)); sethostname(2) takes an empty one
NAMELESS = frozenset({"", "(none)", "localhost"})


def request(pool: Subject, facts: Facts) -> Run:
    return Run(("zpool", "history", "-i", pool.name), package="zfsutils-linux", keep=KEEP)


def parse(reply: Output, pool: Subject) -> Iterator[Fact]:
    """Raises ValueError when the beginning or the end of the history is missing."""
    text = reply.text.split("\n")
    hosts = {line: hit[1].lower() for line in text if (hit := _BY.match(line))}
    seen = zpool_history.lines("\n".join(line for line in text if line not in hosts), pool)
    named = [(line, hosts[line]) for line in text if hosts.get(line, "(none)") not in NAMELESS]
    numbers = {name: i for i, name in enumerate(dict.fromkeys(name for _, name in named), 1)}
    times = tuple(f"{zpool_history.seconds(line[: zpool_history.STAMP])}={numbers[name]}" for line, name in named)
    yield Fact(pool, "taken_up", known(times, f"{len(times)} times, by {len(numbers)} hosts", reply.command))
    yield Fact(pool, "history_again", known(seen, f"{len(seen)} lines", reply.command))
