"""When and how the service of a database starts, and whether it waits for its file systems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from auditor.databases import ENGINES
from auditor.databases.paths import MountedFrom
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, known, unknown
from auditor.model.derivation import catch_missing, derivation, every, gaps
from auditor.model.next_boot import mounted_at
from auditor.text import harmless, unit_escaped

SETS = ("unit_requires", "unit_bound", "unit_looks_at", "mount_files", "local_requires")
BOUNDS = "sysinit.target"  # without which an ordinary service does not start; it gives way to emergency.target
MOUNTPOINT = ("ConditionPathIsMountPoint=", "AssertPathIsMountPoint=")
# what may be required and says nothing of a mount
_OTHERS = (".slice", ".socket", ".mount", ".device")
_TARGETS = ("sysinit", "basic", "local-fs", "remote-fs", "network", "network-online", "nss-lookup", "nss-user-lookup",
            "time-sync", "multi-user", "zfs", "zfs-import", "zfs-volumes")  # fmt: skip
MOUNT, CACHE = "zfs-mount.service", "zfs-import-cache.service"
_OF_ZFS = (MOUNT, CACHE, "zfs-import-scan.service", "zfs-load-key.service")


class Start(NamedTuple):
    """What is known of a service. lasting: mount units that a file makes. runs: another program, which may look anywhere."""

    unit: str
    requires: frozenset[str]
    bound: frozenset[str]
    paths: tuple[str, ...]
    looks: frozenset[str]
    lasting: frozenset[str]
    local: frozenset[str]
    runs: str


@derivation(
    "database",
    starts_at_boot=Spec.flag("a service of systemd starts it when the host starts"),
    unguarded=Spec.words("mount points of ZFS below its files without which its service starts, too"),
    begins_anew=Spec.flag("on an empty folder it, or its service, begins a new database"),
)
def service_start(database: Subject, facts: Facts) -> Iterator[Fact]:
    """Whether the service of a database waits for the file systems of ZFS that its files are on, and what the database makes of
    the empty folder that is there where one of them was not mounted.

    Ordinary services start after local-fs.target, and zfs-mount.service before it: that is an order, and holds nothing back
    where the pool was not imported (zfs mount -a then has nothing to do, and succeeds) or a mount failed. What holds a service
    back is a mount unit that a file makes, which it requires (RequiresMountsFor=, Requires=, BindsTo=) or without which the
    host does not get so far; a condition or assertion that the place is a mount point; mountpoint(1) before it starts; or the
    units that import and mount, required together. RequiresMountsFor= of what ``zfs mount -a`` mounts holds nothing back:
    systemd knows no such mount when the host starts.

    The initramfs mounts the root file system; whether also what lies below it by its name depends on which one it is (that of
    initramfs-tools does, that of dracut only what it needs itself).

    What is on no file system of ZFS itself is not among the mount points. (man 5 systemd.unit; systemd 257 src/core/unit.c,
    units/sysinit.target, units/local-fs.target; OpenZFS 2.4.4 etc/systemd/system/zfs-mount.service.in,
    zfs-import-cache.service.in; man 8 zfs-mount-generator)"""
    yield Fact(database, "starts_at_boot", _starts(database, facts))
    yield Fact(database, "unguarded", _unguarded(database, facts))
    yield Fact(database, "begins_anew", _begins_anew(database, facts))


@catch_missing
def _starts(database: Subject, facts: Facts) -> Judged:
    if facts.get(database, "process").or_none() == "self":
        return Known(False, (Evidence("it does not run"),))
    unit = facts.need(database, "unit")
    if not unit.value:
        return Known(False, unit.evidence)
    starts = facts.need(database, "unit_starts")
    return Known(starts.value, (*unit.evidence, *starts.evidence))


@catch_missing
def _start(database: Subject, facts: Facts) -> Start:
    facts.values(database, *SETS, "unit", "unit_mounts_for", "unit_runs_else")
    requires, bound, looks, lasting, local = (frozenset(map(str, facts.get(database, each).words())) for each in SETS)
    paths = tuple(map(str, facts.get(database, "unit_mounts_for").words()))
    unit, runs = (facts.get(database, each).word() for each in ("unit", "unit_runs_else"))
    return Start(unit, requires, bound, paths, looks, lasting, local, runs)


def _unguarded(database: Subject, facts: Facts) -> Judged:
    """Unknown where none is known to be, and one may be."""
    places, start = facts.get(database, "mounted_from"), _start(database, facts)
    if holes := gaps((places, start)):
        return Unknown.join(holes)
    assert isinstance(start, Start)
    roots = mounted_at(facts, "/")
    bare, holes, seen = list[str](), list[Unknown](), list[Evidence]()
    for point, dataset in places.rows(MountedFrom):
        if point == "/":
            seen.append(Evidence(f"{dataset} is the root file system", "findmnt /"))
            continue
        match _held(point, dataset, start, database, facts):
            case str() as how:
                seen.append(Evidence(f"{start.unit} is held back without {point}: {how}", _shown(start)))
            case Unknown() as why:
                holes.append(why)
            case _ if any(dataset.startswith(f"{root}/") for root in roots):
                holes.append(unknown(f"whether the initramfs mounts {dataset} with the root file system is not seen"))
            case _:
                bare.append(point)
    if bare:
        text = f"nothing holds {start.unit} back without {' and '.join(map(harmless, bare))}"
        return known(tuple(bare), text, _shown(start))
    nothing = Evidence("none of its files is on a file system of ZFS")
    return Unknown.join(holes) if holes else Known((), tuple(seen) or (nothing,))


def _shown(start: Start) -> str:
    return f"systemctl show -p Requires,BindsTo,RequiresMountsFor,ExecStartPre {start.unit}"


def _held(point: str, dataset: str, start: Start, database: Subject, facts: Facts) -> str | Unknown | None:
    """What holds the service back without this mount; None: nothing does."""
    unit = f"{unit_escaped(point.strip('/'))}.mount"
    covered = any(f"{path.rstrip('/')}/".startswith(f"{point}/") for path in start.paths)
    if unit in start.lasting and unit in start.local and BOUNDS in start.requires:
        return f"local-fs.target requires {unit}"
    if unit in start.bound or (unit in start.requires and (unit in start.lasting or not covered)):
        return f"it requires {unit}"
    if point in start.looks:
        return f"mountpoint {point}"
    by = _by_service(dataset, start, facts)
    if isinstance(by, str):
        return by
    conditions = facts.get(database, "unit_conditions")
    stated = tuple(map(str, conditions.words()))
    if met := next((each for each in stated if each.startswith(MOUNTPOINT) and _path(each) == point), ""):
        return met
    return _doubt(point, dataset, start, [by, conditions], stated, facts, covered)


def _doubt(
    point: str,
    dataset: str,
    start: Start,
    vain: Sequence[Judged | None],
    stated: Sequence[str],
    facts: Facts,
    covered: bool,
) -> Unknown | None:
    """Why it is not known whether anything holds the service back; None: nothing does. vain: what was looked at before."""
    holes = gaps(vain)
    for each in stated:
        if f"{_path(each)}/".startswith(f"{point}/"):  # an older copy may lie below the mount, where nobody sees it
            why = f"{start.unit} has {harmless(each)}: whether that holds without the mount is not seen"
            holes.append(unknown(why))
    if start.runs:
        holes.append(unknown(f"{start.unit} runs {harmless(start.runs)}, which may look for {harmless(point)}"))
    if odd := sorted(each for each in start.requires if not (each.endswith(_OTHERS) or _says_nothing(each))):
        holes.append(unknown(f"{start.unit} requires {harmless(odd[0])}, which may wait for {harmless(point)}"))
    if covered:
        lists = facts.get(HOST, "generated_pools")
        if isinstance(lists, Unknown):
            holes.append(lists)
        elif dataset.partition("/")[0] in lists.words():
            why = f"{lists.evidence[0].text}: the unit of {harmless(point)} is made of it when the host starts"
            holes.append(unknown(why))
    return Unknown.join(holes) if holes else None


def _path(condition: str) -> str:
    return condition.partition("=")[2].rstrip("/")


def _says_nothing(unit: str) -> bool:
    """Of one mount alone."""
    if unit.endswith(".target"):
        return unit.removesuffix(".target") in _TARGETS
    return unit in _OF_ZFS or unit.startswith(("zfs-import@", "zfs-import-", "zfs-mount@", "zfs-load-key@"))


@catch_missing
def _by_service(dataset: str, start: Start, facts: Facts) -> str | Unknown | None:
    """The units that import the pool and mount the dataset, where the service requires both, or the one that mounts just it
    or what it lies below (Debian's zfs-mount@, zfs mount -R); None: none does. zfs-mount.service alone has no fault to find
    where no pool is there."""
    parts = dataset.split("/")
    if (own := f"zfs-mount@{unit_escaped(dataset)}.service") in start.requires:
        return f"it requires {own}"
    above = ("/".join(parts[:end]) for end in range(1, len(parts)))
    by = next((each for name in above if (each := f"zfs-mount@{unit_escaped(name)}.service") in start.requires), "")
    name, needed = unit_escaped(parts[0]), [facts.get(Subject("dataset", dataset), "canmount")]
    if not by and MOUNT in start.requires:
        imports = (f"zfs-import@{name}.service", f"zfs-import-{name}.service")
        by = next((each for each in imports if each in start.requires), "")
        if not by and CACHE in start.requires:
            by = CACHE
            needed.append(facts.get(HOST, "cached_pools"))
    if not by:
        return None
    mounts, *cached = every(needed)
    held = mounts.word() == "on" and all(parts[0] in each.words() for each in cached)
    return f"it requires {by}{'' if by.startswith('zfs-mount@') else f' and {MOUNT}'}" if held else None


@catch_missing
def _begins_anew(database: Subject, facts: Facts) -> Judged:
    """Of a server that lays out nothing by itself: its service may."""
    name = str(facts.need(database, "engine").value)
    if not ENGINES[name].processes:
        return unknown(f"what {name} makes of an empty folder is not known to zaudit")
    if why := ENGINES[name].new_on_empty:
        return Known(True, (Evidence(why),))
    prepares, runs = facts.values(database, "unit_prepares", "unit_runs_else")
    if prepares.value:
        return Known(True, prepares.evidence)
    if runs.value:
        return unknown(f"{runs.evidence[0].text}, which may lay out an empty folder")
    return Known(False, (Evidence(f"{name} does not start on an empty folder", ""), *prepares.evidence))
