"""``zpool history``: commands of the past that decide what a pool is worth: imports that gave up a log or went back in
time, and TRIM. (man 8 zpool-history; OpenZFS cmd/zpool/zpool_main.c print_history_records)

Who may do anything that is logged, a snapshot for one (man 8 zfs-allow), may have any text logged with it, newlines and dates
included (zfs_secpolicy_log_history() in module/zfs/zfs_ioctl.c). So a line may be a forgery: it may make a verdict worse, never
better. Of several the newest counts, wherever it stands.

The history of an old pool has 100,000 lines and more; only lines of these commands are kept, and recorded, and of the first
line its time: older ones are overwritten when the ring is full (spa_history_write() in module/zfs/spa_history.c). Nobody can
forge that time: it is the kernel's, of the record that comes first. Times are in UTC, because commands are run with TZ=UTC.
Needs root.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Iterator
from time import strptime

from auditor.facts import Fact, Facts, Subject, known, number, words
from auditor.host.request import Output, Run
from auditor.text import has_surrogates

PER = "pool"
SUBJECT = "pool"
FACTS = {
    "imports_without_log": number("imports with -m on record: told to go on without a log device"),
    "import_without_log_s": number("the newest of these, seconds since the epoch"),
    "rewinds": number("imports and clears on record that could discard the last transactions (-F, -X, -T, checkpoint)"),
    "rewind_s": number("the newest of these, seconds since the epoch"),
    "trims": number("zpool trim on record"),
    "trim_s": number("the newest of these, seconds since the epoch"),
    "history_since_s": number("the time of the first line of the history, seconds since the epoch"),
    "history": words("the lines of these commands, the oldest first"),
}
# the heading and the empty line at the end show that all of it was seen
STAMP = len("2026-01-01.00:00:00 ")
KEEP = r"^History for |^$|zpool (import|clear|trim|create) "
FIRST = r"^\d{4}-\d\d-\d\d\.\d\d:\d\d:\d\d "
_STAMP = re.compile(FIRST)
_LINE = re.compile(r"(\d{4}-\d\d-\d\d\.\d\d:\d\d:\d\d)(?: \(\d+ms\))? zpool (\w+) (.*)")
# nothing stands after the last word: zfs_save_arguments() of libzfs puts a blank before each argument
_KINDS = {
    "imports_without_log": (
        "import_without_log_s",
        "import",
        re.compile(r"(?:^|\s)-(?=[A-Za-z]*+(?:\s|$))[A-Za-ln-z]*+m"),
    ),
    "rewinds": ("rewind_s", "import|clear", re.compile(r"(?:^|\s)(?:-[A-Za-z]*[FXT]|--rewind-to-checkpoint)")),
    "trims": ("trim_s", "trim", re.compile(r"")),
}
_TRIM_STOPPED = re.compile(r"(?:^|\s)(?:-[a-z]*[cs]|--(?:cancel|suspend)(?=\s|$))")


def request(pool: Subject, facts: Facts) -> Run:
    return Run(("zpool", "history", pool.name), package="zfsutils-linux", keep=KEEP, first=FIRST)


def parse(reply: Output, pool: Subject) -> Iterator[Fact]:
    """How often, and when last; raises ValueError when the beginning or the end of the history is missing."""
    seen = lines(reply.text, pool)
    if seen:
        yield Fact(pool, "history_since_s", known(seconds(seen[0][:STAMP]), seen[0][:STAMP], reply.command))
    seen = tuple(line for line in seen if len(line) > STAMP)
    found = [match for line in seen if (match := _LINE.fullmatch(line))]
    yield Fact(pool, "history", known(seen, f"{len(seen)} lines", reply.command))
    for name, (when, commands, options) in _KINDS.items():
        hits = [each for each in found if re.fullmatch(commands, each[2]) and options.search(each[3])]
        hits = [each for each in hits if not (each[2] == "trim" and _TRIM_STOPPED.search(each[3]))]
        last = max(hits, key=lambda each: each[1], default=None)
        text = f"{last[1]} zpool {last[2]} {last[3]}" if last else f"no such command in {len(found)} lines"
        yield Fact(pool, name, known(len(hits), text, "zpool history {subject}"))
        if last:
            yield Fact(pool, when, known(seconds(last[1]), text, "zpool history {subject}"))


def lines(text: str, pool: Subject) -> tuple[str, ...]:
    """The lines that were kept of a whole history; raises ValueError."""
    first, *seen = text.split("\n")
    if first != f"History for '{pool.name}':" or seen[-2:] != ["", ""] or has_surrogates(text):
        raise ValueError("not a whole history")
    if len(seen[0]) == STAMP and _STAMP.match(seen[0]):
        first, *seen = seen
    if not all(not line or (_STAMP.match(line) and re.search(KEEP, line)) for line in seen):
        raise ValueError("a line that is no command of the past, or none that was asked for")
    return tuple(line for line in (first, *seen) if _STAMP.match(line))


def seconds(stamp: str) -> int:
    """Since the epoch. Raises ValueError."""
    return timegm(strptime(stamp.strip(), "%Y-%m-%d.%H:%M:%S"))
