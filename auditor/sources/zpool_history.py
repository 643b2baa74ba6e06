"""``zpool history`` and ``zpool events``: what a pool has been through, as its own records and the kernel have it."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Iterator, Sequence
from time import strptime

from auditor.facts import Fact, Spec, Subject, known
from auditor.host.request import NAME, Output, Run, command
from auditor.sources.source import source
from auditor.text import has_surrogates

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


_HISTORY = command("zpool history", "-i", NAME, apart="-i -l")
_EVENTS = command("zpool events", "-H -v", NAME)


@source(
    "zpool_history",
    "pool",
    ask=lambda pool, _: Run(("zpool", "history", pool.name), package="zfsutils-linux", keep=KEEP, first=FIRST),
    runs=(_HISTORY,),
    facts={
        "imports_without_log": Spec.number("imports with -m on record: told to go on without a log device"),
        "import_without_log_s": Spec.number("the newest of these, seconds since the epoch"),
        "rewinds": Spec.number(
            "imports and clears on record that could discard the last transactions (-F, -X, -T, checkpoint)"
        ),
        "rewind_s": Spec.number("the newest of these, seconds since the epoch"),
        "trims": Spec.number("zpool trim on record"),
        "trim_s": Spec.number("the newest of these, seconds since the epoch"),
        "history_since_s": Spec.number("the time of the first line of the history, seconds since the epoch"),
        "history": Spec.words("the lines of these commands, the oldest first"),
    },
    title="history of",
)
def history(reply: Output, pool: Subject) -> Iterator[Fact]:
    """``zpool history``: commands of the past that decide what a pool is worth: imports that gave up a log or went back in
    time, and TRIM. (man 8 zpool-history; OpenZFS cmd/zpool/zpool_main.c print_history_records)

    Who may do anything that is logged, a snapshot for one (man 8 zfs-allow), may have any text logged with it, newlines and
    dates included (zfs_secpolicy_log_history() in module/zfs/zfs_ioctl.c). So a line may be a forgery: it may make a verdict
    worse, never better. Of several the newest counts, wherever it stands.

    The history of an old pool has 100,000 lines and more; only lines of these commands are kept, and recorded, and of the first
    line its time: older ones are overwritten when the ring is full (spa_history_write() in module/zfs/spa_history.c). Nobody
    can forge that time: it is the kernel's, of the record that comes first. Times are in UTC, because commands are run with
    TZ=UTC. Needs root. How often, and when last; raises ValueError when the beginning or the end of the history is missing."""
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
    return timegm(strptime(stamp.strip(), "%Y-%m-%d.%H:%M:%S"))


# more than in zpool_history.KEEP: what the kernel did may name any of these words
COMMANDS = r"^\d{4}-\d\d-\d\d\.\d\d:\d\d:\d\d (\(\d+ms\) )?zpool (import|clear|trim|create) "
TAKEN_UP = (
    r"^\d{4}-\d\d-\d\d\.\d\d:\d\d:\d\d \[txg:\d+\] (?:create|open|import) "
    r"pool version \d+; software version [^;]{1,80}; uts "
)
INTERNAL_HISTORY_KEEP = rf"^History for |^$|{COMMANDS}|{TAKEN_UP}"
_BY = re.compile(rf"{TAKEN_UP}([^ .]*)")  # of a full name the first label: it may have been given the others later
# as it is called before it has a name (Linux include/linux/uts.h UTS_NODENAME; hostname(5)); sethostname(2) takes an empty one
NAMELESS = frozenset({"", "(none)", "localhost"})


@source(
    "zpool_history_internal",
    "pool",
    ask=lambda pool, _: Run(
        ("zpool", "history", "-i", pool.name), package="zfsutils-linux", keep=INTERNAL_HISTORY_KEEP
    ),
    runs=(_HISTORY,),
    facts={
        "history_again": Spec.words("the lines of the commands that zpool history is asked for, the oldest first"),
        "taken_up": Spec.words(
            "SECONDS=HOST of each creation or import by a named host (HOST is a number), the oldest first"
        ),
    },
    title="history of what ran by itself on",
)
def internal_history(reply: Output, pool: Subject) -> Iterator[Fact]:
    """``zpool history -i POOL``: the history of a pool once more, as a second look beside ``zpool history POOL``, and which
    hosts took it up.

    Nothing numbers what is in it, and no other command prints it. ``-i`` adds what the kernel did by itself
    (print_history_records() in cmd/zpool/zpool_main.c): of that only the lines are kept that it writes when a pool is created,
    and each time that a host takes it up, with the name of that host (spa_history_log_version() in module/zfs/spa_history.c;
    "open" in spa_load_impl(), "import" in spa_import()). No name leaves this module: hosts are numbered. A pool that is taken
    up before the host has its name (in an initrd) tells nothing so. Not ``-l``: for it the C library looks up the names of
    users, and may ask a daemon or another host for them. Needs root. Raises ValueError when the beginning or the end of the
    history is missing."""
    text = reply.text.split("\n")
    hosts = {line: hit[1].lower() for line in text if (hit := _BY.match(line))}
    seen = lines("\n".join(line for line in text if line not in hosts), pool)
    named = [(line, hosts[line]) for line in text if hosts.get(line, "(none)") not in NAMELESS]
    numbers = {name: i for i, name in enumerate(dict.fromkeys(name for _, name in named), 1)}
    times = tuple(f"{seconds(line[:STAMP])}={numbers[name]}" for line, name in named)
    yield Fact(pool, "taken_up", known(times, f"{len(times)} times, by {len(numbers)} hosts", reply.command))
    yield Fact(pool, "history_again", known(seen, f"{len(seen)} lines", reply.command))


CLASSES = {  # include/sys/fm/fs/zfs.h
    "events_deadman": "ereport.fs.zfs.deadman",
    "events_io_failure": "ereport.fs.zfs.io_failure",
    "events_delay": "ereport.fs.zfs.delay",
    "events_direct_read": "ereport.fs.zfs.dio_verify_rd",
    "events_direct_write": "ereport.fs.zfs.dio_verify_wr",
    "events_authentication": "ereport.fs.zfs.authentication",
    "events_probe_failure": "ereport.fs.zfs.probe_failure",
    "events_removed": "resource.fs.zfs.removed",
    "events_cache_file": "ereport.fs.zfs.config_cache_write",
}
CREATED = "sysevent.fs.zfs.pool_create"  # include/sys/sysevent/eventdefs.h ESC_ZFS_POOL_CREATE
COUNTED = {
    "events_deadman": Spec.number("of them: an I/O hung"),
    "events_io_failure": Spec.number("of them: the pool was suspended because I/O failed"),
    "events_delay": Spec.number("of them: an I/O was slow"),
    "events_direct_read": Spec.number("of them: a checksum did not match in a read by Direct I/O"),
    "events_direct_write": Spec.number("of them: a checksum did not match in a write by Direct I/O, which failed"),
    "events_authentication": Spec.number("of them: an encrypted block could not be decrypted or authenticated"),
    "events_probe_failure": Spec.number("of them: a device could neither be read nor written any more"),
    "events_removed": Spec.number("of them: a device was gone"),
    "events_cache_file": Spec.number("of them: the cache file of pools could not be written"),
}
LINE = re.compile(r"([A-Z][a-z]{2} [ \d]\d \d{4} +[\d:]++\.\d++)[^\t]*+\t([a-z][\w.]*)")
DROPPED = re.compile(r"dropped \d+ events")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@source(
    "zpool_events",
    "pool",
    ask=lambda pool, _: Run(("zpool", "events", "-H", pool.name), package="zfsutils-linux"),
    runs=(_EVENTS,),
    facts={**COUNTED, "events": Spec.words("TIME CLASS of each event, the oldest first, as the list has them")},
)
def events(reply: Output, pool: Subject) -> Iterator[Fact]:
    """``zpool events -H POOL``: what the kernel reported of a pool, as far as it still remembers. Needs root.

    One line an event, time TAB class (zpool_do_events_short() in cmd/zpool/zpool_main.c). The kernel keeps the newest
    zfs_zevent_len_max of all pools (512) since boot or since somebody cleared them, so that none is there proves nothing of the
    time before the oldest that is. What came before the pool was created belongs to another pool of that name. Counts; raises
    ValueError when there is no event at all: the import of the pool is one, so they were cleared."""
    seen: list[str] = []
    for line in reply.text.splitlines():
        if found := LINE.fullmatch(line):
            seen.append(event(found))
        elif not DROPPED.fullmatch(line):
            raise ValueError(f"not an event: {line[:80]}")
    if not seen:
        raise ValueError("no event at all: they were cleared")
    yield Fact(pool, "events", known(tuple(seen), f"{len(seen)} events", reply.command))
    yield from counts(pool, seen, reply.command)


def event(found: re.Match[str]) -> str:
    """What a line of LINE says, as ``2026-11-21 10:00:02.000000001 CLASS``: in this form the order of words is that of time."""
    month, day, year, time = found[1].split()
    if month not in _MONTHS:
        raise ValueError(f"not an event: {found[0][:80]}")
    return f"{year}-{_MONTHS.index(month) + 1:02}-{int(day):02} {time} {found[2]}"


def counts(pool: Subject, events: Sequence[str], command: str) -> Iterator[Fact]:
    """The facts of COUNTED from the events of a pool of this name, the oldest first; there is at least one."""
    pairs = [each.rsplit(" ", 1) for each in events]
    created = max((at for at, (_, name) in enumerate(pairs) if name == CREATED), default=0)
    seen = [(time.partition(".")[0], name) for time, name in pairs[created:]]
    since = f"of {len(seen)} events since {seen[0][0]}"
    for name, class_ in CLASSES.items():
        times = [time for time, each in seen if each == class_]
        text = f"{len(times)} {class_} {since}" + (f", the last {times[-1]}" if times else "")
        yield Fact(pool, name, known(len(times), text, command))


# zpool_do_events_next() in cmd/zpool/zpool_main.c: a line as without -v, then each member on its own, indented by 8
ALL_EVENTS_KEEP = r"^[A-Z][a-z]{2} [ \d]\d \d{4} |^        (pool|eid) = |^dropped \d+ events$"
_POOL = re.compile(r'        pool = "([^"]+)"')
_NUMBER = re.compile(r"        eid = 0x([\da-f]{1,16})")


@source(
    "zpool_events_all",
    "host",
    ask=Run(("zpool", "events", "-H", "-v"), package="zfsutils-linux", keep=ALL_EVENTS_KEEP),
    runs=(_EVENTS,),
    facts={"events": Spec.words("NUMBER TIME CLASS POOL of each event that the kernel still remembers, of all pools")},
    title="events of the pools",
)
def all_events(reply: Output, host: Subject) -> Iterator[Fact]:
    """``zpool events -H -v``: the events of all pools with their numbers, a second look beside ``zpool events -H POOL``.

    The kernel numbers the events of all pools one after the other, from 1 when its module is loaded (zevent_eid in
    module/zfs/fm.c); the oldest are forgotten, so what it remembers has no gap. Only time, class, pool and number of each are
    kept, and recorded: the rest says what was done with which dataset. Needs root. Raises ValueError for an event without a
    number, with two of them, or with two pools. Some events have no pool: they are told of each (zpool_do_events_next())."""
    seen: list[tuple[str, list[str], list[str]]] = []
    for line in reply.text.splitlines():
        if found := LINE.fullmatch(line):
            seen.append((event(found), [], []))
        elif seen and (found := _NUMBER.fullmatch(line)):
            seen[-1][1].append(str(int(found[1], 16)))
        elif seen and (found := _POOL.fullmatch(line)):
            seen[-1][2].append(found[1])
        elif not DROPPED.fullmatch(line):
            raise ValueError(f"not an event: {line[:80]}")
    if not seen or not all(len(numbers) == 1 and len(pools) < 2 for _, numbers, pools in seen):
        raise ValueError("an event without its number, or no event at all")
    events = tuple(f"{number} {what} {''.join(pools)}" for what, (number,), pools in seen)
    if len({each.partition(" ")[0] for each in events}) < len(events):
        raise ValueError("two events with one number")
    yield Fact(host, "events", known(events, f"{len(events)} events", reply.command))
