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
    Spec,
    Subject,
    Unknown,
    is_true,
    join,
    known,
    unknown,
    value_of,
)
from auditor.model.derivation import catch_missing, derivation, every, evidence, gaps, need
from auditor.text import often, quoted

UNFINISHED = ("in progress", "paused")
PARTIAL = {"resilver": "a resilver", "errorscrub": "a scrub of known errors only (zpool scrub -e)"}
DAY_S = 86400.0


@derivation(
    "pool",
    scrub_age_days=Spec.real("days since the last scrub ended without being canceled"),
    unscrubbed_days=Spec.real("days for which it is certain that no scrub has ended without being canceled"),
    ever_scrubbed=Spec.flag("a scrub is on record"),
    age_days=Spec.real("days since the pool was created"),
)
def age(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """How long ago a pool was scrubbed and created, at the moment when the host was looked at.

    zpool status remembers the last scan only: after a resilver nothing is known of the scrub before it."""
    yield Fact(pool, "ever_scrubbed", _ever(pool, facts))
    yield Fact(pool, "scrub_age_days", _scrub(pool, facts))
    yield Fact(pool, "unscrubbed_days", _without(pool, facts))
    yield Fact(pool, "age_days", since(facts, Subject("dataset", pool.name), "creation", "created"))


@catch_missing
def _ever(pool: Subject, facts: Facts) -> Judged:
    function = need(facts.get(pool, "scan_function"))
    if function.value in PARTIAL:
        what = PARTIAL[str(function.value)]
        return unknown(f"{pool.name}: the last scan was {what}; zpool status does not remember the scrub before it")
    return Known(function.value == "scrub", function.evidence)


@catch_missing
def _scrub(pool: Subject, facts: Facts) -> Judged:
    function, state = need(facts.get(pool, "scan_function")), need(facts.get(pool, "scan_state"))
    if function.value != "scrub":
        need(_ever(pool, facts))
        return unknown(f"{pool.name}: no scrub is on record")
    if state.value in UNFINISHED:
        text = f"{pool.name}: a scrub is {state.value}; zpool status does not remember the scrub before it"
        paused = state.value == "paused"
        return unknown(text, f"zpool scrub {quoted(pool.name)}" if paused else "wait until it has ended")
    if state.value != "finished":
        return unknown(f"{pool.name}: the last scrub was {state.value}; when one last finished is not on record")
    return since(facts, pool, "scan_end_s", "scrub finished")


@catch_missing
def _without(pool: Subject, facts: Facts) -> Judged:
    """Each scan that begins takes the place of the one before it, of whatever kind: since the last one ended, or, where it
    has not, since it began, no scrub has ended."""
    function, state = need(facts.get(pool, "scan_function")), need(facts.get(pool, "scan_state"))
    if function.value == "none":
        return unknown(f"{pool.name}: no scrub is on record")
    if state.value in UNFINISHED:
        return since(facts, pool, "scan_start_s", f"{function.value} {state.value}, begun")
    return since(facts, pool, "scan_end_s", f"{function.value} {state.value}")


@catch_missing
def since(facts: Facts, subject: Subject, name: str, what: str) -> Judged:
    """Days between a moment (a fact in seconds since the epoch) and the audit; what: words for the evidence."""
    then = need(facts.get(subject, name))
    days = (facts.now - then.number()) / DAY_S
    if days < -1:
        return unknown(f"{subject.name}: {what} {-days:.0f} days in the future: the clock of this host is wrong")
    seen = Evidence(f"{what} {_ago(days)}", then.evidence[0].command.replace("{subject}", quoted(subject.name)))
    return Known(max(days, 0.0), (seen,))


def _ago(days: float) -> str:
    """today, 1 day ago, 6 days ago."""
    whole = round(max(days, 0.0))
    return "today" if not whole else f"{whole} day{'s' if whole > 1 else ''} ago"


@derivation("pool", clustered=Spec.flag("a cluster manager was seen to move it between hosts"))
def clustered(pool: Subject, facts: Facts) -> Judged:
    """Whether Pacemaker imports it on one host or another. Other managers, and a person, are not seen."""
    found = need(facts.get(HOST, "cluster_pools"))
    return Known(pool.name in found.words(), found.evidence)


BY_HAND_DAYS = 100
AWAY_DAYS, YEAR_DAYS = 30, 365


@derivation(
    "pool",
    import_without_log_days=Spec.real("days since the last import with -m"),
    rewind_days=Spec.real("days since the last import or clear that could discard transactions"),
    history_days=Spec.real("days for which zpool history remembers every command"),
    history_whole=Spec.flag("its history goes back to the day on which the pool was created; never false"),
    returns=Spec.number(
        "times in the last year that this host took it up again from another one that had had it for 30 days at most"
    ),
    trimmed=Spec.flag(
        "its free space is trimmed: by itself, or on a schedule (perhaps, where by hand in the last 100 days)"
    ),
)
def past(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """What zpool history remembers, whether hosts take turns with the pool, and whether anything trims it."""
    yield Fact(pool, "import_without_log_days", since(facts, pool, "import_without_log_s", "imported without its log"))
    yield Fact(pool, "rewind_days", since(facts, pool, "rewind_s", "rewound"))
    yield Fact(pool, "history_days", since(facts, pool, "history_since_s", "the history begins"))
    yield Fact(pool, "history_whole", _whole(pool, facts))
    yield Fact(pool, "returns", _returns(pool, facts))
    yield Fact(pool, "trimmed", _trimmed(pool, facts))


@catch_missing
def _returns(pool: Subject, facts: Facts) -> Judged:
    """Of the host that came back most often, whichever it is: somebody who may have a line of his own logged (zpool_history)
    may bring a return about, and take none away. A pool that moved for good, or a host that was given another name, does not
    come back."""
    found = need(facts.get(pool, "taken_up"))
    times = [(int(seconds), host) for seconds, host in found.pairs()]
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


@catch_missing
def _whole(pool: Subject, facts: Facts) -> Judged:
    """The history is a ring: what is gone from it nobody can tell."""
    root = Subject("dataset", pool.name)
    first, created = need(facts.get(pool, "history_since_s")), need(facts.get(root, "creation"))
    days = (first.number() - created.number()) / DAY_S
    if days <= 1:
        return Known(True, first.evidence)
    late = f"zpool history of {pool.name} begins {days:.0f} days after the pool was created"
    return unknown(f"{late}: what was before is gone")


def _trimmed(pool: Subject, facts: Facts) -> Judged:
    """One way is enough; none must be known to be used."""
    ways = (_automatic(pool, facts), _timer(pool, facts), _cron(pool, facts), *_nixos(facts), _by_hand(pool, facts))
    for way in ways:
        if is_true(way):
            return way
    if unknowns := gaps(ways):
        return join(unknowns)
    return Known(False, evidence(*ways))


@catch_missing
def _automatic(pool: Subject, facts: Facts) -> Judged:
    found = need(facts.get(pool, "autotrim"))
    return Known(found.value == "on", found.evidence)


@catch_missing
def _timer(pool: Subject, facts: Facts) -> Judged:
    timers = need(facts.get(HOST, "trim_timers"))
    return Known(pool.name in timers.words(), timers.evidence)


def _nixos(facts: Facts) -> list[Judged]:
    """The timer of NixOS, which is for all pools; of no other system."""
    ids = facts.get(HOST, "os_ids")
    if isinstance(ids, Unknown):
        return [ids]
    return [facts.get(HOST, "trim_nixos")] if "nixos" in ids.words() else []


@catch_missing
def _cron(pool: Subject, facts: Facts) -> Judged:
    """Debian's job, for a pool whose drives are all NVMe."""
    job = facts.get(HOST, "trim_cron")
    if isinstance(job, Unknown) or job.value is False:
        return job
    leaves = facts.linked(pool, "leaves")
    disks = list(dict.fromkeys(disk for leaf in leaves for disk in facts.linked(leaf, "disks")))
    transports = [facts.get(disk, "transport") for disk in disks]
    every((facts.get(pool, "leaves"), *(facts.get(leaf, "disks") for leaf in leaves), *transports))
    if not disks:
        return unknown(f"no disk of pool {pool} is known")
    others = [disk for disk, by in zip(disks, transports, strict=True) if value_of(by) != "nvme"]
    text = f"Debian's job trims pools of NVMe drives alone, and {others[0]} is none" if others else ""
    return Known(not others, (Evidence(text, "cat /usr/lib/zfs-linux/trim"),) if others else job.evidence)


@catch_missing
def _by_hand(pool: Subject, facts: Facts) -> Judged:
    """Never true: whoever may take a snapshot may write such a line."""
    trims = need(facts.get(pool, "trims"))
    if trims.value == 0:
        return Known(False, trims.evidence)
    days = need(since(facts, pool, "trim_s", "trimmed"))
    assert isinstance(days.value, float)
    if days.value > BY_HAND_DAYS:
        return Known(False, (*days.evidence, Evidence(f"{trims.value} times by hand")))
    text = (
        f"a zpool trim is on record {days.value:.0f} days ago: that the drives were trimmed zpool history does not show"
    )
    return unknown(text, f"zpool status -t {quoted(pool.name)}")


@derivation("dataset", copied_s=Spec.number("when the newest snapshot was made that a bookmark marks as sent; 0: none"))
def copied(dataset: Subject, facts: Facts) -> Judged:
    """Up to which moment a copy elsewhere may have it: no proof of one. Who may make bookmarks may make any (man 8 zfs-allow),
    and a copy that leaves no bookmark is not seen: what is lost with the pool is at least what came later."""
    seen = need(facts.get(Subject("pool", dataset.name.partition("/")[0]), "bookmarks"))
    own = [each for each in seen.words() if each.rpartition(" ")[0].partition("#")[0] == dataset.name]
    newest = max(own, key=lambda each: int(each.rpartition(" ")[2]), default="")
    name, _, made = newest.rpartition(" ")
    return known(int(made or 0), name or f"no bookmark of {dataset}", "zfs list -t bookmark {subject}")
