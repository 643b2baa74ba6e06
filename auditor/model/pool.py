"""What state a pool is in: its devices, errors, suspensions and unfinished transaction groups, what zpool status says beyond
these, the space that snapshots hold, and pools that are not imported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from auditor.facts import (
    HOST,
    DeviceName,
    Evidence,
    Fact,
    Facts,
    Guest,
    GuestFile,
    Judged,
    Known,
    Label,
    Spec,
    Subject,
    Unknown,
    is_true,
    join,
    known,
    unknown,
    value_of,
)
from auditor.model.derivation import (
    Missing,
    about_each,
    catch_missing,
    derivation,
    every,
    evidence,
    gaps,
    linked,
    need,
    values,
)
from auditor.text import quoted, size

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
    leaves = linked(facts, pool, "leaves")
    legs = [
        (leaf, facts.get(leaf, "state")) for leaf in leaves if value_of(facts.get(leaf, "allocation_class")) != "log"
    ]
    unseen = gaps(state for _, state in legs)
    seen = [(leaf, state) for leaf, state in legs if isinstance(state, Known)]
    for name in legs_in_use.facts:
        states = {"legs_offline": ("OFFLINE",), "legs_gone": GONE}.get(name, (*GONE, "OFFLINE"))
        bad = [(leaf, state) for leaf, state in seen if state.value in states]
        named = tuple(f"{leaf.name} ({state.value})" if name == "legs_not_online" else leaf.name for leaf, state in bad)
        found = Known(named, about_each(bad) or (Evidence("each leg is ONLINE"),))
        yield Fact(pool, name, join(unseen) if unseen and not bad else found)


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
    """What the status: paragraph of ``zpool status`` says of a pool beyond its devices.

    It tells one thing at a time, the first of a fixed order: where it tells of something earlier, what comes later is not known
    to be absent. (lib/libzfs/libzfs_status.c check_status(), the texts from cmd/zpool/zpool_main.c, the same in 2.1.11 and
    2.4.4)"""
    status = need(facts.get(pool, "status_text"))
    text = str(status.value)
    yield Fact(pool, "sequential_unverified", _first_says(SEQUENTIAL, (RESILVERING,), status))
    yield Fact(pool, "hostid_mismatch", _first_says(HOSTID, (RESILVERING, SEQUENTIAL), status))
    explained = not text or text.startswith(EXPLAINED)
    if not explained and text.startswith(OF_A_DEVICE):
        leaves = facts.linked(pool, "leaves")
        counts = [value_of(facts.get(leaf, name)) for leaf in leaves for name in COUNTS]
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
    counts = [(leaf, facts.get(leaf, "checksum_errors")) for leaf in linked(facts, pool, "leaves")]
    wrong = [(leaf, count) for leaf, count in counts if isinstance(count, Known) and count.value]
    unseen = gaps(count for _, count in counts)
    if unseen and len(wrong) < 2:
        return join(unseen)
    seen = tuple(piece for _, count in wrong or counts if isinstance(count, Known) for piece in count.evidence)
    return Known(tuple(leaf.name for leaf, _ in wrong), seen or (Evidence("the pool has no device"),))


@derivation(
    "pool", errors_beyond=Spec.words("vdevs with redundancy of which more legs have had errors than they can lose now")
)
def errors_beyond(pool: Subject, facts: Facts) -> Judged:
    """Where errors may have used up the redundancy: what is bad on one leg too many cannot be repaired. A leg that is
    resilvered counts as gone, so that errors of the other leg of a mirror are enough."""
    vdevs = linked(facts, pool, "vdevs")
    found = [(vdev, _beyond(vdev, facts)) for vdev in vdevs]
    bad = [(vdev, each) for vdev, each in found if is_true(each)]
    if not bad and (unseen := gaps(each for _, each in found)):
        return join(unseen)
    seen = about_each(bad) or (Evidence("no vdev has errors on more legs than it can lose", "zpool status {subject}"),)
    return Known(tuple(vdev.name for vdev, _ in bad), seen)


@catch_missing
def _beyond(vdev: Subject, facts: Facts) -> Judged:
    tolerated, _ = values(facts, vdev, "failures_tolerated", "leaves")
    counts = [(leaf, facts.get(leaf, name)) for leaf in facts.linked(vdev, "leaves") for name in COUNTS]
    bad = [(leaf, each) for leaf, each in counts if isinstance(each, Known) and each.number()]
    legs = len({leaf for leaf, _ in bad})
    if not tolerated.number() or legs > tolerated.number():
        return Known(bool(tolerated.number()), about_each(bad))
    if not bad:
        every(each for _, each in counts)
    left = need(facts.get(vdev, "failures_left")) if bad else tolerated
    return Known(legs > left.number(), (*about_each(bad), *left.evidence))


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
    """For how long the oldest TXG of a pool that is not committed has been quiescing or syncing.

    Both times are of one clock, gethrtime(). That of the look is read before the list of TXGs, so what comes out is rather too
    short than too long, by milliseconds. Unknown where there is such a TXG and no clock."""
    since = need(facts.get(pool, "txg_unfinished_since_ns"))
    if since.value == 0:
        return Known(0.0, since.evidence)
    now = need(facts.get(pool, "kstat_clock_ns"))
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
    """How much of a pool snapshots hold, at least, and on which datasets.

    OpenZFS tells it in one property each (usedbysnapshots); it follows from those that are read anyway: what a dataset uses
    beyond what it refers to and beyond what its children use or have reserved is held by its snapshots, or reserved for itself,
    as of a volume: so much less they hold at least. Of a clone, which refers to what it shares with its origin and does not use
    it, it is all that can be told. (man 7 zfsprops: used, referenced, refreservation; module/zfs/dsl_dir.c dd_used_breakdown)
    Unknown unless the whole pool was looked at."""
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
    datasets = linked(facts, pool, "datasets")
    if Subject("dataset", pool.name) not in datasets:
        raise Missing(unknown(f"{pool}: not all of its datasets are audited"))
    children: dict[str, int] = defaultdict(int)
    for dataset in datasets:
        for name in ("origin", *SIZES):
            need(facts.get(dataset, name))
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
    datasets, promised = linked(facts, pool, "datasets"), 0
    if Subject("dataset", pool.name) not in datasets:
        return unknown(f"{pool}: not all of its datasets are audited")
    for dataset in datasets:
        kind, readonly = every((facts.get(dataset, "type"), facts.get(dataset, "readonly")))
        if (kind.value, readonly.value) == ("volume", "off"):
            whole, reserved, held = map(
                Known.number, every(facts.get(dataset, name) for name in ("volsize", "refreservation", "referenced"))
            )
            promised += max(int(whole) - int(max(reserved, held)), 0) if reserved < whole else 0
    return known(promised, f"thin volumes may take {size(promised)} more", f"zfs list -t volume -r {pool.name}")


@derivation(
    "dataset",
    snapshot_room=Spec.number("what is available to the next snapshot, bytes"),
    snapshot_takes=Spec.number("what the next snapshot takes of that, as the refreservation is promised again, bytes"),
    snapshot_takes_most=Spec.number("the same at most, bytes"),
)
def next_snapshot(dataset: Subject, facts: Facts) -> Iterator[Fact]:
    """What a snapshot takes from all others: the smaller of what the dataset alone holds and its refreservation.
    (module/zfs/dsl_dataset.c dsl_dataset_snapshot_reserve_space)

    AVAIL of the dataset includes what is reserved for it and not yet written (dsl_dataset_space). What it alone holds is what
    it refers to, unless snapshots or a clone's origin hold part of it: then it uses more than that, or less."""
    names = ("used", "available", "referenced", "refreservation")
    found = every(facts.get(dataset, name) for name in (*names, "origin"))
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
        yield Fact(HOST, fact, join(why) if why else known(found, text, COMMAND))


def _is_there(leaf: Subject, facts: Facts) -> bool:
    """Whether it is a device that its pool writes to, as far as that is known."""
    kind, state = facts.get(leaf, "type"), facts.get(leaf, "state")
    return not (isinstance(kind, Known) and kind.value in ("file", "dspare")) and (
        isinstance(state, Unknown) or state.value in THERE
    )
