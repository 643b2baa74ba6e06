"""What a pool and its history remember: when it was created, scrubbed, trimmed, rewound, and taken up by other hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    flag,
    is_true,
    join,
    number,
    pairs_of,
    real,
    unknown,
    words_of,
)
from auditor.model.derivation import derivation, every
from auditor.text import often, quoted

# -- age -----------------------------------------------------------------------------------------------------------

UNFINISHED = ("in progress", "paused")
PARTIAL = {"resilver": "a resilver", "errorscrub": "a scrub of known errors only (zpool scrub -e)"}
DAY_S = 86400.0


@derivation(
    "pool",
    {
        "scrub_age_days": real("days since the last scrub ended without being canceled"),
        "unscrubbed_days": real("days for which it is certain that no scrub has ended without being canceled"),
        "ever_scrubbed": flag("a scrub is on record"),
        "age_days": real("days since the pool was created"),
    },
)
def age(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """How long ago a pool was scrubbed and created, at the moment when the host was looked at.

    zpool status remembers the last scan only: after a resilver nothing is known of the scrub before it.
    """
    yield Fact(pool, "ever_scrubbed", _ever(pool, facts))
    yield Fact(pool, "scrub_age_days", _scrub(pool, facts))
    yield Fact(pool, "unscrubbed_days", _without(pool, facts))
    yield Fact(pool, "age_days", since(facts, Subject("dataset", pool.name), "creation", "created"))


def _ever(pool: Subject, facts: Facts) -> Known | Unknown:
    function = facts.get(pool, "scan_function")
    if isinstance(function, Unknown):
        return function
    if function.value in PARTIAL:
        what = PARTIAL[str(function.value)]
        return unknown(f"{pool.name}: the last scan was {what}; zpool status does not remember the scrub before it")
    return Known(function.value == "scrub", function.evidence)


def _scrub(pool: Subject, facts: Facts) -> Known | Unknown:
    function, state = facts.get(pool, "scan_function"), facts.get(pool, "scan_state")
    if isinstance(function, Unknown):
        return function
    if isinstance(state, Unknown):
        return state
    if function.value != "scrub":
        ever = _ever(pool, facts)
        return ever if isinstance(ever, Unknown) else unknown(f"{pool.name}: no scrub is on record")
    if state.value in UNFINISHED:
        text = f"{pool.name}: a scrub is {state.value}; zpool status does not remember the scrub before it"
        return unknown(
            text, f"zpool scrub {quoted(pool.name)}" if state.value == "paused" else "wait until it has ended"
        )
    if state.value != "finished":
        return unknown(f"{pool.name}: the last scrub was {state.value}; when one last finished is not on record")
    return since(facts, pool, "scan_end_s", "scrub finished")


def _without(pool: Subject, facts: Facts) -> Known | Unknown:
    """Each scan that begins takes the place of the one before it, of whatever kind: since the last one ended, or, where it
    has not, since it began, no scrub has ended."""
    function, state = facts.get(pool, "scan_function"), facts.get(pool, "scan_state")
    if isinstance(function, Unknown):
        return function
    if isinstance(state, Unknown):
        return state
    if function.value == "none":
        return unknown(f"{pool.name}: no scrub is on record")
    if state.value in UNFINISHED:
        return since(facts, pool, "scan_start_s", f"{function.value} {state.value}, begun")
    return since(facts, pool, "scan_end_s", f"{function.value} {state.value}")


def since(facts: Facts, subject: Subject, name: str, what: str) -> Known | Unknown:
    """Days between a moment (a fact in seconds since the epoch) and the audit; what: words for the evidence."""
    then = facts.get(subject, name)
    if isinstance(then, Unknown):
        return then
    assert isinstance(then.value, int)
    days = (facts.now - then.value) / DAY_S
    if days < -1:
        return unknown(f"{subject.name}: {what} {-days:.0f} days in the future: the clock of this host is wrong")
    seen = Evidence(f"{what} {_ago(days)}", then.evidence[0].command.replace("{subject}", quoted(subject.name)))
    return Known(max(days, 0.0), (seen,))


def _ago(days: float) -> str:
    """today, 1 day ago, 6 days ago."""
    whole = round(max(days, 0.0))
    return "today" if not whole else f"{whole} day{'s' if whole > 1 else ''} ago"


# -- past ----------------------------------------------------------------------------------------------------------

BY_HAND_DAYS = 100
AWAY_DAYS, YEAR_DAYS = 30, 365


@derivation(
    "pool",
    {
        "import_without_log_days": real("days since the last import with -m"),
        "rewind_days": real("days since the last import or clear that could discard transactions"),
        "history_days": real("days for which zpool history remembers every command"),
        "history_whole": flag("its history goes back to the day on which the pool was created; never false"),
        "returns": number(
            "times in the last year that this host took it up again from another one that had had it for 30 days at most"
        ),
        "trimmed": flag(
            "its free space is trimmed: by itself, or on a schedule (perhaps, where by hand in the last 100 days)"
        ),
    },
)
def past(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """How long ago what zpool history remembers was done, whether hosts take turns with the pool, and whether anything
    trims it.
    """
    yield Fact(pool, "import_without_log_days", since(facts, pool, "import_without_log_s", "imported without its log"))
    yield Fact(pool, "rewind_days", since(facts, pool, "rewind_s", "rewound"))
    yield Fact(pool, "history_days", since(facts, pool, "history_since_s", "the history begins"))
    yield Fact(pool, "history_whole", _whole(pool, facts))
    yield Fact(pool, "returns", _returns(pool, facts))
    yield Fact(pool, "trimmed", _trimmed(pool, facts))


def _returns(pool: Subject, facts: Facts) -> Judged:
    """Of the host that came back most often, whichever it is: somebody who may have a line of his own logged (zpool_history)
    may bring a return about, and take none away. A pool that moved for good, or a host that was given another name, does not
    come back."""
    found = facts.get(pool, "taken_up")
    if isinstance(found, Unknown):
        return found
    times = [(int(seconds), host) for seconds, host in pairs_of(found)]
    if not times:
        return unknown(f"zpool history -i {pool.name}: no host that had a name is on record as having taken it up")
    count, last = max(_back(times, each, facts.now) for each in {host for _, host in times})
    if not count:
        return Known(0, (Evidence("no host took it up in turns with this one", found.evidence[0].command),))
    days = round((facts.now - last) / DAY_S)
    text = (
        f"another host took it up, and this one again within {AWAY_DAYS} days: {often(count)}, the last {days} days ago"
    )
    return Known(count, (Evidence(text, "zpool history -i {subject} | grep ' uts '"),))


def _back(times: Sequence[tuple[int, str]], here: str, now: float) -> tuple[int, int]:
    """(how often a host took it up again soon after another one had, when last)."""
    away_since, was_here, count, last = 0, False, 0, 0
    for seconds, host in times:
        if host != here:
            away_since = away_since or seconds
            continue
        if away_since and was_here and seconds - away_since <= AWAY_DAYS * DAY_S:
            recent = now - seconds <= YEAR_DAYS * DAY_S
            count, last = count + recent, seconds
        away_since, was_here = 0, True
    return count, last


def _whole(pool: Subject, facts: Facts) -> Judged:
    """The history is a ring: what is gone from it nobody can tell."""
    first, created = facts.get(pool, "history_since_s"), facts.get(Subject("dataset", pool.name), "creation")
    if isinstance(first, Unknown):
        return first
    if isinstance(created, Unknown):
        return created
    assert isinstance(first.value, int)
    assert isinstance(created.value, int)
    days = (first.value - created.value) / DAY_S
    if days <= 1:
        return Known(True, first.evidence)
    return unknown(
        f"zpool history of {pool.name} begins {days:.0f} days after the pool was created: what was before is gone"
    )


def _trimmed(pool: Subject, facts: Facts) -> Judged:
    """One way is enough; none must be known to be used."""
    ways = (_automatic(pool, facts), _timer(pool, facts), _cron(pool, facts), *_nixos(facts), _by_hand(pool, facts))
    for way in ways:
        if is_true(way):
            return way
    if unknowns := [way for way in ways if isinstance(way, Unknown)]:
        return join(unknowns)
    return Known(False, tuple(piece for way in ways if isinstance(way, Known) for piece in way.evidence))


def _automatic(pool: Subject, facts: Facts) -> Judged:
    found = facts.get(pool, "autotrim")
    return found if isinstance(found, Unknown) else Known(found.value == "on", found.evidence)


def _timer(pool: Subject, facts: Facts) -> Judged:
    match facts.get(HOST, "trim_timers"):
        case Known(tuple() as pools, evidence):
            return Known(pool.name in pools, evidence)
        case Unknown() as why:
            return why
        case _:
            return Known(False, ())


def _nixos(facts: Facts) -> list[Judged]:
    """The timer of NixOS, which is for all pools; of no other system."""
    ids = facts.get(HOST, "os_ids")
    if isinstance(ids, Unknown):
        return [ids]
    return [facts.get(HOST, "trim_nixos")] if "nixos" in words_of(ids) else []


def _cron(pool: Subject, facts: Facts) -> Judged:
    """Debian's job, for a pool whose drives are all NVMe."""
    job = facts.get(HOST, "trim_cron")
    if isinstance(job, Unknown) or job.value is False:
        return job
    leaves = facts.linked(pool, "leaves")
    disks = {disk for leaf in leaves for disk in facts.linked(leaf, "disks")}
    found = every(
        (facts.get(pool, "leaves"), *(facts.get(leaf, "disks") for leaf in leaves), *_transports(disks, facts))
    )
    if isinstance(found, Unknown):
        return found
    if not disks:
        return unknown(f"no disk of pool {pool} is known")
    others = [disk for disk in sorted(disks) if not _nvme(facts.get(disk, "transport"))]
    text = f"Debian's job trims pools of NVMe drives alone, and {others[0]} is none" if others else ""
    return Known(not others, (Evidence(text, "cat /usr/lib/zfs-linux/trim"),) if others else job.evidence)


def _nvme(transport: Judged) -> bool:
    return isinstance(transport, Known) and transport.value == "nvme"


def _transports(disks: set[Subject], facts: Facts) -> list[Judged]:
    return [facts.get(disk, "transport") for disk in sorted(disks)]


def _by_hand(pool: Subject, facts: Facts) -> Judged:
    """Never true: whoever may take a snapshot may write such a line."""
    trims = facts.get(pool, "trims")
    if isinstance(trims, Unknown):
        return trims
    if trims.value == 0:
        return Known(False, trims.evidence)
    days = since(facts, pool, "trim_s", "trimmed")
    if isinstance(days, Unknown):
        return days
    assert isinstance(days.value, float)
    if days.value > BY_HAND_DAYS:
        return Known(False, (*days.evidence, Evidence(f"{trims.value} times by hand")))
    text = (
        f"a zpool trim is on record {days.value:.0f} days ago: that the drives were trimmed zpool history does not show"
    )
    return unknown(text, f"zpool status -t {quoted(pool.name)}")
