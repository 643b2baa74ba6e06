"""What state a pool is in: its devices, errors, suspensions and unfinished transaction groups, what zpool status says beyond
these, the space that snapshots hold, its history, and pools that are not imported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from statistics import median

from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, is_true, known, unknown
from auditor.model.derivation import Missing, about_each, catch_missing, derivation, every, evidence, gaps
from auditor.model.vdev import THERE as IN_USE
from auditor.sources.block_devices import DeviceName
from auditor.sources.guests import Guest, GuestFile
from auditor.sources.udev import Label
from auditor.text import often, quoted, size

GONE = ("DEGRADED", "FAULTED", "UNAVAIL", "REMOVED", "UNKNOWN")


@derivation(
    "pool",
    legs_not_online=Spec.words("its data devices that are not ONLINE, with their state"),
    legs_offline=Spec.words("those that were taken offline"),
    legs_gone=Spec.words("those that are missing, faulted or degraded"),
)
def legs_in_use(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """Which legs of a pool are not in use, by name, whatever the pool reports: its state may lag behind theirs.

    Of log devices another rule speaks."""
    leaves = facts.need_linked(pool, "leaves")
    legs = [
        (leaf, facts.get(leaf, "state")) for leaf in leaves if facts.get(leaf, "allocation_class").or_none() != "log"
    ]
    unseen = gaps(state for _, state in legs)
    seen = [(leaf, state) for leaf, state in legs if isinstance(state, Known)]
    for name in legs_in_use.facts:
        states = {"legs_offline": ("OFFLINE",), "legs_gone": GONE}.get(name, (*GONE, "OFFLINE"))
        bad = [(leaf, state) for leaf, state in seen if state.value in states]
        named = tuple(f"{leaf.name} ({state.value})" if name == "legs_not_online" else leaf.name for leaf, state in bad)
        found = Known(named, about_each(bad) or (Evidence("each leg is ONLINE"),))
        yield Fact(pool, name, Unknown.join(unseen) if unseen and not bad else found)


RESILVERING = "One or more devices is currently being resilvered"
SEQUENTIAL = "One or more devices have been sequentially resilvered"
HOSTID = "Mismatch between pool hostid and system hostid"
# paragraphs that a rule explains, or that are only an offer (print_status_reason() in cmd/zpool/zpool_main.c)
EXPLAINED = (
    *(RESILVERING, SEQUENTIAL, HOSTID),
    *("One or more devices has experienced an error resulting in data corruption", "The pool is suspended because"),
    *("One or more devices are faulted in response to IO failures", "The pool metadata is corrupted"),
    *("One or more devices are configured to use a non-native block size", "An intent log record could not be read"),
    *("The pool is formatted using a legacy on-disk format", "Some supported"),
    "One or more features are enabled on the pool despite",
)
OF_A_DEVICE = "One or more devices "  # all others that begin so are explained where a rule speaks of that device
COUNTS = ("read_errors", "write_errors", "checksum_errors")


@derivation(
    "pool",
    sequential_unverified=Spec.flag("a device was resilvered sequentially, and the pool was not scrubbed since"),
    hostid_mismatch=Spec.flag("the pool bears another hostid than this host has now"),
    unexplained_status=Spec.word("the status: paragraph, where no rule is about it; else empty"),
)
def status_paragraph(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """What the status: paragraph of ``zpool status`` says beyond the devices. It tells the first of a fixed order, so what
    comes later is not known to be absent. (lib/libzfs/libzfs_status.c check_status(), texts of cmd/zpool/zpool_main.c, the
    same in 2.1.11 and 2.4.4)"""
    status = facts.need(pool, "status_text")
    text = str(status.value)
    yield Fact(pool, "sequential_unverified", _first_says(SEQUENTIAL, (RESILVERING,), status))
    yield Fact(pool, "hostid_mismatch", _first_says(HOSTID, (RESILVERING, SEQUENTIAL), status))
    explained = not text or text.startswith(EXPLAINED)
    if not explained and text.startswith(OF_A_DEVICE):
        leaves = facts.linked(pool, "leaves")
        counts = [facts.get(leaf, name).or_none() for leaf in leaves for name in COUNTS]
        explained = any(counts) or any(facts.get(leaf, "state").word("ONLINE") != "ONLINE" for leaf in leaves)
    yield Fact(pool, "unexplained_status", Known("" if explained else text, status.evidence))


def _first_says(what: str, earlier: tuple[str, ...], status: Known) -> Judged:
    """Whether it tells of this. An empty text says that there is nothing."""
    text = str(status.value)
    if text.startswith(earlier):
        why = f"zpool status tells one thing at a time, and this comes first: {text[:60]}"
        return unknown(why, "look again when that is fixed")
    return Known(text.startswith(what), status.evidence)


@derivation(
    "pool",
    leaves_with_checksum_errors=Spec.words("its devices that have delivered wrong data since import or zpool clear"),
)
def checksum_errors(pool: Subject, facts: Facts) -> Judged:
    """Which devices of a pool have had checksum errors: of several at once, what they share is likelier the cause than each.

    At least these where some could not be seen; none only where all were."""
    counts = [(leaf, facts.get(leaf, "checksum_errors")) for leaf in facts.need_linked(pool, "leaves")]
    wrong = [(leaf, count) for leaf, count in counts if isinstance(count, Known) and count.value]
    unseen = gaps(count for _, count in counts)
    if unseen and len(wrong) < 2:
        return Unknown.join(unseen)
    seen = tuple(piece for _, count in wrong or counts if isinstance(count, Known) for piece in count.evidence)
    return Known(tuple(leaf.name for leaf, _ in wrong), seen or (Evidence("the pool has no device"),))


@derivation("pool", errors_beyond=Spec.words("vdevs with redundancy and errors on more legs than they can lose now"))
def errors_beyond(pool: Subject, facts: Facts) -> Judged:
    """Where errors may have used up the redundancy: what is bad on one leg too many cannot be repaired. A leg that is
    resilvered counts as gone, so that errors of the other leg of a mirror are enough."""
    vdevs = facts.need_linked(pool, "vdevs")
    found = [(vdev, _beyond(vdev, facts)) for vdev in vdevs]
    bad = [(vdev, each) for vdev, each in found if is_true(each)]
    if not bad and (unseen := gaps(each for _, each in found)):
        return Unknown.join(unseen)
    seen = about_each(bad) or (Evidence("no vdev has errors on more legs than it can lose", "zpool status {subject}"),)
    return Known(tuple(vdev.name for vdev, _ in bad), seen)


def _is_counted(leaf: Subject, facts: Facts) -> bool:
    """Whether failures_left is less by this leg already: it is missing, or a resilver fills it."""
    present, resilvers = facts.get(leaf, "device_present"), facts.get(leaf, "resilvering")
    return facts.get(leaf, "state").word() not in IN_USE or present.or_none() is False or is_true(resilvers)


@catch_missing
def _beyond(vdev: Subject, facts: Facts) -> Judged:
    tolerated, _ = facts.values(vdev, "failures_tolerated", "leaves")
    counts = [(leaf, facts.get(leaf, name)) for leaf in facts.linked(vdev, "leaves") for name in COUNTS]
    bad = [(leaf, each) for leaf, each in counts if isinstance(each, Known) and each.number()]
    if not tolerated.number() or len({leaf for leaf, _ in bad}) > tolerated.number():
        return Known(bool(tolerated.number()), about_each(bad))
    if not bad:
        every(each for _, each in counts)
    left = facts.need(vdev, "failures_left") if bad else tolerated
    here = {leaf for leaf, _ in bad if not _is_counted(leaf, facts)}
    return Known(len(here) > left.number(), (*about_each(bad), *left.evidence))


@derivation(
    "pool",
    suspensions=Spec.number("times that it was suspended because I/O failed, at least, as far as anything remembers"),
)
def suspensions(pool: Subject, facts: Facts) -> Judged:
    """How often a pool was suspended, by its events and by the kernel's log: each forgets, and somebody may have cleared one.

    What one of them has seen counts; that there was none is the word of the events, which all suspensions are."""
    events, log = facts.get(pool, "events_io_failure"), facts.get(HOST, "kernel_log_suspended")
    if not (isinstance(events, Known) and events.value) and isinstance(log, Known):
        for (name, times), seen in zip(log.pairs(), log.evidence, strict=False):
            if name == pool.name:
                return Known(int(times), (seen,))
    return events


@derivation(
    "pool",
    txg_unfinished_ms=Spec.real("for how long its oldest unfinished TXG is quiescing or syncing; 0 where none is"),
)
def txg_unfinished(pool: Subject, facts: Facts) -> Judged:
    """For how long the oldest uncommitted TXG has been quiescing or syncing. Both times are of gethrtime(); the clock is
    read before the list, so the answer is too short by milliseconds. Unknown where there is such a TXG and no clock."""
    since = facts.need(pool, "txg_unfinished_since_ns")
    if since.value == 0:
        return Known(0.0, since.evidence)
    now = facts.need(pool, "kstat_clock_ns")
    return Known(round(max(now.number() - since.number(), 0) / 1e6, 3), evidence(since, now))


SIZES = ("used", "available", "referenced", "refreservation", "reservation")
NAMED = 3
NO_CLONE = ""
LEAST = 1 << 20  # bytes: of a dataset without a snapshot it is not quite zero


@derivation(
    "pool",
    snapshots_percent=Spec.number("share of the space for data that snapshots hold at least, percent"),
    snapshots_percent_most=Spec.number("share that they hold at most, where that is the same"),
    held_by_snapshots=Spec.words("DATASET (size) where they hold most"),
    **{"dataset.snapshots_bytes": Spec.number("what its own snapshots hold at least, bytes")},
)
def snapshot_space(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """How much of a pool snapshots hold, at least, and on which datasets; unknown unless the whole pool was looked at.

    It follows from what is read anyway: what a dataset uses beyond what it refers to and beyond what its children use or
    have reserved is held by its snapshots, or reserved for itself. Of a clone, which does not use what it shares with its
    origin, only an upper bound follows. (man 7 zfsprops: used, referenced, refreservation; module/zfs/dsl_dir.c
    dd_used_breakdown)"""
    found = _held(pool, facts)
    root = Subject("dataset", pool.name)
    space = _bytes(facts, root, "used") + _bytes(facts, root, "available")
    least = {name: bounds[0] for name, bounds in found.items() if bounds[0] >= LEAST}
    named = tuple(f"{name} ({size(count)})" for name, count in sorted(least.items(), key=lambda each: -each[1])[:NAMED])
    total, most = sum(least.values()), sum(bounds[1] for bounds in found.values())
    text = f"snapshots hold {size(total)} of {size(space)}" + (f", most of it on {', '.join(named)}" if named else "")
    hidden = f"what is reserved or cloned may hide {size(most - total)} more that snapshots hold"
    seen = (Evidence(text, f"zfs list -o space -r {quoted(pool.name)}"),)
    yield Fact(pool, "snapshots_percent", Known(total * 100 // space if space else 0, seen))
    same = Known(most * 100 // space if space else 0, seen)
    told = (most - total) * 100 < max(space, 1)
    yield Fact(pool, "snapshots_percent_most", same if told else unknown(hidden, f"zfs list -o space -r {pool.name}"))
    yield Fact(pool, "held_by_snapshots", Known(named, seen))
    for dataset in facts.linked(pool, "datasets"):
        yield Fact(dataset, "snapshots_bytes", Known(found[dataset.name][0], seen))


def _held(pool: Subject, facts: Facts) -> dict[str, tuple[int, int]]:
    """Dataset -> bytes that its snapshots hold (at least, at most)."""
    datasets = facts.need_linked(pool, "datasets")
    if Subject("dataset", pool.name) not in datasets:
        raise Missing(unknown(f"{pool}: not all of its datasets are audited"))
    children: dict[str, int] = defaultdict(int)
    for dataset in datasets:
        for name in ("origin", *SIZES):
            facts.need(dataset, name)
        counts = max(_bytes(facts, dataset, "used"), _bytes(facts, dataset, "reservation"))
        children[dataset.name.rpartition("/")[0]] += counts
    found = {}
    for dataset in datasets:
        own = _bytes(facts, dataset, "used") - children[dataset.name]
        beyond = own - _bytes(facts, dataset, "referenced")
        most = beyond if facts.get(dataset, "origin").word() == NO_CLONE else own
        found[dataset.name] = max(beyond - _bytes(facts, dataset, "refreservation"), 0), max(most, 0)
    return found


@derivation("pool", thin_promised=Spec.number("what all thin volumes that can be written to may still take, bytes"))
def thin_volumes(pool: Subject, facts: Facts) -> Judged:
    """Of each its size less what it refers to and has reserved. Unknown unless all datasets of the pool were looked at."""
    datasets, promised = facts.need_linked(pool, "datasets"), 0
    if Subject("dataset", pool.name) not in datasets:
        return unknown(f"{pool}: not all of its datasets are audited")
    for dataset in datasets:
        kind, readonly = facts.values(dataset, "type", "readonly")
        if (kind.value, readonly.value) == ("volume", "off"):
            whole, reserved, held = map(Known.number, facts.values(dataset, "volsize", "refreservation", "referenced"))
            promised += max(int(whole) - int(max(reserved, held)), 0) if reserved < whole else 0
    return known(promised, f"thin volumes may take {size(promised)} more", f"zfs list -t volume -r {pool.name}")


@derivation(
    "dataset",
    snapshot_room=Spec.number("what is available to the next snapshot, bytes"),
    snapshot_takes=Spec.number("what the next snapshot takes of that, as the refreservation is promised again, bytes"),
    snapshot_takes_most=Spec.number("the same at most, bytes"),
)
def next_snapshot(dataset: Subject, facts: Facts) -> Iterator[Fact]:
    """What a snapshot takes from all others: the smaller of what the dataset alone holds and its refreservation
    (module/zfs/dsl_dataset.c dsl_dataset_snapshot_reserve_space). AVAIL includes what is reserved and not yet written
    (dsl_dataset_space). A dataset alone holds what it refers to, unless snapshots or a clone's origin share it: then it
    uses more, or less."""
    names = ("used", "available", "referenced", "refreservation")
    found = facts.values(dataset, *names, "origin")
    used, available, referenced, reserved = (int(each.number()) for each in found[:4])
    seen = evidence(*found)
    most = min(referenced, reserved)
    yield Fact(dataset, "snapshot_room", Known(max(available - max(reserved - referenced, 0), 0), seen))
    yield Fact(dataset, "snapshot_takes_most", Known(most, seen))
    alone = found[4].value == NO_CLONE and used <= max(referenced, reserved) + LEAST
    part = unknown(
        f"{dataset} may have snapshots or children", f"zfs get -p written,usedbydataset {quoted(dataset.name)}"
    )
    yield Fact(dataset, "snapshot_takes", Known(most, seen) if alone else part)


GROWTH_DAYS, LEAST_DAYS, LEAST_POINTS = 60, 7, 6  # of snapshots that count; for less no estimate is made
NO_ESTIMATE = 36500


@derivation(
    "dataset",
    days_left=Spec.number("days until what is available is used up, at the rate of its snapshots; 36500: no estimate"),
    grows_daily=Spec.number("by how much it grew a day: the median between its snapshots, bytes"),
    growth_days=Spec.number("days between the first and last of these"),
    growth_points=Spec.number("days that have one of them"),
)
def growth(dataset: Subject, facts: Facts) -> Iterator[Fact]:
    """A straight line through what its snapshots refer to, and what it refers to now: the median of all slopes (Theil and
    Sen), which one bulk load or one DROP TABLE does not move. It looks no further ahead than twice its span. Snapshots and
    other datasets take more, so what is left is gone by then at the latest. Without a list of its snapshots there is no
    estimate: nothing else of the host remembers its size."""
    referenced, available = facts.values(dataset, "referenced", "available")
    listed = facts.get(dataset, "snapshots")
    daily = {int(made) // int(DAY_S): (int(made), int(held)) for made, held in map(str.split, listed.words())}
    now = int(facts.now)
    daily[now // int(DAY_S)] = now, int(referenced.number())
    points = [each for day, each in sorted(daily.items()) if 0 <= now - each[0] <= GROWTH_DAYS * DAY_S]
    days, rate, left = (points[-1][0] - points[0][0]) / DAY_S, 0, NO_ESTIMATE
    text = f"{len(points)} daily sizes are known: no estimate of its growth"
    if len(points) >= LEAST_POINTS and days >= LEAST_DAYS:
        rate = int(median((b - a) * DAY_S / (then - at) for (at, a), (then, b) in combinations(points, 2)))
        text = f"it grew by {size(rate)} a day, from {len(points)} daily sizes over {days:.0f} days"
        if rate > 0 and available.number() <= 2 * days * rate:
            left = available.number() // rate
    seen = (Evidence(text, "zfs list -d 1 -t snapshot -o creation,referenced {subject}"), *available.evidence)
    for name, number in zip(growth.facts, (left, max(rate, 0), int(days), len(points)), strict=True):
        yield Fact(dataset, name, Known(number, seen))


LATE, LATE_DAYS, FORGOTTEN_DAYS = 5, 1, 100  # intervals; days: a job that stopped longer ago was given up


@derivation("host", snapshots_late=Spec.words("datasets of databases whose regular snapshots stopped, and when"))
def snapshots_late(host: Subject, facts: Facts) -> Judged:
    """Regular are those of the last eight intervals that are alike; those of one moment are one. Late is one that has not
    come for five intervals and a day."""
    databases = facts.need_linked(host, "databases")
    places = dict.fromkeys(place for each in databases for place in facts.linked(each, "datasets"))
    listed = {place: facts.get(place, "snapshots") for place in places}
    found = {place: text for place, each in listed.items() if (text := _late(each.words(), facts.now))}
    if not found and (unseen := gaps((*(facts.get(each, "datasets") for each in databases), *listed.values()))):
        return Unknown.join(unseen)
    seen = about_each((place, listed[place]) for place in found or places)
    return Known(tuple(f"{place} ({text})" for place, text in found.items()), seen or (Evidence("no database"),))


def _late(rows: Sequence[str], now: float) -> str:
    minutes = sorted({int(each.split()[0]) // 60 for each in rows})[-9:]
    between = [then - before for before, then in pairwise(minutes)]
    if len(between) < LEAST_POINTS or max(between) > 3 * (usual := median(between)):
        return ""
    age = now / DAY_S - minutes[-1] / 1440
    if not max(LATE * usual / 1440, LATE_DAYS) < age < FORGOTTEN_DAYS:
        return ""
    every = f"{usual / 60:.0f} h" if usual < 2880 else f"{usual / 1440:.0f} days"
    return f"one every {every if usual >= 60 else f'{usual:.0f} min'}, none for {_ago(age).removesuffix(' ago')}"


def _bytes(facts: Facts, dataset: Subject, name: str) -> int:
    found: Judged = facts.get(dataset, name)
    return found.value if isinstance(found, Known) and isinstance(found.value, int) else 0


THERE = ("ONLINE", "DEGRADED", "AVAIL", "INUSE")
COMMAND = "zpool import"


@derivation(
    "host",
    pools_not_imported=Spec.words("name and GUID of each, and the devices that bear its label"),
    pool_names_twice=Spec.words("the same of those that are called like a pool that is imported"),
)
def pools_not_imported(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Pools whose labels drives of this host bear, and that are not imported; those apart that are called like one that is.

    What udev knows of a device that a pool was made on later may be the label of before: no leaf of an imported pool counts.
    Nor does a device that a virtual machine has open: only who may open it can do so, and it is told by its number. Where the
    label has the name of an imported pool it does: at the next start that machine does not run yet. An old leg of an imported
    pool bears that pool's GUID. Known where no label is of another pool, whatever else is not known."""
    labels, pools, loaded = (facts.get(HOST, name) for name in ("zfs_labels", "imported_pools", "zfs_loaded"))
    none_imported = isinstance(loaded, Known) and not loaded.value
    every((labels,) if none_imported else (labels, pools))
    guids = [facts.get(pool, "list_guid") for pool in facts.linked(HOST, "imported_pools")]
    leaves = [facts.get(leaf, "path") for leaf in facts.subjects("leaf") if _is_there(leaf, facts)]
    guests, opened = facts.get(HOST, "guests").rows(Guest), facts.get(HOST, "guest_files")
    nodes = {each.path: each.node for each in facts.get(HOST, "labelled_paths").rows(DeviceName)}
    mine = {each.word() for each in guids}
    taken = {nodes.get(path.word(), "") for path in leaves}
    of_guests = {each.where.removeprefix("/dev/") for each in opened.rows(GuestFile)}
    # udev writes a blank in a label as an underscore (systemd src/udev/udev-builtin-blkid.c, ID_FS_LABEL)
    names = {each for pool in facts.linked(HOST, "imported_pools") for each in (pool.name, pool.name.replace(" ", "_"))}
    others: dict[bool, dict[str, list[str]]] = {False: {}, True: {}}  # by whether another one of that name is imported
    rows, incomplete = list(labels.rows(Label)), list[str]()
    for guid, node, disk, name in rows:
        if guid not in mine and not {node, disk} & (taken if name in names else taken | of_guests):
            if guid and name:
                others[name in names].setdefault(f"{name} (GUID {guid})", []).append(node)
            else:
                incomplete.append(node)
    doubts = gaps((*guids, *leaves))
    of_opened = [opened] if guests and isinstance(opened, Unknown) else []
    hidden = list[Unknown]()
    if not rows and leaves and not none_imported:
        hidden = [unknown("udev knows no label of a pool, although pools are imported")]
    elif incomplete:
        hidden = [unknown(f"{', '.join(sorted(incomplete))}: a label without the name or the GUID of its pool")]
    for fact, twice in zip(pools_not_imported.facts, (False, True), strict=True):
        found = tuple(f"{pool} on {', '.join(sorted(devices))}" for pool, devices in others[twice].items())
        text = "; ".join(found) or "every label is that of an imported pool, or its device is in use"
        why = doubts if twice else [*doubts, *of_opened]
        if not found:
            why = hidden if twice else []
        yield Fact(HOST, fact, Unknown.join(why) if why else known(found, text, COMMAND))


def _is_there(leaf: Subject, facts: Facts) -> bool:
    """Whether it is a device that its pool writes to, as far as that is known."""
    kind, state = facts.get(leaf, "type"), facts.get(leaf, "state")
    return not (isinstance(kind, Known) and kind.value in ("file", "dspare")) and (
        isinstance(state, Unknown) or state.value in THERE
    )


# What a pool and its history remember: when it was created, scrubbed, trimmed, rewound, and taken up by other hosts.

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
    function = facts.need(pool, "scan_function")
    if function.value in PARTIAL:
        what = PARTIAL[str(function.value)]
        return unknown(f"{pool.name}: the last scan was {what}; zpool status does not remember the scrub before it")
    return Known(function.value == "scrub", function.evidence)


@catch_missing
def _scrub(pool: Subject, facts: Facts) -> Judged:
    function, state = facts.need(pool, "scan_function"), facts.need(pool, "scan_state")
    if function.value != "scrub":
        _ever(pool, facts).need()
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
    function, state = facts.need(pool, "scan_function"), facts.need(pool, "scan_state")
    if function.value == "none":
        return unknown(f"{pool.name}: no scrub is on record")
    if state.value in UNFINISHED:
        return since(facts, pool, "scan_start_s", f"{function.value} {state.value}, begun")
    return since(facts, pool, "scan_end_s", f"{function.value} {state.value}")


@catch_missing
def since(facts: Facts, subject: Subject, name: str, what: str) -> Judged:
    """Days between a moment (a fact in seconds since the epoch) and the audit; what: words for the evidence."""
    then = facts.need(subject, name)
    days = (facts.now - then.number()) / DAY_S
    if days < -1:
        return unknown(f"{subject.name}: {what} {-days:.0f} days in the future: the clock of this host is wrong")
    seen = Evidence(f"{what} {_ago(days)}", then.evidence[0].command.replace("{subject}", quoted(subject.name)))
    return Known(max(days, 0.0), (seen,))


def _ago(days: float) -> str:
    whole = round(max(days, 0.0))
    return "today" if not whole else f"{whole} day{'s' if whole > 1 else ''} ago"


@derivation("pool", clustered=Spec.flag("a cluster manager was seen to move it between hosts"))
def clustered(pool: Subject, facts: Facts) -> Judged:
    """Whether Pacemaker imports it on one host or another. Other managers, and a person, are not seen."""
    found = facts.need(HOST, "cluster_pools")
    return Known(pool.name in found.words(), found.evidence)


BY_HAND_DAYS = 100
AWAY_DAYS, YEAR_DAYS = 30, 365


@derivation(
    "pool",
    import_without_log_days=Spec.real("days since the last import with -m"),
    rewind_days=Spec.real("days since the last import or clear that could discard transactions"),
    history_days=Spec.real("days for which zpool history remembers every command"),
    history_whole=Spec.flag("its history goes back to the day on which the pool was created; never false"),
    returns=Spec.number("times in the last year that this host took it back from another one within 30 days"),
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
    """Of the host that came back most often: a forged line of the history can add a return, and take none away. A pool that
    moved for good, or a host with a new name, does not come back."""
    found = facts.need(pool, "taken_up")
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
    """The history is a ring: what has left it is unknown."""
    root = Subject("dataset", pool.name)
    first, created = facts.need(pool, "history_since_s"), facts.need(root, "creation")
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
        return Unknown.join(unknowns)
    return Known(False, evidence(*ways))


@catch_missing
def _automatic(pool: Subject, facts: Facts) -> Judged:
    found = facts.need(pool, "autotrim")
    return Known(found.value == "on", found.evidence)


@catch_missing
def _timer(pool: Subject, facts: Facts) -> Judged:
    timers = facts.need(HOST, "trim_timers")
    return Known(pool.name in timers.words(), timers.evidence)


def _nixos(facts: Facts) -> list[Judged]:
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
    others = [disk for disk, by in zip(disks, transports, strict=True) if by.or_none() != "nvme"]
    text = f"Debian's job trims pools of NVMe drives alone, and {others[0]} is none" if others else ""
    return Known(not others, (Evidence(text, "cat /usr/lib/zfs-linux/trim"),) if others else job.evidence)


@catch_missing
def _by_hand(pool: Subject, facts: Facts) -> Judged:
    """Never true: whoever may take a snapshot may write such a line."""
    trims = facts.need(pool, "trims")
    if trims.value == 0:
        return Known(False, trims.evidence)
    days = since(facts, pool, "trim_s", "trimmed").need()
    assert isinstance(days.value, float)
    if days.value > BY_HAND_DAYS:
        return Known(False, (*days.evidence, Evidence(f"{trims.value} times by hand")))
    text = (
        f"a zpool trim is on record {days.value:.0f} days ago: that the drives were trimmed zpool history does not show"
    )
    return unknown(text, f"zpool status -t {quoted(pool.name)}")


@derivation(
    "dataset", copied_s=Spec.number("of the newest snapshot that a bookmark marks as sent, or archived WAL; 0: none")
)
def copied(dataset: Subject, facts: Facts) -> Judged:
    """Up to which moment a copy elsewhere may have it; no proof of one. Bookmarks may be made by hand (man 8 zfs-allow), an
    archive may lie on this pool, and some copies leave no trace: what is lost is at least what came later."""
    seen = facts.need(Subject("pool", dataset.name.partition("/")[0]), "bookmarks")
    own = [each for each in seen.words() if each.rpartition(" ")[0].partition("#")[0] == dataset.name]
    newest = max(own, key=lambda each: int(each.rpartition(" ")[2]), default="")
    name, _, made = newest.rpartition(" ")
    text = f"the newest bookmark of a replication is {name}" if name else f"no bookmark of {dataset}"
    sent = known(int(made or 0), text, "zfs list -t bookmark {subject}")
    here = [each for each in facts.linked(HOST, "databases") if dataset in facts.linked(each, "datasets")]
    archives = [each for each in here if facts.need(each, "engine").value == "postgres"]
    archives = [each for each in archives if facts.get(each, "archive_mode").or_none() != "off"]
    if not archives:
        return sent
    server, last = min(zip(archives, every(facts.get(each, "archived_s") for each in archives), strict=True),
                       key=lambda each: each[1].number())  # fmt: skip
    text = f"{server} archived WAL last, to where is not known"
    return max(sent, Known(last.number(), (Evidence(text), *last.evidence)), key=Known.number)
